"""Numbers, tables and Rich renderables to text, for a terminal or for a file."""

from __future__ import annotations

import math
import sys
from io import StringIO

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from eatss.measurement.measurement import Estimate, Ratio
from eatss.streams import page_width as page_width  # noqa: PLC0414
from eatss.text import printable as printable  # noqa: PLC0414 - others take it from here


def _shown(segment: Segment) -> Segment:
    return segment if segment.control else Segment(printable(segment.text), segment.style)


def indented_table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an indented table without rules; ``numbers`` are aligned to the right."""
    table = Table(box=None, padding=(0, 0, 0, 2))
    for column in columns:
        justify: JustifyMethod = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, header_style="dim", overflow="fold")
    return table


def hanging(part: RenderableType) -> RenderableType:
    """Return prose so that a line that is too wide goes on below where it began."""
    text = Text(part) if isinstance(part, str) else part
    if not isinstance(text, Text) or text.no_wrap:
        return part
    lines = text.split("\n", allow_blank=True)
    indents = [len(line.plain) - len(line.plain.lstrip(" ")) for line in lines]
    return Group(
        *(
            Padding(line[indent:], (0, 0, 0, indent), expand=False) if indent else line
            for line, indent in zip(lines, indents, strict=True)
        )
    )


def uncut(text: str) -> Text:
    """Return a line that stays one, however narrow the page is: an address to be copied."""
    return Text(text, no_wrap=True, overflow="ignore")


def render(*renderables: RenderableType) -> str:
    """Return what Rich prints as wide as :func:`page_width`, coloured only on a terminal."""
    terminal = sys.stdout.isatty()
    buffer = StringIO()
    console = Console(
        file=buffer,
        force_terminal=terminal,
        no_color=not terminal,
        highlight=False,
        markup=False,
        width=page_width(),
        legacy_windows=False,
    )
    for renderable in renderables:
        segments = console.render(hanging(renderable))
        console.print(Segments(_shown(segment) for segment in segments), end="", crop=False)
    lines = buffer.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


MODULE_NOTE = "NVML's power is of the module: GPU, CPU and their memory, not of the GPU alone"

NONE = "-"
"""Stands for what has no value."""


def figure(value: float | None, digits: int = 4) -> str:
    """Return a number with so many significant digits and never an exponent; ``-`` for none."""
    if value is None:
        return NONE
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def scaled(value: float | None, factor: float, digits: int = 4) -> str:
    """Return ``value × factor`` as :func:`figure` does."""
    return figure(None if value is None else value * factor, digits)


def spread(estimate: Estimate | None) -> str:
    """Return half the interval as a percentage of the mean, ``±0.12%``; "" where there is none."""
    relative = None if estimate is None else estimate.relative
    return "" if relative is None else f"±{100 * relative:.2g}%"


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio and its interval, ``1.020 [1.001, 1.039]``."""
    if ratio is None:
        return NONE
    if ratio.low is None or ratio.high is None:
        return figure(ratio.value)
    digits = _digits(ratio.value, ratio.high - ratio.low)
    low, value, high = (f"{number:.{digits}f}" for number in (ratio.low, ratio.value, ratio.high))
    return f"{value} [{low}, {high}]"


def _digits(value: float, width: float) -> int:
    """Return the decimals that show an interval's width with two digits, within reason."""
    least = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 3
    if width <= 0:
        return least
    return max(0, min(least, 1 - math.floor(math.log10(width))))


def bytes_amount(value: float) -> str:
    """Return bytes in the binary unit that suits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{figure(value, 3)} {unit}"
        value /= 1024
    return f"{figure(value, 3)} TiB"


def with_prefix(value: float) -> str:
    """Return a count, with G, M or k behind it where it is large."""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{figure(value / scale)} {prefix}"
    return f"{value:g}"


def seconds(value: float) -> str:
    """Return a duration in words short enough for a line: ``12 s``, ``3 min 20 s``."""
    if value < 60:
        return f"{figure(value, 2) if value < 10 else round(value)} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"
