"""``eatss.measure`` and ``eatss.compare``: a C file or folders in, ``Measurement``s out.

For folders of generated programs nothing is imported that generates them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.diagnostics import input_error
from eatss.files import folder_named
from eatss.measurement.comparable import check_comparable
from eatss.measurement.comparison import Comparison
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import load_program
from eatss.tile_choice import SELECTED, check_labels, parse_tile_choices

if TYPE_CHECKING:
    from eatss.measurement.card import Card
    from eatss.measurement.progress import Progress
    from eatss.variants import SourceOptions

_C_SUFFIXES = (".c", ".h", ".i")

DEFAULT_TILES = (SELECTED, "32")
"""What a C file is compared in unless told otherwise: selected sizes, and 32 for every loop."""


def measure(
    source: str | PathLike[str],
    *,
    options: MeasureOptions | None = None,
    reading: SourceOptions | None = None,
    output: str | PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    card: str | Card | None = None,
) -> Measurement:
    """Measure time and energy of a generated program, or of one generated from a C file.

    Args:
        source: Folder of ``eatss codegen``, path of a C file, or C source text (a ``str`` with a
            line break). A folder is measured as it is.
        options: How to measure.
        reading: How C is read, and the card that is selected for; by default the one in this
            machine.
        output: A folder to keep the program that is generated in.
        progress: Is called with what runs now and what is left.
        card: Stands in for the card of this machine: a card, or the import path
            ``MODULE:NAME`` of what makes one of the device's number and the compiler.

    Returns:
        What was measured. A program that fails is a ``Measurement`` with its status and reason.

    Raises:
        InputError: the source, the folder or an option is wrong, or there is no card.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    chosen = options or MeasureOptions()
    if is_program(source):
        refuse_output(output)
        variants = (program_variant(Path(fspath(source))),)
        return _only(measured(variants, chosen, progress=progress, card=card))
    from eatss.variants import generate_one  # noqa: PLC0415 - folders need no generator

    with keeping(output) as folder:
        variant, _ = generate_one(source, reading, folder, device=chosen.device)
        return _only(measured((variant,), chosen, progress=progress, card=card))


def compare(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    tiles: Sequence[str] = DEFAULT_TILES,
    baseline: str | None = None,
    options: MeasureOptions | None = None,
    reading: SourceOptions | None = None,
    output: str | PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    card: str | Card | None = None,
) -> Comparison:
    """Compare variants of one program in one run, by turns, so that drift hits all alike.

    Args:
        source: Path of a C file or C source text, or several folders of ``eatss codegen``.
        tiles: The variants of a C file: ``"selected"``, sizes in the order of the loops
            (``"32,64,16"``, ``"32"`` for all), or by loop (``"i=32,j=64"``, ``"k0:i=32"``). Not
            for folders, which are the variants themselves.
        baseline: The variant others are compared with, an element of ``tiles`` or the name of a
            folder; by default the first that is not ``"selected"``, of folders the last.
        options: How to measure.
        reading: How C is read, and the card that is selected for.
        output: A folder to keep the programs in, each in one of its own.
        progress: Is called with what runs now and what is left.
        card: Stands in for the card of this machine: a card, or the import path
            ``MODULE:NAME`` of what makes one of the device's number and the compiler.

    Returns:
        The comparison. After Ctrl-C, of the variants that were measured until then, if the baseline
        is among them.

    Raises:
        InputError: the source, a folder or an option is wrong, the folders are of different
            programs, types, sources or sizes (``EATSS-E079``), or there is no card.
        Interrupted: Ctrl-C came before the baseline was measured; its ``measurements`` are what
            is there.
        KeyboardInterrupt: Ctrl-C came before anything was measured.
    """
    from eatss.measurement.compare_variants import compare as beside  # noqa: PLC0415 - needs SciPy

    chosen = options or MeasureOptions()
    if not isinstance(source, str | PathLike):
        variants = folder_variants([Path(fspath(folder)) for folder in source])
        refuse_output(output)
        label = baseline_label(baseline, [variant.label for variant in variants])
        check_comparable(variants, chosen)
        found = measured(variants, chosen, progress=progress, card=card)
        return beside(_with_baseline(found, label), label)
    choices = parse_tile_choices(tiles)
    label = baseline_label(baseline, [choice.label for choice in choices])
    from eatss.variants import generate_variants  # noqa: PLC0415 - folders need no generator

    with keeping(output) as folder:
        made = generate_variants(source, choices, reading, folder, device=chosen.device)
        check_comparable(made.variants, chosen)
        found = measured(made.variants, chosen, progress=progress, card=card)
        return beside(_with_baseline(found, label), label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measurements of variants; ``interrupted`` says that Ctrl-C kept them from being all."""

    measurements: tuple[Measurement, ...]
    interrupted: bool


def measured(
    variants: Sequence[Variant],
    options: MeasureOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    card: str | Card | None = None,
) -> Measured:
    """Measure variants of one program, with hardware counters where they are asked for.

    Raises:
        InputError: as :func:`measure`; ``EATSS-E050``: counters are asked for and there is no
            Nsight Compute.
        KeyboardInterrupt: the user interrupted before anything was measured.
    """
    from eatss.measurement.api import measure as run  # noqa: PLC0415 - needs SciPy

    if not options.counters:
        return _measured(run(variants, options, progress=progress, card=card), variants)
    from eatss.measurement.counters import find_ncu, with_counters, without  # noqa: PLC0415

    ncu = find_ncu()
    found = _measured(run(variants, options, progress=progress, card=card), variants)
    folders = {variant.label: variant.directory for variant in variants}
    interrupted = found.interrupted
    counted: list[Measurement] = []
    for one in found.measurements:
        if not interrupted:
            try:
                counted.append(with_counters(one, folders[one.variant], options, ncu=ncu))
                continue
            except KeyboardInterrupt:
                interrupted = True
        counted.append(without(one, "interrupted before they were read"))
    return Measured(measurements=tuple(counted), interrupted=interrupted)


def _measured(found: tuple[Measurement, ...], variants: Sequence[Variant]) -> Measured:
    cut_short = any(one.method.ended == "interrupted" for one in found)
    return Measured(measurements=found, interrupted=cut_short or len(found) < len(variants))


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came before there was a result; ``measurements`` are what was measured until then."""

    def __init__(self, measurements: tuple[Measurement, ...]) -> None:
        super().__init__("interrupted before the baseline was measured")
        self.measurements = measurements


def _with_baseline(found: Measured, baseline: str) -> tuple[Measurement, ...]:
    """Return what was measured.

    Raises:
        Interrupted: the baseline is not among it, since the user interrupted.
    """
    if found.interrupted and baseline not in [one.variant for one in found.measurements]:
        raise Interrupted(found.measurements)
    return found.measurements


def _only(found: Measured) -> Measurement:
    return found.measurements[0]


def is_program(source: str | PathLike[str]) -> bool:
    """Tell a folder with a generated program from C, a file or text.

    Raises:
        InputError: ``EATSS-E051`` there is neither, ``EATSS-V0xx`` the folder holds no program.
    """
    if isinstance(source, str) and "\n" in source:
        return False
    path = Path(fspath(source))
    if path.is_dir():
        load_program(path)
        return True
    if path.suffix in _C_SUFFIXES or path.is_file():
        return False
    raise input_error(
        "EATSS-E051",
        f"there is no '{path}'",
        hint="give a C file, or a folder made with: eatss codegen FILE.c --gpu NAME -o DIR",
    )


def folder_variants(folders: Sequence[Path]) -> tuple[Variant, ...]:
    """Return folders with generated programs as variants named after them.

    Raises:
        InputError: ``EATSS-E043`` two have one name, ``EATSS-E045`` one is no folder,
            ``EATSS-V0xx`` one holds no program.
    """
    for folder in folders:
        if not is_program(folder):
            raise input_error(
                "EATSS-E045",
                f"'{folder}' is no folder with a generated program",
                hint="compare one C file under several --tiles, or folders of eatss codegen",
            )
    labels = [folder_label(folder) for folder in folders]
    check_labels(labels)
    return tuple(program_variant(folder) for folder in folders)


def program_variant(folder: Path) -> Variant:
    """Return a folder with a generated program as a variant named after it."""
    return Variant(label=folder_label(folder), directory=folder)


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of which no two are equal: ``gemm`` and ``gemm-2`` for twice ``gemm``."""
    found: list[str] = []
    for name in names:
        ways = (name if turn == 1 else f"{name}-{turn}" for turn in count(1))
        found.append(
            next(way for way in ways if way not in found and (way == name or way not in names))
        )
    return tuple(found)


def source_labels(sources: Sequence[Path]) -> tuple[str, ...]:
    """Return what several sources, and what is generated from them, are called."""
    return numbered(
        [folder_label(source) if source.is_dir() else source.stem for source in sources]
    )


def folder_label(folder: Path) -> str:
    """Return what a folder is called in tables."""
    return folder.resolve().name or str(folder)


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


def refuse_output(output: object) -> None:
    """Refuse a folder to keep programs in where none is generated.

    Raises:
        InputError: ``EATSS-E047``.
    """
    if output is not None:
        raise input_error(
            "EATSS-E047",
            "nothing is generated that could be kept in the folder of --output",
            hint="leave it out; to keep the results, redirect: --format json > FILE",
        )


@contextmanager
def keeping(output: str | PathLike[str] | None) -> Iterator[Path]:
    """Yield the folder to generate into: the one given, or one that goes again."""
    if output is not None:
        yield folder_named(output)
        return
    with tempfile.TemporaryDirectory(prefix="eatss-measure-") as folder:
        yield Path(folder)
