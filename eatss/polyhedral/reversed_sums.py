"""Sums that begin with what is computed last run backwards: what they need is there earlier.

    for (i = n - 1; i >= 0; i--) {
        w = y[i];
        for (j = i + 1; j < n; j++) w -= A[i][j] * x[j];
        x[i] = w / A[i][i];
    }

The first term of each sum needs the ``x`` of the iteration before, so all wait for it. With the
last ``j`` first, each ``x`` is taken off all sums as soon as it is known. Sums may be taken in any
order, within the bounds of rounding; nothing else is in the loop, and no term reads a sum of it.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from eatss.base.memo import remembered
from eatss.polyhedral.chunked_scans import is_alone
from eatss.polyhedral.isl_names import constant_value, equal_leading_dims, output_affs
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.parts import still_loops
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scop import Scop, Statement


@remembered
def with_reversed_sums(scop: Scop) -> Scop:
    """Return a region whose sums do not begin with what is computed last, itself if none does."""
    sums = [one for one in scop.statements if _may_run_backwards(scop, one)]
    last_first = [one for one in sums if _begins_with_last(scop, one)]
    if not last_first:
        return scop
    statements = tuple(_backwards(one) if one in last_first else one for one in scop.statements)
    return replace(scop, statements=statements, written=scop.written or scop)


def _may_run_backwards(scop: Scop, statement: Statement) -> bool:
    """Tell whether a statement adds up in its innermost loop, reading nothing else of its sums."""
    stored = scop.array(statement.write.array).element_type
    innermost = len(statement.loops) - 1
    if update_of(statement, stored) is None or not is_alone(scop, statement, innermost):
        return False
    if not {*statement.loops[-1:]} & {*still_loops(statement)}:
        return False
    terms = [statement.accesses[at] for at in _terms(statement)]
    own = (one.relation for one in terms if one.array == statement.write.array)
    met = (statement.write.relation.apply_range(one.reverse()).to_union_map() for one in own)
    written = scop.written_arrays
    return any(one.array in written for one in terms) and all(
        equal_leading_dims(one, innermost).is_empty() for one in met
    )


def _terms(statement: Statement) -> list[int]:
    """Return the reads of a sum but that of what it is added to, by number."""
    write = statement.write
    return [
        at
        for at, one in enumerate(statement.accesses)
        if at and not (one.array == write.array and one.relation.is_equal(write.relation))
    ]


def _begins_with_last(scop: Scop, statement: Statement) -> bool:
    """Tell whether terms need what is computed the later the earlier they are added.

    Of what is computed in the same outermost loop: the rest is there before.
    """
    schedule, innermost = statement.schedule, len(statement.loops) - 1
    outermost = constant_value(output_affs(schedule)[0])
    beside = scop.no_points
    for one in scop.statements:
        if constant_value(output_affs(one.schedule)[0]) == outermost:
            beside = beside.union(one.domain.to_union_set())
    steps = schedule.lex_lt_map(schedule).intersect_domain(statement.domain)
    steps = steps.intersect_range(statement.domain)
    following = equal_leading_dims(steps.to_union_map(), innermost)
    needed = scop.no_relation
    for at in _terms(statement):
        needed = needed.union(flow_to_reads(scop)[statement.name, at].intersect_domain(beside))
    pairs = needed.apply_range(following).apply_range(needed.reverse())
    time = scop.schedule
    in_turn, against = (
        pairs.intersect(one) for one in (time.lex_lt_union_map(time), time.lex_gt_union_map(time))
    )
    return bool(in_turn.is_empty()) and not against.is_empty()


def _backwards(statement: Statement) -> Statement:
    """Return a statement whose innermost loop runs from its end."""
    time = isl.MultiAff.identity_on_domain_space(statement.schedule.range().get_space())
    at = 2 * len(statement.loops) - 1
    turned = isl.Map.from_multi_aff(time.set_at(at, time.get_at(at).neg()))
    return replace(statement, schedule=statement.schedule.apply_range(turned), reordered=True)
