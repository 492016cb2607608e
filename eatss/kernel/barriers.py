"""Are the barriers of a kernel enough, and is each of them needed?

Threads of a block write boxes of shared memory together and read what others wrote. Between a
write and a read, and between a read and the next write, every thread has to have met a barrier.
All nodes are followed in every order that they may run in: branches apart, loops twice and not at
all. What is copied to the same places of a box again, by equal loops, is copied by the same
threads, and needs no barrier in between. That one copy has different places for different threads
is up to who made it. Only shared memory is looked at: no barrier is for global memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from eatss.kernel.nodes import (
    Barrier,
    Buffer,
    Copy,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
)
from eatss.kernel.uses import accesses, every, mapped
from eatss.program import IntExpr, names_in

_THREAD = "threadIdx."


_Definition: TypeAlias = tuple[str, tuple[IntExpr, ...]]

_Places: TypeAlias = tuple[tuple[IntExpr, ...], frozenset[_Definition]]
"""Subscripts, and what the names in them stand for."""

_Write: TypeAlias = tuple[Buffer, _Places | None]
"""A box and the places that a copy goes through; ``None`` for what no other write is like."""


@dataclass(frozen=True, slots=True)
class SharedUses:
    """Boxes in shared memory that some thread may have used since it last met a barrier."""

    written: frozenset[_Write] = frozenset()
    read: frozenset[Buffer] = frozenset()

    def joined(self, other: SharedUses) -> SharedUses:
        """Return what either has."""
        return SharedUses(self.written | other.written, self.read | other.read)


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
        self.faults: list[str] = []

    def follow(self, nodes: Sequence[Node], before: SharedUses, *, uniform: bool) -> SharedUses:
        """Return what is pending behind nodes; ``uniform`` says that all threads get to them."""
        state = before
        for node in nodes:
            state = self._step(node, state, uniform=uniform)
        return state

    def _step(self, node: Node, before: SharedUses, *, uniform: bool) -> SharedUses:
        if isinstance(node, Barrier):
            if not uniform:
                self.faults.append("a barrier stands where not all threads of a block get to")
            return SharedUses()
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
            once = before.joined(self.follow(node.body, before, uniform=inside))
            return once.joined(self.follow(node.body, once, uniform=inside))
        if isinstance(node, Perform) and node.instruction.together and not uniform:
            self.faults.append(
                f"{node.instruction.name} stands where not all threads of a warp get to"
            )
        return self._access(node, before)

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
        same = isinstance(node, Copy) and not node.adds
        wrote: set[_Write] = {
            (one.buffer, self._places(one.subscripts) if same else None)
            for one in written
            if one.buffer.space == "shared"
        }
        reads = {one.buffer for one in read if one.buffer.space == "shared"}
        there = {buffer for buffer, _ in before.written}
        self.faults += [
            f"{buffer.name} is read before all threads have written their part of it"
            for buffer in reads & there
        ]
        for buffer, places in wrote:
            if buffer in before.read:
                self.faults.append(
                    f"{buffer.name} is written while other threads may still read it"
                )
            others = {p for b, p in before.written if b == buffer}
            if others and (places is None or others != {places}):
                self.faults.append(f"{buffer.name} is written by several threads at a time")
        return before.joined(SharedUses(frozenset(wrote), frozenset(reads)))

    def _varies(self, expressions: Iterable[IntExpr]) -> bool:
        return any(_mentions(expression, self._varying) for expression in expressions)


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
            yield node.counter, (node.lower, node.step)


def _mentions(expression: IntExpr, names: Iterable[str]) -> bool:
    known = set(names)
    return any(name in known or name.startswith(_THREAD) for name in names_in(expression))
