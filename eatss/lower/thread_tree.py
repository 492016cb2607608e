"""The code of one thread as a small tree: what isl generated, ready to be named and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from eatss.frozen import frozen
from eatss.program import Apply, Constant, IntExpr, Name
from eatss.trees import Parts


@frozen
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


@frozen
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


@frozen
class If:
    """``if (condition) … else …``."""

    condition: IntExpr
    body: Node
    orelse: Node | None = None


@frozen
class Leaf:
    """An instance: the values of its counters."""

    instance: str
    values: tuple[IntExpr, ...]


@frozen
class Block:
    """Nodes one after another."""

    body: tuple[Node, ...]


Node: TypeAlias = Loop | Points | If | Leaf | Block


TREE: Parts[Node] = Parts(("Node",), Node)
_INTEGERS: Parts[IntExpr] = Parts(("IntExpr",), Constant | Name | Apply)


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves in order."""
    return (one for one in TREE.below(node) if isinstance(one, Leaf))


def map_expressions(node: Node, change: Callable[[IntExpr], IntExpr]) -> Node:
    """Apply ``change`` to every expression of a tree."""
    return TREE.rebuilt(_INTEGERS.rebuilt(node, change), partial(map_expressions, change=change))
