"""Which settings are in force in a folder, and the defaults that options get from them.

Every command comes through here, most of them where there is no file: what reads one is loaded
only where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eatss.cli.talk import FromSettings, is_from_settings

if TYPE_CHECKING:
    from eatss.cli.default_options import Default
    from eatss.cli.settings_file import SettingsFile


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The file of settings in force, and what it sets."""

    file: SettingsFile
    defaults: tuple[Default, ...]

    def of(self, context: typer.Context) -> tuple[FromSettings, ...]:
        """Return what a command has from the file and not from its command line."""
        path: list[str] = []
        above: Any = context
        while above.parent is not None:
            path.insert(0, above.info_name or "")
            above = above.parent
        shown = {one.name: max(one.opts, key=len) for one in context.command.params}
        return tuple(
            FromSettings(file=self.file, option=shown[one.option], key=one.key)
            for one in self.defaults
            if one.command == tuple(path) and is_from_settings(context, one.option)
        )


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
    return InForce(file=file, defaults=defaults_of(file, context))


def default_map(
    context: typer.Context, defaults: Sequence[Default], *, quiet: bool, verbose: bool
) -> dict[str, Any]:
    """Return defaults of options, and what ``eatss`` itself was told, as Click takes them."""
    if not defaults and not quiet and not verbose:
        return {}
    from eatss.cli.default_options import Default, as_click_has_it, command_paths  # noqa: PLC0415

    told = {"quiet": quiet, "verbose": verbose} if quiet or verbose else {}
    own = [
        Default(command=path, option=option, key=(option,), value=value)
        for path in command_paths(context)
        for option, value in told.items()
    ]
    return as_click_has_it([*defaults, *own])


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
