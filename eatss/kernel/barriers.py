"""Are the barriers of a kernel enough, and is each of them needed?

Threads of a block write boxes of shared memory together and read what others wrote. Between a
write and a read, and between a read and the next write, every thread has to have met a barrier.
All nodes are followed in every order that they may run in: branches apart, loops twice and not at
all. What is copied to the same places of a box again, by equal loops, is copied by the same
threads, and needs no barrier in between. That one copy has different places for different threads
is up to who made it. Only shared memory is looked at: no barrier is for global memory.

What is copied ahead is on its way until the thread that sent it has waited for it; only then does
a barrier make it seen. Boxes of several stages are told apart: in a turn of a loop, stage
``turn % 3`` is another one than that of the turn before, see :mod:`eatss.kernel.stages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from eatss.kernel.nodes import (
    Barrier,
    Buffer,
    Commit,
    Copy,
    Cycle,
    Element,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
    Wait,
)
from eatss.kernel.stages import Stage, may_meet, stage_of
from eatss.kernel.uses import accesses, every, mapped
from eatss.program import IntExpr, names_in

_THREAD = "threadIdx."


_Definition: TypeAlias = tuple[str, tuple[IntExpr, ...]]

_Places: TypeAlias = tuple[tuple[IntExpr, ...], frozenset[_Definition]]
"""Subscripts, and what the names in them stand for."""

_Box: TypeAlias = tuple[Buffer, Stage]
"""A box, and which of its stages."""

_Write: TypeAlias = tuple[_Box, _Places | None]
"""A box and the places that a copy goes through; ``None`` for what no other write is like."""

_MOST_GROUPS = 64
"""Groups of copies behind one of which it does not matter how many more there are."""


@dataclass(frozen=True, slots=True)
class SharedUses:
    """Boxes in shared memory that some thread may have used since it last met a barrier.

    ``sent`` are copies that a thread may not have waited for, barrier or not, each with the number
    of groups that it has closed since, at least.
    """

    written: frozenset[_Write] = frozenset()
    read: frozenset[_Box] = frozenset()
    sent: frozenset[tuple[_Write, int]] = frozenset()

    def joined(self, other: SharedUses) -> SharedUses:
        """Return what either has."""
        sent: dict[_Write, int] = {}
        for write, groups in (*self.sent, *other.sent):
            sent[write] = min(groups, sent.get(write, groups))
        return SharedUses(
            self.written | other.written, self.read | other.read, frozenset(sent.items())
        )

    def behind_barrier(self) -> SharedUses:
        """Return what a barrier leaves."""
        return SharedUses(sent=self.sent)

    def committed(self) -> SharedUses:
        """Return what it is when a group of copies is closed."""
        sent = ((write, min(groups + 1, _MOST_GROUPS)) for write, groups in self.sent)
        return replace(self, sent=frozenset(sent))

    def waited(self, pending: int) -> SharedUses:
        """Return what it is when all groups but the last few are there."""
        there = {one for one in self.sent if one[1] > pending}
        return replace(
            self, written=self.written | {write for write, _ in there}, sent=self.sent - there
        )

    def with_stages(self, change: Callable[[Stage], Stage]) -> SharedUses:
        """Return it with other stages of all boxes."""

        def box(one: _Box) -> _Box:
            return one[0], change(one[1])

        return SharedUses(
            frozenset((box(one), places) for one, places in self.written),
            frozenset(map(box, self.read)),
            frozenset(((box(one), places), groups) for (one, places), groups in self.sent),
        ).joined(_NOTHING)


_NOTHING = SharedUses()


def barrier_faults(body: Sequence[Node]) -> tuple[str, ...]:
    """Return what threads of a block may do to each other's shared memory, in words.

    Args:
        body: nodes of a kernel.

    Returns:
        Nothing if the barriers are enough and every thread meets each of them.
    """
    return followed(body, SharedUses(), varying_names(body))[1]


def needed_barriers_only(body: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes without the barriers that can be left out, the last ones first.

    Of what has faults nothing is left out.
    """
    found = tuple(body)
    if barrier_faults(found):
        return found
    for at in reversed(range(barriers_in(found))):
        fewer = without_barrier(found, at)
        if not barrier_faults(fewer):
            found = fewer
    return found


def barriers_in(body: Sequence[Node]) -> int:
    """Return the number of barriers."""
    return sum(isinstance(node, Barrier) for node in every(body))


def without_barrier(body: Sequence[Node], at: int) -> tuple[Node, ...]:
    """Return nodes without one of their barriers, counted from 0 in their order."""
    numbers = count()

    def kept(node: Node) -> tuple[Node, ...]:
        return () if isinstance(node, Barrier) and next(numbers) == at else (node,)

    return mapped(body, kept)


def followed(
    nodes: Sequence[Node], before: SharedUses, varying: frozenset[str]
) -> tuple[SharedUses, tuple[str, ...]]:
    """Return what is pending behind nodes that all threads get to, and the faults in words.

    Args:
        nodes: what threads do.
        before: what they may have done since they last met a barrier.
        varying: names that differ between threads, see :func:`varying_names`.
    """
    check = _Check(varying)
    pending = check.follow(nodes, before, uniform=True)
    return pending, tuple(dict.fromkeys(check.faults))


class _Check:
    def __init__(self, varying: frozenset[str]) -> None:
        self._varying = varying
        self._defined: dict[str, tuple[IntExpr, ...]] = {}
        self._cycles: dict[str, Cycle] = {}
        self.faults: list[str] = []

    def follow(self, nodes: Sequence[Node], before: SharedUses, *, uniform: bool) -> SharedUses:
        """Return what is pending behind nodes; ``uniform`` says that all threads get to them."""
        state = before
        for node in nodes:
            state = self._step(node, state, uniform=uniform)
        return state

    def _step(self, node: Node, before: SharedUses, *, uniform: bool) -> SharedUses:
        if isinstance(node, Barrier | Commit | Wait):
            return self._waited(node, before, uniform=uniform)
        if isinstance(node, Scope):
            return self.follow(node.body, before, uniform=uniform)
        if isinstance(node, If):
            inside = uniform and not self._varies(node.conditions)
            first = self.follow(node.body, before, uniform=inside)
            return first.joined(self.follow(node.orelse, before, uniform=inside))
        if isinstance(node, Let):
            self._defined[node.name] = (node.value,)
        if isinstance(node, For):
            self._defined[node.counter] = (node.lower, node.condition, node.step)
            inside = uniform and not self._varies((node.lower, node.condition, node.step))
            return self._turns(node, before, uniform=inside)
        if isinstance(node, Perform) and node.instruction.together and not uniform:
            self.faults.append(
                f"{node.instruction.name} stands where not all threads of a warp get to"
            )
        return self._access(node, before)

    def _waited(
        self, node: Barrier | Commit | Wait, before: SharedUses, *, uniform: bool
    ) -> SharedUses:
        if isinstance(node, Commit):
            return before.committed()
        if isinstance(node, Wait):
            return before.waited(node.pending)
        if not uniform:
            self.faults.append("a barrier stands where not all threads of a block get to")
        return before.behind_barrier()

    def _turns(self, loop: For, before: SharedUses, *, uniform: bool) -> SharedUses:
        """Return what is pending behind a loop, whatever the number of its turns."""
        if loop.cycle is not None:
            self._cycles[loop.counter] = loop.cycle
        state = before.with_stages(lambda one: one.in_turns(loop.counter, loop.cycle))
        while True:
            turn = self.follow(loop.body, state, uniform=uniform)
            more = state.joined(turn.with_stages(lambda one: one.a_turn_on(loop.counter)))
            if more == state:
                break
            state = more
        self._cycles.pop(loop.counter, None)
        return state.with_stages(lambda one: one.behind(loop.counter))

    def _places(self, subscripts: tuple[IntExpr, ...]) -> _Places:
        """Return subscripts with what the names in them stand for, directly or not."""
        found: dict[str, tuple[IntExpr, ...]] = {}
        todo = list(subscripts)
        while todo:
            for name in names_in(todo.pop()):
                if name in self._defined and name not in found:
                    found[name] = self._defined[name]
                    todo += found[name]
        return subscripts, frozenset(found.items())

    def _access(self, node: Node, before: SharedUses) -> SharedUses:
        written, read = accesses(node)
        same = isinstance(node, Copy)
        wrote: set[_Write] = {
            (self._box(one), self._places(one.subscripts) if same else None)
            for one in written
            if one.buffer.space == "shared"
        }
        reads = {self._box(one) for one in read if one.buffer.space == "shared"}
        there = before.written | {write for write, _ in before.sent}
        self.faults += [
            f"{one[0].name} is read before all threads have written their part of it"
            for one in reads
            if any(_meet(one, other) for other, _ in there)
        ]
        for box, places in wrote:
            if any(_meet(box, other) for other in before.read):
                self.faults.append(
                    f"{box[0].name} is written while other threads may still read it"
                )
            others = {own for other, own in there if _meet(box, other)}
            if others and (places is None or others != {places}):
                self.faults.append(f"{box[0].name} is written by several threads at a time")
        if isinstance(node, Copy) and node.ahead:
            own = SharedUses(read=frozenset(reads), sent=frozenset((one, 0) for one in wrote))
        else:
            own = SharedUses(frozenset(wrote), frozenset(reads))
        return before.joined(own)

    def _box(self, element: Element) -> _Box:
        return element.buffer, stage_of(element, self._cycles)

    def _varies(self, expressions: Iterable[IntExpr]) -> bool:
        return any(_mentions(expression, self._varying) for expression in expressions)


def _meet(one: _Box, other: _Box) -> bool:
    """Tell whether two boxes may be the same stage of the same one."""
    return one[0] == other[0] and may_meet(one[1], other[1])


def varying_names(body: Sequence[Node]) -> frozenset[str]:
    """Return the names of constants and counters that differ between the threads of a block."""
    found: set[str] = set()
    while True:
        more = {name for name, values in _named(body) if any(_mentions(v, found) for v in values)}
        if more <= found:
            return frozenset(found)
        found |= more


def _named(body: Sequence[Node]) -> Iterator[tuple[str, tuple[IntExpr, ...]]]:
    for node in every(body):
        if isinstance(node, Let):
            yield node.name, (node.value,)
        elif isinstance(node, For):
            for counter in node.counters:
                yield counter, (node.lower, node.step)


def _mentions(expression: IntExpr, names: Iterable[str]) -> bool:
    known = set(names)
    return any(name in known or name.startswith(_THREAD) for name in names_in(expression))
