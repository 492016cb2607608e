"""Numbers, tables and Rich renderables to text, for a terminal or for a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table as RichTable
from rich.text import Text

from eatss.base.streams import page_width
from eatss.base.text import printable

if TYPE_CHECKING:
    from eatss.measurement.measurement import Ratio


def listing(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> RichTable:
    """Return a table without rules, by titles of columns and the cells of each row.

    Cells are texts, or numbers, which get four digits and stand at the right; ``None`` is ``-``. A
    title that begins with ``!`` is of a column whose cells stay in a line, one with ``>``, or with
    ``!>``, of texts that are aligned to the right.
    """
    lines, titles = [tuple(row) for row in rows], list(titles)
    table = RichTable(
        box=None, padding=(0, 0, 0, 2), show_header=any(one.strip("!>") for one in titles)
    )
    for place, title in enumerate(titles):
        whole, name = title.startswith("!"), title.removeprefix("!")
        right = name.startswith(">") or any(type(line[place]) in (int, float) for line in lines)
        table.add_column(
            name.removeprefix(">"),
            justify="right" if right else "left",
            header_style="dim",
            no_wrap=whole,
            overflow="ellipsis" if whole else "fold",
        )
    for line in lines:
        table.add_row(*(NONE if cell is None else cell_text(cell) for cell in line))
    return table


def hanging(part: RenderableType) -> RenderableType:
    """Return a line so that it goes on below where it began, if it is too wide."""
    text = Text(part) if isinstance(part, str) else part
    if not isinstance(text, Text):
        return part
    if "://" in text.plain:  # an address, to be copied
        return Text.assemble(text, no_wrap=True, overflow="ignore")
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    return Padding(text[indent:], (0, 0, 0, indent), expand=False) if indent else text


def render(*renderables: RenderableType) -> str:
    """Return what Rich prints as wide as :func:`page_width`, coloured only on a terminal."""
    return printed_parts(renderables, width=page_width(), terminal=sys.stdout.isatty())


def printed_parts(parts: Iterable[RenderableType], *, width: int, terminal: bool) -> str:
    """Return what Rich prints of parts, so many columns wide."""
    buffer = StringIO()
    console = Console(
        file=buffer,
        force_terminal=terminal,
        no_color=not terminal,
        highlight=False,
        markup=False,
        width=width,
        legacy_windows=False,
    )
    for part in parts:
        console.print(Segments(_harmless(console, part)), end="", crop=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _harmless(console: Console, part: RenderableType) -> Iterator[Segment]:
    """Yield text that steers no terminal."""
    for one in console.render(hanging(part)):
        text = printable(one.text.replace(BAR, "|"))
        yield one if one.control else Segment(text, one.style)


_COUNTERS = {
    "dram__bytes_read.sum": "DRAM read",
    "dram__bytes_write.sum": "DRAM written",
    "lts__t_sectors_srcunit_tex_op_read.sum": "L2 sectors read by L1",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy",
    "smsp__inst_executed.sum": "warp instructions",
    "gpu__time_duration.sum": "time when counted",
}


def counter_words(name: str) -> str:
    """Return a counter's name in words; the name of anything else as it is."""
    return _COUNTERS.get(name, name)


BAR = "\uff5c"
"""Stands for a vertical bar in a page, where that ends a cell."""

NONE = "-"
"""Stands for what has no value."""


def figure(value: float | None, digits: int = 4, factor: float = 1.0) -> str:
    """Return a number times a factor with so many digits and no exponent; ``-`` for none."""
    if value is None or math.isnan(value):
        return NONE
    value *= factor
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def percent(share: float | None, form: str = ".1f") -> str:
    """Return a share in percent, ``12.5 %``; ``-`` for none."""
    return NONE if share is None else f"{100 * share:{form}} %"


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped_by(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return all that goes with each key, in order."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def off_by(share: float | None) -> str:
    """Return a relative error, ``±0.12%``; "" where there is none."""
    return "" if share is None else f"±{100 * share:.2g}%"


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio and its interval, ``1.020 [1.001, 1.039]``."""
    if ratio is None:
        return NONE
    interval = "" if ratio.low is None else f" [{ratio.low:.3f}, {ratio.high:.3f}]"
    return f"{ratio.value:.3f}{interval}"


def with_prefix(value: float) -> str:
    """Return a count, with G, M or k behind it where it is large."""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{figure(value / scale)} {prefix}"
    return f"{value:g}"


def grouped(number: int) -> str:
    """Return a count with its digits in groups of three; from 10^12 on with six digits."""
    return f"{number:,}".replace(",", " ") if number < 10**12 else f"{number:.5e}"


Parts: TypeAlias = list[RenderableType]
"""What is printed, one under the other."""


def cell_text(cell: Any) -> Any:
    """Return a cell as people read it, "" for nothing; styled text stays."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.1e}" if 0 < abs(cell) < 1e-4 else figure(cell)
    return "" if cell is None else cell if isinstance(cell, Text) else str(cell)
