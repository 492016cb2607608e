"""Rich renderables to text, for a terminal or for a file."""

from __future__ import annotations

import sys
from io import StringIO

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

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
