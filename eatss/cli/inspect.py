"""``eatss inspect``: what eatss sees in a C file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

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
    VolumeChoice,
    parse_parameters,
    report_warnings,
    working,
)

EXAMPLES = """
Examples:

    eatss inspect kernels/gemm.c

    eatss inspect gemm.c -D NI=4000 --format json
"""


class InspectFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"


def inspect(
    file: SourceFile,
    output: Annotated[
        InspectFormat,
        typer.Option("--format", "-f", help="What to print.", rich_help_panel="Output"),
    ] = InspectFormat.TABLE,
    volume: Annotated[
        VolumeChoice, typer.Option(help="How a tile's elements are counted.")
    ] = VolumeChoice.FOOTPRINT,
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
    """Show domains, accesses, dependences, schedule, kernels and classes of a C file."""
    from eatss import api  # noqa: PLC0415 - keeps --help fast
    from eatss.report.inspection import render_inspection  # noqa: PLC0415

    with working(f"analysing {file}"):
        program = api.inspect(
            file,
            dtype=None if dtype is None else dtype.value,
            volume=volume.value,
            defines=tuple(define or ()),
            include_dirs=tuple(include or ()),
            parameters=parse_parameters(param),
            function=function,
            scop=scop,
            max_operations=max_operations,
            ppcg_schedule=ppcg_schedule,
        )
    report_warnings(program.warnings, diagnostics)
    typer.echo(render_inspection(program, output.value), nl=False)
