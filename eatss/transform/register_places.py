"""Loops over all places of registers."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.kernel.nodes import Buffer, For, Node
from eatss.program import Apply, Constant, Name, Operator


def over_places(buffer: Buffer, counters: Sequence[str], node: Node) -> Node:
    """Return a node in unrolled loops over the places of registers, a counter a dimension."""
    for counter, extent in zip(reversed(counters), reversed(buffer.layout.extents), strict=True):
        node = For(
            counter=counter,
            lower=Constant(0),
            condition=Apply(Operator.LT, (Name(counter), extent)),
            step=Constant(1),
            body=(node,),
            unroll="whole",
            narrow=True,
        )
    return node
