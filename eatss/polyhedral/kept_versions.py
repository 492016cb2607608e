"""Elements that steps overwrite are kept as they are in front of each step, and behind it.

``for (k …) for (i …) for (j …) A[i][j] = f(A[i][j], A[i][k], A[k][j]);`` writes row and column
``k``, which all of step ``k`` reads, and later steps write them again. So no step waits for others
with what has a copy of them as they were:

    for (k …) {
        for (i …) before[k][i] = A[i][k];                 the same of row k
        for (i …) for (j …) A[i][j] = f(A[i][j], A[i][k], A[k][j]);
        for (i …) behind[k][i] = A[i][k];
    }

An instance reads the copy behind its step where that step wrote the element first, the one before
it elsewhere. Nothing is assumed of ``f``, nor of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from operator import eq
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import Names, Numbers, fixed, frozen_part
from eatss.base.memo import remembered
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import first_equal, spelled, with_accesses
from eatss.polyhedral.expression import Read
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    coalesced,
    constant_value,
    counter_of,
    equal_leading_dims,
    map_between,
    output_affs,
    sets_of,
    with_names,
)
from eatss.polyhedral.parts import local_array
from eatss.polyhedral.recomputed_producers import Flow, flow_to_reads
from eatss.polyhedral.scop import Access, AccessKind, Scop, Statement
from eatss.polyhedral.split_sets import check_partition, piece_on

_INNER = 2
"""The dimension of time that is the textual position in the outermost loop."""

_Copy: TypeAlias = tuple[Statement, isl.Map]
"""A statement that copies elements, and which instance of it readers need."""


@fixed
class _Kept:
    """A read by number, those instances that read what their step has written, and copies of it.

    The first one is made in front of steps, the other behind them.
    """

    number: int
    fresh: isl.Set
    copies: tuple[_Copy, _Copy]

    def copy_for(self, readers: isl.Set) -> _Copy | None:
        """Return the copy that has what all readers need, ``None`` where some need the other."""
        if readers.is_disjoint(self.fresh):
            return self.copies[0]
        return self.copies[1] if readers.is_subset(self.fresh) else None


@frozen_part
class Versions:
    """A region of one statement, ``source``, with copies of what its reads get."""

    scop: Scop
    source: Statement
    kept: tuple[_Kept, ...]

    @property
    def arrays(self) -> Names:
        """The arrays of copies, whose first dimension is the step."""
        return tuple(copy.write.array for one in self.kept for copy, _ in one.copies)

    @cached_property
    def with_all_reads(self) -> Scop:
        """The region, reading what it reads and all copies of it."""
        reads = tuple(
            spelled(self.source.accesses[one.number], onto.apply_range(copy.write.relation))
            for one in self.kept
            for copy, onto in one.copies
        )
        source = replace(self.source, accesses=self.source.accesses + reads)
        statements = (source if one is self.source else one for one in self.scop.statements)
        return replace(self.scop, statements=tuple(statements))

    def parts(self, piece: Statement, runs: isl.Map, taken: set[str]) -> list[Statement]:
        """Return a piece in parts whose reads are of copies, of all reads but one at least.

        ``runs`` tells what instances of the source it runs, or of copies.

        Raises:
            InternalError: ``EATSS-P901``, the parts are not the piece.
        """
        if runs.get_tuple_name(OUT) != self.source.name:
            return [piece]
        found, mixed = [runs], [one for one in self.kept if one.copy_for(runs.range()) is None]
        for one in mixed[:-1]:
            sides = one.fresh.complement(), one.fresh
            found = [part.intersect_range(side) for part in found for side in sides]
        found = [coalesced(part) for part in found if not part.is_empty()]
        check_partition(piece, [part.domain() for part in found])
        return [
            self._read_by(piece_on(piece, part.domain(), name), part.set_tuple_name(IN, name))
            for part in found
            for name in (free_name(piece.name, taken) if len(found) > 1 else piece.name,)
        ]

    def _read_by(self, piece: Statement, runs: isl.Map) -> Statement:
        """Return a piece whose reads are of copies where one has all that it needs."""
        for one in self.kept:
            found = one.copy_for(runs.range())
            if found is not None:
                copy, onto = found
                relation = runs.apply_range(onto).apply_range(copy.write.relation)
                own = [(piece.name, one.number)]
                piece = with_accesses(piece, own, partial(spelled, relation=relation))
        return piece


@remembered
def with_versions(scop: Scop) -> Versions | None:
    """Return a region with copies of what steps overwrite, ``None`` where nothing needs any.

    Steps are those of the outermost loop. ``None``, too, unless copies are proven to have the
    values that are read.
    """
    if len(scop.statements) != 1 or len(scop.statements[0].loops) < 2:
        return None
    (source,) = scop.statements
    written = moving_loops(source.write.relation)
    counters = map(counter_of, output_affs(source.schedule)[1::2])
    in_order = all(map(eq, source.loops, counters))  # up, the outermost one first
    in_order &= all(source.domain.dim_min_val(at).is_nonneg() for at in range(len(source.loops)))
    if written != tuple(range(1, len(source.loops))) or not in_order:
        return None
    flow, taken = flow_to_reads(scop), scop.names
    kept = list[_Kept]()
    for number in sorted({*first_equal(source.accesses)}):
        read = source.accesses[number]
        loops = moving_loops(read.relation)
        if read.is_write or read.array != source.write.array:
            continue
        in_step = equal_leading_dims(flow[source.name, number], 1).range()
        fresh = reduce(isl.Set.union, sets_of(in_step), source.domain.subtract(source.domain))
        if 0 in loops and 1 < len(loops) < len(source.loops) and not fresh.is_empty():
            first, then = (_copying(source, read, loops, place, taken) for place in (-1, 1))
            kept.append(_Kept(number, fresh, (first, then)))
    if not kept:
        return None
    early, late = ([one.copies[at][0] for one in kept] for at in (0, 1))
    kind = scop.types[source.write.array]
    arrays = [local_array(one.write, kind) for one in (*early, *late)]
    whole = replace(scop, arrays=(*scop.arrays, *arrays), statements=(*early, source, *late))
    if not _have_values(source, kept, flow, flow_to_reads(whole)):
        return None
    return Versions(scop=whole, source=source, kept=tuple(kept))


def moving_loops(relation: isl.Map) -> Numbers:
    """Return the loops that subscripts move along, by number."""
    functions = output_affs(relation)
    return tuple(
        at
        for at in range(relation.dim(IN))
        if any(one.involves_dims(IN, at, 1) for one in functions)
    )


def _copying(source: Statement, read: Access, loops: Numbers, place: int, taken: set[str]) -> _Copy:
    """Return what copies all elements that a read reaches in a step, which writes them.

    It runs in front of the step or, by ``place``, behind the instance that writes the element.
    """
    when = "before" if place < 0 else "behind"
    name, array = (free_name(f"{one}_{when}", taken) for one in (source.name, read.array))
    names = tuple(source.loops[at] for at in loops)
    onto = map_between(source.domain, (source.name, source.loops), (name, names))
    onto = with_names(onto.intersect_domain(source.domain), OUT, names)
    reads = onto.reverse().apply_range(read.relation)
    writers = reads.apply_range(source.write.relation.reverse()).equate(IN, 0, OUT, 0)
    onto, domain = onto.intersect_range(writers.domain()), coalesced(writers.domain())
    write = spelled(read, domain.identity().set_tuple_name(OUT, array))
    value = spelled(read, reads.intersect_domain(domain))
    time = writers.apply_range(source.schedule)
    at = _INNER if place < 0 else time.dim(OUT) - 1
    then = isl.Val((constant_value(output_affs(source.schedule)[at]) or 0) + place, time.get_ctx())
    statement = Statement(
        name=name,
        loops=names,
        domain=domain,
        schedule=time.eliminate(OUT, at, 1).fix_val(OUT, at, then),
        accesses=(replace(write, kind=AccessKind.WRITE), value),
        value=Read(1),
        text=f"{write.text} = {value.text};",
        span=source.span,
    )
    return statement, onto


def _have_values(source: Statement, kept: Sequence[_Kept], before: Flow, after: Flow) -> bool:
    """Tell whether copies have what reads get of the source, by where values come from."""
    for one in kept:
        expected = before[source.name, one.number]
        for (copy, onto), here in zip(
            one.copies, (source.domain.subtract(one.fresh), one.fresh), strict=True
        ):
            found = after[copy.name, 1].apply_range(onto.reverse().to_union_map())
            readers = here.to_union_set()
            if not here.is_subset(onto.domain()):
                return False
            if not found.intersect_range(readers).is_equal(expected.intersect_range(readers)):
                return False
    return True
