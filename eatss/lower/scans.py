"""Running sums along rows: ``s[i][j] = s[i][j - 1] + x[i][j]``, and products, maxima, minima.

    s_carry = s[i][0];
    for (j0 = 0; j0 < N; j0 += 128) {
        s_r[rj] = 0 + x[i][j];                  // of four steps of a warp, each lane
        s_r[rj] += that of 1, 2, 4, 8, 16 lanes down;
        s_r[rj] += s_carry, s_carry = s_r[rj] of the last lane;
        s[i][j] = s_r[rj];
    }

A warp has a row. What is added to the element before is added to nothing first, then to what lanes
below have, then to what the steps before came to: an order of its own, as that of a sum.

Where each step's value is used at once, ``s += x[i][j]; m[i][j] = s / (j + 1);``, what uses it
runs behind ``s_r``, at the same points. One element may be all that ``s`` is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from eatss.analysis.variant import WORD_BYTES
from eatss.base.frozen import frozen, their_names
from eatss.lower.pieces import LoopMember, Piece, functions_of
from eatss.lower.units import restricted
from eatss.polyhedral.expression import Combiner, ElementType, combiner_of
from eatss.polyhedral.isl_names import IN, OUT, maps_of, named_map
from eatss.polyhedral.kernel import Dependences
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.scop import Access, Place, Scop, Statement


@frozen
class Scan:
    """A running sum: a piece whose first statement updates elements, and what combines.

    ``before`` is the element in front of a row, which its first instance reads in the region;
    ``places`` are what is written, what is read of the step before, and what the other statements
    read of each step. The old value of an element is read from memory.
    """

    piece: Piece
    before: isl.Map
    places: frozenset[Place]
    combiner: Combiner


def scan_of(
    piece: Piece,
    statements: Sequence[str],
    loop: str,
    mapped: Sequence[str],
    scop: Scop,
    dependences: Dependences,
) -> Scan | None:
    """Return the running sum that a statement is along a loop, ``None`` if it is none.

    Each instance but one of a row reads the element that the one before it wrote, and no other of
    the array; rows are the mapped loops, and there are no others. What other statements need of
    each other, and of the sum, they need at one step.

    Args:
        piece: the piece.
        statements: what is launched.
        loop: the loop along rows, by C name.
        mapped: the loops of rows, by C name.
        scop: the region.
        dependences: of the region.
    """
    piece = restricted(piece, statements)
    if not piece.statements or {*piece.bound} != {*mapped, loop} or piece.inner:
        return None
    (statement, *users), domain = piece.statements, piece.statements[0].domain
    write, accesses = statement.write, statement.accesses
    own = [k for k, one in enumerate(accesses) if one.array == write.array]
    other = [k for k in own if not accesses[k].relation.is_equal(write.relation)]
    if not other and users:  # one element for a row
        other = own[1:]
    reads = [accesses[k].relation for k in other]
    if not reads or not all(one.is_equal(reads[0]) for one in reads[1:]):
        return None

    def along(loops: Sequence[LoopMember], where: isl.Set = domain) -> isl.Map:
        return named_map(where, functions_of(loops, where), "time", ())

    rows = [one for one in piece.band if one.name != loop]
    all_loops = [*piece.host, *rows, *(one for one in piece.band if one.name == loop)]
    time, launch = along(all_loops[len(piece.host) :]), along(piece.host)
    stay, last = [f"t{k}" for k in range(len(rows))], f"t{len(rows)}"
    step = f"{{ time[{', '.join([*stay, last])}] -> time[{', '.join([*stay, f'{last} + 1'])}] }}"
    forward = isl.Map.read_from_str(domain.get_ctx(), step)
    forward = time.apply_range(forward).apply_range(time.reverse())
    each = along([*piece.host, *rows])
    to_next, written = forward, _in_launch(write, launch)
    if reads[0].is_equal(write.relation):
        written = each.reverse().apply_range(written)
    else:
        to_next = write.relation.apply_range(reads[0].reverse())
    to_next = to_next.intersect_domain(domain).intersect_range(domain)
    to_next = to_next.intersect(launch.apply_range(launch.reverse()))
    first = domain.subtract(to_next.range())
    if (
        not written.is_injective()
        or to_next.is_empty()
        or not to_next.is_subset(forward)
        or not each.intersect_domain(first).is_injective()
    ):
        return None
    times = {one.name: along(all_loops, one.domain) for one in piece.statements}
    launches = {one.name: along(piece.host, one.domain) for one in piece.statements}
    if not _used_at_once(piece.statements, times, launches, dependences):
        return None

    def with_relations(changed: Mapping[int, isl.Map]) -> Statement:
        found = (replace(o, relation=changed.get(k, o.relation)) for k, o in enumerate(accesses))
        return replace(statement, accesses=tuple(found))

    updates = dict.fromkeys(other, write.relation)
    old = {k: reads[0] for k in own if k and k not in other}  # is no value of a step before
    kind = scop.array(write.array).element_type
    operator = update_of(with_relations(updates | old), kind)
    combiner = None if operator is None else combiner_of(operator, kind)
    if combiner is None:
        return None
    of_users = [
        (one.name, k)
        for one in users
        for k, access in enumerate(one.accesses)
        if access.array == write.array
    ]
    return Scan(
        piece=replace(piece, statements=(with_relations(updates), *users)),
        before=reads[0].intersect_domain(first),
        places=frozenset([*((statement.name, k) for k in (0, *other)), *of_users]),
        combiner=combiner,
    )


def _in_launch(write: Access, launch: isl.Map) -> isl.Map:
    return write.relation.flat_range_product(launch)


def _used_at_once(
    statements: Sequence[Statement],
    times: Mapping[str, isl.Map],
    launches: Mapping[str, isl.Map],
    dependences: Dependences,
) -> bool:
    """Tell whether statements behind a running sum need nothing of other steps in a launch.

    They read its element once it is there, and whatever else is written is of one step.
    """
    scan, *users = statements
    array = scan.write.array
    for one in users:
        same = times[scan.name].apply_range(times[one.name].reverse())
        flow = [
            relation
            for relation in maps_of(dependences.flow)
            if relation.get_tuple_name(IN) == scan.name and relation.get_tuple_name(OUT) == one.name
        ]
        reads = [access for access in one.reads if access.array == array]
        fed = isl.Set.empty(one.domain.get_space())
        for relation in flow:
            fed = fed.union(relation.range())
        alike = all(
            same.apply_range(access.relation).is_equal(
                scan.write.relation.intersect_domain(same.domain())
            )
            for access in reads
        )
        if (
            one.write.array == array
            or not _in_launch(one.write, launches[one.name]).is_injective()
            or not all(relation.is_subset(same) for relation in flow)
            or (reads and not (alike and fed.is_equal(one.domain)))
        ):
            return False
        for then in statements:
            same = times[one.name].apply_range(times[then.name].reverse())
            together = launches[one.name].apply_range(launches[then.name].reverse())
            for access in then.accesses:
                if access.array == one.write.array:
                    pairs = one.write.relation.apply_range(access.relation.reverse())
                    if not pairs.intersect(together).is_subset(same):
                        return False
    return True


def looks_back(piece: Piece, kind: ElementType) -> bool:
    """Tell whether tiles of a row may each have a warp, which finds what those before come to.

    It may in a launch that runs once.
    """
    return not piece.host and kind.size_bytes >= WORD_BYTES


def is_scan(
    piece: Piece, loop: str, mapped: Sequence[str], scop: Scop, dependences: Dependences
) -> bool:
    """Tell whether a piece is what a running sum of the region becomes."""
    names = their_names(piece.statements)
    original = replace(piece, statements=tuple(map(scop.statement, names)))
    return scan_of(original, names, loop, mapped, scop, dependences) is not None
