"""What commands print that list what there is: the cache, kernels, schemas, settings, a space."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TypeAlias

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.cache.store import Contents
from eatss.codec import encode, json_text
from eatss.frozen import frozen
from eatss.point import Point
from eatss.report.render import indented_table, render
from eatss.shipped import MARK, ShippedKernels
from eatss.space.nouns import SpaceCount
from eatss.text import bytes_text, printable


def render_contents(contents: Contents, output: str) -> str:
    """Return what is in a cache as ``table`` or ``json``."""
    if output == "json":
        return json_text(contents)
    parts: list[RenderableType] = [Text(contents.folder, style="bold")]
    if contents.problem is not None:
        parts.append(Text(f"nothing is kept: {contents.problem}", style="yellow"))
    if contents.entries:
        table = indented_table("kind", "of", "size", "last used", numbers=("size",))
        for one in contents.entries:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.last_used_s))
            table.add_row(one.kind, one.about, bytes_text(one.size_bytes), used)
        parts.append(table)
    limit = bytes_text(contents.limit_bytes)
    parts.append(f"{count_text(len(contents.entries), contents.size_bytes)}, limit {limit}")
    return render(*parts)


def count_text(count: int, size_bytes: int) -> str:
    """Return how many entries there are, and how large they are together."""
    return f"{count} {'entry' if count == 1 else 'entries'}, {bytes_text(size_bytes)}"


def render_kernels(kernels: ShippedKernels, output: str) -> str:
    """Return the kernels that come with eatss as ``table`` or ``json``."""
    if output == "json":
        return json_text(kernels)
    table = indented_table("name", "what it computes", "sizes (-D)")
    for one in kernels.kernels:
        sizes = " ".join(f"{name}={value}" for name, value in one.sizes)
        table.add_row(Text(f"{MARK}{one.name}", style="bold", no_wrap=True), one.title, sizes)
    return render(table)


def schemas_table() -> str:
    """Return the documents that have a JSON Schema."""
    from eatss.schemas import PUBLISHED  # noqa: PLC0415 - needs pydantic

    table = indented_table("name", "printed by")
    for name, document in PUBLISHED.items():
        table.add_row(Text(name, style="bold"), document.printed_by)
    return render(table)


Value: TypeAlias = bool | str | tuple[str, ...]


@frozen
class Setting:
    """A default of one option of one command.

    ``command`` is ``select`` or ``results ls``, ``option`` as it is typed. ``key`` is where the
    file sets it: ``gpu`` for all commands, ``select.gpu`` for one.
    """

    command: str
    option: str
    value: Value
    key: str


@frozen
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


def render_space(count: SpaceCount, points: Sequence[Point], output: str) -> str:
    """Return the count of a space and some of its points as ``table`` or ``json``."""
    if output == "json":
        document = encode(count)
        if points:
            document |= {"sample": [dict(point) for point in points]}
        return json.dumps(document, indent=2) + "\n"
    table = indented_table("", "points", "share", numbers=("points", "share"))
    table.columns[0].max_width = 44
    for column in table.columns[1:]:
        column.no_wrap = True
    table.add_row("raw", _number(count.raw), "")
    for one in count.filters:
        share = "" if not count.raw else _share(one.removed, count.raw)
        removed = f"−{_number(one.removed)}" if one.removed else "0"
        table.add_row(Text(one.name, style="dim"), removed, share)
    kept = "" if not count.raw else _share(count.kept, count.raw)
    table.add_row(Text("kept", style="bold"), Text(_number(count.kept), style="bold"), kept)
    drawn = Table.grid(padding=(0, 2, 0, 0))
    for number, point in enumerate(points, start=1):
        values = "  ".join(f"{name}={value}" for name, value in point.items())
        drawn.add_row(Text(str(number), style="dim"), Text(values))
    return render(Text(count.name, style="bold"), table, *[drawn] * bool(points))


def _number(number: int) -> str:
    """Return a number with its digits in groups; beyond 10^12 with six digits."""
    return f"{number:,}".replace(",", " ") if number < 10**12 else f"{number:.5e}"


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole
    if not part:
        return ""
    return f"{percent:.1f} %" if percent >= 0.1 else f"{percent:.1g} %"
