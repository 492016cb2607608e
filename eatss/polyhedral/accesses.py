"""The accesses that can take part in a dependence, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from eatss.scops import Access, Scop, Statement

Place: TypeAlias = tuple[str, int]
"""An access: the name of its statement, and its number there."""


@dataclass(frozen=True, slots=True)
class NumberedAccess:
    """An access with its number among all accesses of the scop, in source order, and its place."""

    number: int
    statement: Statement
    access: Access
    place: Place


def dependent_accesses(scop: Scop) -> tuple[NumberedAccess, ...]:
    """Return the accesses to arrays that the region writes, without repetitions.

    Reads of an array that nothing writes depend on nothing, and a statement that reads
    one element twice depends on it once. Leaving both out keeps a sum of thousands
    of terms cheap.
    """
    written = {a.array for s in scop.statements for a in s.accesses if a.is_write}
    found: list[NumberedAccess] = []
    number = 0
    for statement in scop.statements:
        firsts = first_equal(statement.accesses)
        for position, access in enumerate(statement.accesses):
            if access.array in written and firsts[position] == position:
                found.append(NumberedAccess(number, statement, access, (statement.name, position)))
            number += 1
    return tuple(found)


def first_equal(accesses: Sequence[Access]) -> tuple[int, ...]:
    """Return, for each access, the position of the first one spelled alike with the same relation.

    Relations are compared as sets: isl simplifies them as they are used, so that two
    equal ones need not print alike.
    """
    seen: dict[tuple[bool, str, str], list[int]] = {}
    firsts = []
    for position, access in enumerate(accesses):
        alike = seen.setdefault((access.is_write, access.array, access.text), [])
        equal = (p for p in alike if accesses[p].relation.is_equal(access.relation))
        first = next(equal, position)
        if first == position:
            alike.append(position)
        firsts.append(first)
    return tuple(firsts)
