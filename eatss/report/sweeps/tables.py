"""Tables of an evaluated sweep, for the page, for CSV and for the terminal alike."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from operator import attrgetter
from typing import TypeAlias

from eatss.evaluation.correlations import TARGETS, of_target
from eatss.evaluation.frontier import convex_hull
from eatss.evaluation.population import is_choice, size_words
from eatss.evaluation.standing import Choice, MeanRatios, Standing
from eatss.evaluation.sweep_evaluation import Evaluated, SweepEvaluation
from eatss.evaluation.tradeoff import Figures
from eatss.frozen import frozen
from eatss.point import Values
from eatss.report.render import figure
from eatss.space.decision_names import SELECTING
from eatss.store.nouns import Row

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
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def cell_text(cell: Cell) -> str:
    """Return a cell as people read it; "" for nothing."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.1e}" if 0 < abs(cell) < 1e-4 else figure(cell)
    return str(cell)


def point_text(one: Row | Figures) -> str:
    """Return a point on one line, ``tile_i=64 tile_j=32``; of a choice what it decided."""
    if one.decided and is_choice(one.values):
        return one.decided
    return " ".join(f"{name}={value}" for name, value in one.values)


def all_tables(found: Evaluated) -> tuple[Table, ...]:
    """Return the tables of a sweep that have a row."""
    one = found.evaluation
    listed = (
        choices_table(one),
        frontier_table(found),
        weighted_table(found),
        variants_table(found),
        influences_table(one),
        correlations_table(one),
        movers_table(one),
        splits_table(one),
        split_study_table(one),
        sizes_table(one),
        predictions_table(one),
        cards_table(one),
        failures_table(one),
    )
    return tuple(table for table in listed if table.rows)


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
        rows=tuple(_choice(choice) for choice in found.choices),
    )  # fmt: skip


def _choice(choice: Choice) -> tuple[Cell, ...]:
    one = choice.figures
    if one is None:
        return (choice.name, *[None] * 11, choice.reason)
    return (
        choice.name, one.time_s * 1e3, one.energy_j, one.power_w, one.performance, one.efficiency,
        *_standing(choice.by_performance), *_standing(choice.by_efficiency),
        point_text(one),
    )  # fmt: skip


def _standing(found: Standing | None) -> tuple[Cell, ...]:
    if found is None:
        return None, None, None
    return found.rank, found.percentile, 100 * found.share_of_best


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
    rows = tuple(
        (
            one.identity.program,
            one.identity.card,
            one.variants,
            *_against_default(one, "ours"),
            *_against_default(one, "fastest"),
            *_against_default(one, "least energy"),
            None if one.trade_off is None else 100 * one.trade_off.energy_wasted,
            None if one.trade_off is None else 100 * one.trade_off.time_lost,
        )
        for one in sweeps
    )
    return Table(
        name="programs",
        title="Programs",
        note="Ratios to the default: speed-up above 1 and energy below 1 are better.",
        columns=(
            "program", "card", "variants", "ours: speed-up", "ours: energy", "fastest: speed-up",
            "fastest: energy", "least energy: speed-up", "least energy: energy",
            "% energy wasted by speed alone", "% time lost by energy alone",
        ),
        rows=rows,
    )  # fmt: skip


def _against_default(found: SweepEvaluation, name: str) -> tuple[Cell, Cell]:
    by_name = {choice.name: choice.figures for choice in found.choices}
    mine, default = by_name.get(name), by_name.get("default")  # type: ignore[call-overload]
    if mine is None or default is None:
        return None, None
    energy = None
    if mine.energy_j is not None and default.energy_j is not None:
        energy = mine.energy_j / default.energy_j
    return default.time_s / mine.time_s, energy


def frontier_table(found: Evaluated) -> Table:
    """Return the corners of the hull and the Pareto front [BEAST, Table II]."""
    population = found.found
    hull = convex_hull(population.performance, population.efficiency)
    front = set() if found.evaluation.trade_off is None else set(found.evaluation.trade_off.pareto)
    places = dict.fromkeys(hull)
    places |= dict.fromkeys(k for k, row in enumerate(population.rows) if row.variant in front)
    corners = set(hull)
    rows = [
        (
            float(population.performance[k]),
            float(population.efficiency[k]),
            "yes" if k in corners else "",
            "yes" if population.rows[k].variant in front else "",
            point_text(population.rows[k]),
        )
        for k in places
    ]
    return Table(
        name="frontier",
        title="Corners of the hull and the Pareto front",
        note="A variant on the front is beaten by no other in both performance and efficiency.",
        columns=(
            found.evaluation.performance_unit, found.evaluation.efficiency_unit, "corner", "front",
            "variant",
        ),
        rows=tuple(sorted(rows, reverse=True)),
    )  # fmt: skip


def weighted_table(found: Evaluated) -> Table:
    """Return the best variant for each weight of time."""
    trade = found.evaluation.trade_off
    by_variant = {row.variant: row for row in found.found.rows}
    rows = []
    for one in () if trade is None else trade.weighted:
        row = by_variant[one.variant]
        time_ms = None if row.time_s is None else row.time_s * 1e3
        rows.append((one.alpha_low, one.alpha_high, time_ms, row.energy_j, point_text(row)))
    return Table(
        name="weighted",
        title="The best variant for each weight of time",
        note="It has the least α·t/t* + (1 − α)·e/e*, where t* and e* are the least time and the "
        "least energy: α = 0 is energy alone, 1 is time alone.",
        columns=("α from", "α to", "time in ms", "energy in J", "variant"),
        rows=tuple(rows),
    )


def variants_table(found: Evaluated, most: int | None = LISTED) -> Table:
    """Return the thriftiest and the fastest variants, ``most`` of each; ``None`` for all."""
    population = found.found
    order = sorted(
        range(len(population)), key=lambda k: population.rows[k].energy_j or float("inf")
    )
    by_speed = sorted(range(len(population)), key=lambda k: population.rows[k].time_s or 0.0)
    kept = set(order) if most is None else {*order[:most], *by_speed[:most]}
    points = [row for row in population.rows if not is_choice(row.values)]
    decides = any(row.decided and _is_selected(row.values) for row in population.rows)
    names = dict.fromkeys(name for row in points for name, _ in row.values)
    metrics: dict[str, None] = {}
    if most is None:
        metrics = dict.fromkeys(name for row in population.rows for name, _ in row.metrics)
    rows = []
    for k in order:
        if k not in kept:
            continue
        row = population.rows[k]
        point, numbers = dict(row.values), dict(row.metrics)
        rows.append(
            (
                row.role,
                None if row.time_s is None else row.time_s * 1e3,
                row.energy_j,
                _known(population.power_w[k]),
                _known(population.performance[k]),
                _known(population.efficiency[k]),
                row.status if row.status != "ok" else "",
                row.stage if row.stage != "first" else "",
                *((row.decided if _is_selected(row.values) else "",) if decides else ()),
                *(_spelled(point.get(name)) for name in names),
                *(numbers.get(name) for name in metrics),
            )
        )
    return Table(
        name="variants",
        title="Variants",
        note="Sorted by energy."
        if most is None or len(rows) == len(population)
        else f"The {most} of least energy and the {most} fastest of {len(population)}; all of them "
        "are in the CSV of all variants.",
        columns=(
            "role", "time in ms", "energy in J", "power in W",
            found.evaluation.performance_unit, found.evaluation.efficiency_unit, "status", "stage",
            *(("decided",) if decides else ()), *names, *metrics,
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _is_selected(values: Values) -> bool:
    """Tell whether values do not say the sizes themselves: a choice, or a model that chooses."""
    return is_choice(values) or any(name in SELECTING for name, _ in values)


def correlations_table(found: SweepEvaluation) -> Table:
    """Return Pearson's and Spearman's coefficients with each target."""
    by_target = {
        target: {one.metric: one for one in of_target(found.correlations, target)}
        for target in TARGETS
    }
    names = dict.fromkeys(one.metric for one in found.correlations)
    rows = []
    for name in names:
        cells: list[Cell] = [name]
        for target in TARGETS:
            one = by_target[target].get(name)
            if target == "performance":
                cells.append(None if one is None else one.samples)
            interval = None if one is None else f"{one.low:+.2f} to {one.high:+.2f}"
            cells += [
                None if one is None else one.pearson,
                interval,
                None if one is None else one.spearman,
            ]
        rows.append(tuple(cells))
    titles = ("r", "95 %", "ρ")
    return Table(
        name="correlations",
        title="Correlations",
        note="r is Pearson's coefficient with its 95 % interval, ρ Spearman's. Of twenty metrics "
        "that go with nothing, one has an interval without 0.",
        columns=(
            "metric",
            "variants",
            *(f"{target}: {title}" for target in TARGETS for title in titles),
        ),
        rows=tuple(rows),
    )


def movers_table(found: SweepEvaluation) -> Table:
    """Return metrics that go otherwise with efficiency than with performance."""
    return Table(
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


def splits_table(found: SweepEvaluation) -> Table:
    """Return what variants above and below a metric's mean reach on average."""
    return Table(
        name="mean-splits",
        title="Above and below the mean of a metric",
        note="Means of performance and efficiency on each side.",
        columns=(
            "metric", "mean", "above", "below",
            f"above: {found.performance_unit}", f"below: {found.performance_unit}",
            f"above: {found.efficiency_unit}", f"below: {found.efficiency_unit}",
        ),
        rows=_rows(
            found.mean_splits, "metric", "mean", "above", "below", "performance_above",
            "performance_below", "efficiency_above", "efficiency_below",
        ),
    )  # fmt: skip


def influences_table(found: SweepEvaluation) -> Table:
    """Return how much of the variance each value of the space explains."""
    return Table(
        name="influences",
        title="What decides",
        note="Share of the variance of log time and log energy that a value explains alone, less "
        "what as many levels explain by chance (ε²).",
        columns=("value", "levels", "% of time", "% of energy"),
        rows=tuple(
            (
                one.value,
                one.levels,
                100 * one.time,
                None if one.energy is None else 100 * one.energy,
            )
            for one in found.influences
        ),
    )


def split_study_table(found: SweepEvaluation) -> Table:
    """Return the fastest variant at each split and warp fraction against the default."""
    return Table(
        name="splits",
        title="Split of shared memory and warp fraction",
        note="The fastest variant of each, over the default.",
        columns=("split", "warp fraction", "variants", "speed-up", "energy"),
        rows=tuple(
            (
                _spelled(one.split),
                _spelled(one.warp_fraction),
                one.variants,
                one.speedup,
                one.energy,
            )
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


def predictions_table(found: SweepEvaluation) -> Table:
    """Return how well the model orders variants."""
    rows: list[tuple[Cell, ...]] = []
    for one in found.predictions:
        regrets = {regret.tried: 100 * regret.regret for regret in one.regrets}
        rows.append(
            (
                one.objective, one.samples, one.spearman, one.ratio, one.low, one.high,
                *(regrets.get(tried) for tried in (1, 5, 10, 20)),
            )
        )  # fmt: skip
    return Table(
        name="predictions",
        title="The model against the measurement",
        note="ρ is the rank correlation of predicted and measured; the ratio is predicted over "
        "measured, with its quartiles. Regret: how far the best of the model's first 1, 5, 10 and "
        "20 is from the best of all.",
        columns=(
            "objective", "variants", "ρ", "median ratio", "lower quartile", "upper quartile",
            "% regret of 1", "% regret of 5", "% regret of 10", "% regret of 20",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def cards_table(found: SweepEvaluation) -> Table:
    """Return the cards, what they take over the base card, and how they drift."""
    return Table(
        name="cards",
        title="Cards",
        note=f"{found.cards.note[:1].upper()}{found.cards.note[1:]}.",
        columns=(
            "card", "variants", "references", "used", "time factor", "95 %", "energy factor",
            "95 % ",
            "% drift of time", "±", "% drift of energy", "± ",
        ),
        rows=tuple(
            (
                one.uuid, one.rows, one.references, "yes" if one.used else "no", one.time_factor,
                _interval(one.time_range), one.energy_factor, _interval(one.energy_range),
                *(
                    cell
                    for drift in (one.time_drift, one.energy_drift)
                    for cell in (
                        None if drift is None else 100 * drift.change,
                        None if drift is None else 100 * drift.error,
                    )
                ),
            )
            for one in found.cards.cards
        ),
    )  # fmt: skip


def _interval(bounds: tuple[float, float] | None) -> Cell:
    return None if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"


def failures_table(found: SweepEvaluation) -> Table:
    """Return why variants failed."""
    return Table(
        name="failures",
        title="What failed",
        note="Reasons that differ in numbers alone are counted together.",
        columns=("status", "variants", "for example"),
        rows=_rows(found.failures, "status", "variants", "example"),
    )


def _rows(nouns: Iterable[object], *names: str) -> tuple[tuple[Cell, ...], ...]:
    """Return some fields of nouns, a row each."""
    return tuple(map(attrgetter(*names), nouns))


def _known(value: float) -> float | None:
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def _spelled(value: Cell) -> Cell:
    return str(value) if isinstance(value, bool | float) else value


def _plain(cell: Cell) -> str | int:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else cell
