"""``eatss kernels``: the C kernels that come with eatss, which ``@gemm`` stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eatss.cli import completion
from eatss.cli.options import Debug, Diagnostics, TableOrJson, of_output

EXAMPLES = """
Examples:

    eatss kernels

    eatss kernels gemm > gemm.c

    eatss select @gemm --gpu a100 -D NI=2000
"""


def kernels(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Print this one's C; default: list all.",
            autocompletion=completion.kernels,
        ),
    ] = None,
    output: Annotated[
        TableOrJson | None,
        of_output("--format", "-f", help="What to print; default: the table, of one its C."),
    ] = None,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """List the C kernels that come with eatss, or print one. Each goes as @NAME where a file goes.

    -D sets its sizes, -D SMALL_DATASET all of them (MINI, SMALL, STANDARD, LARGE, EXTRALARGE), and
    -D DATA_TYPE=float single precision.
    """
    from eatss.report.kernels import render_kernels  # noqa: PLC0415 - keeps --help fast
    from eatss.shipped_kernels import (  # noqa: PLC0415
        ShippedKernels,
        shipped_kernel,
        shipped_kernels,
    )

    if name is None:
        typer.echo(render_kernels(shipped_kernels(), output or "table"), nl=False)
        return
    found = shipped_kernel(name)
    if output is None:
        typer.echo(Path(found.file).read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(render_kernels(ShippedKernels(kernels=(found,)), output), nl=False)
