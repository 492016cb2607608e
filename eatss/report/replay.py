"""What ``eatss sweep --replay`` prints: how soon strategies come near the best of a sweep."""

from __future__ import annotations

from rich.console import RenderableType

from eatss.report.render import NONE, apart, counted, figure, headed, listing
from eatss.tune.evaluation.population import size_words
from eatss.tune.replay import Mark, Replay

_ROLES = {"default": "the default", "paper": "the paper's choice", "ours": "that of eatss"}


def replay_parts(replay: Replay) -> list[RenderableType]:
    """Return what is told of a replay, part by part."""
    failed = f", {replay.failed} of them failed" if replay.failed else ""
    head: list[RenderableType] = [headed(f"{replay.program} ({replay.target}) on {replay.card}")]
    if replay.other_sizes:
        others = counted(replay.other_sizes, "other size")
        left = "is" if replay.other_sizes == 1 else "are"
        head.append(f"At {size_words(replay.sizes) or 'no size'} alone; {others} {left} left out.")
    head += [
        f"{replay.variants} variants{failed}; least {replay.objective}"
        f" {figure(replay.best)} {replay.unit}",
        f"Best found, in % above the least, after a share of {replay.budget}:",
        f"the middle of {counted(len({run.seed for run in replay.runs}), 'seed')}."
        f" near: variants until within {100 * replay.summaries[0].within:g} %.",
    ]
    strategies = listing(
        ("strategy", *(f">{100 * share:g} %" for share in replay.shares), ">near", "runs near"),
        (
            (
                one.strategy,
                *(_percent(regret.median) for regret in one.regrets),
                NONE if one.evaluations_within is None else str(one.evaluations_within),
                f"{one.reached} of {one.runs}",
            )
            for one in replay.summaries
        ),
    )
    working = replay.variants - replay.failed
    marks = (
        (_ROLES.get(mark.role, mark.role), _percent(mark.regret), _rank(mark, working))
        for mark in replay.marks
    )
    early = {run.strategy for run in replay.runs if run.ended and len(run.steps) < replay.variants}
    names = ", ".join(one.strategy for one in replay.summaries if one.strategy in early)
    first = f"The model's first variant is {_percent(replay.model_top)} % above the least."
    return apart(
        head,
        [strategies],
        [listing(("variant", ">above", ">rank"), marks)] if replay.marks else [],
        [] if replay.model_top is None else [first],
        [f"Ended before the budget was spent: {names}."] if names else [],
    )


def _rank(mark: Mark, working: int) -> str:
    if mark.cost is None:
        return "failed"
    return f"{mark.rank} of {working}" if mark.offered else "not in the space"


def _percent(regret: float | None) -> str:
    """Return a regret in per cent, ``-`` where nothing was found."""
    return NONE if regret is None else f"{100 * regret:.{int(abs(regret) < 0.995)}f}"
