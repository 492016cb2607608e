"""A sweep in tables, for the page and for the terminal alike, and in sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from eatss.report.render import (
    Cell,
    Table,
    apart,
    counted,
    equations,
    figure,
    headed,
    render,
    table_of,
)
from eatss.tune.evaluation import TARGETS, Evaluated, SweepEvaluation, SweepReport
from eatss.tune.points import SELECTING, Values
from eatss.tune.population import Figures, convex_hull, is_choice, known, size_words
from eatss.tune.rows import Row
from eatss.tune.standing import TOPS, ChoiceName, MeanRatios

LISTED = 100
"""So many of the thriftiest and of the fastest variants are listed."""


def all_tables(found: Evaluated) -> tuple[Table, ...]:
    """Return the tables of a sweep that have a row, in the order of the page."""
    first, *others = _evaluation_tables(found.evaluation)
    tables = (first, frontier_table(found), weighted_table(found), variants_table(found), *others)
    return tuple(table for table in tables if table.rows)


def _evaluation_tables(found: SweepEvaluation) -> Iterator[Table]:
    yield choices_table(found)
    yield correlations_table(found)
    yield splits_table(found)
    yield sizes_table(found)
    yield table_of(
        "predictions",
        [
            {"check": one, "regrets": {x.tried: x.regret for x in one.regrets}}
            for one in found.predictions
        ],
        ("objective", "", "check.objective"),
        ("variants", "", "check.samples"),
        ("ρ", "", "check.spearman"),
        ("median ratio", "", "check.ratio"),
        ("lower quartile", "", "check.low"),
        ("upper quartile", "", "check.high"),
        *((f"regret of {top}", "%", ("regrets", top)) for top in TOPS),
        title="The model against the measurement",
        note="ρ is the rank correlation of predicted and measured; the ratio is predicted over "
        "measured, with its quartiles. Regret: how far the best of the model's first 1, 5, 10 and "
        "20 is from the best of all.",
    )
    yield table_of(
        "cards",
        found.cards,
        ("card", "", "uuid"),
        ("variants", "", "rows"),
        ("references", "", "references"),
        ("used", "", "used"),
        ("drift of time", "%", "time_drift.change"),
        ("± time", "%", "time_drift.error"),
        title="Cards",
        note="Rows of one card count: of the one with the most measured variants.",
    )
    yield failures_table(found)


def choices_table(found: SweepEvaluation) -> Table:
    """Return the table beside Fig. 7 of EATSS, with ranks."""
    return table_of(
        "choices",
        found.choices,
        ("choice", "", "name"),
        ("time", "ms", "figures.time_s"),
        ("energy", "J", "figures.energy_j"),
        ("power", "W", "figures.power_w"),
        (found.performance_unit, "", "figures.performance"),
        (found.efficiency_unit, "", "figures.efficiency"),
        ("rank by speed", "", "by_performance.rank"),
        ("percentile by speed", "", "by_performance.percentile"),
        ("of the fastest", "%", "by_performance.share_of_best"),
        ("rank by PPW", "", "by_efficiency.rank"),
        ("percentile by PPW", "", "by_efficiency.percentile"),
        ("of the best PPW", "%", "by_efficiency.share_of_best"),
        ("variant", "", lambda one: one.reason if one.figures is None else _point(one.figures)),
        title="Choices",
        note="Rank 1 is the best; the percentile is the share of variants that are worse. PPW is "
        f"{found.efficiency_unit}, and orders variants as energy does.",
    )


def means_table(means: Sequence[MeanRatios]) -> Table:
    """Return geometric means over sweeps."""
    return table_of(
        "means",
        means,
        ("choice", "", "choice"),
        ("over", "", "over"),
        ("sweeps", "", "sweeps"),
        ("speed-up", "", "speedup"),
        ("with energy", "", "sweeps_with_energy"),
        ("energy", "", "energy"),
        ("PPW", "", "ppw"),
        title="Geometric means over sweeps",
        note="Speed-up and PPW above 1 are better, energy below 1. Each ratio is over the sweeps "
        "that have both choices.",
    )


def programs_table(sweeps: Sequence[SweepEvaluation]) -> Table:
    """Return one row a sweep: what ours, the fastest and the thriftiest do against the default."""
    names: tuple[ChoiceName, ...] = ("ours", "fastest", "least energy")
    rows = []
    for one in sweeps:
        figures = {choice.name: choice.figures for choice in one.choices}
        default = figures.get("default")
        over = {
            name: mine.over(default)
            for name in names
            if (mine := figures.get(name)) is not None and default is not None
        }
        rows.append({"sweep": one, "over": over})
    return table_of(
        "programs",
        rows,
        ("program", "", "sweep.identity.program"),
        ("card", "", "sweep.identity.card"),
        ("variants", "", "sweep.variants"),
        *(
            (f"{name}: {what}", "", ("over", name, place))
            for name in names
            for place, what in enumerate(("speed-up", "energy"))
        ),
        ("energy wasted by speed alone", "%", "sweep.trade_off.energy_wasted"),
        ("time lost by energy alone", "%", "sweep.trade_off.time_lost"),
        title="Programs",
        note="Ratios to the default: speed-up above 1 and energy below 1 are better.",
    )


def frontier_table(found: Evaluated) -> Table:
    """Return the corners of the hull and the Pareto front [BEAST, Table II]."""
    one, trade = found.found, found.evaluation.trade_off
    corners = set(convex_hull(one.performance, one.efficiency))
    front = set() if trade is None else set(trade.pareto)
    rows = [
        (
            float(one.performance[k]),
            float(one.efficiency[k]),
            k in corners,
            row.variant in front,
            _point(row),
        )
        for k, row in enumerate(one.rows)
        if k in corners or row.variant in front
    ]
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
    rows = {row.variant: row for row in found.found.rows}
    return table_of(
        "weighted",
        () if trade is None else trade.weighted,
        ("α from", "", "alpha_low"),
        ("α to", "", "alpha_high"),
        ("time", "ms", lambda one: rows[one.variant].time_s),
        ("energy", "J", lambda one: rows[one.variant].energy_j),
        ("variant", "", lambda one: _point(rows[one.variant])),
        title="The best variant for each weight of time",
        note="It has the least α·t/t* + (1 − α)·e/e*, where t* and e* are the least time and the "
        "least energy: α = 0 is energy alone, 1 is time alone.",
    )


def variants_table(found: Evaluated) -> Table:
    """Return the thriftiest and the fastest variants, ``LISTED`` of each."""
    one = found.found
    places = range(len(one))
    order = sorted(places, key=lambda k: one.rows[k].energy_j or float("inf"))
    by_speed = sorted(places, key=lambda k: one.rows[k].time_s or 0.0)
    kept = {*order[:LISTED], *by_speed[:LISTED]}
    points = [dict(row.values) for row in one.rows if not is_choice(row.values)]
    names = dict.fromkeys(name for point in points for name in point)
    decides = any(row.decided and _is_selected(row.values) for row in one.rows)
    rows = [
        {
            "row": row,
            "power": known(one.power_w[k]),
            "performance": known(one.performance[k]),
            "efficiency": known(one.efficiency[k]),
            "status": "" if row.status == "ok" else row.status,
            "stage": "" if row.stage == "first" else row.stage,
            "decided": row.decided if _is_selected(row.values) else "",
            "values": {name: _spelled(value) for name, value in row.values},
        }
        for k, row in ((k, one.rows[k]) for k in order if k in kept)
    ]
    return table_of(
        "variants",
        rows,
        ("role", "", "row.role"),
        ("time", "ms", "row.time_s"),
        ("energy", "J", "row.energy_j"),
        ("power", "W", "power"),
        (one.performance_unit, "", "performance"),
        (one.efficiency_unit, "", "efficiency"),
        ("status", "", "status"),
        ("stage", "", "stage"),
        *([("decided", "", "decided")] if decides else []),
        *((name, "", ("values", name)) for name in names),
        title="Variants",
        note="Sorted by energy."
        if len(rows) == len(one)
        else f"The {LISTED} of least energy and the {LISTED} fastest of {len(one)}; "
        "'eatss results export' writes all.",
    )


def correlations_table(found: SweepEvaluation) -> Table:
    """Return Pearson's and Spearman's coefficients of each metric with each target."""
    rows: dict[str, dict[str, object]] = {}
    for one in found.correlations:
        row = rows.setdefault(one.metric, {"metric": one.metric, "samples": one.samples})
        row |= {one.target: one, f"{one.target} interval": (one.low, one.high)}
    return table_of(
        "correlations",
        tuple(rows.values()),
        ("metric", "", "metric"),
        ("variants", "", "samples"),
        *(
            column
            for target in TARGETS
            for column in (
                (f"{target}: r", "", f"{target}.pearson"),
                (f"{target}: 95 %", "", f"{target} interval"),
                (f"{target}: ρ", "", f"{target}.spearman"),
            )
        ),
        title="Correlations",
        note="r is Pearson's coefficient with its 95 % interval, ρ Spearman's. Of twenty metrics "
        "that go with nothing, one has an interval without 0.",
    )


def splits_table(found: SweepEvaluation) -> Table:
    """Return the fastest variant at each split and warp fraction against the default."""
    return table_of(
        "splits",
        found.split_study,
        ("split", "", lambda one: _spelled(one.split)),
        ("warp fraction", "", lambda one: _spelled(one.warp_fraction)),
        ("variants", "", "variants"),
        ("speed-up", "", "speedup"),
        ("energy", "", "energy"),
        title="Split of shared memory and warp fraction",
        note="The fastest variant of each, over the default.",
    )


def sizes_table(found: SweepEvaluation) -> Table:
    """Return the choices over problem sizes."""
    return table_of(
        "sizes",
        found.size_study,
        ("sizes", "", lambda one: size_words(one.sizes)),
        ("choice", "", "choice"),
        ("time", "ms", "figures.time_s"),
        ("energy", "J", "figures.energy_j"),
        ("power", "W", "figures.power_w"),
        (found.performance_unit, "", "figures.performance"),
        (found.efficiency_unit, "", "figures.efficiency"),
        title="Problem sizes",
        note="The fastest is listed where ten variants or more were measured.",
    )


def failures_table(found: SweepEvaluation, width: int | None = None) -> Table:
    """Return why variants failed; examples are no longer than ``width`` characters."""
    return table_of(
        "failures",
        found.failures,
        ("status", "", "status"),
        ("variants", "", "variants"),
        ("for example", "", lambda one: _shortened(one.example, width) if width else one.example),
        title="What failed",
        note="Reasons that differ in numbers alone are counted together.",
    )


def _shortened(text: str, width: int) -> str:
    return textwrap.shorten(text, width, placeholder=" …")


def _point(one: Row | Figures) -> str:
    """Return a point on one line, ``tile_i=64 tile_j=32``; of a choice what it decided."""
    return one.decided if one.decided and is_choice(one.values) else equations(one.values)


def _is_selected(values: Values) -> bool:
    """Tell whether values do not say the sizes themselves: a choice, or a model that chooses."""
    return is_choice(values) or any(name in SELECTING for name, _ in values)


def _spelled(value: Cell) -> Cell:
    return str(value) if isinstance(value, bool | float) else value


def heading(found: SweepEvaluation) -> str:
    """Return what was measured on what, ``gemm, double, cuda, on NVIDIA H200``."""
    one = found.identity
    return f"{one.program}, {one.dtype}, {one.target}, on {one.card}"


def sentences(found: SweepEvaluation) -> Iterator[str]:
    """Yield the summary, what matters most first."""
    failed = found.tried - found.variants
    at = f" at {size_words(found.sizes)}" if found.sizes else ""
    yield (
        f"{found.variants} of {found.tried} variants were measured{at}; "
        + (f"{failed} failed or were rejected" if failed else "none failed")
        + (f"; the times of {found.unstable} are unstable." if found.unstable else ".")
    )
    if not found.variants:
        yield "Nothing was measured, so there is nothing to compare."
        return
    if sizes := len({one.sizes for one in found.size_study}):
        yield f"{sizes} problem sizes were measured; the choices at each are listed below."
    yield from _trade_off(found)
    for check in found.predictions:
        first = check.regrets[0].regret
        order = "" if check.spearman is None else f" (rank correlation {check.spearman:.2f})"
        missed = "is the best" if first == 0 else f"is {_percent(first)} above the least"
        yield f"The model's first pick for {check.objective} {missed}{order}."
    if (over := found.over_limit) is not None:
        yield (
            f"{over.variants} of the variants drew more than the card's limit of "
            f"{figure(over.limit_w, 3)} W in their single short window. Run for longer, the card "
            "lowers its clocks to stay within the limit: these variants are then slower, and their "
            "energy differs."
        )
    if left := [one for one in found.cards if not one.used]:
        yield f"{len(left)} other cards, with {sum(one.rows for one in left)} rows, are left out."


def _trade_off(found: SweepEvaluation) -> Iterator[str]:
    trade = found.trade_off
    if trade is None:
        return
    if trade.energy_wasted == 0:
        yield "The fastest variant also takes the least energy: there is nothing to trade."
    else:
        are = "is" if trade.right_of_vertical == 1 else "are"
        yield (
            f"Choosing for speed alone wastes {_percent(trade.energy_wasted)} of energy, choosing "
            f"for energy alone loses {_percent(trade.time_lost)} of time. "
            f"{counted(trade.right_of_vertical, 'variant')} {are} faster than the one of least "
            f"energy, {trade.above_horizontal} thriftier than the fastest, {trade.upper_right} "
            "both."
        )
    if trade.equal_speed is not None and trade.equal_speed.ratio > 1:
        yield (
            "Among equally fast variants (within 1 %), energy differs by a factor of up to "
            f"{figure(trade.equal_speed.ratio, 3)}."
        )


def _percent(share: float) -> str:
    return f"{figure(100 * share, 2 if share >= 0.01 else 1)} %"


WIDTH = 78


def report_text(report: SweepReport) -> str:
    """Return the summary of one sweep or several for people, 80 columns wide."""
    several = [headed(f"{len(report.sweeps)} sweeps"), means_table(report.means).listing()]
    return render(
        *apart(*map(evaluation_parts, report.sweeps), several if len(report.sweeps) > 1 else [])
    )


def evaluation_parts(found: SweepEvaluation) -> list[RenderableType]:
    """Return what is told of one sweep, part by part."""
    summary = (
        Text(textwrap.fill(one, WIDTH, initial_indent="  ", subsequent_indent="    "))
        for one in sentences(found)
    )
    rates = (found.performance_unit, found.efficiency_unit)
    columns = {
        "choice": "choice",
        "sizes": "size",
        "time in ms": "ms",
        "energy in J": "J",
        "power in W": "W",
        **dict(zip(rates, rates, strict=True)),
        "rank by speed": "speed rank",
        "rank by PPW": "PPW rank",
        "status": "failed",
        "variants": "variants",
        "for example": "for example",
    }
    tables = (choices_table(found), sizes_table(found), failures_table(found, 40))
    return apart(
        [headed(heading(found)), *summary],
        *([table.listing(columns)] for table in tables if table.rows),
    )
