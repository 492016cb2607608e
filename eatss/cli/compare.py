"""``eatss compare``: variants of one program measured by turns, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eatss.base.diagnostics import EatssError, ExitCode, input_error
from eatss.base.options import Asked, Words, option
from eatss.base.streams import echo
from eatss.cli.measure import (
    MEASURED,
    Generating,
    Results,
    measured_with,
    show,
    stop_interrupted,
)
from eatss.cli.measure import finish as finish_measured
from eatss.cli.options import HiddenCard, of_output, source_argument
from eatss.measurement.options import MeasureOptions

if TYPE_CHECKING:
    from eatss.measurement.api import Measured
    from eatss.measurement.options import Variant

EXAMPLES = {
    "compare": """
Examples:

    eatss compare @gemm --tiles selected --tiles 32,32,32 --baseline 32,32,32

    eatss compare @gemm --tiles selected --tiles i=32,j=64 --plot gemm.png

    eatss compare build/ours build/theirs --baseline theirs --format csv
"""
}

_HARMLESS = (*MEASURED, "rejected by the model")


def compare(
    *,
    sources: Annotated[
        list[Path],
        source_argument(
            metavar="FILE.c|@KERNEL|DIR",
            help="A C file or kernel of eatss, generated once for each --tiles, or folders of "
            "eatss codegen.",
        ),
    ],
    tiles: Annotated[
        Words,
        option(
            metavar="selected|SIZES",
            help="A variant of FILE.c: what eatss selects; sizes in the order of the loops "
            "(32,64,16; a kernel with fewer loops takes the first; 32 is for every loop); or by "
            "loop (i=32,j=64). Default: selected and 32.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        option(
            metavar="VARIANT",
            help="What the others are compared with; default: the first that is not selected, of "
            "folders the last.",
        ),
    ] = None,
    measuring: Asked[MeasureOptions],
    card: HiddenCard = None,
    generated: Asked[Generating],
    output: Results = "table",
    plot: Annotated[
        Path | None,
        of_output(metavar="FILE", help="Draw performance, energy and PPW into a PNG, SVG or PDF."),
    ] = None,
) -> None:
    """Measure variants of one program by turns and compare time, energy and PPW.

    Exits with 0, with 1 if a program failed or none was measured, with 130 after Ctrl-C, which
    keeps what was measured.
    """
    from eatss.measurement.api import check_comparable  # noqa: PLC0415 - keeps --help fast
    from eatss.measurement.options import (  # noqa: PLC0415
        baseline_label,
        folder_variants,
        is_program,
        parse_tile_choices,
    )
    from eatss.measuring import DEFAULT_TILES, keeping, refuse_output  # noqa: PLC0415
    from eatss.report.plots import check_plot_file  # noqa: PLC0415

    options, generating = measuring.made(), generated.made()
    if plot is not None:
        check_plot_file(plot)
    folders = [is_program(source) for source in sources]
    if all(folders):
        if tiles:
            raise input_error(
                "EATSS-E045",
                "--tiles is for C files: the programs in folders have their tile sizes",
                hint="leave --tiles out, or give the C file instead of the folders",
            )
        refuse_output(generating.directory)
        variants: Sequence[Variant] = folder_variants(sources)
        labels = [variant.label for variant in variants]
    else:
        if len(sources) > 1:
            raise input_error(
                "EATSS-E045",
                "several C files, or C files and folders, cannot be compared with each other",
                hint="compare one C file under several --tiles, or folders of eatss codegen",
            )
        choices = parse_tile_choices(tiles or DEFAULT_TILES)
        labels = [choice.label for choice in choices]
    label = baseline_label(baseline, labels)
    with keeping(generating.directory) as folder:
        if not all(folders):
            made = generating.for_card(options.device)
            variants = made.several(sources[0], choices, folder, options.device)
        check_comparable(variants, options)
        finish(measured_with(variants, options, card), label, output, plot)


def finish(found: Measured, baseline: str, output: Results, plot: Path | None) -> None:
    """Print and draw a comparison and end with the exit code it calls for."""
    from eatss.measurement.api import Interrupted, compared  # noqa: PLC0415
    from eatss.report.measurement import render_comparison  # noqa: PLC0415

    try:
        comparison = compared(found, baseline)
    except Interrupted:
        finish_measured(found, output)  # there is nothing to set the others beside
        raise
    except EatssError:
        show(found.measurements, output)  # what was measured is not lost
        raise
    echo(render_comparison(comparison, output), nl=False)
    if plot is not None:
        from eatss.report.plots import plot_comparisons  # noqa: PLC0415 - matplotlib

        plot_comparisons([comparison], plot)
    if found.interrupted:
        stop_interrupted(anything=True)
    statuses = [measurement.status for measurement in found.measurements]
    nothing = not any(status in MEASURED for status in statuses)
    if nothing or any(status not in _HARMLESS for status in statuses):
        raise SystemExit(ExitCode.NO_SOLUTION)
