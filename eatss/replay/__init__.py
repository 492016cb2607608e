"""Replay: strategies tried on a recorded sweep, without a card, the same each time.

In: a ``Sweep``, names of strategies, seeds, a budget. Out: a ``Replay``. Next: ``eatss/report/``.
"""
