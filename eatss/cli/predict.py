"""``eatss predict`` and ``eatss inspect``: what is expected of sizes, and what is seen in C."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from eatss.base.options import Asked, option
from eatss.base.streams import echo
from eatss.base.targets import TARGETS, TargetName
from eatss.cli.options import (
    Card,
    SourceFile,
    TableOrJson,
    show,
)
from eatss.cli.talk import given_card, working
from eatss.frontend.options import PpcgReadingKeywords
from eatss.lower.recipe import SizeKeywords

EXAMPLES = {
    "predict": """
Examples:

    eatss predict @gemm --gpu h200

    eatss predict @gemm --gpu h200 --tile i=64,j=64,k=16 --block 16,32

    eatss predict @gemm -g h200 --target cuda --tile i=64,j=64 --place A=l1

    eatss predict @2mm -g h200 --tile k1:i=16 --max-shared-memory 49152
""",
    "inspect": """
Examples:

    eatss inspect @gemm

    eatss inspect @trmm --target cuda

    eatss inspect gemm.c -D NI=4000
""",
}

_of_ppcg = partial(option, panel="PPCG")


def predict(
    *,
    file: SourceFile,
    gpu: Card,
    target: Annotated[
        TargetName, option(help="Whose code: PPCG's, or that of eatss codegen (cuda).")
    ] = "ppcg",
    sizes: Asked[SizeKeywords],
    max_shared_memory: Annotated[
        int | None,
        _of_ppcg(metavar="BYTES", min=0, help="As PPCG's option of that name; 8192 by default."),
    ] = None,
    unroll_gpu_tile: Annotated[
        bool, _of_ppcg("--unroll-gpu-tile", help="As PPCG's option of that name.")
    ] = False,
    over_clock: Annotated[
        bool, option("--over-clock", help="Predict these sizes at lower clocks of the SMs, too.")
    ] = False,
    output: Annotated[TableOrJson, option("--format -f", help="What to print.")] = "table",
    reading: Asked[PpcgReadingKeywords],
) -> None:
    """Predict time and energy at sizes of your own. Needs no GPU.

    What is not given is PPCG's default, or with --target cuda what is selected for least energy.
    """
    import eatss  # noqa: PLC0415 - keeps --help fast

    profile = given_card(gpu)
    with working(f"predicting for {profile.title}"):
        found = eatss.predict(
            file,
            gpu=profile,
            target=target,
            max_shared_memory=max_shared_memory,
            unroll_gpu_tile=unroll_gpu_tile,
            over_clock=over_clock,
            **sizes.fields,
            **reading.fields,
        )
    show(found, output)


def inspect(
    *,
    file: SourceFile,
    target: Annotated[
        TargetName, option(help="Whose kernels: PPCG's, or those of eatss codegen (cuda).")
    ] = "ppcg",
    reading: Asked[PpcgReadingKeywords],
) -> None:
    """Show domains, accesses, dependences, schedule, kernels and classes of a C file."""
    import eatss  # noqa: PLC0415 - keeps --help fast
    from eatss.report.inspection import render_inspection  # noqa: PLC0415

    with working(f"analysing {file}"):
        found = eatss.inspect(file, cut=TARGETS[target].cut, **reading.fields)
    echo(render_inspection(found), nl=False)
