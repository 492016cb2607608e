"""A loop on the host as one kernel of one block: its launches become phases.

    for (int k = 1; k < N; ++k) {
        { sum over all threads: its block 0 }
        __syncthreads();
        for (int block = threadIdx.x / 64; block < (k + 63) / 64; block += 8)
            { a block of 64 threads, with threadIdx.x % 64 }
        __syncthreads();
    }

Each phase is lowered as a launch. Launches wait for each other, phases at barriers. Threads of a
block see what others of it wrote to global memory before a barrier [CUDA C++ Programming Guide,
memory fences and synchronisation functions]. Blocks of a launch need nothing of each other, so
threads may run them side by side, or one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import Any

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.layout import LoopBlock
from eatss.base.frozen import complete, frozen, their_names
from eatss.base.targets import AXES, CUDA
from eatss.lower.arrays import union_of
from eatss.lower.kernel.barriers import arguments_of, passed_to
from eatss.lower.kernel.nodes import (
    Agreed,
    Buffer,
    Compute,
    For,
    If,
    Intrinsic,
    Kernel,
    Let,
    Meeting,
    Node,
    Nodes,
    Reciprocal,
    Scope,
    guarded,
)
from eatss.lower.kernel.uses import (
    NAMED,
    every,
    grid_strides,
    mapped,
    own_names,
    taken_names,
    with_buffers,
    with_expressions,
    without_unused,
)
from eatss.lower.pieces import CodeSchedules, NameTable, Piece, in_regions, own_pieces, their_loops
from eatss.lower.transform.chain import synchronised
from eatss.lower.wavefronts import wavefront_functions
from eatss.plan.loop_blocks import LoopRun, side_by_side
from eatss.polyhedral.isl_names import integer
from eatss.polyhedral.kernel import ScheduledScop
from eatss.program import (
    Constant,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Name,
    equals,
    names_in,
    substitute,
)
from eatss.program.expression import Environment, IntExprs
from eatss.program.linear import as_sum, strict


@frozen
class PhaseKernel:
    """A kernel that becomes a phase, and its threads along x, y and z."""

    kernel: Kernel
    block: tuple[int, int, int]

    @property
    def meet(self) -> bool:
        """Whether threads of a block of it meet."""
        return bool(self.kernel.shared) or any(
            isinstance(node, Meeting) or (isinstance(node, Intrinsic) and node.instruction.together)
            for node in every(self.kernel.body)
        )


def loop_runs_for(
    program: AnalysedProgram, code: CodeSchedules | None = None
) -> tuple[LoopRun, ...]:
    """Return the loops on the host of a program, by what is launched in each.

    Args:
        program: the kernels.
        code: gives the schedules of the regions that code is made from, where they may differ.
    """
    if not any(facts.host_loops for region in program.scops for facts in region.facts):
        return ()
    return in_regions(program, _loop_runs, code)


def _loop_runs(scheduled: ScheduledScop, region: AnalysedScop) -> Iterator[LoopRun]:
    known = {one.statements: one.name for one in region.facts}
    for loop, group in groupby(own_pieces(scheduled)[0], lambda one: their_loops(one.host[:1])):
        pieces = list(group)
        kernels = complete(known.get(one.kernel.statements) for one in pieces)
        if not loop or kernels is None:
            continue
        run = LoopRun(kernels=kernels)
        if len(pieces) == 1 and wavefront_functions(pieces[0]) is not None:
            run = _in_wavefronts(run, pieces[0], region.scheduled)
        yield run


def _in_wavefronts(run: LoopRun, piece: Piece, numeric: ScheduledScop) -> LoopRun:
    """Return a loop with what tiles of its wavefronts are cut along at the sizes of the source."""
    names = their_names(piece.statements)
    pieces = own_pieces(numeric)[0]
    own = next((one for one in pieces if their_names(one.statements) == names), None)
    functions = None if own is None else wavefront_functions(own)
    if own is None or functions is None:
        return run
    every = union_of(own.instances(one).to_union_set() for one in own.statements)
    here = [one.intersect_domain(every) for one in functions]
    ends = [(one.min_val(), one.max_val()) for one in here]
    if not all(low.is_int() and high.is_int() for low, high in ends):
        return run
    return replace(
        run,
        loops=tuple(loop.source_name for loop in own.band if loop.member.parallel),
        spans=tuple(integer(high) - integer(low) + 1 for low, high in ends),
    )


def in_one_block(
    steps: Sequence[HostStep],
    phases: Mapping[str, PhaseKernel],
    block: LoopBlock,
    integers: Sequence[str],
    macros: Sequence[str],
    most_bytes: int,
    front: Sequence[Let],
    tests: IntExprs,
) -> Kernel | None:
    """Return the kernel of one block that does what loops on the host launch.

    Args:
        steps: the loops.
        phases: the kernels that they launch, by name.
        block: its threads.
        integers: what kernels may be passed besides arrays, in that order.
        macros: names that kernels know without being passed them.
        most_bytes: shared memory that a block may have.
        front: what a block knows first.
        tests: what tells whether it has something to do.

    Returns:
        ``None`` where some launch cannot be a phase of a block with so many threads.

    Raises:
        InternalError: ``EATSS-K901``, what comes of it is not well formed.
    """
    kernels = [one.kernel for one in phases.values()]
    if any(one.warps or one.overlaid or one.streamed is not None for one in kernels):
        return None
    bodies = Bodies(kernels, (*macros, *integers))
    builder = _Builder(phases, block.threads, bodies)
    body = builder.body(front, tests, steps)
    if not builder.fits:
        return None
    own = {"threads": block.threads, "resident": 1}
    return joined(kernels, body, bodies.shared, integers, macros, most_bytes, **own)


def joined(
    kernels: Sequence[Kernel],
    body: Nodes,
    shared: Sequence[Buffer],
    integers: Sequence[str],
    macros: Sequence[str],
    most_bytes: int,
    **own: Any,
) -> Kernel | None:
    """Return kernels as one with a body, which is called as the first of them.

    ``None`` where a block needs more ``shared`` memory than it may have.

    Raises:
        InternalError: ``EATSS-K901``, what comes of it is not well formed.
    """
    kernel = replace(
        kernels[0],
        arguments=arguments_of(body, integers, passed_to(kernels)),
        shared=tuple(shared),
        body=body,
        regroups=any(one.regroups for one in kernels),
        continued=tuple(pair for one in kernels for pair in one.continued),
        **own,
    )
    return synchronised(kernel, macros) if kernel.shared_bytes <= most_bytes else None


class Bodies:
    """Bodies of kernels in one: names and ``shared`` memory of each are its own."""

    def __init__(self, kernels: Sequence[Kernel], known: Sequence[str]) -> None:
        """Begin with none; ``known`` are names that kernels know without being passed them."""
        self.names = NameTable({name for one in kernels for name in taken_names(one, known)})
        self.shared = list[Buffer]()
        self._members, self._given = NameTable(), set[str]()

    def with_own_memory(self, kernel: Kernel) -> Nodes:
        """Return the body of a kernel whose shared memory has names of its own."""
        tiles = {one: replace(one, name=self._members.fresh(one.name)) for one in kernel.shared}
        self.shared += tiles.values()
        return with_buffers(kernel.body, tiles)

    def of(self, kernel: Kernel, values: Environment) -> Nodes:
        """Return what a block of a kernel does, some names standing for other values."""
        body = self.with_own_memory(kernel)
        own = {name for node in every(body) for name in own_names(node)}
        other = {name: self.names.fresh(name) for name in sorted(own & self._given)}
        self._given |= own | {*other.values()}

        def renamed(node: Node) -> Nodes:
            if isinstance(node, NAMED) and node.name in other:
                node = replace(node, name=other[node.name])
            if isinstance(node, For):
                cycle = node.cycle
                if cycle is not None:
                    cycle = replace(cycle, name=other.get(cycle.name, cycle.name))
                node = replace(node, counter=other.get(node.counter, node.counter), cycle=cycle)
            if isinstance(node, Compute | Reciprocal | Agreed):
                node = replace(node, flag=other.get(node.flag, node.flag))
            return (node,)

        known = {**values, **{name: Name(one) for name, one in other.items()}}

        def told(expression: IntExpr) -> IntExpr:
            found = substitute(expression, known)
            return as_sum(found) if values.keys() & {*names_in(expression)} else found

        return with_expressions(mapped(body, renamed), told)


class _Builder:
    """Makes the body; ``fits`` says whether all launches can be phases."""

    def __init__(self, phases: Mapping[str, PhaseKernel], threads: int, bodies: Bodies) -> None:
        self._phases, self._threads, self._bodies = phases, threads, bodies
        self._thread = Name(bodies.names.fresh("thread"))
        self.fits = True

    def body(self, front: Sequence[Let], tests: IntExprs, steps: Sequence[HostStep]) -> Nodes:
        """Return the body of the kernel."""
        thread = Let(name=self._thread.name, value=Name(f"{CUDA.thread}x"))
        return without_unused((*front, thread, *guarded(tests, self.steps(steps))))

    def steps(self, steps: Sequence[HostStep]) -> Nodes:
        """Return what the block does for steps of the host, without barriers between them.

        One thread does what launches of one thread do that follow each other.
        """
        found: list[Node] = []
        for alone, together in groupby(steps, self._is_alone):
            if not alone:
                found += map(self._step, together)
                continue
            own = list(together)
            body = tuple(self._in_thread(step) for step in own)
            behind = self._behind_sum(found[-1], body, _name_of(own[0])) if found else None
            if behind is not None:
                found[-1] = behind
                continue
            test = equals(self._thread, 0)
            found.append(Scope(body=(If(conditions=(test,), body=body),), phase=_name_of(own[0])))
        return tuple(found)

    def _behind_sum(self, node: Node, body: Nodes, phase: str) -> Node | None:
        """Return a phase in which the thread that has a sum at last does more, if there is one.

        A sum of one warp has no barrier behind what its threads read.
        """
        if not isinstance(node, Scope) or self._threads <= CUDA.lanes:
            return None
        *front, last = node.body
        first = (one.name for one in front if isinstance(one, Let) and one.value == self._thread)
        tests = [(equals(Name(name), 0),) for name in first]
        if not isinstance(last, If) or last.conditions not in tests or last.orelse:
            return None
        inner = Scope(body=(*last.body, *body), phase=phase)
        return replace(node, body=(*front, replace(last, body=(inner,))))

    def _is_alone(self, step: HostStep) -> bool:
        """Tell whether a step is of one thread."""
        if isinstance(step, Launch):
            return prod(self._phases[step.kernel].block) == 1 and {*step.grid} == {Constant(1)}
        return isinstance(step, HostIf) and all(map(self._is_alone, step.body))

    def _in_thread(self, step: HostStep) -> Node:
        if isinstance(step, HostIf):
            body = tuple(map(self._in_thread, step.body))
            return If(conditions=(strict(step.condition),), body=body)
        assert isinstance(step, Launch)
        values = (CUDA.thread, CUDA.block)
        first: Environment = {of + axis: Constant(0) for of in values for axis in AXES}
        return Scope(body=self._bodies.of(self._phases[step.kernel].kernel, first))

    def _step(self, step: HostStep) -> Node:
        match step:
            case HostLoop(counter=counter, lower=lower, upper=upper):
                goes_on, by = strict(Name(counter) <= upper), Constant(step.step)
                body = self.steps(step.body)
                return For(counter=counter, lower=lower, condition=goes_on, step=by, body=body)
            case HostIf(condition=condition, body=inner):
                return If(conditions=(strict(condition),), body=self.steps(inner))
            case Launch():
                return Scope(body=self._launch(step), phase=step.kernel)

    def _launch(self, step: Launch) -> Nodes:
        """Return the phase of a launch: its blocks one after another, and side by side."""
        phase = self._phases[step.kernel]
        own = prod(phase.block)
        together = side_by_side(self._threads, own, meet=phase.meet)
        self.fits &= together > 0
        several = [
            axis for axis, count in zip(AXES, step.grid, strict=True) if count != Constant(1)
        ]
        spread = several[-1] if several else None
        together = max(1, together) if several else 1
        x, y, _ = phase.block
        thread = self._thread
        within = thread % own if own < self._threads else thread
        places = (within % x if own > x else within, within // x % y, within // (x * y))
        number: IntExpr = thread // own if together > 1 else Constant(0)
        values: dict[str, IntExpr] = {}
        loops = []
        for axis, count, place, threads in zip(AXES, step.grid, places, phase.block, strict=True):
            first, by = (number, together) if axis == spread else (Constant(0), 1)
            values[CUDA.thread + axis] = place if threads > 1 else Constant(0)
            values[CUDA.block + axis], values[CUDA.blocks + axis] = first, Constant(by)
            if axis in several and axis not in grid_strides(phase.kernel):
                counter = self._bodies.names.fresh(f"block_{axis}")
                block = values[CUDA.block + axis] = Name(counter)
                loop = For(
                    counter=counter,
                    lower=first,
                    condition=block < count,
                    step=Constant(by),
                    body=(),
                )
                loops.append(loop)
        body = self._bodies.of(phase.kernel, values)
        for loop in loops:
            body = (replace(loop, body=body),)
        return guarded([thread < together * own] * (together * own < self._threads), body)


def _name_of(step: HostStep) -> str:
    """Return the name of the first kernel that a step launches."""
    return step.kernel if isinstance(step, Launch) else _name_of(step.body[0])
