"""Kernels that share rows: the runs of them that there are, and their phases as units, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import islpy as isl

from eatss.analysis import KernelFacts
from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.layout import RowBlock
from eatss.cards import GpuProfile
from eatss.lower.checks import check_launches, check_order, crosses_threads
from eatss.lower.planning import Unit, share_scalars, what_is_summed, with_sums_held
from eatss.lower.recipe.options import CodegenOptions
from eatss.lower.row_storage import lane_loop, row_storage, span_of
from eatss.lower.schedule.launch_order import only_updates
from eatss.lower.schedule.mapping import Mapping
from eatss.lower.schedule.names import NameTable
from eatss.lower.schedule.parts import Part, parts_of
from eatss.lower.schedule.pieces import Piece, pieces_of
from eatss.lower.schedule.row_blocks import (
    have_same_rows,
    lanes_mapping,
    row_groups,
    row_mapping,
    shared_rows,
)
from eatss.lower.schedule.split_k import sum_loop
from eatss.lower.schedule.units import restricted, sums_of
from eatss.lower.storage import NeedsOneThreadError, plan_storage, within_registers
from eatss.lower.structures import Describing
from eatss.lower.thread_ast import subtree_of
from eatss.plan.contract import registers_of_a_thread
from eatss.plan.phases import RowPhase, RowRun, RowStorage
from eatss.polyhedral import ScheduledScop
from eatss.polyhedral.dependences import at_most, bounded_work, ran_out, source_lines
from eatss.polyhedral.scop import Scop


class RowPlanner:
    """Decides the phases of blocks that take rows through several pieces."""

    def __init__(
        self,
        scheduled: ScheduledScop,
        facts: Sequence[KernelFacts],
        profile: GpuProfile,
        options: CodegenOptions,
    ) -> None:
        """Note the region, the card, and whether sums keep their order."""
        self._scheduled, self._facts, self._profile = scheduled, facts, profile
        self._scop: Scop = scheduled.scop
        self._strict_fp = options.strict_fp

    def phases(
        self, pieces: Sequence[Piece], block: RowBlock, names: NameTable
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
            strict=self._strict_fp,
        )

    def _of_piece(
        self, piece: Piece, depth: int, block: RowBlock, names: NameTable
    ) -> list[Unit] | None:
        dependences = self._scheduled.dependences
        facts = next(
            (one for one in self._facts if one.statements == piece.kernel.statements), None
        )
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
        sums = sums_of(piece, self._scop, exact=self._strict_fp)
        units: list[Unit] = []
        for part in parts:
            here = restricted(piece, part.statements)
            if not part.serial:
                units.append(self._unit(here, part, mapping, facts, own))
                continue
            loop = sum_loop(piece, part.statements, part.serial, sums, facts, dependences)
            if loop is None or len(part.serial) > 1 or len(mapped) > depth:
                return None
            unit = self._sum(here, part, loop, mapping, block, facts, names)
            if unit is None:
                return None
            units.append(unit)
        whole = plan_storage(self._scop, piece, mapping.mapped, dependences)
        return None if share_scalars(units, whole) else units

    def _unit(
        self, piece: Piece, part: Part, mapping: Mapping, facts: KernelFacts, names: NameTable
    ) -> Unit:
        storage = plan_storage(self._scop, piece, mapping.mapped, self._scheduled.dependences)
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

    def _sum(
        self,
        piece: Piece,
        part: Part,
        loop: str,
        whole: Mapping,
        block: RowBlock,
        facts: KernelFacts,
        names: NameTable,
    ) -> Unit | None:
        """Return the phase of a sum whose terms the lanes of a row share."""
        dependences = self._scheduled.dependences
        if not only_updates(piece, dependences):
            return None
        own = names.inner()
        (member,) = (one for one in piece.band if one.name == loop)
        mapping = lanes_mapping(whole, member, block, own)
        summed = Unit(
            piece=piece,
            mapping=mapping,
            parts=(Part(statements=part.statements, serial=()),),
            storage=plan_storage(self._scop, piece, mapping.mapped, dependences, sums=True),
            kernel=facts.name,
            names=own,
            notes=(),
        )
        unit = with_sums_held(summed, self._scop, self._profile)
        if unit is None:
            return None
        what = what_is_summed(unit, self._scop)
        note = f"the {what} over {member.source_name} is split over {block.lanes} threads"
        return replace(unit, notes=(note,))


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
        block = RowBlock(kernels=named, loops=depth, rows=1, lanes=_TRIAL_LANES, tile=_TRIAL_LANES)
        local = names.inner()
        for piece in run:
            local.reserve(*(loop.name for loop in (*piece.band, *piece.inner)))
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
