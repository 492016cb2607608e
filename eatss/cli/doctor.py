"""``eatss doctor``: what works on this machine and what to install."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eatss.cli.common import Debug
from eatss.diagnostics import ExitCode

EXAMPLES = """
Examples:

    eatss doctor

    eatss doctor --format json
"""


class DoctorFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"


def doctor(
    output: Annotated[
        DoctorFormat, typer.Option("--format", "-f", help="What to print.")
    ] = DoctorFormat.TABLE,
    debug: Debug = False,
) -> None:
    """Check what works on this machine and say what to install; exit 1 if `select` cannot run."""
    from eatss.gpu.environment import examine  # noqa: PLC0415 - keeps --help fast
    from eatss.report.environment import render_checks  # noqa: PLC0415

    checks = examine()
    typer.echo(render_checks(checks, output.value), nl=False)
    if any(check.ok is False for check in checks):
        raise typer.Exit(ExitCode.NO_SOLUTION)
