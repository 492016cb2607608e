"""``eatss settings``: defaults of options from ``eatss.toml``, and the file they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from eatss.cli.options import Debug, Diagnostics, Format

if TYPE_CHECKING:
    from eatss.cli.default_options import Default
    from eatss.cli.settings_in_force import InForce

EXAMPLES = """
Examples:

    eatss settings

    eatss settings --format json

    eatss --config other.toml settings
"""


def settings(
    context: typer.Context,
    output: Format = "table",
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """Show which eatss.toml or pyproject.toml is in force here, and what it sets.

    The first folder from here upwards counts that has an eatss.toml, or a pyproject.toml with a
    table [tool.eatss]; the search ends at the root of the repository or at the home folder.
    """
    from eatss.report.settings import Setting, Settings, render_settings  # noqa: PLC0415

    found: InForce | None = context.obj
    shown = Settings(
        file=None if found is None else str(found.file.path),
        settings=tuple(
            Setting(
                command=" ".join(one.command),
                option=_spelled(context, one),
                value=one.value,
                key=".".join(one.key),
            )
            for one in (() if found is None else found.defaults)
        ),
    )
    typer.echo(render_settings(shown, output), nl=False)


def _spelled(context: typer.Context, default: Default) -> str:
    """Return the option of a setting as it is typed."""
    command: Any = context.find_root().command
    for word in default.command:
        command = command.commands[word]
    found = next(one for one in command.params if one.name == default.option)
    return str(max(found.opts, key=len))
