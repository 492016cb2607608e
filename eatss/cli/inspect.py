"""``eatss inspect``: what eatss sees in a C file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eatss.cli.messages import read
from eatss.cli.option_groups import takes
from eatss.cli.options import (
    Debug,
    Diagnostics,
    Format,
    SourceFile,
    TargetChoice,
    VolumeChoice,
    ppcg_reading_options,
)

if TYPE_CHECKING:
    from eatss.frontend.options import PpcgReadingKeywords

EXAMPLES = """
Examples:

    eatss inspect @gemm

    eatss inspect @trmm --target cuda

    eatss inspect gemm.c -D NI=4000 --format json
"""


@takes(reading=ppcg_reading_options)
def inspect(
    *,
    file: SourceFile,
    output: Format = "table",
    target: Annotated[
        TargetChoice, typer.Option(help="Whose kernels: PPCG's, or those of eatss codegen (cuda).")
    ] = "ppcg",
    volume: Annotated[
        VolumeChoice, typer.Option(help="How a tile's elements are counted.")
    ] = "footprint",
    reading: PpcgReadingKeywords,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Show domains, accesses, dependences, schedule, kernels and classes of a C file."""
    from eatss.frontend.options import Reading  # noqa: PLC0415 - keeps --help fast
    from eatss.model.options import check_target  # noqa: PLC0415
    from eatss.report.inspection import render_inspection  # noqa: PLC0415
    from eatss.session.analysis import cut_for  # noqa: PLC0415 - it needs isl
    from eatss.session.session import Session  # noqa: PLC0415

    check_target(
        target,
        ppcg={"--ppcg-schedule": reading["ppcg_schedule"] is not None},
        cuda={"--recompute": reading["recompute"] != "auto"},
    )
    session = Session(file, Reading(**reading), cut=cut_for(target), volume=volume)
    read(session, diagnostics)
    typer.echo(render_inspection(session.analysed, output), nl=False)
