"""Kernels of the same rows as one: what each of them does is a phase of its blocks.

Every phase is lowered as a kernel of its own, whose blocks along ``x`` take rows as a whole. Blocks
of the same number have the same rows in all phases. So what a block does in one phase after the
other is right, if there are barriers where threads use what others left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import FusedRows, Layout
from eatss.base.frozen import Names, called, complete, distinct, frozen, their_names
from eatss.base.memo import Memo
from eatss.base.text import counted
from eatss.cards import GpuProfile
from eatss.lower.arrays import condition_of, ends_of, tests_of, union_of, value_of
from eatss.lower.checks import check_launches
from eatss.lower.index_range import Indices
from eatss.lower.kernel.barriers import arguments_of, passed_to
from eatss.lower.kernel.nodes import Buffer, If, Nodes, Scope, guarded
from eatss.lower.kernel.nodes import counted as in_turns
from eatss.lower.kernel.uses import substituted, without_unused
from eatss.lower.kernel_builder import KernelBuilder, products_of_sizes
from eatss.lower.loop_blocks import Bodies
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import NameTable, Part, Piece, in_regions, own_pieces, their_loops
from eatss.lower.planning import Unit, UnitPlanner, share_scalars
from eatss.lower.recipe import CodegenOptions
from eatss.lower.references import BuiltKernel, KernelContext
from eatss.lower.row_storage import (
    LoweredPhase,
    row_storage,
    rows_along_memory,
    sizes_of_whole_rows,
    span_of,
    with_row_values,
    with_rows_kept,
)
from eatss.lower.storage import NeedsOneThreadError, storage_of
from eatss.lower.transform.rows_in_vectors import RowVectors
from eatss.lower.units import (
    have_same_rows,
    lanes_mapping,
    restricted,
    row_groups,
    row_mapping,
    rows_of_steps,
    shared_rows,
    sum_loop,
)
from eatss.lower.variants import launch_of
from eatss.plan.contract import registers_of_a_thread
from eatss.plan.phases import KeptRow, RowPhase, RowRun, RowStorage, kept_rows, row_vector
from eatss.polyhedral.dependences import tried
from eatss.polyhedral.expression import divisors
from eatss.polyhedral.isl_names import (
    coalesced,
    dims_as_parameters,
    parameter_between,
    parameters_as_dims,
    without_parameters,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.program import Constant
from eatss.program.expression import IntExpr, IntExprs, SizePairs
from eatss.program.linear import strict


@frozen
class RowsInOne:
    """One kernel of several pieces; ``in_order``: its sums are added up as in the source.

    ``vectors`` are the rows of which threads have vectors, if they do.
    """

    kernel: BuiltKernel
    tiles: SizePairs
    in_order: bool
    vectors: RowVectors | None = None


class RowPlanner(UnitPlanner):
    """Decides the phases of blocks that take rows through several pieces, and joins them."""

    def __init__(
        self,
        scheduled: ScheduledScop,
        facts: Sequence[KernelFacts],
        profile: GpuProfile,
        options: CodegenOptions,
    ) -> None:
        """Note the region, the card, and whether sums keep their order."""
        nothing = Layout(tile_sizes=(), block=())
        super().__init__(scheduled, tuple(facts), lambda _: nothing, profile, options)

    def phases(
        self, pieces: Sequence[Piece], block: FusedRows, names: NameTable
    ) -> list[Unit] | None:
        """Return the phases of blocks that take rows through all pieces.

        A phase is what would be a launch of its own: a sum of a row over all of its lanes, or what
        stands between sums.

        Returns:
            ``None`` where something needs more than the rows of a block, or is no such phase.

        Raises:
            InternalError: ``EATSS-K901`` the phases would run in the wrong order.
        """
        dependences = self._scheduled.dependences
        if block.steps:
            rows = rows_of_steps(pieces, dependences)
            if rows is None or rows > int(block.rows):
                return None
        elif shared_rows(pieces, dependences) < block.loops:
            return None
        for piece in pieces:
            names = piece.inner_names(names)
        phases = []
        for piece in pieces:
            try:
                found = self._of_piece(piece, block, names)
            except NeedsOneThreadError:
                return None
            if found is None:
                return None
            check_launches(piece, [unit.piece for unit in found])
            phases += found
        if not block.steps and have_same_rows([unit.piece for unit in phases], block.loops):
            return phases
        steps = pieces[0].host_names[-1:] if block.steps else ()
        return _with_same_rows(phases, block.loops, steps)

    def _of_piece(self, piece: Piece, block: FusedRows, names: NameTable) -> list[Unit] | None:
        facts, own = piece.facts_in(self._facts), names.inner()
        mapping = row_mapping(piece, block.loops, block, own)
        if facts is None or len(mapping.mapped) > block.loops + 1:
            return None
        units = []
        for part in self._parts(piece, mapping):
            if not part.serial:
                here = restricted(piece, part.statements)
                units.append(self._unit(here, mapping, (part,), facts.name, own.inner()))
                continue
            unit = None
            if len(part.serial) == 1 and len(mapping.mapped) == block.loops:
                unit = self._row_sum(piece, part, mapping, block, facts, names.inner())
            if unit is None:
                return None
            units.append(unit)
        storage = storage_of(piece, mapping.mapped)
        return None if share_scalars(units, storage) else units

    def _row_sum(
        self,
        piece: Piece,
        part: Part,
        mapping: Mapping,
        block: FusedRows,
        facts: KernelFacts,
        names: NameTable,
    ) -> Unit | None:
        """Return the phase of a sum whose terms the lanes of a row share."""
        loop = sum_loop(piece, part.statements, part.serial, self._sums(piece), facts)
        if loop is None:
            return None
        member = called(loop, piece.band)
        lanes = lanes_mapping(mapping, member, block, names)
        how = f"{member.source_name} is split over {block.lanes} threads"
        summed = Part(statements=part.statements, serial=())
        return self.summing(piece, summed, lanes, facts.name, names, how)

    def storage(self, units: Sequence[Unit], depth: int, *, steps: bool) -> RowStorage:
        """Return what registers may have of rows, of which so many loops are, between phases.

        And between ``steps``, if blocks go through them.
        """
        step = units[0].piece.host[-1] if steps else None
        return row_storage(self._scop, units, depth, self._facts, step)

    def in_one(
        self, name: str, pieces: Sequence[Piece], block: FusedRows, context: KernelContext
    ) -> RowsInOne | None:
        """Return the kernel whose blocks take rows through several pieces, without barriers.

        Args:
            name: what it is called.
            pieces: what it does, in its order.
            block: rows and threads of a block.
            context: what kernels of the region are made of.

        Returns:
            ``None`` where they cannot be one, as where blocks of the same number would have other
            rows in one phase than in another.

        Raises:
            InternalError: ``EATSS-K901`` a thread would run its instances in the wrong order.
        """
        units = self.phases(pieces, block, context.names)
        if units is None:
            return None
        # each phase as a kernel of its own, which reads all that it reads through L1
        phases = [KernelBuilder(name, unit, context, sums_for_all=True).build() for unit in units]
        first = phases[0]
        if any(phase.grid != first.grid or phase.origins != first.origins for phase in phases):
            return None
        launch = coalesced(union_of([phase.launch for phase in phases]))
        index, bodies = first.index, Bodies((), ())
        lowered = []
        for unit, phase in zip(units, phases, strict=True):
            index = index.joined(phase.index)
            nodes = bodies.with_own_memory(phase.kernel)
            tests = [*map(index, tests_of(phase.launch, launch))]
            lowered.append(LoweredPhase(unit=unit, nodes=guarded(tests, nodes)))
        orders = [self.in_order(unit) for unit in units]
        host = pieces[0].host[: len(pieces[0].host) - block.steps]
        inside = pieces[0].host_names[len(host) :]
        steps = _Steps.of(inside[0], launch, index) if inside else _Steps()
        launch = launch if steps.launch is None else steps.launch
        whole = coalesced(sizes_of_whole_rows(units, int(block.tile), inside))
        fits = index(strict(condition_of(whole, launch)))
        body, notes, vectors = self._in_registers(lowered, block, context, fits, steps)
        body = without_unused((*products_of_sizes(context.scop, units[0].names), *body))
        rows = counted(block.rows, "row")
        tiles = sorted(pair for one in phases for pair in one.parameter_tiles)  # the largest last
        each = f", in each step of {inside[0]}" if inside else ""
        of_phases = "; ".join(", ".join(their_names(unit.piece.statements)) for unit in units)
        kernel = replace(
            first.kernel,
            threads=block.threads,
            arguments=arguments_of(
                body,
                (*context.parameters, *their_names(host)),
                passed_to(one.kernel for one in phases),
            ),
            shared=tuple(bodies.shared),
            body=body,
        )
        return RowsInOne(
            kernel=replace(
                first,
                kernel=kernel,
                launch=launch,
                parameter_tiles=tuple(dict(tiles).items()),
                index=index,
                piece=replace(
                    pieces[0],
                    host=host,
                    statements=tuple(s for piece in pieces for s in piece.statements),
                    placed=tuple(p for piece in pieces for p in piece.placed),
                    band=(
                        *pieces[0].host[len(host) :],
                        *(loop for piece in pieces for loop in piece.band),
                    ),
                ),
                notes=(
                    f"phases of {rows} a block{each}: {of_phases}",
                    *(note for unit in units for note in unit.notes),
                    *dict.fromkeys(note for phase in phases for note in phase.notes),
                    *notes,
                ),
            ),
            tiles=tuple(
                {
                    loop.source_name: loop.tile for unit in units for loop in unit.mapping.spread
                }.items()
            ),
            in_order=all(orders),
            vectors=vectors,
        )

    def _in_registers(
        self,
        phases: Sequence[LoweredPhase],
        block: FusedRows,
        context: KernelContext,
        whole: IntExpr,
        steps: _Steps,
    ) -> tuple[Nodes, Names, RowVectors | None]:
        """Return the body of phases with what registers have of rows, notes, and its vectors.

        Where a tile has a ``whole`` row at launch only, there are two.
        """
        units = [phase.unit for phase in phases]
        storage = self.storage(units, block.loops, steps=bool(block.steps))
        names = units[0].names.inner()
        front, inside, told = Nodes(), Nodes(), Names()
        if block.lanes > 1:
            values = [(one, context.arrays[one.array].buffer) for one in storage.values]
            front, phases, told = with_row_values(phases, values, block.axes[1], names)
        registers = int(registers_of_a_thread(self._profile, block.threads))
        fits = kept_rows(storage, block, registers)
        kept = [
            (one, context.arrays[one.array].buffer)
            for one, on in zip(storage.kept, fits, strict=True)
            if on
        ]

        def with_kept(own: Sequence[tuple[KeptRow, Buffer]]) -> tuple[Nodes, Names]:
            found = with_rows_kept(phases, own, block, names)
            scopes = (
                node
                for at, body in enumerate(found.bodies)
                for node in (
                    *found.ahead[at],
                    Scope(body=without_unused(body), phase=f"phase {at}"),
                )
            )
            body = (*inside, *found.front, *scopes)
            return steps.through(body, found.lasting, found.behind), found.notes

        inside, front = ((), front) if steps.counter is None else (front, ())
        body, notes = with_kept(kept)
        always = [(one, array) for one, array in kept if one.begin is not None]
        if len(always) < len(kept):
            longer, _ = with_kept(always)
            body = (If(conditions=(whole,), body=body, orelse=longer),)
        vectors, width = None, int(row_vector(storage, fits, block))
        if width > 1:
            lanes = distinct(one for unit in units if (one := unit.lane_loop) is not None)
            names_of = rows_along_memory(storage, units, block.loops, self._scop)
            arrays = tuple(context.arrays[one].buffer.name for one in names_of)
            vectors = RowVectors(lanes=lanes, width=width, arrays=arrays)
            notes = (*notes, f"rows: {counted(width, 'element')} of a thread follow each other")
        return (*front, *body), (*told, *notes), vectors


@frozen
class _Steps:
    """The loop on the host that blocks go through: its bounds, when it has steps, and a test in it.

    ``launch`` are the values of all else for which there are steps. Without a counter there is one.
    """

    launch: isl.Set | None = None
    counter: str | None = None
    first: IntExpr = Constant(0)
    last: IntExpr = Constant(0)
    tests: IntExprs = ()

    @classmethod
    def of(cls, counter: str, launch: isl.Set, index: Indices) -> _Steps:
        """Return the loop of a counter whose values, and those of others, are a launch's."""
        here = coalesced(without_parameters(launch, [counter]))
        first, last = ends_of(launch, counter)
        inside = coalesced(here.intersect(parameter_between(counter, first, last)))
        return cls(
            launch=here,
            counter=counter,
            first=index(value_of(first, here)),
            last=index(value_of(last, here)),
            tests=tuple(map(index, tests_of(launch, inside))),
        )

    def through(self, body: Nodes, lasting: Nodes, behind: Nodes) -> Nodes:
        """Return what each step does, in its loop, between what begins and what ends it."""
        if self.counter is None:
            return body
        known = {self.counter: self.first}
        body = guarded(self.tests, body)
        loop = replace(in_turns(self.counter, self.last + 1, body, unroll=1), lower=self.first)
        return (*substituted(lasting, known), loop, *substituted(behind, known))


def _with_same_rows(units: Sequence[Unit], depth: int, steps: Names) -> list[Unit]:
    """Return units whose blocks take all rows between those of any of them, of so many loops.

    They are those of all ``steps``.
    """
    loops = [their_names(unit.mapping.mapped[:depth]) for unit in units]
    own = [
        parameters_as_dims(without_parameters(placed, inside).params(), names, "row")
        for unit, names in zip(units, loops, strict=True)
        for inside in [[*(one for one in unit.piece.bound if one not in names), *steps]]
        for placed in unit.piece.placed
    ]
    rows = isl.Set.from_basic_set(union_of(own).coalesce().simple_hull())
    return [
        replace(unit, rows=dims_as_parameters(rows, names))
        for unit, names in zip(units, loops, strict=True)
    ]


_OPERATIONS = 2_000_000
"""What isl may do for one run of kernels; each of ``kernels/`` takes under a tenth of a second."""

_TRIAL_LANES = 32
"""Shows whether rows can go through several kernels; the number decides nothing."""


def row_runs_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    *,
    strict_fp: bool = False,
    code: Callable[[], Sequence[ScheduledScop]] | None = None,
) -> tuple[RowRun, ...]:
    """Return the runs of kernels of a program that share rows.

    Args:
        program: the kernels.
        profile: the card.
        strict_fp: whether sums keep their order.
        code: gives the schedules of the regions that code is made from. It is called if there are
            such runs at the sizes of the source: rows of code for any size may differ.

    Raises:
        InputError: ``EATSS-P001``, a region is too much work for isl.
    """
    options = CodegenOptions(strict_fp=strict_fp)

    def runs(scheduled: ScheduledScop, region: AnalysedScop) -> Iterator[RowRun]:
        return row_runs(scheduled, region.facts, profile, options)

    numeric = in_regions(program, runs)
    return in_regions(program, runs, code) if numeric and code is not None else numeric


def row_runs(
    scheduled: ScheduledScop,
    facts: Sequence[KernelFacts],
    profile: GpuProfile,
    options: CodegenOptions,
) -> Iterator[RowRun]:
    """Yield the runs of kernels of a region that share rows, and in which a row has a sum."""
    if not any(one.reductions for one in facts):
        return
    pieces, names = own_pieces(scheduled)
    planner = RowPlanner(scheduled, facts, profile, options)
    once = Memo()

    def phases_of(run: Sequence[Piece], depth: int, steps: int | None = None) -> Sequence[Unit]:
        kernels = complete(one.facts_in(facts) for one in run)
        if kernels is None:
            return ()
        block = FusedRows(
            kernels=their_names(kernels),
            loops=depth,
            rows=steps or 1,
            lanes=_TRIAL_LANES,
            tile=_TRIAL_LANES,
            steps=int(steps is not None),
        )
        find = partial(planner.phases, run, block, names)
        return once(partial(tried, scheduled.scop, _OPERATIONS, find), block) or ()

    def fits(piece: Piece, depth: int) -> bool:
        return bool(phases_of([piece], depth))

    groups: list[tuple[Sequence[Piece], int, int | None]] = [
        (*one, None) for one in row_groups(pieces, scheduled.dependences, fits)
    ]
    in_loops = groupby(pieces, lambda one: their_loops(one.host[-1:]))
    for _, together in in_loops if scheduled.scop.class_size else ():
        own = tuple(together)
        rows = rows_of_steps(own, scheduled.dependences)
        groups += [(own, 1, rows)] if rows is not None else []
    for run, depth, steps in groups:
        units = phases_of(run, depth, steps)
        if not any(unit.mapping.split is not None for unit in units):
            continue
        named = distinct(unit.kernel or "" for unit in units)
        whole, ends = steps is not None, combinations(range(len(named) + 1), 2)
        parts = [named] if whole else [named[start:end] for start, end in ends]
        yield RowRun(
            kernels=named,
            phases=tuple(
                _phase(unit, called(unit.kernel or "", facts), depth, options) for unit in units
            ),
            storage=tuple(
                (part, planner.storage([o for o in units if o.kernel in part], depth, steps=whole))
                for part in parts
            ),
            steps=scheduled.scop.class_size if whole else 0,
            together=steps or 0,
        )


def _phase(unit: Unit, kernel: KernelFacts, depth: int, options: CodegenOptions) -> RowPhase:
    """Return what a unit does in a kernel of rows, of which so many loops are."""
    loop, span = unit.lane_loop, span_of(unit)
    return RowPhase(
        kernel=kernel.name,
        launch=launch_of(unit, kernel, strict_fp=options.strict_fp),
        rows=tuple(loop.source_name for loop in unit.mapping.mapped[:depth]),
        lane_loop=None if loop is None else loop.source_name,
        length=None if span is None or span[0] < 0 else span[1] + 1,
        divisors=sum(len(divisors(one.value)) for one in unit.piece.statements),
    )
