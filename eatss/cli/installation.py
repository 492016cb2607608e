"""What is here: ``eatss kernels``, ``doctor`` and ``schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eatss.base.diagnostics import ExitCode
from eatss.base.options import argument, option
from eatss.base.streams import echo
from eatss.cli.options import (
    Format,
    Nvcc,
    TableOrJson,
    of_output,
    show,
)
from eatss.cli.talk import working
from eatss.measurement.options import DEVICE_HELP, parse_device

if TYPE_CHECKING:
    from eatss.cards.environment import Check

EXAMPLES = {
    "kernels": """
Examples:

    eatss kernels

    eatss kernels gemm > gemm.c

    eatss select @gemm --gpu a100 -D NI=2000
""",
    "doctor": """
Examples:

    eatss doctor

    eatss doctor --format json


    eatss doctor --nvcc /opt/cuda-12.8/bin/nvcc
""",
    "schema": """
Examples:

    eatss schema

    eatss schema select > select.schema.json

    eatss schema recipe | jq '.properties | keys'
""",
}


def kernels(
    name: Annotated[
        str | None,
        argument(
            metavar="NAME",
            help="Print this one's C; default: list all.",
        ),
    ] = None,
    output: Annotated[
        TableOrJson | None,
        of_output("--format -f", help="What to print; default: the table, of one its C."),
    ] = None,
) -> None:
    """List the C kernels that come with eatss, or print one. Each goes as @NAME where a file goes.

    -D sets its sizes, -D SMALL_DATASET all of them (MINI, SMALL, STANDARD, LARGE, EXTRALARGE), and
    -D DATA_TYPE=float single precision.
    """
    from eatss.base.shipped import ShippedKernels, shipped_kernel, shipped_kernels  # noqa: PLC0415

    found = shipped_kernels() if name is None else ShippedKernels(kernels=(shipped_kernel(name),))
    if name is None or output is not None:
        show(found, output or "table")
    else:
        echo(Path(found.kernels[0].file).read_text(encoding="utf-8"), nl=False)


def doctor(
    output: Format = "table",
    device: Annotated[
        str, option(metavar="N|UUID", help=f"{DEVICE_HELP} Its energy sensors are looked at.")
    ] = "0",
    nvcc: Nvcc = None,
) -> None:
    """Check what works on this machine and say what to do.

    Exits with 1 if something is missing that this install is for: selecting, or without the
    solver (eatss-measure) verifying and measuring.
    """
    from eatss.cards.environment import examine  # noqa: PLC0415 - keeps --help fast
    from eatss.report.cards import Examination  # noqa: PLC0415

    with working("looking at packages, compilers and cards") as step:
        checks = examine(nvcc=nvcc)
        step.at("looking at energy sensors")
        checks = (*checks, *_sensor_checks(parse_device(device)))
    show(Examination(checks=checks), output)
    if any(check.ok is False for check in checks):
        raise SystemExit(ExitCode.NO_SOLUTION)


def _sensor_checks(device: int | str) -> tuple[Check, ...]:
    """Look at the energy sensors, unless NumPy is missing, which is said elsewhere."""
    try:
        from eatss.measurement.metering import examine_sensors  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "numpy":
            raise
        return ()
    return (examine_sensors(device),)


def schema(
    document: Annotated[
        str | None, argument(metavar="NAME", help="A document; default: list them.")
    ] = None,
) -> None:
    """List the documents that have a JSON Schema, or print the one of a document."""
    from eatss.base.codec import json_text  # noqa: PLC0415 - keeps --help fast
    from eatss.base.schemas import PUBLISHED  # noqa: PLC0415
    from eatss.base.schemas import schema as schema_of  # noqa: PLC0415

    echo("\n".join(PUBLISHED) if document is None else json_text(schema_of(document)).rstrip())
