"""The original order of execution as a schedule tree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import islpy as isl

from eatss.isl_names import constant_value, output_affs
from eatss.scops import Scop, Statement


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
        return isl.Schedule.from_domain(_union_domain(timed))
    positions = [constant_value(affs[level]) for _, affs in timed]
    known = [position for position in positions if position is not None]
    if len(known) == len(timed):
        order = sorted(range(len(timed)), key=lambda k: known[k])
        parts = [
            _subtree([timed[k] for k in group], level + 1)
            for _, group in groupby(order, key=lambda k: known[k])
        ]
        tree = parts[0]
        for part in parts[1:]:
            tree = tree.sequence(part)
        return tree
    counter = isl.UnionPwAff.empty(timed[0][0].domain.get_space().params())
    for _, affs in timed:
        counter = counter.union_add(isl.UnionPwAff.from_pw_aff(affs[level]))
    band = isl.MultiUnionPwAff.from_union_pw_aff(counter)
    return _subtree(timed, level + 1).insert_partial_schedule(band)


def _union_domain(timed: Sequence[_Timed]) -> isl.UnionSet:
    union = timed[0][0].domain.to_union_set()
    for statement, _ in timed[1:]:
        union = union.union(statement.domain)
    return union
