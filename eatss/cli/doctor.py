"""``eatss doctor``: what works on this machine and what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eatss.cli.measure_options import DEVICE_HELP, parse_device
from eatss.cli.options import Debug, Format, Nvcc
from eatss.cli.progress import working
from eatss.diagnostics import ExitCode

if TYPE_CHECKING:
    from eatss.machine.environment import Check

EXAMPLES = """
Examples:

    eatss doctor

    eatss doctor --format json

    eatss doctor --sensors    # makes the card work for some seconds

    eatss doctor --nvcc /opt/cuda-12.8/bin/nvcc
"""


def doctor(
    output: Format = "table",
    sensors: Annotated[
        bool,
        typer.Option(
            "--sensors", help="Make the card work for some seconds to compare its energy sensors."
        ),
    ] = False,
    device: Annotated[
        str, typer.Option(metavar="N|UUID", help=f"{DEVICE_HELP} Its energy sensors are looked at.")
    ] = "0",
    nvcc: Nvcc = None,
    debug: Debug = False,
) -> None:
    """Check what works on this machine and say what to do.

    Exits with 1 if something is missing that this install is for: selecting, or without the
    solver (eatss-measure) verifying and measuring.
    """
    from eatss.machine.environment import examine  # noqa: PLC0415 - keeps --help fast
    from eatss.report.environment import render_checks  # noqa: PLC0415

    with working("looking at packages, compilers and cards") as step:
        checks = examine(nvcc=nvcc)
        step.at("looking at energy sensors")
        checks = (*checks, *_sensor_checks(parse_device(device), with_load=sensors))
    typer.echo(render_checks(checks, output), nl=False)
    if any(check.ok is False for check in checks):
        raise typer.Exit(ExitCode.NO_SOLUTION)


def _sensor_checks(device: int | str, *, with_load: bool) -> tuple[Check, ...]:
    """Look at the energy sensors, unless NumPy is missing, which is said elsewhere."""
    try:
        from eatss.measurement.sensors import examine_sensors  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "numpy":
            raise
        return ()
    return examine_sensors(device, with_load=with_load)
