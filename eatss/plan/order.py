"""Where launches begin: to and fro through arrays of which L2 has a part only.

    k0: blocks 0, 1, …, n    write all of S, and the end of it is in L2
    k1: blocks n, …, 1, 0    begin with that

Blocks start in the order of their numbers. A launch that takes them from the last one finds what L2
has of an array before it is replaced; what it writes there need not have gone to memory before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from eatss.analysis.facts import AccessFacts, KernelFacts, touched_bytes
from eatss.base.frozen import Names, frozen
from eatss.program.expression import SizePairs

_LEAST_SHARE = 0.5
"""Share of L2 that a launch touches of an array at least: of less all may be there anyway."""


_Walk: TypeAlias = tuple[float, tuple[int, bool] | None]
"""Bytes of an array, and the dimension along which blocks go, and whether they go up."""


@frozen
class OrderedLaunch:
    """A launch of some statements of kernels; ``loops`` are those of blocks, the slowest first.

    They come with the tiles of a block.
    """

    kernels: tuple[KernelFacts, ...]
    statements: Names
    loops: SizePairs

    def walks(self) -> dict[str, _Walk]:
        """Return of each array the bytes that it touches, and where blocks go in it."""
        found: dict[str, _Walk] = {}
        for facts in self.kernels:
            trips = dict(facts.work.trips)
            several = (loop for loop, tile in self.loops if trips.get(loop, 0) > tile)
            slowest = next(several, "")
            for access in _accesses(facts, self.statements):
                boxes = [] if access.touched is None else [access.touched]
                steps = enumerate(dict(terms).get(slowest, 0) for terms in access.terms)
                walk = touched_bytes(boxes), next(((at, by > 0) for at, by in steps if by), None)
                found[access.array] = max(walk, found.get(access.array, walk), key=_bytes)
        return found


def backwards(launches: Iterable[OrderedLaunch], l2_bytes: int) -> list[bool]:
    """Tell which launches take their blocks from the last one.

    They go along the array of which they touch the most as the launch before did.

    Args:
        launches: in their order.
        l2_bytes: of the card.
    """
    found: list[bool] = []
    last: dict[str, tuple[tuple[int, bool] | None, bool]] = {}
    for launch in launches:
        walks = launch.walks()
        known = [(*walk, *last[name]) for name, walk in walks.items() if name in last]
        most, own, other, turned = max(known, key=_bytes, default=(0.0, None, None, False))
        fits = most <= _LEAST_SHARE * l2_bytes or own is None or own != other
        found.append(not fits and not turned)
        last |= {name: (walk[1], found[-1]) for name, walk in walks.items()}
    return found


def _accesses(facts: KernelFacts, statements: Names) -> Iterable[AccessFacts]:
    own = (one for one in facts.work.statements if one.name in statements)
    return (access for one in own for access in one.accesses)


def _bytes(walk: Sequence[Any]) -> float:
    return float(walk[0])
