"""What ``eatss space`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from eatss.codec import encode
from eatss.point import Point
from eatss.report.render import indented_table, render
from eatss.space.nouns import SpaceCount


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
