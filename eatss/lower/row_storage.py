"""What registers keep of rows from phase to phase: decided here, of phases before they are code.

The model and the generator read the same :class:`~eatss.plan.phases.RowStorage`. A register in the
place of an element of a row has at each moment what the element would have in memory: of an array
that is written all accesses are of that element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from eatss.analysis import KernelFacts
from eatss.lower.bounds import TooManyCasesError, tile_range, union_of
from eatss.lower.planning import Unit
from eatss.lower.schedule.mapping import MappedLoop
from eatss.lower.schedule.pieces import Piece
from eatss.lower.storage import Place
from eatss.lower.structures import references_at
from eatss.plan.phases import KeptRow, RowStorage, RowValue
from eatss.polyhedral import Reference
from eatss.polyhedral.isl_names import coalesced, without_parameters
from eatss.polyhedral.scop import Scop
from eatss.program import Constant

_LANE = "lane"
"""What the loop whose iterations the lanes of a row share is called in every phase."""

_Form = tuple[tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...], int], ...]
"""Subscripts by what loops are to all phases, by symbols, and constants."""


@dataclass(frozen=True, slots=True)
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
    along_x = [loop for loop in unit.mapping.spread if loop.axis == "x"]
    return along_x[-1] if along_x else None


def span_of(piece: Piece, loop: MappedLoop) -> tuple[int, int] | None:
    """Return the first and the last element of a row that a piece touches, if these are numbers."""
    bound = [one.name for one in piece.band]
    others = [name for name in bound if name != loop.name]
    launch = union_of([without_parameters(one, bound).params() for one in piece.placed])
    values = union_of([without_parameters(one, others).params() for one in piece.placed])
    try:
        found = tile_range(coalesced(values), replace(loop, tile=1), coalesced(launch))
    except TooManyCasesError:
        return None
    if not isinstance(found.first, Constant) or not isinstance(found.last, Constant):
        return None
    return found.first.value, found.last.value


def row_storage(
    scop: Scop, units: Sequence[Unit], depth: int, facts: Sequence[KernelFacts]
) -> RowStorage:
    """Return what registers may have of rows while blocks go through phases.

    Args:
        scop: the region.
        units: of the phases.
        depth: how many outer loops are over rows.
        facts: the kernels of the units.
    """
    accesses: dict[str, list[_Access]] = {}
    for number, unit in enumerate(units):
        for array, access in _accesses(number, unit, depth, scop):
            accesses.setdefault(array, []).append(access)
    kernels = {one.name: one for one in facts}
    kept, values = [], []
    for array, own in accesses.items():
        value = _value(array, own)
        if value is not None:
            values.append(value)
        elif (row := _kept(scop, array, own, units, kernels)) is not None:
            kept.append(row)
    return RowStorage(kept=tuple(kept), values=tuple(values))


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
    homes = {place for own in storage.registers for place in own.places}
    homes |= {place for own in storage.scalars for place in own.places}
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
    statement, number = place
    access = piece.statement(statement).accesses[number]
    own: list[Reference] = [
        one
        for one in piece.kernel.references
        if one.array == access.array and statement in one.statements
    ]
    spelled = [one for one in own if one.text == access.text] or own
    if len(spelled) != 1:
        return None
    (reference,) = spelled
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


def _value(array: str, own: Sequence[_Access]) -> RowValue | None:
    """Return an array of which all lanes of a row can have the element of the row.

    Each has to be written before it is read, and used in another phase than it is written in.
    """
    if len({one.form for one in own}) > 1 or own[0].form is None or own[0].is_of_a_lane:
        return None
    if len({one.phase for one in own}) < 2:
        return None
    written = all(one.writes or _is_covered(one.image, own, before=one.phase) for one in own)
    if not written or not any(one.writes for one in own):
        return None
    return RowValue(array=array, stores=_stores(own))


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
    own = [one for one in accesses if one.form == form]
    if form is None or (any(one.writes for one in accesses) and len(own) < len(accesses)):
        return None
    phases = sorted({one.phase for one in own})
    read = [one for one in own if not one.writes]
    spans = [_span(units[at]) for at in phases]
    if None in spans or not any(one.phase > phases[0] for one in read):
        return None
    begins, ends = zip(*(one for one in spans if one is not None), strict=True)
    uncovered = [one.image for one in read if not _is_covered(one.image, own, before=one.phase)]
    load_in = _loading(union_of(uncovered), read) if uncovered else None
    if uncovered and load_in is None:
        return None
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
        load_in=load_in,
        stores=_stores(own),
        places=places,
        references=tuple(
            references_at(facts[unit.kernel or ""], unit.piece, here | _held(unit, array))
            for unit, here in zip(units, places, strict=True)
        ),
    )


def _span(unit: Unit) -> tuple[int, int] | None:
    loop = lane_loop(unit)
    return None if loop is None else span_of(unit.piece, loop)


def _held(unit: Unit, array: str) -> set[Place]:
    return {place for own in unit.storage.registers if own.array == array for place in own.places}


def _loading(needed: isl.Set, read: Sequence[_Access]) -> int | None:
    """Return the first phase that reads all of some elements."""
    images: dict[int, list[isl.Set]] = {}
    for one in read:
        images.setdefault(one.phase, []).append(one.image)
    return next((at for at, own in images.items() if needed.is_subset(union_of(own))), None)


def _stores(own: Sequence[_Access]) -> tuple[int, ...]:
    """Return the phases that write something which no later one overwrites."""
    left = (one for one in own if one.writes and not _is_covered(one.image, own, behind=one.phase))
    return tuple(sorted({one.phase for one in left}))


def _is_covered(
    image: isl.Set,
    own: Sequence[_Access],
    *,
    before: int | None = None,
    behind: int | None = None,
) -> bool:
    """Tell whether phases before one, or behind one, write all elements of a set."""
    written = [
        one.image
        for one in own
        if one.writes
        and (before is None or one.phase < before)
        and (behind is None or one.phase > behind)
    ]
    return bool(written) and bool(image.is_subset(union_of(written)))
