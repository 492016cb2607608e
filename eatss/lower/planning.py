"""What of a piece becomes a kernel of its own, and how it is laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import field, replace
from itertools import groupby
from math import prod

import islpy as isl

from eatss.analysis.analyse import analyse_kernel
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout, SplitK
from eatss.base.frozen import Names, called, complete, frozen, their_names
from eatss.base.targets import CUDA
from eatss.cards import GpuProfile
from eatss.lower.arrays import union_of
from eatss.lower.checks import check_launches, check_order, crosses_threads
from eatss.lower.instructions import of_warps
from eatss.lower.mapping import MappedLoop, Mapping, in_warps, layout, widened, with_shared_sum
from eatss.lower.pieces import NameTable, Part, Piece, parts_of
from eatss.lower.products import described, reused_accumulators
from eatss.lower.recipe import CodegenOptions
from eatss.lower.scans import looks_back, scan_of
from eatss.lower.storage import (
    NeedsOneThreadError,
    StoragePlan,
    scan_storage,
    storage_of,
    within_registers,
)
from eatss.lower.units import (
    LEAST_TRIPS,
    SERIAL_SPREAD,
    Sums,
    adds_only,
    combiner_in,
    may_follow,
    only_updates,
    restricted,
    serial_runs,
    split_mapping,
    sum_loop,
    sums_of,
    trips,
)
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Place


@frozen
class Unit:
    """What becomes one CUDA kernel; ``kernel`` is the one of the analysis whose sizes it has.

    Sums of arrays that are ``continued`` go on in the registers of other sums. Its blocks take the
    ``rows``, a set of parameters of which its outermost loops are some, where they are more than
    it runs.
    """

    piece: Piece
    mapping: Mapping
    parts: tuple[Part, ...]
    storage: StoragePlan
    kernel: str | None
    names: NameTable
    notes: Names
    continued: Dictionary[str, str] = field(default_factory=dict)
    rows: isl.Set | None = None

    @property
    def lane_loop(self) -> MappedLoop | None:
        """The loop whose points go to the threads of a row."""
        inside = [loop for loop in self.mapping.spread if loop.grid is None]
        return inside[-1] if inside else None


class UnitPlanner:
    """Decides the units of the pieces of one region."""

    def __init__(
        self,
        scheduled: ScheduledScop,
        facts: tuple[KernelFacts, ...],
        sizes: Callable[[str], Layout],
        profile: GpuProfile,
        options: CodegenOptions,
    ) -> None:
        """Note what is decided."""
        self._scheduled = scheduled
        self._scop = scheduled.scop
        self._facts = facts
        self._sizes = sizes
        self._profile = profile
        self._options = options

    def units(self, piece: Piece, names: NameTable) -> list[Unit]:
        """Return what of a piece becomes a kernel of its own, in order.

        Raises:
            InternalError: ``EATSS-K901`` the kernels would run in the wrong order.
        """
        units = self._units(piece, names)
        check_launches(piece, [unit.piece for unit in units])
        facts = piece.facts_in(self._facts)
        if self._options.strict_fp and facts is not None:
            units = [_noted([unit], *self._kept_in_order(unit.piece, facts))[0] for unit in units]
        return units

    def _kept_in_order(self, piece: Piece, facts: KernelFacts) -> Iterator[str]:
        """Yield which sums would be spread if they did not have to keep their order, and its cost.

        That is how many terms one thread adds up, where there are few threads.
        """
        kept, card = self._sums(piece), self._profile
        threads = prod(trips(facts, loop.name) for loop in facts.parallel_loops)
        if threads >= card.sm_count * card.max_threads_per_sm:
            return
        for name, loops in sums_of(piece).items():
            own = [one.source_name for one in piece.loops if one.name in loops]
            terms = prod(trips(facts, loop) for loop in own)
            if name in their_names(piece.statements) and name not in kept and terms >= LEAST_TRIPS:
                over = " and ".join(own)
                yield f"the order over {over} is kept: a thread adds up {terms} terms one by one"

    def _units(self, piece: Piece, names: NameTable) -> list[Unit]:
        facts = piece.facts_in(self._facts)
        if not piece.selected or facts is None:
            return list(self._serial_units(piece, facts, names))
        chosen = self._sizes(facts.name)
        if chosen.streams:  # of all that is launched together
            chosen = replace(chosen, shared_sum=None)
        try:
            whole = self._whole(piece, facts, chosen, names)
        except NeedsOneThreadError as error:
            return [self.one_thread(piece, names, str(error))]
        units = [
            own
            for unit in self._apart(whole, facts)
            for own in self._split_units(unit, facts, chosen, names)
        ]
        shared = chosen.shared_sum
        if shared is None or any(unit.mapping.shared is not None for unit in units):
            return units
        return _noted(units, f"blocks cannot share the sum over {shared.loop}")

    def _whole(self, piece: Piece, facts: KernelFacts, chosen: Layout, names: NameTable) -> Unit:
        """Return the unit of all of a piece.

        Raises:
            NeedsOneThreadError: threads cannot share the work; the text says why.
        """
        own = names.inner()
        mapping = layout(piece, facts, chosen, self._profile, self._options, own)
        selected = () if chosen.warps is None else (chosen.warps.instruction,)
        for name in (*self._options.instructions, *selected):
            if not (mapping.warps or piece.combines):
                mapping = in_warps(mapping, described(of_warps(name)), own)
        storage = storage_of(piece, mapping.mapped)
        parts = rows_together(piece, self._parts(piece, mapping), storage)
        return self._unit(piece, mapping, parts, facts.name, own)

    def _parts(self, piece: Piece, mapping: Mapping) -> tuple[Part, ...]:
        """Return the parts of a piece whose threads share the work.

        Raises:
            NeedsOneThreadError: they cannot; the text says why.
        """
        storage_of(piece, mapping.mapped)
        mapped, serial = their_names(mapping.mapped), their_names(mapping.serial)

        def parts() -> tuple[Part, ...]:
            if crosses_threads(piece, mapping):
                return ()
            return parts_of(piece, mapped, serial)

        found = self._scheduled.once(parts, "parts", mapped, serial, of=piece)
        if not found:
            raise NeedsOneThreadError("iterations of parallel loops need one another's memory")
        return found

    def _unit(
        self,
        piece: Piece,
        mapping: Mapping,
        parts: Sequence[Part],
        kernel: str | None,
        names: NameTable,
        notes: Names = (),
    ) -> Unit:
        """Return the unit of some parts, with what fits registers in them.

        Raises:
            NeedsOneThreadError: threads cannot share the work; the text says why.
        """
        storage = storage_of(piece, mapping.mapped).with_rows(parts)
        continued = dict[str, str]()
        if not self._options.strict_fp:
            continued = reused_accumulators(piece, mapping, storage, parts)
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile, continued)
        return Unit(
            piece=piece,
            mapping=mapping,
            parts=tuple(parts),
            storage=storage,
            kernel=kernel,
            names=names,
            notes=(*notes, *dropped),
            continued=continued,
        )

    def _apart(self, whole: Unit, facts: KernelFacts) -> list[Unit]:
        """Return a unit cut in two where sums come to live in registers by that.

        What writes the array of a sum through another reference keeps the sum out of registers; in
        a kernel of its own, before or after, it does not.
        """
        piece = whole.piece
        held = _held_sums([whole], facts)
        for at in range(len(whole.parts) - 1, 0, -1):
            sides = (whole.parts[:at], whole.parts[at:])
            first, then = ([name for part in side for name in part.statements] for side in sides)
            if not may_follow(piece, first, then):
                continue
            try:
                units = [self._rest(whole, side) for side in sides]
            except NeedsOneThreadError:
                continue
            if held < _held_sums(units, facts) and not share_scalars(units, whole.storage):
                return [part for unit in units for part in self._apart(unit, facts)]
        return [whole]

    def _split_units(
        self, whole: Unit, facts: KernelFacts, chosen: Layout, names: NameTable
    ) -> list[Unit]:
        """Return the units of a piece whose sums threads or blocks share, as is chosen.

        Blocks beside one whose sums are spread over lanes are as large.
        """
        beside = whole
        if chosen.spread is not None and chosen.shared_sum is None:
            lanes, most = chosen.spread.lanes, self._profile.threads_per_block
            beside = replace(whole, mapping=widened(whole.mapping, lanes, most))
        units = list[Unit]()
        try:
            found = ((self._of_sum(whole, facts, o, chosen, names), o) for o in whole.parts)
            for waits, together in groupby(found, lambda one: one[0] is None):
                sums, parts = zip(*together, strict=True)
                units += [self._rest(beside, parts)] if waits else sums
        except NeedsOneThreadError:  # what is left shares a scalar with a sum
            return [whole]
        split = any(unit.mapping.shares_sums for unit in units)
        return units if split and not share_scalars(units, whole.storage) else [whole]

    def _rest(self, whole: Unit, parts: Sequence[Part]) -> Unit:
        """Return the unit of some parts, laid out like the whole."""
        piece = restricted(whole.piece, [name for part in parts for name in part.statements])
        return self._unit(piece, whole.mapping, parts, whole.kernel, whole.names.inner())

    def _of_sum(
        self, whole: Unit, facts: KernelFacts, part: Part, chosen: Layout, names: NameTable
    ) -> Unit | None:
        """Return the unit of a part whose sum threads or blocks share, ``None`` where none do."""
        sums = self._sums(whole.piece)
        shared, spread = chosen.shared_sum, chosen.spread
        if shared is not None:
            sources = {tile.source_name: tile.name for tile in whole.mapping.serial}
            loop = sources.get(shared.loop)
            if loop not in part.serial or not adds_only(whole.piece, part.statements, loop, sums):
                return None
            mapping = with_shared_sum(whole.mapping, loop, shared.blocks)
            if mapping is None:
                return None
            how = f"{shared.loop} is shared by up to {shared.blocks} blocks"
            return self.summing(whole.piece, part, mapping, whole.kernel, whole.names.inner(), how)
        if spread is None:
            return None
        return self._spread(whole, facts, part, spread, names)

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
        piece = restricted(piece, part.statements)
        if not only_updates(piece):
            return None
        try:
            storage = storage_of(piece, mapping.mapped, sums=True)
        except NeedsOneThreadError:
            return None
        storage, dropped = within_registers(storage, mapping, self._scop, self._profile)
        held = [{name for name, _ in own.places} for own in storage.registers]
        combined = all(combiner_in(piece, names) is not None for names in held)
        if dropped or not combined or not sums_in_registers(piece, storage):
            return None
        combiners = [combiner_in(piece, {s.name}) for s in piece.statements]
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

    def _spread(
        self,
        whole: Unit,
        facts: KernelFacts,
        part: Part,
        spread: SplitK,
        names: NameTable,
    ) -> Unit | None:
        """Return the unit of a part whose sum is split, ``None`` where it cannot be."""
        piece, statements = whole.piece, part.statements
        sums = self._sums(piece)
        loop = sum_loop(piece, statements, part.serial, sums, facts)
        if loop is None:
            return self._scanned(whole, facts, part, names)
        serial = tuple(name for name in part.serial if name != loop)
        summed = [one for one in serial if adds_only(piece, statements, one, sums)]
        length = {name: trips(facts, called(name, piece.loops).source_name) for name in summed}
        outer = max(summed, key=length.__getitem__, default=None)  # whose tiles blocks may share
        own, card = names.inner(), self._profile
        mapping = split_mapping(
            piece, facts, whole.mapping, loop, outer, spread, card, self._options, own
        )
        split, shared = mapping.split, mapping.shared
        if split is None or (split.threads == 1 and mapping.blocks_of_sum == 1):
            return None  # one thread would add up all
        counts = {"threads": split.threads, "blocks": mapping.chunks}
        over = " and ".join(f"{count} {what}" for what, count in counts.items() if count > 1)
        how = f"{split.source_name} is split over {over}" if over else ""
        if shared is not None:
            how += (
                " and " * bool(how) + f"over {shared.source_name} by up to {shared.blocks} blocks"
            )
        inside = Part(statements=part.statements, serial=serial)
        return self.summing(whole.piece, inside, mapping, whole.kernel, own, how)

    def _scanned(
        self, whole: Unit, facts: KernelFacts, part: Part, names: NameTable
    ) -> Unit | None:
        """Return the unit of running sums of which a warp has a row, ``None`` for others."""
        mapped = their_names(whole.mapping.mapped)
        found = None
        if len(part.serial) == 1:
            piece, loop = whole.piece, part.serial[0]
            found = scan_of(piece, part.statements, loop, mapped, piece.scop, piece.dependences)
        if found is None:
            return None
        kinds = [self._scop.types[one.statement.write.array] for one in found.values]
        written = (self._scop.types[one.write.array] for one in found.piece.statements)
        exact = not any(one.is_floating for one in written)
        sizes = self._sizes(facts.name)
        single = all(one.tile == 1 for one in whole.mapping.mapped)
        chunks = sizes.chunks if single and looks_back(whole.piece, kinds) else 1
        lanes = SplitK(lanes=CUDA.lanes, tile=sizes.sum_tile, chunks=chunks)
        if trips(facts, called(part.serial[0], whole.piece.loops).source_name) < LEAST_TRIPS or (
            self._options.strict_fp and not exact
        ):
            return None
        own, card, loop = names.inner(), self._profile, part.serial[0]
        mapping = split_mapping(
            found.piece, facts, whole.mapping, loop, None, lanes, card, self._options, own
        )
        storage = scan_storage(found, mapped, loop)
        if mapping.split is None or storage is None:
            return None
        running = tuple(one.statement.name for one in found.values)
        rows, split = mapping.mapped, replace(mapping.split, grid=None)
        how = f"the running {found.combiner.what} over {split.source_name}"
        how += f" is shared by {CUDA.lanes} threads"
        if mapping.chunks > 1:
            rows = tuple(replace(one, grid="x") for one in rows)
            split = replace(split, grid="x", order=len(rows) + 1)
            how += f" in tiles of {split.tile} steps, each of which looks back at those before"
        return Unit(
            piece=found.piece,
            mapping=replace(mapping, mapped=rows, split=split, scan=found.combiner),
            parts=tuple(
                Part(statements=names, serial=()) for names in (running, found.users) if names
            ),
            storage=storage,
            kernel=whole.kernel,
            names=own,
            notes=(how,),
        )

    def _serial_units(
        self, piece: Piece, facts: KernelFacts | None, names: NameTable
    ) -> Iterator[Unit]:
        """Yield the units of a piece none of whose loops is parallel."""
        spread = SERIAL_SPREAD if facts is None else self._sizes(facts.name).spread
        sums, why = self._sums(piece), "no loop is parallel"
        runs = [] if spread is None else [*serial_runs(piece, sums)]
        if spread is None or not any(loops for _, loops in runs):
            yield self.one_thread(piece, names, why)
            return
        selected = None if facts is None else facts.name
        facts = facts or analyse_kernel(self._scop, piece.kernel, element_type=None, index=0)
        found = list[Unit | None]()
        for own, loops in runs:
            part = Part(statements=their_names(own.statements), serial=loops)
            whole = replace(self.one_thread(own, names, ""), kernel=selected)
            found.append(self._spread(whole, facts, part, spread, names) if loops else None)
        if not any(found):
            yield self.one_thread(piece, names, why)
            return
        for (own, _), unit in zip(runs, found, strict=True):
            alone = restricted(piece, their_names(own.statements))
            yield unit or self.one_thread(alone, names, why)

    def one_thread(self, piece: Piece, names: NameTable, why: str) -> Unit:
        """Return the unit that runs a piece in one thread."""
        part = Part(statements=their_names(piece.statements), serial=())
        alone = Mapping(mapped=(), serial=())
        return self._unit(piece, alone, (part,), None, names.inner(), (f"one thread: {why}",))

    def in_order(self, unit: Unit) -> bool:
        """Tell whether a unit adds up in the order of the source.

        Raises:
            InternalError: ``EATSS-K901`` a thread runs its instances in the wrong order.
        """
        return check_order(
            unit.piece, unit.mapping, unit.parts, unit.storage, strict=self._options.strict_fp
        )

    def _sums(self, piece: Piece) -> Sums:
        """Return the sums of a piece that may be taken in any order."""
        return sums_of(piece, exact=self._options.strict_fp)


def _noted(units: Sequence[Unit], *notes: str) -> list[Unit]:
    return [replace(unit, notes=(*unit.notes, *notes)) for unit in units]


def rows_together(piece: Piece, parts: Sequence[Part], storage: StoragePlan) -> tuple[Part, ...]:
    """Return parts of which neighbours are one where both write rows, over the same iterations.

    A tile comes once for both, and what one waits for the other does not. Scalars, and elements of
    a step, are in registers meanwhile.
    """
    if not storage.rows:
        return tuple(parts)
    held = (*storage.steps, *storage.registers, *storage.scalars)
    arrays = {*(one.array for one in storage.rows), *(one.array for one in held)}

    def iterations(part: Part) -> isl.Set | None:
        own = [piece.statement(name) for name in part.statements]
        if not part.serial or not all(one.write.array in arrays for one in own):
            return None
        return coalesced(union_of([one.params() for one in piece.domains_of(part)]))

    found: list[Part] = []
    for part in parts:
        beside = [one for one in found[-1:] if one.serial == part.serial]
        both = complete(map(iterations, (*beside, part)))
        if beside and both is not None and both[0].is_equal(both[1]):
            names = {*beside[0].statements, *part.statements}
            in_order = tuple(one.name for one in piece.statements if one.name in names)
            found[-1] = Part(statements=in_order, serial=part.serial)
        else:
            found.append(part)
    return tuple(found)


def share_scalars(units: Sequence[Unit], storage: StoragePlan) -> bool:
    """Tell whether a scalar that every thread has of its own is used in several units."""
    names = [{statement.name for statement in unit.piece.statements} for unit in units]
    users = [{statement for statement, _ in scalar.places} for scalar in storage.scalars]
    return any(sum(not one.isdisjoint(own) for own in names) > 1 for one in users)


def sums_in_registers(piece: Piece, storage: StoragePlan) -> bool:
    """Tell whether every sum of a piece is kept in registers while it is added up.

    Other reads of the same array have to be of elements that no thread of a launch writes.
    """
    fine = storage.held.union(*(one.places for one in storage.candidates))
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
        many = {
            name
            for part in unit.parts
            if prod(trips(facts, unit.mapping.sources[loop]) for loop in part.serial) >= LEAST_TRIPS
            for name in part.statements
        }
        held.update(place for place in unit.storage.held if place[0] in many)
    return frozenset(held)
