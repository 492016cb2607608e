"""``eatss predict``: what the model expects of sizes of one's own."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eatss.cli.codegen_options import parse_blocks, parse_placements, parse_tiles
from eatss.cli.common import (
    Block,
    Card,
    Debug,
    Defines,
    Diagnostics,
    DiagnosticsFormat,
    Dtype,
    Function,
    IncludeDirs,
    MaxOperations,
    Parameters,
    Place,
    PpcgSchedule,
    ScopIndex,
    SourceFile,
    TargetChoice,
    Tile,
    parse_parameters,
    report_warnings,
    working,
)

EXAMPLES = """
Examples:

    eatss predict kernels/gemm.c --gpu h200

    eatss predict kernels/gemm.c --gpu h200 --tile i=64,j=64,k=16 --block 16,32

    eatss predict kernels/gemm.c --gpu h200 --target cuda --tile i=64,j=64,k=16 --place A=l1

    eatss predict kernels/2mm.c --gpu h200 --tile k1:i=16 --max-shared-memory 49152 --format json
"""


class PredictFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"


def predict(
    file: SourceFile,
    gpu: Card,
    target: Annotated[
        TargetChoice,
        typer.Option(help="Whose code: PPCG's, or that of eatss codegen (cuda)."),
    ] = TargetChoice.PPCG,
    tile: Tile = None,
    block: Block = None,
    place: Place = None,
    max_shared_memory: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            min=0,
            help="As PPCG's option of that name; 8192 by default.",
            rich_help_panel="PPCG",
        ),
    ] = None,
    unroll_gpu_tile: Annotated[
        bool,
        typer.Option(
            "--unroll-gpu-tile", help="As PPCG's option of that name.", rich_help_panel="PPCG"
        ),
    ] = False,
    output: Annotated[
        PredictFormat, typer.Option("--format", "-f", help="What to print.")
    ] = PredictFormat.TABLE,
    dtype: Dtype = None,
    define: Defines = None,
    include: IncludeDirs = None,
    param: Parameters = None,
    function: Function = None,
    scop: ScopIndex = None,
    max_operations: MaxOperations = None,
    ppcg_schedule: PpcgSchedule = None,
    diagnostics: Diagnostics = DiagnosticsFormat.TEXT,
    debug: Debug = False,
) -> None:
    """Predict time and energy at sizes of your own. Needs no GPU.

    What is not given is PPCG's default, or with --target cuda what is selected for least energy.
    """
    from eatss import api  # noqa: PLC0415 - keeps --help fast
    from eatss.gpu import load_profile  # noqa: PLC0415
    from eatss.report.expectation import render_expectation  # noqa: PLC0415

    api.check_target(
        target.value,
        ppcg=[
            name
            for name, given in (
                ("--max-shared-memory", max_shared_memory is not None),
                ("--unroll-gpu-tile", unroll_gpu_tile),
                ("--ppcg-schedule", ppcg_schedule is not None),
            )
            if given
        ],
        cuda=["--place"] if place else [],
    )
    profile = load_profile(gpu)
    with working(f"analysing {file}"):
        program = api.inspect(
            file,
            dtype=None if dtype is None else dtype.value,
            defines=tuple(define or ()),
            include_dirs=tuple(include or ()),
            parameters=parse_parameters(param),
            function=function,
            scop=scop,
            max_operations=max_operations,
            ppcg_schedule=ppcg_schedule,
            cut=api.cut_for(target.value),
        )
    report_warnings(program.warnings, diagnostics)
    with working(f"predicting for {profile.title}"):
        expectation = api.expect_analysed(
            program,
            gpu=profile,
            target=target.value,
            tiles=parse_tiles(tile),
            block=parse_blocks(block),
            placements=parse_placements(place),
            max_shared_memory=max_shared_memory,
            unroll_gpu_tile=unroll_gpu_tile,
        )
    report_warnings(
        tuple(w for w in expectation.warnings if w not in program.warnings), diagnostics
    )
    typer.echo(render_expectation(expectation, output.value), nl=False)
