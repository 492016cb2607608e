"""``eatss predict``: what the model expects of sizes of one's own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from eatss.cli.cards import given_card
from eatss.cli.messages import read, report_warnings
from eatss.cli.option_groups import takes
from eatss.cli.options import (
    Card,
    Debug,
    Diagnostics,
    SourceFile,
    TableOrJson,
    TargetChoice,
    ppcg_reading_options,
    size_options,
)
from eatss.cli.progress import working

if TYPE_CHECKING:
    from eatss.frontend.options import PpcgReadingKeywords
    from eatss.recipe.requests import CodeRequest

EXAMPLES = """
Examples:

    eatss predict @gemm --gpu h200

    eatss predict @gemm --gpu h200 --tile i=64,j=64,k=16 --block 16,32

    eatss predict @gemm -g h200 --target cuda --tile i=64,j=64 --place A=l1

    eatss predict @2mm -g h200 --tile k1:i=16 --max-shared-memory 49152
"""

_of_ppcg = partial(typer.Option, rich_help_panel="PPCG")


@takes(sizes=size_options, reading=ppcg_reading_options)
def predict(
    *,
    file: SourceFile,
    gpu: Card,
    target: Annotated[
        TargetChoice, typer.Option(help="Whose code: PPCG's, or that of eatss codegen (cuda).")
    ] = "ppcg",
    sizes: CodeRequest,
    max_shared_memory: Annotated[
        int | None,
        _of_ppcg(metavar="BYTES", min=0, help="As PPCG's option of that name; 8192 by default."),
    ] = None,
    unroll_gpu_tile: Annotated[
        bool, _of_ppcg("--unroll-gpu-tile", help="As PPCG's option of that name.")
    ] = False,
    output: Annotated[TableOrJson, typer.Option("--format", "-f", help="What to print.")] = "table",
    reading: PpcgReadingKeywords,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Predict time and energy at sizes of your own. Needs no GPU.

    What is not given is PPCG's default, or with --target cuda what is selected for least energy.
    """
    from eatss.frontend.options import Reading  # noqa: PLC0415 - keeps --help fast
    from eatss.model.options import check_target  # noqa: PLC0415
    from eatss.report.expectation import render_expectation  # noqa: PLC0415
    from eatss.session.analysis import cut_for  # noqa: PLC0415
    from eatss.session.session import Session  # noqa: PLC0415

    check_target(
        target,
        ppcg={
            "--max-shared-memory": max_shared_memory is not None,
            "--unroll-gpu-tile": unroll_gpu_tile,
            "--ppcg-schedule": reading["ppcg_schedule"] is not None,
        },
        cuda={
            "--place": bool(sizes.placements),
            "--recompute": reading["recompute"] != "auto",
        },
    )
    profile = given_card(gpu, diagnostics)
    session = Session(file, Reading(**reading), cut=cut_for(target))
    read(session, diagnostics)
    with working(f"predicting for {profile.title}"):
        found = session.predict(
            profile, sizes, max_shared_memory=max_shared_memory, unroll_gpu_tile=unroll_gpu_tile
        )
    report_warnings(tuple(w for w in found.warnings if w not in session.warnings), diagnostics)
    typer.echo(render_expectation(found, output), nl=False)
