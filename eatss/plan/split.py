"""Sums that lanes of a warp and blocks share (split-K): the threads and the blocks of them."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.plan.numbers import Number, chosen, least, most

_AXES_BEFORE_Z = 2


def threads_beside_lanes(
    threads: Sequence[Number], lanes: Number, most_threads: int, most_along_z: int
) -> list[Number]:
    """Return the threads along loops beside the lanes that share a sum: as many as there is room.

    Args:
        threads: wanted along each loop, the one along x first. Lanes go before them, if there are
            several; from the third axis on loops share z.
        lanes: threads that share a sum.
        most_threads: of a block.
        most_along_z: of a block along z.
    """
    left, along_z = most(1, most_threads // lanes), 1
    found: list[Number] = []
    for position, wanted in enumerate(threads):
        is_z = position + (lanes > 1) >= _AXES_BEFORE_Z
        here = least(wanted, left)
        here = chosen(is_z, least(here, most_along_z // along_z), here)
        along_z = chosen(is_z, along_z * here, along_z)
        left = left // here
        found.append(here)
    return found


def chunks_of(wanted: Number, trips: Number, tile: Number) -> Number:
    """Return how many blocks share a sum: as many as wanted, if each has a tile."""
    return most(1, least(wanted, -(-trips // tile)))


def widening(threads: Number, lanes: Number, most_threads: int) -> Number:
    """Return how many times the threads along x launches have beside one whose sums lanes share.

    Their blocks are as large.
    """
    return most(1, least(lanes, most_threads // threads))
