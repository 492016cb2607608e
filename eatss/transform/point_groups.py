"""Points of a thread lie in groups that follow each other, the groups of all threads in turn.

    const int j = j0 + 8 * tj + rj;         // vectors of neighbouring points
    const int j = j0 + tj + 8 * rj;         // matrices of which a lane has two columns each

become, for 16 threads with 8 points each and vectors of 4, and for 8 threads and two matrices,

    const int j = j0 + 4 * tj + 64 * (rj / 4) + rj % 4;
    const int j = j0 + 4 * tj + 32 * (rj / 4) + rj % 4;

Threads that follow each other then load vectors that follow each other, as do those that store
them, so that they meet no bank twice. Of four such points of a lane the first and the third are
columns of one matrix, the others of the next: a column and that of the next matrix follow each
other in a row of shared memory. With floats four matrices take turns, where a thread has as many. A
block has the same points as before, only other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eatss.frozen import frozen
from eatss.kernel.instruction import Instruction
from eatss.kernel.nodes import Compute, For, Kernel, Let, Node, WarpAxis
from eatss.kernel.uses import elements, every, mapped, own_expressions, trips_from_zero
from eatss.plan.contract import matrices_in_turn
from eatss.program import Constant, IntExpr, Name, names_in
from eatss.program.linear import linear


@frozen
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

    def threads(value: IntExpr) -> int:
        return of.threads * (_steps(value, of.thread, of.point) == (of.points, 1))

    found = _Loop(kernel, of.thread, of.point, threads)
    same = all(count == of.points for count in found.trips)
    if of.points <= of.vector or not same or not found.values or not found.is_free:
        return kernel
    return found.in_groups(of.vector)


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
            kernel = _in_turn(kernel, number, own[0].extent, width, inside=inside)
    return kernel


def _in_turn(
    kernel: Kernel, number: int, points: int, element_bytes: int, *, inside: bool
) -> Kernel:
    """Return a kernel with the matrices along an axis in turn, or as it was.

    A lane has so many ``points`` of each. Where the two that follow each other in a row are
    ``inside`` of a matrix, that takes no turns.
    """
    axis = kernel.warps[number]

    def threads(value: IntExpr) -> int:
        own, apart = _steps(value, axis.thread, axis.point)
        return max(0, apart) if own == 1 else 0

    found = _Loop(kernel, axis.thread, axis.point, threads)
    in_rows = _in_rows(found.nodes, {one.name for one in found.values})
    turns = 1
    if in_rows and not inside:
        counts = [matrices_in_turn(count, points, element_bytes) for count in found.trips if count]
        turns = min(counts, default=1)
    whole = all(count and count % points == 0 for count in found.trips)
    if not whole or points * turns == 1 or (inside and not in_rows) or not found.is_free:
        return kernel
    axes: list[WarpAxis] = list(kernel.warps)
    axes[number] = replace(axis, turns=turns)
    return replace(found.in_groups(points * turns), warps=tuple(axes))


class _Loop:
    """A loop over points of threads: the ``values`` that are its own, and how often it runs.

    ``threads`` tells of a value how many threads have points of the loop, 0 of any other value.
    """

    def __init__(
        self, kernel: Kernel, thread: str, point: str, threads: Callable[[IntExpr], int]
    ) -> None:
        self._kernel, self._thread, self._point, self._threads = kernel, thread, point, threads
        self.nodes = list(every(kernel.body))
        self.values = [one for one in self.nodes if isinstance(one, Let) and threads(one.value)]
        loops = [one for one in self.nodes if isinstance(one, For) and one.counter == point]
        self.trips = {trips_from_zero(one) or 0 for one in loops}

    @property
    def is_free(self) -> bool:
        """Whether nothing but its values depends on which points a thread has."""
        return not any(
            depends_on_points(node, self._thread, self._point)
            for node in self.nodes
            if not any(node is one for one in self.values)
            and not (isinstance(node, Let) and node.name == self._thread)
            and not (isinstance(node, For) and node.counter == self._point)
        )

    def in_groups(self, size: int) -> Kernel:
        """Return the kernel with so many points in each group."""

        def changed(node: Node) -> tuple[Node, ...]:
            threads = self._threads(node.value) if isinstance(node, Let) else 0
            if isinstance(node, Let) and threads:
                return (replace(node, value=self._in_group(node.value, threads, size)),)
            return (node,)

        return replace(self._kernel, body=mapped(self._kernel.body, changed))

    def _in_group(self, value: IntExpr, threads: int, size: int) -> IntExpr:
        form = linear(value)
        assert form is not None
        rest = {n: c for n, c in form.terms.items() if n not in (self._thread, self._point)}
        point, group = Name(self._point), Constant(size)
        found = replace(form, terms=rest).expression() + group * Name(self._thread)
        number = point // group
        found = found + size * threads * number
        return found + point % group


def _steps(value: IntExpr, thread: str, point: str) -> tuple[int, int]:
    """Return by how much a value grows from thread to thread and from point to point."""
    form = linear(value)
    return (0, 0) if form is None else (form.terms.get(thread, 0), form.terms.get(point, 0))


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
    return any(name in (thread, point) for one in asked for name in names_in(one))
