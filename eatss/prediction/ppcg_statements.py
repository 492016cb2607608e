"""What the statements of a kernel ask for, instance by instance of a thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.arithmetic import instructions_of, result_cycles
from eatss.prediction.demand import Column
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.ppcg_caches import Caches, alike, form
from eatss.prediction.ppcg_memory import Memory
from eatss.prediction.ppcg_resources import CodeResources
from eatss.prediction.ppcg_shapes import cut_off, fill_of, serial_loops

_ROLLED_POINTS = 4
"""Points of a thread up to which a loop of unknown length is unrolled in full measure."""


@dataclass(slots=True)
class _Instance:
    """What one instance of a statement does to memory, summed over its accesses.

    ``loads`` and ``addresses`` are instructions; ``load_cycles`` what the slowest load waits for,
    ``spread`` what requests of many lines or banks take in addition; ``stores`` 1 where something
    is stored that a later load may read.
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


def add_statements(
    of: CodeResources, caches: Caches, memory: Memory, demand: DemandBuilder
) -> None:
    """Add the instances of all statements."""
    for at in range(len(of.kernel.facts.work.statements)):
        _Counting(of, caches, memory, demand, at).add()


class _Counting:
    """Adds up one statement."""

    def __init__(
        self, of: CodeResources, caches: Caches, memory: Memory, demand: DemandBuilder, at: int
    ) -> None:
        kernel, shape = of.kernel, of.shape
        self.of, self.caches, self.memory, self.demand, self.at = of, caches, memory, demand, at
        self.statement: StatementFacts = kernel.facts.work.statements[at]
        self.alike = alike(self.statement)
        self.mapped = tuple(name for name in kernel.threads if name in self.statement.loops)
        self.points = shape.points_of(self.mapped)
        self.serial = serial_loops(kernel, self.statement)
        steps = shape.turns.copy()
        for name in kernel.threads:
            if name not in kernel.grid and name in self.statement.loops:
                steps = steps * shape.steps[name]
        trips = float(prod(kernel.trips[name] for name in self.serial))
        self.instances = self.points * steps * trips * fill_of(kernel, self.statement)
        self.unrolled = of.unrolled if self.mapped else np.zeros(len(of))
        self.guards = self._guards()
        self.each = _Instance(len(of))

    def add(self) -> None:
        """Add arithmetic, accesses, loops and tests, and what a thread waits for."""
        of, constants, each = self.of, self.of.constants, self.each
        arithmetic = instructions_of(self.statement, constants)
        self.demand.add_arithmetic(self.statement, self.instances * arithmetic)
        for position, group in enumerate(of.kernel.groups):
            for use in group.uses:
                if use.statement != self.at:
                    continue
                # points that read the same element share the load where they stand side by side
                repeated = tuple(n for n in self.mapped if n not in dict(use.access.strides))
                together = (1.0 - self.guards) / of.shape.points_of(repeated) + self.guards
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
                each.loads
                + each.addresses * addressing
                + constants.loop_instructions / side_by_side
                + cut_off(of.kernel, of.shape) * constants.guard_instructions
            )
        )
        # private arrays in local memory keep the points of a thread in order
        side = np.where((self.unrolled > 0) & (of.local == 0), self.points, 1.0)
        waits = (
            each.load_cycles * self._waits(side)
            + result_cycles(self.statement, of.card, constants) / side
        )
        self.demand.chain_cycles += self.instances * (waits + each.spread)

    def _guards(self) -> Column:
        """Return the share of points that are tested one by one at every step.

        Those that may lie beyond the end of a loop, and all where bounds change from step to step.
        """
        coupled = self.statement.coupled
        if not any(name in coupled for name in self.serial):
            return self.of.guarded
        bound = self.of.shape.points_of(name for name in self.mapped if name in coupled)
        return np.where(bound > 1, 1.0, self.of.guarded)

    def _waits(self, side: Column) -> Column:
        """Return how often a thread waits for loads, for each instance.

        The compiler unrolls a serial loop of known length; then a window of loads is under way at
        any time. Of one of unknown length it unrolls a few steps. A load does not pass a store that
        may be to the same element, nor a test: there each step, and each tested point, waits.
        """
        of, constants, each = self.of, self.of.constants, self.each
        unrolled = self.unrolled > 0
        if self.serial:
            name = self.serial[-1]
            steps = of.shape.extent(of.kernel, name)
            known = (np.mod(of.kernel.trips[name], steps) == 0) & (
                name not in self.statement.coupled
            )
            few = np.minimum(constants.rolled, steps)
            few = np.clip(_ROLLED_POINTS * constants.rolled / side, 1.0, few)
            run = np.where(known & (steps * side <= constants.unrolled_steps), steps, few)
            run = np.where(each.stores > 0, 1.0, run)
        else:
            run = np.where(unrolled | (each.stores > 0), 1.0, constants.rolled)
        tested = self.guards * side * unrolled
        free = np.maximum(1.0 / run, each.loads * (side - tested) / constants.window)
        free = np.where(tested >= 1.0, (tested < side) * 1.0, free)
        return np.asarray((free + tested * constants.guard_waits) / side)

    def _private_use(self, access: AccessFacts) -> None:
        """Count an access to a private array that left the registers."""
        of, each = self.of, self.each
        total = of.local * of.launched_warps * self.instances
        bytes_each = of.card.warp * access.element_bytes
        self.demand.l1_wavefronts += (
            total * (access.reads + access.writes) * bytes_each / LINE_BYTES
        )
        self.demand.instructions += total * (access.reads + access.writes)
        self.demand.l2_bytes += total * access.writes * bytes_each
        each.load_cycles = np.maximum(each.load_cycles, of.local * of.card.l1_cycles)
        each.stores = np.maximum(each.stores, of.local)

    def _shared_use(self, position: int, access: AccessFacts, often: Column) -> None:
        """Count an access to shared memory, where the group is staged."""
        of, each, on = self.of, self.each, self.of.staged[position]
        group = of.kernel.groups[position]
        if group.box is None or not group.shareable:
            return
        waves = self.caches.bank_request(group, access)
        requests = on * self.instances * often * (access.reads + access.writes)
        self.demand.add_shared(requests, waves)
        each.loads = each.loads + on * access.reads * often
        each.spread = each.spread + on * access.reads * often * waves * of.constants.bank_wait
        each.load_cycles = np.maximum(each.load_cycles, on * of.card.shared_cycles)

    def _global_use(self, position: int, access: AccessFacts, often: Column) -> None:
        """Count an access through L1, where the group is not staged."""
        of, each, away = self.of, self.each, 1.0 - self.of.staged[position]
        group, constants = of.kernel.groups[position], of.constants
        wave, sector = self.caches.request(access)
        missing = self.caches.missing(self.statement, access, sector, wave)
        # neighbours fetch the same lines, each its share
        missing = missing / self.caches.sharing(group.loops) / self.alike[form(access)]
        once = min(float(access.reads), 1.0)  # several reads of one element are one load
        requests = self.instances * often
        self.demand.add_global(requests * away * once, wave, sector, missing)
        if access.writes:
            self.demand.add_stores(requests * away, wave, sector, self.caches.torn(access))
            stores = away * (often >= 1.0) * self._may_alias(access)
            each.stores = np.maximum(each.stores, stores)
        each.spread = each.spread + away * once * often * wave * constants.line_wait
        each.loads = each.loads + away * (once + access.writes) * often
        each.addresses = each.addresses + away * often
        read = of.launched_warps * requests * once * sector * SECTOR_BYTES * missing
        beyond = self.memory.cycles(group, read)
        cycles = of.card.l1_cycles + self.caches.waiting(self.statement, access, wave) * beyond
        cycles = away * cycles * once * np.minimum(1.0, often)
        each.load_cycles = np.maximum(each.load_cycles, cycles)

    def _may_alias(self, access: AccessFacts) -> Column:
        """Return 1 where the statement reads other global memory, which may be the same.

        Private and shared arrays cannot be.
        """
        found = np.zeros(len(self.of))
        for group, on in zip(self.of.kernel.groups, self.of.staged, strict=True):
            others = (
                use.statement == self.at and use.access.reference != access.reference
                for use in group.uses
            )
            if not group.private and any(others):
                found = np.maximum(found, 1.0 - on)
        return found

    def _stored(self, access: AccessFacts) -> Column:
        """Return how often an element that a serial loop updates is loaded and stored.

        The compiler keeps it in a register while the loop runs if nothing else that the statement
        reads may be the same memory.
        """
        always = np.ones(len(self.of))
        if not (access.writes and access.reads and self.serial):
            return always
        innermost = self.serial[-1]
        if innermost in dict(access.strides):
            return always
        steps = self.of.shape.extent(self.of.kernel, innermost)
        return np.where(self._may_alias(access) > 0, 1.0, 1.0 / np.maximum(1.0, steps))
