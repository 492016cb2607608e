"""PPCG's command line as its user wrote it, PPCG run, and what it said: sizes and failures."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import islpy as isl

from eatss.base.diagnostics import (
    Diagnostic,
    EatssError,
    ExitCode,
    InputError,
    Severity,
    input_error,
)
from eatss.base.files import StrPath
from eatss.base.frozen import Numbers, frozen
from eatss.base.shipped import source_path
from eatss.base.supervisor import run_bounded
from eatss.base.text import Texts
from eatss.polyhedral.isl_names import maps_of, points_of

_OPTIONS = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
_OPTIONS.add_argument("-D", dest="defines", action="append", default=[])
_OPTIONS.add_argument(
    "-I", "--pet-include-path", dest="folders", action="append", default=[], type=Path
)
_OPTIONS.add_argument("-o", dest="output", type=Path)
_OPTIONS.add_argument("-S", dest="size", action="append", default=[])
"""Those that are read here."""

_OURS = {
    "--save-schedule": "eatss has PPCG save its schedule and load it again",
    "--load-schedule": "eatss has PPCG save its schedule and load it again",
    "--sizes": "eatss selects the sizes",
    "--tile-size": "eatss selects the sizes",
    "-S": "eatss selects the sizes",
    "--max-shared-memory": "eatss selects it with the sizes",
    "--unroll-gpu-tile": "eatss selects it with the sizes",
    "--no-unroll-gpu-tile": "eatss selects it with the sizes",
    "--hybrid": "with it a tile size means something else",
}
_NEVER = ("--save-schedule", "--load-schedule")


@frozen
class PpcgArguments:
    """What stands after ``--``.

    ``source`` is the C file and ``output`` the folder of ``-o``, ``None`` where there is none.
    ``defines`` and ``include_dirs`` are those that the C is read with; ``others`` are all other
    options. :attr:`options` are what PPCG gets, in the order given, folders as absolute paths: it
    runs in a folder of its own.
    """

    source: Path
    output: Path | None
    defines: Texts
    include_dirs: tuple[Path, ...]
    others: Texts

    @property
    def options(self) -> Texts:
        """What PPCG is told besides the source."""
        return (
            *(f"-D{define}" for define in self.defines),
            *(f"-I{folder.absolute()}" for folder in self.include_dirs),
            *self.others,
        )


def ppcg_arguments(words: Sequence[str], *, selecting: bool = True) -> PpcgArguments:
    """Read PPCG's command line.

    Args:
        words: what stands after ``--``: a C file and options, in any order.
        selecting: whether eatss chooses sizes; then options that choose them are refused.

    Raises:
        InputError: ``EATSS-R001`` there is no C file, or several; ``EATSS-R001`` an option goes
            with nothing that is done here; ``EATSS-C017`` there is no such kernel of eatss.
    """
    for word in words:
        _check(word[:2] if word.startswith("-S") else word.partition("=")[0], word, selecting)
    try:
        given, rest = _OPTIONS.parse_known_args(list(words))
    except ArgumentError as error:
        raise _wrong(f"'{error.argument_name}' is given no value") from None
    files = [word for word in rest if not word.startswith("-")]
    if len(files) != 1:
        what = f"{len(files)} files: {', '.join(files)}" if files else "no C file"
        raise _wrong(f"PPCG is given {what}; it takes one")
    return PpcgArguments(
        source=source_path(files[0]),
        output=given.output,
        defines=tuple(given.defines),
        include_dirs=tuple(given.folders),
        others=(*(word for word in rest if word.startswith("-")), *(f"-S{n}" for n in given.size)),
    )


def _check(name: str, word: str, selecting: bool) -> None:
    if name == "--target" and word != "--target=cuda":
        raise _refused(word, "only CUDA is generated here", "leave it out")
    if name in _NEVER or (selecting and name in _OURS):
        hint = "leave it out" if name in _NEVER else "leave it out, or add --no-select before --"
        raise _refused(name, _OURS[name], hint)


def _refused(option: str, why: str, hint: str) -> InputError:
    return input_error("EATSS-R001", f"PPCG's option '{option}' cannot be given: {why}", hint=hint)


def _wrong(message: str) -> InputError:
    return input_error(
        "EATSS-R001",
        message,
        hint="write: eatss ppcg --gpu h200 -- gemm.c -o build -DN=1000; a value belongs to its "
        "option, as in --ctx='[n] -> { : n > 0 }'",
    )


TIMEOUT_S = 300.0
_SHOWN = 8
_INSTALL = "install PPCG (repo.or.cz/ppcg.git), or name it with --ppcg PATH"


class PpcgError(EatssError):
    """PPCG failed, or generated something else than it was asked for (exit code 1)."""

    exit_code = ExitCode.NO_SOLUTION


@frozen
class Generated:
    """What a run of PPCG wrote: host file, kernel file and its header; and what it said."""

    stem: str
    host: str
    kernels: str
    header: str
    said: str

    @property
    def files(self) -> tuple[tuple[str, bytes], ...]:
        """Names of the files, as PPCG gives them, and their contents."""
        texts = ((f"{self.stem}_kernel.hu", self.header), (f"{self.stem}_kernel.cu", self.kernels))
        named = (*texts, (f"{self.stem}_host.cu", self.host))
        return tuple((name, text.encode("utf-8", "surrogateescape")) for name, text in named)


def find_ppcg(named: StrPath | None = None) -> str:
    """Return the path of PPCG: the one named, else the one on the path.

    Raises:
        InputError: ``EATSS-R003``, there is none.
    """
    wanted = os.fspath(named) if named is not None else "ppcg"
    found = shutil.which(wanted)
    if found is not None:
        return os.path.abspath(found)  # noqa: PTH100 - a link stays as it is called
    if named is None:
        raise input_error("EATSS-R003", "there is no 'ppcg' on the path", hint=_INSTALL)
    what = "is no program that can be run" if Path(wanted).exists() else "does not exist"
    raise input_error("EATSS-R003", f"--ppcg names '{wanted}', which {what}", hint=_INSTALL)


def command_text(command: Sequence[str]) -> str:
    """Return a command as a shell takes it."""
    return shlex.join(command)


def run_ppcg(command: Sequence[str], folder: Path, timeout_s: float) -> str:
    """Run PPCG in a folder; return what it said, on standard output and standard error.

    It ends with this process, and everything it starts with it.

    Raises:
        PpcgError: ``EATSS-R010`` it fails or dies of a signal, ``EATSS-R010`` it takes longer
            than ``timeout_s``.
        InputError: ``EATSS-R003``, it cannot be started.
    """
    name = Path(command[0]).name
    try:
        code, said = run_bounded(command, folder, timeout_s)
    except OSError as error:
        message = f"'{command[0]}' cannot be started: {error.strerror}"
        raise input_error("EATSS-R003", message, hint=_INSTALL) from None
    except subprocess.TimeoutExpired:
        raise _failed("EATSS-R010", f"{name} did not end within {timeout_s:g} s", "") from None
    if code < 0:
        raise _failed("EATSS-R010", f"{name} died of {signal.Signals(-code).name}", said)
    if code:
        raise _failed("EATSS-R010", f"{name} failed with exit code {code}", said)
    return said


def generated_files(folder: Path, stem: str, said: str) -> Generated:
    """Read what PPCG wrote into a folder.

    Raises:
        PpcgError: ``EATSS-R010``, a file is missing.
    """
    texts = {}
    for name in ("host.cu", "kernel.cu", "kernel.hu"):
        path = folder / f"{stem}_{name}"
        try:
            texts[name] = path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            raise _failed(
                "EATSS-R010", f"PPCG ended well, but wrote no '{path.name}'", said
            ) from None
    return Generated(
        stem=stem,
        host=texts["host.cu"],
        kernels=texts["kernel.cu"],
        header=texts["kernel.hu"],
        said=said,
    )


def ppcg_error(code: str, message: str, hint: str) -> PpcgError:
    """Return an error about what PPCG did."""
    return PpcgError(Diagnostic(code=code, message=message, hint=hint))


def _failed(code: str, message: str, said: str) -> PpcgError:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()][:_SHOWN]
    if not lines:
        hint = "it said nothing; run it by hand: --verbose prints how"
    else:
        hint = f"it said: {lines[0]}" if len(lines) == 1 else "\n    ".join(["it said:", *lines])
    return ppcg_error(code, message, hint)


def used_tiles(said: str) -> dict[int, Numbers]:
    """Read the tile sizes by the number of a kernel that PPCG said under ``--dump-sizes``.

    Raises:
        PpcgError: ``EATSS-R010``, a line begins as sizes do and has none.
    """
    found: dict[int, Numbers] = {}
    for line in filter(is_dump, said.splitlines()):
        try:
            for each in maps_of(isl.UnionMap(line)):
                if each.range().get_tuple_name() == "tile":
                    points = points_of(each.wrap().flatten())
                    found |= {number: tuple(sizes) for number, *sizes in points}
        except (isl.Error, ValueError, OverflowError):
            raise ppcg_error(
                "EATSS-R010",
                "PPCG printed sizes (--dump-sizes) that cannot be read",
                f"it said: {line}",
            ) from None
    return found


def is_dump(line: str) -> bool:
    """Tell whether a line that PPCG printed has the sizes."""
    return line.startswith("{ kernel[") or line.strip() == "{  }"


def no_source(path: Path) -> InputError:
    """Return the error of a source that is no C file."""
    return input_error(
        "EATSS-R001",
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
