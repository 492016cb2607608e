"""What PPCG's code for a kernel asks of a card, as a function of tiles, blocks and options.

PPCG gives each block a tile, or several in turn where the grid is smaller; its threads deal out
the points of the tile one by one, cyclically. Loops that are not mapped run inside each thread.
Groups of references are private, shared or global (:mod:`eatss.prediction.ppcg_groups`). Where a
private array has more than one element a thread, PPCG unrolls the points of a thread inside the
serial loops; else the points are loops around them.
"""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.plan.numbers import Number
from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.arithmetic import instructions_of, result_cycles
from eatss.prediction.demand import Demand
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.ppcg_groups import Group
from eatss.prediction.ppcg_launch import PpcgLaunch
from eatss.prediction.ppcg_memory import (
    alike,
    bank_request,
    beyond_l1_cycles,
    form,
    missing,
    moved_bytes,
    request,
    scatter,
    sharing,
    torn,
    waiting,
)

_ROLLED_POINTS = 4
"""Points of a thread up to which a loop of unknown length is unrolled in full measure."""


def ppcg_demand(of: PpcgLaunch) -> Demand:
    """Return what each candidate's code asks of the card in one launch, an entry a candidate."""
    demand, constants = DemandBuilder(of.launched_warps), of.constants
    _add_copies(of, demand)
    for at in range(len(of.kernel.facts.work.statements)):
        _Counting(of, demand, at).add()
    _add_spills(of, demand)
    demand.add_instructions(constants.start_instructions + of.turns * constants.turn_instructions)
    demand.chain_cycles += constants.start_cycles
    return demand.demand(
        len(of),
        launches=of.ones * float(of.kernel.facts.work.launches or 1),
        blocks=of.blocks,
        threads=of.threads,
        registers=of.registers,
        shared_bytes=of.shared_bytes,
        shared_limit_bytes=of.ones * float(of.card.shared_per_block_bytes),
        lanes=of.threads / (of.warps * of.card.warp),
        operand_bytes=LINE_BYTES * demand.shared_wavefronts,  # as if every cycle moved all it can
        dram_bytes=moved_bytes(of, demand.l2_bytes),
        scatter=scatter(of),
    )


# -- copies: private arrays, boxes in shared memory, spilled registers ----------------------------


def _add_copies(of: PpcgLaunch, demand: DemandBuilder) -> None:
    """Add the copies of private and shared groups, and the barriers around them."""
    kernel, constants = of.kernel, of.constants
    fill = max(map(of.fill, kernel.facts.work.statements), default=1.0)
    barriers = of.zeros
    for group, on in zip(kernel.groups, of.staged, strict=True):
        steps = _serial_steps(of, group) * fill
        ways = (1.0 if group.reads else 0.0) + (1.0 if group.writes else 0.0)
        if group.private:
            count, access = of.points_of(kernel.threads), group.uses[0].access
            wave, sector = request(of, access)
            requests = count * steps
            if group.reads:
                demand.add_global(requests, wave, sector)
            if group.writes:
                demand.add_stores(requests, wave, sector, torn(of, access))
            demand.add_instructions(requests * ways * 2)
            latency = (
                constants.l2_wait * of.card.l2_cycles + constants.dram_wait * of.card.dram_cycles
            )
            demand.chain_cycles += steps * ways * latency * np.ceil(count / constants.window)
        elif group.shareable and group.box is not None:
            loads, waits, waves, sector, parts = _copy_loop(of, group)
            requests = loads * steps * ways * on
            shared = sharing(of, group.loops)
            if group.reads:
                demand.add_global(loads * steps * on, waves, sector, 1.0 / shared)
            if group.writes:
                demand.add_stores(loads * steps * on, waves, sector, parts)
            demand.add_shared(requests, waves)
            demand.add_instructions(requests * constants.copy_instructions)
            moved = of.launched_warps * requests * sector * SECTOR_BYTES / shared
            demand.chain_cycles += on * steps * ways * beyond_l1_cycles(of, group, moved) * waits
            barriers = np.maximum(barriers, on * steps * 2)
    demand.add_instructions(barriers * constants.barrier_instructions)
    demand.chain_cycles += barriers * constants.barrier_wait * of.card.barrier_cycles


def _add_spills(of: PpcgLaunch, demand: DemandBuilder) -> None:
    """Add the loads and stores of private arrays that registers do not hold."""
    statements = of.kernel.facts.work.statements
    if statements:
        main = max(statements, key=lambda s: s.instances or 0)
        serial = prod(float(of.kernel.trips[n]) for n in main.loops if n not in of.kernel.threads)
        words = of.spilled_words * serial
        demand.add_spills(words, of.fill(main), of.constants.spill_missing)


def _serial_steps(of: PpcgLaunch, group: Group) -> Number:
    """Return how often a block runs the tile loops down to the last that moves a group."""
    depth = max((p for p, n in enumerate(of.kernel.band) if n in group.loops), default=-1)
    steps = of.turns
    for name in of.kernel.band[: depth + 1]:
        if name not in of.kernel.grid:
            steps = steps * of.steps[name]
    return steps


def _copy_loop(of: PpcgLaunch, group: Group) -> tuple[Number, Number, Number, Number, Number]:
    """Return loads a thread, how often it waits, and of one wavefronts, sectors and torn ones.

    The last dimensions of the box are dealt out to the threads along the last axes. The compiler
    unrolls a loop of known length, so that a window of loads is under way; of one that begins at
    the thread's number, or that the end of the array cuts off, a few are.
    """
    sizes, threads = of.box_sizes(group), [of.block[name] for name in of.kernel.threads]
    mapped = min(len(sizes), len(threads))
    serial = prod(sizes[: len(sizes) - mapped], start=of.ones)
    pairs = zip(sizes[len(sizes) - mapped :], threads[len(threads) - mapped :], strict=True)
    dealt = prod((np.ceil(size / count) for size, count in pairs), start=of.ones)
    loads = serial * dealt
    even = (dealt == 1) & (loads <= of.constants.unrolled_steps)
    for name in group.loops:
        if name in of.tile:
            even &= np.mod(of.kernel.trips[name], of.tile[name]) == 0
    waits = np.ceil(loads / np.where(even, of.constants.window, of.constants.rolled))
    along = np.minimum(threads[-1], sizes[-1])
    rows = np.minimum(
        np.maximum(1.0, of.card.warp / threads[-1]), sizes[-2] if len(sizes) > 1 else of.ones
    )
    row_sectors = np.minimum(along, of.card.warp) * group.element_bytes / SECTOR_BYTES
    waves = np.maximum(rows, of.card.warp * group.element_bytes / LINE_BYTES)
    return loads, waits, waves, rows * np.ceil(row_sectors), rows * (np.mod(row_sectors, 1.0) > 0)


# -- statements, instance by instance of a thread -------------------------------------------------


class _Counting:
    """Adds up one statement.

    Of an instance ``loads`` and ``addresses`` are instructions; ``load_cycles`` what the slowest
    load waits for, ``spread`` what requests of many lines or banks take in addition; ``stores`` 1
    where something is stored that a later load may read.
    """

    def __init__(self, of: PpcgLaunch, demand: DemandBuilder, at: int) -> None:
        kernel = of.kernel
        self.of, self.demand, self.at = of, demand, at
        self.statement: StatementFacts = kernel.facts.work.statements[at]
        self.alike = alike(self.statement)
        self.mapped = tuple(name for name in kernel.threads if name in self.statement.loops)
        self.points = of.points_of(self.mapped)
        self.serial = of.serial_loops(self.statement)
        steps = of.turns
        for name in self.mapped:
            if name not in kernel.grid:
                steps = steps * of.steps[name]
        trips = float(prod(kernel.trips[name] for name in self.serial))
        self.instances = self.points * steps * trips * of.fill(self.statement)
        self.unrolled = of.unrolled if self.mapped else of.zeros
        self.guards = self._guards()
        self.loads, self.addresses, self.stores = of.zeros, of.zeros, of.zeros
        self.load_cycles, self.spread = of.zeros, of.zeros

    def add(self) -> None:
        """Add arithmetic, accesses, loops and tests, and what a thread waits for."""
        of, constants = self.of, self.of.constants
        arithmetic = instructions_of(self.statement, constants)
        self.demand.add_arithmetic(self.statement, self.instances * arithmetic)
        for position, group in enumerate(of.kernel.groups):
            for use in group.uses:
                if use.statement != self.at:
                    continue
                # points that read the same element share the load where they stand side by side
                repeated = tuple(n for n in self.mapped if n not in dict(use.access.strides))
                together = (1.0 - self.guards) / of.points_of(repeated) + self.guards
                often = np.where(self.unrolled > 0, together, 1.0)
                if group.private:
                    self._private_use(use.access)
                else:
                    self._shared_use(position, use.access, often)
                    self._global_use(position, use.access, often * self._stored(use.access))
        addressing = np.where(self.unrolled > 0, constants.unrolled_address, constants.loop_address)
        side_by_side = np.where(self.unrolled > 0, np.maximum(1.0, self.points), 1.0)
        self.demand.add_instructions(
            self.instances
            * (
                self.loads
                + self.addresses * addressing
                + constants.loop_instructions / side_by_side
                + of.cut_off * constants.guard_instructions
            )
        )
        # private arrays in local memory keep the points of a thread in order
        side = np.where((self.unrolled > 0) & (of.local == 0), self.points, 1.0)
        waits = (
            self.load_cycles * self._waits(side)
            + result_cycles(self.statement, of.card, constants) / side
        )
        self.demand.chain_cycles += self.instances * (waits + self.spread)

    def _guards(self) -> Number:
        """Return the share of points that are tested one by one at every step.

        Those that may lie beyond the end of a loop, and all where bounds change from step to step.
        """
        coupled = self.statement.coupled
        if not any(name in coupled for name in self.serial):
            return self.of.guarded
        bound = self.of.points_of(name for name in self.mapped if name in coupled)
        return np.where(bound > 1, 1.0, self.of.guarded)

    def _waits(self, side: Number) -> Number:
        """Return how often a thread waits for loads, for each instance.

        The compiler unrolls a serial loop of known length; then a window of loads is under way at
        any time. Of one of unknown length it unrolls a few steps. A load does not pass a store that
        may be to the same element, nor a test: there each step, and each tested point, waits.
        """
        of, constants = self.of, self.of.constants
        unrolled = self.unrolled > 0
        if self.serial:
            name = self.serial[-1]
            steps = of.extent(name)
            known = (np.mod(of.kernel.trips[name], steps) == 0) & (
                name not in self.statement.coupled
            )
            few = np.minimum(constants.rolled, steps)
            few = np.clip(_ROLLED_POINTS * constants.rolled / side, 1.0, few)
            run: Number = np.where(known & (steps * side <= constants.unrolled_steps), steps, few)
            run = np.where(self.stores > 0, 1.0, run)
        else:
            run = np.where(unrolled | (self.stores > 0), 1.0, constants.rolled)
        tested = self.guards * side * unrolled
        free = np.maximum(1.0 / run, self.loads * (side - tested) / constants.window)
        free = np.where(tested >= 1.0, (tested < side) * 1.0, free)
        return np.asarray((free + tested * constants.guard_waits) / side)

    def _private_use(self, access: AccessFacts) -> None:
        """Count an access to a private array that left the registers."""
        of = self.of
        total = of.local * of.launched_warps * self.instances
        bytes_each = of.card.warp * access.element_bytes
        times = access.reads + access.writes
        self.demand.l1_wavefronts += total * times * bytes_each / LINE_BYTES
        self.demand.instructions += total * times
        self.demand.l2_bytes += total * access.writes * bytes_each
        self.load_cycles = np.maximum(self.load_cycles, of.local * of.card.l1_cycles)
        self.stores = np.maximum(self.stores, of.local)

    def _shared_use(self, position: int, access: AccessFacts, often: Number) -> None:
        """Count an access to shared memory, where the group is staged."""
        of, on, group = self.of, self.of.staged[position], self.of.kernel.groups[position]
        if group.box is None or not group.shareable:
            return
        waves = bank_request(of, group, access)
        requests = on * self.instances * often * (access.reads + access.writes)
        self.demand.add_shared(requests, waves)
        self.loads = self.loads + on * access.reads * often
        self.spread = self.spread + on * access.reads * often * waves * of.constants.bank_wait
        self.load_cycles = np.maximum(self.load_cycles, on * of.card.shared_cycles)

    def _global_use(self, position: int, access: AccessFacts, often: Number) -> None:
        """Count an access through L1, where the group is not staged."""
        of, away, group = self.of, 1.0 - self.of.staged[position], self.of.kernel.groups[position]
        wave, sector = request(of, access)
        absent = missing(of, self.statement, access, sector, wave)
        # neighbours fetch the same lines, each its share
        absent = absent / sharing(of, group.loops) / self.alike[form(access)]
        once = min(float(access.reads), 1.0)  # several reads of one element are one load
        requests = self.instances * often
        self.demand.add_global(requests * away * once, wave, sector, absent)
        if access.writes:
            self.demand.add_stores(requests * away, wave, sector, torn(of, access))
            stores = away * (often >= 1.0) * self._may_alias(access)
            self.stores = np.maximum(self.stores, stores)
        self.spread = self.spread + away * once * often * wave * of.constants.line_wait
        self.loads = self.loads + away * (once + access.writes) * often
        self.addresses = self.addresses + away * often
        read = of.launched_warps * requests * once * sector * SECTOR_BYTES * absent
        beyond = beyond_l1_cycles(of, group, read)
        cycles = of.card.l1_cycles + waiting(of, self.statement, access, wave) * beyond
        cycles = away * cycles * once * np.minimum(1.0, often)
        self.load_cycles = np.maximum(self.load_cycles, cycles)

    def _may_alias(self, access: AccessFacts) -> Number:
        """Return 1 where the statement reads other global memory, which may be the same.

        Private and shared arrays cannot be.
        """
        found = self.of.zeros
        for group, on in zip(self.of.kernel.groups, self.of.staged, strict=True):
            others = (
                use.statement == self.at and use.access.reference != access.reference
                for use in group.uses
            )
            if not group.private and any(others):
                found = np.maximum(found, 1.0 - on)
        return found

    def _stored(self, access: AccessFacts) -> Number:
        """Return how often an element that a serial loop updates is loaded and stored.

        The compiler keeps it in a register while the loop runs if nothing else that the statement
        reads may be the same memory.
        """
        updates = access.writes and access.reads and self.serial
        if not updates or self.serial[-1] in dict(access.strides):
            return self.of.ones
        steps = self.of.extent(self.serial[-1])
        return np.where(self._may_alias(access) > 0, 1.0, 1.0 / np.maximum(1.0, steps))
