"""Candidates for a kernel in numbers: tiles, threads, points of a thread, blocks of a launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from eatss.analysis.work import StatementFacts
from eatss.prediction.demand import Column
from eatss.prediction.ppcg_groups import PpcgKernel

GRID_LIMITS = {1: (32768,), 2: (256, 256)}
"""Blocks that PPCG launches at most along each axis unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PpcgCandidates:
    """Choices for one kernel, an entry each.

    ``tiles`` by loop of the band, in iterations; ``blocks`` by loop mapped to threads, in threads;
    ``shared_limit_bytes`` what ``--max-shared-memory`` says; ``unroll`` 1 with
    ``--unroll-gpu-tile``, else 0. Sizes beyond a loop's trips count as its trips.
    """

    tiles: Mapping[str, Column]
    blocks: Mapping[str, Column]
    shared_limit_bytes: Column
    unroll: Column

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.shared_limit_bytes)


@dataclass(frozen=True, slots=True)
class Shape:
    """The loops of candidates in numbers, an entry a candidate.

    ``tile`` and ``steps`` (tiles of a loop) are by loop of the band, ``block`` (threads) and
    ``points`` (of a thread) by loop mapped to threads. ``turns`` are the tiles that a block of
    ``threads`` takes one after the other, because a launch has ``blocks`` only.
    """

    tile: dict[str, Column]
    block: dict[str, Column]
    points: dict[str, Column]
    steps: dict[str, Column]
    blocks: Column
    threads: Column
    turns: Column

    def points_of(self, loops: Iterable[str]) -> Column:
        """Return the points of a thread along some mapped loops."""
        start = np.ones(len(self.blocks))
        return np.asarray(prod((self.points[name] for name in loops), start=start))

    def extent(self, kernel: PpcgKernel, loop: str) -> Column:
        """Return the iterations of a loop within a tile."""
        found = self.tile.get(loop)
        return np.full(len(self.blocks), float(kernel.trips[loop])) if found is None else found


def shape_of(kernel: PpcgKernel, candidates: PpcgCandidates) -> Shape:
    """Return the numbers of candidates."""
    size = len(candidates)
    tile = {n: np.minimum(candidates.tiles[n], kernel.trips[n]) for n in kernel.band}
    block = {n: np.minimum(candidates.blocks[n], tile[n]) for n in kernel.threads}
    steps = {n: np.ceil(kernel.trips[n] / tile[n]) for n in kernel.band}
    points = {n: np.ceil(tile[n] / block[n]) for n in kernel.threads}
    blocks, turns = np.ones(size), np.ones(size)
    for name, most in zip(kernel.grid, GRID_LIMITS.get(len(kernel.grid), ()), strict=True):
        launched = np.minimum(steps[name], most)
        blocks = blocks * launched
        turns = turns * steps[name] / launched
    threads = np.asarray(prod(block.values(), start=np.ones(size)))
    return Shape(tile, block, points, steps, blocks, threads, turns)


def serial_loops(kernel: PpcgKernel, statement: StatementFacts) -> list[str]:
    """Return the loops of a statement that a thread runs itself, outermost first."""
    band = [name for name in kernel.band if name not in kernel.threads]
    inner = [name for name, _ in kernel.inner]
    return [name for name in band + inner if name in statement.loops]


def fill_of(kernel: PpcgKernel, statement: StatementFacts) -> float:
    """Return the share of the box of its loops that a statement runs at."""
    return statement.fill(kernel.trips, float(kernel.facts.work.launches or 1))


def guarded_share(kernel: PpcgKernel, shape: Shape) -> Column:
    """Return the share of a thread's points that stand behind tests of their own.

    Where the end of a loop cuts tiles off, the points that may lie outside do. Nothing is
    shared between them: each loads what it needs, and waits for it.
    """
    free = np.ones(len(shape.blocks))
    for name in kernel.threads:
        points, block = shape.points[name], shape.block[name]
        left = np.mod(kernel.trips[name], shape.tile[name])
        inside = np.where(left > 0, np.floor(left / block), points)
        inside = np.where(np.mod(shape.tile[name], block) > 0, inside - 1.0, inside)
        free = free * np.where(points > 1, np.clip(inside / points, 0.0, 1.0), 1.0)
    return 1.0 - free


def cut_off(kernel: PpcgKernel, shape: Shape) -> Column:
    """Return 1 where the end of a loop cuts a tile, or a tile the threads of a block, off."""
    cut = np.zeros(len(shape.blocks))
    for name in kernel.threads:
        tile = shape.tile[name]
        cut = np.maximum(cut, (np.mod(kernel.trips[name], tile) > 0) * 1.0)
        cut = np.maximum(cut, (np.mod(tile, shape.block[name]) > 0) * 1.0)
    return cut
