"""How many points of the iterators alone, whatever filters say, begin with a prefix.

Iterators that do not depend on each other multiply, and only the values of names that others depend
on are enumerated: the number of ``blk_m`` and ``blk_n`` below ``dim_m, dim_n`` is that of the one
times that of the other, and each is found once for each ``dim_m`` and once for each ``dim_n``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx  # type: ignore[import-untyped]
import numpy as np

from eatss.space.dimensions import Integers
from eatss.space.levels import CHUNK, Levels, pieces
from eatss.space.weights import Weights, added, distinct, repeated, summed, tuples

_MOST_KNOWN = 1 << 20

Steps = tuple[int, ...]


@dataclass(slots=True)
class Completions:
    """Counts what begins with prefixes; what was counted once is kept."""

    levels: Levels
    known: dict[Steps, dict[tuple[int, ...], int]] = field(default_factory=dict)
    parts: dict[Steps, list[Steps]] = field(default_factory=dict)

    def after(self, step: int, columns: Mapping[str, Integers], rows: int) -> Weights:
        """Return for each prefix how many ways there are to go on after a step."""
        return self._ways(tuple(range(step + 1, len(self.levels.dimensions))), columns, rows)

    def _ways(self, steps: Steps, columns: Mapping[str, Integers], rows: int) -> Weights:
        """Return for each row the number of values of some iterators together."""
        ways: Weights = np.ones(rows, dtype=np.int64)
        for part in self._independent(steps):
            ways = repeated(ways, self._of_part(part, columns, rows))
        return ways

    def _of_part(self, part: Steps, columns: Mapping[str, Integers], rows: int) -> Weights:
        first, *others = part
        if not others:
            return self.levels.below(first, columns, rows).sizes
        names = {name for step in part for name in self.levels.dimensions[step].names}
        own = {name: columns[name] for name in sorted(names & columns.keys())}
        firsts, kinds = distinct(own, rows)
        own = {name: column[firsts] for name, column in own.items()}
        known = self.known.setdefault(part, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        rows_of = tuples(own, len(firsts))
        missing = [at for at, row in enumerate(rows_of) if row not in known]
        if missing:
            asked = np.array(missing, dtype=np.int64)
            lacking = {name: column[asked] for name, column in own.items()}
            found = self._enumerated(first, tuple(others), lacking, len(missing))
            known.update(zip((rows_of[at] for at in missing), found.tolist(), strict=True))
        counts = [known[row] for row in rows_of]
        small = max(counts, default=0) < 1 << 62
        return np.array(counts, dtype=np.int64 if small else object)[kinds]

    def _enumerated(
        self, step: int, others: Steps, columns: Mapping[str, Integers], rows: int
    ) -> Weights:
        """Return the sum over the values of one iterator of the ways of others."""
        sums: Weights = np.zeros(rows, dtype=np.int64)
        below = self.levels.below(step, columns, rows)
        for parents, offsets in pieces(below.sizes, CHUNK):
            grown = {name: column[parents] for name, column in columns.items()}
            grown[self.levels.dimensions[step].name] = below.at(parents, offsets)
            ways = self._ways(others, grown, len(parents))
            sums = added(sums, summed(ways, parents, rows))
        return sums

    def _independent(self, steps: Steps) -> list[Steps]:
        """Return the iterators in parts of which none depends on another."""
        if steps not in self.parts:
            graph: nx.Graph = nx.Graph()
            graph.add_nodes_from(steps)
            position = self.levels.position
            for step in steps:
                used = (position.get(name) for name in self.levels.dimensions[step].names)
                graph.add_edges_from((step, other) for other in used if other in steps)
            parts = [tuple(sorted(part)) for part in nx.connected_components(graph)]
            self.parts[steps] = sorted(parts)
        return self.parts[steps]
