"""A name that nothing has yet."""

from __future__ import annotations


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
