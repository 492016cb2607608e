"""Checks between the passes; they always run, and a failure is a fault of eatss.

A schedule is accepted only if isl proves on the whole region, for all sizes, that it runs every
instance once, respects every dependence, keeps live ranges of one element apart and
marks no loop parallel that carries a dependence.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.base.diagnostics import internal_error
from eatss.polyhedral.isl_names import maps_of, set_names
from eatss.polyhedral.kernel import Kernel
from eatss.polyhedral.nodes import bands, coincident
from eatss.polyhedral.program import Dependences
from eatss.polyhedral.scheduling import (
    carries_nothing,
    coincidence_dependences,
    local_dependences,
)
from eatss.polyhedral.scops import Scop


def check_legality(scop: Scop, dependences: Dependences, schedule: isl.Schedule) -> None:
    """Check that ``schedule`` computes what the original order computes.

    Raises:
        InternalError: ``EATSS-P901`` an instance is lost or repeated, ``EATSS-P902`` a dependence
            is violated, ``EATSS-P903`` live ranges overlap, ``EATSS-P904`` a parallel loop
            carries a dependence.
    """
    _require(
        schedule.get_domain().is_equal(scop.domain),
        scop,
        "EATSS-P901",
        "the new schedule does not run every statement instance exactly once",
    )
    relation = schedule.get_map().intersect_domain(scop.domain)
    _require(
        all(part.is_injective() for part in maps_of(relation)),
        scop,
        "EATSS-P901",
        "the new schedule runs several statement instances at once",
    )
    time = isl.MultiUnionPwAff.from_union_map(relation)
    _require(
        dependences.validity.lex_ge_at_multi_union_pw_aff(time).is_empty(),
        scop,
        "EATSS-P902",
        "the new schedule violates a dependence",
    )
    _require(
        not live_ranges_overlap(dependences.order, dependences.tagged_flow, time),
        scop,
        "EATSS-P903",
        "the new schedule overwrites a value that is still needed",
    )
    coincidence = coincidence_dependences(scop, dependences)
    for node in bands(schedule.get_root()):
        _check_parallel(scop, coincidence, node)


def tagger_of(order: isl.UnionMap, flow: isl.UnionMap) -> isl.UnionPwMultiAff:
    """Return the function from tagged instances to instances."""
    tagged = order.domain().union(order.range()).union(flow.domain()).union(flow.range())
    return tagged.universe().unwrap().domain_map_union_pw_multi_aff()


def live_ranges_overlap(order: isl.UnionMap, flow: isl.UnionMap, time: isl.MultiUnionPwAff) -> bool:
    """Tell whether values of one element that changed places overlap.

    Where a schedule puts a later write before an earlier use, the last use of the later value
    must also come before the earlier value is written.

    Args:
        order: order dependences, tagged by accesses.
        flow: flow dependences, tagged by accesses.
        time: the schedule, of instances without tags.
    """
    if order.is_empty():
        return False
    tagged_time = time.pullback_union_pw_multi_aff(tagger_of(order, flow))
    swapped = order.lex_ge_at_multi_union_pw_aff(tagged_time)
    if swapped.is_empty():
        return False
    ends = swapped.domain().union(swapped.range())
    unread = ends.subtract(flow.domain()).subtract(flow.range()).identity()
    ranges = flow.union(unread)
    pairs = ranges.apply_range(swapped).apply_range(ranges)
    return not pairs.lex_lt_at_multi_union_pw_aff(tagged_time).is_empty()


def _check_parallel(scop: Scop, coincidence: isl.UnionMap, node: isl.ScheduleNode) -> None:
    marked = [at for at, mark in enumerate(coincident(node)) if mark]
    if not marked:
        return
    local = local_dependences(coincidence, node)
    for member in marked:
        _require(
            carries_nothing(local, node, member),
            scop,
            "EATSS-P904",
            "a loop marked parallel carries a dependence",
        )


def check_coverage(
    scop: Scop, schedule: isl.Schedule, kernels: Sequence[Kernel], host: Sequence[str]
) -> None:
    """Check that the kernels and the host run every statement instance, each in one place.

    Raises:
        InternalError: ``EATSS-P905``.
    """
    covered = scop.no_points
    names = list(host)
    for statement in scop.statements:
        if statement.name in host:
            covered = covered.union(statement.domain)
    for kernel in kernels:
        covered = covered.union(kernel.schedule.domain())
        names.extend(set_names(kernel.schedule.domain()))
    everything = scop.domain
    _require(
        len(names) == len(set(names))
        and covered.is_equal(everything)
        and schedule.get_domain().is_equal(everything),
        scop,
        "EATSS-P905",
        "the kernels do not cover every statement instance exactly once",
    )


def _require(condition: bool, scop: Scop, code: str, message: str) -> None:
    if not condition:
        raise internal_error(code, message, span=scop.span)
