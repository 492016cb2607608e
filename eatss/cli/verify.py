"""``eatss verify``: generated programs in, whether they compute what the original does out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from eatss.base.diagnostics import EatssError
from eatss.base.options import Words, argument, option
from eatss.base.text import equations
from eatss.cli.options import Format, Nvcc, show
from eatss.cli.talk import report_error, working
from eatss.measurement.options import named_nvcc

if TYPE_CHECKING:
    from eatss.verify.result import Progress

EXAMPLES = {
    "verify": """
Examples:

    eatss verify build/gemm

    eatss verify build/gemm build/lu --device gpu

    eatss verify build/gemm --size NI=37,NJ=100,NK=5

    eatss verify build/gemm --device gpu --nvcc /opt/cuda-12.8/bin/nvcc

    eatss verify build/gemm --format json
"""
}


def verify(
    directories: Annotated[
        list[Path], argument(metavar="DIR", help="Folders that eatss codegen wrote.")
    ],
    device: Annotated[
        Literal["auto", "cpu", "gpu"],
        option(help="Where to run; auto: a GPU if there is one."),
    ] = "auto",
    size: Annotated[
        Words,
        option(
            "--size",
            metavar="NAME=VALUE,...",
            help="Run at these sizes only; may be given several times.",
        ),
    ] = None,
    seed: Annotated[int, option(metavar="N", min=0, help="Seed of the random data.")] = 0,
    timeout: Annotated[
        float,
        option(
            metavar="SECONDS",
            min=0.01,
            help="Limit of one run at one choice of sizes; five times that where sizes are fixed.",
        ),
    ] = 60.0,
    cc: Annotated[str, option(metavar="PATH", help="GCC, which compiles the original.")] = "gcc",
    cxx: Annotated[
        str, option(metavar="PATH", help="GCC's C++ compiler, for the generated code.")
    ] = "g++",
    nvcc: Nvcc = None,
    output: Format = "table",
) -> None:
    """Run generated programs against the original C and compare the results.

    Exits with 0 if all agree, with 1 if one does not, with 2 if a folder is refused, and with 3
    if some code of the kernels never ran.
    """
    from eatss.verify import run  # noqa: PLC0415 - keeps --help fast
    from eatss.verify.result import (  # noqa: PLC0415
        Compilers,
        Verifications,
        exit_code,
        refused,
    )
    from eatss.verify.sizes import parse_sizes  # noqa: PLC0415

    sizes = parse_sizes(size or ())
    compilers = Compilers(
        cc=cc,
        cxx=cxx,
        nvcc=named_nvcc(nvcc if device != "cpu" else None) or "nvcc",
    )
    found = []
    errors = []
    for directory in directories:
        with working(f"verifying {directory}") as step:
            try:
                one = run.verify(
                    directory,
                    device=device,
                    sizes=sizes,
                    seed=seed,
                    timeout_s=timeout,
                    compilers=compilers,
                    progress=lambda now: step.at(doing(now), now.done, now.total),
                )
            except EatssError as error:
                errors.append(error)
                one = refused(directory, "cpu" if device == "auto" else device, error)
        found.append(one)
    shown = [one for one in found if output == "json" or one.status != "refused"]
    if shown:  # of refused ones the error says all
        show(Verifications(verifications=tuple(shown)), output)
    for each in errors:
        report_error(each)
    if code := exit_code(found, errors):
        raise SystemExit(code)


def doing(progress: Progress) -> str:
    """Return what runs now, ``gemm NI=37: compile``."""
    at = equations(progress.sizes, ",")
    where = f"{progress.launcher} {at}" if at else progress.launcher
    return f"{where}: {progress.stage}"
