"""Tables of an evaluated sweep, for the page, for CSV and for the terminal alike."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from operator import attrgetter
from typing import TypeAlias

from eatss.base.frozen import frozen
from eatss.report.render import figure
from eatss.tune.evaluation.correlations import TARGETS, of_target
from eatss.tune.evaluation.frontier import convex_hull
from eatss.tune.evaluation.population import is_choice, size_words
from eatss.tune.evaluation.standing import Choice, MeanRatios, Standing
from eatss.tune.evaluation.sweep_evaluation import Evaluated, SweepEvaluation
from eatss.tune.evaluation.tradeoff import Figures, known
from eatss.tune.point import Values
from eatss.tune.space.nouns import SELECTING
from eatss.tune.store.nouns import Row

Cell: TypeAlias = str | int | float | None

LISTED = 100
"""So many of the thriftiest and of the fastest variants are listed; CSV has all."""


@frozen
class Table:
    """A table: ``name`` for files, a title, a sentence, names of columns with units, rows."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def csv(self) -> str:
        """The table as CSV; what has no value is empty."""
        return csv_of(self.columns, self.rows)


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as CSV, numbers with six digits."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        [f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows
    )
    return text.getvalue()


def cell_text(cell: Cell) -> str:
    """Return a cell as people read it; "" for nothing."""
    if isinstance(cell, float):
        return f"{cell:.1e}" if 0 < abs(cell) < 1e-4 else figure(cell)
    return "" if cell is None else str(cell)


def point_text(one: Row | Figures) -> str:
    """Return a point on one line, ``tile_i=64 tile_j=32``; of a choice what it decided."""
    if one.decided and is_choice(one.values):
        return one.decided
    return " ".join(f"{name}={value}" for name, value in one.values)


def all_tables(found: Evaluated) -> tuple[Table, ...]:
    """Return the tables of a sweep that have a row."""
    first, *others = of_numbers(found.evaluation)
    listed = (first, frontier_table(found), weighted_table(found), variants_table(found), *others)
    return tuple(table for table in listed if table.rows)


def of_numbers(found: SweepEvaluation) -> Iterator[Table]:
    """Yield the tables of the numbers of a sweep, in the order of the page."""
    speed, thrift = found.performance_unit, found.efficiency_unit
    yield choices_table(found)
    yield Table(
        name="influences",
        title="What decides",
        note="Share of the variance of log time and log energy that a value explains alone, less "
        "what as many levels explain by chance (ε²).",
        columns=("value", "levels", "% of time", "% of energy"),
        rows=tuple(
            (one.value, one.levels, _percent(one.time), _percent(one.energy))
            for one in found.influences
        ),
    )
    yield _correlations(found)
    yield Table(
        name="movers",
        title="Movers",
        note="Metrics that go otherwise with efficiency than with performance. Clear: the two "
        "intervals do not overlap.",
        columns=(
            "metric", "r with performance", "r with efficiency", "change", "place by performance",
            "place by efficiency", "clear",
        ),
        rows=tuple(
            (
                one.metric, one.performance, one.efficiency, one.efficiency - one.performance,
                one.rank_by_performance, one.rank_by_efficiency, "yes" if one.clear else "no",
            )
            for one in found.movers
        ),
    )  # fmt: skip
    yield Table(
        name="mean-splits",
        title="Above and below the mean of a metric",
        note="Means of performance and efficiency on each side.",
        columns=(
            "metric", "mean", "above", "below", f"above: {speed}", f"below: {speed}",
            f"above: {thrift}", f"below: {thrift}",
        ),
        rows=_rows(
            found.mean_splits, "metric", "mean", "above", "below", "performance_above",
            "performance_below", "efficiency_above", "efficiency_below",
        ),
    )  # fmt: skip
    yield split_study_table(found)
    yield sizes_table(found)
    tops = (1, 5, 10, 20)
    regrets = [{one.tried: 100 * one.regret for one in c.regrets} for c in found.predictions]
    yield Table(
        name="predictions",
        title="The model against the measurement",
        note="ρ is the rank correlation of predicted and measured; the ratio is predicted over "
        "measured, with its quartiles. Regret: how far the best of the model's first 1, 5, 10 and "
        "20 is from the best of all.",
        columns=(
            "objective", "variants", "ρ", "median ratio", "lower quartile", "upper quartile",
            *(f"% regret of {top}" for top in tops),
        ),
        rows=tuple(
            (
                one.objective, one.samples, one.spearman, one.ratio, one.low, one.high,
                *map(own.get, tops),
            )
            for one, own in zip(found.predictions, regrets, strict=True)
        ),
    )  # fmt: skip
    yield _cards(found)
    yield failures_table(found)


def choices_table(found: SweepEvaluation) -> Table:
    """Return the table beside Fig. 7 of EATSS, with ranks."""
    speed, thrift = found.performance_unit, found.efficiency_unit
    return Table(
        name="choices",
        title="Choices",
        note="Rank 1 is the best; the percentile is the share of variants that are worse. PPW is "
        f"{thrift}, and orders variants as energy does.",
        columns=(
            "choice", "time in ms", "energy in J", "power in W", speed, thrift,
            "rank by speed", "percentile by speed", "% of the fastest", "rank by PPW",
            "percentile by PPW", "% of the best PPW", "variant",
        ),
        rows=tuple(map(_choice, found.choices)),
    )  # fmt: skip


def _choice(choice: Choice) -> tuple[Cell, ...]:
    one = choice.figures
    if one is None:
        return (choice.name, *[None] * 11, choice.reason)

    def standing(place: Standing | None) -> tuple[Cell, ...]:
        if place is None:
            return None, None, None
        return place.rank, place.percentile, 100 * place.share_of_best

    return (
        choice.name, one.time_s * 1e3, one.energy_j, one.power_w, one.performance, one.efficiency,
        *standing(choice.by_performance), *standing(choice.by_efficiency), point_text(one),
    )  # fmt: skip


def means_table(means: Sequence[MeanRatios]) -> Table:
    """Return geometric means over sweeps."""
    return Table(
        name="means",
        title="Geometric means over sweeps",
        note="Speed-up and PPW above 1 are better, energy below 1. Each ratio is over the sweeps "
        "that have both choices.",
        columns=("choice", "over", "sweeps", "speed-up", "with energy", "energy", "PPW"),
        rows=_rows(
            means, "choice", "over", "sweeps", "speedup", "sweeps_with_energy", "energy", "ppw"
        ),
    )


def programs_table(sweeps: Sequence[SweepEvaluation]) -> Table:
    """Return one row a sweep: what ours, the fastest and the thriftiest do against the default."""
    names = ("ours", "fastest", "least energy")
    rows = []
    for one in sweeps:
        by_name: dict[str, Figures | None] = {c.name: c.figures for c in one.choices}
        cells: list[Cell] = [one.identity.program, one.identity.card, one.variants]
        default = by_name.get("default")
        for name in names:
            mine = by_name.get(name)
            both = None if mine is None or default is None else mine.over(default)
            cells += (None, None) if both is None else both
        trade = one.trade_off
        lost = (None, None) if trade is None else (trade.energy_wasted, trade.time_lost)
        rows.append((*cells, *map(_percent, lost)))
    return Table(
        name="programs",
        title="Programs",
        note="Ratios to the default: speed-up above 1 and energy below 1 are better.",
        columns=(
            "program", "card", "variants",
            *(f"{name}: {what}" for name in names for what in ("speed-up", "energy")),
            "% energy wasted by speed alone", "% time lost by energy alone",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def frontier_table(found: Evaluated) -> Table:
    """Return the corners of the hull and the Pareto front [BEAST, Table II]."""
    one, trade = found.found, found.evaluation.trade_off
    corners = set(convex_hull(one.performance, one.efficiency))
    front = set() if trade is None else set(trade.pareto)
    rows = [
        (
            float(one.performance[k]), float(one.efficiency[k]), "yes" if k in corners else "",
            "yes" if row.variant in front else "", point_text(row),
        )
        for k, row in enumerate(one.rows)
        if k in corners or row.variant in front
    ]  # fmt: skip
    return Table(
        name="frontier",
        title="Corners of the hull and the Pareto front",
        note="A variant on the front is beaten by no other in both performance and efficiency.",
        columns=(one.performance_unit, one.efficiency_unit, "corner", "front", "variant"),
        rows=tuple(sorted(rows, reverse=True)),
    )


def weighted_table(found: Evaluated) -> Table:
    """Return the best variant for each weight of time."""
    trade = found.evaluation.trade_off
    by_variant = {row.variant: row for row in found.found.rows}
    weighted = () if trade is None else trade.weighted
    best = [(one, by_variant[one.variant]) for one in weighted]
    return Table(
        name="weighted",
        title="The best variant for each weight of time",
        note="It has the least α·t/t* + (1 − α)·e/e*, where t* and e* are the least time and the "
        "least energy: α = 0 is energy alone, 1 is time alone.",
        columns=("α from", "α to", "time in ms", "energy in J", "variant"),
        rows=tuple(
            (one.alpha_low, one.alpha_high, _ms(row), row.energy_j, point_text(row))
            for one, row in best
        ),
    )


def variants_table(found: Evaluated, most: int | None = LISTED) -> Table:
    """Return the thriftiest and the fastest variants, ``most`` of each; ``None`` for all."""
    one = found.found
    places = range(len(one))
    order = sorted(places, key=lambda k: one.rows[k].energy_j or float("inf"))
    by_speed = sorted(places, key=lambda k: one.rows[k].time_s or 0.0)
    kept = {*order[:most], *by_speed[:most]}
    decides = any(row.decided and _is_selected(row.values) for row in one.rows)
    points = [row for row in one.rows if not is_choice(row.values)]
    names = dict.fromkeys(name for row in points for name, _ in row.values)
    metrics: dict[str, None] = {}
    if most is None:
        metrics = dict.fromkeys(name for row in one.rows for name, _ in row.metrics)
    rows = []
    for k in order:
        if k in kept:
            row = one.rows[k]
            point, numbers = dict(row.values), dict(row.metrics)
            decided = row.decided if _is_selected(row.values) else ""
            cells = (
                row.role, _ms(row), row.energy_j, known(one.power_w[k]), known(one.performance[k]),
                known(one.efficiency[k]), row.status if row.status != "ok" else "",
                row.stage if row.stage != "first" else "", *((decided,) if decides else ()),
                *(_spelled(point.get(name)) for name in names), *map(numbers.get, metrics),
            )  # fmt: skip
            rows.append(cells)
    note = "Sorted by energy."
    if len(rows) < len(one):
        note = (
            f"The {most} of least energy and the {most} fastest of {len(one)}; all of them are in "
            "the CSV of all variants."
        )
    return Table(
        name="variants",
        title="Variants",
        note=note,
        columns=(
            "role", "time in ms", "energy in J", "power in W", one.performance_unit,
            one.efficiency_unit, "status", "stage", *(("decided",) if decides else ()), *names,
            *metrics,
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _is_selected(values: Values) -> bool:
    """Tell whether values do not say the sizes themselves: a choice, or a model that chooses."""
    return is_choice(values) or any(name in SELECTING for name, _ in values)


def _correlations(found: SweepEvaluation) -> Table:
    """Return Pearson's and Spearman's coefficients with each target."""
    by_target = [
        {one.metric: one for one in of_target(found.correlations, target)} for target in TARGETS
    ]
    rows = []
    for name in dict.fromkeys(one.metric for one in found.correlations):
        of_speed = by_target[0].get(name)
        cells: list[Cell] = [name, None if of_speed is None else of_speed.samples]
        for one in (own.get(name) for own in by_target):
            cells += (
                (None, None, None)
                if one is None
                else (one.pearson, f"{one.low:+.2f} to {one.high:+.2f}", one.spearman)
            )
        rows.append(tuple(cells))
    return Table(
        name="correlations",
        title="Correlations",
        note="r is Pearson's coefficient with its 95 % interval, ρ Spearman's. Of twenty metrics "
        "that go with nothing, one has an interval without 0.",
        columns=(
            "metric", "variants",
            *(f"{target}: {title}" for target in TARGETS for title in ("r", "95 %", "ρ")),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def split_study_table(found: SweepEvaluation) -> Table:
    """Return the fastest variant at each split and warp fraction against the default."""
    return Table(
        name="splits",
        title="Split of shared memory and warp fraction",
        note="The fastest variant of each, over the default.",
        columns=("split", "warp fraction", "variants", "speed-up", "energy"),
        rows=tuple(
            (*map(_spelled, (one.split, one.warp_fraction)), one.variants, one.speedup, one.energy)
            for one in found.split_study
        ),
    )


def sizes_table(found: SweepEvaluation) -> Table:
    """Return the choices over problem sizes."""
    return Table(
        name="sizes",
        title="Problem sizes",
        note="The fastest stands where ten variants or more were measured.",
        columns=(
            "sizes", "choice", "time in ms", "energy in J", "power in W", found.performance_unit,
            found.efficiency_unit,
        ),
        rows=tuple(
            (
                size_words(one.sizes), one.choice, one.time_s * 1e3, one.energy_j, one.power_w,
                one.performance, one.efficiency,
            )
            for one in found.size_study
        ),
    )  # fmt: skip


def _cards(found: SweepEvaluation) -> Table:
    """Return the cards, what they take over the base card, and how they drift."""
    rows = []
    for one in found.cards.cards:
        cells: list[Cell] = [one.uuid, one.rows, one.references, "yes" if one.used else "no"]
        for factor, bounds in (
            (one.time_factor, one.time_range),
            (one.energy_factor, one.energy_range),
        ):
            cells += factor, None if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"
        for drift in (one.time_drift, one.energy_drift):
            cells += map(_percent, (None, None) if drift is None else (drift.change, drift.error))
        rows.append(tuple(cells))
    return Table(
        name="cards",
        title="Cards",
        note=sentence(found.cards.note),
        columns=(
            "card", "variants", "references", "used", "time factor", "95 %", "energy factor",
            "95 % ", "% drift of time", "±", "% drift of energy", "± ",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def failures_table(found: SweepEvaluation) -> Table:
    """Return why variants failed."""
    return Table(
        name="failures",
        title="What failed",
        note="Reasons that differ in numbers alone are counted together.",
        columns=("status", "variants", "for example"),
        rows=_rows(found.failures, "status", "variants", "example"),
    )


def sentence(words: str) -> str:
    """Return words as a sentence."""
    return f"{words[:1].upper()}{words[1:]}."


def _rows(nouns: Iterable[object], *names: str) -> tuple[tuple[Cell, ...], ...]:
    """Return some fields of nouns, a row each."""
    return tuple(map(attrgetter(*names), nouns))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _ms(row: Row) -> float | None:
    return None if row.time_s is None else row.time_s * 1e3


def _spelled(value: Cell) -> Cell:
    return str(value) if isinstance(value, bool | float) else value
