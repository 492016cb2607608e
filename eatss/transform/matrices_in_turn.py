"""Columns of neighbouring matrices take turns, so that a lane loads those of two at a time.

    const int j = j0 + tj + 8 * rj;

becomes, for matrices of which a lane has two columns each,

    const int j = j0 + 4 * tj + 32 * (rj / 4) + rj % 4;

Of such four points the first and the third are columns of one matrix, the others of the next. A
column and that of the next matrix, which the same lane loads, follow each other in a row of shared
memory. A block has the same points as before, only other threads. With floats four matrices take
turns, where a thread has as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eatss.kernel.instruction import Instruction
from eatss.kernel.nodes import Compute, For, Kernel, Let, Node, WarpAxis
from eatss.kernel.uses import elements, every, mapped, trips_from_zero
from eatss.plan.contract import matrices_in_turn
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
from eatss.transform.vectors_apart import depends_on_points


def with_matrices_in_turn(kernel: Kernel, instruction: Instruction) -> Kernel:
    """Return a kernel whose threads have parts of neighbouring matrices in turn.

    A loop stays as it is where the points of a thread are no whole matrices, or where something
    besides its value depends on which points a thread has.

    Args:
        kernel: one whose threads are boxes of lanes, if it is to change.
        instruction: what multiplies the matrices.
    """
    target, *factors = sorted(instruction.operands, key=lambda one: one.role != "inout")
    slots = target.slots(instruction.lanes)
    for number, factor in enumerate(factors if kernel.warps else ()):
        terms = target.held.points[number].terms
        own = [one for one in slots if one.name in terms]
        lanes = [one for one in instruction.lanes if one.name in terms]
        if len(own) != 1 or len(lanes) != 1:
            continue
        loaded = (factor.element_type,) if factor.element_type else instruction.element_types
        width = max(one.size_bytes for one in loaded)
        # a lane loads several of one matrix: they are beside each other in registers
        inside = bool({one.name for one in own} & set(factor.held.points[number].terms))
        if not inside or width == 1:
            turns = _Turns(number=number, points=own[0].extent, element_bytes=width, inside=inside)
            kernel = turns.changed(kernel)
    return kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """Matrices along the loop of an axis, of each of which a lane has so many ``points``.

    Where the two that follow each other in a row are ``inside`` of a matrix, that takes no turns.
    """

    number: int
    points: int
    element_bytes: int
    inside: bool

    def changed(self, kernel: Kernel) -> Kernel:
        """Return a kernel with the matrices in turn, or as it was."""
        axis, nodes = kernel.warps[self.number], list(every(kernel.body))
        values = [node for node in nodes if isinstance(node, Let) and _threads(node.value, axis)]
        others = [
            node
            for node in nodes
            if not any(node is one for one in values)
            and not (isinstance(node, Let) and node.name == axis.thread)
            and not (isinstance(node, For) and node.counter == axis.point)
        ]
        loops = [node for node in nodes if isinstance(node, For) and node.counter == axis.point]
        trips = {trips_from_zero(loop) or 0 for loop in loops}
        turns = min(
            (matrices_in_turn(count, self.points, self.element_bytes) for count in trips if count),
            default=1,
        )
        if 0 in trips or any(count % self.points for count in trips):
            return kernel
        in_rows = _in_rows(nodes, {one.name for one in values})
        if self.inside or not in_rows:
            turns = 1
        if (
            self.points * turns == 1
            or (self.inside and not in_rows)
            or any(depends_on_points(node, axis.thread, axis.point) for node in others)
        ):
            return kernel

        def changed(node: Node) -> tuple[Node, ...]:
            threads = _threads(node.value, axis) if isinstance(node, Let) else 0
            if isinstance(node, Let) and threads:
                return (replace(node, value=self._in_turn(node.value, axis, threads, turns)),)
            return (node,)

        axes = list(kernel.warps)
        axes[self.number] = replace(axis, turns=turns)
        return replace(kernel, body=mapped(kernel.body, changed), warps=tuple(axes))

    def _in_turn(self, value: IntExpr, axis: WarpAxis, threads: int, turns: int) -> IntExpr:
        form = linear(value)
        assert form is not None
        rest = {name: c for name, c in form.terms.items() if name not in (axis.thread, axis.point)}
        point, vector = Name(axis.point), Constant(self.points * turns)
        apart = Constant(self.points * turns * threads)
        found = replace(form, terms=rest).expression()
        for one in (
            multiplied(vector, Name(axis.thread)),
            multiplied(apart, quotient(point, vector)),
            remainder(point, vector),
        ):
            found = total(found, one)
        return found


def _threads(value: IntExpr, axis: WarpAxis) -> int:
    """Return the threads in ``origin + thread + threads * point``, else 0."""
    form = linear(value)
    if form is None or form.terms.get(axis.thread) != 1:
        return 0
    return max(0, form.terms.get(axis.point, 0))


def _in_rows(nodes: Sequence[Node], values: set[str]) -> bool:
    """Tell whether products read shared memory along these values in rows, and nowhere else."""
    last: list[bool] = []
    for node in nodes:
        if not isinstance(node, Compute):
            continue
        for element in elements(node):
            if element.buffer.space == "shared":
                *others, row = (values & set(names_in(one)) for one in element.subscripts)
                last += [True] * bool(row) + [False] * any(others)
    return bool(last) and all(last)
