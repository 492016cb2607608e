"""What of a piece becomes a kernel of its own, and how it is laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import field, replace
from functools import partial
from math import prod

from eatss.analysis import KernelFacts, VolumeKind
from eatss.analysis.analyse import analyse_kernel
from eatss.analysis.layout import GridSplitK, Layout, SplitK
from eatss.base.frozen import frozen
from eatss.cards import GpuProfile
from eatss.lower.checks import check_launches, crosses_threads
from eatss.lower.instructions import of_warps
from eatss.lower.mapping import Mapping, in_warps, layout, widened, with_shared_sum
from eatss.lower.pieces import NameTable, Part, Piece, parts_of
from eatss.lower.products import may_fit, reused_accumulators
from eatss.lower.recipe import CodegenOptions
from eatss.lower.storage import (
    NeedsOneThreadError,
    Place,
    StoragePlan,
    StoragePlans,
    within_registers,
)
from eatss.lower.units import (
    LEAST_TRIPS,
    SERIAL_SPREAD,
    adds_only,
    banded,
    combiner_in,
    hoistable,
    may_follow,
    only_updates,
    restricted,
    serial_runs,
    split_mapping,
    sum_loop,
    sums_of,
    trips,
)
from eatss.polyhedral import ScheduledScop


@frozen
class Unit:
    """What becomes one CUDA kernel; ``kernel`` is the one of the analysis whose sizes it has.

    Sums of arrays that are ``continued`` go on in the registers of other sums.
    """

    piece: Piece
    mapping: Mapping
    parts: tuple[Part, ...]
    storage: StoragePlan
    kernel: str | None
    names: NameTable
    notes: tuple[str, ...]
    continued: Dictionary[str, str] = field(default_factory=dict)


_Sums = dict[str, frozenset[str]]
"""The loops that each statement sums over."""

_OfSum = Callable[[Unit, KernelFacts, Part, _Sums], Unit | None]
"""Makes the unit of a part that adds up something."""


class UnitPlanner:
    """Decides the units of the pieces of one region."""

    def __init__(
        self,
        scheduled: ScheduledScop,
        facts: tuple[KernelFacts, ...],
        sizes: Callable[[str], Layout],
        profile: GpuProfile,
        options: CodegenOptions,
        plans: StoragePlans | None = None,
    ) -> None:
        """Note what is decided; ``plans`` are those of storage that others have made."""
        self._plans = plans or StoragePlans(scheduled.scop, scheduled.dependences)
        self._scheduled = scheduled
        self._scop = scheduled.scop
        self._facts = facts
        self._sizes = sizes
        self._profile = profile
        self._options = options

    def units(self, piece: Piece, names: NameTable) -> list[Unit]:
        """Return what of a piece becomes a kernel of its own, in order.

        Raises:
            InternalError: ``EATSS-K902`` the kernels would run in the wrong order.
        """
        units = self._units(piece, names)
        check_launches(piece, [unit.piece for unit in units], self._scheduled.dependences)
        return units

    def _units(self, piece: Piece, names: NameTable) -> list[Unit]:
        chosen = self._chosen(piece)
        if chosen is None:
            return list(self._serial_units(piece, names))
        facts, selection = chosen
        try:
            whole = self._whole(piece, facts, selection, names)
        except NeedsOneThreadError as error:
            return [self.one_thread(piece, names, str(error))]
        shared = selection.shared_sum
        if shared is not None and shared.streamed:  # blocks do, of all that is launched together
            shared = None
        if selection.spread is None and shared is None:
            return self._apart(whole, facts)
        if shared is not None:
            return self._sharing_units(whole, facts, shared)
        assert selection.spread is not None
        if selection.host_loop is not None:
            hoisted = self._hoisted(whole, facts, selection, selection.host_loop, names)
            if hoisted:
                return hoisted
        return [
            split
            for unit in self._apart(whole, facts)
            for split in self._spread_units(unit, facts, selection.spread, names)
        ]

    def _whole(self, piece: Piece, facts: KernelFacts, selection: Layout, names: NameTable) -> Unit:
        """Return the unit of all of a piece.

        Raises:
            NeedsOneThreadError: threads cannot share the work; the text says why.
        """
        dependences = self._scheduled.dependences
        own = names.inner()
        mapping = layout(piece, facts, selection, self._profile, self._options, own)
        chosen = () if selection.warps is None else (selection.warps.instruction,)
        for name in (*self._options.instructions, *chosen):
            instruction = of_warps(name)
            if not mapping.warps and may_fit(instruction, mapping):
                mapping = in_warps(mapping, [lane.extent for lane in instruction.lanes], own)
        storage = self._plans.of(piece, mapping.mapped)
        if crosses_threads(self._scop, piece, mapping, dependences):
            raise NeedsOneThreadError("iterations of parallel loops need one another's memory")
        mapped = [loop.name for loop in mapping.mapped]
        parts = parts_of(piece, mapped, [tile.name for tile in mapping.serial], dependences)
        storage, dropped, continued = self._within_registers(piece, mapping, storage, parts)
        return Unit(
            piece=piece,
            mapping=mapping,
            parts=parts,
            storage=storage,
            kernel=facts.name,
            names=own,
            notes=dropped,
            continued=continued,
        )

    def _within_registers(
        self, piece: Piece, mapping: Mapping, storage: StoragePlan, parts: Sequence[Part]
    ) -> tuple[StoragePlan, tuple[str, ...], dict[str, str]]:
        """Return what fits registers, why something does not, and the sums that go on in others."""
        continued = dict[str, str]()
        if not self._options.strict_fp:
            continued = reused_accumulators(self._scop, piece, mapping, storage, parts)
        kept, dropped = within_registers(storage, mapping, self._scop, self._profile, continued)
        return kept, dropped, continued

    def _apart(self, whole: Unit, facts: KernelFacts) -> list[Unit]:
        """Return a unit cut in two where sums come to live in registers by that.

        What writes the array of a sum through another reference keeps the sum out of registers; in
        a kernel of its own, before or after, it does not.
        """
        piece, dependences = whole.piece, self._scheduled.dependences
        held = _held_sums([whole], facts)
        for at in range(len(whole.parts) - 1, 0, -1):
            sides = (whole.parts[:at], whole.parts[at:])
            first, then = ([name for part in side for name in part.statements] for side in sides)
            if not may_follow(piece, first, then, dependences):
                continue
            try:
                units = [
                    self._rest(whole, restricted(piece, statements), side)
                    for statements, side in zip((first, then), sides, strict=True)
                ]
            except NeedsOneThreadError:
                continue
            if held < _held_sums(units, facts) and not share_scalars(units, whole.storage):
                return [part for unit in units for part in self._apart(unit, facts)]
        return [whole]

    def _hoisted(
        self,
        whole: Unit,
        facts: KernelFacts,
        selection: Layout,
        host_loop: str,
        names: NameTable,
    ) -> list[Unit]:
        """Return the units of a piece whose serial loop ``host_loop`` runs on the host.

        Empty if that is not legal, or leaves no sum to be split.
        """
        assert selection.spread is not None
        mapped = [loop.name for loop in whole.mapping.mapped]
        for piece in hoistable(whole.piece, mapped, self._scheduled.dependences):
            if piece.host[-1].source_name != host_loop:
                continue
            try:
                inside = self._whole(piece, facts, selection, names)
            except NeedsOneThreadError:
                continue
            units = self._spread_units(inside, facts, selection.spread, names)
            if any(unit.mapping.split is not None for unit in units):
                note = f"the loop {host_loop} runs on the host"
                return [replace(unit, notes=(*unit.notes, note)) for unit in units]
        return []

    def _spread_units(
        self, whole: Unit, facts: KernelFacts, spread: SplitK, names: NameTable
    ) -> list[Unit]:
        """Return the units of a piece with its sums spread over threads and blocks."""
        lanes = widened(whole.mapping, spread.lanes, self._profile.threads_per_block)

        def spreading(whole: Unit, facts: KernelFacts, part: Part, sums: _Sums) -> Unit | None:
            dependences = self._scheduled.dependences
            loop = sum_loop(whole.piece, part.statements, part.serial, sums, facts, dependences)
            return None if loop is None else self._sum(whole, facts, part, loop, spread, names)

        return self._split_units(whole, facts, lanes, spreading)

    def _split_units(
        self, whole: Unit, facts: KernelFacts, beside: Mapping, of_sum: _OfSum
    ) -> list[Unit]:
        """Return the units of a piece, those of its sums as ``of_sum`` says.

        Launches beside them are laid out as ``beside``.
        """
        piece = whole.piece
        sums = self._sums(piece)
        rest_of = replace(whole, mapping=beside)
        units: list[Unit] = []
        waiting: list[Part] = []

        def flush() -> None:
            if waiting:
                names_here = [name for part in waiting for name in part.statements]
                rest = self._rest(rest_of, restricted(piece, names_here), tuple(waiting))
                units.append(rest)
                waiting.clear()

        try:
            for part in whole.parts:
                unit = of_sum(whole, facts, part, sums)
                if unit is None:
                    waiting.append(part)
                else:
                    flush()
                    units.append(unit)
            flush()
        except NeedsOneThreadError:  # what is left shares a scalar with a sum
            return [whole]
        split = any(unit.mapping.split or unit.mapping.shared for unit in units)
        return units if split and not share_scalars(units, whole.storage) else [whole]

    def _sharing_units(self, whole: Unit, facts: KernelFacts, shared: GridSplitK) -> list[Unit]:
        """Return the units of a piece, blocks sharing its sums where they can."""
        sharing = partial(self._sharing, shared)
        units = [
            own
            for unit in self._apart(whole, facts)
            for own in self._split_units(unit, facts, unit.mapping, sharing)
        ]
        if any(unit.mapping.shared is not None for unit in units):
            return units
        note = f"blocks cannot share the sum over {shared.loop}"
        return [replace(unit, notes=(*unit.notes, note)) for unit in units]

    def _sharing(
        self, shared: GridSplitK, whole: Unit, facts: KernelFacts, part: Part, sums: _Sums
    ) -> Unit | None:
        """Return the unit of a part whose sum blocks share, ``None`` where they cannot."""
        dependences = self._scheduled.dependences
        sources = {tile.source_name: tile.name for tile in whole.mapping.serial}
        loop = sources.get(shared.loop)
        piece = restricted(whole.piece, part.statements)
        if (
            loop not in part.serial
            or not adds_only(whole.piece, part.statements, loop, sums, dependences)
            or not only_updates(piece, dependences)
        ):
            return None
        mapping = with_shared_sum(whole.mapping, loop, shared.blocks)
        if mapping is None:
            return None
        how = f"{shared.loop} is shared by up to {shared.blocks} blocks"
        return self.summing(piece, part, mapping, whole.kernel, whole.names.inner(), how)

    def summing(
        self,
        piece: Piece,
        part: Part,
        mapping: Mapping,
        kernel: str | None,
        names: NameTable,
        how: str,
    ) -> Unit | None:
        """Return the unit of a part whose sums start anew, kept in registers while they are added.

        A note says over what, and ``how`` threads or blocks share it. ``None`` where registers do
        not hold every sum, or parts of sums of several threads cannot become one.
        """
        try:
            storage = self._plans.of(piece, mapping.mapped, sums=True)
        except NeedsOneThreadError:
            return None
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile)
        held = [{name for name, _ in own.places} for own in storage.registers]
        combined = all(combiner_in(piece, names, self._scop) is not None for names in held)
        if dropped or not combined or not sums_in_registers(piece, storage):
            return None
        combiners = [combiner_in(piece, {s.name}, self._scop) for s in piece.statements]
        what = " and ".join(dict.fromkeys(one.what for one in combiners if one is not None))
        return Unit(
            piece=piece,
            mapping=mapping,
            parts=(part,),
            storage=storage,
            kernel=kernel,
            names=names,
            notes=(f"the {what} over {how}",),
        )

    def _rest(self, whole: Unit, piece: Piece, parts: tuple[Part, ...]) -> Unit:
        """Return the unit of some parts, laid out like the whole."""
        storage = self._plans.of(piece, whole.mapping.mapped)
        storage, dropped, continued = self._within_registers(piece, whole.mapping, storage, parts)
        return replace(
            whole,
            piece=piece,
            parts=parts,
            storage=storage,
            names=whole.names.inner(),
            notes=dropped,
            continued=continued,
        )

    def _sum(
        self,
        whole: Unit,
        facts: KernelFacts,
        part: Part,
        loop: str,
        spread: SplitK,
        names: NameTable,
    ) -> Unit | None:
        """Return the unit of a part whose sum is split, ``None`` where it cannot be."""
        piece = restricted(whole.piece, part.statements)
        if not only_updates(piece, self._scheduled.dependences):
            return None
        own = names.inner()
        mapping = split_mapping(
            piece, facts, whole.mapping, loop, spread, self._profile, self._options, own
        )
        assert mapping.split is not None
        if mapping.split.threads == 1 and mapping.chunks == 1:
            return None  # one thread would add up all
        serial = tuple(name for name in part.serial if name != loop)
        inside = Part(statements=part.statements, serial=serial)
        threads = f"{mapping.split.threads} threads" if mapping.split.threads > 1 else ""
        blocks = f"{mapping.chunks} blocks" if mapping.chunks > 1 else ""
        over = " and ".join(filter(None, (threads, blocks)))
        how = f"{mapping.split.source_name} is split over {over}"
        return self.summing(piece, inside, mapping, whole.kernel, own, how)

    def _serial_units(self, piece: Piece, names: NameTable) -> Iterator[Unit]:
        """Yield the units of a piece none of whose loops is parallel."""
        facts = piece.facts_in(self._facts)
        spread = SERIAL_SPREAD if facts is None else self._sizes(facts.name).spread
        if spread is None:
            yield self.one_thread(piece, names, "no loop is parallel")
            return
        facts = facts or analyse_kernel(
            self._scop, piece.kernel, volume=VolumeKind.PRODUCT, element_type=None, index=0
        )
        sums = self._sums(piece)
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
                    unit = self._sum(whole, facts, part, loop, spread, names)
            yield unit or self.one_thread(
                restricted(piece, run.statements), names, "no loop is parallel"
            )

    def one_thread(self, piece: Piece, names: NameTable, why: str) -> Unit:
        """Return the unit that runs a piece in one thread."""
        storage = self._plans.of(piece, ())
        return Unit(
            piece=piece,
            mapping=Mapping(mapped=(), serial=()),
            parts=(Part(statements=tuple(s.name for s in piece.statements), serial=()),),
            storage=storage,
            kernel=None,
            names=names.inner(),
            notes=(f"one thread: {why}",),
        )

    def _sums(self, piece: Piece) -> _Sums:
        """Return the sums of a piece that may be taken in any order."""
        return sums_of(piece, self._scop, exact=self._options.strict_fp)

    def _chosen(self, piece: Piece) -> tuple[KernelFacts, Layout] | None:
        """Return facts and selected sizes of a piece that has any."""
        facts = piece.facts_in(self._facts)
        if not piece.selected or facts is None:
            return None
        return facts, self._sizes(facts.name)


def share_scalars(units: Sequence[Unit], storage: StoragePlan) -> bool:
    """Tell whether a scalar that every thread has of its own is used in several units."""
    for scalar in storage.scalars:
        users = {statement for statement, _ in scalar.places}
        using = [u for u in units if users & {s.name for s in u.piece.statements}]
        if len(using) > 1:
            return True
    return False


def sums_in_registers(piece: Piece, storage: StoragePlan) -> bool:
    """Tell whether every sum of a piece is kept in registers while it is added up.

    Other reads of the same array have to be of elements that no thread of a launch writes.
    """
    groups = [item.places for item in storage.registers]
    groups += [item.places for item in storage.candidates]
    fine = frozenset(place for places in groups for place in places)
    return not storage.scalars and all(
        (statement.name, number) in fine
        for statement in piece.statements
        for number, access in enumerate(statement.accesses)
        if access.array == statement.write.array
    )


def _held_sums(units: Sequence[Unit], facts: KernelFacts) -> frozenset[Place]:
    """Return the references in registers that a thread meets in many iterations."""
    held: set[Place] = set()
    for unit in units:
        sources = {tile.name: tile.source_name for tile in unit.mapping.serial}
        many = {
            name
            for part in unit.parts
            if prod(trips(facts, sources[loop]) for loop in part.serial) >= LEAST_TRIPS
            for name in part.statements
        }
        places = (place for registers in unit.storage.registers for place in registers.places)
        held.update(place for place in places if place[0] in many)
    return frozenset(held)
