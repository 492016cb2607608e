"""What begins a step of a loop on the host joins the rows of the step before: look-ahead.

    for (k) {                                     for (k = -1; …) for (j > k) {
        for (i) n[k] += A[i][k] * A[i][k];            for (i) r[k][j] += Q[i][k] * A[i][j];
        for (i) Q[i][k] = A[i][k] / sqrt(n[k]);       for (i) A[i][j] -= Q[i][k] * r[k][j];
        for (j > k) {                                 if (j == k + 1) {
            for (i) r[k][j] += Q[i][k] * A[i][j];         for (i) n[j] += A[i][j] * A[i][j];
            for (i) A[i][j] -= Q[i][k] * r[k][j];         for (i) Q[i][j] = A[i][j] / sqrt(n[j]);
    }   }                                         }   }

What a step begins with often needs one row only of those that the step before has made. In that row
it runs right behind them, so a step is one launch of rows that stay on the chip. Which statements
these are and which loops are the rows is found from dependences: all that a step needs of itself
has to stay in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice, product

import islpy as isl

from eatss.base.frozen import fixed
from eatss.polyhedral.isl_names import among, node_kind
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scheduling import (
    local_dependences,
    original_with_marks,
    with_tilable_bands,
)
from eatss.polyhedral.tree import (
    alone,
    bands,
    branches,
    children,
    coincident,
    functions,
    runs_forward,
    with_band,
    with_parts,
)

_MOST_WAYS = 16
"""Choices of rows that are tried for one loop."""


def look_ahead(scheduled: ScheduledScop) -> Iterator[isl.Schedule]:
    """Yield schedules of a region in which the begin of a step joins the step before.

    First as little of a step as can, or nothing. They are the order of the source but for that.
    Whether one is legal is for the caller to check.
    """
    dependences = scheduled.dependences
    own = original_with_marks(scheduled.scop, dependences)
    tree = with_tilable_bands(own, dependences).get_root()
    needed = dependences.needed
    for loop in bands(tree):
        if loop.band_n_member() > 1 or coincident(loop)[0]:
            continue
        nests = _nests(loop.get_child(0))
        for first in range(len(nests) if len(nests) > 1 else 0):
            ways = product(*(one.with_row() for one in nests[first:]))
            for then in islice(ways, _MOST_WAYS):
                found = _shifted(loop, nests[:first], then, needed)
                if found is not None and _has_rows(needed, found):
                    yield found.get_schedule()
                    break


@fixed
class _Nest:
    """Instances, the loops around them in a step, and which of these are parallel."""

    domain: isl.UnionSet
    loops: tuple[isl.UnionPwAff, ...] = ()
    marks: tuple[bool, ...] = ()

    @classmethod
    def of(cls, node: isl.ScheduleNode, around: _Nest) -> Iterator[_Nest | None]:
        """Yield the nests at a node inside loops, ``None`` for what is none."""
        kind = node_kind(node)
        if kind == "leaf":
            yield around
        elif kind == "band":
            loops, marks = (*around.loops, *functions(node)), (*around.marks, *coincident(node))
            yield from cls.of(node.get_child(0), cls(around.domain, loops, marks))
        elif kind == "sequence" and all(around.marks):  # which parallel loops may run apart
            for part in children(node):
                domain = around.domain.intersect(part.filter_get_filter())
                yield from cls.of(part.get_child(0), cls(domain, around.loops, around.marks))
        else:
            yield None

    def with_row(self) -> Iterator[_Nest]:
        """Yield the nest with each of its parallel loops outermost."""
        for at in (at for at, parallel in enumerate(self.marks) if parallel):
            order = [at, *(other for other in range(len(self.loops)) if other != at)]
            loops = tuple(self.loops[one] for one in order)
            yield _Nest(self.domain, loops, tuple(self.marks[one] for one in order))

    def own(self) -> list[isl.UnionPwAff]:
        """Return its loops, for its instances alone."""
        return [one.intersect_domain(self.domain) for one in self.loops]

    def at_leaf(self, leaf: isl.ScheduleNode) -> isl.ScheduleNode:
        """Put it at a leaf."""
        return with_band(leaf, self.own(), self.marks)


def _nests(node: isl.ScheduleNode) -> list[_Nest]:
    """Return what runs one after the other at a node, nothing where that is not nests."""
    found = [*_Nest.of(node, _Nest(node.get_domain().universe()))]
    nests = [one for one in found if one is not None]
    return nests if len(nests) == len(found) else []


def _shifted(
    loop: isl.ScheduleNode, begin: Sequence[_Nest], then: Sequence[_Nest], needed: isl.UnionMap
) -> isl.ScheduleNode | None:
    """Return a loop whose ``begin`` runs an iteration earlier, behind all else.

    In the row from which it needs something, as far from the number of its step each time.
    """
    (steps,) = functions(loop)
    nests = [*then]
    if begin:
        domain = reduce(isl.UnionSet.union, (one.domain for one in begin))
        own = steps.intersect_domain(domain)
        steps = steps.subtract_domain(domain).union_add(_less(own, isl.Val.one(loop.get_ctx())))
        rows = reduce(isl.UnionPwAff.union_add, (one.own()[0] for one in then))
        here = needed.intersect_range(domain).eq_at_multi_union_pw_aff(alone(steps))
        made = here.apply_domain(isl.UnionMap.from_union_pw_aff(rows))
        apart = made.apply_range(isl.UnionMap.from_union_pw_aff(own)).deltas()
        if apart.is_empty() or not (far := isl.Set.from_union_set(apart)).is_singleton():
            return None
        row = _less(own, far.dim_max_val(0))
        nests += (_Nest(one.domain, (row, *one.loops), (True, *one.marks)) for one in begin)
    band = with_band(loop.cut(), [steps], [False])
    filters = [nest.domain for nest in nests]
    return with_parts(
        band.get_child(0), filters, lambda at, leaf: nests[at].at_leaf(leaf), in_order=True
    ).parent()


def _less(function: isl.UnionPwAff, value: isl.Val) -> isl.UnionPwAff:
    return function.sub(isl.UnionPwAff.val_on_domain(function.domain(), value))


def _has_rows(needed: isl.UnionMap, loop: isl.ScheduleNode) -> bool:
    """Tell whether all that an iteration of a loop needs of itself stays in a row.

    And whether its nests may be tiled.
    """
    nests = branches(loop.get_child(0))
    here = local_dependences(needed, loop.get_child(0))
    rows = reduce(isl.UnionPwAff.union_add, (functions(one)[0] for one in nests))
    inside = here.eq_at_multi_union_pw_aff(alone(rows))
    return here.is_subset(inside) and all(
        runs_forward(among(here, nest.get_domain()), nest) for nest in nests
    )
