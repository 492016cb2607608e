"""The price of a statement in PPCG's code, instance by instance of a thread."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np

from eatss.analysis.work import AccessFacts
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES
from eatss.cost.arithmetic import instructions_of, result_cycles
from eatss.cost.ppcg_code import PpcgCode, form
from eatss.plan.numbers import Number

_ROLLED_POINTS = 4
"""Points of a thread up to which a loop of unknown length is unrolled in full measure."""


def add_computes(of: PpcgCode) -> None:
    """Add the instances of all statements."""
    for at in range(len(of.plan.kernel.statements)):
        _Counting(of, at).add()


class _Counting:
    """Adds up one statement.

    Of an instance ``loads`` and ``addresses`` are instructions; ``load_cycles`` what the slowest
    load waits for, ``spread`` what requests of many lines or banks take in addition; ``stores`` 1
    where something is stored that a later load may read. ``guards`` is the share of points that are
    tested one by one at every step: those that may lie beyond the end of a loop, and all where
    bounds change from step to step.
    """

    loads: Number = 0.0
    addresses: Number = 0.0
    stores: Number = 0.0
    load_cycles: Number = 0.0
    spread: Number = 0.0

    def __init__(self, of: PpcgCode, at: int) -> None:
        plan = self.plan = of.plan
        self.of, self.at, self.statement = of, at, plan.kernel.statements[at]
        loops, coupled = self.statement.loops, self.statement.coupled
        self.alike = Counter(form(access) for access in self.statement.accesses)
        self.mapped = tuple(name for name in plan.kernel.threads if name in loops)
        self.points, self.serial = plan.points_along(loops), plan.serial_loops(self.statement)
        steps = plan.turns
        for name in self.mapped:
            if name not in plan.kernel.grid:
                steps = steps * plan.steps[name]
        trips = float(prod(plan.kernel.trips[name] for name in self.serial))
        self.instances = self.points * steps * trips * plan.fill(self.statement)
        self.unrolled = (plan.unrolled if self.mapped else 0.0) > 0
        self.guards = plan.guarded
        if any(name in coupled for name in self.serial):
            bound = plan.points_along({*loops} & {*coupled})
            self.guards = np.where(bound > 1, 1.0, plan.guarded)

    def add(self) -> None:
        """Add arithmetic, accesses, loops and tests, and what a thread waits for."""
        of, plan, constants, unrolled = self.of, self.plan, self.of.constants, self.unrolled
        arithmetic = instructions_of(self.statement, constants)
        of.add_arithmetic(self.statement, self.instances * arithmetic)
        for position, group in enumerate(plan.kernel.groups):
            for use in group.uses:
                if use.statement != self.at:
                    continue
                if group.private:
                    self._private_use(use.access)
                    continue
                # points that read the same element share the load where they stand side by side
                repeated = {*self.mapped} - use.access.moving.keys()
                together = (1.0 - self.guards) / plan.points_along(repeated) + self.guards
                often = np.where(unrolled, together, 1.0)
                self._shared_use(position, use.access, often)
                self._global_use(position, use.access, often * self._stored(use.access))
        addressing = np.where(unrolled, constants.unrolled_address, constants.loop_address)
        side_by_side = np.where(unrolled, np.maximum(1.0, self.points), 1.0)
        of.add_instructions(
            self.instances
            * (
                self.loads
                + self.addresses * addressing
                + constants.loop_instructions / side_by_side
                + plan.cut_off * constants.guard_instructions
            )
        )
        # private arrays in local memory keep the points of a thread in order
        side = np.where(unrolled & (plan.local == 0), self.points, 1.0)
        waits = (
            self.load_cycles * self._waits(side)
            + result_cycles(self.statement, of.card, constants) / side
        )
        of.chain_cycles += self.instances * (waits + self.spread)

    def _waits(self, side: Number) -> Number:
        """Return how often a thread waits for loads, for each instance.

        The compiler unrolls a serial loop of known length; then a window of loads is under way at
        any time. Of one of unknown length it unrolls a few steps. A load does not pass a store that
        may be to the same element, nor a test: there each step, and each tested point, waits.
        """
        plan, constants = self.plan, self.of.constants
        run: Number = np.where(self.unrolled, 1.0, constants.rolled)
        if self.serial:
            name = self.serial[-1]
            steps = plan.extent(name)
            known = np.mod(plan.kernel.trips[name], steps) == 0
            known = known & (name not in self.statement.coupled)
            few = np.minimum(constants.rolled, steps)
            few = np.clip(_ROLLED_POINTS * constants.rolled / side, 1.0, few)
            run = np.where(known & (steps * side <= constants.unrolled_steps), steps, few)
        run = np.where(self.stores > 0, 1.0, run)
        tested = self.guards * side * self.unrolled
        free = np.maximum(1.0 / run, self.loads * (side - tested) / constants.window)
        free = np.where(tested >= 1.0, (tested < side) * 1.0, free)
        return (free + tested * constants.guard_waits) / side

    def _private_use(self, access: AccessFacts) -> None:
        """Count an access to a private array that left the registers."""
        of, local = self.of, self.plan.local
        total = local * of.launched_warps * self.instances
        bytes_each = of.card.warp * access.element_bytes
        times = access.reads + access.writes
        of.l1_wavefronts += total * times * bytes_each / LINE_BYTES
        of.instructions += total * times
        of.l2_bytes += total * access.writes * bytes_each
        self.load_cycles = np.maximum(self.load_cycles, local * of.card.l1_cycles)
        self.stores = np.maximum(self.stores, local)

    def _shared_use(self, position: int, access: AccessFacts, often: Number) -> None:
        """Count an access to shared memory, where the group is staged."""
        of, on, group = self.of, self.plan.staged[position], self.plan.kernel.groups[position]
        if not group.shareable:
            return
        waves = of.bank_request(access, self.plan.box(group), group.element_bytes)
        of.add_shared(on * self.instances * often * (access.reads + access.writes), waves)
        loads = on * access.reads * often
        self.loads = self.loads + loads
        self.spread = self.spread + loads * waves * of.constants.bank_wait
        self.load_cycles = np.maximum(self.load_cycles, on * of.card.shared_cycles)

    def _global_use(self, position: int, access: AccessFacts, often: Number) -> None:
        """Count an access through L1, where the group is not staged."""
        of, group = self.of, self.plan.kernel.groups[position]
        away = 1.0 - self.plan.staged[position]
        wave, sector = of.request(access)
        absent = of.missing(self.statement, access, sector, wave)
        # neighbours fetch the same lines, each its share
        absent = absent / of.sharing(group.loops) / self.alike[form(access)]
        once = min(float(access.reads), 1.0)  # several reads of one element are one load
        requests = self.instances * often
        of.add_global(requests * away * once, wave, sector, absent)
        if access.writes:
            of.add_stores(requests * away, wave, sector, of.torn(access))
            stores = away * (often >= 1.0) * self._may_alias(access)
            self.stores = np.maximum(self.stores, stores)
        self.spread = self.spread + away * once * often * wave * of.constants.line_wait
        self.loads = self.loads + away * (once + access.writes) * often
        self.addresses = self.addresses + away * often
        read = of.launched_warps * requests * once * sector * SECTOR_BYTES * absent
        beyond = of.beyond_l1_cycles(group, read)
        cycles = of.card.l1_cycles + of.waiting(self.statement, access, wave) * beyond
        cycles = away * cycles * once * np.minimum(1.0, often)
        self.load_cycles = np.maximum(self.load_cycles, cycles)

    def _may_alias(self, access: AccessFacts) -> Number:
        """Return 1 where the statement reads other global memory, which may be the same.

        Private and shared arrays cannot be.
        """
        found: Number = 0.0
        for group, on in zip(self.plan.kernel.groups, self.plan.staged, strict=True):
            mine = (use.access for use in group.uses if use.statement == self.at)
            if not group.private and any(one.reference != access.reference for one in mine):
                found = np.maximum(found, 1.0 - on)
        return found

    def _stored(self, access: AccessFacts) -> Number:
        """Return how often an element that a serial loop updates is loaded and stored.

        The compiler keeps it in a register while the loop runs if nothing else that the statement
        reads may be the same memory.
        """
        updates = access.writes and access.reads and self.serial
        if not updates or self.serial[-1] in access.moving:
            return 1.0
        steps = self.plan.extent(self.serial[-1])
        return np.where(self._may_alias(access) > 0, 1.0, 1.0 / np.maximum(1.0, steps))
