"""``eatss profiles``: known cards, one card's figures and where they come from."""

from __future__ import annotations

from typing import Annotated

import typer

from eatss.cli.options import Debug, Diagnostics, Format

EXAMPLES = """
Examples:

    eatss profiles

    eatss profiles h200

    eatss profiles ./mycard.toml --format json
"""


def profiles(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A card, or a TOML file; default: all.")
    ] = None,
    output: Format = "table",
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """List the known cards, or one card's figures with their sources."""
    from eatss.gpu import list_profiles, load_profile  # noqa: PLC0415 - keeps --help fast
    from eatss.report.profiles import render_profile, render_profiles  # noqa: PLC0415

    if name is None:
        typer.echo(render_profiles(list_profiles(), output), nl=False)
    else:
        typer.echo(render_profile(load_profile(name), output), nl=False)
