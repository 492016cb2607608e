"""A callable in a few lines: what it takes, and what it has made."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from eatss.calls.callable import JitFunction
from eatss.report.render import indented_table


def jit_parts(function: JitFunction) -> list[RenderableType]:
    """Return what a callable takes, and how much it has made so far."""
    made = function.info()
    table = indented_table("programs", "sizes ready", "graphs", numbers=("programs", "sizes ready"))
    table.add_row(str(made.programs), str(made.plans), str(made.graphs))
    head = Text(repr(function)[1:-1], style="bold")
    expected = [f"expected: {one}" for one in made.expected]
    return [head, table, *expected]
