"""Strategies: which point of a search space is measured next, given what was found so far.

In: a space, a seed, the order of the model. Out: points, one at a time. Next:
``eatss/tune/replay.py``, which tries strategies on what was recorded.
"""

from eatss.tune.strategies.budget import Budget
from eatss.tune.strategies.choose import STRATEGIES, make
from eatss.tune.strategies.guarded import Guarded
from eatss.tune.strategies.in_order import ListedSpace
from eatss.tune.strategies.strategy import (
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
