"""What a thread loads for all rows of its points it loads before it tests which rows there are.

    for (ri…) if (i < k) for (rj…) C_r[ri][rj] += sh.A[k][i] * sh.B[k][j];

becomes

    float B_k[16]; for (rj…) B_k[rj] = sh.B[k][j];
    for (ri…) if (i < k) for (rj…) C_r[ri][rj] += sh.A[k][i] * B_k[rj];

A compiler cannot know that all of a row of shared memory may be loaded, so it loads it anew behind
each test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eatss.base.free_names import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Source,
)
from eatss.lower.kernel.uses import every_of, mapped, names_of, trips_from_zero
from eatss.program import Constant, Name, names_in


def with_loads_before_tests(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose threads load before tests what does not depend on what these ask.

    Only boxes are loaded from that are filled as a whole. Names that are ``taken`` stay what they
    are.
    """
    partly = {
        node.target.buffer
        for node in every_of(kernel.body, Copy)
        if node.condition is not None and not node.clears
    }
    whole = frozenset(kernel.shared) - partly

    def changed(node: Node) -> Nodes:
        tested = _Tested.of(node)
        return (node,) if tested is None else tested.nodes(whole, taken)

    return replace(kernel, body=mapped(kernel.body, changed))


@dataclass(frozen=True, slots=True)
class _Tested:
    """A loop over rows, the test in it, and the loop over the points of a row behind that."""

    rows: For
    lets: tuple[Let, ...]
    test: If
    points: For
    count: int

    @classmethod
    def of(cls, node: Node) -> _Tested | None:
        """Return such a loop, ``None`` for any other node."""
        if not isinstance(node, For) or node.unroll != "whole" or not node.body:
            return None
        *lets, test = node.body
        if not isinstance(test, If) or test.orelse or len(test.body) != 1:
            return None
        (points,) = test.body
        plain = isinstance(points, For) and points.unroll == "whole"
        if not plain or not all(isinstance(one, Let) for one in lets):
            return None
        assert isinstance(points, For)
        if any(not isinstance(one, Let | Source | Compute) for one in points.body):
            return None
        count = trips_from_zero(points)
        own = tuple(one for one in lets if isinstance(one, Let))
        return None if count is None else cls(node, own, test, points, count)

    def nodes(self, whole: frozenset[Buffer], taken: set[str]) -> Nodes:
        """Return the loop with what is loaded in front of it."""
        own = {self.rows.counter, *(one.name for one in self.lets)}
        inner = [one for one in self.points.body if isinstance(one, Let)]
        loads: dict[Element, Element] = {}
        for element in self._read():
            if (
                element.buffer in whole
                and element not in loads
                and self._moves(element, inner, own)
            ):
                loads[element] = self._register(element, taken)
        if not loads:
            return (self.rows,)
        front: list[Node] = [Declare(buffer=one.buffer) for one in loads.values()]
        copies = (Copy(target=one, source=element) for element, one in loads.items())
        front.append(replace(self.points, body=(*inner, *copies)))
        body = [_with_reads(one, loads) for one in self.points.body]
        used = names_of(body)
        kept = (one for one in body if not isinstance(one, Let) or one.name in used)
        points = replace(self.points, body=tuple(kept))
        return (*front, replace(self.rows, body=(*self.lets, replace(self.test, body=(points,)))))

    def _read(self) -> Iterator[Element]:
        for node in self.points.body:
            if isinstance(node, Compute):
                yield from node.reads[1:]

    def _moves(self, element: Element, inner: Sequence[Let], own: set[str]) -> bool:
        """Tell whether an element moves along the points of a row, and is the same in all rows."""
        names = set(names_in(*element.subscripts))
        for one in reversed(inner):
            if one.name in names:
                names |= set(names_in(one.value))
        return self.points.counter in names and not names & own

    def _register(self, element: Element, taken: set[str]) -> Element:
        buffer = Buffer(
            name=free_name(f"{element.buffer.name}_row", taken),
            space="register",
            element_type=element.buffer.element_type,
            layout=Extents((Constant(self.count),)),
        )
        return Element(buffer=buffer, subscripts=(Name(self.points.counter),))


def _with_reads(node: Node, loads: dict[Element, Element]) -> Node:
    if not isinstance(node, Compute):
        return node
    return replace(node, reads=tuple(loads.get(one, one) for one in node.reads))
