"""What ``eatss cache`` prints."""

from __future__ import annotations

import time

from rich.console import RenderableType
from rich.text import Text

from eatss.cache.store import Contents
from eatss.codec import json_text
from eatss.report.render import indented_table, render
from eatss.text import bytes_text


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
