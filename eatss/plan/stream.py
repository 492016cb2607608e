"""Blocks that take equal shares of the steps of all tiles (stream-K): what each of them takes.

Blocks take whole tiles, one each, in waves, as long as there are twice as many left as blocks. Of
the steps of all tiles that are left then each takes as many. These rules are over numbers, columns
of them, and integer expressions of the code that computes them.
"""

from __future__ import annotations

from eatss.plan.numbers import Number, most
from eatss.program import Apply, Constant, Name, at_least

MOST_WAVES = 2
"""Times as many tiles as blocks of which blocks share the steps: less than that."""


def whole_waves(tiles: Number, blocks: Number) -> Number:
    """Return how many whole tiles each of so many blocks takes."""
    waves = tiles // blocks + -1
    return at_least(waves, 0) if isinstance(waves, Apply | Constant | Name) else most(waves, 0)


def shared_steps(tiles: Number, waves: Number, blocks: Number, steps: Number) -> Number:
    """Return the steps that blocks share: those of tiles that are left behind waves."""
    return (tiles - waves * blocks) * steps


def rounded_up(value: Number, divisor: Number) -> Number:
    """Return a quotient rounded up: the share of a block, or tiles that steps are of."""
    return (value + (divisor - 1)) // divisor
