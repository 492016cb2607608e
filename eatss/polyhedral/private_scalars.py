"""Regions whose scalars keep no loop from being shared: forwarded first, then expanded."""

from __future__ import annotations

from eatss.polyhedral.expansion import with_expanded_scalars
from eatss.polyhedral.forwarded_scalars import with_forwarded_scalars
from eatss.scops import Scop


def with_private_scalars(scop: Scop) -> tuple[Scop, ...]:
    """Return a region with scalars expanded, none where none can be.

    A second one calls functions again for each reader of a value, where the first does not.
    """
    found: list[Scop] = []
    for calls in (False, True):
        forwarded = with_forwarded_scalars(scop, calls=calls)
        if found and len(forwarded.statements) == len(found[0].statements):
            break
        expanded = with_expanded_scalars(forwarded)
        if expanded is forwarded:
            break
        found.append(expanded)
    return tuple(found)
