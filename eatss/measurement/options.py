"""What the user chooses of measuring.

Variants as users write them: their names, tile sizes, and which others are compared with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import count
from math import inf
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from eatss.base.compilers import nvcc_option
from eatss.base.diagnostics import EatssError, InputError, input_error
from eatss.base.files import is_c_text
from eatss.base.frozen import Names, Numbers, frozen, frozen_part
from eatss.base.options import Words, option, parse_numbers, parse_tiles, shows_types
from eatss.base.shipped import located
from eatss.base.targets import CardNumber
from eatss.program import load_program, program_folder

if TYPE_CHECKING:
    from eatss.frontend.python import SourceLike


CompilerChoice: TypeAlias = Literal["auto", "nvrtc", "nvcc"]

meter_option = partial(
    option,
    "--meter",
    metavar="NAME",
    help="What energy is read from: auto (the best the card has), counter, power, jetson, "
    "none, or a meter that a package adds.",
)

DEVICE_HELP = (
    "Which card: its number as CUDA counts the cards it sees (CUDA_VISIBLE_DEVICES changes that), "
    "or its UUID (nvidia-smi -L)."
)


def named_nvcc(path: str | None) -> str | None:
    """Return the path of the CUDA compiler that a user names, from any folder the same.

    Raises:
        InputError: ``EATSS-V010``, it is none.
    """
    from eatss.base.compilers import find_nvcc  # noqa: PLC0415 - rarely named

    return None if path is None else str(Path(find_nvcc(path).path).absolute())


def checked_device(device: CardNumber, option: str) -> CardNumber:
    """Return a card if it is named as cards can be.

    Raises:
        InputError: ``EATSS-E048``.
    """
    numbered = isinstance(device, int) and not isinstance(device, bool) and device >= 0
    if numbered or re.match("(GPU|MIG)-", str(device)):
        return device
    raise input_error(
        "EATSS-E048",
        f"{option} has {device!r}, which names no card",
        hint="give numbers as CUDA counts from 0, or UUIDs as nvidia-smi -L lists them; of several "
        "cards a list, all or none",
    )


_BELOW = {
    "target": inf,
    "least_window_s": inf,
    "budget_s": inf,
    "timeout_s": inf,
    "warm_up_s": inf,
    "settle_s": inf,
}


def check_numbers(options: MeasureOptions) -> None:
    """Refuse numbers with which measuring would not end, or mean nothing.

    Raises:
        InputError: ``EATSS-E048``.
    """
    checked_device(options.device, "device")
    for name, below in _BELOW.items():
        value = getattr(options, name)
        if not (isinstance(value, int | float) and 0 <= value < below):
            hint = f"give a number from 0 to below {below}"
            raise input_error("EATSS-E048", f"{name} is {value!r}", hint=hint)


def parse_device(text: str, *, option: str = "--device") -> CardNumber:
    """Read ``0`` or ``GPU-…``.

    Raises:
        InputError: ``EATSS-E048``.
    """
    word = text.strip()
    return checked_device(int(word) if word.isdecimal() else word, option)


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


def _cards(named: Sequence[str]) -> tuple[CardNumber, ...] | Literal["all"]:
    """Read the cards that are named: ``0,1``, UUIDs, ``all`` or ``none``.

    Raises:
        InputError: ``EATSS-E048``.
    """
    words = [word for one in named for word in one.split(",")]
    if "all" in words:
        return "all"
    return () if words == ["none"] else tuple(parse_device(one, option="--gpus") for one in words)


@frozen
class MeterOptions:
    """How a program is metered.

    Attributes:
        devices: Cards, by their numbers as CUDA counts, or by their UUIDs; ``"all"`` that CUDA
            sees; ``()`` for none.
        repeat: How often the program is run, one run after the other.
        meter: Which sensor energy is read from, a name of ``eatss.measurement.meters.METERS``.
    """

    devices: Annotated[
        tuple[CardNumber, ...] | Literal["all"],
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
    repeat: Annotated[
        int, option(metavar="N", min=1, help="Run it N times; energy is of all runs together.")
    ] = 1
    meter: Annotated[str, meter_option()] = "auto"


_option = partial(option, panel="Measuring")


@frozen_part
class BenchKeywords:
    """The card that measures, and with what.

    Attributes:
        meter: What energy rests on, a name in :data:`eatss.measurement.meters.METERS`.
        compiler: ``"auto"``, ``"nvrtc"`` or ``"nvcc"``.
        nvcc: Path of an nvcc, by default that of this machine.
        device: The card's number as CUDA counts those it sees, which ``CUDA_VISIBLE_DEVICES``
            changes, or its UUID.
    """

    meter: Annotated[str, meter_option(panel="Measuring")] = "auto"
    compiler: Annotated[
        CompilerChoice,
        _option(help="What compiles the CUDA text; auto: NVRTC where it is there."),
    ] = "auto"
    nvcc: Annotated[str | None, nvcc_option(panel="Measuring", made=named_nvcc)] = None
    device: Annotated[
        CardNumber,
        _option(
            kind=str,
            default="0",
            made=parse_device,
            metavar="N|UUID",
            help=DEVICE_HELP,
        ),
    ] = 0


@frozen_part
class Windows:
    """How long and how often a variant runs while it is measured.

    Attributes:
        least_window_s: Seconds that a window lasts at least.
        spare: Share by which windows are planned longer.
        least_updates: Values of the sensor that a window holds at least.
        least_windows: How many windows are taken at least.
        target: Half the interval of time and of energy over the mean, at which windows end.
        budget_s: Seconds that a variant may take.
        warm_up_s: Seconds of load in which power may settle before the first window; with 0 nobody
            waits for that beyond ``settle_s``.
        settle_s: Seconds of load before every window.
    """

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


@shows_types
@frozen
class MeasureOptions(Windows, BenchKeywords):
    """How to measure.

    A window is a stretch of repeated runs. Windows are repeated until time and energy are known as
    well as ``target`` says, or until ``budget_s`` has been spent.

    Attributes:
        sizes: Values of parameters in the place of the program's defaults.
        seed: Of the random data.
        restoring: ``"auto"``, or ``"between windows"`` to leave out the trial whether repeated runs
            drift; drift seen in a window is noted all the same.
        timeout_s: Seconds that a single run may take.
        check: Whether results are compared with the original and among variants.
        counters: Whether hardware counters are read too, by Nsight Compute.
    """

    sizes: Annotated[
        Mapping[str, int],
        _option(
            "--size",
            kind=Words,
            made=partial(parse_numbers, "--size", "NI=2000,NJ=2000"),
            metavar="NAME=VALUE,...",
            help="Problem sizes instead of the program's own.",
        ),
    ] = field(default_factory=dict)
    seed: Annotated[int, _option(metavar="N", min=0, help="Seed of the random data.")] = 0
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


SELECTED = "selected"
"""The word for the sizes that the model selects."""

_SUFFIXES = (".c", ".h", ".i", ".py")


def is_program(source: SourceLike) -> bool:
    """Tell a folder with a generated program from C or Python: a file, text, or loops.

    Raises:
        InputError: ``EATSS-E045`` there is neither, ``EATSS-V0xx`` the folder holds no program.
    """
    if not isinstance(source, str | PathLike) or is_c_text(source):
        return False
    path = Path(fspath(located(source)))
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError:  # such as a name that is too long
        is_folder = is_file = False
    if is_folder:
        load_program(program_folder(path))
        return True
    if path.suffix.partition(":")[0] in _SUFFIXES or is_file:
        return False
    raise input_error(
        "EATSS-E045",
        f"there is no '{path}'",
        hint="give a C file, or a folder made with: eatss codegen FILE.c --gpu NAME -o DIR",
    )


def folder_variants(folders: Sequence[Path]) -> tuple[Variant, ...]:
    """Return folders with generated programs as variants named after them.

    Raises:
        InputError: ``EATSS-E045`` one is no folder, ``EATSS-V0xx`` one holds no program.
    """
    for folder in folders:
        if not is_program(folder):
            raise input_error(
                "EATSS-E045",
                f"'{folder}' is no folder with a generated program",
                hint="compare one C file under several --tiles, or folders of eatss codegen",
            )
    return tuple(program_variant(folder) for folder in folders)


def program_variant(folder: Path) -> Variant:
    """Return a folder with a generated program as a variant named after it."""
    return Variant(label=folder_label(folder), directory=program_folder(folder))


def rejected_variant(label: str, error: EatssError) -> Variant:
    """Return a variant that could not be generated, with the reason."""
    reason = "; ".join(found.message for found in error.diagnostics)
    return Variant(label=label, directory=None, rejection=reason)


def source_labels(sources: Sequence[Path]) -> Names:
    """Return what several sources, and what is generated from them, are called, each once.

    ``gemm`` and ``gemm-2`` for twice ``gemm``.
    """
    found = []
    for source in sources:
        name = folder_label(source) if source.is_dir() else source.stem
        ways = (f"{name}-{turn}" if turn > 1 else name for turn in count(1))
        found.append(next(way for way in ways if way not in found))
    return tuple(found)


def folder_label(folder: Path) -> str:
    """Return what a folder is called in tables."""
    return folder.resolve().name or str(folder)


def check_labels(labels: Sequence[str]) -> None:
    """Refuse two variants of one name.

    Raises:
        InputError: ``EATSS-E043``.
    """
    for label in labels:
        if labels.count(label) > 1:
            raise input_error(
                "EATSS-E043",
                f"two variants are called '{label}'",
                hint="leave one of them out, or give folders of different names",
            )


def baseline_label(baseline: str | None, labels: Sequence[str]) -> str:
    """Return the label of the baseline, spelled as in ``labels``.

    Raises:
        InputError: ``EATSS-E042``: there is no such variant.
    """
    if baseline is None:
        others = [label for label in labels if label != SELECTED]
        if SELECTED in labels:
            return others[0] if others else SELECTED
        return labels[-1]
    wanted = "".join(baseline.split())
    for label in (baseline, wanted, folder_label(Path(wanted)) if wanted else ""):
        if label in labels:
            return label
    raise input_error(
        "EATSS-E042",
        f"the baseline '{baseline}' is none of the variants",
        hint=f"the variants: {', '.join(labels)}",
    )


Tiles: TypeAlias = dict[str, int | Mapping[str, int]]
"""Sizes by loop, or by kernel and loop."""


@frozen
class TileChoice:
    """One choice of tile sizes; with neither ``positions`` nor ``names`` the selected ones.

    ``positions`` are sizes of each kernel's loops in their order, as for ``ppcg --sizes``: a
    kernel with fewer loops takes the first ones, and one size alone is for every loop.
    ``names`` are sizes by loop, or by kernel and loop.
    """

    label: str
    positions: Numbers = ()
    names: Tiles = field(default_factory=dict)

    def tiles(self, kernels: Sequence[tuple[str, Sequence[str]]]) -> Tiles:
        """Return the sizes of kernels, given as pairs of a name and the loops in order.

        Raises:
            InputError: ``EATSS-E040``: a kernel has more loops than there are sizes.
        """
        if not self.positions:
            return dict(self.names)
        found: Tiles = {}
        for kernel, loops in kernels:
            given = self.positions * len(loops) if len(self.positions) == 1 else self.positions
            if len(given) < len(loops):
                raise input_error(
                    "EATSS-E040",
                    f"{kernel} has the loops {', '.join(loops)}, and --tiles {self.label} has "
                    "fewer sizes",
                    hint=f"give {len(loops)} sizes, one alone for all loops, or sizes by loop like "
                    f"{loops[0]}=32",
                )
            if loops:
                found[kernel] = dict(zip(loops, given, strict=False))
        return found


def parse_tile_choice(text: str) -> TileChoice:
    """Read a value of ``--tiles``.

    Raises:
        InputError: ``EATSS-E040``.
    """
    label = "".join(text.split())
    if label == SELECTED:
        return TileChoice(label=label)
    if re.fullmatch(r"\d{1,18}(,\d{1,18})*", label):
        return TileChoice(label=label, positions=tuple(map(int, label.split(","))))
    try:
        names = parse_tiles(re.split(r",(?=k\w*:)", label))
    except InputError:
        raise input_error(
            "EATSS-E040",
            f"--tiles is '{text}'",
            hint="write selected, sizes in the order of the loops (32,64,16; 32 alone for all)"
            ", or sizes by loop (i=32,j=64; k0:i=32,k1:i=64)",
        ) from None
    return TileChoice(label=label, names=names)


def parse_tile_choices(texts: Sequence[str]) -> tuple[TileChoice, ...]:
    """Read all values of ``--tiles``.

    Raises:
        InputError: ``EATSS-E040`` one is malformed, ``EATSS-E043`` one is there twice.
    """
    choices = tuple(parse_tile_choice(text) for text in texts)
    check_labels([choice.label for choice in choices])
    return choices
