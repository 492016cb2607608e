"""``eatss.measure`` and ``eatss.compare``: a C file or folders in, ``Measurement``s out.

For folders of generated programs nothing is imported that generates them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.base.diagnostics import input_error, warn_caller
from eatss.base.files import StrPath, folder_named
from eatss.measurement.api import check_comparable, compared, measured, stack_warnings_of
from eatss.measurement.measurement import Comparison, Measurement
from eatss.measurement.options import (
    SELECTED,
    MeasureOptions,
    baseline_label,
    folder_variants,
    is_program,
    parse_tile_choices,
    program_variant,
)

if TYPE_CHECKING:
    from eatss.frontend.python import SourceLike
    from eatss.measurement.cupy_card import CupyCard
    from eatss.measurement.job import OnProgress
    from eatss.session.variants import SourceOptions

DEFAULT_TILES = (SELECTED, "32")
"""What a C file is compared in unless told otherwise: selected sizes, and 32 for every loop."""


def measure(
    source: SourceLike,
    *,
    options: MeasureOptions | None = None,
    reading: SourceOptions | None = None,
    output: StrPath | None = None,
    progress: OnProgress = None,
    card: str | CupyCard | None = None,
) -> Measurement:
    """Measure time and energy of a generated program, or of one generated from a C file.

    Args:
        source: Folder of ``eatss codegen``, path of a C file, C source text (a ``str`` with
            several lines or the body of a function), or loops in Python: what ``eatss.scop``
            made, ``"FILE.py"`` or ``"FILE.py:NAME"``. A folder is measured as it is.
        options: How to measure.
        reading: How C is read, and the card that is selected for; by default the one in this
            machine.
        output: A folder to keep the program that is generated in.
        progress: Is called with what runs now and what is left.
        card: Stands in for the card of this machine: a card, or the import path
            ``MODULE:NAME`` of what makes one of the device's number and the compiler.

    Returns:
        What was measured. A program that fails is a ``Measurement`` with its status and reason.

    Warns:
        EatssWarning: what is hardly meant so in a source, such as a ``-D`` that changes nothing;
            a kernel whose threads have much stack.

    Raises:
        InputError: the source, the folder or an option is wrong, or there is no card.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    chosen = options or MeasureOptions()
    with keeping(output) as folder:
        if is_program(source):
            assert isinstance(source, str | PathLike)
            refuse_output(output)
            variant = program_variant(Path(fspath(source)))
        else:
            from eatss.session.variants import generate_one  # noqa: PLC0415 - folders need none

            variant, warnings = generate_one(source, reading, folder, device=chosen.device)
            warn_caller(warnings)
        found = measured((variant,), chosen, progress=progress, card=card)
        warn_caller(stack_warnings_of(found.measurements))
        return found.measurements[0]


def compare(
    source: SourceLike | Sequence[StrPath],
    *,
    tiles: Sequence[str] = DEFAULT_TILES,
    baseline: str | None = None,
    options: MeasureOptions | None = None,
    reading: SourceOptions | None = None,
    output: StrPath | None = None,
    progress: OnProgress = None,
    card: str | CupyCard | None = None,
) -> Comparison:
    """Compare variants of one program in one run, by turns, so that drift hits all alike.

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C source text, loops in Python,
            or several folders of ``eatss codegen``.
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

    Warns:
        EatssWarning: what is hardly meant so in a source, such as a ``-D`` that changes nothing;
            a kernel whose threads have much stack.

    Raises:
        InputError: the source, a folder or an option is wrong, the folders are of different
            programs, types, sources or sizes (``EATSS-E079``), or there is no card.
        Interrupted: Ctrl-C came before the baseline was measured; its ``measurements`` are what
            is there.
        KeyboardInterrupt: Ctrl-C came before anything was measured.
    """
    chosen = options or MeasureOptions()
    with keeping(output) as folder:
        if isinstance(source, Sequence) and not isinstance(source, str):
            variants = folder_variants([Path(fspath(one)) for one in source])
            refuse_output(output)
            label = baseline_label(baseline, [variant.label for variant in variants])
        else:
            choices = parse_tile_choices(tiles)
            label = baseline_label(baseline, [choice.label for choice in choices])
            from eatss.session.variants import generate_variants  # noqa: PLC0415 - folders need none

            variants, warnings = generate_variants(
                source, choices, reading, folder, device=chosen.device
            )
            warn_caller(warnings)
        check_comparable(variants, chosen)
        found = measured(variants, chosen, progress=progress, card=card)
        warn_caller(stack_warnings_of(found.measurements))
        return compared(found, label)


def refuse_output(output: object) -> None:
    """Refuse a folder to keep programs in where none is generated.

    Raises:
        InputError: ``EATSS-E048``.
    """
    if output is not None:
        raise input_error(
            "EATSS-E048",
            "nothing is generated that could be kept in the folder of --output",
            hint="leave it out; to keep the results, redirect: --format json > FILE",
        )


@contextmanager
def keeping(output: StrPath | None) -> Iterator[Path]:
    """Yield the folder to generate into: the one given, or one that goes again."""
    if output is not None:
        yield folder_named(output)
        return
    with tempfile.TemporaryDirectory(prefix="eatss-measure-") as folder:
        yield Path(folder)
