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

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from eatss.frozen import frozen
from eatss.kernel.barriers import varies
from eatss.kernel.nodes import (
    Aligned,
    Buffer,
    Commit,
    Copy,
    Declare,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
    Source,
)
from eatss.kernel.uses import every, trips_from_zero
from eatss.plan.contract import FRAGMENT_PLACES
from eatss.program import Apply, Constant, IntExpr, Name, Operator, names_in

_REGISTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class PlainCopies:
    """The copies of tiles that need no tests, and where that is so."""

    conditions: tuple[IntExpr, ...]
    nodes: tuple[Node, ...]


def plain_copies(nodes: Sequence[Node], varying: Collection[str]) -> PlainCopies | None:
    """Return the first of all branches of copies, ``None`` if its tests cannot stand in front.

    Args:
        nodes: copies, and tests around them.
        varying: names that differ between the threads of a block; all have to go one way.
    """
    conditions: dict[IntExpr, None] = {}
    inside: set[str] = set()

    def first(some: Sequence[Node]) -> tuple[Node, ...]:
        found: list[Node] = []
        for node in some:
            if isinstance(node, If):
                conditions.update(dict.fromkeys(apart(node.conditions)))
                found += first(node.body)
                continue
            own = every((node,))
            inside.update(one.name for one in own if isinstance(one, Let | Aligned))
            found.append(node)
        return tuple(found)

    plain = first(nodes)
    used = set(names_in(*conditions))
    if used & inside or any(varies(one, varying) for one in conditions):
        return None
    return PlainCopies(tuple(conditions), plain)


def apart(conditions: Iterable[IntExpr]) -> Iterator[IntExpr]:
    """Yield the conditions that have to hold for all of these to hold."""
    for one in conditions:
        if isinstance(one, Apply) and one.operator is Operator.AND:
            yield from apart(one.operands)
        else:
            yield one


def copies_among_products(
    copies: Sequence[Node], rest: Sequence[Node], *, last: bool, registers: int
) -> tuple[Node, ...] | None:
    """Return what a turn does with copies behind the loads of one of its steps of products.

    Args:
        copies: they touch nothing that ``rest`` does.
        rest: steps that load fragments and multiply them.
        last: behind those of the last step, instead of the first. Then no loads follow.
        registers: of a thread. All that a step loads is in them when its copies start; where sums
            and that are too much, copies stand in front, so that one operand can be loaded bit by
            bit. Where that is too much, too, compilers move sums from register to register.

    Returns:
        ``None`` where there are no such steps, or not the registers.
    """
    for at, node in enumerate(rest):
        if isinstance(node, For | Scope) and multiplies(node):
            all_, least = _registers(node)
            if all_ + FRAGMENT_PLACES > registers:
                return (*copies, *rest) if least + FRAGMENT_PLACES <= registers else None
            steps = _steps(node, copies, last=last)
            return None if steps is None else (*rest[:at], *steps, *rest[at + 1 :])
    return None


def _steps(node: For | Scope, copies: Sequence[Node], *, last: bool) -> tuple[Node, ...] | None:
    if isinstance(node, Scope):
        body = _behind_loads(node.body, copies)
        return None if body is None else (replace(node, body=body),)
    count = trips_from_zero(node) if node.unroll == "whole" else None
    body = _behind_loads(node.body, copies)
    if not count or body is None:
        return None
    at = count - 1 if last else 0
    one = Let(name=node.counter, value=Constant(at), narrow=node.narrow)
    return (
        *turns_between(node, 0, at),
        Scope(body=(one, *body)),
        *turns_between(node, at + 1, count),
    )


def turns_between(loop: For, first: int, end: int) -> tuple[Node, ...]:
    """Return some turns of a loop that numbers them from 0; one is no loop."""
    if first >= end:
        return ()
    if end - first == 1:
        one = Let(name=loop.counter, value=Constant(first), narrow=loop.narrow)
        return (Scope(body=(one, *loop.body)),)
    condition = Name(loop.counter) < end
    return (replace(loop, lower=Constant(first), condition=condition),)


def _behind_loads(body: Sequence[Node], copies: Sequence[Node]) -> tuple[Node, ...] | None:
    """Return a step with copies in front of its products."""
    for at, node in enumerate(body):
        if multiplies(node):
            told = at > 0 and isinstance(body[at - 1], Source)
            front = at - 1 if told else at
            return (*body[:front], *copies, *body[front:])
    return None


def _registers(node: Node) -> tuple[int, int]:
    """Return the registers of sums and of what a step loads: of all of it, and of the least.

    The least is one operand, and of each other one what an instruction takes. Where factors are
    split there are further parts of what it takes.
    """
    sums: set[Buffer] = set()
    loaded: set[Buffer] = set()
    parts = 1
    for one in every((node,)):
        if isinstance(one, Declare):
            loaded.add(one.buffer)
        elif isinstance(one, Perform):
            sums |= {element.buffer for element in one.named(one.instruction.written)}
            parts = max(parts, one.instruction.multiplying.parts)
    ones = {one: _size(one) // _first_extent(one) for one in loaded}
    least = min((_size(one) - ones[one] for one in loaded), default=0) + sum(ones.values())
    kept = sum(map(_size, sums - loaded))
    split = (parts - 1) * sum(ones.values())
    return kept + sum(map(_size, loaded)) + split, kept + least + split


def _size(buffer: Buffer) -> int:
    return buffer.size_bytes // _REGISTER_BYTES


def _first_extent(buffer: Buffer) -> int:
    """Return how many matrices a buffer has."""
    extents = buffer.layout.extents
    return extents[0].value if extents and isinstance(extents[0], Constant) else 1


def multiplies(node: Node) -> bool:
    """Tell whether warps add up something together in a node."""
    return any(
        isinstance(one, Perform) and one.instruction.together and one.instruction.adds
        for one in every((node,))
    )


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
