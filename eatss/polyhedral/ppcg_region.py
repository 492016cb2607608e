"""A region as PPCG sees it: its statements under PPCG's names, and none that is dead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import islpy as isl

from eatss.base.frozen import frozen
from eatss.polyhedral.isl_names import IN, renaming
from eatss.polyhedral.scops import Call, Scop, Statement, preorder


@frozen
class PpcgRegion:
    """A region under PPCG's names.

    ``scop`` has one statement for each of PPCG's. ``members`` are the names of ours that each
    stands for, in the order in which they run: several where ``a = b = c`` was read as two.
    ``names`` maps instances of ours to PPCG's; ``calls`` are the statements that call a function.
    """

    scop: Scop
    members: tuple[tuple[str, ...], ...]
    names: isl.UnionPwMultiAff
    calls: frozenset[str]


def ppcg_region(scop: Scop) -> PpcgRegion:
    """Return ``scop`` under PPCG's names; one that was not read from C is numbered in order."""
    named = [(s.ppcg_name or f"S_{k}", s) for k, s in enumerate(scop.statements)]
    groups = {
        name: [statement for _, statement in group]
        for name, group in groupby(named, lambda pair: pair[0])
    }
    return PpcgRegion(
        scop=replace(scop, statements=tuple(_joined(g, name) for name, g in groups.items())),
        members=tuple(tuple(s.name for s in group) for group in groups.values()),
        names=renaming([(s.domain, name) for name, s in named]),
        calls=frozenset(
            name
            for name, group in groups.items()
            if any(isinstance(node, Call) for s in group for node in preorder(s.value))
        ),
    )


def restricted(scop: Scop, live: isl.UnionSet) -> Scop:
    """Return what PPCG schedules of a region: the instances ``live``.

    Variables that are dead after the region count as its own, as they do in PPCG.
    """
    arrays = tuple(
        replace(array, is_local=array.is_local or (array.ppcg_kills and array.origin == "local"))
        for array in scop.arrays
    )
    scop = replace(scop, arrays=arrays)
    kept = []
    for statement in scop.statements:
        domain = live.extract_set(statement.domain.get_space())
        if domain.is_equal(statement.domain):
            kept.append(statement)
        elif not domain.is_empty():
            accesses = tuple(
                replace(a, relation=a.relation.intersect_domain(domain)) for a in statement.accesses
            )
            time = statement.schedule.intersect_domain(domain)
            kept.append(replace(statement, domain=domain, schedule=time, accesses=accesses))
    return replace(scop, statements=tuple(kept))


def _joined(group: Sequence[Statement], name: str) -> Statement:
    """Return one statement that writes what all of them write, with the first one's reads."""
    first = group[0]
    accesses = (*(s.write for s in group), *first.reads)
    return replace(
        first,
        name=name,
        domain=first.domain.set_tuple_name(name),
        schedule=first.schedule.set_tuple_name(IN, name),
        accesses=tuple(replace(a, relation=a.relation.set_tuple_name(IN, name)) for a in accesses),
    )
