"""What ``eatss settings`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rich.text import Text

from eatss.codec import json_text
from eatss.report.render import indented_table, printable, render

Value: TypeAlias = bool | str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A default of one option of one command.

    ``command`` is ``select`` or ``results ls``, ``option`` as it is typed. ``key`` is where the
    file sets it: ``gpu`` for all commands, ``select.gpu`` for one.
    """

    command: str
    option: str
    value: Value
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults of options that are in force in the working folder.

    ``file`` is where they stand, ``None`` where there is no such file.
    """

    file: str | None
    settings: tuple[Setting, ...]


def render_settings(settings: Settings, output: str) -> str:
    """Return settings as ``table`` or ``json``."""
    if output == "json":
        return json_text(settings)
    if settings.file is None:
        return (
            "No eatss.toml and no [tool.eatss] is in force here: options have their own defaults.\n"
        )
    if not settings.settings:
        return f"{printable(settings.file)} sets nothing.\n"
    table = indented_table("in the file", "value", "for")
    of_key: dict[str, list[Setting]] = {}
    for one in settings.settings:
        of_key.setdefault(one.key, []).append(one)
    for key, same in of_key.items():
        option = same[0].option
        commands = ", ".join(f"{one.command} {_unless(option, one.option)}".strip() for one in same)
        table.add_row(key, _text(same[0].value), f"{option} of {commands}")
    return render(Text(settings.file, style="bold"), table)


def _unless(shown: str, option: str) -> str:
    return "" if option == shown else f"({option})"


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else ", ".join(value)
