"""What is said where a build with PPCG fails, or goes on all the same."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, EatssError, InputError, Severity, input_error
from eatss.ppcg_build.run import PpcgError, ppcg_error
from eatss.ppcg_build.sizes import is_dump


def no_source(path: Path) -> InputError:
    """Return the error of a source that is no C file."""
    return input_error(
        "EATSS-R004",
        f"'{path}' is no C file",
        hint="give PPCG a file with the ending .c after --, as in: eatss ppcg --gpu h200 -- gemm.c",
    )


def nothing_mapped(source: Path, said: str) -> PpcgError:
    """Return the error of a run after which nothing is on the card."""
    told = "; ".join(line for line in said.splitlines() if line.strip() and not is_dump(line))
    hint = "mark affine loops, of which one is parallel, with #pragma scop and #pragma endscop"
    return ppcg_error(
        "EATSS-R014",
        f"PPCG mapped nothing of '{source}' to the card",
        f"it said: {told}" if told else hint,
    )


def falls_back(error: EatssError) -> Diagnostic:
    """Return the warning that PPCG takes its own sizes, for the reason of an error."""
    first = error.diagnostics[0]
    return replace(
        first,
        code="EATSS-R030",
        severity=Severity.WARNING,
        message=f"no sizes were selected, PPCG takes its own: {first.message} [{first.code}]",
    )


def not_measurable(reason: str, unchecked: str = "") -> Diagnostic:
    """Return the warning that nothing can be measured of what was generated.

    ``unchecked`` names what was not compared with what PPCG was asked for.
    """
    also = f"; {unchecked} were not compared with what was asked for" if unchecked else ""
    return Diagnostic(
        code="EATSS-R031",
        severity=Severity.WARNING,
        message=f"what PPCG generated cannot be measured by eatss: {reason}{also}",
        hint="the files are as PPCG wrote them; to measure a whole program: eatss meter -- PROGRAM",
    )


def cannot_write(error: OSError, folder: Path) -> InputError:
    """Return the error of an output that cannot be written."""
    place = error.filename if isinstance(error.filename, str) else str(folder)
    return input_error(
        "EATSS-R005",
        f"'{place}' cannot be written: {error.strerror or error}",
        hint="name another folder with -o",
    )


def cannot_write_file(option: str, path: str | PathLike[str], error: OSError) -> InputError:
    """Return the error of a file that an option names and that cannot be written."""
    return input_error(
        "EATSS-R005",
        f"{option}: '{fspath(path)}' cannot be written: {error.strerror or error}",
        hint="name a file in a folder that is there",
    )
