"""What ``eatss schema`` prints where no document is named."""

from __future__ import annotations

from rich.text import Text

from eatss.report.render import indented_table, render
from eatss.schemas import PUBLISHED


def schemas_table() -> str:
    """Return the documents that have a JSON Schema."""
    table = indented_table("name", "printed by")
    for name, document in PUBLISHED.items():
        table.add_row(Text(name, style="bold"), document.printed_by)
    return render(table)
