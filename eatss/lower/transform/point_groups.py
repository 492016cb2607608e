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

Rows of tiles in shared memory lie so that lanes meet different banks.

They are padded where lanes load fragments of them.

Blocks that run at the same time are near each other in both directions.

Blocks start in the order of their numbers, ``x`` first. With rows of tiles that are long, those
that run at a time are a few whole rows: they read little of one operand and all of the other. In
groups of rows, column by column, they read less of both from memory.

Blocks of a launch may begin with the last one, where L2 has what the launch before touched last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eatss.analysis.variant import SWIZZLED_ROWS
from eatss.base.frozen import Names, frozen
from eatss.base.targets import AXES, CUDA
from eatss.base.trees import free_name
from eatss.lower.kernel.checks import fault_in
from eatss.lower.kernel.instruction import Instruction
from eatss.lower.kernel.nodes import (
    Compute,
    For,
    Kernel,
    Let,
    Node,
    Nodes,
    Steps,
)
from eatss.lower.kernel.uses import (
    elements,
    every,
    every_of,
    mapped_of,
    names_of,
    own_expressions,
    read,
    substituted,
    trips_from_zero,
    with_buffers,
)
from eatss.lower.lanes import is_first, of_lanes
from eatss.lower.mapping import MappedLoop
from eatss.plan.contract import interleaved_fragments
from eatss.program import (
    Constant,
    Name,
    minimum,
    names_in,
)
from eatss.program.expression import IntExpr, IntExprs, Sizes
from eatss.program.linear import linear


@frozen
class InterleavedPoints:
    """A ``loop`` of which each thread of a block has points that follow each other.

    It loads ``vector`` of them at a time, of which its points are a multiple. Of arrays in
    ``loads`` it does so from global memory. Its vectors may follow each other if not ``always``
    apart.
    """

    loop: MappedLoop
    vector: int
    loads: Names = ()
    always: bool = False


def with_interleaved_vectors(kernel: Kernel, of: InterleavedPoints) -> Kernel:
    """Return a kernel whose threads have vectors of points that lie apart, if they have several.

    Each thread's own follow each other where something besides the value of the loop depends on
    which points it has, as tests of what of a triangle is stored may.

    Raises:
        InternalError: ``EATSS-K901``, that is so of vectors that are ``always`` apart.
    """
    loop = of.loop

    def threads(own: int, apart: int) -> int:
        return loop.threads * ((own, apart) == (loop.points, 1))

    if loop.points <= of.vector:
        return kernel
    counted = trips_of_points(kernel, loop.point) <= {loop.points}
    lanes = asked_of_lanes(loop) if of.loads else asked_of_lanes(loop)[: CUDA.lanes.bit_length()]
    found = None
    if counted:
        found = _in_groups(kernel, loop.thread, loop.point, threads, of.vector, lanes)
    if found is None and of.always:
        raise fault_in(kernel, f"{loop.points} points of {loop.thread} do not lie in vectors")
    return found or kernel


def asked_of_lanes(loop: MappedLoop) -> IntExprs:
    """Return what lanes that add up a sum are asked: which is the first of so many, and of whom."""
    first = (is_first(loop.thread, 2**number) for number in range(CUDA.lanes.bit_length()))
    return (*first, *of_lanes(Name(loop.thread), loop.threads))


def with_fragments_interleaved(kernel: Kernel, instruction: Instruction) -> Kernel:
    """Return a kernel whose threads have parts of neighbouring matrices in turn.

    A loop stays as it is where the points of a thread are no whole matrices, or where something
    besides its value depends on which points a thread has.

    Args:
        kernel: one whose threads are boxes of lanes, if it is to change.
        instruction: what multiplies the matrices.
    """
    target, *factors = sorted(instruction.operands, key=lambda one: one.role != "inout")

    def threads(own: int, apart: int) -> int:
        return max(0, apart) if own == 1 else 0

    for number, (axis, factor) in enumerate(zip(kernel.warps, factors, strict=False)):
        terms = target.held.points[number].terms
        slots = [one for one in target.slots(instruction.lanes) if one.name in terms]
        if len(slots) != 1 or sum(one.name in terms for one in instruction.lanes) != 1:
            continue
        loaded = (factor.element_type,) if factor.element_type else instruction.element_types
        width = max(one.size_bytes for one in loaded)
        # a lane loads several of one matrix: they are beside each other in registers
        inside = slots[0].name in factor.held.points[number].terms
        if inside and width > 1:
            continue
        points, trips = slots[0].extent, trips_of_points(kernel, axis.point)
        values = _values(kernel, axis.thread, axis.point, threads)
        in_rows = _in_rows(kernel.body, {one.name for one in values})
        turns = 1
        if in_rows and not inside:
            turns = min(
                (interleaved_fragments(one, points, width) for one in trips if one), default=1
            )
        whole = all(count and count % points == 0 for count in trips)
        if not whole or points * turns == 1 or (inside and not in_rows):
            continue
        found = _in_groups(kernel, axis.thread, axis.point, threads, points * turns)
        if found is not None:
            warps = list(kernel.warps)
            warps[number] = replace(axis, turns=turns)
            kernel = replace(found, warps=tuple(warps))
    return kernel


def trips_of_points(kernel: Kernel, point: str) -> set[int]:
    """Return how often loops over points of a thread run, 0 for those that nobody counted."""
    return {trips_from_zero(one) or 0 for one in every_of(kernel.body, For) if one.counter == point}


Threads = Callable[[int, int], int]
"""How many threads have points of a loop whose value grows so much from thread to thread, and from
point to point; 0 of any other value."""


def _values(kernel: Kernel, thread: str, point: str, threads: Threads) -> dict[Let, int]:
    """Return the values of a loop, each with how many threads have points of it."""
    found = {}
    for one in every_of(kernel.body, Let):
        form = linear(one.value)
        terms = {} if form is None else form.terms
        count = threads(terms.get(thread, 0), terms.get(point, 0))
        if count:
            found[one] = count
    return found


def _in_groups(
    kernel: Kernel, thread: str, point: str, threads: Threads, size: int, lanes: IntExprs = ()
) -> Kernel | None:
    """Return a kernel with so many points of a thread in each group.

    ``None`` where something else than values of the loop, and than what is asked of ``lanes``,
    depends on which points a thread has.
    """
    values = values_at_points(kernel, thread, point, threads, lanes)
    if values is None:
        return None

    def changed(node: Let) -> Let:
        count = values.get(node, 0)
        form = linear(node.value) if count else None
        if form is None:
            return node
        rest = {name: c for name, c in form.terms.items() if name not in (thread, point)}
        found = replace(form, terms=rest).expression() + Constant(size) * Name(thread)
        found = found + size * count * (Name(point) // size)
        return replace(node, value=found + Name(point) % size)

    return replace(kernel, body=mapped_of(kernel.body, Let, changed))


def values_at_points(
    kernel: Kernel, thread: str, point: str, threads: Threads, lanes: IntExprs = ()
) -> dict[Let, int] | None:
    """Return the values of a loop, each with how many threads have points of it.

    ``None`` where something else than these, and than what is asked of ``lanes``, depends on which
    points a thread has.
    """
    values = _values(kernel, thread, point, threads)
    for node in every(kernel.body):
        own = node in values or node.name == thread if isinstance(node, Let) else False
        counts = isinstance(node, For) and node.counter == point
        if not own and not counts and depends_on_points(node, thread, point, lanes):
            return None
    return values


def _in_rows(nodes: Sequence[Node], values: set[str]) -> bool:
    """Tell whether products read shared memory along these values in rows, and nowhere else."""
    last = []
    for node in every_of(nodes, Compute):
        for element in elements(node):
            if element.buffer.space == "shared":
                *others, row = (values & set(names_in(one)) for one in element.subscripts)
                last += [True] * bool(row) + [False] * any(others)
    return bool(last) and all(last)


def depends_on_points(node: Node, thread: str, point: str, lanes: IntExprs = ()) -> bool:
    """Tell whether a node asks which points a thread has; registers are numbered by its points.

    What is asked of ``lanes`` is left out.
    """
    own = {one for element in elements(node) for one in element.subscripts}
    asked = [one for one in own_expressions(node) if one not in own]
    for element in elements(node):
        asked += [
            one
            for one in element.subscripts
            if element.buffer.space != "register" or one != Name(point)
        ]
    asked = [one for one in asked if one not in lanes]
    return any(name in (thread, point) for one in asked for name in names_in(one))


def padded_for_lanes(kernel: Kernel, paddings: Sizes, most_shared_bytes: int) -> Kernel:
    """Return a kernel whose tiles have the padding that is planned, by their names.

    Only those that fragments are loaded from change, and only as far as shared memory is left.
    """
    loaded = read(node for one in every_of(kernel.body, Steps) for node in one.loads)
    for buffer in kernel.shared:
        if buffer not in loaded or buffer.name not in paddings:
            continue
        other = replace(buffer, layout=replace(buffer.layout, padding=paddings[buffer.name]))
        changed = replace(
            kernel,
            shared=tuple(other if one == buffer else one for one in kernel.shared),
            body=with_buffers(kernel.body, {buffer: other}),
        )
        if changed.shared_bytes <= most_shared_bytes:
            kernel = changed
    return kernel


_X, _Y, _COLUMNS, _ALL_ROWS = (
    Name(own + axis) for own in (CUDA.block, CUDA.blocks) for axis in "xy"
)


def with_threadblock_swizzle(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose blocks take tiles in groups of rows, if they have two directions.

    Names that are ``taken`` stay what they are.
    """
    if not {_X.name, _Y.name} <= names_of(kernel.body):
        return kernel
    number, rows = free_name("block", taken), free_name("rows", taken)
    first = SWIZZLED_ROWS * (_Y // SWIZZLED_ROWS)
    row = _Y % SWIZZLED_ROWS
    order: Nodes = (
        Let(name=number, value=_X + row * _COLUMNS),
        Let(name=rows, value=minimum(_ALL_ROWS - first, SWIZZLED_ROWS)),
    )
    change = {
        _X.name: Name(number) // Name(rows),
        _Y.name: first + Name(number) % Name(rows),
    }
    return replace(kernel, body=(*order, *substituted(kernel.body, change)))


def with_blocks_backwards(kernel: Kernel, taken: set[str]) -> Kernel:
    """Return a kernel whose blocks do what those of the opposite numbers did.

    Names that are ``taken`` stay what they are.
    """
    used = names_of(kernel.body)
    front, change = list[Node](), dict[str, IntExpr]()
    for axis in AXES:
        number, count = CUDA.block + axis, CUDA.blocks + axis
        if number in used:
            name = free_name(f"back_{axis}", taken)
            front.append(Let(name=name, value=Name(count) - 1 - Name(number)))
            change[number] = Name(name)
    return replace(kernel, body=(*front, *substituted(kernel.body, change)))
