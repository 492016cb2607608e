"""Run regions of numbers: their instances in the order of time, and what each access touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import islpy as isl

from eatss.polyhedral.isl_names import points_of
from eatss.polyhedral.scop import Scop, Statement

Element = tuple[str, tuple[int, ...]]


def instances(scop: Scop) -> Iterator[tuple[Statement, isl.Set, Mapping[int, Element]]]:
    """Yield the instances of a region in the order of time, with what each access touches."""
    timed = []
    for statement in scop.statements:
        for at in points_of(statement.domain):
            one = isl.Set.read_from_str(scop.isl_context, f"{{ {statement.name}{list(at)} }}")
            (time,) = points_of(one.apply(statement.schedule))
            touched = {
                number: (access.array, points_of(one.apply(access.relation))[0])
                for number, access in enumerate(statement.accesses)
            }
            timed.append((time, statement, one, touched))
    for _, statement, one, touched in sorted(timed, key=lambda found: found[0]):
        yield statement, one, touched
