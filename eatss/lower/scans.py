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
runs behind ``s_r``, at the same points. One element may be all that ``s`` is. What is used before
``s`` is updated are values of the lane below. Several sums of one kind stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from eatss.analysis.variant import WORD_BYTES
from eatss.base.frozen import Names, frozen, their_names
from eatss.lower.pieces import LoopMember, Piece, functions_of
from eatss.lower.units import restricted
from eatss.polyhedral.expression import Combiner, ElementType, combiner_of
from eatss.polyhedral.isl_names import OUT, named_map
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.scop import Dependences, Place, Scop, Statement


@frozen
class RunningValue:
    """What a statement updates along rows: elements, and what combines.

    ``before`` is the element in front of a row, which its first instance reads in the region;
    ``places`` are what is written, what is read of the step before, and what other statements read
    of each step; ``earlier`` what these read of the step before theirs. The old value of an
    element is read from memory. Where it is ``still``, a row has one element.
    """

    statement: Statement
    before: isl.Map
    places: frozenset[Place]
    earlier: frozenset[Place]
    combiner: Combiner
    still: bool


@frozen
class Scan:
    """Running sums side by side, and a piece of them and of ``users`` of their steps."""

    piece: Piece
    values: tuple[RunningValue, ...]
    users: Names

    @property
    def combiner(self) -> Combiner:
        """What combines all of them."""
        return self.values[0].combiner


@frozen
class _Times:
    """When statements of a piece run: ``times`` are all loops, ``launches`` those of the host."""

    piece: Piece
    loop: str

    @property
    def rows(self) -> tuple[LoopMember, ...]:
        return tuple(one for one in self.piece.band if one.name != self.loop)

    def along(self, loops: Sequence[LoopMember], one: Statement) -> isl.Map:
        return named_map(one.domain, functions_of(loops, one.domain), "time", ())

    def time(self, one: Statement) -> isl.Map:
        last = (own for own in self.piece.band if own.name == self.loop)
        return self.along([*self.piece.host, *self.rows, *last], one)

    def row(self, one: Statement) -> isl.Map:
        return self.along([*self.piece.host, *self.rows], one)

    def same(self, one: Statement, other: Statement) -> isl.Map:
        """Map instances to those of another statement at the same step."""
        return self.time(one).apply_range(self.time(other).reverse())

    def following(self, one: Statement, other: Statement) -> isl.Map:
        """Map instances to those of another statement at the next step of a row."""
        time = self.time(one)
        *stay, last = (f"t{k}" for k in range(time.dim(OUT)))
        step = f"time[{', '.join([*stay, last])}] -> time[{', '.join([*stay, f'{last} + 1'])}]"
        forward = isl.Map.read_from_str(time.get_ctx(), f"{{ {step} }}")
        return time.apply_range(forward).apply_range(self.time(other).reverse())

    def together(self, one: Statement, other: Statement) -> isl.Map:
        """Map instances to those of another statement in the same launch."""
        first, then = (self.along(self.piece.host, own) for own in (one, other))
        return first.apply_range(then.reverse())

    def elements(self, one: Statement) -> isl.Map:
        """Map instances to what they write, in a launch."""
        return one.write.relation.flat_range_product(self.along(self.piece.host, one))


def scan_of(
    piece: Piece,
    statements: Sequence[str],
    loop: str,
    mapped: Sequence[str],
    scop: Scop,
    dependences: Dependences,
) -> Scan | None:
    """Return the running sums that statements are along a loop, ``None`` if they are none.

    Each instance but one of a row reads the element that the one before it wrote, and no other of
    the array; rows are the mapped loops, and there are no others. What other statements need of
    each other, and of the sums, they need at one step.

    Args:
        piece: the piece.
        statements: what is launched.
        loop: the loop along rows, by C name.
        mapped: the loops of rows, by C name.
        scop: the region.
        dependences: of the region.
    """
    piece = restricted(piece, statements)
    if {*piece.bound} != {*mapped, loop} or piece.inner:
        return None
    times = _Times(piece=piece, loop=loop)
    found = [one for own in piece.statements if (one := _running(times, own, scop)) is not None]
    updated = {one.statement.name: one.statement for one in found}
    users = [one for one in piece.statements if one.name not in updated]
    arrays = {one.statement.write.array for one in found}
    if (
        len({one.combiner for one in found}) != 1
        or len(arrays) < len(found)
        or (not users and any(one.still for one in found))
        or not _only_meet_at_steps(times, users)
    ):
        return None
    values = []
    for one in found:
        own = _with_users(times, one, users, dependences)
        array = one.statement.write.array
        others = (other for name, other in updated.items() if name != one.statement.name)
        if (
            own is None
            or any(other.uses(array) for other in others)
            or any(_feeds(times, user, one.statement, dependences) for user in users)
        ):
            return None
        values.append(own)
    return Scan(
        piece=replace(
            piece, statements=tuple(updated.get(one.name, one) for one in piece.statements)
        ),
        values=tuple(values),
        users=their_names(users),
    )


def _running(times: _Times, statement: Statement, scop: Scop) -> RunningValue | None:
    """Return what a statement updates along rows, by itself, ``None`` where it updates nothing."""
    domain, write, accesses = statement.domain, statement.write, statement.accesses
    own = [k for k, one in enumerate(accesses) if one.array == write.array]
    other = [k for k in own if not accesses[k].relation.is_equal(write.relation)]
    forward, row = times.following(statement, statement), times.row(statement)
    written = times.elements(statement)
    of_rows = row.reverse().apply_range(written)
    still = bool(of_rows.is_single_valued()) and not other
    other = own[1:] if still else other
    reads = [accesses[k].relation for k in other]
    if not reads or not all(one.is_equal(reads[0]) for one in reads[1:]):
        return None
    written = of_rows if still else written
    to_next = forward if still else write.relation.apply_range(reads[0].reverse())
    to_next = to_next.intersect_domain(domain).intersect_range(domain)
    to_next = to_next.intersect(times.together(statement, statement))
    first = domain.subtract(to_next.range())
    if (
        not written.is_injective()
        or to_next.is_empty()
        or not to_next.is_subset(forward)
        or not row.intersect_domain(first).is_injective()
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
    return RunningValue(
        statement=with_relations(updates),
        before=reads[0].intersect_domain(first),
        places=frozenset((statement.name, k) for k in (0, *other)),
        earlier=frozenset(),
        combiner=combiner,
        still=still,
    )


def _with_users(
    times: _Times, value: RunningValue, users: Sequence[Statement], dependences: Dependences
) -> RunningValue | None:
    """Return a running value with what others read of it, ``None`` where that is of other steps."""
    own, first = value.statement, value.before.domain()
    places, earlier = set(value.places), set[Place]()
    for one in users:
        reads = [k for k, other in enumerate(one.accesses) if k and other.array == own.write.array]
        if one.write.array == own.write.array:
            return None
        if not reads:
            continue
        same, later = times.same(own, one), times.following(own, one)
        flow = dependences.flow.extract_map(same.get_space())
        if not one.domain.is_subset(same.range()):
            return None
        if flow.is_subset(same) and flow.range().is_equal(one.domain):
            found, element = places, same.reverse().apply_range(own.write.relation)
        elif flow.is_subset(later) and flow.range().is_equal(
            one.domain.subtract(first.apply(same))
        ):
            found, element = earlier, later.reverse().apply_range(own.write.relation)
            element = element.union(same.reverse().apply_range(value.before))
        else:
            return None
        if not all(
            element.intersect_domain(one.domain).is_equal(one.accesses[k].relation) for k in reads
        ):
            return None
        found.update((one.name, k) for k in reads)
    return replace(value, places=frozenset(places), earlier=frozenset(earlier))


def _feeds(times: _Times, one: Statement, scan: Statement, dependences: Dependences) -> bool:
    """Tell whether what is to run behind a running sum makes something that it reads."""
    together = times.together(one, scan)
    return not dependences.flow.extract_map(together.get_space()).intersect(together).is_empty()


def _only_meet_at_steps(times: _Times, users: Sequence[Statement]) -> bool:
    """Tell whether whatever statements write besides running sums is used at one step only."""
    for one in users:
        if not times.elements(one).is_injective():
            return False
        for then in times.piece.statements:
            together, same = times.together(one, then), times.same(one, then)
            for access in then.accesses:
                if access.array == one.write.array:
                    pairs = one.write.relation.apply_range(access.relation.reverse())
                    if not pairs.intersect(together).is_subset(same):
                        return False
    return True


def looks_back(piece: Piece, kinds: Sequence[ElementType]) -> bool:
    """Tell whether tiles of a row may each have a warp, which finds what those before come to.

    It may in a launch that runs once, with one running sum of a row.
    """
    return not piece.host and len(kinds) == 1 and kinds[0].size_bytes >= WORD_BYTES


def is_scan(
    piece: Piece, loop: str, mapped: Sequence[str], scop: Scop, dependences: Dependences
) -> bool:
    """Tell whether a piece is what a running sum of the region becomes."""
    names = their_names(piece.statements)
    original = replace(piece, statements=tuple(map(scop.statement, names)))
    return scan_of(original, names, loop, mapped, scop, dependences) is not None
