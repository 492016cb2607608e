"""What PPCG's code for a kernel asks of a card, as a function of tiles, blocks and options.

PPCG gives each block a tile, or several in turn where the grid is smaller; its threads deal out
the points of the tile one by one, cyclically. Loops that are not mapped run inside each thread.
Groups of references are private, shared or global (:mod:`eatss.prediction.ppcg_groups`). Where a
private array has more than one element a thread, PPCG unrolls the points of a thread inside the
serial loops; else the points are loops around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from eatss.analysis.work import ASSUMED_SIZE, AccessFacts, StatementFacts
from eatss.prediction.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    bank_wavefronts,
    lanes_of,
    line_wavefronts,
    sectors,
)
from eatss.prediction.card import Card
from eatss.prediction.demand import Column, Demand
from eatss.prediction.habits import Habits
from eatss.prediction.ppcg_groups import Group, PpcgKernel, staged_despite
from eatss.prediction.terms import resident_blocks

GRID_LIMITS = {1: (32768,), 2: (256, 256)}
"""Blocks that PPCG launches at most along each axis unless told otherwise."""

PAGE_PIECE_BYTES = 256

MOST_CROWDED = 16
"""Sets of L1 that lines a power of two apart miss, at most, for each one they meet in."""

_WIDE_BYTES = 8
_SLOW = ("divide", "square root", "function")


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
class _Shape:
    """The loops of a candidate in numbers."""

    tile: dict[str, Column]
    block: dict[str, Column]
    points: dict[str, Column]
    steps: dict[str, Column]
    blocks: Column
    threads: Column
    turns: Column


def ppcg_demand(
    kernel: PpcgKernel, candidates: PpcgCandidates, card: Card, habits: Habits
) -> Demand:
    """Return what each candidate's code asks of the card in one launch, an entry a candidate.

    Args:
        kernel: of :func:`~eatss.prediction.ppcg_groups.ppcg_kernel`.
        candidates: tiles, blocks and options.
        card: what decides how many blocks run at a time and what caches hold.
        habits: instructions and cycles of the code.
    """
    return _Counting(kernel, candidates, card, habits).demand()


CARVE_OUTS_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Shared memory that an SM can be set to; what is left is L1 [CUDA C++ Programming Guide]."""

LEAST_L1_BYTES = 16 * 1024.0


def l1_left(shared_bytes: Column, card: Card) -> Column:
    """Return the bytes of L1 of an SM beside the shared memory of all blocks that fit it.

    The driver sets the least carve-out that keeps no block from running, even where fewer run.
    """
    sizes = np.array([kib * 1024.0 for kib in CARVE_OUTS_KIB])
    sizes = sizes[sizes <= card.shared_per_sm_bytes]
    at = np.minimum(np.searchsorted(sizes, shared_bytes), len(sizes) - 1)
    return np.maximum(LEAST_L1_BYTES, card.l1_shared_bytes - np.maximum(sizes[at], shared_bytes))


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
    unit = np.stack([tile[name] == 1 for name in names], axis=1)
    found = np.ones(len(unit))
    if not unit.any():
        return found
    for pattern in np.unique(unit, axis=0):
        still = frozenset(name for name, one in zip(names, pattern, strict=True) if one)
        if still and not staged_despite(kernel, group, still):
            found[(unit == pattern).all(axis=1)] = 0.0
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


@dataclass(slots=True)
class _Instance:
    """What one instance of a statement does to memory, summed over its accesses.

    ``loads`` and ``addresses`` are instructions; ``load_cycles`` what the slowest load waits for,
    ``spread`` what requests of many lines or banks take in addition; ``stores`` 1 where something
    is stored to memory in the innermost loop.
    """

    size: int
    loads: Column = field(init=False)
    addresses: Column = field(init=False)
    load_cycles: Column = field(init=False)
    spread: Column = field(init=False)
    stores: Column = field(init=False)

    def __post_init__(self) -> None:
        self.loads = np.zeros(self.size)
        self.addresses = np.zeros(self.size)
        self.load_cycles = np.zeros(self.size)
        self.spread = np.zeros(self.size)
        self.stores = np.zeros(self.size)


class _Counting:
    """Adds up what one thread, warp and block do."""

    def __init__(
        self, kernel: PpcgKernel, candidates: PpcgCandidates, card: Card, habits: Habits
    ) -> None:
        self.kernel = kernel
        self.card = card
        self.habits = habits
        self.size = len(candidates)
        self.unroll = candidates.unroll
        self.shape = _shape(kernel, candidates)
        self.staged, self.shared_bytes = shared_groups(kernel, candidates)
        self.lanes = lanes_of([self.shape.block[name] for name in reversed(kernel.threads)])
        self.warps = np.ceil(self.shape.threads / card.warp)
        self.zero = np.zeros(self.size)
        self._alike = {s.name: _alike(s) for s in kernel.facts.work.statements}
        self.instructions = self.zero.copy()
        self.fp64 = self.zero.copy()
        self.fp32 = self.zero.copy()
        self.l1 = self.zero.copy()
        self.shared = self.zero.copy()
        self.l2_bytes = self.zero.copy()
        self.chain = self.zero.copy()

    def demand(self) -> Demand:
        """Return the sums."""
        kernel, shape, card = self.kernel, self.shape, self.card
        work = kernel.facts.work
        launches = float(work.launches or 1)
        everything = sum(a.elements * a.element_bytes for a in work.arrays)
        lost = 2 * everything / card.l2_bytes - 1.0
        self._fresh = min(1.0, max(0.05, lost)) if launches > 1 else 1.0
        self._stays = self._fresh < 1.0
        self._local = self._in_local_memory()
        private_words = self._private_words()
        self._unrolled = self._is_unrolled()
        registers = self._registers(private_words)
        spilled = np.maximum(0.0, registers - self._register_cap()) * 4
        registers = np.minimum(registers, self._register_cap())
        self._resident = resident_blocks(self.shape.threads, registers, self.shared_bytes, card)
        self._guarded = self._guarded_share()
        self._l1_bytes = l1_left(self._resident * (self.shared_bytes + 1024) * (self.shared_bytes > 0), card)
        self._present = np.clip(np.ceil(self.shape.blocks / card.sms), 1.0, self._resident)
        self._spans: dict[frozenset[str], Column] = {}
        self._copies()
        for at, statement in enumerate(work.statements):
            self._statement(at, statement)
        self._spills(spilled)
        self.instructions += (
            shape.blocks
            * self.warps
            * (self.habits.start_instructions + shape.turns * self.habits.turn_instructions)
        )
        self.chain += self.habits.start_cycles
        return Demand(
            launches=np.full(self.size, launches),
            blocks=shape.blocks,
            threads=shape.threads,
            registers=registers,
            shared_bytes=self.shared_bytes,
            instructions=self.instructions,
            fp64=self.fp64,
            fp32=self.fp32,
            lanes=shape.threads / (self.warps * card.warp),
            l1_wavefronts=self.l1,
            shared_wavefronts=self.shared,
            l2_bytes=self.l2_bytes,
            dram_bytes=self._dram_bytes(launches),
            scatter=self._scatter(),
            chain_cycles=self.chain,
        )

    def _private_words(self) -> Column:
        words = self.zero.copy()
        for group in self.kernel.groups:
            if group.private:
                elements = prod(
                    (self.shape.points[name] for name in self.kernel.threads),
                    start=np.ones(self.size),
                )
                words = words + elements * max(1, group.element_bytes // 4)
        return words * (1.0 - self._local)

    def _is_unrolled(self) -> Column:
        """Return 1 where the points of a thread stand in the text one by one."""
        points = self._points_of(self.kernel.threads)
        private = any(group.private for group in self.kernel.groups)
        return np.where((points > 1) & (private | (self.unroll > 0)), 1.0, 0.0)

    def _in_local_memory(self) -> Column:
        """Return 1 where private arrays are indexed by a serial loop and so leave the registers.

        PPCG indexes them so where a statement ties a serial loop to a thread's points along
        another.
        """
        local = self.zero.copy()
        for at, statement in enumerate(self.kernel.facts.work.statements):
            uses_private = any(
                group.private and any(use.statement == at for use in group.uses)
                for group in self.kernel.groups
            )
            if statement.tied and uses_private:
                for name in self.kernel.threads:
                    if name in statement.coupled:
                        local = np.maximum(local, (self.shape.points[name] > 1) * 1.0)
        return local

    def _points_of(self, loops: tuple[str, ...]) -> Column:
        return np.asarray(
            prod((self.shape.points[name] for name in loops), start=np.ones(self.size))
        )

    def _registers(self, private_words: Column) -> Column:
        width = max(1, self.kernel.facts.element_bytes // 4)
        operands = max(
            (sum(a.reads for a in s.accesses) for s in self.kernel.facts.work.statements),
            default=1,
        )
        points = self._points_of(self.kernel.threads)
        addresses = np.where(self._unrolled > 0, np.minimum(points, 16.0), 1.0)
        return np.asarray(
            self.habits.base_registers
            + private_words * self.habits.private_register_factor
            + operands * width * 2
            + addresses * self.habits.registers_per_point
        )

    def _register_cap(self) -> Column:
        """Return the registers a thread may have: nvcc knows only the card, not the block."""
        return np.full(self.size, float(self.card.registers_per_thread))

    def _serial_steps(self, depth: int) -> Column:
        """Return how often a block runs the tile loops down to position ``depth`` of the band."""
        steps = self.shape.turns.copy()
        for position, name in enumerate(self.kernel.band):
            if name not in self.kernel.grid and position <= depth:
                steps = steps * self.shape.steps[name]
        return steps

    def _fill(self, statement: StatementFacts) -> float:
        """Return the share of the box of its loops that a statement runs at."""
        if statement.instances is None:
            return 1.0
        box = prod(float(self.kernel.trips[name]) for name in statement.loops)
        launches = float(self.kernel.facts.work.launches or 1)
        return min(1.0, statement.instances / max(1.0, box * launches))

    def _copies(self) -> None:
        """Count the copies of private and shared groups."""
        kernel, shape, habits = self.kernel, self.shape, self.habits
        fill = max((self._fill(s) for s in kernel.facts.work.statements), default=1.0)
        barriers = self.zero.copy()
        for at, group in enumerate(kernel.groups):
            depth = max((p for p, n in enumerate(kernel.band) if n in group.loops), default=-1)
            steps = self._serial_steps(depth) * fill
            ways = (1.0 if group.reads else 0.0) + (1.0 if group.writes else 0.0)
            if group.private:
                count = self._points_of(kernel.threads)
                access = group.uses[0].access
                wave, sector = self._global_cost(access)
                requests = count * steps * ways
                self._add_global(requests, wave, sector, 1.0)
                self.instructions += shape.blocks * self.warps * requests * 2
                self.chain += steps * ways * (habits.memory_cycles+habits.dram_cycles) * np.ceil(count / habits.window)
                continue
            if not (group.shareable and group.box is not None):
                continue
            on = self.staged[at]
            sizes = box_sizes(kernel, group, shape.tile)
            loads, waits, waves, sector = self._copy_loop(sizes, group)
            requests = loads * steps * ways * on
            self._add_global(requests, waves, sector, 1.0 / self._sharing(group.loops))
            self.shared += shape.blocks * self.warps * requests * waves
            self.instructions += shape.blocks * self.warps * requests * habits.copy_instructions
            moved = shape.blocks * self.warps * requests * sector * SECTOR_BYTES / self._sharing(group.loops)
            self.chain += on * steps * ways * self._beyond(group, moved) * waits
            barriers = np.maximum(barriers, on * steps * 2)
        self.instructions += shape.blocks * self.warps * barriers * habits.barrier_instructions
        self.chain += barriers * habits.barrier_cycles

    def _copy_loop(
        self, sizes: list[Column], group: Group
    ) -> tuple[Column, Column, Column, Column]:
        """Return loads a thread, how often it waits, wavefronts and sectors of one, for a copy.

        The last dimensions of the box are dealt out to the threads along the last axes. A loop of
        known length is unrolled, so that several loads are under way; one that begins at the
        thread's number is not, and each of its loads is waited for.
        """
        threads = [self.shape.block[name] for name in self.kernel.threads]
        serial, dealt = np.ones(self.size), np.ones(self.size)
        mapped = min(len(sizes), len(threads))
        for size in sizes[: len(sizes) - mapped]:
            serial = serial * size
        for size, count in zip(
            sizes[len(sizes) - mapped :], threads[len(threads) - mapped :], strict=True
        ):
            dealt = dealt * np.ceil(size / count)
        loads = serial * dealt
        element_bytes = group.element_bytes
        whole = np.ones(self.size, dtype=bool)
        for name in group.loops:
            if name in self.shape.tile:
                whole &= np.mod(self.kernel.trips[name], self.shape.tile[name]) == 0
        even = whole & (dealt == 1) & (loads <= self.habits.unrolled_steps)
        waits = np.ceil(loads / np.where(even, self.habits.window, self.habits.rolled))
        along = np.minimum(threads[-1], sizes[-1])
        rows = np.minimum(
            np.maximum(1.0, self.card.warp / threads[-1]),
            sizes[-2] if len(sizes) > 1 else np.ones(self.size),
        )
        in_row = np.minimum(along, self.card.warp)
        sector = rows * np.ceil(in_row * element_bytes / SECTOR_BYTES)
        waves = np.maximum(rows, self.card.warp * element_bytes / LINE_BYTES)
        return loads, waits, waves, sector

    def _global_cost(self, access: AccessFacts) -> tuple[Column, Column]:
        """Return wavefronts and sectors of one request of a warp."""
        strides, width = dict(access.strides), access.element_bytes
        steps = [float(strides.get(n, 0) * width) for n in reversed(self.kernel.threads)]
        along = bool(steps) and 0 < abs(steps[0]) <= SECTOR_BYTES
        offset = access.origin * width if along else 0
        return (
            line_wavefronts(self.lanes, steps, width, self.habits.line_cycles, offset),
            sectors(self.lanes, steps, width, offset),
        )

    def _add_global(
        self, requests: Column, waves: Column, sector: Column, missing: Column | float
    ) -> None:
        """Add requests of each warp of each block; a share of the sectors comes from L2."""
        total = self.shape.blocks * self.warps * requests
        self.l1 += total * waves
        self.l2_bytes += total * sector * SECTOR_BYTES * missing

    def _statement(self, at: int, statement: StatementFacts) -> None:
        """Count the instances of one statement."""
        kernel, shape, habits = self.kernel, self.shape, self.habits
        mapped = tuple(name for name in kernel.threads if name in statement.loops)
        points = self._points_of(mapped)
        serial = [name for name in self._serial_loops() if name in statement.loops]
        trips = float(prod(kernel.trips[name] for name in serial))
        steps = shape.turns.copy()
        for name in kernel.threads:
            if name not in kernel.grid and name in statement.loops:
                steps = steps * shape.steps[name]
        instances = points * steps * trips * self._fill(statement)  # of a thread, in a launch
        total = shape.blocks * self.warps * instances
        unrolled = self._unrolled if mapped else self.zero
        guards = self._guarded
        if any(name in statement.coupled for name in serial):
            # bounds that change from step to step: each point is tested at each of them
            bound = tuple(name for name in mapped if name in statement.coupled)
            guards = np.where(self._points_of(bound) > 1, 1.0, guards)
        self._arithmetic(dict(statement.operations), statement.element_bytes, total)
        each = _Instance(self.size)
        for position, group in enumerate(kernel.groups):
            for use in group.uses:
                if use.statement != at:
                    continue
                # points that read the same element share the load where they stand side by side
                repeated = tuple(n for n in mapped if n not in dict(use.access.strides))
                together = (1.0 - guards) / self._points_of(repeated) + guards
                often = np.where(unrolled > 0, together, 1.0)
                if group.private:
                    self._private_use(use.access, total, each)
                else:
                    kept = self._kept_in_register(at, use.access, serial)
                    self._shared_use(position, use.access, instances * often, often, each)
                    self._global_use(at, position, statement, use.access, instances, often * kept, each)
        # index arithmetic: one address for each global access that is not unrolled
        addressing = np.where(unrolled > 0, habits.unrolled_address, habits.loop_address)
        side_by_side = np.where(unrolled > 0, np.maximum(1.0, points), 1.0)
        self.instructions += total * (
            each.loads
            + each.addresses * addressing
            + habits.loop_instructions / side_by_side
            + self._partial() * habits.guard_instructions
        )
        waits = self._waits(statement, serial, unrolled, points, guards, each)
        arithmetic = self._arithmetic_cycles(statement) / np.where(
            (unrolled > 0) & (self._local == 0), points, 1.0
        )
        self.chain += instances * (each.load_cycles * waits + arithmetic + each.spread)

    def _waits(
        self,
        statement: StatementFacts,
        serial: list[str],
        unrolled: Column,
        points: Column,
        guards: Column,
        each: _Instance,
    ) -> Column:
        """Return how often a thread waits for loads, for each instance of a statement."""
        habits = self.habits
        # private arrays in local memory keep the points of a thread in order
        side = np.where((unrolled > 0) & (self._local == 0), points, 1.0)
        if not serial:
            run: Column = np.where(unrolled > 0, 1.0, np.where(each.stores > 0, 1.0, habits.rolled))
        else:
            name = serial[-1]
            extent = self.shape.tile.get(name)
            trips = float(self.kernel.trips[name])
            steps = np.full(self.size, trips) if extent is None else extent
            even = (np.mod(trips, steps) == 0) & (name not in statement.coupled)
            loose = np.clip(4 * habits.rolled / side, 1.0, np.minimum(habits.rolled, steps))
            run = np.where(even & (steps * side <= habits.unrolled_steps), steps, loose)
            run = np.where(each.stores > 0, 1.0, run)
        guarded = guards * side * (unrolled > 0)
        free = np.maximum(1.0 / run, each.loads * (side - guarded) / habits.window)
        free = np.where(guarded >= 1.0, (guarded < side) * 1.0, free)
        return (free + guarded * habits.guard_waits) / side

    def _private_use(self, access: AccessFacts, total: Column, each: _Instance) -> None:
        """Count an access to a private array that left the registers."""
        slow = self._local * total * (access.reads + access.writes)
        self.l1 += slow * self.card.warp * access.element_bytes / LINE_BYTES
        self.instructions += slow
        stored = self._local * total * access.writes
        self.l2_bytes += stored * self.card.warp * access.element_bytes
        each.load_cycles = np.maximum(each.load_cycles, self._local * self.habits.l1_cycles)
        each.stores = np.maximum(each.stores, self._local)

    def _shared_use(
        self, position: int, access: AccessFacts, count: Column, often: Column, each: _Instance
    ) -> None:
        """Count an access to shared memory, where the group is staged."""
        group, on, habits = self.kernel.groups[position], self.staged[position], self.habits
        if group.box is None or not group.shareable:
            return
        waves = self._bank_cost(group, access.subscripts, group.element_bytes)
        warps = self.shape.blocks * self.warps * count
        self.shared += on * warps * (access.reads + access.writes) * waves
        each.loads = each.loads + on * access.reads * often
        each.spread = each.spread + on * access.reads * often * waves * habits.bank_wait
        each.load_cycles = np.maximum(each.load_cycles, on * habits.shared_cycles)

    def _global_use(
        self,
        position_of: int,
        position: int,
        statement: StatementFacts,
        access: AccessFacts,
        instances: Column,
        often: Column,
        each: _Instance,
    ) -> None:
        """Count an access through L1, where the group is not staged."""
        group, away, habits = self.kernel.groups[position], 1.0 - self.staged[position], self.habits
        wave, sector = self._global_cost(access)
        missing = self._missing(statement, access, sector, wave)
        # neighbours fetch the same lines, each its share
        missing = missing / self._sharing(group.loops) / self._alike[statement.name][_form(access)]
        once = min(float(access.reads), 1.0)  # several reads of one element are one load
        self._add_global(instances * often * away * once, wave, sector, missing)
        if access.writes:
            self._add_global(instances * often * away, wave, sector, 1.0)
            others = self.zero
            for at, other in enumerate(self.kernel.groups):
                if not other.private and any(u.statement == position_of and u.access.reference != access.reference for u in other.uses):
                    others = np.maximum(others, 1.0 - self.staged[at])
            each.stores = np.maximum(each.stores, away * (often >= 1.0) * others)
        each.spread = each.spread + away * once * often * wave * habits.line_wait
        each.loads = each.loads + away * (once + access.writes) * often
        each.addresses = each.addresses + away * often
        bytes_read = self.shape.blocks * self.warps * instances * often * once * sector * SECTOR_BYTES * missing
        cycles = habits.l1_cycles + self._waiting(statement, access, wave) * self._beyond(group, bytes_read)
        each.load_cycles = np.maximum(
            each.load_cycles, away * cycles * once * np.minimum(1.0, often)
        )

    def _beyond(self, group: Group, l2_bytes: Column) -> Column:
        """Return the cycles of a load that L1 does not answer, beyond those of L1."""
        work = self.kernel.facts.work
        launches = float(work.launches or 1)
        fetched = self._touched_bytes(group, launches) * self._again(group, self._stays)
        fetched = fetched * self._fresh
        share = np.clip(fetched / np.maximum(1.0, l2_bytes), 0.0, 1.0)
        return self.habits.memory_cycles + share * self.habits.dram_cycles

    def _kept_in_register(self, at: int, access: AccessFacts, serial: list[str]) -> Column:
        """Return how often an element that a serial loop updates is loaded and stored.

        The compiler keeps it in a register while the loop runs if nothing else that the statement
        reads may be the same memory: private and shared arrays cannot be.
        """
        if not (access.writes and access.reads and serial):
            return np.ones(self.size)
        innermost = serial[-1]
        if innermost in dict(access.strides):
            return np.ones(self.size)
        alone = np.ones(self.size)
        for position, group in enumerate(self.kernel.groups):
            for use in group.uses:
                other = use.statement == at and use.access.reference != access.reference
                if other and not group.private:
                    alone = alone * self.staged[position]
        extent = self.shape.tile.get(innermost)
        steps = float(self.kernel.trips[innermost]) if extent is None else extent
        return np.where(alone > 0, 1.0 / np.maximum(1.0, steps), 1.0)

    def _arithmetic_cycles(self, statement: StatementFacts) -> float:
        """Return the cycles from one result of a statement to the next that needs it."""
        habits = self.habits
        wide = statement.element_bytes >= _WIDE_BYTES
        counts = dict(statement.operations)
        slow = sum(counts.get(kind, 0) for kind in _SLOW)
        fast = habits.fp64_cycles if wide else habits.fp32_cycles
        return fast + slow * (habits.slow_cycles64 if wide else habits.slow_cycles32)

    def _guarded_share(self) -> Column:
        """Return the share of a thread's points that stand behind tests of their own.

        Where the end of a loop cuts tiles off, the points that may lie outside do. Nothing is
        shared between them: each loads what it needs, and waits for it.
        """
        free = np.ones(self.size)
        for name in self.kernel.threads:
            points, block = self.shape.points[name], self.shape.block[name]
            left = np.mod(self.kernel.trips[name], self.shape.tile[name])
            inside = np.where(left > 0, np.floor(left / block), points)
            inside = np.where(np.mod(self.shape.tile[name], block) > 0, inside - 1.0, inside)
            free = free * np.where(points > 1, np.clip(inside / points, 0.0, 1.0), 1.0)
        return 1.0 - free

    def _partial(self) -> Column:
        """Return 1 where some tile is cut off by the end of a loop."""
        cut = self.zero.copy()
        for name in self.kernel.threads:
            cut = np.maximum(
                cut, (np.mod(self.kernel.trips[name], self.shape.tile[name]) > 0) * 1.0
            )
            cut = np.maximum(cut, (np.mod(self.shape.tile[name], self.shape.block[name]) > 0) * 1.0)
        return cut

    def _arithmetic(self, counts: dict[str, int], element_bytes: int, total: Column) -> None:
        """Count floating-point instructions; a product and a sum are one where they meet."""
        habits = self.habits
        fused = max(counts.get("add", 0), counts.get("multiply", 0)) + counts.get("compare", 0)
        slow = sum(counts.get(kind, 0) for kind in _SLOW)
        wide = element_bytes >= _WIDE_BYTES
        each = fused + slow * (habits.division64 if wide else habits.division32)
        if wide:
            self.fp64 += total * each
        else:
            self.fp32 += total * each
        self.instructions += total * each

    def _bank_cost(
        self,
        group: Group,
        subscripts: tuple[tuple[tuple[tuple[str, int], ...], int], ...],
        element_bytes: int,
    ) -> Column:
        """Return the wavefronts of one request to a group's box in shared memory."""
        sizes = box_sizes(self.kernel, group, self.shape.tile)
        steps: dict[str, Column] = {}
        apart = np.ones(self.size)
        for (terms, _), size in zip(reversed(subscripts), reversed(sizes), strict=True):
            for loop, factor in terms:
                steps[loop] = steps.get(loop, self.zero) + factor * apart
            apart = apart * size
        along = [steps.get(name, self.zero) for name in reversed(self.kernel.threads)]
        return bank_wavefronts(self.lanes, along, element_bytes)

    def _missing(
        self, statement: StatementFacts, access: AccessFacts, sector: Column, wave: Column
    ) -> Column:
        """Return the share of a warp's sectors that L1 does not have yet.

        Neighbouring warps and the next steps of serial loops touch the same sectors again. They
        find them where what the resident blocks touch meanwhile fits L1: in one step for the line
        that is walked along, in one tile for all that a tile touches again.
        """
        card = self.card
        moving = dict(access.strides)
        room = self._l1_bytes
        distinct = np.ones(self.size)
        for name in self.kernel.threads:
            if name in moving:
                distinct = distinct * self.shape.block[name]
        sharing = self.shape.threads / np.maximum(1.0, distinct)
        step_sectors = np.maximum(1.0, self.warps * sector)
        serial = [n for n in self._serial_loops() if n in statement.loops]
        reuse = 1.0
        if serial:
            step = abs(moving.get(serial[-1], 0)) * access.element_bytes
            if step == 0:
                reuse = float(min(64, self.kernel.trips[serial[-1]]))
            elif step < SECTOR_BYTES:
                reuse = SECTOR_BYTES / step
        walked = 1.0 / np.minimum(sharing, step_sectors) / reuse
        near = self._lines_stay(access, wave)
        short = walked * near + (1.0 - near)
        touched = self._tile_sectors(access)
        instances = self._points_of(tuple(n for n in self.kernel.threads if n in statement.loops))
        for name in serial:
            inside = self.shape.tile.get(name)
            instances = instances * (self.kernel.trips[name] if inside is None else inside)
        tile = np.minimum(1.0, touched / np.maximum(1.0, instances * step_sectors))
        again = [at for at, name in enumerate(serial) if name not in moving]
        fits = self._kept(serial, again[-1] if again else -1)
        return np.asarray(np.minimum(short, tile * fits + short * (1.0 - fits)))

    def _lines_stay(self, access: AccessFacts, wave: Column) -> Column:
        """Return the share of the lines of one step that L1 keeps until the next step.

        Rows that lie a multiple of a large power of two apart meet in few of its sets.
        """
        moving = dict(access.strides)
        along = self.kernel.along_x
        step = abs(moving.get(along, 0)) * access.element_bytes if along else 0
        crowded = min(MOST_CROWDED, max(1, (step & -step) // LINE_BYTES)) if step else 1
        room = self._l1_bytes
        uses = self.warps * wave * LINE_BYTES * self._present * crowded
        points = np.where(self._unrolled > 0, self._points_of(self.kernel.threads), 1.0)
        return np.asarray(np.clip(room / np.maximum(1.0, uses * points), 0.0, 1.0))

    def _waiting(self, statement: StatementFacts, access: AccessFacts, wave: Column) -> Column:
        """Return the share of a thread's requests that wait for more than L1.

        A thread waits the first time it comes to a sector. It comes again along loops that do not
        move the address, and along one that moves it by less than a sector.
        """
        moving = dict(access.strides)
        serial = [n for n in self._serial_loops() if n in statement.loops]
        room = self._l1_bytes
        waits: Column = np.ones(self.size)
        for position, name in enumerate(serial):
            step = abs(moving.get(name, 0)) * access.element_bytes
            extent = self.shape.tile.get(name)
            steps = np.full(self.size, float(self.kernel.trips[name])) if extent is None else extent
            innermost = position == len(serial) - 1
            if step == 0:
                stays = np.ones(self.size) if innermost else self._kept(serial, position)
                waits = waits * (1.0 - stays + stays / steps)
            elif innermost and step < SECTOR_BYTES:
                stays = self._lines_stay(access, wave)
                waits = waits * (1.0 - stays + stays * step / SECTOR_BYTES)
        return waits

    def _serial_loops(self) -> list[str]:
        """Return the loops that a thread runs itself, outermost first."""
        band = [name for name in self.kernel.band if name not in self.kernel.threads]
        return band + [name for name, _ in self.kernel.inner]

    def _kept(self, serial: list[str], position: int) -> Column:
        """Return the share of what one step of a serial loop touches that L1 keeps for the next.

        Lines go in the order they came: of twice what L1 has room for nothing is left.
        """
        still = frozenset(serial[: position + 1])
        if still not in self._spans:
            touched = self._all_tile_bytes(still) * self._present
            room = 2 * self._l1_bytes / np.maximum(1.0, touched) - 1.0
            self._spans[still] = np.clip(room, 0.0, 1.0)
        return self._spans[still]

    def _tile_sectors(self, access: AccessFacts, still: frozenset[str] = frozenset()) -> Column:
        """Return the sectors that a tile touches through one access while some loops stand."""
        inner = {n: 1 if n in still else trips for n, trips in self.kernel.inner}
        total = np.ones(self.size)
        for position, (terms, _) in enumerate(access.subscripts):
            size = np.ones(self.size)
            for loop, factor in terms:
                if loop in still:
                    continue
                extent = self.shape.tile[loop] if loop in self.shape.tile else inner.get(loop, 1)
                size = size + abs(factor) * (extent - 1)
            if position == len(access.subscripts) - 1:
                size = np.ceil(size * access.element_bytes / SECTOR_BYTES)
            total = total * size
        return total

    def _all_tile_bytes(self, still: frozenset[str] = frozenset()) -> Column:
        """Return the bytes of global memory that a tile touches while some loops stand."""
        total = self.zero.copy()
        for at, group in enumerate(self.kernel.groups):
            if not group.private:
                away = 1.0 - self.staged[at]
                for access in {_form(use.access): use.access for use in group.uses}.values():
                    total += away * self._tile_sectors(access, still) * SECTOR_BYTES
        return total

    def _sharing(self, loops: frozenset[str]) -> Column:
        """Return how many of an SM's resident blocks fetch the same of a group of references.

        Blocks are dealt to SMs one by one, those along ``x`` first.
        """
        if len(self.kernel.grid) < 2:
            return np.ones(self.size)
        rows, columns = self.kernel.grid
        across = np.maximum(1.0, self.shape.steps[columns])
        resident = np.maximum(1.0, self._resident)
        sms = float(self.card.sms)
        if rows not in loops and columns in loops:
            different = np.minimum(resident, across / np.gcd(across.astype(np.int64), int(sms)))
        elif columns not in loops and rows in loops:
            different = np.minimum(resident, np.maximum(1.0, np.ceil(resident * sms / across)))
        else:
            return np.ones(self.size)
        return 1.0 + self.habits.lockstep * (resident / np.maximum(1.0, different) - 1.0)

    def _spills(self, spilled_bytes: Column) -> None:
        """Count the loads and stores of private arrays that registers do not hold."""
        work = self.kernel.facts.work
        if not work.statements:
            return
        words = spilled_bytes / 4
        main = max(work.statements, key=lambda s: s.instances or ASSUMED_SIZE)
        serial = prod(
            float(self.kernel.trips[n]) for n in main.loops if n not in self.kernel.threads
        )
        traffic = self.shape.blocks * self.warps * words * serial * self._fill(main) * 2
        self.instructions += traffic
        self.l1 += traffic
        self.l2_bytes += traffic * LINE_BYTES * self.habits.spill_missing

    def _dram_bytes(self, launches: float) -> Column:
        """Return the bytes of one launch from and to memory.

        At least every element once, unless all of it stays in L2 between launches. What blocks that
        do not run at the same time read again comes from memory where L2 cannot hold it.
        """
        kernel, card = self.kernel, self.card
        total = self.zero.copy()
        kept = self._stays
        for array in kernel.facts.work.arrays:
            groups = [group for group in kernel.groups if group.array == array.name]
            for writing in (False, True):
                mine = [g for g in groups if (g.writes if writing else g.reads)]
                if mine:
                    each = [self._touched_bytes(g, launches) * self._again(g, kept) for g in mine]
                    total = total + np.maximum.reduce(each) * self._fresh
        return np.minimum(total, np.maximum(self.l2_bytes, total * 0.02))

    def _scatter(self) -> Column:
        """Return how much longer memory takes because a block walks along its rows in steps.

        With one point a thread along ``x``, neighbouring blocks fetch neighbouring pieces of a page
        of memory at the same time. With more, each comes back to the page for every point. It
        matters where points are loops around loads and stores of global memory.
        """
        along = self.kernel.along_x
        away = [
            1.0 - on
            for group, on in zip(self.kernel.groups, self.staged, strict=True)
            if not group.private and group.writes
        ]
        if along is None or not away:
            return np.ones(self.size)
        points = self.shape.points[along]
        piece = self.shape.block[along] * self.kernel.facts.element_bytes
        loops = np.where(self._unrolled > 0, 0.0, 1.0)
        steps = (points - 1.0) * PAGE_PIECE_BYTES / piece
        torn = (1.0 - 1.0 / points) * np.minimum(1.0, SECTOR_BYTES / piece)
        update = max((self._tears(g, along) for g in self.kernel.groups), default=0.0)
        return np.asarray(1.0 + loops * (self.habits.page_steps * steps + update * torn))

    def _tears(self, group: Group, along: str) -> float:
        if group.private:
            return 0.0
        width = group.element_bytes
        for use in group.uses:
            step = dict(use.access.strides).get(along, 0)
            if use.access.writes and abs(step) == 1 and use.access.origin * width % SECTOR_BYTES:
                return self.habits.torn_updates if group.reads else self.habits.torn_writes
        return 0.0

    def _again(self, group: Group, kept: bool) -> Column:
        """Return how often a group's elements come from memory.

        Blocks that run at the same time find them in L2. Where the whole does not fit it, those
        that run later fetch them again.
        """
        kernel, shape, card = self.kernel, self.shape, self.card
        if kept or len(kernel.grid) < 2 or kernel.grid[0] in group.loops:
            return np.ones(self.size)
        touched = self._touched_bytes(group, 1.0)
        if touched <= 0.5 * card.l2_bytes:
            return np.ones(self.size)
        rows, columns = kernel.grid
        resident = np.maximum(1.0, self._resident) * card.sms
        at_once = np.maximum(1.0, resident / shape.steps[columns])
        return np.maximum(1.0, shape.steps[rows] / at_once)

    def _touched_bytes(self, group: Group, launches: float) -> float:
        """Return the bytes of a group's elements that one launch touches, about."""
        work = self.kernel.facts.work
        loops = {name for use in group.uses for name in work.statements[use.statement].loops}
        moved = [name for name in group.loops if name in loops]
        elements = prod(float(self.kernel.trips[name]) for name in moved)
        fill = max(self._fill(work.statements[use.statement]) for use in group.uses)
        array = next(a for a in work.arrays if a.name == group.array)
        dense = min(elements * min(1.0, fill * 1.5), float(array.elements))
        walks = any(
            abs(step) * group.element_bytes <= SECTOR_BYTES // 2
            for use in group.uses
            for _, step in use.access.strides
        )
        return dense * (group.element_bytes if walks or elements <= 1 else SECTOR_BYTES)


def _alike(statement: StatementFacts) -> dict[object, int]:
    """Count the accesses of a statement that differ by constants only (``A[i-1]``, ``A[i]``)."""
    return Counter(_form(access) for access in statement.accesses)


def _form(access: AccessFacts) -> object:
    return access.array, tuple(terms for terms, _ in access.subscripts)


def _shape(kernel: PpcgKernel, candidates: PpcgCandidates) -> _Shape:
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
    return _Shape(tile, block, points, steps, blocks, threads, turns)
