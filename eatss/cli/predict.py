"""``eatss predict``: what the model expects of sizes of one's own."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eatss.cli.codegen_options import parse_blocks, parse_tiles
from eatss.cli.common import (
    Debug,
    Defines,
    Diagnostics,
    DiagnosticsFormat,
    Dtype,
    Function,
    IncludeDirs,
    MaxOperations,
    Parameters,
    PpcgSchedule,
    ScopIndex,
    SourceFile,
    parse_parameters,
    report_warnings,
    working,
)

EXAMPLES = """
Examples:

    eatss predict kernels/gemm.c --gpu h200

    eatss predict kernels/gemm.c --gpu h200 --tile i=64,j=64,k=16 --block 16,32

    eatss predict kernels/2mm.c --gpu h200 --tile k1:i=16 --max-shared-memory 49152 --format json
"""


class PredictFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"


def predict(
    file: SourceFile,
    gpu: Annotated[
        str, typer.Option("--gpu", "-g", metavar="CARD", help="Name of a card, or a TOML profile.")
    ],
    tile: Annotated[
        list[str] | None,
        typer.Option(metavar="[KERNEL:]LOOP=SIZE,...", help="Tile sizes; default: PPCG's 32."),
    ] = None,
    block: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[KERNEL:]THREADS,...|LOOP=THREADS,...",
            help="Threads of a block in the order of the loops, the last along x, or by loop; "
            "default: PPCG's.",
        ),
    ] = None,
    max_shared_memory: Annotated[
        int, typer.Option(metavar="BYTES", min=0, help="As PPCG's option of that name.")
    ] = 8192,
    unroll_gpu_tile: Annotated[
        bool, typer.Option("--unroll-gpu-tile", help="As PPCG's option of that name.")
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
    """Predict time and energy of PPCG's code at given sizes. Needs no GPU."""
    from eatss import api  # noqa: PLC0415 - keeps --help fast
    from eatss.gpu import load_profile  # noqa: PLC0415
    from eatss.report.expectation import render_expectation  # noqa: PLC0415

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
        )
    report_warnings(program.warnings, diagnostics)
    expectation = api.expect_analysed(
        program,
        gpu=profile,
        tiles=parse_tiles(tile),
        block=parse_blocks(block),
        max_shared_memory=max_shared_memory,
        unroll_gpu_tile=unroll_gpu_tile,
    )
    typer.echo(render_expectation(expectation, output.value), nl=False)
