"""Arrays that each iteration of outer loops overwrites: each gets elements of its own.

    for (r …) for (q …) {
        for (p …) { sum[p] = 0; for (s …) sum[p] += A[r][q][s] * C[s][p]; }
        for (p …) A[r][q][p] = sum[p];
    }

No value of ``sum`` leaves its iteration of ``r`` and ``q``, so it may be ``sum_1[r][q][p]``, known
as array expansion [Feautrier, 1988] or, of arrays that nobody sees afterwards, privatisation. Then
iterations need nothing of each other. The last value of each element is copied behind all else:

    for (r, q: the last ones) for (p …) sum[p] = sum_1[r][q][p];

Elements are added for the loops that are freed by it only: not for one along which values come
from the iteration before by other arrays, as steps of time do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import islpy as isl

from eatss.base.frozen import Numbers, their_names
from eatss.polyhedral.class_tiles import counter
from eatss.polyhedral.copied_operands import copying
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    coalesced,
    constant_value,
    equal_leading_dims,
    maps_of,
    output_affs,
    sets_of,
    universes,
)
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.parts import still_loops
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scalars import LiveRange, counts_up_from_zero, live_ranges, with_elements
from eatss.polyhedral.scop import Scop, Statement
from eatss.polyhedral.split_sets import writes_in_order, written_by


def with_private_arrays(scop: Scop, outer: int = 0) -> Scop:
    """Return a region in which arrays have elements for each iteration that overwrites them.

    Not for those of the ``outer`` loops around. The region itself where that frees no loop, or is
    not proven to leave the same values.
    """
    arrays = [one for one in scop.arrays if one.n_dims and _is_overwritten(scop, one)]
    if not arrays:
        return scop
    found = live_ranges(scop, arrays)
    ranges = [(one, loops) for one in found if (loops := _own_loops(scop, one, outer))]
    if not ranges:
        return scop
    changed, names = with_elements(scop, ranges)
    for name, (values, _) in zip(names, ranges, strict=True):
        if not scop.is_dead_after(values.array):
            copied = _with_last_values(scop, changed, values, changed.array(name))
            if copied is None:
                return scop
            changed = copied
    return replace(changed, written=scop.written or scop) if is_same(scop, changed) else scop


def _is_overwritten(scop: Scop, array: Array) -> bool:
    """Tell whether statements begin anew with elements of an array in iterations of a loop."""
    own = (one for one in scop.statements if one.write.array == array.name)
    return any(still_loops(one) and not _adds_up(scop, one) for one in own)


def _own_loops(scop: Scop, values: LiveRange, outer: int) -> Numbers:
    """Return the loops for whose iterations an array gets elements, by number."""
    return tuple(
        loop
        for loop in range(outer, values.depth)
        if counts_up_from_zero(scop, values, loop)
        and not _is_told(scop, values, loop)
        and _in_turn(scop, loop).isdisjoint(name for name, _ in values.places)
    )


def _is_told(scop: Scop, values: LiveRange, loop: int) -> bool:
    """Tell whether each element is used in one iteration of a loop only."""
    used = (
        scop.access((name, at))
        .relation.reverse()
        .apply_range(isl.Map.from_pw_aff(counter(scop.statement(name), loop)))
        for name, at in values.places
    )
    return bool(reduce(isl.Map.union, used).is_single_valued())


def _in_turn(scop: Scop, loop: int) -> set[str]:
    """Return the statements that need, maybe through others, what they make in an iteration before.

    Iterations of the loops around that one are the same. Sums need not: their order is free.
    """
    import networkx as nx  # type: ignore[import-untyped]  # noqa: PLC0415 - sizes alone need none

    reach, carried = set[tuple[str, str]](), set[tuple[str, str]]()
    inside = {one.name: one for one in scop.statements if len(one.loops) > loop}
    for relation in (one for each in flow_to_reads(scop).values() for one in maps_of(each)):
        ends = first, last = relation.get_tuple_name(IN), relation.get_tuple_name(OUT)
        if not (first in inside and last in inside):
            continue
        here = equal_leading_dims(relation.to_union_map(), loop)
        if here.is_empty() or (first == last and _adds_up(scop, inside[first])):
            continue
        reach.add(ends)
        if not here.is_subset(equal_leading_dims(here, loop + 1)):
            carried.add(ends)
    tied = nx.strongly_connected_components(nx.DiGraph([*reach]))
    return {name for one in tied if any(one.issuperset(ends) for ends in carried) for name in one}


def _adds_up(scop: Scop, statement: Statement) -> bool:
    return update_of(statement, scop.array(statement.write.array).element_type) is not None


# -- last values -------------------------------------------------------------------------------


def _with_last_values(scop: Scop, changed: Scop, values: LiveRange, own: Array) -> Scop | None:
    """Return a region that copies what was written last to where it was, ``None`` if it cannot."""
    ends = last_writes(scop).domain()
    writes = [changed.access(place).relation for place in values.places if not place[1]]
    found = reduce(isl.UnionMap.union, map(isl.Map.to_union_map, writes)).intersect_domain(ends)
    if found.is_empty():
        return changed
    (points,) = map(coalesced, sets_of(found.range()))
    if 2 * points.dim(SET) >= scop.statements[0].schedule.dim(OUT):
        return None
    starts = (constant_value(output_affs(one.schedule)[0]) for one in changed.statements)
    last = max(one or 0 for one in starts)
    copy = copying(changed, own, values.array, points, scop.span, last + 1, changed.names)
    return replace(changed, statements=(*changed.statements, copy))


def last_writes(scop: Scop) -> isl.UnionMap:
    """Return which instances write elements that no later one does."""
    return written_by(scop).subtract_domain(writes_in_order(scop).domain())


def is_same(before: Scop, after: Scop) -> bool:
    """Tell whether all reads get the values that they got, and what is seen afterwards is left.

    Statements that only the second region has are copies.
    """
    expected, flow = flow_to_reads(before), flow_to_reads(after)
    outside = (one.extent for one in before.arrays if not before.is_dead_after(one))
    seen = universes(before.no_points, outside)
    wanted, last = (last_writes(one).intersect_range(seen) for one in (before, after))
    found, known = last, {*their_names(before.statements)}
    for copy in after.statements:
        if copy.name not in known:
            own = last.intersect_domain(copy.domain.to_union_set())
            found = found.subtract(own).union(flow[copy.name, 1].apply_range(own))
    return (
        all(flow[place].is_equal(own) for place, own in expected.items())
        and bool(found.is_equal(wanted))
        and bool(last.range().is_equal(wanted.range()))
    )
