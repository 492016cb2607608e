"""Options that ``eatss measure`` and ``eatss compare`` share, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eatss.cli.common import DataType, parse_parameters
from eatss.diagnostics import input_error
from eatss.files import folder_named

if TYPE_CHECKING:
    from eatss.measurement.options import MeasureOptions
    from eatss.variants import SourceOptions

_PANEL = "Measuring"


class CompilerName(StrEnum):
    """Values of ``--compiler``."""

    AUTO = "auto"
    NVRTC = "nvrtc"
    NVCC = "nvcc"


class ResultFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Gpu = Annotated[
    str,
    typer.Option(
        "--gpu",
        "-g",
        metavar="auto|CARD",
        help="Card that FILE.c is compiled for: the one in this machine, a name, or a TOML "
        "profile.",
        rich_help_panel="Source",
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        metavar="NAME=VALUE,...",
        help="Problem sizes instead of the program's own.",
        rich_help_panel=_PANEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Seed of the random data.", rich_help_panel=_PANEL),
]
Meter = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What energy is read from: auto (the best the card has), counter, power, nvidia-smi, "
        "jetson, none, or a meter that a package adds.",
        rich_help_panel=_PANEL,
    ),
]
Compiler = Annotated[
    CompilerName,
    typer.Option(
        help="What compiles the CUDA text; auto: NVRTC where it is there.", rich_help_panel=_PANEL
    ),
]
DEVICE_HELP = (
    "Which card: its number as CUDA counts the cards it sees (CUDA_VISIBLE_DEVICES changes that), "
    "or its UUID (nvidia-smi -L)."
)

Device = Annotated[str, typer.Option(metavar="N|UUID", help=DEVICE_HELP, rich_help_panel=_PANEL)]
WindowSeconds = Annotated[
    float,
    typer.Option(
        "--window",
        metavar="SECONDS",
        min=0.001,
        help="Shortest stretch of repeated runs that energy is read over.",
        rich_help_panel=_PANEL,
    ),
]
Updates = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=2,
        help="Fewest values of the sensor in a window.",
        rich_help_panel=_PANEL,
    ),
]
Windows = Annotated[
    int, typer.Option(metavar="N", min=1, help="Fewest windows.", rich_help_panel=_PANEL)
]
Target = Annotated[
    str,
    typer.Option(
        metavar="PERCENT",
        help="Measure until the 95 % interval is this narrow (half of it over the mean), ...",
        rich_help_panel=_PANEL,
    ),
]
Budget = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.0,
        help="... or until so much time went into a variant.",
        rich_help_panel=_PANEL,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.01, help="Limit of one run.", rich_help_panel=_PANEL),
]
NoCheck = Annotated[
    bool,
    typer.Option(
        "--no-check",
        help="Do not compare results with the original C first.",
        rich_help_panel=_PANEL,
    ),
]
Counters = Annotated[
    bool,
    typer.Option(
        "--counters",
        help="Add DRAM bytes, L2 sectors, occupancy and instructions (needs Nsight Compute).",
        rich_help_panel=_PANEL,
    ),
]
KeepIn = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        parser=folder_named,
        help="Keep what is generated from FILE.c in this folder.",
        rich_help_panel="Output",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace files that were edited or that eatss did not write.",
        rich_help_panel="Output",
    ),
]
Format = Annotated[
    ResultFormat, typer.Option("--format", "-f", help="What to print.", rich_help_panel="Output")
]
CardClass = Annotated[
    str | None,
    typer.Option("--card", metavar="MODULE:CLASS", hidden=True, help="Stands in for the card."),
]


def measure_options(
    *,
    size: Sequence[str] | None,
    seed: int,
    meter: str,
    compiler: CompilerName,
    device: str,
    window: float,
    updates: int,
    windows: int,
    target: str,
    budget: float,
    timeout: float,
    no_check: bool,
    counters: bool,
) -> MeasureOptions:
    """Return the options of measuring from those of the command line.

    Raises:
        InputError: ``EATSS-V013`` sizes, ``EATSS-E048`` a target, ``EATSS-E049`` a card or
            ``EATSS-X005`` a meter that are none.
    """
    from eatss.measurement.meters import METERS  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.options import MeasureOptions  # noqa: PLC0415
    from eatss.verify.plain_text import parse_sizes  # noqa: PLC0415

    METERS.get(meter)
    sizes = {name: value for part in parse_sizes(size or ()) or () for name, value in part.items()}
    return MeasureOptions(
        sizes=sizes,
        seed=seed,
        meter=meter,
        compiler=compiler.value,
        device=parse_device(device),
        least_window_s=window,
        least_updates=updates,
        least_windows=windows,
        target=parse_target(target),
        budget_s=budget,
        timeout_s=timeout,
        check=not no_check,
        counters=counters,
    )


def parse_device(text: str) -> int | str:
    """Read ``0`` or ``GPU-…``.

    Raises:
        InputError: ``EATSS-E049``.
    """
    word = text.strip()
    if word.isascii() and word.isdigit():
        return int(word)
    if re.fullmatch(r"(GPU|MIG)-[0-9A-Za-z/-]+", word):
        return word
    raise input_error(
        "EATSS-E049",
        f"--device is '{text}'",
        hint="give the card's number as CUDA counts, from 0, or its UUID as nvidia-smi -L lists it",
    )


def parse_target(text: str) -> float:
    """Read ``1%`` or ``0.01``; a fraction.

    Raises:
        InputError: ``EATSS-E048``.
    """
    number = text.strip()
    try:
        share = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        share = 0.0
    if 0 < share < 1:
        return share
    raise input_error(
        "EATSS-E048",
        f"--target is '{text}'",
        hint="write a percentage like 1%, or the same as a fraction: 0.01",
    )


def source_options(
    *,
    gpu: str,
    dtype: DataType | None,
    define: Sequence[str] | None,
    include: Sequence[Path] | None,
    param: Sequence[str] | None,
    function: str | None,
    scop: int | None,
    max_operations: int | None,
    force: bool,
) -> SourceOptions:
    """Return how a C file is read; loads what generates code."""
    from eatss.variants import SourceOptions  # noqa: PLC0415 - folders need no generator

    return SourceOptions(
        gpu=gpu,
        dtype=None if dtype is None else dtype.value,
        defines=tuple(define or ()),
        include_dirs=tuple(include or ()),
        parameters=parse_parameters(param),
        function=function,
        scop=scop,
        max_operations=max_operations,
        force=force,
    )
