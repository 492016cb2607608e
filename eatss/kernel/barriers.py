"""Are the barriers of a kernel enough, and is each of them needed?

Threads of a block write boxes of shared memory together and read what others wrote. Between a
write and a read, and between a read and the next write, every thread has to have met a barrier.
All nodes are followed in every order that they may run in: branches apart, loops twice and not at
all. What is copied to the same places of a box again is copied by the same threads, and needs no
barrier in between. Only shared memory is looked at: no barrier is for global memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from eatss.kernel.nodes import (
    Barrier,
    Buffer,
    Compute,
    Copy,
    Fill,
    For,
    If,
    Let,
    Node,
    Scope,
)
from eatss.kernel.uses import elements, every
from eatss.program import IntExpr, names_in

_THREAD = "threadIdx."


_Write: TypeAlias = tuple[Buffer, tuple[IntExpr, ...] | None]
"""A box and the places that a copy walks; ``None`` for what no other write is like."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """Boxes that some thread may have written or read since it last met a barrier."""

    written: frozenset[_Write] = frozenset()
    read: frozenset[Buffer] = frozenset()

    def joined(self, other: _Pending) -> _Pending:
        return _Pending(self.written | other.written, self.read | other.read)


def barrier_faults(body: Sequence[Node]) -> tuple[str, ...]:
    """Return what threads of a block may do to each other's shared memory, in words.

    Args:
        body: nodes of a kernel.

    Returns:
        Nothing if the barriers are enough and every thread meets each of them.
    """
    check = _Check(_varying(body))
    check.follow(body, _Pending(), uniform=True)
    return tuple(dict.fromkeys(check.faults))


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
    left = at

    def kept(nodes: Sequence[Node]) -> tuple[Node, ...]:
        nonlocal left
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Barrier):
                left -= 1
                if left == -1:
                    continue
            if isinstance(node, For | Scope):
                node = replace(node, body=kept(node.body))  # noqa: PLW2901 - the same node, less
            elif isinstance(node, If):
                inner, orelse = kept(node.body), kept(node.orelse)
                node = replace(node, body=inner, orelse=orelse)  # noqa: PLW2901
            found.append(node)
        return tuple(found)

    return kept(body)


class _Check:
    def __init__(self, varying: frozenset[str]) -> None:
        self._varying = varying
        self.faults: list[str] = []

    def follow(self, nodes: Sequence[Node], before: _Pending, *, uniform: bool) -> _Pending:
        """Return what is pending behind nodes; ``uniform`` says that all threads get to them."""
        state = before
        for node in nodes:
            state = self._step(node, state, uniform=uniform)
        return state

    def _step(self, node: Node, before: _Pending, *, uniform: bool) -> _Pending:
        if isinstance(node, Barrier):
            if not uniform:
                self.faults.append("a barrier stands where not all threads of a block get to")
            return _Pending()
        if isinstance(node, Scope):
            return self.follow(node.body, before, uniform=uniform)
        if isinstance(node, If):
            inside = uniform and not self._varies(node.conditions)
            first = self.follow(node.body, before, uniform=inside)
            return first.joined(self.follow(node.orelse, before, uniform=inside))
        if isinstance(node, For):
            inside = uniform and not self._varies((node.lower, node.condition, node.step))
            once = before.joined(self.follow(node.body, before, uniform=inside))
            return once.joined(self.follow(node.body, once, uniform=inside))
        return self._access(node, before)

    def _access(self, node: Node, before: _Pending) -> _Pending:
        if not elements(node):
            return before
        target, *sources = elements(node)
        plain = isinstance(node, Copy | Fill) and not (isinstance(node, Copy) and node.adds)
        wrote: set[_Write] = set()
        if target.buffer.space == "shared":
            wrote.add(
                (target.buffer, target.subscripts if isinstance(node, Copy) and plain else None)
            )
        if not (plain or isinstance(node, Compute)):
            sources.append(target)
        reads = {one.buffer for one in sources if one.buffer.space == "shared"}
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
        return before.joined(_Pending(frozenset(wrote), frozenset(reads)))

    def _varies(self, expressions: Iterable[IntExpr]) -> bool:
        return any(_mentions(expression, self._varying) for expression in expressions)


def _varying(body: Sequence[Node]) -> frozenset[str]:
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
