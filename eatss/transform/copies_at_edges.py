"""Boxes at the edge of an array are copied as whole ones are, each element or vector with a test.

    if (box is whole) …copy…
    else if (its steps are) { for (e < 4) copy row e where that row is there }
    else { copy element by element, each where it is there }

The second way needs no more than a test that no step of a loop changes, such as ``i < N``. Where a
loop over steps of products has one text for whole tiles, it takes all that the first does, and
blocks at an edge are as fast as others; elsewhere that test only costs registers. So loops that
load operands a step ahead take the second and third way, and all others the first and third.
"""

from __future__ import annotations

from collections.abc import Sequence

from eatss.kernel.nodes import If, Node
from eatss.kernel.uses import mapped
from eatss.program import Constant

_ALWAYS = Constant(1)


def without_tests(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with the first and the third way."""

    def changed(node: Node) -> tuple[Node, ...]:
        steps = _steps(node)
        if steps is None or not isinstance(node, If):
            return (node,)
        return (If(conditions=node.conditions, body=node.body, orelse=steps.orelse),)

    return mapped(nodes, changed)


def with_tests(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with the second and the third way."""

    def changed(node: Node) -> tuple[Node, ...]:
        steps = _steps(node)
        if steps is None:
            return (node,)
        return steps.body if steps.conditions == (_ALWAYS,) else (steps,)

    return mapped(nodes, changed)


def _steps(node: Node) -> If | None:
    """Return the second and the third way of copies, ``None`` where there are not three."""
    if not isinstance(node, If) or not node.tested:
        return None
    (steps,) = node.orelse
    assert isinstance(steps, If)
    return steps
