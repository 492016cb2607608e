"""What a launch of PPCG's code does: PPCG's rules in the place of those of eatss.

PPCG gives each block a tile, or several in turn where the grid is smaller; its threads deal out
the points of the tile one by one, cyclically. Loops that are not mapped run inside each thread.
Groups of references are private, shared or global (:mod:`eatss.plan.ppcg_groups`). Where a private
array has more than one element a thread, PPCG unrolls the points of a thread inside the serial
loops; else the points are loops around them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from eatss.analysis.layout import Layout
from eatss.analysis.work import StatementFacts
from eatss.base.frozen import frozen
from eatss.plan.launch import Tiled
from eatss.plan.numbers import Number
from eatss.plan.ppcg_groups import Group, PpcgKernel

GRID_LIMITS = {1: (32768,), 2: (256, 256)}
"""Blocks that PPCG launches at most along each axis unless told otherwise."""


@frozen
class PpcgCandidates(Layout):
    """Layouts of one kernel in PPCG's code: each number is a column of them.

    ``shared_limit_bytes`` is what ``--max-shared-memory`` says; ``unroll`` is 1 with
    ``--unroll-gpu-tile``, else 0. Sizes beyond a loop's trips count as its trips.
    """

    shared_limit_bytes: Number
    unroll: Number

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.shared_limit_bytes)


def ppcg_plan(kernel: PpcgKernel, candidates: PpcgCandidates) -> PpcgPlan:
    """Return what a launch of each candidate's code does."""
    trips = kernel.trips
    tile = {name: np.minimum(size, trips[name]) for name, size in candidates.tile_sizes}
    steps = {name: np.ceil(trips[name] / tile[name]) for name in kernel.band}
    threads = {name: np.minimum(count, tile[name]) for name, count in candidates.block}
    blocks: Number = 1.0
    turns: Number = 1.0
    for name, most in zip(kernel.grid, GRID_LIMITS.get(len(kernel.grid), ()), strict=True):
        launched = np.minimum(steps[name], most)
        blocks = blocks * launched
        turns = turns * steps[name] / launched
    return PpcgPlan(
        kernel=kernel,
        candidates=candidates,
        tile=tile,
        threads=threads,
        steps=steps,
        active=blocks,
        turns=turns,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PpcgPlan(Tiled):
    """A launch of candidates for a kernel.

    There are ``active`` blocks of it, which take so many tiles in ``turns`` one after the other.
    """

    kernel: PpcgKernel
    candidates: PpcgCandidates
    active: Number
    turns: Number

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.candidates)

    def extent(self, loop: str) -> Number:
        """Return the iterations of a loop within a tile."""
        return self.tile[loop] if loop in self.tile else self.kernel.trips[loop]

    def serial_loops(self, statement: StatementFacts) -> list[str]:
        """Return the loops of a statement that a thread runs itself, outermost first."""
        band = [name for name in self.kernel.band if name not in self.kernel.threads]
        inner = [loop.name for loop in self.kernel.facts.inner_loops]
        return [name for name in band + inner if name in statement.loops]

    def fill(self, statement: StatementFacts) -> float:
        """Return the share of the box of its loops that a statement runs at."""
        return statement.fill(self.kernel.trips, float(self.kernel.facts.work.launches or 1))

    # -- what is staged in shared memory ----------------------------------------------------------

    @cached_property
    def _staged(self) -> tuple[list[Number], Number]:
        left, used, staged = self.candidates.shared_limit_bytes, np.zeros(len(self)), []
        for group in self.kernel.groups:
            fits: Number = np.zeros(len(self))
            if group.shareable and not group.private:
                size = prod(self.box(group)) * group.element_bytes
                fits = (size <= left) * self._wanted(group)
                left = left - fits * size
                used = used + fits * size
            staged.append(fits)
        return staged, used

    @property
    def staged(self) -> list[Number]:
        """For each group of the kernel 1 where it is in shared memory, 0 elsewhere.

        PPCG takes the groups in the order of the arrays' names; one that has no room left is
        skipped.
        """
        return self._staged[0]

    @property
    def shared_bytes(self) -> Number:
        """Shared memory of a block."""
        return self._staged[1]

    def _wanted(self, group: Group) -> Number:
        """Return 1 where a group that may be staged is used again in a tile, or not coalesced."""
        names = [name for name in self.kernel.band if self.kernel.trips[name] > 1]
        unit = np.zeros(len(self), dtype=np.int64)  # a bit for each loop whose tile is one step
        for at, name in enumerate(names):
            unit |= (self.tile[name] == 1).astype(np.int64) << at
        found = np.ones(len(self))
        for pattern in np.flatnonzero(np.bincount(unit)):
            still = frozenset(name for at, name in enumerate(names) if pattern >> at & 1)
            if still and not self.kernel.staged_despite(group, still):
                found[unit == pattern] = 0.0
        return found

    def box(self, group: Group) -> list[Number]:
        """Return the extents of the box that a group is copied as, outermost first."""
        assert group.box is not None
        sizes = []
        for terms, spread in group.box:
            size: Number = 1.0 + spread
            for loop, factor in terms:
                size = size + abs(factor) * (self.extent(loop) - 1)
            sizes.append(size)
        return sizes

    # -- the points of a thread -------------------------------------------------------------------

    @cached_property
    def unrolled(self) -> Number:
        """1 where the points of a thread stand in the text one by one."""
        private = any(group.private for group in self.kernel.groups)
        return 1.0 * ((self.all_points > 1) & (private | (self.candidates.unroll > 0)))

    @cached_property
    def local(self) -> Number:
        """1 where private arrays are indexed by a serial loop and so leave the registers.

        PPCG indexes them so where a statement ties a serial loop to a thread's points along
        another.
        """
        private = {u.statement for group in self.kernel.groups if group.private for u in group.uses}
        local: Number = 0.0
        for at, statement in enumerate(self.kernel.statements):
            if statement.tied and at in private:
                for name in self.kernel.threads:
                    if name in statement.coupled:
                        local = np.maximum(local, 1.0 * (self.points[name] > 1))
        return local

    @cached_property
    def guarded(self) -> Number:
        """The share of a thread's points that stand behind tests of their own.

        Where the end of a loop cuts tiles off, the points that may lie outside do. Nothing is
        shared between them: each loads what it needs, and waits for it.
        """
        free: Number = 1.0
        for name, points in self.points.items():
            tile, count = self.tile[name], self.threads[name]
            left = np.mod(self.kernel.trips[name], tile)
            inside = np.where(left > 0, np.floor(left / count), points)
            inside = np.where(np.mod(tile, count) > 0, inside - 1.0, inside)
            free = free * np.where(points > 1, np.clip(inside / points, 0.0, 1.0), 1.0)
        return 1.0 - free

    @cached_property
    def cut_off(self) -> Number:
        """1 where the end of a loop cuts a tile, or a tile the threads of a block, off."""
        cut: Number = 0.0
        for name, count in self.threads.items():
            tile = self.tile[name]
            cut = np.maximum(cut, 1.0 * (np.mod(self.kernel.trips[name], tile) > 0))
            cut = np.maximum(cut, 1.0 * (np.mod(tile, count) > 0))
        return cut
