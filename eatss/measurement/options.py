"""What the user chooses of measuring."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.options import Words, option, shows_types

CompilerChoice: TypeAlias = Literal["auto", "nvrtc", "nvcc"]

nvcc_option = partial(
    option, "--nvcc", metavar="PATH", help="The CUDA compiler; default: nvcc on the path."
)
compiler_option = partial(
    option, "--compiler", help="What compiles the CUDA text; auto: NVRTC where it is there."
)
meter_option = partial(
    option,
    "--meter",
    metavar="NAME",
    complete="eatss.meters",
    help="What energy is read from: auto (the best the card has), counter, power, nvidia-smi, "
    "jetson, none, or a meter that a package adds.",
)
DEVICE_HELP = (
    "Which card: its number as CUDA counts the cards it sees (CUDA_VISIBLE_DEVICES changes that), "
    "or its UUID (nvidia-smi -L)."
)


def named_nvcc(path: str | None) -> str | None:
    """Return the path of the CUDA compiler that a user names, from any folder the same.

    Raises:
        InputError: ``EATSS-V040``, it is none.
    """
    from eatss.base.compilers import find_nvcc  # noqa: PLC0415 - rarely named

    return None if path is None else str(Path(find_nvcc(path).path).absolute())


def parse_device(text: str, *, option: str = "--device") -> int | str:
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
        f"{option} is '{text}'",
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


def _sizes(words: Sequence[str]) -> dict[str, int]:
    """Read ``NI=2000,NJ=2000``.

    Raises:
        InputError: ``EATSS-V013``.
    """
    from eatss.verify.plain_text import parse_sizes  # noqa: PLC0415 - few measurements name sizes

    return {name: value for part in parse_sizes(words) or () for name, value in part.items()}


def _meter(name: str) -> str:
    """Return the name of a meter.

    Raises:
        InputError: ``EATSS-X005``, there is none of this name.
    """
    from eatss.measurement.meters import METERS  # noqa: PLC0415 - keeps --help fast

    METERS.get(name)
    return name


def _cards(named: Sequence[str]) -> tuple[int | str, ...] | Literal["all"]:
    """Read the cards that are named: ``0,1``, UUIDs, ``all`` or ``none``.

    Raises:
        InputError: ``EATSS-E049``.
    """
    words = [word for one in named for word in one.split(",")]
    if "all" in words:
        return "all"
    return () if words == ["none"] else tuple(parse_device(one, option="--gpus") for one in words)


_LEAST_S: Mapping[str, float] = {"--idle": 0.0, "--interval": 0.001}
_MOST_S = 3600.0
"""Bounds of the times of :class:`MeterOptions`."""


@frozen
class MeterOptions:
    """How a program is metered.

    Attributes:
        devices: Cards, by their numbers as CUDA counts, or by their UUIDs; ``"all"`` that CUDA
            sees; ``()`` for none.
        cpu: Whether to meter the CPU packages too.
        repeat: How often the program is run, one run after the other.
        meter: Which sensor energy is read from, a name of ``eatss.measurement.meters.METERS``.
        interval_s: Seconds between two looks at a card's power.
        idle_s: Seconds recorded before the program begins: by default one, which is what most
            drivers average power over.

    Raises:
        InputError: ``EATSS-E092``: a time is not one, or is more than an hour.
    """

    devices: Annotated[
        tuple[int | str, ...] | Literal["all"],
        option(
            "--gpus --device",
            kind=Words,
            default=None,
            made=_cards,
            metavar="N,…|UUID|all|none",
            help="Which cards: numbers as CUDA counts the cards it sees (CUDA_VISIBLE_DEVICES "
            "changes that), or UUIDs (nvidia-smi -L); may be given several times. Default: 0.",
        ),
    ] = (0,)
    cpu: Annotated[
        bool, option("--cpu", help="Meter the CPU packages too, where RAPL may be read.")
    ] = False
    repeat: Annotated[
        int, option(metavar="N", min=1, help="Run it N times; energy is of all runs together.")
    ] = 1
    meter: Annotated[str, meter_option()] = "auto"
    interval_s: Annotated[
        float,
        option(
            "--interval",
            metavar="SECONDS",
            min=_LEAST_S["--interval"],
            help="Time between two looks at the power.",
        ),
    ] = 0.005
    idle_s: Annotated[
        float,
        option(
            "--idle", metavar="SECONDS", min=0.0, help="Time recorded before the program begins."
        ),
    ] = 1.0

    def __post_init__(self) -> None:
        for word, value_s in (("--idle", self.idle_s), ("--interval", self.interval_s)):
            if not _LEAST_S[word] <= value_s <= _MOST_S:
                raise input_error(
                    "EATSS-E092",
                    f"{word} is {value_s:g} seconds",
                    hint=f"give it a time from {_LEAST_S[word]:g} to {_MOST_S:g} seconds",
                )


_option = partial(option, panel="Measuring")


@shows_types
@frozen
class MeasureOptions:
    """How to measure.

    A window is a stretch of repeated runs. Windows are repeated until time and energy are known as
    well as ``target`` says, or until ``budget_s`` has been spent.

    Attributes:
        sizes: Values of parameters in the place of the program's defaults.
        seed: Of the random data.
        meter: What energy rests on, a name in :data:`eatss.measurement.meters.METERS`.
        compiler: ``"auto"``, ``"nvrtc"`` or ``"nvcc"``.
        device: The card's number as CUDA counts those it sees, which ``CUDA_VISIBLE_DEVICES``
            changes, or its UUID.
        least_window_s: Seconds that a window lasts at least.
        spare: Share by which windows are planned longer.
        least_updates: Values of the sensor that a window holds at least.
        least_windows: How many windows are taken at least.
        target: Half the interval of time and of energy over the mean, at which windows end.
        confidence: Of that interval, 0.95 for 95 %.
        budget_s: Seconds that a variant may take.
        warm_up_s: Seconds of load in which power may settle before the first window; with 0 nobody
            waits for that beyond ``settle_s``.
        settle_s: Seconds of load before every window.
        restoring: ``"auto"``, or ``"between windows"`` to leave out the trial whether repeated runs
            drift; drift seen in a window is noted all the same.
        timeout_s: Seconds that a single run may take.
        check: Whether results are compared with the original and among variants.
        counters: Whether hardware counters are read too, by Nsight Compute.
        nvcc: Path of an nvcc, by default that of this machine.
    """

    sizes: Annotated[
        Mapping[str, int],
        _option(
            "--size",
            kind=Words,
            made=_sizes,
            metavar="NAME=VALUE,...",
            help="Problem sizes instead of the program's own.",
        ),
    ] = field(default_factory=dict)
    seed: Annotated[int, _option(metavar="N", min=0, help="Seed of the random data.")] = 0
    meter: Annotated[str, meter_option(panel="Measuring", made=_meter)] = "auto"
    compiler: Annotated[CompilerChoice, compiler_option(panel="Measuring")] = "auto"
    nvcc: Annotated[str | None, nvcc_option(panel="Measuring", made=named_nvcc)] = None
    device: Annotated[
        int | str,
        _option(kind=str, default="0", made=parse_device, metavar="N|UUID", help=DEVICE_HELP),
    ] = 0
    least_window_s: Annotated[
        float,
        _option(
            "--window",
            metavar="SECONDS",
            min=0.001,
            help="Shortest stretch of repeated runs that energy is read over.",
        ),
    ] = 2.0
    spare: float = 0.0
    least_updates: Annotated[
        int,
        _option("--updates", metavar="N", min=2, help="Fewest values of the sensor in a window."),
    ] = 20
    least_windows: Annotated[
        int, _option("--windows", metavar="N", min=1, help="Fewest windows.")
    ] = 3
    target: Annotated[
        float,
        _option(
            kind=str,
            default="1%",
            made=parse_target,
            metavar="PERCENT",
            help="Measure until the 95 % interval is this narrow (half of it over the mean), ...",
        ),
    ] = 0.01
    confidence: float = 0.95
    budget_s: Annotated[
        float,
        _option(
            "--budget",
            metavar="SECONDS",
            min=0.0,
            help="... or until so much time went into a variant.",
        ),
    ] = 60.0
    warm_up_s: float = 1.0
    settle_s: float = 0.5
    restoring: Literal["auto", "between windows"] = "auto"
    timeout_s: Annotated[
        float, _option("--timeout", metavar="SECONDS", min=0.01, help="Limit of one run.")
    ] = 60.0
    check: Annotated[
        bool,
        _option(
            "--no-check",
            default=False,
            made=lambda off: not off,
            help="Do not compare results with the original C first.",
        ),
    ] = True
    counters: Annotated[
        bool,
        _option(
            "--counters",
            help="Add DRAM bytes, L2 sectors, occupancy and instructions (needs Nsight Compute).",
        ),
    ] = False


@frozen
class Variant:
    """A generated program to measure: the folder it is in and the label it has in tables.

    A variant that could not be generated has no folder but a ``rejection``, the sentence why;
    it is reported as rejected by the model.
    """

    label: str
    directory: Path | None
    rejection: str = ""
