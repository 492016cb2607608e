"""A sweep in tables, for the page and for the terminal alike, and in sentences."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from eatss.base.codec import JsonObject
from eatss.base.frozen import Names, frozen
from eatss.base.text import equations
from eatss.report.pages import cells_of, lines_of, page
from eatss.report.render import BAR, render
from eatss.tune.evaluation import Evaluated, SweepEvaluation, SweepReport
from eatss.tune.points import SELECTING, Value
from eatss.tune.population import Figures, Population, convex_hull, is_choice, known
from eatss.tune.rows import Row
from eatss.tune.standing import PredictionCheck

LISTED = 100
"""So many of the thriftiest and of the fastest variants are listed."""


@frozen
class Table:
    """Rows under titles, for a page and for a terminal; ``name`` is for addresses in the page."""

    name: str
    title: str
    note: str
    titles: Names
    rows: tuple[Names, ...]

    @property
    def columns(self) -> Names:
        """The titles without how cells are aligned."""
        return tuple(title.removeprefix(">") for title in self.titles)


def _tables(template: str, **names: Any) -> tuple[Table, ...]:
    """Return the tables of a template: a line ``# NAME: TITLE``, one of what to know, and rows."""
    found: list[dict[str, Any]] = []
    for line in lines_of(template, names):
        cells = tuple(cell.plain.replace(BAR, "|") for cell in cells_of(line))
        if line.startswith("# "):
            name, _, title = line[2:].partition(": ")
            found.append({"name": name, "title": title, "note": "", "titles": (), "rows": ()})
        elif line.startswith("||"):
            found[-1]["titles"] = cells[2:]
        elif line.startswith("|"):
            found[-1]["rows"] += (cells[1:],)
        else:
            found[-1]["note"] += line
    return tuple(Table(**one) for one in found)


def all_tables(found: Evaluated) -> tuple[Table, ...]:
    """Return the tables of a sweep that have a row, in the order of the page."""
    rows = _measured(found.found)
    rows.sort(key=lambda row: float("inf") if row["energy_j"] is None else row["energy_j"])
    fastest = sorted(rows, key=itemgetter("time_s"))[:LISTED]
    variants = [row for place, row in enumerate(rows) if place < LISTED or row in fastest]
    tables = _tables(
        "sweep_tables",
        it=found.evaluation,
        found=found.found,
        frontier=_frontier(found, rows),
        variants=variants,
        listed=LISTED,
        names=[*dict.fromkeys(name for row in variants for name in row["point"])],
    )
    return tuple(table for table in tables if table.rows)


def shown_tables(found: SweepEvaluation) -> tuple[Table, ...]:
    """Return the tables of a sweep that a terminal shows: choices and failures."""
    nothing: dict[str, Any] = dict.fromkeys(("found", "frontier", "variants", "names"), ())
    tables = _tables("sweep_tables", it=found, listed=LISTED, **nothing)
    return tuple(table for table in tables if table.name in ("choices", "failures"))


def overall_tables(report: SweepReport) -> tuple[Table, ...]:
    """Return what ours, the fastest and the thriftiest do, by sweeps and in the mean."""
    return _tables("overall_tables", it=report)


def figures_of(sweep: SweepEvaluation) -> dict[str, Figures | None]:
    """Return the figures of each choice."""
    return {choice.name: choice.figures for choice in sweep.choices}


def regret_of(prediction: PredictionCheck, top: int) -> float | None:
    """Return how far the best of the first of a model is from the best of all."""
    return {each.tried: each.regret for each in prediction.regrets}.get(top)


def _frontier(found: Evaluated, rows: list[JsonObject]) -> list[JsonObject]:
    """Return the corners of the hull and the Pareto front [BEAST, Table II]."""
    one, trade = found.found, found.evaluation.trade_off
    corners = {one.rows[k].variant for k in convex_hull(one.performance, one.efficiency)}
    front = set() if trade is None else set(trade.pareto)
    marked = [
        row | {"corner": row["row"].variant in corners, "front": row["row"].variant in front}
        for row in sorted(rows, key=itemgetter("performance"), reverse=True)
    ]
    return [row for row in marked if row["corner"] or row["front"]]


def _measured(found: Population) -> list[JsonObject]:
    """Return what was measured: a row, its figures, and its values by name."""
    names = ("time_s", "energy_j", "power_w", "performance", "efficiency")
    return [
        {name: known(getattr(found, name)[place]) for name in names}
        | {"row": row, "point": _values(row), "decided": row.decided if _selects(row) else ""}
        for place, row in enumerate(found.rows)
    ]


def _values(row: Row) -> dict[str, Value]:
    """Return the values of a row as they are written in the space; none of a choice."""
    return {} if is_choice(row.values) else {name: str(value) for name, value in row.values}


def point(one: Row | Figures) -> str:
    """Return a point on one line, ``tile_i=64 tile_j=32``; of a choice what it decided."""
    return one.decided if one.decided and is_choice(one.values) else equations(one.values, " ")


def _selects(row: Row) -> bool:
    """Tell whether values do not say the sizes themselves: a choice, or a model that chooses."""
    return is_choice(row.values) or any(name in SELECTING for name, _ in row.values)


def heading(found: SweepEvaluation) -> str:
    """Return what was measured on what, ``gemm, double, cuda, on NVIDIA H200``."""
    one = found.identity
    return f"{one.program}, {one.dtype}, {one.target}, on {one.card}"


def sentences(found: SweepEvaluation) -> list[str]:
    """Return the summary, what matters most first."""
    return list(map(str, page("sentences", it=found)))


def report_text(report: SweepReport) -> str:
    """Return the summary of one sweep or several for people."""
    return render(*page("report", it=report))
