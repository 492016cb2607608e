"""``eatss select``: a C file in, tile sizes out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from eatss.cli.common import (
    Card,
    Debug,
    Defines,
    Diagnostics,
    DiagnosticsFormat,
    Dtype,
    Function,
    IncludeDirs,
    MaxOperations,
    Model,
    Objective,
    Parameters,
    PpcgSchedule,
    ScopIndex,
    SourceFile,
    Split,
    TargetChoice,
    Timeout,
    Uniform,
    Volume,
    WarpFraction,
    parse_parameters,
    report_warnings,
    working,
)
from eatss.diagnostics import input_error
from eatss.files import write_whole

EXAMPLES = """
Examples:

    eatss select kernels/gemm.c --gpu a100

    eatss select gemm.c --gpu h200 -D NI=4000 --dtype float --explain

    eatss select gemm.c --gpu ./mycard.toml --split 0.5 --warp-fraction 0.25 --format json

    ppcg --target=cuda --sizes="$(eatss select gemm.c --gpu a100 --format ppcg)" gemm.c
"""


def select(
    file: SourceFile,
    gpu: Card,
    output: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="What to print: table, json, ppcg, ppcg-args, smt2, or a format of a package.",
            rich_help_panel="Output",
        ),
    ] = "table",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Add the objective, the alignment and why settings of the grid were dropped.",
            rich_help_panel="Output",
        ),
    ] = False,
    target: Annotated[
        TargetChoice,
        typer.Option(
            help="What makes code from the sizes: PPCG, or eatss codegen (cuda).",
            rich_help_panel="Model",
        ),
    ] = TargetChoice.PPCG,
    objective: Objective = None,
    model: Model = None,
    volume: Volume = None,
    split: Split = "auto",
    warp_fraction: WarpFraction = "auto",
    uniform: Uniform = False,
    shared_per_block: Annotated[
        str,
        typer.Option(
            metavar="default|opt-in|BYTES",
            help="Shared memory a block may have.",
            rich_help_panel="Model",
        ),
    ] = "default",
    timeout: Timeout = None,
    dtype: Dtype = None,
    define: Defines = None,
    include: IncludeDirs = None,
    param: Parameters = None,
    function: Function = None,
    scop: ScopIndex = None,
    max_operations: MaxOperations = None,
    ppcg_schedule: PpcgSchedule = None,
    save_ppcg_schedule: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the schedule of these kernels for ppcg --load-schedule=FILE.",
            rich_help_panel="Output",
        ),
    ] = None,
    diagnostics: Diagnostics = DiagnosticsFormat.TEXT,
    debug: Debug = False,
) -> None:
    """Select energy-aware tile sizes for every kernel of a C file."""
    from eatss import api  # noqa: PLC0415 - keeps --help fast
    from eatss.gpu import load_profile  # noqa: PLC0415
    from eatss.model import sizes_alone  # noqa: PLC0415
    from eatss.pipeline import ppcg_schedule_of  # noqa: PLC0415
    from eatss.report.formats import FORMATS, Selected  # noqa: PLC0415

    render = FORMATS.get(output)
    api.check_target(
        target.value,
        ppcg=[
            name
            for name, given in (
                (f"--format {output}", output in ("ppcg", "ppcg-args")),
                ("--ppcg-schedule", ppcg_schedule is not None),
                ("--save-ppcg-schedule", save_ppcg_schedule is not None),
            )
            if given
        ],
        cuda=[],
    )
    profile = load_profile(gpu)
    name, goal = api.resolve_model(
        target=target.value,
        objective=objective,
        model=None if model is None else model.value,
        published=uniform or volume is not None or (split, warp_fraction) != ("auto", "auto"),
    )
    with working(f"analysing {file}"):
        program = api.inspect(
            file,
            dtype=None if dtype is None else dtype.value,
            volume=api.default_volume(name) if volume is None else volume.value,
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
    with working(f"solving for {profile.title}"):
        selection = api.select_analysed(
            program,
            gpu=profile,
            target=target.value,
            objective=goal,
            model=name,
            split=parse_fraction("--split", split),
            warp_fraction=parse_fraction("--warp-fraction", warp_fraction),
            uniform=uniform,
            timeout_s=timeout,
            shared_per_block=parse_shared_limit(shared_per_block),
        )
    if output == "ppcg":
        report_warnings(sizes_alone(selection), diagnostics)
    text = render(Selected(selection=selection, program=program, profile=profile, explain=explain))
    if save_ppcg_schedule is not None:
        write_schedule(save_ppcg_schedule, ppcg_schedule_of(program))
    typer.echo(text, nl=False)


def write_schedule(path: Path, text: str) -> None:
    """Write a schedule file.

    Raises:
        InputError: ``EATSS-C009``, the file cannot be written.
    """
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise input_error(
            "EATSS-C009",
            f"cannot write '{path}': {error.strerror}",
            hint="give a file in a folder that exists and may be written to",
        ) from None


def parse_fraction(option: str, text: str) -> float | Literal["auto"]:
    """Turn the value of ``--split`` or ``--warp-fraction`` into what the API takes."""
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise input_error(
            "EATSS-C002",
            f"{option} is '{text}'",
            hint=f"write {option} auto, or a number from 0 to 1 such as 0.5",
        )
    return value


def parse_shared_limit(text: str) -> int | Literal["default", "opt-in"]:
    """Turn the value of ``--shared-per-block`` into what the API takes."""
    if text == "default":
        return "default"
    if text == "opt-in":
        return "opt-in"
    if not text.isdecimal():
        raise input_error(
            "EATSS-C003",
            f"--shared-per-block is '{text}'",
            hint="write default, opt-in, or a number of bytes such as 49152",
        )
    return int(text)
