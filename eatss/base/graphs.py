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
            if middle in own:
                own.update(before[middle])
    left = dict.fromkeys(tuple(n for n in nodes if before[n] == before[own]) for own in nodes)
    found: list[tuple[_Node, ...]] = []
    there: set[_Node] = set()
    while left:
        ready = next(own for own in left if before[own[0]] <= there.union(own))
        found.append(ready)
        there.update(ready)
        del left[ready]
    return tuple(found)
