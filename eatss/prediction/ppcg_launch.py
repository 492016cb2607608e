"""One launch of PPCG's code in numbers: tiles, threads, boxes, registers, blocks of an SM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from eatss.analysis.layout import Layout
from eatss.analysis.work import StatementFacts
from eatss.frozen import frozen
from eatss.plan.launch import lanes_of
from eatss.plan.numbers import Number
from eatss.plan.rows import element_words
from eatss.prediction.card import Card
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.occupancy import BLOCK_SHARED_BYTES, resident_blocks
from eatss.prediction.ppcg_groups import Group, PpcgKernel, staged_despite

GRID_LIMITS = {1: (32768,), 2: (256, 256)}
"""Blocks that PPCG launches at most along each axis unless told otherwise."""

CARVE_OUTS_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Shared memory that an SM can be set to; what is left is L1 [CUDA C++ Programming Guide]."""

LEAST_L1_BYTES = 16 * 1024.0

_MOST_ADDRESSES = 16.0


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


@dataclass(frozen=True, kw_only=True, eq=False)
class PpcgLaunch:
    """Candidates for a kernel on a card; every column has an entry a candidate.

    ``kept`` is what was found about L1 (:mod:`eatss.prediction.ppcg_memory`).
    """

    kernel: PpcgKernel
    candidates: PpcgCandidates
    card: Card
    constants: CodeConstants
    kept: dict[frozenset[str], Number] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.candidates)

    @property
    def zeros(self) -> Number:
        """A column of nothing."""
        return np.zeros(len(self))

    @property
    def ones(self) -> Number:
        """A column of ones."""
        return np.ones(len(self))

    # -- loops ----------------------------------------------------------------------------------

    @cached_property
    def tile(self) -> dict[str, Number]:
        """Iterations of a tile by loop of the band."""
        trips = self.kernel.trips
        return {n: np.minimum(size, trips[n]) for n, size in self.candidates.tile_sizes}

    @cached_property
    def steps(self) -> dict[str, Number]:
        """Tiles of a loop of the band."""
        return {n: np.ceil(self.kernel.trips[n] / self.tile[n]) for n in self.kernel.band}

    @cached_property
    def block(self) -> dict[str, Number]:
        """Threads of a block by loop mapped to threads."""
        return {n: np.minimum(count, self.tile[n]) for n, count in self.candidates.block}

    @cached_property
    def points(self) -> dict[str, Number]:
        """Points of a thread by loop mapped to threads."""
        return {n: np.ceil(self.tile[n] / self.block[n]) for n in self.kernel.threads}

    @cached_property
    def threads(self) -> Number:
        """Threads of a block."""
        return np.asarray(prod(self.block.values(), start=self.ones))

    @cached_property
    def _grid(self) -> tuple[Number, Number]:
        blocks, turns = self.ones, self.ones
        limits = GRID_LIMITS.get(len(self.kernel.grid), ())
        for name, most in zip(self.kernel.grid, limits, strict=True):
            launched = np.minimum(self.steps[name], most)
            blocks = blocks * launched
            turns = turns * self.steps[name] / launched
        return blocks, turns

    @property
    def blocks(self) -> Number:
        """Blocks of a launch."""
        return self._grid[0]

    @property
    def turns(self) -> Number:
        """Tiles that a block takes one after the other, because a launch has few blocks."""
        return self._grid[1]

    def points_of(self, loops: Iterable[str]) -> Number:
        """Return the points of a thread along some mapped loops."""
        return np.asarray(prod((self.points[name] for name in loops), start=self.ones))

    def extent(self, loop: str) -> Number:
        """Return the iterations of a loop within a tile."""
        found = self.tile.get(loop)
        return self.ones * self.kernel.trips[loop] if found is None else found

    def serial_loops(self, statement: StatementFacts) -> list[str]:
        """Return the loops of a statement that a thread runs itself, outermost first."""
        band = [name for name in self.kernel.band if name not in self.kernel.threads]
        inner = [name for name, _ in self.kernel.inner]
        return [name for name in band + inner if name in statement.loops]

    def fill(self, statement: StatementFacts) -> float:
        """Return the share of the box of its loops that a statement runs at."""
        launches = self.kernel.facts.work.launches or 1
        return statement.fill(self.kernel.trips, float(launches))

    # -- what is staged in shared memory --------------------------------------------------------

    @cached_property
    def _staged(self) -> tuple[list[Number], Number]:
        left, used, staged = self.candidates.shared_limit_bytes, self.zeros, []
        for group in self.kernel.groups:
            fits = self.zeros
            if group.shareable and not group.private:
                size = np.asarray(prod(self.box_sizes(group))) * group.element_bytes
                fits = (size <= left).astype(np.float64) * self._wanted(group)
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
        found = self.ones
        for pattern in np.flatnonzero(np.bincount(unit)):
            still = frozenset(name for at, name in enumerate(names) if pattern >> at & 1)
            if still and not staged_despite(self.kernel, group, still):
                found[unit == pattern] = 0.0
        return found

    def box_sizes(self, group: Group) -> list[Number]:
        """Return the extents of the box that a group is copied as, outermost first."""
        assert group.box is not None
        inner = dict(self.kernel.inner)
        sizes = []
        for terms, spread in group.box:
            size = self.ones + spread
            for loop, factor in terms:
                size = size + abs(factor) * (self.tile.get(loop, inner.get(loop, 1)) - 1)
            sizes.append(size)
        return sizes

    # -- what a thread and an SM have -----------------------------------------------------------

    @cached_property
    def lanes(self) -> list[Number]:
        """Lanes of a warp along each axis, ``x`` first."""
        return lanes_of([self.block[name] for name in reversed(self.kernel.threads)])

    @cached_property
    def warps(self) -> Number:
        """Warps of a block."""
        return np.ceil(self.threads / self.card.warp)

    @property
    def launched_warps(self) -> Number:
        """Warps of a launch."""
        return self.blocks * self.warps

    @cached_property
    def unrolled(self) -> Number:
        """1 where the points of a thread stand in the text one by one."""
        private = any(group.private for group in self.kernel.groups)
        several = self.points_of(self.kernel.threads) > 1
        return np.where(several & (private | (self.candidates.unroll > 0)), 1.0, 0.0)

    @cached_property
    def local(self) -> Number:
        """1 where private arrays are indexed by a serial loop and so leave the registers.

        PPCG indexes them so where a statement ties a serial loop to a thread's points along
        another.
        """
        kernel, local = self.kernel, self.zeros
        private = {use.statement for group in kernel.groups if group.private for use in group.uses}
        for at, statement in enumerate(kernel.facts.work.statements):
            if statement.tied and at in private:
                for name in kernel.threads:
                    if name in statement.coupled:
                        local = np.maximum(local, (self.points[name] > 1) * 1.0)
        return local

    @cached_property
    def guarded(self) -> Number:
        """The share of a thread's points that stand behind tests of their own.

        Where the end of a loop cuts tiles off, the points that may lie outside do. Nothing is
        shared between them: each loads what it needs, and waits for it.
        """
        free = self.ones
        for name in self.kernel.threads:
            points, block = self.points[name], self.block[name]
            left = np.mod(self.kernel.trips[name], self.tile[name])
            inside = np.where(left > 0, np.floor(left / block), points)
            inside = np.where(np.mod(self.tile[name], block) > 0, inside - 1.0, inside)
            free = free * np.where(points > 1, np.clip(inside / points, 0.0, 1.0), 1.0)
        return 1.0 - free

    @cached_property
    def cut_off(self) -> Number:
        """1 where the end of a loop cuts a tile, or a tile the threads of a block, off."""
        cut = self.zeros
        for name in self.kernel.threads:
            tile = self.tile[name]
            cut = np.maximum(cut, (np.mod(self.kernel.trips[name], tile) > 0) * 1.0)
            cut = np.maximum(cut, (np.mod(tile, self.block[name]) > 0) * 1.0)
        return cut

    @cached_property
    def _wanted_registers(self) -> Number:
        kernel, constants = self.kernel, self.constants
        width = element_words(kernel.facts.element_bytes)
        operands = max(
            (sum(a.reads for a in s.accesses) for s in kernel.facts.work.statements), default=1
        )
        points = self.points_of(kernel.threads)
        addresses = np.where(self.unrolled > 0, np.minimum(points, _MOST_ADDRESSES), 1.0)
        words = self.zeros
        for group in kernel.groups:
            if group.private:
                words = words + points * element_words(group.element_bytes)
        return np.asarray(
            constants.base_registers
            + words * (1.0 - self.local) * constants.private_register_factor
            + operands * width * 2
            + addresses * constants.registers_per_point
        )

    @cached_property
    def registers(self) -> Number:
        """Registers of a thread."""
        return np.minimum(self._wanted_registers, float(self.card.registers_per_thread))

    @property
    def spilled_words(self) -> Number:
        """Registers that a thread lacks."""
        return self._wanted_registers - self.registers

    @cached_property
    def resident(self) -> Number:
        """Blocks that fit an SM."""
        return resident_blocks(
            self.threads,
            self.registers,
            self.shared_bytes,
            self.card,
            self.card.shared_per_block_bytes,
        )

    @cached_property
    def present(self) -> Number:
        """Blocks of an SM that are there."""
        return np.clip(np.ceil(self.blocks / self.card.sms), 1.0, self.resident)

    @cached_property
    def l1_bytes(self) -> Number:
        """L1 of an SM beside shared memory."""
        carved = self.resident * (self.shared_bytes + BLOCK_SHARED_BYTES) * (self.shared_bytes > 0)
        return l1_left(carved, self.card)


def l1_left(shared_bytes: Number, card: Card) -> Number:
    """Return the bytes of L1 of an SM beside the shared memory of all blocks that fit it.

    The driver takes the least carve-out that keeps no block from running, even where fewer run.
    """
    sizes = np.array([kib * 1024.0 for kib in CARVE_OUTS_KIB])
    sizes = sizes[sizes <= card.shared_per_sm_bytes]
    at = np.minimum(np.searchsorted(sizes, shared_bytes), len(sizes) - 1)
    taken = np.maximum(sizes[at], shared_bytes)
    return np.asarray(np.maximum(LEAST_L1_BYTES, card.l1_shared_bytes - taken))
