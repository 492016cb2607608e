"""Options that several commands share, and how errors reach the user."""

from __future__ import annotations

import sys
import traceback as traceback_module
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eatss.diagnostics import Diagnostic, EatssError, input_error


class DataType(StrEnum):
    """Values of ``--dtype``."""

    FLOAT = "float"
    DOUBLE = "double"


class TargetChoice(StrEnum):
    """Values of ``--target``."""

    PPCG = "ppcg"
    CUDA = "cuda"


class ModelChoice(StrEnum):
    """Values of ``--model``."""

    EATSS = "eatss"
    PAPER = "paper"


class VolumeChoice(StrEnum):
    """Values of ``--volume``."""

    PRODUCT = "product"
    FOOTPRINT = "footprint"


class DiagnosticsFormat(StrEnum):
    """Values of ``--diagnostics``."""

    TEXT = "text"
    JSON = "json"


SourceFile = Annotated[
    Path, typer.Argument(metavar="FILE.c", help="C file with #pragma scop regions.")
]
Defines = Annotated[
    list[str] | None,
    typer.Option(
        "-D", metavar="NAME[=VALUE]", help="Define a macro, as for cc.", rich_help_panel="Source"
    ),
]
IncludeDirs = Annotated[
    list[Path] | None,
    typer.Option("-I", metavar="DIR", help="Search DIR for headers.", rich_help_panel="Source"),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Fix an integer parameter of the region (a size passed as an argument).",
        rich_help_panel="Source",
    ),
]
Function = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only regions in this function.", rich_help_panel="Source"),
]
ScopIndex = Annotated[
    int | None,
    typer.Option(
        "--scop", metavar="N", min=0, help="Only region N, from 0.", rich_help_panel="Source"
    ),
]
Dtype = Annotated[
    DataType | None,
    typer.Option(
        help="Floating-point type to select for; default: as written.", rich_help_panel="Source"
    ),
]
MaxOperations = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Bound on the polyhedral work for one region.",
        rich_help_panel="Source",
    ),
]
PpcgSchedule = Annotated[
    Path | None,
    typer.Option(
        "--ppcg-schedule",
        metavar="FILE",
        help="Take the kernels of a schedule that PPCG saved (ppcg --save-schedule=FILE).",
        rich_help_panel="Source",
    ),
]
Card = Annotated[
    str, typer.Option("--gpu", "-g", metavar="CARD", help="Name of a card, or a TOML profile.")
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="energy|time|edp|paper|NAME",
        help="What is best: least energy (default), time or energy × time of a run as predicted, "
        "the objective of the EATSS paper, or one that a package adds.",
        rich_help_panel="Model",
    ),
]
Model = Annotated[
    ModelChoice | None,
    typer.Option(
        help="For --objective paper: as published, or with exact footprints (eatss).",
        rich_help_panel="Model",
    ),
]
Volume = Annotated[
    VolumeChoice | None,
    typer.Option(
        help="Count a tile's elements as products of sizes or as exact footprints; "
        "default: product for --model paper, else footprint.",
        rich_help_panel="Model",
    ),
]
Split = Annotated[
    str,
    typer.Option(
        metavar="auto|0..1",
        help="Share of L1 + shared memory that is shared.",
        rich_help_panel="Model",
    ),
]
WarpFraction = Annotated[
    str,
    typer.Option(
        metavar="auto|0..1",
        help="Sizes are multiples of this fraction of a warp.",
        rich_help_panel="Model",
    ),
]
Uniform = Annotated[
    bool,
    typer.Option("--uniform", help="One vector of sizes for all kernels.", rich_help_panel="Model"),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.0,
        help="Bound on the solving of each kernel.",
        rich_help_panel="Model",
    ),
]
Tile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[KERNEL:]LOOP=SIZE,...",
        help="Tile sizes of your own, for all kernels or for one (k0:).",
        rich_help_panel="Code",
    ),
]
Block = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[KERNEL:]THREADS,...|LOOP=THREADS,...",
        help="Threads of a block in the order of the loops, the last along x, or by loop.",
        rich_help_panel="Code",
    ),
]
Place = Annotated[
    list[str] | None,
    typer.Option(
        metavar="REFERENCE=shared|l1",
        help="Memory of an array (A) or a reference ('A[i][k]') in code of eatss.",
        rich_help_panel="Code",
    ),
]
Diagnostics = Annotated[
    DiagnosticsFormat,
    typer.Option(help="How findings are printed on stderr.", rich_help_panel="Output"),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show a traceback for our own faults.", rich_help_panel="Output"),
]


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal's stderr what takes time; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from eatss.report.render import printable  # noqa: PLC0415

    with Console(stderr=True).status(Text(printable(what))):
        yield


def parse_parameters(pairs: Sequence[str] | None) -> dict[str, int]:
    """Turn ``NAME=VALUE`` strings into a mapping.

    Raises:
        InputError: a pair has no name or no integer value.
    """
    values: dict[str, int] = {}
    for pair in pairs or ():
        name, separator, value = pair.partition("=")
        if not separator or not name.isidentifier() or not _is_integer(value):
            raise input_error(
                "EATSS-C001",
                f"'{pair}' does not fix a parameter",
                hint="write a name and an integer, like --param n=4000",
            )
        values[name] = int(value)
    return values


def report_warnings(warnings: Sequence[Diagnostic], diagnostics: DiagnosticsFormat) -> None:
    """Print warnings on stderr, if there are any."""
    if warnings:
        _print_diagnostics(warnings, as_json=diagnostics is DiagnosticsFormat.JSON)


def report_error(error: EatssError, *, as_json: bool) -> None:
    """Print an error's findings on stderr, and how many there are if several."""
    _print_diagnostics(error.diagnostics, as_json=as_json)
    if not as_json and len(error.diagnostics) > 1:
        print(f"{len(error.diagnostics)} errors.", file=sys.stderr)  # noqa: T201


def internal_fault(error: Exception, *, as_json: bool, traceback: bool) -> None:
    """Say that eatss itself failed, and what the user can do."""
    if traceback:
        traceback_module.print_exception(error)
    detail = " ".join(str(error).split()) or type(error).__name__
    diagnostic = Diagnostic(
        code="EATSS-X001",
        message=f"eatss failed: {type(error).__name__}: {detail[:300]}",
        hint="this is a fault of eatss; please report it with the output of --debug",
    )
    _print_diagnostics([diagnostic], as_json=as_json)


def _print_diagnostics(diagnostics: Sequence[Diagnostic], *, as_json: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from eatss.report.diagnostics import diagnostics_json, diagnostics_text  # noqa: PLC0415

    if as_json:
        print(diagnostics_json(diagnostics), file=sys.stderr)  # noqa: T201
    else:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(diagnostics_text(diagnostics))


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
