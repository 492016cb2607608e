"""How many points are kept below a prefix.

Prefixes that nothing later tells apart have the same points below them: those are counted once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eatss.space.levels import CHUNK, Block, Levels, pieces
from eatss.space.weights import Weights, added, distinct, repeated, summed, tuples

_MOST_KNOWN = 1 << 18


@dataclass(slots=True)
class Remaining:
    """Counts the kept points below prefixes; what was counted is kept, up to a size."""

    levels: Levels
    known: dict[int, dict[tuple[int, ...], int]] = field(default_factory=dict)

    def after(self, step: int, block: Block) -> Weights:
        """Return for each prefix, which has met all filters up to a step, the points below it."""
        if step + 1 == len(self.levels.dimensions):
            return np.ones(block.rows, dtype=np.int64)
        own = block.only(self.levels.live[step])
        firsts, kinds = distinct(own.columns, block.rows)
        own = own.some(firsts)
        if own.rows > _MOST_KNOWN:
            return np.asarray(self._enumerated(step + 1, own)[kinds])
        known = self.known.setdefault(step, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        names = tuples(own.columns, own.rows)
        missing = [at for at, name in enumerate(names) if name not in known]
        if missing:
            found = self._enumerated(step + 1, own.some(np.array(missing, dtype=np.int64)))
            known.update(zip((names[at] for at in missing), found.tolist(), strict=True))
        counts = [known[name] for name in names]
        small = max(counts, default=0) < 1 << 62
        return np.array(counts, dtype=np.int64 if small else object)[kinds]

    def _enumerated(self, step: int, block: Block) -> Weights:
        """Return the points below prefixes by going through the values of one more iterator."""
        levels = self.levels
        name = levels.dimensions[step].name
        below = levels.below(step, block.columns, block.rows)
        tested = any(name in test.condition.names for test in levels.tests_after(step))
        if not tested and name not in levels.live[step]:
            return repeated(below.sizes, self.after(step, block))
        sums: Weights = np.zeros(block.rows, dtype=np.int64)
        for parents, offsets in pieces(below.sizes, CHUNK):
            columns = {own: column[parents] for own, column in block.columns.items()}
            columns[name] = below.at(parents, offsets)
            grown = Block(rows=len(parents), columns=columns, weights=parents)
            passed = levels.passed(step, grown)  # its weights say which prefix a row is below
            if passed.rows:
                ways = summed(self.after(step, passed), passed.weights, block.rows)
                sums = added(sums, ways)
        return sums
