"""A step of a loop on the host in the order of the source, its nests over rows of one loop.

    for (k) for (j) {                             for (k) {
        r[k][j] = 0;                                  for (j) r[k][j] = 0;
        for (i) r[k][j] += Q[i][k] * A[i][j];         for (j) for (i) r[k][j] += Q[i][k] * A[i][j];
    }                                             }

isl's scheduler may have parted what is initialised from what is added to it, or have found fewer
parallel loops. Which loops are the rows is found from dependences: all that a step needs of itself
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
    in_tilable_bands,
    local_dependences,
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


def in_source_order(scheduled: ScheduledScop) -> Iterator[isl.Schedule]:
    """Yield schedules of a region in the order of the source, steps of one loop as rows.

    Whether one is legal is for the caller to check.
    """
    dependences = scheduled.dependences
    for loop in bands(in_tilable_bands(scheduled.scop, dependences).get_root()):
        nests = [] if loop.band_n_member() > 1 or coincident(loop)[0] else _nests(loop.get_child(0))
        ways = product(*(one.with_row() for one in nests)) if len(nests) > 1 else ()
        for rows in islice(ways, _MOST_WAYS):
            found = _with_nests(loop, rows)
            if _has_rows(dependences.needed, found):
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


def _with_nests(loop: isl.ScheduleNode, nests: Sequence[_Nest]) -> isl.ScheduleNode:
    """Return a loop that runs nests one after the other."""
    band = with_band(loop.cut(), functions(loop), [False])
    filters = [nest.domain for nest in nests]
    return with_parts(
        band.get_child(0), filters, lambda at, leaf: nests[at].at_leaf(leaf), in_order=True
    ).parent()


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
