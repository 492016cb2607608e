"""Sums over several loops join the band around them: all of their loops are tiled.

    for (e = 0; e < N; e++)
      for (f = 0; f < N; f++)
        C[i][j] += A[i][e][f] * B[e][f][j];

The next ``e`` needs what the last ``f`` left, so no band of a schedule has both loops. But a sum
may be taken in any order. With that freedom they are one band, and a tile of it is a small box of
``A`` and of ``B`` instead of all that ``f`` reaches. Several sums side by side have the same loops
then, what stands between them runs at the first or the last of their iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from eatss.base.frozen import their_names
from eatss.polyhedral.isl_names import (
    IN,
    maps_of,
    node_kind,
    only_form,
    same_except,
    set_names,
    sets_of,
)
from eatss.polyhedral.kernel import Kernel, ScheduledScop
from eatss.polyhedral.schedule import copied_to, cut_again
from eatss.polyhedral.scheduling import local_dependences
from eatss.polyhedral.tree import (
    coincident,
    functions,
    is_tilable,
    parts_of,
    runs_forward,
    with_band,
    with_parts,
)


def with_tiled_sums(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a region whose bands have the loops of sums that stand right below them.

    The order in which instances run is the same: what changes is that the loops may be tiled. Tiles
    take sums in another order where any but the last loop of a sum has tiles of several iterations
    (:func:`eatss.analysis.layout.reordering_loops`).
    """
    if not any(kernel.inner_loops and kernel.reductions for kernel in scheduled.kernels):
        return scheduled
    schedule = _joined(scheduled, scheduled.schedule.get_root()).get_schedule()
    same = schedule.plain_is_equal(scheduled.schedule)
    return scheduled if same else cut_again(scheduled, schedule)


def _joined(scheduled: ScheduledScop, node: isl.ScheduleNode) -> isl.ScheduleNode:
    """Return a node of a tree in which the bands below it are joined."""
    if not is_tilable(node):
        for position in range(node.n_children()):
            node = _joined(scheduled, node.get_child(position)).parent()
        return node
    names = set_names(node.get_domain())
    kernel = scheduled.kernel_of.get(names[0])
    if kernel is None or not kernel.reductions or {*kernel.statements} != {*names}:
        return node
    ordered = local_dependences(in_any_order(scheduled.dependences.memory_based, kernel), node)
    taken = 0
    while (below := _sums_below(node, kernel, taken)) is not None:
        joined = _with_members(node, below, ordered)
        if joined is None or not runs_forward(ordered, joined):
            break
        taken += joined.band_n_member() - node.band_n_member()
        node = joined
    return node


def in_any_order(dependences: isl.UnionMap, kernel: Kernel) -> isl.UnionMap:
    """Return what is left of dependences of a kernel where its sums are taken in any order.

    What has to come before or after some update of an element has to come before or after all of
    the same sum.
    """
    free = isl.UnionMap.empty(kernel.schedule.get_space())
    for reduction in kernel.reductions:
        for schedule in maps_of(kernel.schedule):
            if schedule.get_tuple_name(IN) == reduction.statement:
                free = free.union(same_except(schedule, reduction.loops))
    kept = dependences.subtract(free)
    kept = kept.union(kept.apply_range(free))
    return kept.union(free.apply_range(kept))


def _with_members(
    node: isl.ScheduleNode, below: Sequence[isl.ScheduleNode], ordered: isl.UnionMap
) -> isl.ScheduleNode | None:
    """Return a band with the members of those below it after its own.

    Parts without a band run at the first iteration if a sum needs them, else at the last; ``None``
    where that is not affine.
    """
    looped = [one for one in below if node_kind(one) == "band"]
    once = [one for one in below if node_kind(one) != "band"]
    inside = reduce(isl.UnionSet.union, (one.get_domain() for one in looped))
    members = []
    for own in zip(*map(functions, looped), strict=True):
        member = reduce(isl.UnionPwAff.union_add, own).intersect_domain(inside)
        for part in (one.get_domain() for one in once):
            before = ordered.intersect_domain(part).intersect_range(inside)
            end = _end(member.intersect_domain(inside), last=before.is_empty())
            if end is None:
                return None
            member = member.union_add(isl.UnionPwAff.aff_on_domain(part, end))
        members.append(member)
    parts = [one.get_child(0) if node_kind(one) == "band" else one for one in below]
    loops, parallel = [*functions(node), *members], coincident(node)
    band = with_band(node.cut(), loops, parallel)
    if len(parts) == 1:
        return copied_to(band.get_child(0), parts[0]).parent()
    filters = [one.get_domain().universe() for one in below]
    return with_parts(
        band.get_child(0), filters, lambda at, leaf: copied_to(leaf, parts[at]), in_order=True
    ).parent()


def with_band_below(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """Return a band with the members of the one right below it after its own."""
    joined = _with_members(
        node, [node.get_child(0)], isl.UnionMap.empty(node.get_domain().get_space())
    )
    assert joined is not None  # only branches have ends that may not be affine
    return joined


def _end(function: isl.UnionPwAff, *, last: bool) -> isl.Aff | None:
    """Return the least or the greatest value of a function, where that is one affine form."""
    relation = isl.UnionMap.from_union_pw_aff(function)
    (values,) = sets_of(relation.range())
    return only_form(values.dim_max(0) if last else values.dim_min(0))


def _sums_below(
    node: isl.ScheduleNode, kernel: Kernel, taken: int
) -> list[isl.ScheduleNode] | None:
    """Return what is below a band, if all loops right there are those of sums."""
    below = [*parts_of(node.get_child(0))]
    looped = [one for one in below if node_kind(one) == "band"]
    if len({one.band_n_member() for one in looped}) != 1:
        return None
    whole = len(looped) == 1
    if not whole and any(node_kind(one.get_child(0)) != "leaf" for one in looped):
        return None
    end = taken + looped[0].band_n_member() if whole else None
    loops = their_names(kernel.inner_loops[taken:end])
    summed = {name for one in kernel.reductions for name in one.loops}
    if any(any(coincident(one)) for one in looped) or not summed.issuperset(loops):
        return None
    return below
