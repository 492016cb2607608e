"""What ``eatss report`` prints on a terminal: sentences, the choices, what failed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.evaluation.correlations import of_target
from eatss.evaluation.population import size_words
from eatss.evaluation.sweep_evaluation import SweepEvaluation, SweepReport
from eatss.report.counters import counter_words
from eatss.report.figures import NONE, figure, scaled
from eatss.report.render import indented_table, render
from eatss.report.sweeps.sentences import heading, sentences

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
