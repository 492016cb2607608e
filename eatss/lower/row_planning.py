"""Kernels of the same rows as one: what each of them does is a phase of its blocks.

Every phase is lowered as a kernel of its own, whose blocks along ``x`` take rows as a whole. Blocks
of the same number have the same rows in all phases. So what a block does in one phase after the
other is right, if there are barriers where threads use what others left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import islpy as isl

from eatss.analysis import KernelFacts
from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.layout import FusedRows, Layout
from eatss.base.frozen import frozen
from eatss.cards import GpuProfile
from eatss.lower.arrays import TRUE, condition_of, union_of
from eatss.lower.checks import check_launches, check_order, crosses_threads
from eatss.lower.kernel.barriers import passed_on
from eatss.lower.kernel.nodes import Argument, Buffer, Declare, If, Scope
from eatss.lower.kernel.uses import buffers_of, names_of, with_buffers, without_unused
from eatss.lower.kernel_builder import KernelBuilder
from eatss.lower.kernel_context import BuiltKernel, KernelContext
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import NameTable, Part, Piece, parts_of, pieces_of
from eatss.lower.planning import Unit, UnitPlanner, share_scalars
from eatss.lower.recipe import CodegenOptions
from eatss.lower.row_storage import (
    LoweredPhase,
    lane_loop,
    row_storage,
    span_of,
    with_row_values,
    with_rows_kept,
)
from eatss.lower.storage import NeedsOneThreadError, within_registers
from eatss.lower.thread_ast import subtree_of
from eatss.lower.units import (
    have_same_rows,
    lanes_mapping,
    only_updates,
    restricted,
    row_groups,
    row_mapping,
    shared_rows,
    sum_loop,
)
from eatss.lower.variants import Describing
from eatss.plan.contract import registers_of_a_thread
from eatss.plan.phases import RowPhase, RowRun, RowStorage, kept_rows, slots_of
from eatss.polyhedral import ScheduledScop
from eatss.polyhedral.dependences import at_most, bounded_work, ran_out, source_lines
from eatss.polyhedral.isl_names import coalesced
from eatss.program.linear import strict


@frozen
class RowsInOne:
    """One kernel of several pieces; ``in_order``: its sums are added up as in the source."""

    kernel: BuiltKernel
    tiles: tuple[tuple[str, int], ...]
    in_order: bool


def rows_in_one(
    name: str,
    pieces: Sequence[Piece],
    block: FusedRows,
    planner: RowPlanner,
    context: KernelContext,
) -> RowsInOne | None:
    """Return the kernel whose blocks take rows through several pieces, its barriers not put yet.

    Args:
        name: what it is called.
        pieces: what it does, in its order.
        block: rows and threads of a block.
        planner: decides the phases.
        context: what kernels of the region are made of.

    Returns:
        ``None`` where they cannot be one.
    """
    names = context.names
    for piece in pieces:
        names = piece.inner_names(names)
    units = planner.phases(pieces, block, names)
    if units is None:
        return None
    built = [_built(name, unit, context) for unit in units]
    integers = (*context.parameters, *pieces[0].host_names)
    storage = planner.storage(units, block.loops)
    registers = planner.registers(block.threads)
    kernel = _joined(name, units, built, block, integers, storage, registers, context)
    if kernel is None:
        return None
    notes = [note for unit in units for note in unit.notes]
    phases = "; ".join(", ".join(s.name for s in unit.piece.statements) for unit in units)
    whole = replace(
        pieces[0],
        statements=tuple(s for piece in pieces for s in piece.statements),
        placed=tuple(p for piece in pieces for p in piece.placed),
        band=tuple(loop for piece in pieces for loop in piece.band),
    )
    tiles = {loop.source_name: loop.tile for unit in units for loop in unit.mapping.spread}
    rows = f"{block.rows} {'row' if block.rows == 1 else 'rows'}"
    return RowsInOne(
        kernel=replace(
            kernel,
            piece=whole,
            notes=(f"phases of {rows} a block: {phases}", *notes, *kernel.notes),
        ),
        tiles=tuple(tiles.items()),
        in_order=all(planner.in_order(unit) for unit in units),
    )


def _built(name: str, unit: Unit, context: KernelContext) -> BuiltKernel:
    """Return a phase as a kernel of its own. All that it reads it reads through L1."""
    return KernelBuilder(name, unit, frozenset(), context, sums_for_all=True).build()


def _joined(
    name: str,
    units: Sequence[Unit],
    phases: Sequence[BuiltKernel],
    block: FusedRows,
    integers: Sequence[str],
    storage: RowStorage,
    registers: int,
    context: KernelContext,
) -> BuiltKernel | None:
    """Return one kernel that runs those of phases one after another.

    ``None`` where blocks of the same number have other rows in one phase than in another.
    """
    first = phases[0]
    if any(phase.grid != first.grid or phase.origins != first.origins for phase in phases):
        return None
    launch = coalesced(union_of([phase.launch for phase in phases]))
    lowered: list[LoweredPhase] = []
    arrays: dict[str, Argument] = {}
    tiles: dict[str, int] = {}
    index = first.index
    boxes: list[Buffer] = []
    members = NameTable()
    for unit, phase in zip(units, phases, strict=True):
        for one in phase.kernel.arguments:
            if one.buffer is not None:
                known = arrays.get(one.name, one)
                arrays[one.name] = replace(one, read_only=one.read_only and known.read_only)
        for size, tile in phase.parameter_tiles:
            tiles[size] = max(tile, tiles.get(size, 0))
        index = index.joined(phase.index)
        own = {box: replace(box, name=members.fresh(box.name)) for box in phase.kernel.shared}
        boxes += own.values()
        nodes = with_buffers(phase.kernel.body, own)
        condition = condition_of(phase.launch, launch)
        if condition != TRUE:
            nodes = (If(conditions=(index(strict(condition)),), body=nodes),)
        lowered.append(LoweredPhase(unit, nodes))
    names = units[0].names.inner()
    declared, told = tuple[Declare, ...](), tuple[str, ...]()
    by_all: Sequence[LoweredPhase] = lowered
    if block.lanes > 1:
        values = [(one, context.arrays[one.array].buffer) for one in storage.values]
        declared, by_all, told = with_row_values(lowered, values, names)
    fits = kept_rows(storage, block.tile, block.lanes, registers)
    kept = [
        (one, context.arrays[one.array].buffer)
        for one, on in zip(storage.kept, fits, strict=True)
        if on
    ]
    slots = slots_of(block.tile, block.lanes)
    front, bodies, notes = with_rows_kept(by_all, kept, slots, names)
    scopes = (
        Scope(body=without_unused(body), phase=f"phase {at}") for at, body in enumerate(bodies)
    )
    body = (*declared, *front, *scopes)
    used, passed, met = names_of(body), buffers_of(body), passed_on(body)
    return replace(
        first,
        kernel=replace(
            first.kernel,
            name=name,
            threads=block.threads,
            arguments=(
                *(Argument(name=name) for name in integers if name in used),
                *(
                    replace(one, passed_on=one.buffer in met)
                    for one in arrays.values()
                    if one.buffer in passed
                ),
            ),
            shared=tuple(boxes),
            body=body,
        ),
        launch=launch,
        parameter_tiles=tuple(sorted(tiles.items())),
        notes=(*dict.fromkeys(note for phase in phases for note in phase.notes), *told, *notes),
        index=index,
    )


class RowPlanner(UnitPlanner):
    """Decides the phases of blocks that take rows through several pieces."""

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
            InternalError: ``EATSS-K902`` the phases would run in the wrong order.
        """
        depth = block.loops
        if shared_rows(pieces, self._scheduled.dependences) < depth:
            return None
        phases: list[Unit] = []
        for piece in pieces:
            try:
                found = self._of_piece(piece, depth, block, names)
            except NeedsOneThreadError:
                return None
            if found is None:
                return None
            check_launches(piece, [unit.piece for unit in found], self._scheduled.dependences)
            phases += found
        return phases if have_same_rows([unit.piece for unit in phases], depth) else None

    def storage(self, units: Sequence[Unit], depth: int) -> RowStorage:
        """Return what registers may have of rows, of which so many loops are, between phases."""
        return row_storage(self._scop, units, depth, self._facts)

    def registers(self, threads: int) -> int:
        """Return the registers that a thread may have in blocks of so many threads."""
        return int(registers_of_a_thread(self._profile, threads))

    def in_order(self, unit: Unit) -> bool:
        """Tell whether a phase adds up in the order of the source.

        Raises:
            InternalError: ``EATSS-K902`` a thread runs its instances in the wrong order.
        """
        return check_order(
            self._scop,
            unit.piece,
            unit.mapping,
            unit.parts,
            self._scheduled.dependences,
            subtree_of(unit.piece, unit.mapping),
            strict=self._options.strict_fp,
        )

    def _of_piece(
        self, piece: Piece, depth: int, block: FusedRows, names: NameTable
    ) -> list[Unit] | None:
        dependences = self._scheduled.dependences
        facts = piece.facts_in(self._facts)
        own = names.inner()
        mapping = row_mapping(piece, depth, block, own)
        if (
            facts is None
            or len(mapping.mapped) > depth + 1
            or crosses_threads(self._scop, piece, mapping, dependences)
        ):
            return None
        mapped = [loop.name for loop in mapping.mapped]
        serial = [tile.name for tile in mapping.serial]
        parts = parts_of(piece, mapped, serial, dependences)
        sums = self._sums(piece)
        units: list[Unit] = []
        for part in parts:
            here = restricted(piece, part.statements)
            if not part.serial:
                units.append(self._unit(here, part, mapping, facts, own))
                continue
            loop = sum_loop(piece, part.statements, part.serial, sums, facts, dependences)
            if loop is None or len(part.serial) > 1 or len(mapped) > depth:
                return None
            unit = self._row_sum(here, part, loop, mapping, block, facts, names)
            if unit is None:
                return None
            units.append(unit)
        whole = self._plans.of(piece, mapping.mapped)
        return None if share_scalars(units, whole) else units

    def _unit(
        self, piece: Piece, part: Part, mapping: Mapping, facts: KernelFacts, names: NameTable
    ) -> Unit:
        storage = self._plans.of(piece, mapping.mapped)
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile)
        return Unit(
            piece=piece,
            mapping=mapping,
            parts=(part,),
            storage=storage,
            kernel=facts.name,
            names=names.inner(),
            notes=dropped,
        )

    def _row_sum(
        self,
        piece: Piece,
        part: Part,
        loop: str,
        whole: Mapping,
        block: FusedRows,
        facts: KernelFacts,
        names: NameTable,
    ) -> Unit | None:
        """Return the phase of a sum whose terms the lanes of a row share."""
        if not only_updates(piece, self._scheduled.dependences):
            return None
        own = names.inner()
        (member,) = (one for one in piece.band if one.name == loop)
        mapping = lanes_mapping(whole, member, block, own)
        how = f"{member.source_name} is split over {block.lanes} threads"
        summed = Part(statements=part.statements, serial=())
        return self.summing(piece, summed, mapping, facts.name, own, how)


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
        InputError: ``EATSS-P001``, isl needs more than the program's ``max_operations`` for one
            region.
    """
    options = CodegenOptions(strict_fp=strict_fp)

    def found_in(schedules: Sequence[ScheduledScop]) -> tuple[RowRun, ...]:
        found: list[RowRun] = []
        for scheduled, region in zip(schedules, program.scops, strict=True):
            work = bounded_work(scheduled.scop, program.max_operations)
            with source_lines("on what code can be made"), work:
                found += row_runs(scheduled, region.facts, profile, options)
        return tuple(found)

    numeric = found_in([region.scheduled for region in program.scops])
    return found_in(code()) if numeric and code is not None else numeric


def row_runs(
    scheduled: ScheduledScop,
    facts: Sequence[KernelFacts],
    profile: GpuProfile,
    options: CodegenOptions,
) -> Iterator[RowRun]:
    """Yield the runs of kernels of a region that share rows, and in which a row has a sum."""
    names = NameTable((scheduled.scop.function, *scheduled.scop.parameters))
    pieces = pieces_of(scheduled, names)
    planner = RowPlanner(scheduled, facts, profile, options)
    known = {one.statements: one for one in facts}
    for run, depth in row_groups(pieces, scheduled.dependences):
        kernels = [known.get(piece.kernel.statements) for piece in run]
        named = tuple(one.name for one in kernels if one is not None)
        if len(named) < len(run):
            continue
        block = FusedRows(kernels=named, loops=depth, rows=1, lanes=_TRIAL_LANES, tile=_TRIAL_LANES)
        local = names
        for piece in run:
            local = piece.inner_names(local)
        try:
            with at_most(scheduled.scop.isl_context, _OPERATIONS):
                units = planner.phases(run, block, local)
        except isl.Error:
            if ran_out(scheduled.scop):
                raise
            units = None
        if units is None or not any(unit.mapping.split is not None for unit in units):
            continue
        phases = []
        for unit in units:
            (kernel,) = (one for one in facts if one.name == unit.kernel)
            piece = next(one for one in run if one.kernel.statements == kernel.statements)
            described = Describing(
                scheduled, tuple(facts), profile, options, "off", piece, kernel, local
            )
            loop = lane_loop(unit)
            span = None if loop is None else span_of(unit.piece, loop)
            phases.append(
                RowPhase(
                    kernel=kernel.name,
                    launch=described.launch(unit),
                    rows=tuple(loop.source_name for loop in unit.mapping.mapped[:depth]),
                    lane_loop=None if loop is None else loop.source_name,
                    length=None if span is None or span[0] < 0 else span[1] + 1,
                )
            )
        parts = [named[start:end] for end in range(len(named) + 1) for start in range(end)]
        storage = (
            (part, planner.storage([one for one in units if one.kernel in part], depth))
            for part in parts
        )
        yield RowRun(kernels=named, phases=tuple(phases), storage=tuple(storage))
