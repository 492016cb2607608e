"""The code of one thread as a small tree: what isl generated, ready to be named and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from eatss.program import IntExpr


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """``for (counter = lower; condition; counter += step)``.

    ``hint`` is the name of the loop of the schedule it runs. ``points`` is set for the loop over
    a thread's points: as many trips at most, none of which depends on another. ``exact`` says that
    it runs where the quotient ``lower`` has no rest, once. ``trips`` is their number where it is
    constant, noted when the loop gets the form it is printed in.
    """

    counter: str
    hint: str
    lower: IntExpr
    condition: IntExpr
    step: int
    body: Node
    points: int | None = None
    exact: bool = False
    trips: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The points of a thread along a loop, as they are printed.

    ``for (counter = 0; counter < count; ++counter) { name = value; if (guards) … }``; ``name`` is
    the loop of the schedule.
    """

    counter: str
    count: int
    name: str
    value: IntExpr
    guards: tuple[IntExpr, ...]
    body: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """``if (condition) … else …``."""

    condition: IntExpr
    body: Node
    orelse: Node | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """An instance: the values of its counters."""

    instance: str
    values: tuple[IntExpr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Nodes one after another."""

    body: tuple[Node, ...]


Node: TypeAlias = Loop | Points | If | Leaf | Block


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves in order."""
    if isinstance(node, Leaf):
        yield node
    elif isinstance(node, Block):
        for child in node.body:
            yield from leaves(child)
    else:
        yield from leaves(node.body)
        if isinstance(node, If) and node.orelse is not None:
            yield from leaves(node.orelse)


def map_expressions(node: Node, change: Callable[[IntExpr], IntExpr]) -> Node:
    """Apply ``change`` to every expression of a tree."""
    if isinstance(node, Leaf):
        return replace(node, values=tuple(change(value) for value in node.values))
    if isinstance(node, Block):
        return Block(body=tuple(map_expressions(child, change) for child in node.body))
    body = map_expressions(node.body, change)
    if isinstance(node, If):
        orelse = None if node.orelse is None else map_expressions(node.orelse, change)
        return If(condition=change(node.condition), body=body, orelse=orelse)
    if isinstance(node, Points):
        guards = tuple(change(guard) for guard in node.guards)
        return replace(node, value=change(node.value), guards=guards, body=body)
    return replace(node, lower=change(node.lower), condition=change(node.condition), body=body)
