"""A sweep in sentences, and what ``eatss report`` prints on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.evaluation.correlations import of_target
from eatss.evaluation.population import size_words
from eatss.evaluation.standing import Choice, Standing
from eatss.evaluation.sweep_evaluation import SweepEvaluation, SweepReport
from eatss.evaluation.tradeoff import Figures
from eatss.report.measurement import counter_words
from eatss.report.render import NONE, figure, indented_table, render, scaled
from eatss.shown import energy_text, time_text


def heading(found: SweepEvaluation) -> str:
    """Return what was measured on what, ``gemm, double, cuda, on NVIDIA H200``."""
    one = found.identity
    return f"{one.program}, {one.dtype}, {one.target}, on {one.card}"


def sentences(found: SweepEvaluation) -> tuple[str, ...]:
    """Return the summary, what matters most first."""
    if not found.variants:
        return (_counts(found), "Nothing was measured, so there is nothing to compare.")
    listed = (
        _counts(found),
        _other_sizes(found),
        _fastest(found),
        _thriftiest(found),
        *_trade_off(found),
        *(_stands(found, name) for name in ("ours", "paper", "default")),
        *_model(found),
        _over_limit(found),
        _cards(found),
        *_factors(found),
        *_drift(found),
    )
    return tuple(sentence for sentence in listed if sentence)


def _counts(found: SweepEvaluation) -> str:
    failed = found.tried - found.variants
    at = f" at {size_words(found.sizes)}" if found.sizes else ""
    text = f"{found.variants} of {found.tried} variants were measured{at}; "
    text += "none failed" if not failed else f"{failed} failed or were rejected"
    if found.unstable:
        text += f"; of {found.unstable} the times vary more than they should"
    return f"{text}."


def _other_sizes(found: SweepEvaluation) -> str:
    count = len({one.sizes for one in found.size_study})
    return (
        f"{count} problem sizes were measured; choices at each of them stand below."
        if count
        else ""
    )


def _figures(found: SweepEvaluation, name: str) -> Figures | None:
    choice = next((one for one in found.choices if one.name == name), None)
    return None if choice is None else choice.figures


def _fastest(found: SweepEvaluation) -> str:
    best, default = _figures(found, "fastest"), _figures(found, "default")
    assert best is not None
    text = f"The fastest variant takes {time_text(best.time_s)} "
    text += f"({figure(best.performance)} {found.performance_unit})"
    if default is None:
        return f"{text}."
    if default.variant == best.variant:
        return f"{text}: it is the default."
    ratio = default.time_s / best.time_s
    return f"{text}, {figure(ratio, 3)} times as fast as the default ({time_text(default.time_s)})."


def _thriftiest(found: SweepEvaluation) -> str:
    best, default = _figures(found, "least energy"), _figures(found, "default")
    if best is None or best.energy_j is None:
        return "Energy was not measured."
    text = f"The variant of least energy takes {energy_text(best.energy_j)} a run "
    text += f"({figure(best.efficiency)} {found.efficiency_unit})"
    if default is None or default.energy_j is None:
        return f"{text}."
    if default.variant == best.variant:
        return f"{text}: it is the default."
    saved = 100 * (1 - best.energy_j / default.energy_j)
    return f"{text}, {figure(saved, 3)} % less than the default ({energy_text(default.energy_j)})."


def _trade_off(found: SweepEvaluation) -> list[str]:
    trade = found.trade_off
    if trade is None:
        return []
    if trade.energy_wasted == 0:
        listed = ["The fastest variant also takes the least energy: there is nothing to trade."]
    else:
        listed = [
            f"Choosing for speed alone wastes {_percent(trade.energy_wasted)} of energy, choosing "
            f"for energy alone loses {_percent(trade.time_lost)} of time. "
            f"{_variants(trade.right_of_vertical)} faster than the one of least energy, "
            f"{trade.above_horizontal} thriftier than the fastest, {trade.upper_right} both."
        ]
    if trade.equal_speed is not None and trade.equal_speed.ratio > 1:
        listed.append(
            f"Among equally fast variants (within 1 %), energy differs by a factor of up to "
            f"{figure(trade.equal_speed.ratio, 3)}."
        )
    return listed


def _variants(count: int) -> str:
    return f"{count} variant is" if count == 1 else f"{count} variants are"


def _stands(found: SweepEvaluation, name: str) -> str:
    choice = next((one for one in found.choices if one.name == name), None)
    if choice is None:
        return ""
    who = {"ours": "The choice of eatss", "paper": "The paper's choice", "default": "The default"}
    if choice.figures is None:
        return f"{who[name]} has no figures ({choice.reason})."
    text = f"{who[name]} is {_place(choice.by_performance)} by speed"
    if choice.by_efficiency is not None:
        text += f" and {_place(choice.by_efficiency)} by energy"
    return f"{text}{_against(found, name, choice)}."


def _place(found: Standing | None) -> str:
    assert found is not None
    return f"number {found.rank} of {found.count}"


def _against(found: SweepEvaluation, name: str, choice: Choice) -> str:
    default, mine = _figures(found, "default"), choice.figures
    if name == "default" or default is None or mine is None:
        return ""
    text = f": {figure(default.time_s / mine.time_s, 3)} times as fast as the default"
    if mine.energy_j is not None and default.energy_j is not None:
        text += f", at {figure(mine.energy_j / default.energy_j, 3)} times its energy"
    if choice.rows > 1:
        text += f" (of {choice.rows} rows of this role, the one of least energy)"
    return text


def _model(found: SweepEvaluation) -> list[str]:
    listed = []
    for one in found.predictions:
        first = one.regrets[0].regret
        order = "" if one.spearman is None else f" (rank correlation {one.spearman:.2f})"
        missed = "is the best" if first == 0 else f"is {_percent(first)} over the least"
        listed.append(f"The model's first pick for {one.objective} {missed}{order}.")
    return listed


def _over_limit(found: SweepEvaluation) -> str:
    over = found.over_limit
    if over is None:
        return ""
    return (
        f"In their one short window, {over.variants} of the variants drew more than the card's "
        f"limit of {figure(over.limit_w, 3)} W. Over a longer time a card slows down to keep it, "
        "so they look faster than they are, and their energy is another."
    )


def _cards(found: SweepEvaluation) -> str:
    if len(found.cards.cards) < 2:
        return ""
    note = found.cards.note
    return f"{note[:1].upper()}{note[1:]}."


def _factors(found: SweepEvaluation) -> list[str]:
    """Return what each other card takes over the base card, with 95 % intervals."""
    listed = []
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
            listed.append(f"Card {one.uuid[:12]} takes {' and '.join(named)}.")
    return listed


def _drift(found: SweepEvaluation) -> list[str]:
    listed = []
    for one in found.cards.cards:
        drift = one.time_drift
        if drift is None or abs(drift.change) <= drift.error:
            continue
        listed.append(
            f"The references of card {one.uuid[:12]} drifted by {100 * drift.change:+.2f} % in "
            f"time over the sweep (±{100 * drift.error:.2f})."
        )
    return listed


def _percent(share: float) -> str:
    return f"{figure(100 * share, 2 if share >= 0.01 else 1)} %"


WIDTH = 78
_FAILURES = 5
_STRONGEST = 3


def report_text(report: SweepReport) -> str:
    """Return the summary of one sweep or several for people, 80 columns wide."""
    parts: list[RenderableType] = []
    for one in report.sweeps:
        parts += [*evaluation_parts(one), ""]
    if len(report.sweeps) > 1:
        parts += [*_means(report), ""]
    return render(*parts[:-1])


def evaluation_parts(found: SweepEvaluation) -> Iterable[RenderableType]:
    """Yield what is told of one sweep, part by part."""
    yield Text(heading(found), style="bold")
    for sentence in sentences(found):
        yield Text(textwrap.fill(sentence, WIDTH, initial_indent="  ", subsequent_indent="    "))
    if found.choices:
        yield ""
        yield _choices(found)
    related = _strongest(found)
    if related is not None:
        yield ""
        yield related
    if found.size_study:
        yield ""
        yield _sizes(found)
    if found.failures:
        yield ""
        yield _failures(found)


def _choices(found: SweepEvaluation) -> Table:
    numbers = (
        "ms",
        "J",
        "W",
        found.performance_unit,
        found.efficiency_unit,
        "speed rank",
        "PPW rank",
    )
    table = indented_table("choice", *numbers, numbers=numbers)
    for choice in found.choices:
        one = choice.figures
        if one is None:
            table.add_row(choice.name, *[NONE] * 7)
            continue
        speed, thrift = choice.by_performance, choice.by_efficiency
        table.add_row(
            choice.name,
            scaled(one.time_s, 1e3),
            figure(one.energy_j),
            figure(one.power_w, 3),
            figure(one.performance),
            figure(one.efficiency, 3),
            NONE if speed is None else f"{speed.rank}",
            NONE if thrift is None else f"{thrift.rank}",
        )
    return table


def _strongest(found: SweepEvaluation) -> Table | None:
    """Return the metrics that go most with performance and with efficiency, either way."""
    lines = []
    for target in ("performance", "efficiency"):
        own = sorted(of_target(found.correlations, target), key=lambda one: -abs(one.pearson))[
            :_STRONGEST
        ]
        lines += [(target, one) for one in own]
    if not lines:
        return None
    table = indented_table("goes with", "metric", "r", "95 % interval", "variants", numbers=("r",))
    last = ""
    for target, one in lines:
        table.add_row(
            "" if target == last else target,
            counter_words(one.metric),
            f"{one.pearson:+.2f}",
            f"[{one.low:+.2f}, {one.high:+.2f}]",
            str(one.samples),
        )
        last = target
    return table


def _sizes(found: SweepEvaluation) -> Table:
    """Return the choices at each problem size, named by its parameters that differ."""
    listed = [dict(one.sizes) for one in found.size_study]
    differ = [name for name in listed[0] if len({one.get(name) for one in listed}) > 1]
    numbers = ("ms", "J", found.performance_unit, found.efficiency_unit)
    table = indented_table("size", "choice", *numbers, numbers=numbers)
    last = ""
    for one in found.size_study:
        size = size_words(tuple((name, size) for name, size in one.sizes if name in differ))
        table.add_row(
            "" if size == last else size,
            one.choice,
            scaled(one.time_s, 1e3),
            figure(one.energy_j),
            figure(one.performance),
            figure(one.efficiency, 3),
        )
        last = size
    return table


def _failures(found: SweepEvaluation) -> Table:
    table = indented_table("failed", "variants", "for example", numbers=("variants",))
    for one in found.failures[:_FAILURES]:
        table.add_row(one.status, str(one.variants), _short(one.example))
    rest = found.failures[_FAILURES:]
    if rest:
        table.add_row(f"{len(rest)} others", str(sum(one.variants for one in rest)), "")
    return table


def _short(text: str) -> str:
    return textwrap.shorten(text, 40, placeholder=" …") if text else NONE


def _means(report: SweepReport) -> Sequence[RenderableType]:
    numbers = ("sweeps", "speed-up", "energy", "PPW")
    table = indented_table("geometric means", *numbers, numbers=numbers)
    for one in report.means:
        table.add_row(
            f"{one.choice} over {one.over}",
            str(one.sweeps),
            figure(one.speedup, 3),
            figure(one.energy, 3),
            figure(one.ppw, 3),
        )
    return [Text(f"{len(report.sweeps)} sweeps", style="bold"), table]
