"""What leads to what, of a few dozen nodes: a package for large graphs takes longer to load."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def components(
    nodes: Sequence[_Node], edges: Iterable[tuple[_Node, _Node]]
) -> tuple[tuple[_Node, ...], ...]:
    """Return nodes that lead to each other together, each group behind all that leads to it.

    Of groups that may come next that with the first node does; each keeps the order of ``nodes``.
    """
    before = {node: {node} for node in nodes}
    for one, other in edges:
        before[other].add(one)
    for middle in nodes:  # Warshall, On Boolean matrices, 1962
        for own in before.values():
            own.update(before[middle] if middle in own else ())
    left, found = [*nodes], list[tuple[_Node, ...]]()
    while left:
        ready = next(n for n in left if all(n in before[o] for o in before[n].intersection(left)))
        found.append(tuple(n for n in left if before[n] == before[ready]))
        left = [n for n in left if n not in found[-1]]
    return tuple(found)
