"""The original order of execution as a schedule tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby

import islpy as isl

from eatss.polyhedral.isl_names import constant_value, output_affs
from eatss.polyhedral.nodes import alone
from eatss.polyhedral.scops import Scop, Statement


def original_schedule(scop: Scop) -> isl.Schedule:
    """Return the program's own schedule as a tree of bands and sequences.

    isl computes dataflow faster on a tree, and the leaves of its sequences show
    which statements run one directly after the other.
    """
    timed = [(statement, output_affs(statement.schedule)) for statement in scop.statements]
    return _subtree(timed, 0)


_Timed = tuple[Statement, tuple[isl.PwAff, ...]]


def _subtree(timed: Sequence[_Timed], level: int) -> isl.Schedule:
    """Return the tree of ``timed`` statements from time dimension ``level`` on."""
    if level == len(timed[0][1]):
        nothing = isl.UnionSet.empty(timed[0][0].domain.get_space())
        return isl.Schedule.from_domain(
            reduce(isl.UnionSet.union, (statement.domain for statement, _ in timed), nothing)
        )
    positions = [constant_value(affs[level]) for _, affs in timed]
    if None not in positions:
        order = sorted(zip(positions, timed, strict=True), key=lambda pair: pair[0] or 0)
        groups = groupby(order, key=lambda pair: pair[0])
        parts = [_subtree([one for _, one in group], level + 1) for _, group in groups]
        return reduce(isl.Schedule.sequence, parts)
    counter = isl.UnionPwAff.empty(timed[0][0].domain.get_space().params())
    for _, affs in timed:
        counter = counter.union_add(isl.UnionPwAff.from_pw_aff(affs[level]))
    return _subtree(timed, level + 1).insert_partial_schedule(alone(counter))
