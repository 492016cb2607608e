"""Replay: strategies tried on a recorded sweep, without a card, the same each time.

In: a ``Sweep``, names of strategies, seeds, a budget. Out: a ``Replay``. Next: ``eatss/report/``.
"""

from eatss.replay.recorded import Mark, Objective, RegretAt, Replay, Run, Step, Summary
from eatss.replay.replay import replayed

__all__ = [
    "Mark",
    "Objective",
    "RegretAt",
    "Replay",
    "Run",
    "Step",
    "Summary",
    "replayed",
]
