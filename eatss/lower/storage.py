"""Where each reference of a piece lives: registers, shared memory, or global memory through L1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from functools import cached_property
from math import prod

import islpy as isl

from eatss.base.classes import Classes
from eatss.base.frozen import Names, frozen, their_names
from eatss.cards import GpuProfile
from eatss.lower.arrays import union_of
from eatss.lower.mapping import MappedLoop, Mapping
from eatss.lower.pieces import Part, Piece
from eatss.lower.scans import Scan
from eatss.lower.units import sums_of
from eatss.plan.contract import are_held, held_words, registers_of_a_thread
from eatss.plan.stage import element_words
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import (
    IN,
    coalesced,
    maps_of,
    parameters_as_inputs,
    without_parameters,
)
from eatss.polyhedral.kernel import Reference
from eatss.polyhedral.scop import Place, Scop


@frozen
class Registers:
    """One element of an array for each point of a thread, in registers.

    ``relation`` maps ``point[mapped loops]`` to the element. ``load`` and ``store`` are
    the points, as sets of ``point[…]``, whose element is read before it is written here, and
    whose element is written here for others to see. Of a scalar, each point has a copy:
    ``escaping`` pairs statements with the instances whose value is read after the kernel. With a
    loop ``along`` which lanes are there is one for each point of it, too. Along mapped loops
    ``across`` it is the same element: threads have parts, which become one at the end.
    """

    array: str
    places: frozenset[Place]
    relation: isl.Map
    load: isl.Set
    store: isl.Set
    escaping: tuple[tuple[str, isl.Set], ...] = ()
    along: str = ""
    across: Names = ()

    @property
    def are_alone(self) -> bool:
        """Whether memory has nothing of them before or afterwards."""
        return self.are_written and bool(self.load.is_empty() and self.store.is_empty())

    @property
    def are_written(self) -> bool:
        """Whether a statement writes them."""
        return any(not number for _, number in self.places)


@frozen
class Candidate:
    """Reads of one array that may be staged in shared memory: translated copies of one another.

    No write of the piece touches what they read, in any launch. ``text`` is how the source
    spells the first of them.

    Of one that is ``private`` writes are among them: each element belongs to one point of the
    mapped loops. Tiles are stored behind what computes them then, and are ``filled`` first where
    something is read that the same iteration has not written. ``beside`` are the other references
    to such elements. Where no two iterations touch the same one, tiles are ``apart``.
    """

    array: str
    text: str
    places: frozenset[Place]
    private: bool = False
    filled: bool = True
    beside: frozenset[Place] = frozenset()
    apart: bool = False

    def written_in(self, statements: Collection[str]) -> bool:
        """Tell whether some of the statements write what is staged."""
        return any(name in statements and number == 0 for name, number in self.places)


@frozen
class StoragePlan:
    """Where the references of a piece live; what is named nowhere lives in global memory.

    ``rows`` are candidates that are private, ``steps`` registers of one step of serial loops, as
    far as parts allow [:meth:`with_rows`].
    """

    registers: tuple[Registers, ...]
    scalars: tuple[Registers, ...]
    candidates: tuple[Candidate, ...]
    read_only: frozenset[str]
    rows: tuple[Candidate, ...] = ()
    steps: tuple[Registers, ...] = ()

    @property
    def held(self) -> frozenset[Place]:
        """The references to elements that live in registers, scalars left out."""
        return frozenset(place for own in self.registers for place in own.places)

    def with_rows(self, parts: Sequence[Part]) -> StoragePlan:
        """Return the plan with private candidates, of references that serial loops run around.

        No part touches their elements through others. What is made and used in a step of one part
        is in registers.
        """
        names = [{*part.statements} for part in parts if part.serial]
        users = [({name for name, _ in one.places}, one) for one in self.steps]
        steps = [one for own, one in users if any(own <= known for known in names)]
        held = {place for one in steps for place in one.places}

        def within(one: Candidate) -> Candidate | None:
            own, filled, apart = set[Place](), one.filled, one.apart
            for part in parts:
                users = [
                    {place for place in places if place[0] in part.statements}
                    for places in (one.places, one.beside)
                ]
                if part.serial and all(users):
                    return None
                if part.serial and users[0]:
                    filled = filled or bool(own)  # each part has tiles of its own
                    apart = apart and not own
                    own |= users[0]
            found = replace(one, places=frozenset(own), filled=filled, apart=apart)
            return found if own else None

        found = filter(None, (within(one) for one in self.rows if held.isdisjoint(one.places)))
        return replace(
            self,
            registers=(*self.registers, *steps),
            candidates=(*self.candidates, *found),
            rows=(),
            steps=(),
        )


class NeedsOneThreadError(Exception):
    """Threads cannot share the work of a kernel; the text says why."""


def storage_of(piece: Piece, mapped: Sequence[MappedLoop], *, sums: bool = False) -> StoragePlan:
    """Return where the references of a piece live.

    Args:
        piece: the piece.
        mapped: its loops that go to threads.
        sums: whether the piece adds up in registers even where no loop is mapped.

    Raises:
        NeedsOneThreadError: threads cannot share a scalar the way the piece uses it.
    """
    names = their_names(mapped)

    def plan() -> StoragePlan:
        return _Planner(piece, names).plan(sums=sums)

    return piece.scheduled.once(plan, "storage", names, sums, of=piece)


def scan_storage(scan: Scan, mapped: Sequence[str], loop: str) -> StoragePlan | None:
    """Return where the references of a scan live: values, the one in front, earlier ones if read.

    ``None`` where the one element of a row is used behind it.

    Args:
        scan: the running sum.
        mapped: the loops of rows.
        loop: that along rows.
    """
    of_values, of_rows = (_Planner(scan.piece, names) for names in ((*mapped, loop), tuple(mapped)))
    registers = list[Registers]()
    for one in scan.values:
        name = one.statement.name
        declared = scan.piece.scop.array(one.statement.write.array)
        tied, row = of_values._tied[name], of_rows._tied[name]
        points, rows = of_values._points(tied), of_rows._points(row)
        stored, nothing = points, isl.Set.empty(points.get_space())
        if declared.is_local or one.still:
            stored = of_values._points(tied.intersect(of_rows._escaping(declared, name)))
        if one.still and not stored.is_empty():
            return None  # a lane would store what others load in front of the row
        values = Registers(
            array=declared.name,
            places=one.places,
            relation=parameters_as_inputs(
                of_values._image((name, 0), of_values._tied), of_values._mapped, "point"
            ),
            load=nothing,
            store=coalesced(stored),
            along=loop,
        )
        carried = Registers(
            array=declared.name,
            places=frozenset(),
            relation=parameters_as_inputs(row.apply(one.before), of_rows._mapped, "point"),
            load=rows,
            store=isl.Set.empty(rows.get_space()),
        )
        registers += [values, carried]
        if one.earlier:
            registers.append(replace(values, places=one.earlier, store=nothing))
    used = {one.array for own in scan.piece.statements for one in own.accesses}
    read = frozenset(used.difference(own.write.array for own in scan.piece.statements))
    return StoragePlan(registers=tuple(registers), scalars=(), candidates=(), read_only=read)


def within_registers(
    storage: StoragePlan,
    mapping: Mapping,
    scop: Scop,
    profile: GpuProfile,
    continued: Collection[str] = (),
) -> tuple[StoragePlan, Names]:
    """Keep in registers what fits; return the plan and why something does not.

    Sums of arrays that are ``continued`` are in the registers of others.

    Raises:
        NeedsOneThreadError: parts that points have do not fit.
    """
    budget = held_words(registers_of_a_thread(profile, mapping.threads))
    kept = []
    notes = []
    for registers in storage.registers:
        words = element_words(scop.array(registers.array).element_type.size_bytes)
        words *= prod(one.points for one in mapping.mapped if one.name not in registers.across)
        words *= registers.array not in continued
        if are_held(mapping.points, words, budget):
            budget -= words
            kept.append(registers)
        elif registers.across:
            raise NeedsOneThreadError(f"registers have no room for parts of '{registers.array}'")
        else:
            notes.append(
                f"{registers.array} stays in L1: {mapping.points} points a thread need "
                f"{words} registers"
            )
    return replace(storage, registers=tuple(kept)), tuple(notes)


def _distinct(sets: Iterable[isl.Set]) -> list[isl.Set]:
    """Return the sets that are not written alike: many statements touch the same elements."""
    found: list[isl.Set] = []
    for one in sets:
        if not any(one.plain_is_equal(other) for other in found):
            found.append(one)
    return found


def _is_plain(reference: Reference) -> bool:
    """Tell whether subscripts have a loop each, by themselves."""
    loops = [name for one in reference.subscripts for name in one.loops]
    one_each = all(one.affine and len(one.loops) <= 1 for one in reference.subscripts)
    return one_each and len(loops) == len({*loops})


class _Planner:
    def __init__(self, piece: Piece, mapped: Names) -> None:
        self._piece, self._mapped = piece, mapped
        self._tied = piece.tied(mapped)
        self._everything = union_of(domain.to_union_set() for domain in self._tied.values())
        self._flows: dict[str, isl.UnionMap] = {}
        self._launch = {
            name: without_parameters(domain, self._mapped) for name, domain in self._tied.items()
        }

    @cached_property
    def _each_step(self) -> _Planner:
        return _Planner(self._piece, self._piece.bound)

    def plan(self, *, sums: bool) -> StoragePlan:
        registers = []
        scalars = []
        candidates: list[Candidate] = []
        rows: list[Candidate] = []
        steps: list[Registers] = []
        written = {statement.write.array for statement in self._piece.statements}
        everything = self._places()
        for array, places in everything.items():
            declared, writes = self._piece.scop.array(array), array in written
            if declared.n_dims == 0 and not (writes and sums and not self._mapped):
                if writes and self._mapped:
                    scalars.append(self._scalar(declared, places))
                continue
            for group, group_writes in self._groups(places):
                if (combined := self._combined(array, group)) is not None:
                    registers.append(combined)
                elif not group_writes and declared.n_dims:
                    candidates.extend(self._candidates(array, group))
                elif (self._mapped or sums) and (
                    found := self._registers(array, group)
                ) is not None:
                    registers.append(found)
                elif self._mapped and declared.n_dims:
                    steps.extend(self._in_step(declared, group))
                    rows.extend(self._rows(array, group) if len(self._mapped) == 1 else ())
        return StoragePlan(
            registers=tuple(registers),
            scalars=tuple(scalars),
            candidates=tuple(candidates),
            read_only=frozenset(everything) - written,
            rows=tuple(rows),
            steps=tuple(steps),
        )

    def _rows(self, array: str, group: Sequence[Place]) -> Iterator[Candidate]:
        """Yield accesses to elements that belong to one point of the mapped loops each.

        Each loop moves one of their subscripts, so that boxes are as planned.
        """
        known = self._piece.kernel.references
        if any(one.places & set(group) and not _is_plain(one) for one in known):
            return
        if not self._relation(group).is_injective():
            return
        each = self._each_step
        steps = each._relation(group)
        apart = steps.is_single_valued() and steps.is_injective()
        for one in self._candidates(array, group):
            reads = [place for place in one.places if not self._piece.access(place).is_write]
            yield replace(
                one,
                private=True,
                filled=not all(each._from_outside(place).is_empty() for place in reads),
                beside=frozenset(group) - one.places,
                apart=apart,
            )

    def _places(self) -> dict[str, list[Place]]:
        found: dict[str, list[Place]] = {}
        for statement in self._piece.statements:
            for number, access in enumerate(statement.accesses):
                found.setdefault(access.array, []).append((statement.name, number))
        return found

    def _image(self, place: Place, domains: Dictionary[str, isl.Set]) -> isl.Set:
        """Return the elements an access touches, by the parameters of ``domains``."""
        return domains[place[0]].apply(self._piece.access(place).relation)

    def _relation(self, group: Sequence[Place]) -> isl.Map:
        """Return the elements that accesses touch at each point."""
        images = _distinct(self._image(place, self._tied) for place in group)
        return union_of(parameters_as_inputs(one, self._mapped, "point") for one in images)

    def _groups(self, places: Sequence[Place]) -> Iterator[tuple[list[Place], bool]]:
        """Yield accesses to one array in groups that never touch the same element in a launch.

        Reads that no write meets form one group.
        """
        images = [coalesced(self._image(place, self._launch)) for place in places]
        meeting = Classes(range(len(places)))
        writers = [k for k, place in enumerate(places) if self._piece.access(place).is_write]
        for k in writers:
            for other in range(len(places)):
                if other != k and not images[k].is_disjoint(images[other]):
                    meeting.join(k, other)
        free: list[Place] = []
        for component in meeting.sets():
            group = [places[k] for k in sorted(component)]
            if any(self._piece.access(place).is_write for place in group):
                yield group, True
            else:
                free.extend(group)
        if free:
            yield sorted(free), False

    def _candidates(self, array: str, group: Sequence[Place]) -> Iterator[Candidate]:
        """Yield the reads of a group by the shape of their subscripts."""
        shapes: dict[object, list[Reference]] = {}
        for reference in self._piece.kernel.references:
            if reference.array == array:
                shape = tuple(s.direction for s in reference.subscripts)
                shapes.setdefault(shape, []).append(reference)
        for references in shapes.values():
            own = [place for one in references for place in group if place in one.places]
            if own:
                text = self._piece.access(own[0]).text
                yield Candidate(array=array, text=text, places=frozenset(own))

    def _points(self, domain: isl.Set) -> isl.Set:
        """Return ``point[mapped loops]`` of a domain whose loops are bound."""
        return parameters_as_inputs(domain, self._mapped, "point").domain()

    def _registers(self, array: str, group: Sequence[Place]) -> Registers | None:
        relation = self._relation(group)
        if not (relation.is_single_valued() and relation.is_injective() and self._is_reused(group)):
            return None
        declared = self._piece.scop.array(array)
        writers = [name for name, number in group if not number]
        read = [self._from_outside(place) for place in group if place[1]]
        written = [self._escaping(declared, name) for name in writers]
        if not declared.is_local and not all(one.is_empty() for one in written):
            written = [self._tied[name] for name in writers]
        nothing = isl.Set.empty(relation.domain().get_space())
        load, store = (
            union_of([nothing, *_distinct(map(self._points, own))]) for own in (read, written)
        )
        return Registers(
            array=array,
            places=frozenset(group),
            relation=coalesced(relation),
            load=coalesced(load),
            store=coalesced(store),
        )

    def _in_step(self, array: Array, group: Sequence[Place]) -> Iterator[Registers]:
        """Yield the element of a step that makes it and alone uses it.

        What memory would have is overwritten before anybody reads it, so nothing is stored.
        """
        each = self._each_step
        if not each._relation(group).is_single_valued():
            return
        leaves = (
            each._from_outside(place) if place[1] else each._escaping(array, place[0])
            for place in group
        )
        if not all(one.is_empty() for one in leaves):
            return
        points = union_of(_distinct(self._points(self._tied[name]) for name, _ in group))
        nothing = isl.Set.empty(points.get_space())
        yield Registers(
            array=array.name,
            places=frozenset(group),
            relation=isl.Map.from_domain(points),
            load=nothing,
            store=nothing,
        )

    def _combined(self, array: str, group: Sequence[Place]) -> Registers | None:
        """Return the parts of a statement that is combined, ``None`` where each point has a whole.

        Raises:
            NeedsOneThreadError: something else of the launch uses what it updates, or points of one
                element are not those of one row.
        """
        own = [name for name, at in group if at == 0 and self._piece.statement(name).combined]
        if not own:
            return None
        summed = sums_of(self._piece).get(own[0], frozenset())
        across = tuple(one for one in self._mapped if one in summed)
        if not across:
            return None
        rest = tuple(one for one in self._mapped if one not in across)
        rows = _Planner(self._piece, rest)
        relation = rows._relation(group)
        users = {name for name, _ in group}
        if len(users) > 1 or not (relation.is_single_valued() and relation.is_injective()):
            raise NeedsOneThreadError(f"parts of '{array}' are used before they are one")
        points = rows._points(rows._tied[group[0][0]])
        return Registers(
            array=array,
            places=frozenset(group),
            relation=coalesced(relation),
            load=isl.Set.empty(points.get_space()),
            store=coalesced(points),
            across=across,
        )

    def _is_reused(self, group: Sequence[Place]) -> bool:
        """Tell whether some statement touches its element more than once at a point."""
        writers = {name for name, number in group if number == 0}
        users = {name for name, _ in group}
        single = all(isl.Map.from_range(self._tied[name]).is_single_valued() for name in users)
        return not single or (len(users) > 1 and len(writers) > 0)

    def _from_outside(self, place: Place) -> isl.Set:
        """Return the instances of a read, tied to a point, that no write at the point feeds."""
        statement = self._piece.statement(place[0])
        access = self._piece.access(place)
        domain = self._tied[statement.name]
        fed = self._piece.scop.no_points
        for part in maps_of(self._flow_within(statement.name)):
            writer = self._piece.statement(part.get_tuple_name(IN))
            if writer.write.array == access.array:
                # the flow must be through this array, not another the sink reads
                same = writer.write.relation.apply_range(access.relation.reverse())
                fed = fed.union(part.intersect(same).range().to_union_set())
        return coalesced(domain.subtract(fed.extract_set(domain.get_space())))

    def _flow_within(self, name: str) -> isl.UnionMap:
        """Return where the values that a statement reads, tied to a point, come from there."""
        if name not in self._flows:
            here = self._tied[name].to_union_set()
            flow = self._piece.dependences.flow.intersect_range(here)
            self._flows[name] = flow.intersect_domain(self._everything)
        return self._flows[name]

    def _scalar(self, array: Array, places: Sequence[Place]) -> Registers:
        everywhere = self._points(self._tied[places[0][0]])
        nothing = isl.Set.empty(everywhere.get_space())
        reads = [place for place in places if not self._piece.access(place).is_write]
        load = union_of([nothing, *(self._points(self._from_outside(one)) for one in reads)])
        escaping = tuple(
            (name, escape)
            for name, number in places
            if number == 0 and not (escape := self._escaping(array, name)).is_empty()
        )
        if not load.is_empty() and escaping:
            raise NeedsOneThreadError(f"scalar '{array.name}' carries values between threads")
        return Registers(
            array=array.name,
            places=frozenset(places),
            relation=isl.Map.from_domain(everywhere),
            load=coalesced(load),
            store=nothing,
            escaping=escaping,
        )

    def _escaping(self, array: Array, name: str) -> isl.Set:
        """Return the instances of a write whose value is used at another point or later."""
        domain = self._tied[name]
        flow = self._piece.dependences.flow.intersect_domain(domain.to_union_set())
        inside = union_of(flow.intersect_range(tied.to_union_set()) for tied in self._tied.values())
        # every instance has some sinks bound to its own point; what is left leaves the point
        used = flow.subtract(inside).domain()
        escape = used.extract_set(domain.get_space())
        if not array.is_local:
            again = self._piece.dependences.output.intersect_domain(domain.to_union_set())
            last = domain.subtract(again.domain().extract_set(domain.get_space()))
            escape = escape.union(last)
        return coalesced(escape)
