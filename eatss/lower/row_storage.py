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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import compress

import islpy as isl

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import FusedRows
from eatss.base.frozen import Names, Numbers, fixed, frozen
from eatss.base.quotients import FORMATS
from eatss.base.targets import CUDA, Axis
from eatss.lower.arrays import union_of
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
    every,
    every_of,
    inside,
    mapped,
    mapped_of,
    own_names,
    trips_from_zero,
    with_bodies,
    with_elements,
    written,
)
from eatss.lower.mapping import MappedLoop
from eatss.lower.pieces import LoopMember, NameTable, Piece
from eatss.lower.planning import Unit
from eatss.lower.products import references_at
from eatss.lower.units import numbered_rows
from eatss.plan.phases import SEVERAL, KeptRow, PassedRow, RowStorage, RowValue, slots_of
from eatss.polyhedral.expression import divisors
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
from eatss.program import Constant, IntExpr, Name, equals, names_in
from eatss.program.linear import Coefficients, as_sum


@frozen
class LoweredPhase:
    """The nodes of a phase, and the unit that they come from."""

    unit: Unit
    nodes: Nodes

    @property
    def lane_loop(self) -> MappedLoop | None:
        """The loop whose points go to the threads of a row."""
        return lane_loop(self.unit)


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
    own = [_Value(one, array, _home(array, f"{array.name}_v", (), names)) for one, array in values]
    first = equals(Name(f"{CUDA.thread}{axis}"), 0)
    changed = []
    for number, phase in enumerate(phases):
        leaf = partial(_leaf, own, number, first)
        nodes = phase.nodes
        if phase.unit.mapping.split is not None and phase.lane_loop is not None:
            nodes = mapped(nodes, _combined(phase.lane_loop, leaf(alone=True)))
        nodes = mapped(nodes, leaf(alone=phase.lane_loop is None))
        changed.append(replace(phase, nodes=nodes))
    arrays = dict.fromkeys(one.array.name for one in own)
    notes = (f"{one}: a value of a row in a register of each of its threads" for one in arrays)
    loads = [
        Scope(body=mapped(phases[at].nodes, one.loaded), phase=f"load {one.array.name}")
        for one in own
        for at in one.value.loads
    ]
    declared = (Declare(buffer=one.home) for one in own)
    return (*declared, *loads), tuple(changed), tuple(notes)


@fixed
class _Value:
    """A value of a row, its array, and the register that lanes have of it."""

    value: RowValue
    array: Buffer
    home: Buffer

    def elements(self, node: Node) -> Iterator[Element]:
        """Yield the elements of a node that it is."""
        if isinstance(node, Compute):
            yield from compress(_elements(node), self._here(node))
        elif self.value.transfers:
            yield from (one for own in accesses(node) for one in own if one.buffer == self.array)

    def loaded(self, node: Node) -> Nodes:
        """Return the load in the place of a node that reads the value."""
        if not isinstance(node, Compute):
            return _around_loads(node)
        read = [*compress(_elements(node)[1:], self._here(node)[1:])]
        return tuple(Copy(target=self.home.at(), source=one) for one in read[:1])

    def _here(self, node: Compute) -> list[bool]:
        name = node.statement.name
        return [(name, at) in self.value.places for at, _ in enumerate(_elements(node))]


def _home(array: Buffer, name: str, extents: Numbers, names: NameTable) -> Buffer:
    return Buffer.of("register", names.fresh(name), array.element_type, *extents)


def _combined(loop: MappedLoop, alone: Callable[[Node], Nodes]) -> Callable[[Node], Nodes]:
    """Return the change of what the first lane does with what the lanes add up."""
    first = (equals(Name(loop.thread), 0),)

    def changed(node: Node) -> Nodes:
        if isinstance(node, If) and not node.orelse and node.conditions == first:
            return mapped(node.body, alone)
        return (node,)

    return changed


def _leaf(
    values: Sequence[_Value], number: int, first: IntExpr, *, alone: bool
) -> Callable[[Node], Nodes]:
    """Return the change of nodes of a phase to registers of rows, with what is stored of them.

    What is ``alone`` only the ``first`` lane is to do, but for its registers.
    """
    homes = {one.home for one in values}

    def changed(node: Node) -> Nodes:
        written, read = accesses(node)
        if not written or any(one.buffer in homes for one in read):
            return (node,)  # what is stored of registers is there already
        own = {one: value for value in values for one in value.elements(node)}
        there = {one: value.home.at() for one, value in own.items()}
        kept = [one for one in written if one in own]
        found = with_elements((node,), lambda one: there.get(one, one))
        if alone and len(kept) < len(written):
            found = (If(conditions=(first,), body=found),)
        stores = tuple(
            Copy(target=one, source=there[one]) for one in kept if number in own[one].value.stores
        )
        return (*found, If(conditions=(first,), body=stores)) if stores else found

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
    nodes = [phase.nodes for phase in phases]
    lasting, front, behind = list[Node](), list[Node](), list[Node]()
    ahead = [list[Node]() for _ in phases]
    slots, beside = int(slots_of(block.tile, block.lanes)), int(block.rows)
    own_lane = Name(f"{CUDA.thread}{block.axes[1]}")
    several = f"{slots} elements" if slots > 1 else "an element"
    for row, array in kept:
        home = _home(array, f"{array.name}_k", (slots,) if slots > 1 else (), names)
        rows = [
            _Row(row, array, home, number, phase.lane_loop) for number, phase in enumerate(phases)
        ]
        own = lasting if row.lasting else front
        own.append(Declare(buffer=home))
        for at in row.loads:
            loads = mapped(phases[at].nodes, rows[at].loaded)
            own.append(Scope(body=loads, phase=f"load {array.name}"))
        if row.passed is not None:
            counters = [names.fresh("place")][: len(home.layout.extents)]
            element = home.at(*map(Name, counters))
            source = as_sum(row.passed.row + beside * (own_lane % (CUDA.lanes // beside)))
            passing = Intrinsic.of(FROM_LANE, element, element, source=source)
            ahead[row.passed.phase].append(over_places(home, counters, passing))
        for at in row.stores if row.lasting else ():
            stores = mapped(phases[at].nodes, rows[at].stored)
            behind.append(Scope(body=stores, phase=f"store {array.name}"))
        nodes = [mapped(own, one.changed) for own, one in zip(nodes, rows, strict=True)]
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


def _with_reciprocals(nodes: Nodes, names: NameTable) -> Nodes:
    """Return nodes in which quotients of several points by one register have its reciprocal.

    Those that are not exact so are divisions.
    """

    def changed(node: Node) -> Nodes:
        computes = [*every_of((node,), Compute)]
        if not isinstance(node, For) or len(computes) > 1 or (trips_from_zero(node) or 0) < SEVERAL:
            return (with_bodies(node, partial(_with_reciprocals, names=names)),)
        own, made = {name for one in every((node,)) for name in own_names(one)}, written((node,))
        front, inverses = list[Node](), list[tuple[int, Element]]()
        for number, source in (
            (number, one.reads[number])
            for one in computes
            for number in divisors(one.statement.value)
        ):
            kind, moves = source.buffer.element_type, own & {*names_in(*source.subscripts)}
            known = source.buffer.space == "register" and source.buffer not in made
            if moves or not known or kind.value not in FORMATS:
                continue
            inverse = Buffer.of("register", names.fresh("inverse"), kind).at()
            inverses.append((number, inverse))
            front.append(Declare(buffer=inverse.buffer))
            front.append(Reciprocal(target=inverse, source=source, flag=""))
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


@fixed
class _Row:
    """An array of which one phase has elements of rows in the registers ``home``."""

    row: KeptRow
    array: Buffer
    home: Buffer
    number: int
    loop: MappedLoop | None

    def loaded(self, node: Node) -> Nodes:
        """Return the loads in the place of a node that reads elements, and the loops of them."""
        match node:
            case Compute() | Copy():
                own = zip(_elements(node)[1:], self._homes(node)[1:], strict=True)
                load = Copy(target=node.target, source=node.target)
                load = node if isinstance(node, Copy) else load
                read = [one for one, there in own if there][:1]
                return tuple(replace(load, target=self._register(), source=one) for one in read)
        return _around_loads(node)

    def stored(self, node: Node) -> Nodes:
        """Return the stores in the place of a node that writes elements, and the loops of them."""
        if isinstance(node, Compute | Copy):
            own = self._homes(node)[0]
            return (Copy(target=node.target, source=self._register()),) if own else ()
        return _around_loads(node)

    def changed(self, node: Node) -> Nodes:
        """Return a node with registers, and what is stored of them."""
        if isinstance(node, For) and self.loop is not None and node.counter == self.loop.point:
            return (replace(node, unroll="whole"),)
        if not isinstance(node, Compute | Copy):
            return (node,)
        own = self._homes(node)
        target, *reads = (
            self._register() if there else one
            for one, there in zip(_elements(node), own, strict=True)
        )
        found: Node
        match node:
            case Copy():
                found = replace(node, target=target, source=reads[0])
            case Compute():
                found = replace(node, target=target, reads=(target, *reads))
        stored = own[0] and self.number in self.row.stores and not self.row.lasting
        return (found, Copy(target=node.target, source=target)) if stored else (found,)

    def _homes(self, node: Compute | Copy) -> list[bool]:
        """Tell which elements of a node are in registers: its target, and what it reads."""
        there = [one.buffer == self.array for one in _elements(node)]
        if isinstance(node, Copy):
            return there
        places = self.row.places[self.number]
        name = node.statement.name
        return [own and (name, at) in places for at, own in enumerate(there)]

    def _register(self) -> Element:
        assert self.loop is not None
        return self.home.at(*map(Name, (self.loop.point,) * len(self.home.layout.extents)))


def _around_loads(node: Node) -> Nodes:
    """Return what is around loads: loops and tests in which there are some, names of values."""
    match node:
        case For() | If() if all(isinstance(one, Let) for body in inside(node) for one in body):
            return ()
        case For():
            return (replace(node, unroll="whole"),)
        case If() | Let() | Scope():
            return (node,)
    return ()


def _elements(node: Compute | Copy) -> tuple[Element, ...]:
    """Return the target of a node and what it reads, in the order of the accesses."""
    if isinstance(node, Copy):
        return node.target, node.source
    return node.target, *node.reads[1:]


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


def lane_loop(unit: Unit) -> MappedLoop | None:
    """Return the loop whose points go to the threads of a row."""
    inside = [loop for loop in unit.mapping.spread if loop.grid is None]
    return inside[-1] if inside else None


def span_of(unit: Unit) -> tuple[int, int] | None:
    """Return the first and the last element of a row that a unit touches, if these are numbers."""
    loop = lane_loop(unit)
    if loop is None:
        return None
    values = _along(unit, loop)
    first, last = (
        constant_value(parameter_bound(values, loop.name, upper=upper).coalesce())
        for upper in (False, True)
    )
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
        loop = lane_loop(unit)
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
    for array, own in accesses.items():
        row = _kept(scop, array, own, units, kernels)
        if row is not None and step is not None and _lasts(own, row, units, step):
            row = replace(row, lasting=True)
        if row is None:
            values += _values(array, own, units, kernels)
        else:
            kept.append(row)
    alone = [at for at, unit in enumerate(units) if lane_loop(unit) is None]
    here = [(a, one) for a, own in accesses.items() for one in own if one.phase in alone]
    homes = {place for at in alone for place in _homes(units[at])}
    kept.sort(key=lambda one: not one.lasting)  # what is not would be loaded in each step
    return RowStorage(kept=tuple(kept), values=tuple(_for_all_lanes(values, here, homes)))


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
    lanes = lane_loop(unit)
    if lanes is not None:
        names[lanes.source_name] = _LANE
    storage, piece, split = unit.storage, unit.piece, unit.mapping.split is not None
    if not split:
        yield from _transfers(number, unit, names, writes=False)
    for scalar in storage.scalars:
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
        forms = [_form(unit.piece, place, names) for place in sorted(held.places)]
        form = next((one for one in forms if one is not None), None)
        if not points.is_empty():
            yield held.array, _Access(number, form, writes, points.apply(held.relation))


def _form(piece: Piece, place: Place, names: Mapping[str, str]) -> _Form | None:
    """Return the subscripts of an access by other names of loops, ``None`` where it has others."""
    reference = next((one for one in piece.kernel.references if place in one.places), None)
    if reference is None:
        return None
    if not reference.loops <= set(names) or not all(one.affine for one in reference.subscripts):
        return None
    return tuple(
        (
            tuple(sorted((names[name], factor) for name, factor in one.coefficients)),
            one.symbols,
            one.offset,
        )
        for one in reference.subscripts
    )


def _values(
    array: str,
    accesses: Sequence[_Access],
    units: Sequence[Unit],
    facts: Mapping[str, KernelFacts],
) -> Iterator[RowValue]:
    """Yield elements of an array of which all lanes of a row can have that of the row.

    Each has to be used in another phase than it is written in, and none that other accesses touch.
    What is not written before it is read is loaded where statements read it, outside loops.
    """
    transferred = {one.form for one in accesses if one.place is None}
    if len(transferred) > 1:
        return
    for form in dict.fromkeys(o.form for o in accesses if o.form and not o.is_of_a_lane):
        own = [one for one in accesses if one.form == form]
        read = [one for one in own if not one.writes]
        before = [one for one in read if not _is_covered(one.image, own, range(one.phase))]
        loads = _loads(before, read)
        if (
            len({one.phase for one in own}) > 1
            and len(read) < len(own)
            and all(one.place is not None for one in own if one.phase in loads)
            and all(lane_loop(units[at]) is None for at in loads)
            and all(one.form == form or one.image.is_disjoint(_all(own)) for one in accesses)
        ):
            yield RowValue(
                array=array,
                loads=loads,
                stores=_stores(own),
                transfers=form in transferred,
                places=frozenset(one.place for one in own if one.place is not None),
                references=_references(array, own, units, facts),
            )


def _kept(
    scop: Scop,
    array: str,
    accesses: Sequence[_Access],
    units: Sequence[Unit],
    facts: Mapping[str, KernelFacts],
) -> KeptRow | None:
    """Return how an array may be kept, ``None`` if it may not, or if that saves nothing."""
    forms = [one.form for one in accesses if one.is_of_a_lane]
    form = max(dict.fromkeys(forms), key=forms.count, default=None)
    if form is None:
        return None
    own = [one for one in accesses if one.form == form]
    others = [
        one
        for one in accesses
        if one.form != form and (one.place is None or not one.image.is_disjoint(_all(own)))
    ]  # or transfers
    begun = min((one.phase for one in (*own, *others) if one.writes), default=len(units))
    phases = sorted({one.phase for one in own})
    read = [one for one in own if not one.writes]
    passed = None
    if any(one.phase >= begun for one in others):  # memory has no more what others read
        passed = _passed(form, own, others, units)
        if passed is None:
            return None
        own = [*own, *others]
        phases = sorted({one.phase for one in own})
    spans = [span_of(units[at]) for at in phases]
    if not any(one.phase > phases[0] for one in read):
        return None
    known = [one for one in spans if one is not None]
    begins, ends = zip(*known, strict=True) if len(known) == len(spans) else ((None,), (None,))
    uncovered = [one for one in read if not _is_covered(one.image, own, range(one.phase))]
    places = tuple(
        frozenset(one.place for one in own if one.phase == at and one.place is not None)
        for at in range(len(units))
    )
    widths = {a.name: a.element_bytes for one in facts.values() for a in one.work.arrays}
    return KeptRow(
        array=array,
        element_bytes=widths.get(array, scop.array(array).element_type.size_bytes),
        begin=min(begins),
        end=max(ends),
        first=phases[0],
        last=max(one.phase for one in read),
        loads=_loads(uncovered, read),
        stores=_stores(own),
        places=places,
        references=_references(array, own, units, facts),
        passed=passed,
    )


def _passed(
    form: _Form, read: Sequence[_Access], others: Sequence[_Access], units: Sequence[Unit]
) -> PassedRow | None:
    """Return which row of a block has written, before, all that accesses of any row read."""
    phase, made = min(one.phase for one in read), others[0].form
    count = numbered_rows([one.piece for one in units])
    if (
        count is None
        or made is None
        or any(one.form != made or one.place is None or one.phase >= phase for one in others)
        or any(one.writes for one in read)
        or not all(_is_covered(one.image, others, range(one.phase)) for one in read)
    ):
        return None
    apart = [(one, its) for one, its in zip(made, form, strict=True) if one != its]
    rows = set()
    for (terms, symbols, offset), (its_terms, its_symbols, its_offset) in apart:
        if terms != (("row 0", 1),) or its_terms:
            return None
        known, more = dict(symbols), dict(its_symbols)
        names = {name: more.get(name, 0) - known.get(name, 0) for name in {**known, **more}}
        rows.add((tuple(sorted(one for one in names.items() if one[1])), its_offset - offset))
    if len(rows) != 1:
        return None
    ((found, offset),) = rows
    called = {loop.source_name: loop.name for loop in units[0].piece.host}
    parts = (factor * Name(called.get(name, name)) for name, factor in found)
    return PassedRow(phase=phase, row=reduce(operator.add, parts, Constant(offset)), rows=count)


def _lasts(own: Sequence[_Access], row: KeptRow, units: Sequence[Unit], step: LoopMember) -> bool:
    """Tell whether registers may have an array for all steps, as the first one loads and stores it.

    A thread alone touches its elements, the same in each step.
    """
    form = own[0].form
    if form is None or any(one.form != form for one in own):
        return False
    if any(name == step.source_name for _, names, _ in form for name, _ in names):
        return False
    placed = ((one, own) for unit in units for one in (unit.piece,) for own in one.placed)
    every = union_of([without_parameters(own, one.bound).params() for one, own in placed])
    first = parameter_bound(coalesced(every), step.name, upper=False)
    at_first = parameter_between(step.name, first, first)

    def covers(phases: Numbers, *, writes: bool) -> bool:
        alike = [one for one in own if one.writes == writes]
        here = union_of([one.image for one in alike if one.phase in phases])
        known = without_parameters(here.intersect_params(at_first), [step.name])
        return bool(without_parameters(_all(alike), [step.name]).is_subset(known))

    loaded = not row.loads or covers(row.loads, writes=False)
    return loaded and (not row.stores or covers(row.stores, writes=True))


def _references(
    array: str, own: Sequence[_Access], units: Sequence[Unit], facts: Mapping[str, KernelFacts]
) -> tuple[Numbers, ...]:
    """Return the accesses of each phase, and those of its registers, as references of kernels."""
    found = []
    for number, unit in enumerate(units):
        here = [one for one in own if one.phase == number]
        places = {one.place for one in here if one.place is not None}
        if any(one.place is None for one in here):
            places |= _held(unit, array)
        found.append(references_at(facts[unit.kernel or ""], unit.piece, places))
    return tuple(found)


def _all(accesses: Sequence[_Access]) -> isl.Set:
    return union_of([one.image for one in accesses])


def _held(unit: Unit, array: str) -> set[Place]:
    return {place for own in unit.storage.registers if own.array == array for place in own.places}


def _loads(uncovered: Sequence[_Access], read: Sequence[_Access]) -> Numbers:
    """Return phases that read all that is to be loaded: the first one that does, or several."""
    images: dict[int, isl.Set] = {}
    for one in read:
        images[one.phase] = union_of([one.image, *(own for own in [images.get(one.phase)] if own)])
    left = union_of([one.image for one in uncovered]) if uncovered else None
    alone = next((at for at, own in images.items() if left and left.is_subset(own)), None)
    loads = [] if alone is None else [alone]
    for one in uncovered:
        if not loads or not one.image.is_subset(union_of([images[at] for at in loads])):
            loads.append(one.phase)
    return tuple(loads)


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
