"""The copies of a turn are cut into shares, one for each of its first steps of products.

    for (e < 8) { copy A }  for (e < 5) { copy B }  commit;

becomes, over four steps,

    for (step < 4) {
        …
        for (e = 2 * step; e < 2 * step + 2) { copy A }
        for (e = 2 * step; e < 2 * step + 2) { if (e < 5) { copy B } }
        …
    }
    commit;

All copies at once would fill up the queue of loads and stores, in which what products wait for
stands behind them. Steps are unrolled, so a compiler knows what a test says. A box is copied by one
node still, so that it can be told that no two threads write the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eatss.frozen import frozen
from eatss.kernel.nodes import Aligned, Commit, Copy, For, If, Let, Node, Scope
from eatss.kernel.uses import every, trips_from_zero
from eatss.program import Name

_FEWEST = 2
"""Steps over which there is something to spread."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A loop of which a step does ``share`` of the ``count`` turns, as long as there are some."""

    loop: For
    count: int
    share: int

    @property
    def steps(self) -> int:
        """How many steps do some."""
        return -(-self.count // self.share)

    def of_step(self, counter: str, steps: int) -> Node:
        """Return the turns of one of so many steps, which ``counter`` numbers."""
        loop, first = self.loop, self.share * Name(counter)
        body = loop.body
        if self.share * steps > self.count:
            body = (If(conditions=(Name(loop.counter) < self.count,), body=body),)
        if self.share == 1:
            return Scope(body=(Let(name=loop.counter, value=first, narrow=loop.narrow), *body))
        condition = Name(loop.counter) < first + self.share
        return replace(loop, lower=first, condition=condition, body=body)


@frozen
class Shares:
    """Copies over some steps: constants in ``front`` of all, and what stands ``behind`` the last.

    ``first`` goes with the first step as it is.
    """

    front: tuple[Node, ...]
    first: tuple[Node, ...]
    cuts: tuple[_Cut, ...]
    behind: tuple[Node, ...]

    @classmethod
    def of(cls, copies: Sequence[Node], steps: int) -> Shares | None:
        """Return copies in shares over at most so many steps.

        Returns:
            ``None`` where steps are too few, no loop can be cut, or there is more than copies and
            the end of their group.
        """
        *nodes, end = copies
        if steps < _FEWEST or not isinstance(end, Commit) or not all(map(_only_copies, nodes)):
            return None
        front = tuple(one for one in nodes if isinstance(one, Let | Aligned))
        counts = [(one, _turns_to_cut(one)) for one in nodes]
        cuts = tuple(
            _Cut(one, count, -(-count // steps))
            for one, count in counts
            if isinstance(one, For) and count
        )
        first = tuple(one for one, count in counts if not count and one not in front)
        return cls(front=front, first=first, cuts=cuts, behind=(end,)) if cuts else None

    @property
    def steps(self) -> int:
        """How many steps copy something."""
        return max(one.steps for one in self.cuts)

    @property
    def copied(self) -> int:
        """How many turns of loops a thread copies in."""
        return sum(one.count for one in self.cuts)

    def of_step(self, counter: str) -> tuple[Node, ...]:
        """Return what each step copies; ``counter`` numbers them from 0."""
        cuts = tuple(one.of_step(counter, self.steps) for one in self.cuts)
        if not self.first:
            return cuts
        return (If(conditions=(Name(counter) < 1,), body=self.first), *cuts)


def _only_copies(node: Node) -> bool:
    return all(isinstance(one, For | If | Let | Aligned | Copy) for one in every((node,)))


def _turns_to_cut(node: Node) -> int | None:
    """Return how many turns a loop has that can be cut."""
    if not isinstance(node, For) or node.unroll != "whole" or node.cycle is not None:
        return None
    return trips_from_zero(node)
