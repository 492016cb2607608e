"""What ``eatss sweep --replay`` prints: how soon strategies come near the best of a sweep."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from eatss.codec import json_text
from eatss.evaluation.population import size_words
from eatss.replay import Mark, Replay, Summary
from eatss.report.render import NONE, figure, indented_table, render

_ROLES = {"default": "the default", "paper": "the paper's choice", "ours": "that of eatss"}


def render_replay(replay: Replay, output: str) -> str:
    """Return a replay as ``table`` or ``json``."""
    if output == "json":
        return json_text(replay)
    return render(*_head(replay), _strategies(replay), *_marks(replay), *_ends(replay))


def _head(replay: Replay) -> list[RenderableType]:
    failed = f", {replay.failed} of them failed" if replay.failed else ""
    seeds = len({run.seed for run in replay.runs})
    near = f"{100 * replay.summaries[0].within:g} %"
    return [
        Text(f"{replay.program} ({replay.target}) on {replay.card}", style="bold"),
        *_sizes(replay),
        f"{replay.variants} variants{failed}; least {replay.objective}"
        f" {figure(replay.best)} {replay.unit}",
        f"Best found, in % above the least, after a share of {replay.budget}:",
        f"the middle of {seeds} {'seed' if seeds == 1 else 'seeds'}."
        f" near: variants until within {near}.",
        "",
    ]


def _sizes(replay: Replay) -> list[RenderableType]:
    """Return which problem size is replayed, where there were others."""
    if not replay.other_sizes:
        return []
    others = f"{replay.other_sizes} other {'size' if replay.other_sizes == 1 else 'sizes'}"
    left = "is" if replay.other_sizes == 1 else "are"
    return [f"At {size_words(replay.sizes) or 'no size'} alone; {others} {left} left out."]


def _strategies(replay: Replay) -> RenderableType:
    shares = [f"{100 * share:g} %" for share in replay.shares]
    table = indented_table("strategy", *shares, "near", "runs near", numbers=(*shares, "near"))
    for one in replay.summaries:
        regrets = (percent(regret.median) for regret in one.regrets)
        table.add_row(one.strategy, *regrets, _near(one), f"{one.reached} of {one.runs}")
    return table


def _near(one: Summary) -> str:
    return NONE if one.evaluations_within is None else str(one.evaluations_within)


def _marks(replay: Replay) -> list[RenderableType]:
    """Return where the variants of roles stand, and the model's first."""
    lines: list[RenderableType] = []
    if replay.marks:
        working = replay.variants - replay.failed
        table = indented_table("variant", "above", "rank", numbers=("above", "rank"))
        for mark in replay.marks:
            table.add_row(
                _ROLES.get(mark.role, mark.role), percent(mark.regret), _rank(mark, working)
            )
        lines += ["", table]
    if replay.model_top is not None:
        lines += [
            "",
            f"The model's first variant is {percent(replay.model_top)} % above the least.",
        ]
    return lines


def _rank(mark: Mark, working: int) -> str:
    if mark.cost is None:
        return "failed"
    return f"{mark.rank} of {working}" if mark.offered else "not in the space"


def _ends(replay: Replay) -> list[RenderableType]:
    """Return which strategies had nothing left before their budget was spent."""
    early = {run.strategy for run in replay.runs if run.ended and len(run.steps) < replay.variants}
    names = [one.strategy for one in replay.summaries if one.strategy in early]
    if not names:
        return []
    return ["", f"Ended before the budget was spent: {', '.join(names)}."]


def percent(regret: float | None) -> str:
    """Return a regret in per cent, ``-`` where nothing was found."""
    if regret is None:
        return NONE
    return f"{100 * regret:.0f}" if abs(regret) >= 0.995 else f"{100 * regret:.1f}"
