"""Tables as HTML for a notebook: what a terminal shows, in colours that light and dark take."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.terminal_theme import TerminalTheme

from eatss.base.text import printable
from eatss.report.render import hanging

WIDTH = 110
"""Characters of a line; what is wider is folded."""

_INK = [
    (121, 121, 121),  # black
    (207, 78, 74),  # red
    (47, 138, 67),  # green
    (155, 115, 11),  # yellow
    (59, 119, 217),  # blue
    (176, 83, 191),  # magenta
    (14, 134, 145),  # cyan
    (121, 121, 121),  # white
]
"""Each has a contrast above four with a white page and with a dark one (#111)."""

_THEME = TerminalTheme(background=(242, 242, 242), foreground=(0, 0, 0), normal=_INK)
"""``dim`` is the middle of foreground and background: a grey with the same property."""

_STYLE = (
    "white-space:pre;overflow-x:auto;line-height:1.35;margin:0;background:none;color:inherit;"
    "font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace"
)


def html_of(parts: Iterable[RenderableType]) -> str:
    """Return parts of a report as one element of HTML that needs nothing else."""
    console = Console(
        file=StringIO(),
        record=True,
        force_terminal=True,
        color_system="standard",
        highlight=False,
        markup=False,
        width=WIDTH,
        legacy_windows=False,
    )
    for part in parts:
        segments = console.render(hanging(part))
        console.print(Segments(_shown(segment) for segment in segments), end="")
    return console.export_html(
        theme=_THEME, inline_styles=True, code_format=f'<pre style="{_STYLE}">{{code}}</pre>'
    )


def _shown(segment: Segment) -> Segment:
    """Return text that steers nothing, in the page's own colour where it has none of its own."""
    if segment.control:
        return segment
    style = segment.style
    if style is not None and style.color is not None and style.color.is_default:
        style = style.without_color
    return Segment(printable(segment.text), style)
