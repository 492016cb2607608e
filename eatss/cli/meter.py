"""``eatss meter``: any program in, its time, energy and power out."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from eatss.cli.measure_options import parse_device
from eatss.cli.option_values import check_writable, write_text
from eatss.cli.options import Debug, Diagnostics, TableOrJson, of_output
from eatss.diagnostics import InputError, input_error

EXAMPLES = """
Examples:

    eatss meter -- ./gemm 4000

    eatss meter --repeat 50 -- ./short

    eatss meter --device all --trace power.csv -- python3 train.py

    eatss meter --format json -o gemm.json -- ./gemm 4000
"""


def meter(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", help="What to run.", show_default=False),
    ],
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|UUID|all",
            help="Which card, as nvidia-smi -L lists it; may be given several times. Default: 0.",
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Run it N times; energy is of all runs together."),
    ] = 1,
    sensor: Annotated[
        str,
        typer.Option(
            "--meter",
            metavar="NAME",
            help="What energy is read from: auto, counter, power, nvidia-smi, jetson, none.",
        ),
    ] = "auto",
    interval: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.001, help="Time between two looks at the power."),
    ] = 0.005,
    idle: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.0, help="Time recorded before the program begins."),
    ] = 1.0,
    trace: Annotated[
        Path | None, of_output(metavar="FILE", help="Write the power over time as CSV.")
    ] = None,
    file: Annotated[
        Path | None,
        of_output("--output", "-o", metavar="FILE", help="Write results there, not on stderr."),
    ] = None,
    output: Annotated[TableOrJson, of_output("--format", "-f", help="What to write.")] = "table",
    nvml: Annotated[
        str | None,
        typer.Option("--nvml", metavar="MODULE:NAME", hidden=True, help="Stands in for NVML."),
    ] = None,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Run any program and tell its time, and the energy and power of cards meanwhile.

    The program's standard streams, signals and exit code are its own: results go to standard
    error, or to a file (-o). Exits with 127 if there is no such program.
    """
    from eatss.cli.messages import report_error  # noqa: PLC0415 - keeps --help fast
    from eatss.cli.talk import current  # noqa: PLC0415
    from eatss.foreign.child import NotStartedError  # noqa: PLC0415
    from eatss.foreign.meter import (  # noqa: PLC0415
        MeterOptions,
        all_devices,
        meter_program,
        without_trace,
    )
    from eatss.report.program_energy import power_csv, render_program_energy  # noqa: PLC0415

    _check_files(trace, file)
    module = None if nvml is None else resolve_name(nvml)
    named = device or ["0"]
    devices = all_devices(module) if "all" in named else tuple(map(parse_device, named))
    options = MeterOptions(
        devices=devices, meter=sensor, repeat=repeat, interval_s=interval, idle_s=idle
    )
    try:
        found = meter_program(command, options, module=module)
    except NotStartedError as error:
        report_error(error, current.get())
        raise typer.Exit(error.status) from None
    text = render_program_energy(without_trace(found), output)
    failed = False
    for option, path, content in (
        ("--trace", trace, power_csv(found)),
        ("--output", file, text),
    ):
        try:
            if path is not None:
                write_text(option, path, content)
        except InputError as error:
            report_error(error, current.get())
            failed = True
    if file is None or failed:
        typer.echo(text, err=True, nl=False)
    if found.exit_code or failed:
        raise typer.Exit(found.exit_code or InputError.exit_code)


def _check_files(trace: Path | None, file: Path | None) -> None:
    """Refuse files that cannot be written before a program runs, maybe for hours."""
    if trace is not None and file is not None and trace.resolve() == file.resolve():
        raise input_error(
            "EATSS-C010",
            f"--output and --trace both name '{file}'",
            hint="name two files",
        )
    for option, path in (("--trace", trace), ("--output", file)):
        if path is not None:
            check_writable(option, path)
