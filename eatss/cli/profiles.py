"""``eatss profiles``: known cards, one card's figures and where they come from."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from eatss.cli.cards import given_card
from eatss.cli.options import (
    CARD_HELP,
    CARD_METAVAR,
    Debug,
    Diagnostics,
    card_argument,
    of_output,
)
from eatss.diagnostics import input_error

EXAMPLES = """
Examples:

    eatss profiles

    eatss profiles h200

    eatss profiles auto

    eatss profiles a100 --format toml > mycard.toml

    eatss profiles ./mycard.toml --format json
"""


def profiles(
    name: Annotated[
        str | None,
        card_argument(metavar=CARD_METAVAR, help=f"{CARD_HELP} Default: all known cards."),
    ] = None,
    output: Annotated[
        Literal["table", "json", "toml"],
        of_output(
            "--format", "-f", help="What to print; toml: one card's profile, to edit and give back."
        ),
    ] = "table",
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """List the known cards, or one card's figures with their sources."""
    from eatss.gpu import list_profiles  # noqa: PLC0415 - keeps --help fast
    from eatss.report.profiles import render_profile, render_profiles  # noqa: PLC0415

    if name is not None:
        typer.echo(render_profile(given_card(name, diagnostics), output), nl=False)
        return
    if output == "toml":
        raise input_error(
            "EATSS-C012",
            "a TOML file is of one card",
            hint="name it: eatss profiles a100 --format toml",
        )
    typer.echo(render_profiles(list_profiles(), output), nl=False)
