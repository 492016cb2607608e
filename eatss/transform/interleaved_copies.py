"""Copies that start while warps multiply stand among the products, and no test parts them.

    if (next turn is there) { if (whole tile) { if (wide) …copy… else …copy… } else …copy… }
    for (k_step = 0; k_step < 2; ++k_step) { load fragments; multiply }

becomes

    if (whole && next turn is there)
        { load fragments; …copy…; multiply; load fragments; multiply }
    else
        { as before }

So a compiler has one run of instructions, and lets copies start in the shade of products. Nothing
is loaded from boxes between the copies and the products that follow them, as loads wait for them.

The copies of a turn are cut into shares, one for each of its first steps of products.

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

from eatss.analysis.structure import WORD_BYTES
from eatss.frozen import frozen
from eatss.kernel.nodes import (
    Buffer,
    Declare,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
    Steps,
)
from eatss.kernel.uses import every_of, trips_from_zero, written
from eatss.plan.contract import FRAGMENT_PLACES
from eatss.program import Constant, Name


def operands_of(steps: Steps) -> tuple[Buffer, ...]:
    """Return the registers that a step loads."""
    return tuple(one.buffer for one in steps.loads if isinstance(one, Declare))


def words_of(buffers: Sequence[Buffer]) -> int:
    """Return how many registers some buffers are."""
    return sum(one.size_bytes for one in buffers) // WORD_BYTES


def sum_words(steps: Sequence[Steps]) -> int:
    """Return the registers of all sums that steps add to."""
    return words_of([*written(node for one in steps for node in one.products)])


def part_words(steps: Steps) -> int:
    """Return the registers for further parts that factors are split into, of one matrix of each."""
    performed = every_of(steps.products, Perform)
    parts = max((one.instruction.multiplying.parts for one in performed), default=1)
    return (parts - 1) * sum(map(_matrix_words, operands_of(steps)))


def _matrix_words(fragment: Buffer) -> int:
    """Return the registers of one of the matrices that a thread has fragments of in a buffer."""
    extents = fragment.layout.extents
    count = extents[0].value if extents and isinstance(extents[0], Constant) else 1
    return fragment.size_bytes // count // WORD_BYTES


def by_warps(steps: Steps) -> bool:
    """Tell whether warps multiply, not threads."""
    return any(every_of(steps.products, Perform))


def copies_among_products(
    copies: Sequence[Node], rest: Sequence[Node], *, last: bool, registers: int
) -> tuple[Node, ...] | None:
    """Return what a turn does with copies behind the loads of one of its steps of products.

    Args:
        copies: they touch nothing that ``rest`` does.
        rest: steps of warps, and other nodes.
        last: behind those of the last step, instead of the first. Then no loads follow.
        registers: of a thread. All that a step loads is in them when its copies start; where sums
            and that are too much, copies stand in front, so that one operand can be loaded bit by
            bit. Where that is too much, too, compilers move sums from register to register.

    Returns:
        ``None`` where there are no such steps, or not the registers.
    """
    for at, node in enumerate(rest):
        if isinstance(node, Steps):
            loaded = operands_of(node)
            kept = sum_words([node]) + part_words(node) + FRAGMENT_PLACES
            if kept + words_of(loaded) > registers:
                beside = [words_of([one]) - _matrix_words(one) for one in loaded]
                least = min(beside, default=0) + sum(map(_matrix_words, loaded))
                return (*copies, *rest) if kept + least <= registers else None
            body, place = (*node.loads, *node.products), node.count - 1 if last else 0
            return (
                *rest[:at],
                *node.between(0, place, body),
                *node.between(place, place + 1, (*node.loads, *copies, *node.products)),
                *node.between(place + 1, node.count, body),
                *rest[at + 1 :],
            )
    return None


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
    """Copies over some steps; what ``first`` has goes with the first step as it is."""

    first: tuple[Node, ...]
    cuts: tuple[_Cut, ...]

    @classmethod
    def of(cls, copies: Sequence[Node], steps: int) -> Shares | None:
        """Return loops over copies in shares over at most so many steps.

        Returns:
            ``None`` where steps are too few, no loop can be cut, or registers are declared.
        """
        counts = [(one, trips_from_zero(one) or 0) for one in copies if isinstance(one, For)]
        cuts = [(one, count) for one, count in counts if count and one.unroll == "whole"]
        if steps < _FEWEST or len(counts) < len(copies) or not cuts:
            return None
        first = tuple(one for one, count in counts if (one, count) not in cuts)
        shares = tuple(_Cut(one, count, -(-count // steps)) for one, count in cuts)
        return cls(first=first, cuts=shares)

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
