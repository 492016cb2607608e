"""What ``eatss results show`` prints."""

from __future__ import annotations

from dataclasses import replace

from eatss.base.codec import json_text
from eatss.base.targets import Order
from eatss.report.pages import page
from eatss.report.render import render
from eatss.tune.rows import Sweep, ranked


def render_rows(sweep: Sweep, output: str, *, by: Order, top: int | None) -> str:
    """Return the rows of a sweep, the best first, as ``table`` or ``json``; at most ``top``."""
    rows = ranked(sweep.rows, by)[:top]
    if output == "json":
        return json_text(replace(sweep, rows=rows))
    return render(*page("rows", it=sweep, rows=rows)) if rows else "there is no such row\n"
