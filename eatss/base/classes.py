"""Sets of what belongs together, joined pair by pair."""

from __future__ import annotations

from collections.abc import Iterable
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
