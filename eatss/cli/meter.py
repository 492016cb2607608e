"""``eatss meter``: any program in, its time, energy and power out."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

from eatss.base.diagnostics import InputError
from eatss.base.options import Asked, argument, option
from eatss.base.streams import echo
from eatss.cli.options import (
    TableOrJson,
    check_writable,
    of_output,
    write_file,
)
from eatss.cli.talk import report_error
from eatss.measurement.options import MeterOptions

EXAMPLES = {
    "meter": """
Examples:

    eatss meter -- ./gemm 4000

    eatss meter --repeat 50 -- ./short

    eatss meter --gpus all -- python3 train.py

    eatss meter --gpus 0,1 --trace power.csv -- ./gemm 4000

    eatss meter --format json -o gemm.json -- ./gemm 4000
"""
}


def meter(
    *,
    command: Annotated[
        list[str],
        argument(metavar="-- PROGRAM [ARGUMENTS]", help="What to run.", show_default=False),
    ],
    metering: Asked[MeterOptions],
    trace: Annotated[
        Path | None, of_output(metavar="FILE", help="Write the power over time as CSV.")
    ] = None,
    file: Annotated[
        Path | None,
        of_output("--output -o", metavar="FILE", help="Write results there, not on stderr."),
    ] = None,
    output: Annotated[TableOrJson, of_output("--format -f", help="What to write.")] = "table",
    nvml: Annotated[
        str | None,
        option("--nvml", metavar="MODULE:NAME", hidden=True, help="Stands in for NVML."),
    ] = None,
) -> None:
    """Run any program and tell its time, and the energy and power of cards meanwhile.

    The program's standard streams, signals and exit code are its own: results go to standard
    error, or to a file (-o). Exits with 127 if there is no such program.
    """
    from eatss.measurement.foreign import NotStartedError, meter_program  # noqa: PLC0415
    from eatss.report.measurement import power_csv  # noqa: PLC0415 - keeps --help fast
    from eatss.report.pages import printed  # noqa: PLC0415

    for word, path in (("--output", file), ("--trace", trace)):
        if path is not None:  # before a program runs, maybe for hours
            check_writable(word, path)
    try:
        module = None if nvml is None else resolve_name(nvml)
        found = meter_program(command, metering.made(), module=module)
    except NotStartedError as error:
        report_error(error)
        raise SystemExit(error.status) from None
    text = printed(found, output)
    try:
        if trace is not None:
            write_file("--trace", trace, power_csv(found))
        if file is not None:
            write_file("--output", file, text)
    except InputError:
        echo(text, err=True, nl=False)
        raise
    if file is None:
        echo(text, err=True, nl=False)
    raise SystemExit(found.exit_code)
