"""What of a piece becomes a kernel of its own, and how it is laid out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eatss.analysis import KernelFacts, VolumeKind
from eatss.analysis.analyse import analyse_kernel
from eatss.codegen.checks import crosses_threads
from eatss.codegen.layout import layout
from eatss.codegen.mapping import Mapping
from eatss.codegen.names import NameTable
from eatss.codegen.options import CodegenOptions
from eatss.codegen.parts import Part, parts_of
from eatss.codegen.pieces import Piece
from eatss.codegen.splitting import is_starved, split_mapping, sum_loop
from eatss.codegen.storage import (
    NeedsOneThreadError,
    StoragePlan,
    plan_storage,
    within_registers,
)
from eatss.codegen.units import banded, restricted, serial_runs, sums_of
from eatss.gpu import GpuProfile
from eatss.model import KernelSelection, Selection
from eatss.polyhedral import ScheduledScop


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What becomes one kernel."""

    piece: Piece
    mapping: Mapping
    parts: tuple[Part, ...]
    storage: StoragePlan
    selection: KernelSelection | None
    names: NameTable
    notes: tuple[str, ...]


class UnitPlanner:
    """Decides the units of the pieces of one region."""

    def __init__(
        self,
        scheduled: ScheduledScop,
        facts: tuple[KernelFacts, ...],
        selection: Selection,
        profile: GpuProfile,
        options: CodegenOptions,
    ) -> None:
        self._scheduled = scheduled
        self._scop = scheduled.scop
        self._facts = facts
        self._selection = selection
        self._profile = profile
        self._options = options

    def units(self, piece: Piece, names: NameTable) -> list[Unit]:
        """Return what of a piece becomes a kernel of its own, in order."""
        chosen = self._chosen(piece)
        dependences = self._scheduled.dependences
        if chosen is None:
            return list(self._serial_units(piece, names))
        facts, selection = chosen
        own = names.inner()
        mapping = layout(piece, facts, selection, self._profile, self._options, own)
        try:
            storage = plan_storage(self._scop, piece, mapping.mapped, dependences)
        except NeedsOneThreadError as error:
            return [
                self.one_thread(piece, names, f"scalar '{error}' carries values between threads")
            ]
        if crosses_threads(self._scop, piece, mapping, dependences):
            return [
                self.one_thread(
                    piece, names, "iterations of parallel loops need one another's memory"
                )
            ]
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile)
        mapped = [loop.name for loop in mapping.mapped]
        parts = parts_of(piece, mapped, [tile.name for tile in mapping.serial], dependences)
        whole = Unit(
            piece=piece,
            mapping=mapping,
            parts=parts,
            storage=storage,
            selection=selection,
            names=own,
            notes=dropped,
        )
        if self._options.strict_fp or not is_starved(
            facts, [loop.source_name for loop in mapping.mapped], self._profile
        ):
            return [whole]
        return self._split_units(whole, facts, names)

    def _split_units(self, whole: Unit, facts: KernelFacts, names: NameTable) -> list[Unit]:
        """Return the units of a piece with its sums spread over threads and blocks."""
        piece, dependences = whole.piece, self._scheduled.dependences
        mapped = [loop.name for loop in whole.mapping.mapped]
        sums = sums_of(piece)
        units: list[Unit] = []
        waiting: list[Part] = []

        def flush() -> None:
            if waiting:
                names_here = [name for part in waiting for name in part.statements]
                units.append(self._rest(whole, restricted(piece, names_here), tuple(waiting)))
                waiting.clear()

        for part in whole.parts:
            loop = sum_loop(piece, part.statements, part.serial, sums, facts, dependences)
            unit = None if loop is None else self._sum(whole, facts, part, mapped, loop, names)
            if unit is None:
                waiting.append(part)
            else:
                flush()
                units.append(unit)
        flush()
        split = any(unit.mapping.split is not None for unit in units)
        return units if split and not _share_scalars(units, whole.storage) else [whole]

    def _rest(self, whole: Unit, piece: Piece, parts: tuple[Part, ...]) -> Unit:
        """Return the unit of parts that are not split."""
        storage = plan_storage(self._scop, piece, whole.mapping.mapped, self._scheduled.dependences)
        return replace(whole, piece=piece, parts=parts, storage=storage, names=whole.names.inner())

    def _sum(
        self,
        whole: Unit,
        facts: KernelFacts,
        part: Part,
        mapped: Sequence[str],
        loop: str,
        names: NameTable,
    ) -> Unit | None:
        """Return the unit of a part whose sum is split, ``None`` where it cannot be."""
        piece = restricted(whole.piece, part.statements)
        own = names.inner()
        given = any(kernel in ("", facts.name) for kernel, _ in self._options.block)
        threads = {m.name: m.threads for m in whole.mapping.mapped} if given else {}
        mapping = split_mapping(
            piece, facts, mapped, loop, self._profile, self._options, own, threads
        )
        assert mapping.split is not None
        if mapping.split.threads == 1 and mapping.chunks == 1:
            return None  # one thread would add up all
        try:
            storage = plan_storage(
                self._scop, piece, mapping.mapped, self._scheduled.dependences, sums=True
            )
        except NeedsOneThreadError:
            return None
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile)
        if dropped or not _sums_in_registers(piece, storage):
            return None
        serial = tuple(name for name in part.serial if name != loop)
        return Unit(
            piece=piece,
            mapping=mapping,
            parts=(Part(statements=part.statements, serial=serial),),
            storage=storage,
            selection=whole.selection,
            names=own,
            notes=(_sum_note(mapping),),
        )

    def _serial_units(self, piece: Piece, names: NameTable) -> Iterator[Unit]:
        """Yield the units of a piece none of whose loops is parallel."""
        if self._options.strict_fp:
            yield self.one_thread(piece, names, "no loop is parallel")
            return
        facts = self._facts_of(piece) or analyse_kernel(
            self._scop, piece.kernel, volume=VolumeKind.PRODUCT, element_type=None, index=0
        )
        sums = sums_of(piece)
        runs = serial_runs(piece, sums)
        if not any(run.sum_loop for run in runs):
            yield self.one_thread(piece, names, "no loop is parallel")
            return
        for run in runs:
            unit = None
            if run.sum_loop is not None:
                own = banded(piece, run.statements[0])
                part = Part(statements=run.statements, serial=(run.sum_loop,))
                whole = self.one_thread(own, names, "")
                loop = sum_loop(
                    own, run.statements, part.serial, sums, facts, self._scheduled.dependences
                )
                if loop is not None:
                    unit = self._sum(whole, facts, part, (), loop, names)
            yield unit or self.one_thread(
                restricted(piece, run.statements), names, "no loop is parallel"
            )

    def one_thread(self, piece: Piece, names: NameTable, why: str) -> Unit:
        """Return the unit that runs a piece in one thread."""
        storage = plan_storage(self._scop, piece, (), self._scheduled.dependences)
        return Unit(
            piece=piece,
            mapping=Mapping(mapped=(), serial=()),
            parts=(Part(statements=tuple(s.name for s in piece.statements), serial=()),),
            storage=storage,
            selection=None,
            names=names.inner(),
            notes=(f"one thread: {why}",),
        )

    def _facts_of(self, piece: Piece) -> KernelFacts | None:
        statements = tuple(s.name for s in piece.statements)
        return next((facts for facts in self._facts if facts.statements == statements), None)

    def _chosen(self, piece: Piece) -> tuple[KernelFacts, KernelSelection] | None:
        """Return facts and selected sizes of a piece that has any."""
        facts = self._facts_of(piece)
        if not piece.selected or facts is None:
            return None
        return facts, self._selection.kernel(facts.name)


def _share_scalars(units: Sequence[Unit], storage: StoragePlan) -> bool:
    """Tell whether a scalar that every thread has of its own is used in several units."""
    for scalar in storage.scalars:
        users = {statement for statement, _ in scalar.places}
        using = [u for u in units if users & {s.name for s in u.piece.statements}]
        if len(using) > 1:
            return True
    return False


def _sums_in_registers(piece: Piece, storage: StoragePlan) -> bool:
    """Tell whether every sum of a piece is kept in registers while it is added up."""
    held = frozenset(place for registers in storage.registers for place in registers.places)
    return not storage.scalars and all(
        (statement.name, number) in held
        for statement in piece.statements
        for number, access in enumerate(statement.accesses)
        if access.array == statement.write.array
    )


def _sum_note(mapping: Mapping) -> str:
    assert mapping.split is not None
    loop = mapping.split
    threads = f"{loop.threads} threads" if loop.threads > 1 else ""
    blocks = f"{mapping.chunks} blocks" if mapping.chunks > 1 else ""
    over = " and ".join(part for part in (threads, blocks) if part) or "one thread"
    return f"the sum over {loop.source_name} is split over {over}"
