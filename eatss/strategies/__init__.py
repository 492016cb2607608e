"""Strategies: which point of a search space is measured next, given what was found so far.

In: a space, a seed, the order of the model. Out: points, one at a time. Next: ``eatss/replay.py``,
which tries strategies on what was recorded.
"""

from eatss.strategies.budget import Budget
from eatss.strategies.choose import STRATEGIES, make
from eatss.strategies.guarded import Guarded
from eatss.strategies.in_order import ListedSpace
from eatss.strategies.strategy import (
    WAIT,
    Asked,
    MakeStrategy,
    SearchSpace,
    Strategy,
    StrategyJob,
    Wait,
)

__all__ = [
    "STRATEGIES",
    "WAIT",
    "Asked",
    "Budget",
    "Guarded",
    "ListedSpace",
    "MakeStrategy",
    "SearchSpace",
    "Strategy",
    "StrategyJob",
    "Wait",
    "make",
]
