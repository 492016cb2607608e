"""The nouns of a replay: what strategies would have found, and when, in a recorded sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from eatss.store.nouns import Role, Sizes
from eatss.strategies.budget import Budget
from eatss.targets import TargetName

Objective: TypeAlias = Literal["time", "energy", "edp"]
"""What is to be small: seconds of a run, joules of a run, or their product."""

UNITS: dict[str, str] = {"time": "s", "energy": "J", "edp": "J s"}
"""The unit of a cost, by objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One evaluation of a run.

    Attributes:
        variant: :func:`eatss.point.variant_key` of what was measured.
        cost: What it cost, in the unit of the objective; ``None`` if it failed.
        best: The least cost so far; ``None`` before the first variant that works.
        spent_s: Seconds that all evaluations took so far: to generate, compile and measure.
        spent_j: Joules that the card drew so far, as far as they were recorded.
    """

    variant: str
    cost: float | None
    best: float | None
    spent_s: float
    spent_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One strategy with one seed. ``ended``: it had nothing left before the budget was spent."""

    strategy: str
    seed: int
    steps: tuple[Step, ...]
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretAt:
    """How far from the best of the sweep runs are at a share of the budget.

    Regret is the best found over the best of the sweep, less 1. Median and quartiles are over the
    seeds, each the regret of a run; ``None`` where such a run has found nothing yet.
    """

    share: float
    median: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the runs of one strategy come to.

    Attributes:
        strategy: Its name.
        runs: How many seeds.
        regrets: At each share of the budget.
        within: The regret that counts as near: 0.05.
        evaluations_within: Median of the evaluations until a run is that near; ``None`` where the
            middle one never is.
        seconds_within: The same in seconds of the sweep.
        reached: How many runs come that near within the budget.
    """

    strategy: str
    runs: int
    regrets: tuple[RegretAt, ...]
    within: float
    evaluations_within: int | None
    seconds_within: float | None
    reached: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where a variant of a role stands: its cost, regret, and rank among all, 1 is the best.

    ``offered``: it is a point of the space, so that a strategy could find it. Others have no rank.
    """

    role: Role
    variant: str
    cost: float | None
    regret: float | None
    rank: int | None
    offered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What strategies would have found in a recorded sweep.

    Attributes:
        program: Name of the program.
        target: Who generated the code.
        card: Name of the card.
        uuid: Which card of that name: rows of others are left out. ``None``: no row names one.
        sizes: Which problem size: the one with the most measured variants, as of the report.
        other_sizes: How many other sizes were left out.
        objective: What was to be small.
        unit: Of costs: ``s``, ``J`` or ``J s``.
        variants: How many variants were recorded.
        failed: How many of them have no cost.
        best: The least cost of the sweep.
        best_variant: The variant that has it.
        budget: What each run might spend.
        shares: At which shares of the budget regret is given.
        summaries: One a strategy, in the order asked for.
        runs: Strategy by strategy, seed by seed.
        marks: The default, the paper's choice and that of eatss, as far as they were recorded.
        model_top: Regret of the model's first variant; ``None`` without predictions.
    """

    program: str
    target: TargetName
    card: str
    uuid: str | None
    objective: Objective
    unit: str
    variants: int
    failed: int
    best: float
    best_variant: str
    budget: Budget
    shares: tuple[float, ...]
    summaries: tuple[Summary, ...]
    runs: tuple[Run, ...]
    marks: tuple[Mark, ...]
    model_top: float | None
    sizes: Sizes = ()
    other_sizes: int = 0
    schema_version: int = 1
