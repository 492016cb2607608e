"""Registers in the place of elements of rows, as :mod:`eatss.plan.phases` says.

    if (threadIdx.x == 0) most[i] = in[i][0];    most_v = in[i][0];
    … barrier …                                  …
    … exp(in[i][j] - most[i]) …                  … exp(in_k[rj] - most_v) …

A sum over the lanes comes to all of them. So each of them goes on with it, and none waits for
another to leave it in memory. One of them stores what no later phase overwrites. A register in the
place of an element of a row has at each moment what the element would have in memory: of an array
that is written all accesses are of that element. The model reads the same
:class:`~eatss.plan.phases.RowStorage`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import islice

import islpy as isl

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import FusedRows
from eatss.base.frozen import Names, Numbers, complete, distinct, fixed, frozen
from eatss.base.targets import CUDA, Axis
from eatss.lower.arrays import ends_of, union_of
from eatss.lower.instructions import FROM_LANE
from eatss.lower.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    For,
    If,
    Intrinsic,
    Let,
    Node,
    Nodes,
    Reciprocal,
    Scope,
    over_places,
)
from eatss.lower.kernel.uses import (
    accesses,
    divides_alike,
    every_of,
    inside,
    mapped,
    mapped_of,
    trips_from_zero,
    with_bodies,
    with_elements,
)
from eatss.lower.mapping import MappedLoop
from eatss.lower.pieces import LoopMember, NameTable, Piece
from eatss.lower.planning import Unit
from eatss.lower.products import references_at
from eatss.lower.units import numbered_rows
from eatss.plan.phases import SEVERAL, KeptRow, PassedRow, RowStorage, RowValue, slots_of
from eatss.plan.stage import copied_together
from eatss.polyhedral.expression import Array, divisors
from eatss.polyhedral.isl_names import (
    coalesced,
    constant_value,
    linear_function,
    parameter_at_least,
    parameter_at_most,
    parameter_between,
    parameter_bound,
    without_parameters,
)
from eatss.polyhedral.scop import Place, Scop
from eatss.program import Constant, Name, equals
from eatss.program.linear import Coefficients, as_sum


@frozen
class LoweredPhase:
    """The nodes of a phase, and the unit that they come from."""

    unit: Unit
    nodes: Nodes


@fixed
class _Home:
    """Registers that a phase has in the place of elements of an array: those of some ``places``.

    What is ``moved`` are its elements in other nodes, too. Memory gets what is ``stored``.
    ``point`` numbers the elements of a thread.
    """

    array: Buffer
    registers: Buffer
    places: Collection[Place]
    moved: bool
    stored: bool
    point: str = ""

    @property
    def register(self) -> Element:
        """The register of the point that a thread is at."""
        return self.registers.at(*(Name(self.point) for _ in self.registers.layout.extents))

    def elements(self, node: Node) -> list[Element]:
        """Return the elements of a node that are in registers."""
        if isinstance(node, Compute):
            every, name = enumerate((node.target, *node.reads[1:])), node.statement.name
            return [one for at, one in every if (name, at) in self.places]
        every_one = (one for own in accesses(node) for one in own)
        return [one for one in every_one if self.moved and one.buffer == self.array]

    def load(self, node: Node) -> Nodes:
        """Return the load in the place of a node that reads elements, and the loops of it."""
        if not isinstance(node, Compute | Copy):
            return _around_copies(node)
        read, own = accesses(node)[1], self.elements(node)
        whole = node if isinstance(node, Copy) else Copy(target=node.target, source=node.target)
        loads = (replace(whole, target=self.register, source=one) for one in own if one in read)
        return tuple(loads)[:1]

    def store(self, node: Node) -> Nodes:
        """Return the store in the place of a node that writes elements, and the loops of it."""
        if not isinstance(node, Compute | Copy):
            return _around_copies(node)
        own = node.target in self.elements(node)
        return (Copy(target=node.target, source=self.register),) if own else ()


def _around_copies(node: Node) -> Nodes:
    """Return what is around copies: loops and tests in which there are some, names of values."""
    match node:
        case For() | If() if all(isinstance(one, Let) for body in inside(node) for one in body):
            return ()
        case For():
            return (replace(node, unroll="whole"),)
        case If() | Let() | Scope():
            return (node,)
    return ()


def _in_registers(node: Node, homes: Sequence[_Home]) -> tuple[Node, Nodes, bool]:
    """Return a node with registers, what is stored of them, and whether it writes nothing else."""
    own = {one: home for home in homes for one in home.elements(node)}
    there = {one: home.register for one, home in own.items()}
    (found,) = with_elements((node,), lambda one: there.get(one, one))
    writes = accesses(node)[0]
    kept = [one for one in writes if one in own]
    stores = (Copy(target=one, source=there[one]) for one in kept if own[one].stored)
    return found, tuple(stores), len(kept) == len(writes)


def _registers(array: Buffer, name: str, extents: Numbers, names: NameTable) -> Buffer:
    return Buffer.of("register", names.fresh(name), array.element_type, *extents)


def with_row_values(
    phases: Sequence[LoweredPhase],
    values: Sequence[tuple[RowValue, Buffer]],
    axis: Axis,
    names: NameTable,
) -> tuple[Nodes, tuple[LoweredPhase, ...], Names]:
    """Return what is declared and loaded, phases that are right for all lanes of a row, and notes.

    Args:
        phases: some without a loop for lanes: what they do the first lane does alone, but for
            what each of them has for itself. A row has several lanes.
        values: what all lanes have in registers, with the array of each.
        axis: that of the lanes.
        names: gives out the names of the registers.
    """
    registers = [_registers(array, f"{array.name}_v", (), names) for _, array in values]
    first, changed, loads = equals(Name(f"{CUDA.thread}{axis}"), 0), list[LoweredPhase](), Nodes()

    def homes(number: int) -> list[_Home]:
        return [
            _Home(array, home, one.places, one.transfers, number in one.stores)
            for (one, array), home in zip(values, registers, strict=True)
        ]

    def leaf(own: Sequence[_Home], node: Node, *, alone: bool) -> Nodes:
        """Return a node with registers; what is ``alone`` only the first lane does else."""
        written, read = accesses(node)
        if not written or any(one.buffer in registers for one in read):
            return (node,)  # what is stored of registers is there already
        found, stores, kept = _in_registers(node, own)
        found = If(conditions=(first,), body=(found,)) if alone and not kept else found
        return (found, If(conditions=(first,), body=stores)) if stores else (found,)

    for number, phase in enumerate(phases):
        own, nodes, loop = homes(number), phase.nodes, phase.unit.lane_loop
        if phase.unit.mapping.split is not None and loop is not None:
            nodes = mapped(nodes, _combined(loop, partial(leaf, own, alone=True)))
        nodes = mapped(nodes, partial(leaf, own, alone=loop is None))
        changed.append(replace(phase, nodes=nodes))
    for (value, array), home in zip(values, homes(0), strict=True):
        loads += tuple(
            Scope(body=mapped(phases[at].nodes, home.load), phase=f"load {array.name}")
            for at in value.loads
        )
    arrays = distinct(array.name for _, array in values)
    notes = (f"{one}: a value of a row in a register of each of its threads" for one in arrays)
    declared = (Declare(buffer=one) for one in registers)
    return (*declared, *loads), tuple(changed), tuple(notes)


def _combined(loop: MappedLoop, alone: Callable[[Node], Nodes]) -> Callable[[Node], Nodes]:
    """Return the change of what the first lane does with what the lanes add up."""
    first = (equals(Name(loop.thread), 0),)

    def changed(node: Node) -> Nodes:
        if isinstance(node, If) and not node.orelse and node.conditions == first:
            return mapped(node.body, alone)
        return (node,)

    return changed


def with_rows_kept(
    phases: Sequence[LoweredPhase],
    kept: Sequence[tuple[KeptRow, Buffer]],
    block: FusedRows,
    names: NameTable,
) -> KeptRows:
    """Return the nodes of phases with rows in registers.

    Args:
        phases: whose tiles hold whole rows along the loop of their lanes.
        kept: what threads keep of rows, with the array of each.
        block: its threads.
        names: gives out the names of the registers.
    """
    lasting, front, behind = list[Node](), list[Node](), list[Node]()
    ahead = [list[Node]() for _ in phases]
    homes = [list[_Home]() for _ in phases]
    slots, beside = int(slots_of(block.tile, block.lanes)), int(block.rows)
    own_lane = Name(f"{CUDA.thread}{block.axes[1]}")
    several = f"{slots} elements" if slots > 1 else "an element"

    def scope(what: str, at: int, change: Callable[[Node], Nodes]) -> Scope:
        return Scope(body=mapped(phases[at].nodes, change), phase=what)

    for row, array in kept:
        home = _registers(array, f"{array.name}_k", (slots,) if slots > 1 else (), names)
        for at, (own, phase) in enumerate(zip(homes, phases, strict=True)):
            stored, loop = at in row.stores and not row.lasting, phase.unit.lane_loop
            point = "" if loop is None else loop.point
            own.append(_Home(array, home, row.places[at], True, stored, point))
        begin = lasting if row.lasting else front
        begin.append(Declare(buffer=home))
        begin += [scope(f"load {array.name}", at, homes[at][-1].load) for at in row.loads]
        if row.passed is not None:
            counters = [names.fresh("place")][: len(home.layout.extents)]
            element = home.at(*map(Name, counters))
            source = as_sum(row.passed.row + beside * (own_lane % (CUDA.lanes // beside)))
            passing = Intrinsic.of(FROM_LANE, element, element, source=source)
            ahead[row.passed.phase].append(over_places(home, counters, passing))
        if row.lasting:
            behind += [scope(f"store {array.name}", at, homes[at][-1].store) for at in row.stores]
    nodes = [phase.nodes for phase in phases]
    if kept:
        pairs = zip(phases, homes, strict=True)
        nodes = [mapped(one.nodes, partial(_kept_in, one, own)) for one, own in pairs]
    if block.steps:
        nodes = [_with_reciprocals(own, names) for own in nodes]
    notes = (
        f"{array.name}: {several} of a row in registers of a thread, for all phases"
        for _, array in kept
    )
    return KeptRows(
        lasting=tuple(lasting),
        front=tuple(front),
        ahead=tuple(map(tuple, ahead)),
        bodies=tuple(nodes),
        behind=tuple(behind),
        notes=tuple(notes),
    )


def _kept_in(phase: LoweredPhase, homes: Sequence[_Home], node: Node) -> Nodes:
    """Return a node of a phase with rows in registers, and what is stored of them."""
    loop = phase.unit.lane_loop
    if isinstance(node, For) and loop is not None and node.counter == loop.point:
        return (replace(node, unroll="whole"),)
    if not isinstance(node, Compute | Copy):
        return (node,)
    found, stores, _ = _in_registers(node, homes)
    return found, *stores


def _with_reciprocals(nodes: Nodes, names: NameTable) -> Nodes:
    """Return nodes in which quotients of several points by one register have its reciprocal.

    Those that are not exact so are divisions.
    """

    def changed(node: Node) -> Nodes:
        computes = [*every_of((node,), Compute)]
        if not isinstance(node, For) or len(computes) > 1 or (trips_from_zero(node) or 0) < SEVERAL:
            return (with_bodies(node, partial(_with_reciprocals, names=names)),)
        is_alike = divides_alike(node)
        front, inverses = list[Node](), list[tuple[int, Element]]()
        for number, source in (
            (number, one.reads[number])
            for one in computes
            for number in divisors(one.statement.value)
        ):
            if not is_alike(source):
                continue
            kind = source.buffer.element_type
            inverse = Buffer.of("register", names.fresh("inverse"), kind).at()
            inverses.append((number, inverse))
            made_of = Reciprocal(target=inverse, source=source, flag="")
            front += [Declare(buffer=inverse.buffer), made_of]
        told = partial(replace, reciprocals=tuple(inverses))
        return (*front, *mapped_of((node,), Compute, told)) if front else (node,)

    return tuple(new for node in nodes for new in changed(node))


@frozen
class KeptRows:
    """What is declared and loaded in front, and ahead of each phase, its nodes, and notes.

    Where blocks go through steps, what is ``lasting`` is in front of the first of them, and what is
    ``behind`` behind the last. Both are as in the first step.
    """

    lasting: Nodes
    front: Nodes
    ahead: tuple[Nodes, ...]
    bodies: tuple[Nodes, ...]
    behind: Nodes
    notes: Names


_LANE = "lane"
"""What the loop whose iterations the lanes of a row share is called in every phase."""

_Form = tuple[tuple[Coefficients, Coefficients, int], ...]
"""Subscripts by what loops are to all phases, by symbols, and constants."""


@fixed
class _Access:
    """What a phase does with an array: at the ``places``, for the elements ``image``.

    ``form`` is ``None`` where other loops than those of rows and lanes move it. Transfers of
    registers have no places.
    """

    phase: int
    form: _Form | None
    writes: bool
    image: isl.Set
    place: Place | None = None

    @property
    def is_of_a_lane(self) -> bool:
        """Whether lanes of a row have an element each."""
        return any(name == _LANE for terms, _, _ in self.form or () for name, _ in terms)


def span_of(unit: Unit) -> tuple[int, int] | None:
    """Return the first and the last element of a row that a unit touches, if these are numbers."""
    loop = unit.lane_loop
    if loop is None:
        return None
    values = _along(unit, loop)
    first, last = map(constant_value, ends_of(values, loop.name))
    return None if first is None or last is None else (first, last)


def _along(unit: Unit, loop: MappedLoop) -> isl.Set:
    """Return the values of the loop of the lanes, a parameter, for all rows."""
    others = [name for name in unit.piece.bound if name != loop.name]
    placed = (without_parameters(one, others).params() for one in unit.piece.placed)
    return coalesced(union_of(list(placed)))


def sizes_of_whole_rows(units: Sequence[Unit], tile: int, steps: Names) -> isl.Set:
    """Return the sizes, a set of parameters, for which one tile has what units touch of a row.

    In all ``steps`` of loops on the host.
    """
    longer = []
    for unit in units:
        loop = unit.lane_loop
        if loop is not None:
            values = without_parameters(_along(unit, loop), steps)
            first, last = (linear_function(values.get_ctx(), at, ()) for at in (0, tile - 1))
            at_least = parameter_at_least(loop.name, first)
            outside = values.subtract(at_least.intersect(parameter_at_most(loop.name, last)))
            longer.append(without_parameters(outside, [loop.name]))
    return coalesced(union_of(longer).complement())


def row_storage(
    scop: Scop,
    units: Sequence[Unit],
    depth: int,
    facts: Sequence[KernelFacts],
    step: LoopMember | None = None,
) -> RowStorage:
    """Return what registers may have of rows while blocks go through phases.

    Args:
        scop: the region.
        units: of the phases.
        depth: how many outer loops are over rows.
        facts: the kernels of the units.
        step: the loop on the host that blocks go through, if they do.
    """
    accesses: dict[str, list[_Access]] = {}
    for number, unit in enumerate(units):
        for array, access in _accesses(number, unit, depth, scop):
            accesses.setdefault(array, []).append(access)
    kernels = {one.name: one for one in facts}
    kept = list[KeptRow]()
    values = list[RowValue]()
    for array, known in accesses.items():
        own = _Rows(scop.array(array), known, units, kernels)
        row = own.kept()
        if row is not None and step is not None and own.lasts(row, step):
            row = replace(row, lasting=True)
        if row is None:
            values += own.values()
        else:
            kept.append(row)
    alone = [at for at, unit in enumerate(units) if unit.lane_loop is None]
    here = [(a, one) for a, own in accesses.items() for one in own if one.phase in alone]
    homes = {place for at in alone for place in _homes(units[at])}
    kept.sort(key=lambda one: not one.lasting)  # what is not would be loaded in each step
    return RowStorage(
        kept=tuple(kept),
        values=tuple(_for_all_lanes(values, here, homes)),
        vector=_vector(accesses, {one.array for one in kept}, facts),
    )


def rows_along_memory(storage: RowStorage, units: Sequence[Unit], depth: int, scop: Scop) -> Names:
    """Return the arrays besides those that are kept of which rows are loaded, or stored."""
    found = dict[str, set[bool]]()
    for number, unit in enumerate(units):
        for array, access in _accesses(number, unit, depth, scop):
            if access.is_of_a_lane:
                found.setdefault(array, set()).add(access.writes)
    kept = {one.array for one in storage.kept}
    return tuple(one for one, ways in found.items() if len(ways) == 1 and one not in kept)


def _vector(
    accesses: Mapping[str, Sequence[_Access]], kept: Collection[str], facts: Sequence[KernelFacts]
) -> int:
    """Return how many elements of rows a thread may have at a time, if these lie along memory.

    What is read twice and not ``kept`` compilers load once if it is elements.
    """
    arrays = {array.name: array for one in facts for array in one.work.arrays}
    widths = set[int]()
    for name, own in accesses.items():
        of_lanes = [one.form for one in own if one.form is None or one.is_of_a_lane]
        alone = all(form is not None and _is_along(form) for form in of_lanes)
        read = (one.place for one in own if one.is_of_a_lane and not one.writes)
        readers = {place and place[0] for place in read}
        if of_lanes and not (alone and (name in kept or len(readers) <= 1)):
            return 1
        if of_lanes:
            array = arrays[name]
            widths.add(copied_together(array.extents, array.element_bytes))
    return widths.pop() if len(widths) == 1 else 1


def _is_along(form: _Form) -> bool:
    """Tell whether lanes of a row that follow each other have elements that do."""
    *others, last = form
    across = {name for terms, _, _ in others for name, _ in terms}
    return last == (((_LANE, 1),), (), 0) and _LANE not in across


def _for_all_lanes(
    values: Sequence[RowValue], alone: Sequence[tuple[str, _Access]], homes: Collection[Place]
) -> Sequence[RowValue]:
    """Return values without those that are made of what the first lane alone has.

    It does what phases do in ``alone``, and has registers in the place of ``homes``. The others do
    not wait for it.
    """
    held = {place for value in values for place in value.places}
    left = [(array, one) for array, one in alone if one.place not in held]
    written = {(array, one.phase) for array, one in left if one.writes}
    late = {one.place for array, one in left if (array, one.phase) in written and not one.writes}
    made = {(place[0], 0) for place in (*late, *homes) if place is not None}
    kept = [one for one in values if made.isdisjoint(one.places)]
    return kept if len(kept) == len(values) else _for_all_lanes(kept, alone, homes)


def _homes(unit: Unit) -> frozenset[Place]:
    """Return the accesses that registers of a thread answer."""
    return unit.storage.held.union(*(own.places for own in unit.storage.scalars))


def _accesses(number: int, unit: Unit, depth: int, scop: Scop) -> Iterator[tuple[str, _Access]]:
    """Yield what a phase does with arrays in memory: loads, statements, stores."""
    names = {loop.source_name: f"row {at}" for at, loop in enumerate(unit.mapping.mapped[:depth])}
    lanes = unit.lane_loop
    if lanes is not None:
        names[lanes.source_name] = _LANE
    piece, split = unit.piece, unit.mapping.split is not None
    if not split:
        yield from _transfers(number, unit, names, writes=False)
    for scalar in unit.storage.scalars:
        for _, instances in scalar.escaping:
            yield scalar.array, _Access(number, None, writes=True, image=instances)
    homes = _homes(unit)
    for statement in piece.statements:
        instances = piece.unbound(piece.domain_of(statement.name))
        for at, access in enumerate(statement.accesses):
            place = statement.name, at
            if place not in homes and scop.array(access.array).n_dims:
                image = instances.apply(access.relation)
                form = _form(piece, place, names)
                yield access.array, _Access(number, form, at == 0, image, place)
    yield from _transfers(number, unit, names, writes=True)
    if split:  # what lanes add up is added to what is there
        yield from _transfers(number, unit, names, writes=False)


def _transfers(
    number: int, unit: Unit, names: Mapping[str, str], *, writes: bool
) -> Iterator[tuple[str, _Access]]:
    """Yield the stores of registers of a phase, or its loads."""
    for held in unit.storage.registers:
        points = held.store if writes or unit.mapping.split is not None else held.load
        forms = (_form(unit.piece, place, names) for place in sorted(held.places))
        form = next((one for one in forms if one is not None), None)
        if not points.is_empty():
            yield held.array, _Access(number, form, writes, points.apply(held.relation))


def _form(piece: Piece, place: Place, names: Mapping[str, str]) -> _Form | None:
    """Return the subscripts of an access by other names of loops, ``None`` where it has others."""
    reference = next((one for one in piece.kernel.references if place in one.places), None)
    if reference is None or not reference.loops <= {*names}:
        return None
    if not all(one.affine for one in reference.subscripts):
        return None
    return tuple(
        (
            tuple(sorted((names[name], factor) for name, factor in one.coefficients)),
            one.symbols,
            one.offset,
        )
        for one in reference.subscripts
    )


@fixed
class _Rows:
    """What the phases of some units do with an array; ``facts`` are their kernels by name."""

    array: Array
    accesses: Sequence[_Access]
    units: Sequence[Unit]
    facts: Mapping[str, KernelFacts]

    def values(self) -> Iterator[RowValue]:
        """Yield the elements of which all lanes of a row can have that of the row.

        Each has to be used in another phase than it is written in, and none that other accesses
        touch. What is not written before it is read is loaded where statements read it, outside
        loops.
        """
        transferred = {one.form for one in self.accesses if one.place is None}
        if len(transferred) > 1:
            return
        for form in distinct(o.form for o in self.accesses if o.form and not o.is_of_a_lane):
            own = [one for one in self.accesses if one.form == form]
            read, loads = _read(own)
            if (
                len({one.phase for one in own}) > 1
                and len(read) < len(own)
                and all(one.place is not None for one in own if one.phase in loads)
                and all(self.units[at].lane_loop is None for at in loads)
                and all(one.form == form or _are_apart(one, own) for one in self.accesses)
            ):
                yield RowValue(
                    array=self.array.name,
                    loads=loads,
                    stores=_stores(own),
                    transfers=form in transferred,
                    places=_places(own),
                    references=self.references(own),
                )

    def kept(self) -> KeptRow | None:
        """Return how it may be kept, ``None`` if it may not, or if that saves nothing."""
        forms = [one.form for one in self.accesses if one.is_of_a_lane]
        form = max(distinct(forms), key=forms.count, default=None)
        if form is None:
            return None
        own = [one for one in self.accesses if one.form == form]
        others = [
            one
            for one in self.accesses
            if one.form != form and (one.place is None or not _are_apart(one, own))
        ]  # or transfers
        writing = [one.phase for one in (*own, *others) if one.writes]
        passed = None
        if writing and any(one.phase >= min(writing) for one in others):
            passed = self.passed(form, own, others)  # memory has no more what others read
            if passed is None:
                return None
            own = [*own, *others]
        phases = sorted({one.phase for one in own})
        read, loads = _read([one for one in own if passed is None or one.form == form], own)
        if not any(one.phase > phases[0] for one in read):
            return None
        spans = complete(span_of(self.units[at]) for at in phases)
        begins, ends = ((None,), (None,)) if spans is None else zip(*spans, strict=True)
        widths = {a.name: a.element_bytes for one in self.facts.values() for a in one.work.arrays}
        return KeptRow(
            array=self.array.name,
            element_bytes=widths.get(self.array.name, self.array.element_type.size_bytes),
            begin=min(begins),
            end=max(ends),
            first=phases[0],
            last=max(one.phase for one in read),
            loads=loads,
            stores=_stores(own),
            places=tuple(
                _places([one for one in own if one.phase == at]) for at in range(len(self.units))
            ),
            references=self.references(own),
            passed=passed,
        )

    def passed(
        self, form: _Form, read: Sequence[_Access], others: Sequence[_Access]
    ) -> PassedRow | None:
        """Return which row of a block has written, before, all that accesses of any row read."""
        phase, made = min(one.phase for one in read), others[0].form
        count = numbered_rows([one.piece for one in self.units])
        if (
            count is None
            or made is None
            or any(one.form != made or one.place is None or one.phase >= phase for one in others)
            or any(one.writes for one in read)
            or not all(_is_covered(one.image, others, range(one.phase)) for one in read)
        ):
            return None
        rows = set()
        for (terms, symbols, offset), (its_terms, its_symbols, its_offset) in zip(
            made, form, strict=True
        ):
            if (terms, symbols, offset) == (its_terms, its_symbols, its_offset):
                continue
            if terms != (("row 0", 1),) or its_terms:
                return None
            names = Counter(dict(its_symbols))
            names.subtract(dict(symbols))
            rows.add((tuple(sorted(one for one in names.items() if one[1])), its_offset - offset))
        if len(rows) != 1:
            return None
        ((found, offset),) = rows
        called = {loop.source_name: loop.name for loop in self.units[0].piece.host}
        parts = (factor * Name(called.get(name, name)) for name, factor in found)
        row = reduce(operator.add, parts, Constant(offset))
        return PassedRow(phase=phase, row=row, rows=count)

    def lasts(self, row: KeptRow, step: LoopMember) -> bool:
        """Tell whether registers may have it for all steps, as the first one loads and stores it.

        A thread alone touches its elements, the same in each step.
        """
        own, form = self.accesses, self.accesses[0].form
        if form is None or any(one.form != form for one in own):
            return False
        if any(name == step.source_name for _, names, _ in form for name, _ in names):
            return False
        every = union_of(
            without_parameters(placed, unit.piece.bound).params()
            for unit in self.units
            for placed in unit.piece.placed
        )
        first = parameter_bound(coalesced(every), step.name, upper=False)
        at_first = parameter_between(step.name, first, first)

        def covers(phases: Numbers, *, writes: bool) -> bool:
            alike = [one for one in own if one.writes == writes]
            here = _all([one for one in alike if one.phase in phases])
            known = without_parameters(here.intersect_params(at_first), [step.name])
            return bool(without_parameters(_all(alike), [step.name]).is_subset(known))

        loaded = not row.loads or covers(row.loads, writes=False)
        return loaded and (not row.stores or covers(row.stores, writes=True))

    def references(self, own: Sequence[_Access]) -> tuple[Numbers, ...]:
        """Return accesses of each phase, and those of its registers, as references of kernels."""
        found = []
        for number, unit in enumerate(self.units):
            here = [one for one in own if one.phase == number]
            places = {*_places(here)}
            if any(one.place is None for one in here):
                alike = (one for one in unit.storage.registers if one.array == self.array.name)
                places.update(*(one.places for one in alike))
            found.append(references_at(self.facts[unit.kernel or ""], unit.piece, places))
        return tuple(found)


def _places(own: Sequence[_Access]) -> frozenset[Place]:
    return frozenset(one.place for one in own if one.place is not None)


def _are_apart(one: _Access, own: Sequence[_Access]) -> bool:
    return bool(one.image.is_disjoint(_all(own)))


def _all(accesses: Sequence[_Access]) -> isl.Set:
    return union_of([one.image for one in accesses])


def _read(
    own: Sequence[_Access], every: Sequence[_Access] | None = None
) -> tuple[list[_Access], Numbers]:
    """Return what is read, and phases that read all that is to be loaded of it.

    That is the first one that does, or several; what is written before, by any, is none of it.
    """
    read = [one for one in own if not one.writes]
    images = {
        at: _all([one for one in read if one.phase == at])
        for at in sorted({one.phase for one in read})
    }
    left = [o for o in read if not _is_covered(o.image, every or own, range(o.phase))]
    whole = (at for at, image in images.items() if left and _all(left).is_subset(image))
    loads = [*islice(whole, 1)]
    for one in left:
        if not loads or not one.image.is_subset(union_of(images[at] for at in loads)):
            loads.append(one.phase)
    return read, tuple(loads)


def _stores(own: Sequence[_Access]) -> Numbers:
    """Return the phases that write something which no later one overwrites."""
    end = max(one.phase for one in own) + 1
    written = (one for one in own if one.writes)
    left = (one for one in written if not _is_covered(one.image, own, range(one.phase + 1, end)))
    return tuple(sorted({one.phase for one in left}))


def _is_covered(image: isl.Set, own: Sequence[_Access], phases: range) -> bool:
    """Tell whether some phases write all elements of a set."""
    written = [one.image for one in own if one.writes and one.phase in phases]
    return bool(written) and bool(image.is_subset(union_of(written)))
