"""``eatss profiles``: known cards, one card's figures and where they come from."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eatss.cli.common import Debug, Diagnostics, DiagnosticsFormat

EXAMPLES = """
Examples:

    eatss profiles

    eatss profiles h200

    eatss profiles ./mycard.toml --format json
"""


class ProfilesFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"


def profiles(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A card, or a TOML file; default: all.")
    ] = None,
    output: Annotated[
        ProfilesFormat, typer.Option("--format", "-f", help="What to print.")
    ] = ProfilesFormat.TABLE,
    diagnostics: Diagnostics = DiagnosticsFormat.TEXT,
    debug: Debug = False,
) -> None:
    """List the known cards, or one card's figures with their sources."""
    from eatss.gpu import list_profiles, load_profile  # noqa: PLC0415 - keeps --help fast
    from eatss.report.profiles import render_profile, render_profiles  # noqa: PLC0415

    if name is None:
        typer.echo(render_profiles(list_profiles(), output.value), nl=False)
    else:
        typer.echo(render_profile(load_profile(name), output.value), nl=False)
