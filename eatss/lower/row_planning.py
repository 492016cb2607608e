"""Pieces that share rows as the phases of one kernel: the units of its phases, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eatss.analysis import KernelFacts
from eatss.analysis.layout import RowBlock
from eatss.gpu import GpuProfile
from eatss.lower.checks import check_launches, check_order, crosses_threads
from eatss.lower.planning import Unit, share_scalars, sums_in_registers, what_is_summed
from eatss.lower.row_storage import row_storage
from eatss.lower.storage import NeedsOneThreadError, plan_storage, within_registers
from eatss.lower.thread_ast import subtree_of
from eatss.plan.phases import RowStorage
from eatss.plan.registers import registers_of_a_thread
from eatss.polyhedral import ScheduledScop
from eatss.recipe.options import CodegenOptions
from eatss.schedule.launch_order import only_updates
from eatss.schedule.mapping import Mapping
from eatss.schedule.names import NameTable
from eatss.schedule.parts import Part, parts_of
from eatss.schedule.pieces import Piece
from eatss.schedule.row_blocks import have_same_rows, lanes_mapping, row_mapping, shared_rows
from eatss.schedule.split_k import sum_loop
from eatss.schedule.units import combiner_in, restricted, sums_of
from eatss.scops import Scop


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
        storage = plan_storage(self._scop, piece, mapping.mapped, dependences, sums=True)
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile)
        combined = all(
            combiner_in(piece, {name for name, _ in held.places}, self._scop) is not None
            for held in storage.registers
        )
        if dropped or not combined or not sums_in_registers(piece, storage):
            return None
        unit = Unit(
            piece=piece,
            mapping=mapping,
            parts=(Part(statements=part.statements, serial=()),),
            storage=storage,
            kernel=facts.name,
            names=own,
            notes=(),
        )
        what = what_is_summed(unit, self._scop)
        note = f"the {what} over {member.source_name} is split over {block.lanes} threads"
        return replace(unit, notes=(note,))
