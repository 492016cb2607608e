"""A sweep in tables, for the page and for the terminal alike, and in sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from operator import itemgetter

from eatss.base.codec import JsonObject
from eatss.base.text import equations
from eatss.report.pages import page
from eatss.report.render import (
    Columns,
    Getter,
    Table,
    render,
    table_of,
)
from eatss.tune.evaluation import TARGETS, Evaluated, SweepEvaluation, SweepReport
from eatss.tune.points import SELECTING, Value, Values
from eatss.tune.population import Figures, Population, convex_hull, is_choice, known
from eatss.tune.rows import Row
from eatss.tune.standing import TOPS, ChoiceName, MeanRatios

LISTED = 100
"""So many of the thriftiest and of the fastest variants are listed."""


def all_tables(found: Evaluated) -> tuple[Table, ...]:
    """Return the tables of a sweep that have a row, in the order of the page."""
    one = found.evaluation
    tables = (
        choices_table(one),
        frontier_table(found),
        variants_table(found),
        correlations_table(one),
        splits_table(one),
        predictions_table(one),
        cards_table(one),
        failures_table(one),
    )
    return tuple(table for table in tables if table.rows)


def _figures(of: SweepEvaluation | Population, prefix: str = "") -> Columns:
    """Return the columns of what a variant takes and reaches."""
    return {
        "time in ms": f"{prefix}time_s",
        "energy in J": f"{prefix}energy_j",
        "power in W": f"{prefix}power_w",
        of.performance_unit: f"{prefix}performance",
        of.efficiency_unit: f"{prefix}efficiency",
    }


def predictions_table(found: SweepEvaluation) -> Table:
    """Return how well each objective was predicted."""

    def regret(top: int) -> Getter:
        return lambda one: {each.tried: each.regret for each in one.regrets}.get(top)

    return table_of(
        "predictions",
        "The model against the measurement",
        found.predictions,
        {
            "objective": "objective",
            "variants": "samples",
            "ρ": "spearman",
            "median ratio": "ratio",
            "lower quartile": "low",
            "upper quartile": "high",
            **{f"% regret of {top}": regret(top) for top in TOPS},
        },
        "ρ is the rank correlation of predicted and measured; the ratio is predicted over "
        "measured, with its quartiles. Regret: how far the best of the model's first 1, 5, 10 and "
        "20 is from the best of all.",
    )


def cards_table(found: SweepEvaluation) -> Table:
    """Return the cards that rows were measured on."""
    return table_of(
        "cards",
        "Cards",
        found.cards,
        {
            "card": "uuid",
            "variants": "rows",
            "used": "used",
        },
        "Rows of one card count: of the one with the most measured variants.",
    )


def choices_table(found: SweepEvaluation) -> Table:
    """Return the table beside Fig. 7 of EATSS, with ranks."""
    return table_of(
        "choices",
        "Choices",
        found.choices,
        {
            "choice": "name",
            **_figures(found, "figures."),
            "rank by speed": "by_performance.rank",
            "rank by PPW": "by_efficiency.rank",
            "percentile by speed": "by_performance.percentile",
            "percentile by PPW": "by_efficiency.percentile",
            "% of the fastest": "by_performance.share_of_best",
            "% of the best PPW": "by_efficiency.share_of_best",
            "variant": lambda one: one.reason if one.figures is None else _point(one.figures),
        },
        "Rank 1 is the best; the percentile is the share of variants that are worse. PPW is "
        f"{found.efficiency_unit}, and orders variants as energy does.",
    )


def means_table(means: Sequence[MeanRatios]) -> Table:
    """Return geometric means over sweeps."""
    return table_of(
        "means",
        "Geometric means over sweeps",
        means,
        {
            "choice": "choice",
            "over": "over",
            "sweeps": "sweeps",
            "speed-up": "speedup",
            "with energy": "sweeps_with_energy",
            "energy": "energy",
            "PPW": "ppw",
        },
        "Speed-up and PPW above 1 are better, energy below 1. Each ratio is over the sweeps "
        "that have both choices.",
    )


def programs_table(sweeps: Sequence[SweepEvaluation]) -> Table:
    """Return one row a sweep: what ours, the fastest and the thriftiest do against the default."""

    def over(name: ChoiceName, place: int) -> Getter:
        def ratio(sweep: SweepEvaluation) -> float | None:
            figures = {choice.name: choice.figures for choice in sweep.choices}
            mine, default = figures.get(name), figures.get("default")
            return mine.over(default)[place] if mine and default else None

        return ratio

    names: tuple[ChoiceName, ...] = ("ours", "fastest", "least energy")
    return table_of(
        "programs",
        "Programs",
        sweeps,
        {
            "program": "identity.program",
            "card": "identity.card",
            "variants": "variants",
            **{
                f"{name}: {what}": over(name, place)
                for name in names
                for place, what in enumerate(("speed-up", "energy"))
            },
            "% energy wasted by speed alone": "trade_off.energy_wasted",
            "% time lost by energy alone": "trade_off.time_lost",
        },
        "Ratios to the default: speed-up above 1 and energy below 1 are better.",
    )


def frontier_table(found: Evaluated) -> Table:
    """Return the corners of the hull and the Pareto front [BEAST, Table II]."""
    one, trade = found.found, found.evaluation.trade_off
    corners = {one.rows[k].variant for k in convex_hull(one.performance, one.efficiency)}
    front = set() if trade is None else set(trade.pareto)
    rows = [row for row in _measured(one) if row["row"].variant in corners | front]
    rows.sort(key=itemgetter("performance"), reverse=True)
    return table_of(
        "frontier",
        "Corners of the hull and the Pareto front",
        rows,
        {
            one.performance_unit: "performance",
            one.efficiency_unit: "efficiency",
            "corner": lambda row: row["row"].variant in corners,
            "front": lambda row: row["row"].variant in front,
            "variant": lambda row: _point(row["row"]),
        },
        "A variant on the front is beaten by no other in both performance and efficiency.",
    )


def variants_table(found: Evaluated) -> Table:
    """Return the thriftiest and the fastest variants, ``LISTED`` of each."""

    def decided(row: JsonObject) -> str:
        return row["row"].decided if _is_selected(row["row"].values) else ""

    rows = sorted(_measured(found.found), key=lambda row: row["energy_j"] or float("inf"))
    fastest = sorted(rows, key=lambda row: row["time_s"])[:LISTED]
    kept = [row for place, row in enumerate(rows) if place < LISTED or row in fastest]
    names = dict.fromkeys(
        name for row in kept if not is_choice(row["row"].values) for name in row["values"]
    )
    return table_of(
        "variants",
        "Variants",
        kept,
        {
            "role": "row.role",
            **_figures(found.found),
            "status": lambda row: row["row"].status.removeprefix("ok"),
            "stage": lambda row: row["row"].stage.removeprefix("first"),
            **({"decided": decided} if any(map(decided, kept)) else {}),
            **{name: f"values.{name}" for name in names},
        },
        "Sorted by energy."
        if len(kept) == len(rows)
        else f"The {LISTED} of least energy and the {LISTED} fastest of {len(rows)}; "
        "'eatss results export' writes all.",
    )


def _measured(found: Population) -> list[JsonObject]:
    """Return what was measured: a row, its figures, and its values by name."""
    names = ("time_s", "energy_j", "power_w", "performance", "efficiency")
    return [
        {name: known(getattr(found, name)[place]) for name in names}
        | {"row": row, "values": {name: _spelled(value) for name, value in row.values}}
        for place, row in enumerate(found.rows)
    ]


def correlations_table(found: SweepEvaluation) -> Table:
    """Return Pearson's and Spearman's coefficients of each metric with each target."""
    rows: dict[str, JsonObject] = {}
    for one in found.correlations:
        row = rows.setdefault(one.metric, {"metric": one.metric, "samples": one.samples})
        interval = f"{one.low:.4g} to {one.high:.4g}"
        row[one.target] = {"r": one.pearson, "95 %": interval, "ρ": one.spearman}
    return table_of(
        "correlations",
        "Correlations",
        rows.values(),
        {
            "metric": "metric",
            "variants": "samples",
            **{
                f"{target}: {what}": f"{target}.{what}"
                for target in TARGETS
                for what in ("r", "95 %", "ρ")
            },
        },
        "r is Pearson's coefficient with its 95 % interval, ρ Spearman's. Of twenty metrics "
        "that go with nothing, one has an interval without 0.",
    )


def splits_table(found: SweepEvaluation) -> Table:
    """Return the fastest variant at each split and warp fraction against the default."""
    return table_of(
        "splits",
        "Split of shared memory and warp fraction",
        found.split_study,
        {
            "split": lambda one: _spelled(one.split),
            "warp fraction": lambda one: _spelled(one.warp_fraction),
            "variants": "variants",
            "speed-up": "speedup",
            "energy": "energy",
        },
        "The fastest variant of each, over the default.",
    )


def failures_table(found: SweepEvaluation, width: int = 1000) -> Table:
    """Return why variants failed; examples are no longer than ``width`` characters."""
    return table_of(
        "failures",
        "What failed",
        found.failures,
        {
            "status": "status",
            "variants": "variants",
            "for example": lambda one: textwrap.shorten(one.example, width, placeholder=" …"),
        },
        "Reasons that differ in numbers alone are counted together.",
    )


def _point(one: Row | Figures) -> str:
    """Return a point on one line, ``tile_i=64 tile_j=32``; of a choice what it decided."""
    return one.decided if one.decided and is_choice(one.values) else equations(one.values, " ")


def _is_selected(values: Values) -> bool:
    """Tell whether values do not say the sizes themselves: a choice, or a model that chooses."""
    return is_choice(values) or any(name in SELECTING for name, _ in values)


def _spelled(value: Value | None) -> Value | None:
    """Return a value of the space as it is written there; it is no figure of four digits."""
    return str(value) if isinstance(value, bool | float) else value


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
