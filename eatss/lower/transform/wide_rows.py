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

from collections.abc import Sequence
from dataclasses import replace

from eatss.analysis.banks import COPIED_BYTES
from eatss.base.free_names import free_name
from eatss.base.frozen import frozen
from eatss.lower.kernel.nodes import Aligned, Copy, Element, For, If, Kernel, Let, Node, Nodes
from eatss.lower.kernel.uses import every, every_of, mapped, own_names, trips_from_zero, with_bodies
from eatss.lower.transform.index_sums import in_order
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

_BELOW = {Operator.LT: 1, Operator.LE: 1, Operator.GT: -1, Operator.GE: -1}
"""Comparisons that hold for all of a row where they hold at one end, by the sign of the other."""


def with_wide_rows(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel that stores rows of registers in vectors where those lie beside each other.

    Names that are ``taken`` stay what they are.
    """
    known = {(node.buffer, node.width): node for node in kernel.body if isinstance(node, Aligned)}
    copies = every_of(kernel.body, Copy)
    loaded = {one.source.buffer for one in copies if one.target.buffer.space == "register"}
    new: list[Aligned] = []

    def aligned(row: _Row) -> Name:
        buffer, width = row.copy.target.buffer, row.copy.width
        if (buffer, width) not in known:
            name = free_name(f"wide_{buffer.name}", taken)
            new.append(Aligned(name=name, buffer=buffer, width=width))
            known[buffer, width] = new[-1]
        return Name(known[buffer, width].name)

    def both(loop: For) -> If | None:
        """Return a loop with and without vectors, none where its rows have none or other tests."""
        rows = [row for row in map(_in_vectors, every_of((loop,), For)) if row is not None]
        own = {name for node in every((loop,)) for name in own_names(node)}
        tests = [test for row in rows for test in row.tests]
        if not rows or own & set(names_in(*tests)):
            return None
        if any(row.copy.target.buffer in loaded for row in rows):
            return None
        conditions = dict.fromkeys((*map(aligned, rows), *tests))

        def in_vectors(node: Node) -> Nodes:
            return next(((row.vectors,) for row in rows if row.loop == node), (node,))

        body = mapped((loop,), in_vectors)
        return If(conditions=tuple(conditions), body=body, orelse=(loop,))

    def changed(nodes: Sequence[Node]) -> Nodes:
        """Return nodes whose unrolled loops are there a second time, with rows in vectors.

        The test stands around the outermost loop that does not change it: so what one row waits for
        does not hold up the next.
        """
        whole = (
            both(one) if isinstance(one, For) and one.unroll == "whole" else None for one in nodes
        )
        return tuple(
            found or with_bodies(node, changed) for node, found in zip(nodes, whole, strict=True)
        )

    body = changed(kernel.body)
    return replace(kernel, body=(*new, *body)) if new or body != kernel.body else kernel


@frozen
class _Row:
    """A loop over points of a thread, and the same in ``vectors`` where ``tests`` hold."""

    loop: For
    vectors: For
    copy: Copy
    tests: tuple[IntExpr, ...]


def _in_vectors(loop: For) -> _Row | None:
    """Return a loop that copies a row of registers to memory, ``None`` if it has no vectors."""
    points = trips_from_zero(loop)
    if not points or loop.unroll != "whole" or len(loop.body) != len(("value", "copy")):
        return None
    value, copy = loop.body
    conditions: tuple[IntExpr, ...] = ()
    if isinstance(copy, If) and not copy.orelse and len(copy.body) == 1:
        conditions, (copy,) = copy.conditions, copy.body
    if not isinstance(value, Let) or not isinstance(copy, Copy) or copy.condition is not None:
        return None
    memory, register = copy.target, copy.source
    width = COPIED_BYTES // memory.buffer.element_type.size_bytes
    spaces, counter = (memory.buffer.space, register.buffer.space), Name(loop.counter)
    last = (memory.subscripts[-1:], register.subscripts[-1:])
    if spaces != ("global", "register") or last != ((Name(value.name),), (counter,)):
        return None
    others = names_in(*memory.subscripts[:-1], *register.subscripts[:-1])
    strides = [one for one in memory.buffer.layout.strides[:-1] if isinstance(one, Constant)]
    if (
        width == 1
        or not memory.buffer.element_type.is_floating
        or {value.name, loop.counter} & {*others}
        or any(one.value % width for one in strides)
    ):
        return None

    def at(point: int) -> IntExpr:
        return substitute(value.value, {loop.counter: Constant(point)})

    first = at(0)
    begins = _not_whole(first, width)
    worst = [_at_worst(one, loop, value.name, at(0), at(points - 1)) for one in conditions]
    ends = [one for one in worst if one is not None]
    places = [in_order(at(point) - first) for point in range(points)]
    if not _are_vectors(places, width) or begins is None or len(ends) < len(worst):
        return None
    tests = [] if begins == Constant(0) else [equals(begins % width, 0)]
    change: dict[str, IntExpr] = {loop.counter: width * counter}

    def of_vector(one: Element) -> Element:
        return replace(one, subscripts=tuple(substitute(s, change) for s in one.subscripts))

    moved = replace(copy, target=of_vector(memory), source=of_vector(register), width=width)
    place = replace(value, value=in_order(substitute(value.value, change)))
    vectors = replace(loop, condition=counter < points // width, body=(place, moved))
    return _Row(loop=loop, vectors=vectors, copy=moved, tests=(*tests, *ends))


def _at_worst(
    condition: IntExpr, loop: For, value: str, first: IntExpr, last: IntExpr
) -> IntExpr | None:
    """Return a condition at the point where it fails first, ``None`` where that is not known.

    Values grow from the ``first`` point to the ``last``.
    """
    if not {value, loop.counter} & set(names_in(condition)):
        return condition
    if not isinstance(condition, Apply) or condition.operator not in _BELOW:
        return None
    form = linear(difference(*condition.operands))
    if form is None or loop.counter in form.terms or value not in form.terms:
        return None
    grows = form.terms[value] * _BELOW[condition.operator] > 0
    return substitute(condition, {value: in_order(last if grows else first)})


def _are_vectors(places: Sequence[IntExpr], width: int) -> bool:
    """Tell whether points are whole vectors, one behind the other."""
    values = [one.value for one in places if isinstance(one, Constant)]
    begins = values[::width]
    whole = [one + at for one in begins for at in range(width)]
    aligned = not any(one % width for one in begins) and begins == sorted({*begins})
    return len(values) == len(places) and values == whole and aligned


def _not_whole(value: IntExpr, by: int) -> IntExpr | None:
    """Return what of a sum is not known to be whole multiples of a number."""
    form = linear(in_order(value))
    if form is None:
        return None
    terms = {name: factor for name, factor in form.terms.items() if factor % by}
    return Linear(terms, form.constant % by).expression()
