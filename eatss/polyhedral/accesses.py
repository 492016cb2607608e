"""The accesses that can take part in a dependence, each once."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.scop import Access, Scop, Statement


@dataclass(frozen=True, slots=True)
class NumberedAccess:
    """An access with its number: its place among all accesses of the scop, in source order."""

    number: int
    statement: Statement
    access: Access


def dependent_accesses(scop: Scop) -> tuple[NumberedAccess, ...]:
    """Return the accesses to arrays that the region writes, without repetitions.

    Reads of an array that nothing writes depend on nothing, and a statement that reads
    one element twice depends on it once. Leaving both out keeps a sum of thousands
    of terms cheap.
    """
    written = {statement.write.array for statement in scop.statements}
    found: list[NumberedAccess] = []
    number = 0
    for statement in scop.statements:
        seen: set[tuple[bool, str]] = set()
        for access in statement.accesses:
            identity = (access.is_write, f"{access.relation}")
            if access.array in written and identity not in seen:
                seen.add(identity)
                found.append(NumberedAccess(number, statement, access))
            number += 1
    return tuple(found)
