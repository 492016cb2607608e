"""From a kernel as it was lowered to the one that is printed; barriers come last.

Barriers stand between definitions and uses in shared memory. Nodes are gone through in order, with
what is written and read since the last barrier. Before a node that would meet it a barrier is put;
where the next iteration of a loop would, at the end of its body. What comes of it is judged by
:mod:`eatss.lower.kernel.barriers`, which knows nothing of how barriers are put: they are enough,
and with one fewer they would not be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from eatss.base.diagnostics import input_error
from eatss.lower.instructions import of_warps
from eatss.lower.kernel.barriers import (
    NOTHING,
    Follower,
    Overlaid,
    Pending,
    barrier_faults,
    behind_barrier,
    behind_turn,
    needed_barriers_only,
    varying_names,
    with_integers,
)
from eatss.lower.kernel.checks import fault_in, kernel_faults
from eatss.lower.kernel.instruction import Instruction
from eatss.lower.kernel.nodes import Barrier, Buffer, For, Kernel, Node, Nodes, Scope
from eatss.lower.kernel.uses import inexact_instructions, taken_names, with_bodies, without_unused
from eatss.lower.transform.copy_ways import (
    Copying,
    with_rows_in_registers,
    with_vectorised_stores,
)
from eatss.lower.transform.epilogues import with_epilogue_scaling, with_factors_grouped
from eatss.lower.transform.invariant_parts import with_invariant_parts
from eatss.lower.transform.load_matrices import with_matrices_loaded
from eatss.lower.transform.pipeline import pipelined
from eatss.lower.transform.point_groups import (
    InterleavedPoints,
    padded_for_lanes,
    with_fragments_interleaved,
    with_interleaved_vectors,
    with_threadblock_swizzle,
)
from eatss.lower.transform.registers_defined import (
    with_loads_before_tests,
    with_registers_defined,
)
from eatss.lower.transform.row_windows import with_row_windows
from eatss.lower.transform.rows_in_vectors import RowVectors, with_rows_in_vectors
from eatss.lower.transform.rows_one_by_one import with_rows_one_by_one
from eatss.lower.transform.shared_reciprocals import with_shared_reciprocals
from eatss.lower.transform.stores_last import with_stores_last
from eatss.lower.transform.stream_k import Stream, with_steps_streamed
from eatss.lower.transform.use_instruction import use_warp_instruction
from eatss.program.expression import Sizes


def transformed(
    kernel: Kernel,
    *,
    instructions: Sequence[str],
    macros: Collection[str],
    integers: Sequence[str],
    strict_fp: bool,
    neighbours: Sequence[InterleavedPoints] = (),
    stages: int = 1,
    most_shared_bytes: int = 0,
    registers: int = 0,
    stream: Stream | None = None,
    paddings: Sizes | None = None,
    points: Collection[str] = (),
    row_windows: bool = False,
    row_vectors: RowVectors | None = None,
) -> Kernel:
    """Return a kernel with what a recipe names done to it, and barriers put.

    Args:
        kernel: without barriers.
        instructions: names of instructions to use where they fit.
        macros: names that kernels know without being passed them.
        integers: what it is passed besides arrays where it mentions that, in the order of this.
        strict_fp: whether floating-point operations are to be those of the source.
        neighbours: loops of which threads have points that follow each other.
        stages: how many buffers of each tile there are to be, see :func:`pipelined`.
        most_shared_bytes: what a block may have.
        registers: what a compiler may give a thread.
        stream: how blocks are to take steps of all tiles, if they are.
        paddings: of shared-memory tiles that lanes load fragments from, by their names.
        points: counters of the points that a thread has of parallel loops.
        row_windows: whether threads have steps along rows that they write in registers.
        row_vectors: how threads have vectors of rows that they keep, if they do.

    Raises:
        InputError: ``EATSS-X005``, there is no such instruction; ``EATSS-K019``, one rounds
            otherwise than is asked for.
        InternalError: ``EATSS-K901``, a kernel is not well formed, or threads may meet in shared
            memory without a barrier.
    """
    sizes = (*macros, *integers)

    def taken(of: Kernel) -> set[str]:
        return taken_names(of, sizes)

    kernel = _checked(kernel, sizes)
    rows: frozenset[Buffer] = frozenset()
    for one in neighbours:
        kernel = with_interleaved_vectors(kernel, one)
        kernel, own = with_rows_in_registers(kernel, one.loop.point, one.loads, taken(kernel))
        rows |= own
    if row_vectors is not None:
        kernel, rows = with_rows_in_vectors(kernel, row_vectors, taken(kernel))
    for name in instructions:
        kernel = _with_instruction(kernel, of_warps(name), taken, apart=stream is not None)
    if kernel.warps:
        kernel = padded_for_lanes(kernel, paddings or {}, most_shared_bytes)
        kernel = with_threadblock_swizzle(kernel, taken(kernel))
    if not strict_fp:
        kernel = _regrouped(kernel, sizes, stream)
        kernel = _checked(kernel, sizes, "after factors were put in another order: ")
    kernel = _checked(
        with_loads_before_tests(kernel, taken(kernel)), sizes, "after loads before tests: "
    )
    plain = replace(kernel, body=Copying().nodes(kernel.body))
    if stages > 1:
        ahead = pipelined(kernel, stages, most_shared_bytes, taken(kernel), registers)
        alone = ahead.body != plain.body and not kernel.warps
        plain = with_threadblock_swizzle(ahead, taken(ahead)) if alone else ahead
        plain = _checked(plain, sizes, "after copying ahead: ")
    kernel = with_vectorised_stores(plain, taken(plain), rows)
    kernel = _checked(kernel, sizes, "after rows in vectors: ")
    kernel = with_stores_last(kernel, points, taken(kernel))
    if row_windows:
        kernel = with_row_windows(kernel, taken(kernel))
    kernel = with_invariant_parts(kernel, taken(kernel))
    kernel = with_shared_reciprocals(kernel, points, taken(kernel))
    kernel = with_registers_defined(kernel, taken(kernel))
    # tests of where rows begin may need sizes that nothing else does
    kernel = with_integers(replace(kernel, body=without_unused(kernel.body)), integers)
    kernel = _checked(kernel, macros, "after registers got values: ")
    if strict_fp:
        _check_rounding(kernel)
    return synchronised(kernel, macros)


def synchronised(kernel: Kernel, sizes: Collection[str]) -> Kernel:
    """Return a kernel with barriers, whose threads are shown not to meet without one.

    Args:
        kernel: without barriers.
        sizes: names that kernels know without being passed them.

    Raises:
        InternalError: ``EATSS-K901``, it is not well formed, or threads may meet.
    """
    found = replace(kernel, body=with_barriers(kernel.body, kernel.overlaid))
    for fault in barrier_faults(found.body, found.overlaid):
        raise fault_in(found, fault)
    return _checked(found, sizes)


def _checked(kernel: Kernel, sizes: Collection[str], when: str = "") -> Kernel:
    """Return a kernel that is well formed, or raise its first fault."""
    for fault in kernel_faults(kernel, sizes):
        raise fault_in(kernel, f"{when}{fault}")
    return kernel


def _check_rounding(kernel: Kernel) -> None:
    """Refuse instructions that round otherwise than C."""
    inexact = ", ".join(inexact_instructions(kernel))
    if inexact:
        raise input_error(
            "EATSS-K019",
            f"{inexact} may round otherwise than C, and --strict-fp keeps all rounding",
            hint="leave one of the two out",
        )


def _regrouped(kernel: Kernel, sizes: Collection[str], stream: Stream | None) -> Kernel:
    """Return a kernel with shared factors last and others in groups, its steps streamed.

    One whose sums have shared factors last already stays as it is. Sums are parted from loaded
    values where steps are streamed.
    """
    found = kernel
    if not kernel.regroups:
        taken = taken_names(kernel, sizes)
        found = with_epilogue_scaling(kernel, taken, apart=stream is not None)
        found = kernel if found.body == kernel.body else with_rows_one_by_one(found)
    if stream is not None:
        found = with_steps_streamed(found, stream, sizes, taken_names(found, sizes))
    return with_factors_grouped(found)


def _with_instruction(
    kernel: Kernel,
    instruction: Instruction,
    taken: Callable[[Kernel], set[str]],
    *,
    apart: bool,
) -> Kernel:
    """Return a kernel that uses an instruction where it fits.

    It makes sums of whole tiles, so factors that all products share can wait, and so can what sums
    begin with if they are to be ``apart``.
    """
    interleaved = with_fragments_interleaved(kernel, instruction) if kernel.warps else kernel
    names = taken(kernel)
    sums = with_epilogue_scaling(interleaved, names, apart=apart)
    found = use_warp_instruction(sums, instruction, names)
    if found is not None:
        return with_rows_one_by_one(with_matrices_loaded(found, instruction))
    found = use_warp_instruction(interleaved, instruction, taken(kernel))
    return kernel if found is None else with_matrices_loaded(found, instruction)


def with_barriers(body: Sequence[Node], overlaid: Overlaid = ()) -> Nodes:
    """Return nodes of a kernel with barriers where they are needed, and nowhere else.

    Groups of tiles that are ``overlaid`` are the same memory.
    """
    found, _ = _through(body, Follower(varying_names(body), overlaid))
    return needed_barriers_only(found, overlaid)


def _through(nodes: Sequence[Node], follower: Follower) -> tuple[Nodes, Pending]:
    """Return nodes with barriers between them and in them, and what is pending behind them."""
    found: list[Node] = []
    state = NOTHING
    for node in nodes:
        inner = _inside(node, follower)
        behind, faults = follower.followed((inner,), state)
        if _conflict((inner,), faults, follower):
            found.append(Barrier())
            behind, _ = follower.followed((inner,), behind_barrier(state))
        found.append(inner)
        state = behind
    return tuple(found), state


def _inside(node: Node, follower: Follower) -> Node:
    """Return a node whose bodies have the barriers that they need by themselves."""
    if isinstance(node, Scope) and node.apart:
        return node

    def through(nodes: Nodes) -> Nodes:
        body, state = _through(nodes, follower)
        loops = isinstance(node, For) and _conflict(
            body, follower.followed(body, behind_turn(state))[1], follower
        )
        return (*body, Barrier()) if loops else body

    return with_bodies(node, through)


def _conflict(nodes: Sequence[Node], faults: Sequence[str], follower: Follower) -> bool:
    """Tell whether nodes meet what threads did before, apart from what they do to themselves."""
    return bool(faults) and not set(faults) <= set(follower.followed(nodes, NOTHING)[1])
