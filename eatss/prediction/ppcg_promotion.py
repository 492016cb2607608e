"""Which groups of references PPCG copies to shared memory, and how large their boxes are."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from eatss.prediction.demand import Column
from eatss.prediction.ppcg_groups import Group, PpcgKernel, staged_despite
from eatss.prediction.ppcg_shapes import PpcgCandidates


def shared_groups(kernel: PpcgKernel, candidates: PpcgCandidates) -> tuple[list[Column], Column]:
    """Return which groups PPCG stages, and the shared memory of a block in bytes.

    PPCG takes the groups in the order of the arrays' names; one that has no room left is skipped.

    Returns:
        For each group of the kernel 1 where it is staged and 0 elsewhere, an entry a candidate;
        and the bytes, an entry a candidate.
    """
    tile = {name: np.minimum(size, kernel.trips[name]) for name, size in candidates.tiles.items()}
    left = candidates.shared_limit_bytes.copy()
    used = np.zeros(len(candidates))
    staged = []
    for group in kernel.groups:
        if group.private or not group.shareable:
            staged.append(np.zeros(len(candidates)))
            continue
        size = box_elements(kernel, group, tile) * group.element_bytes
        fits = (size <= left).astype(np.float64) * wanted(kernel, group, tile)
        left = left - fits * size
        used = used + fits * size
        staged.append(fits)
    return staged, used


def wanted(kernel: PpcgKernel, group: Group, tile: Mapping[str, Column]) -> Column:
    """Return 1 where a group that may be staged is used again within a tile, or not coalesced."""
    names = [name for name in kernel.band if kernel.trips[name] > 1]
    size = len(next(iter(tile.values())))
    unit = np.zeros(size, dtype=np.int64)  # a bit for each loop whose tile is one iteration
    for at, name in enumerate(names):
        unit |= (tile[name] == 1).astype(np.int64) << at
    found = np.ones(size)
    for pattern in np.flatnonzero(np.bincount(unit)):
        still = frozenset(name for at, name in enumerate(names) if pattern >> at & 1)
        if still and not staged_despite(kernel, group, still):
            found[unit == pattern] = 0.0
    return found


def box_sizes(kernel: PpcgKernel, group: Group, tile: Mapping[str, Column]) -> list[Column]:
    """Return the extents of the box that a group is copied as, in elements.

    One column a dimension of the array, outermost first, with an entry a candidate.
    """
    assert group.box is not None
    inner = dict(kernel.inner)
    sizes = []
    for terms, spread in group.box:
        size: Column = np.full(len(next(iter(tile.values()))), 1.0 + spread)
        for loop, factor in terms:
            extent = tile[loop] if loop in tile else inner.get(loop, 1)
            size = size + abs(factor) * (extent - 1)
        sizes.append(size)
    return sizes


def box_elements(kernel: PpcgKernel, group: Group, tile: Mapping[str, Column]) -> Column:
    """Return the elements of the box, an entry a candidate."""
    return np.asarray(prod(box_sizes(kernel, group, tile)))
