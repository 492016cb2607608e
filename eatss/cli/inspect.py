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
    VolumeChoice,
    ppcg_reading_options,
)

if TYPE_CHECKING:
    from eatss.frontend.options import PpcgReadingKeywords

EXAMPLES = """
Examples:

    eatss inspect @gemm

    eatss inspect gemm.c -D NI=4000 --format json
"""


@takes(reading=ppcg_reading_options)
def inspect(
    *,
    file: SourceFile,
    output: Format = "table",
    volume: Annotated[
        VolumeChoice, typer.Option(help="How a tile's elements are counted.")
    ] = "footprint",
    reading: PpcgReadingKeywords,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Show domains, accesses, dependences, schedule, kernels and classes of a C file."""
    from eatss.frontend.options import Reading  # noqa: PLC0415 - keeps --help fast
    from eatss.report.inspection import render_inspection  # noqa: PLC0415
    from eatss.session.session import Session  # noqa: PLC0415

    session = Session(file, Reading(**reading), cut="ppcg", volume=volume)
    read(session, diagnostics)
    typer.echo(render_inspection(session.analysed, output), nl=False)
