"""Sums over several loops join the band around them: all of their loops are tiled.

    for (e = 0; e < N; e++)
      for (f = 0; f < N; f++)
        C[i][j] += A[i][e][f] * B[e][f][j];

The next ``e`` needs what the last ``f`` left, so no band of a schedule has both loops. But a sum
may be taken in any order. With that freedom they are one band, and a tile of it is a small box of
``A`` and of ``B`` instead of all that ``f`` reaches.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import islpy as isl

from eatss.base.frozen import complete, fixed, their_names
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
from eatss.polyhedral.schedule import cut_again
from eatss.polyhedral.scheduling import local_dependences
from eatss.polyhedral.tree import (
    PARTED,
    bands,
    branches,
    coincident,
    functions,
    is_tilable,
    runs_forward,
    with_band,
)

_Place: TypeAlias = Literal["in order", "first", "last"]
_PLACES: tuple[_Place, ...] = get_args(_Place)
"""Where statements beside a sum are put along its loops: those of branches before it at the first
iteration and those after it at the last, or all at one of them (branches of a set have no order).
"""


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
    needed = in_any_order(scheduled.dependences.memory_based, kernel)
    ordered, taken = local_dependences(needed, node), 0
    while below := _sums_below(node, kernel, taken):
        wider = (below.joined_to(node, place) for place in _PLACES)
        fine = (one for one in wider if one is not None and runs_forward(ordered, one))
        joined = next(fine, None)
        if joined is None:
            break
        node = joined
        taken += len(below.members)
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


@fixed
class _Below:
    """A band of sums below another one, directly or in one branch of a sequence.

    ``branch`` is that branch. Other branches have statements without loops of their own.
    """

    branch: int | None
    members: tuple[isl.UnionPwAff, ...]

    def joined_to(self, node: isl.ScheduleNode, place: _Place) -> isl.ScheduleNode | None:
        """Return a band with these members after its own; ``None`` where some end is not affine."""
        members = complete(self._everywhere(node, one, place) for one in self.members)
        if members is None:
            return None
        loops, parallel = [*functions(node), *members], coincident(node)
        below = node.get_child(0)
        if self.branch is None:
            below = below.delete().parent()
        else:
            below = below.get_child(self.branch).get_child(0).delete().parent().parent().parent()
        return with_band(below.delete(), loops, parallel)

    def _everywhere(
        self, node: isl.ScheduleNode, member: isl.UnionPwAff, place: _Place
    ) -> isl.UnionPwAff | None:
        """Return when statements of all branches run along a loop that one of them has."""
        if self.branch is None:
            return member
        parts = branches(node.get_child(0))
        own = member = member.intersect_domain(parts[self.branch].get_domain())
        for position, part in enumerate(parts):
            if position != self.branch:
                last = position > self.branch if place == "in order" else place == "last"
                end = _end(own, last=last)
                if end is None:
                    return None
                member = member.union_add(isl.UnionPwAff.aff_on_domain(part.get_domain(), end))
        return member


def with_band_below(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """Return a band with the members of the one right below it after its own."""
    joined = _Below(None, tuple(functions(node.get_child(0)))).joined_to(node, "first")
    assert joined is not None  # only branches have ends that may not be affine
    return joined


def _end(function: isl.UnionPwAff, *, last: bool) -> isl.Aff | None:
    """Return the least or the greatest value of a function, where that is one affine form."""
    relation = isl.UnionMap.from_union_pw_aff(function)
    (values,) = sets_of(relation.range())
    return only_form(values.dim_max(0) if last else values.dim_min(0))


def _sums_below(node: isl.ScheduleNode, kernel: Kernel, taken: int) -> _Below | None:
    """Return the band below another, if all of its loops are those of sums."""
    child, branch = node.get_child(0), None
    if node_kind(child) in PARTED:
        inside = branches(child)
        looped = [at for at, one in enumerate(inside) if any(True for _ in bands(one))]
        if len(looped) != 1:
            return None
        (branch,) = looped
        child = inside[branch]
    if node_kind(child) != "band":
        return None
    members = tuple(functions(child))
    loops = their_names(kernel.inner_loops[taken : taken + len(members)])
    summed = {name for one in kernel.reductions for name in one.loops}
    if any(coincident(child)) or not summed.issuperset(loops):
        return None
    return _Below(branch, members)
