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
from eatss.polyhedral.isl_names import named_map
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.scop import Place, Scop, Statement


@frozen
class Scan:
    """A running sum: a piece of one statement that updates each element, and what combines.

    ``before`` is the element in front of a row, which its first instance reads in the region;
    ``places`` are what is written and what is read of the step before. The old value of an element
    is read from memory.
    """

    piece: Piece
    before: isl.Map
    places: frozenset[Place]
    combiner: Combiner


def scan_of(
    piece: Piece, statements: Sequence[str], loop: str, mapped: Sequence[str], scop: Scop
) -> Scan | None:
    """Return the running sum that a statement is along a loop, ``None`` if it is none.

    Each instance but one of a row reads the element that the one before it wrote, and no other of
    the array; rows are the mapped loops, and there are no others.

    Args:
        piece: the piece.
        statements: what is launched.
        loop: the loop along rows, by C name.
        mapped: the loops of rows, by C name.
        scop: the region.
    """
    piece = restricted(piece, statements)
    if len(piece.statements) != 1 or {*piece.bound} != {*mapped, loop} or piece.inner:
        return None
    (statement,), domain = piece.statements, piece.statements[0].domain
    write, accesses = statement.write, statement.accesses
    own = [k for k, one in enumerate(accesses) if one.array == write.array]
    other = [k for k in own if not accesses[k].relation.is_equal(write.relation)]
    reads = [accesses[k].relation for k in other]
    if not reads or not all(one.is_equal(reads[0]) for one in reads[1:]):
        return None

    def along(loops: Sequence[LoopMember]) -> isl.Map:
        return named_map(domain, functions_of(loops, domain), "time", ())

    rows = [one for one in piece.band if one.name != loop]
    time = along([*rows, *(one for one in piece.band if one.name == loop)])
    launch = along(piece.host)
    to_next = write.relation.apply_range(reads[0].reverse())
    to_next = to_next.intersect_domain(domain).intersect_range(domain)
    to_next = to_next.intersect(launch.apply_range(launch.reverse()))
    steps = time.reverse().apply_range(to_next).apply_range(time).deltas()
    forward = f"{{ time[{', '.join([*(['0'] * len(rows)), '1'])}] }}"
    first = domain.subtract(to_next.range())
    if (
        not write.relation.flat_range_product(launch).is_injective()
        or steps.is_empty()
        or not steps.is_subset(isl.Set.read_from_str(domain.get_ctx(), forward))
        or not along([*piece.host, *rows]).intersect_domain(first).is_injective()
    ):
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
    return Scan(
        piece=replace(piece, statements=(with_relations(updates),)),
        before=reads[0].intersect_domain(first),
        places=frozenset((statement.name, k) for k in (0, *other)),
        combiner=combiner,
    )


def looks_back(piece: Piece, kind: ElementType) -> bool:
    """Tell whether tiles of a row may each have a warp, which finds what those before come to.

    It may in a launch that runs once.
    """
    return not piece.host and kind.size_bytes >= WORD_BYTES


def is_scan(piece: Piece, loop: str, mapped: Sequence[str], scop: Scop) -> bool:
    """Tell whether a piece of one statement is what a running sum of the region becomes."""
    (name,) = their_names(piece.statements)
    original = replace(piece, statements=(scop.statement(name),))
    return scan_of(original, (name,), loop, mapped, scop) is not None
