"""Rows of registers go to memory 16 bytes at a time.

    for (rj = 0; rj < 8; ++rj) {
        const int j = j0 + 4 * tj + 64 * (rj / 4) + rj % 4;
        if (j < N) C[i][j] = C_r[ri][rj];
    }

becomes, where rows of ``C`` begin at multiples of 16 bytes,

    if (wide_C && j0 % 4 == 0 && (j of the last point) < N)
        for (rj = 0; rj < 2; ++rj) {
            const int j = j0 + 4 * tj + 64 * rj;
            eatss_store_wide(&C[i][j], &C_r[ri][4 * rj]);
        }
    else …as before…

Threads that follow each other have vectors that follow each other. One by one, each of their stores
would write a part of every sector only. Where results are added to what memory had, it stays as it
was: with two ways to load rows some compilers keep so many of them that they spill the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from eatss.analysis.banks import COPIED_BYTES
from eatss.free_names import free_name
from eatss.frozen import frozen
from eatss.kernel.nodes import Aligned, Copy, Element, For, If, Kernel, Let, Node
from eatss.kernel.uses import every, every_of, mapped, trips_from_zero, with_bodies
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    difference,
    equals,
    names_in,
    substitute,
)
from eatss.program.linear import Linear, linear
from eatss.transform.index_sums import in_order

_BELOW = {Operator.LT: 1, Operator.LE: 1, Operator.GT: -1, Operator.GE: -1}
"""Comparisons that hold for all of a row where they hold at one end, by the sign of the other."""


def with_wide_rows(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel that stores rows of registers in vectors where those lie beside each other.

    Names that are ``taken`` stay what they are.
    """
    known = {(node.buffer, node.width): node for node in kernel.body if isinstance(node, Aligned)}
    loaded = {
        node.source.buffer
        for node in every_of(kernel.body, Copy)
        if node.target.buffer.space == "register"
    }
    new: list[Aligned] = []

    def aligned(row: _Row) -> Name | None:
        buffer, width = row.copy.target.buffer, row.width
        if buffer in loaded:
            return None
        node = known.get((buffer, width))
        if node is None:
            name = free_name(f"wide_{buffer.name}", taken)
            node = known[buffer, width] = Aligned(name=name, buffer=buffer, width=width)
            new.append(node)
        return Name(node.name)

    body = _changed(kernel.body, aligned)
    return replace(kernel, body=(*new, *body)) if new or body != kernel.body else kernel


def _changed(nodes: Sequence[Node], aligned: Callable[[_Row], Name | None]) -> tuple[Node, ...]:
    """Return nodes whose unrolled loops are there a second time, with rows in vectors.

    The test stands around the outermost loop that does not change it: so what one row waits for
    does not hold up the next.
    """
    found: list[Node] = []
    for node in nodes:
        whole = node if isinstance(node, For) and node.unroll == "whole" else None
        both = None if whole is None else _both(whole, aligned)
        found.append(both or with_bodies(node, partial(_changed, aligned=aligned)))
    return tuple(found)


def _both(loop: For, aligned: Callable[[_Row], Name | None]) -> If | None:
    """Return a loop with and without vectors, ``None`` where its rows have none or other tests."""
    inside = list(every((loop,)))
    rows = [_Row.of(node) for node in inside if isinstance(node, For)]
    wide = [(row, vectors) for row in rows if row is not None and (vectors := row.wide())]
    if not wide:
        return None
    own = {node.name for node in inside if isinstance(node, Let)}
    own |= {node.counter for node in inside if isinstance(node, For)}
    tests = [test for _, vectors in wide for test in vectors.conditions]
    if any(own & set(names_in(test)) for test in tests):
        return None
    places = [aligned(row) for row, _ in wide]
    if None in places:
        return None
    conditions = dict.fromkeys((*(one for one in places if one is not None), *tests))

    def vectors_of(node: Node) -> tuple[Node, ...]:
        return next((vectors.body for row, vectors in wide if row.loop == node), (node,))

    return If(conditions=tuple(conditions), body=mapped((loop,), vectors_of), orelse=(loop,))


@frozen
class _Row:
    """A loop over points of a thread that copies registers to memory."""

    loop: For
    points: int
    value: Let
    conditions: tuple[IntExpr, ...]
    copy: Copy

    @classmethod
    def of(cls, loop: For) -> _Row | None:
        """Return a loop as such a row, ``None`` if it is something else."""
        points = trips_from_zero(loop)
        if not points or loop.unroll != "whole" or loop.cycle is not None or len(loop.body) != 2:
            return None
        value, inside = loop.body
        conditions: tuple[IntExpr, ...] = ()
        if isinstance(inside, If) and not inside.orelse and len(inside.body) == 1:
            conditions, (inside,) = inside.conditions, inside.body
        if not isinstance(value, Let) or not isinstance(inside, Copy):
            return None
        found = cls(loop=loop, points=points, value=value, conditions=conditions, copy=inside)
        return found if found._is_row() else None

    @property
    def width(self) -> int:
        """How many elements are moved at a time."""
        return COPIED_BYTES // self.copy.target.buffer.element_type.size_bytes

    def _is_row(self) -> bool:
        memory, register = self.copy.target, self.copy.source
        if (memory.buffer.space, register.buffer.space) != ("global", "register"):
            return False
        if self.copy.condition is not None or not memory.buffer.element_type.is_floating:
            return False
        if self.width == 1 or not memory.subscripts or not register.subscripts:
            return False
        *outer, last = memory.subscripts
        *rows, point = register.subscripts
        own = {self.value.name, self.loop.counter}
        if any(own & set(names_in(one)) for one in (*outer, *rows)):
            return False
        strides = [one for one in memory.buffer.layout.strides[:-1] if isinstance(one, Constant)]
        whole = all(one.value % self.width == 0 for one in strides)
        return whole and last == Name(self.value.name) and point == Name(self.loop.counter)

    def wide(self) -> If | None:
        """Return vectors and when they may be moved, ``None`` where points are no vectors."""
        first = self._value_at(0)
        places = [in_order(self._value_at(k) - first) for k in range(self.points)]
        if not _are_vectors(places, self.width):
            return None
        begins = _not_whole(first, self.width)
        if begins is None:
            return None
        tests: list[IntExpr] = []
        if begins != Constant(0):
            rest = begins % self.width
            tests.append(equals(rest, 0))
        for condition in self.conditions:
            end = self._at_worst(condition)
            if end is None:
                return None
            tests.append(end)
        counter = self.loop.counter
        later = self.width * Name(counter)
        change = {counter: later}
        last = Constant(self.points // self.width)

        def of_vector(one: Element) -> Element:
            return replace(one, subscripts=tuple(substitute(s, change) for s in one.subscripts))

        copy = self.copy
        moved = replace(
            copy,
            target=of_vector(copy.target),
            source=of_vector(copy.source),
            width=self.width,
        )
        value = replace(self.value, value=in_order(substitute(self.value.value, change)))
        condition = Name(counter) < last
        return If(
            conditions=tuple(dict.fromkeys(tests)),
            body=(replace(self.loop, condition=condition, body=(value, moved)),),
        )

    def _value_at(self, point: int) -> IntExpr:
        return substitute(self.value.value, {self.loop.counter: Constant(point)})

    def _at_worst(self, condition: IntExpr) -> IntExpr | None:
        """Return a condition at the point where it fails first, ``None`` where that is not known.

        Values grow from point to point.
        """
        if not {self.value.name, self.loop.counter} & set(names_in(condition)):
            return condition
        if not isinstance(condition, Apply) or condition.operator not in _BELOW:
            return None
        form = linear(difference(*condition.operands))
        if form is None or self.loop.counter in form.terms or self.value.name not in form.terms:
            return None
        grows = form.terms[self.value.name] * _BELOW[condition.operator] > 0
        worst = in_order(self._value_at(self.points - 1 if grows else 0))
        return substitute(condition, {self.value.name: worst})


def _are_vectors(places: Sequence[IntExpr], width: int) -> bool:
    """Tell whether points are whole vectors, one behind the other."""
    values = [one.value for one in places if isinstance(one, Constant)]
    if len(values) != len(places) or len(values) % width or values != sorted(values):
        return False
    return all(
        value == values[at - at % width] + at % width for at, value in enumerate(values)
    ) and all(value % width == 0 for value in values[::width])


def _not_whole(value: IntExpr, by: int) -> IntExpr | None:
    """Return what of a sum is not known to be whole multiples of a number."""
    form = linear(in_order(value))
    if form is None:
        return None
    terms = {name: factor for name, factor in form.terms.items() if factor % by}
    return Linear(terms, form.constant % by).expression()
