"""Sets of what belongs together, joined pair by pair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

_Member = TypeVar("_Member")


def cycles_in_order(
    members: Iterable[_Member], edges: Iterable[tuple[_Member, _Member]]
) -> list[list[_Member]]:
    """Return members that edges lead around between together, behind those that lead to them.

    Of several that may come next, those that come first among the members do.
    """
    every = [*members]
    reached = {one: {one} for one in every}
    for one, other in edges:
        reached[one].add(other)
    for through in every:
        for own in reached.values():
            if through in own:
                own.update(reached[through])
    found, left = list[list[_Member]](), every
    while left:
        first = next(
            one for one in left if all(own in reached[one] for own in left if one in reached[own])
        )
        found.append([one for one in left if one in reached[first] and first in reached[one]])
        left = [one for one in left if one not in found[-1]]
    return found


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
