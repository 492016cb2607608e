"""Sets of what belongs together, joined pair by pair, or by what leads to what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

_Member = TypeVar("_Member")


class Classes(Generic[_Member]):
    """Each member alone, until it is joined with others."""

    def __init__(self, members: Iterable[_Member] = ()) -> None:
        """Take members, each in a class of its own."""
        self.of = {member: {member} for member in members}

    def join(self, *members: _Member) -> None:
        """Put the classes of members into one; those that are not known yet are alone."""
        joined = set(members).union(*(self.of.get(member, ()) for member in members))
        self.of.update(dict.fromkeys(joined, joined))

    def sets(self) -> list[set[_Member]]:
        """Return all classes, in the order of their first members."""
        return list({id(own): own for own in self.of.values()}.values())


def closure(edges: Mapping[_Member, Iterable[_Member]]) -> dict[_Member, set[_Member]]:
    """Return what each member leads to, maybe through others: itself, and what edges say."""
    found = {one: {one, *ends} for one, ends in edges.items()}
    for through, own in found.items():
        for other in found.values():
            if through in other:
                other.update(own)
    return found


def tied_in_order(edges: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Return members that lead to each other together, behind what leads to them, least first."""
    found = closure(edges)
    left = {
        min(ties): ties for one in found for ties in [{o for o in found[one] if one in found[o]}]
    }
    order = []
    while left:
        ready = min(one for one in left if not any(one in found[o] for o in left if o != one))
        order.append(sorted(left.pop(ready)))
    return order
