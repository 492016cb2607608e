"""Vectors of neighbouring points that a thread has lie apart, so that threads meet no bank twice.

    const int j = j0 + 8 * tj + rj;

becomes

    const int j = j0 + 4 * tj + 64 * (rj / 4) + rj % 4;

for 16 threads with 8 points each. Threads that follow each other then load vectors that follow each
other, as do those that store them. A block has the same points as before, only other threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eatss.kernel.nodes import For, Kernel, Let, Node
from eatss.kernel.uses import elements, every, mapped, own_expressions, trips_from_zero
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    multiplied,
    names_in,
    quotient,
    remainder,
    total,
)
from eatss.program.linear import linear


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """A loop of which each thread of a block has points that follow each other.

    ``thread`` and ``point`` are the names of a thread's place and of what counts its points. It
    loads ``vector`` of them at a time, of which ``points`` is a multiple.
    """

    thread: str
    threads: int
    point: str
    points: int
    vector: int


def with_vectors_apart(kernel: Kernel, of: Neighbours) -> Kernel:
    """Return a kernel whose threads have vectors of points that lie apart.

    It stays as it is where a thread has one vector only, or where something besides the value of
    the loop depends on which points a thread has.
    """
    nodes = list(every(kernel.body))
    values = [node for node in nodes if isinstance(node, Let) and _is_value(node.value, of)]
    others = [
        node
        for node in nodes
        if not any(node is one for one in values)
        and not (isinstance(node, Let) and node.name == of.thread)
        and not (isinstance(node, For) and node.counter == of.point)
    ]
    if (
        of.points <= of.vector
        or not values
        or any(depends_on_points(node, of.thread, of.point) for node in others)
    ):
        return kernel
    loops = [node for node in nodes if isinstance(node, For) and node.counter == of.point]
    if any(trips_from_zero(loop) != of.points for loop in loops):
        return kernel

    def changed(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Let) and _is_value(node.value, of):
            return (replace(node, value=_apart(node.value, of)),)
        return (node,)

    return replace(kernel, body=mapped(kernel.body, changed))


def _is_value(value: IntExpr, of: Neighbours) -> bool:
    """Tell whether a value is ``origin + points * thread + point``."""
    form = linear(value)
    if form is None:
        return False
    terms = dict(form.terms)
    thread, point = terms.pop(of.thread, 0), terms.pop(of.point, 0)
    return thread == of.points and point == 1


def _apart(value: IntExpr, of: Neighbours) -> IntExpr:
    form = linear(value)
    assert form is not None
    rest = {name: c for name, c in form.terms.items() if name not in (of.thread, of.point)}
    vector, point = Constant(of.vector), Name(of.point)
    apart = multiplied(Constant(of.vector * of.threads), quotient(point, vector))
    inside = remainder(point, vector)
    first = total(replace(form, terms=rest).expression(), multiplied(vector, Name(of.thread)))
    return total(total(first, apart), inside)


def depends_on_points(node: Node, thread: str, point: str) -> bool:
    """Tell whether a node asks which points a thread has; registers are numbered by its points."""
    own = {one for element in elements(node) for one in element.subscripts}
    asked = [one for one in own_expressions(node) if one not in own]
    for element in elements(node):
        asked += [
            one
            for one in element.subscripts
            if element.buffer.space != "register" or one != Name(point)
        ]
    return any(name in (thread, point) for name in names_in(*asked))
