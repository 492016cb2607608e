"""A sweep in sentences, and what ``eatss report`` prints on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.shown import energy_text, time_text
from eatss.report.measurement import counter_words
from eatss.report.render import (
    NONE,
    apart,
    counted,
    figure,
    headed,
    listing,
    milliseconds,
    render,
)
from eatss.report.sweeps.tables import sentence
from eatss.tune.evaluation.correlations import of_target
from eatss.tune.evaluation.population import size_words
from eatss.tune.evaluation.standing import Choice, ChoiceName
from eatss.tune.evaluation.sweep_evaluation import SweepEvaluation, SweepReport


def heading(found: SweepEvaluation) -> str:
    """Return what was measured on what, ``gemm, double, cuda, on NVIDIA H200``."""
    one = found.identity
    return f"{one.program}, {one.dtype}, {one.target}, on {one.card}"


def sentences(found: SweepEvaluation) -> Iterator[str]:
    """Yield the summary, what matters most first."""
    yield _counts(found)
    if not found.variants:
        yield "Nothing was measured, so there is nothing to compare."
        return
    if sizes := len({one.sizes for one in found.size_study}):
        yield f"{sizes} problem sizes were measured; choices at each of them stand below."
    yield _best(found, "fastest")
    yield _best(found, "least energy")
    yield from _trade_off(found)
    for name, who in _WHO.items():
        if (choice := found.choice(name)) is not None:
            yield f"{who} {_stands(found, choice)}."
    for check in found.predictions:
        first = check.regrets[0].regret
        order = "" if check.spearman is None else f" (rank correlation {check.spearman:.2f})"
        missed = "is the best" if first == 0 else f"is {_percent(first)} over the least"
        yield f"The model's first pick for {check.objective} {missed}{order}."
    if (over := found.over_limit) is not None:
        yield (
            f"In their one short window, {over.variants} of the variants drew more than the card's "
            f"limit of {figure(over.limit_w, 3)} W. Over a longer time a card slows down to keep "
            "it, so they look faster than they are, and their energy is another."
        )
    if len(found.cards.cards) > 1:
        yield sentence(found.cards.note)
    yield from _of_cards(found)


def _counts(found: SweepEvaluation) -> str:
    failed = found.tried - found.variants
    at = f" at {size_words(found.sizes)}" if found.sizes else ""
    text = f"{found.variants} of {found.tried} variants were measured{at}; "
    text += f"{failed} failed or were rejected" if failed else "none failed"
    if found.unstable:
        text += f"; of {found.unstable} the times vary more than they should"
    return f"{text}."


_WHO: dict[ChoiceName, str] = {
    "ours": "The choice of eatss",
    "paper": "The paper's choice",
    "default": "The default",
}


def _best(found: SweepEvaluation, name: ChoiceName) -> str:
    """Return what the fastest or the thriftiest variant takes, beside the default."""
    choice, usual = found.choice(name), found.choice("default")
    best = None if choice is None else choice.figures
    default = None if usual is None else usual.figures
    if best is None:
        return "Energy was not measured."
    if name == "fastest":
        text = f"The fastest variant takes {time_text(best.time_s)} "
        text += f"({figure(best.performance)} {found.performance_unit})"
    else:
        text = f"The variant of least energy takes {energy_text(best.energy_j)} a run "
        text += f"({figure(best.efficiency)} {found.efficiency_unit})"
    if default is None or (name != "fastest" and default.energy_j is None):
        return f"{text}."
    if default.variant == best.variant:
        return f"{text}: it is the default."
    speed, energy = best.over(default)
    if name == "fastest" or energy is None:
        usually = time_text(default.time_s)
        return f"{text}, {figure(speed, 3)} times as fast as the default ({usually})."
    saved, usually = figure(100 * (1 - energy), 3), energy_text(default.energy_j)
    return f"{text}, {saved} % less than the default ({usually})."


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


def _stands(found: SweepEvaluation, choice: Choice) -> str:
    """Return which place a choice has, and what it takes over the default."""
    mine, speed, thrift = choice.figures, choice.by_performance, choice.by_efficiency
    if mine is None:
        return f"has no figures ({choice.reason})"
    assert speed is not None
    text = f"is number {speed.rank} of {speed.count} by speed"
    if thrift is not None:
        text += f" and number {thrift.rank} of {thrift.count} by energy"
    default = found.choice("default")
    if choice.name == "default" or default is None or default.figures is None:
        return text
    faster, energy = mine.over(default.figures)
    text += f": {figure(faster, 3)} times as fast as the default"
    if energy is not None:
        text += f", at {figure(energy, 3)} times its energy"
    if choice.rows > 1:
        text += f" (of {choice.rows} rows of this role, the one of least energy)"
    return text


def _of_cards(found: SweepEvaluation) -> Iterator[str]:
    """Yield what each other card takes over the base card, and how references drifted."""
    for one in found.cards.cards:
        named = [
            f"{ratio:.4f} times the {name} (95 %: {bounds[0]:.4f} to {bounds[1]:.4f})"
            for name, ratio, bounds in (
                ("time", one.time_factor, one.time_range),
                ("energy", one.energy_factor, one.energy_range),
            )
            if ratio is not None and bounds is not None
        ]
        if named:
            yield f"Card {one.uuid[:12]} takes {' and '.join(named)}."
    for one in found.cards.cards:
        drift = one.time_drift
        if drift is not None and abs(drift.change) > drift.error:
            yield (
                f"The references of card {one.uuid[:12]} drifted by {100 * drift.change:+.2f} % in "
                f"time over the sweep (±{100 * drift.error:.2f})."
            )


def _percent(share: float) -> str:
    return f"{figure(100 * share, 2 if share >= 0.01 else 1)} %"


WIDTH = 78
_FAILURES = 5
_STRONGEST = 3


def report_text(report: SweepReport) -> str:
    """Return the summary of one sweep or several for people, 80 columns wide."""
    rows = (
        (
            f"{one.choice} over {one.over}",
            str(one.sweeps),
            *(figure(ratio, 3) for ratio in (one.speedup, one.energy, one.ppw)),
        )
        for one in report.means
    )
    means = listing(("geometric means", ">sweeps", ">speed-up", ">energy", ">PPW"), rows)
    several = [headed(f"{len(report.sweeps)} sweeps"), means] if len(report.sweeps) > 1 else []
    return render(*apart(*map(evaluation_parts, report.sweeps), several))


def evaluation_parts(found: SweepEvaluation) -> list[RenderableType]:
    """Return what is told of one sweep, part by part."""
    told = (
        Text(textwrap.fill(one, WIDTH, initial_indent="  ", subsequent_indent="    "))
        for one in sentences(found)
    )
    related = _strongest(found)
    return apart(
        [headed(heading(found)), *told],
        [_choices(found)] if found.choices else [],
        [related] if related.row_count else [],
        [_sizes(found)] if found.size_study else [],
        [_failures(found)] if found.failures else [],
    )


def _choices(found: SweepEvaluation) -> Table:
    rows = []
    for choice in found.choices:
        one = choice.figures
        if one is None:
            rows.append((choice.name, *[NONE] * 7))
            continue
        places = (choice.by_performance, choice.by_efficiency)
        rows.append(
            (
                choice.name,
                milliseconds(one.time_s),
                figure(one.energy_j),
                figure(one.power_w, 3),
                figure(one.performance),
                figure(one.efficiency, 3),
                *(NONE if place is None else str(place.rank) for place in places),
            )
        )
    units = (f">{found.performance_unit}", f">{found.efficiency_unit}")
    return listing(("choice", ">ms", ">J", ">W", *units, ">speed rank", ">PPW rank"), rows)


def _strongest(found: SweepEvaluation) -> Table:
    """Return the metrics that go most with performance and with efficiency, either way."""
    rows = []
    for target in ("performance", "efficiency"):
        own = sorted(of_target(found.correlations, target), key=lambda one: -abs(one.pearson))
        rows += [
            (
                "" if place else target,
                counter_words(one.metric),
                f"{one.pearson:+.2f}",
                f"[{one.low:+.2f}, {one.high:+.2f}]",
                str(one.samples),
            )
            for place, one in enumerate(own[:_STRONGEST])
        ]
    return listing(("goes with", "metric", ">r", "95 % interval", "variants"), rows)


def _sizes(found: SweepEvaluation) -> Table:
    """Return the choices at each problem size, named by its parameters that differ."""
    listed = [dict(one.sizes) for one in found.size_study]
    differ = [name for name in listed[0] if len({one.get(name) for one in listed}) > 1]
    rows = []
    last = ""
    for one in found.size_study:
        size = size_words(tuple(pair for pair in one.sizes if pair[0] in differ))
        rows.append(
            (
                "" if size == last else size,
                one.choice,
                milliseconds(one.time_s),
                figure(one.energy_j),
                figure(one.performance),
                figure(one.efficiency, 3),
            )
        )
        last = size
    units = (f">{found.performance_unit}", f">{found.efficiency_unit}")
    return listing(("size", "choice", ">ms", ">J", *units), rows)


def _failures(found: SweepEvaluation) -> Table:
    def short(text: str) -> str:
        return textwrap.shorten(text, 40, placeholder=" …") if text else NONE

    first, rest = found.failures[:_FAILURES], found.failures[_FAILURES:]
    rows: list[tuple[str, str, str]] = [
        (one.status, str(one.variants), short(one.example)) for one in first
    ]
    if rest:
        rows.append((f"{len(rest)} others", str(sum(one.variants for one in rest)), ""))
    return listing(("failed", ">variants", "for example"), rows)
