"""``eatss settings``: defaults of options from ``eatss.toml``, and the file they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eatss.cli.options import Debug, Diagnostics, Format

if TYPE_CHECKING:
    from eatss.cli.default_options import Default

EXAMPLES = """
Examples:

    eatss settings

    eatss settings --format json

    eatss --config other.toml settings
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The file of settings in force, and what it sets."""

    path: Path
    prefix: tuple[str, ...]
    defaults: tuple[Default, ...]


def in_force(context: typer.Context, config: Path | None) -> InForce | None:
    """Return the settings of the file that is named, or that is found.

    Raises:
        InputError: ``EATSS-C031`` to ``C033``, the file is wrong.
    """
    if config is None and not _may_have_settings(Path.cwd()):
        return None
    from eatss.cli.default_options import defaults_of  # noqa: PLC0415 - only where there is a file
    from eatss.cli.settings_file import find_settings, read_settings  # noqa: PLC0415

    file = find_settings(Path.cwd()) if config is None else read_settings(config)
    if file is None:
        return None
    return InForce(path=file.path, prefix=file.prefix, defaults=defaults_of(file, context))


def default_map(
    context: typer.Context, defaults: Sequence[Default], *, quiet: bool, verbose: bool
) -> dict[str, Any]:
    """Return defaults of options, and what ``eatss`` itself was told, as Click takes them."""
    if not defaults and not quiet and not verbose:
        return {}
    from eatss.cli.default_options import Default, command_paths  # noqa: PLC0415
    from eatss.cli.default_options import default_map as as_click_has_it  # noqa: PLC0415

    told = {"quiet": quiet, "verbose": verbose} if quiet or verbose else {}
    own = [
        Default(command=path, option=option, key=(option,), value=value)
        for path in command_paths(context)
        for option, value in told.items()
    ]
    return as_click_has_it([*defaults, *own])


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
        file=None if found is None else str(found.path),
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


def _may_have_settings(folder: Path) -> bool:
    """Tell whether it is worth looking closer, which takes time to load: most folders have none."""
    places = (folder, *folder.parents)
    if any((place / "eatss.toml").is_file() for place in places):
        return True
    return any(_names_eatss(place / "pyproject.toml") for place in places)


def _names_eatss(file: Path) -> bool:
    try:
        return b"eatss" in file.read_bytes() if file.is_file() else False
    except OSError:  # where it matters, that is told
        return True
