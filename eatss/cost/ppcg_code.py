"""A launch of PPCG's code on a card: registers, blocks of an SM, what L1 has, requests.

The price of a statement in PPCG's code, instance by instance of a thread.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from itertools import takewhile
from math import prod

import numpy as np

from eatss.analysis.facts import AccessFacts, StatementFacts
from eatss.cost.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    lines,
    result_cycles,
    sectors,
    unrolled_instructions,
)
from eatss.cost.card import BLOCK_SHARED_BYTES, SCHEDULERS, Card, CodeConstants
from eatss.cost.demand import DemandBuilder
from eatss.plan.intervals import at_least, beyond, mixed
from eatss.plan.numbers import Flag, Number, any_of, largest, no, nowhere
from eatss.plan.ppcg import Group, PpcgPlan, Use, has_branches, spanned
from eatss.plan.stage import element_words

CARVE_OUTS_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Shared memory that an SM can be set to; what is left is L1 [CUDA C++ Programming Guide]."""

LEAST_L1_BYTES = 16 * 1024.0

MOST_CROWDED = 16
"""Sets of L1 that lines a power of two apart miss, at most, for each one they meet in."""

LEAST_FRESH = 0.05
"""Share of what a launch touches that comes from memory though all arrays fit L2."""

MOST_LOADED_BYTES = 16
"""Of a thread by one load [PTX ISA]."""

MOST_KEPT = 64
"""Loads of a loop that is unrolled whose values stay in registers; 48 are seen."""

_MOST_REUSED = 64


def form(access: AccessFacts) -> object:
    """Return what accesses that differ by constants only have in common."""
    return access.array, access.terms


def l1_left(shared_bytes: Number, card: Card) -> Number:
    """Return the bytes of L1 of an SM beside the shared memory of all blocks that fit it.

    The driver takes the least carve-out that keeps no block from running, even where fewer run.
    """
    sizes = [kib * 1024.0 for kib in CARVE_OUTS_KIB if kib * 1024 <= card.shared_per_sm_bytes]
    taken: Number = sizes[-1]
    for size in reversed(sizes[:-1]):
        taken = np.where(shared_bytes <= size, size, taken)
    return np.maximum(LEAST_L1_BYTES, beyond(card.l1_shared_bytes, np.maximum(taken, shared_bytes)))


def _kept(touched: Number, l1_bytes: Number) -> Number:
    """Return the share of bytes that L1 still has when they are touched again.

    Lines go in the order they came: of twice what L1 has room for nothing is left.
    """
    return np.minimum(beyond(2 * l1_bytes / np.maximum(1.0, touched), 1.0), 1.0)


class PpcgCode(DemandBuilder):
    """What a launch has of a card, and the sums of what its entries ask for."""

    def __init__(self, plan: PpcgPlan, card: Card, constants: CodeConstants) -> None:
        """Begin at nothing."""
        super().__init__(plan, card, constants)
        self.plan = plan
        self.launched_warps = plan.tiles * self.warps  # once for each tile
        self._kept: dict[frozenset[str], Number] = {}
        self._requests: dict[object, tuple[Number, Number]] = {}
        self._missing: dict[object, Number] = {}
        self._banks: dict[object, Number] = {}

    @property
    def issue_cycles(self) -> Number:
        """Cycles in which a scheduler would issue all instructions; its units take some longer."""
        lanes, card = self.card.warp * SCHEDULERS, self.card
        wide, narrow = lanes / card.fp64_per_cycle, lanes / card.fp32_per_cycle
        return self.instructions + self.fp64 * wide + self.fp32 * narrow

    # -- what a thread and an SM have -------------------------------------------------------------

    @cached_property
    def _wanted_registers(self) -> Number:
        plan, constants = self.plan, self.constants
        width, points = element_words(plan.kernel.facts.element_bytes), plan.all_points
        statements = plan.kernel.statements
        reads = [sum(a.reads for a in one.accesses) for one in statements]
        most, along = max(reads, default=1), plan.points_along([*plan.threads][-1:])
        # of an outer product the operands along its shorter side stay, the others come one by one
        beside = most - 1.0 + np.minimum(along, points / along)
        unrolled = constants.unrolled_registers + beside * width
        # what is loaded stays through the branches of a division
        live = max(
            (own for own, x in zip(reads, statements, strict=True) if has_branches(x)), default=0
        )
        usual = max(constants.rolled_registers, constants.base_registers + 2.0 * live * width)
        groups = plan.kernel.groups
        kept = sum(
            self.stays(group, on, use)[1] * element_words(group.element_bytes)
            for group, on in zip(groups, plan.staged, strict=True)
            for use in group.uses
        )
        # what only an end of a loop uses comes and goes there
        words = sum(
            points * element_words(group.element_bytes)
            for group in groups
            if group.private and not all(statements[use.statement].tied for use in group.uses)
        )
        # tests behind each other have a bound each
        bounds = sum(
            self.tests(one) * plan.points_along(one.coupled)
            for one in statements
            if self.rows_end(one)
        )
        words = words * (1.0 - plan.local)
        return np.where(plan.unrolled > 0, unrolled + bounds, usual) + words + kept

    def side(self, statement: StatementFacts) -> Number:
        """Return the points of a thread that stand in the text of a step, one by one."""
        plan = self.plan  # private arrays in local memory keep the points of a thread in order
        apart = (plan.unrolled > 0) & (plan.local == 0)
        return np.where(apart, plan.points_along(statement.loops), 1.0)

    def in_full(self, statement: StatementFacts) -> Flag:
        """Where the serial loop inside is of known length, and short enough to be unrolled."""
        last = self.plan.serial_loops(statement)[-1]
        steps, limit = self.plan.extent(last), self.constants.unrolled_steps
        return self.plan.known(statement, last) & (steps * self.side(statement) <= limit)

    def tests(self, statement: StatementFacts) -> Number:
        """Return the share of points of a triangle that have tests of their own.

        Points on one diagonal share a test where tiles are squares, and threads along one side a
        multiple of those along the other; none is left in a serial loop of known length. But of
        rows that end at the diagonal each point above it is tested behind the one before it, in any
        loop [machine code].
        """
        plan, coupled, serial = self.plan, statement.coupled, self.plan.serial_loops(statement)
        mapped = [name for name in plan.kernel.threads if name in statement.loops]
        over = plan.points_along({*statement.loops} & {*coupled})
        first, *others = [name for name in mapped if name in coupled] or [""]
        skewed = any(name in coupled for name in serial) or any_of(
            (plan.tile[name] != plan.tile[first]) | _unlike(plan.threads[name], plan.threads[first])
            for name in others
        )
        sides = [plan.points[name] for name in (first, *others) if name]
        known = plan.known(statement, serial[-1]) if serial else True
        diagonals = sum(sides, -len(others))
        alike = np.where(known, 0.0, np.minimum(1.0, diagonals / over))
        if self.rows_end(statement):
            alike = (1.0 + 1.0 / np.minimum(*sides)) / 2.0
        return np.where(skewed, 1.0, alike) * (over > 1)

    def rows_end(self, statement: StatementFacts) -> bool:
        """Tell whether rows of a triangle over both grid loops end at its diagonal."""
        grid = self.plan.kernel.grid
        return len(grid) > 1 and {*grid} <= {*statement.coupled} and statement.late > 1 / 2

    def stays(self, group: Group, on: Number, use: Use) -> tuple[Number, Number]:
        """Return for how many steps of serial loops a thread loads once, and what it keeps of it.

        The compiler moves a load in front of loops that do not move it. If it unrolls the one
        inside in full, and its loads are few, so it does with all of them. No load passes a store
        that may be to the same memory [machine code].
        """
        plan, access = self.plan, use.access
        statement = plan.kernel.statements[use.statement]
        *outer, last = plan.serial_loops(statement) or ("",)
        if not last or group.private or group.writes:
            return 1.0, 0.0
        along = {*plan.kernel.threads[-1:]} & {*statement.loops}
        around = [(name, plan.extent(name)) for name in reversed(outer)]
        around += [(name, np.where(plan.unrolled > 0, 1.0, plan.points[name])) for name in along]
        still = takewhile(lambda own: own[0] not in access.moving, around)
        steps: Number = prod((count for _, count in still), start=1.0)
        count: Number = 0.0
        if last not in access.moving:
            steps = steps * plan.extent(last)
        else:
            count = plan.extent(last) * self.side(statement)
            few = self.in_full(statement) & (count <= MOST_KEPT) & (steps > 1)
            steps, count = np.where(few, steps, 1.0), np.where(few, count, 0.0)
        stored = largest(
            1.0 - there
            for other, there in zip(plan.kernel.groups, plan.staged, strict=True)
            if not other.private
            for its in other.uses
            if its.access.writes and last in plan.kernel.statements[its.statement].loops
        )
        free = np.maximum(on, 1.0 - stored)
        return mixed(free, steps, 1.0), free * count

    @cached_property
    def registers(self) -> Number:
        """Registers of a thread."""
        return np.minimum(self._wanted_registers, float(self.card.registers_per_thread))

    @property
    def spilled_words(self) -> Number:
        """Registers that a thread lacks."""
        return beyond(self._wanted_registers, self.registers)

    @property
    def spills_missing(self) -> Number:
        """The share of the lines of spilled registers that L1 loses before they come again."""
        words = self.spilled_words * self.plan.block_threads * self.present
        bytes_each = LINE_BYTES / self.card.warp
        return 1.0 - _kept(words * bytes_each, self.l1_bytes)

    @cached_property
    def resident(self) -> Number:
        """Blocks that fit an SM."""
        threads, limit = self.plan.block_threads, self.card.shared_per_block_bytes
        found = self.card.resident_blocks(threads, self.registers, self.plan.shared_bytes, limit)
        return at_least(found, 1.0)  # of a box those count that launch

    @cached_property
    def present(self) -> Number:
        """Blocks of an SM that are there."""
        return np.clip(np.ceil(self.plan.active / self.card.sms), 1.0, self.resident)

    @cached_property
    def l1_bytes(self) -> Number:
        """L1 of an SM beside shared memory."""
        shared = self.plan.shared_bytes
        return l1_left(self.resident * (shared + BLOCK_SHARED_BYTES) * (shared > 0), self.card)

    def sharing(self, loops: frozenset[str]) -> Number:
        """Return how many of an SM's resident blocks fetch the same of a group of references.

        Blocks are dealt to SMs one by one, those along ``x`` first.
        """
        grid, sms = self.plan.kernel.grid, float(self.card.sms)
        if len(grid) < len(("rows", "columns")):
            return 1.0
        across = np.maximum(1.0, self.plan.steps[grid[1]])
        resident = np.maximum(1.0, self.resident)
        moved = [name in loops for name in grid]
        if moved == [False, True]:
            different = across / np.gcd(across.astype(np.int64), int(sms))
        elif moved == [True, False]:
            different = np.ceil(resident * sms / across)
        else:
            return 1.0
        more = beyond(resident / np.maximum(1.0, different), 1.0)
        return 1.0 + self.constants.lockstep * more

    # -- requests of a warp -----------------------------------------------------------------------

    def begins(self, access: AccessFacts) -> int:
        """Return the bytes from the beginning of a sector to that of a row of lanes."""
        strides = self.strides(access)
        along = bool(strides) and 0 < abs(strides[0]) <= SECTOR_BYTES
        return access.origin * access.element_bytes if along else 0

    def request(self, access: AccessFacts) -> tuple[Number, Number]:
        """Return wavefronts and sectors of one request of a warp to global memory."""
        lanes, strides, width = self.plan.lanes, self.strides(access), access.element_bytes
        offset, least = self.begins(access) % LINE_BYTES, self.card.warp * width / LINE_BYTES
        key = (*strides, width, offset)
        if key not in self._requests:
            working = self.plan.block_threads / self.warps
            touched = lines(lanes, strides, width, offset, working)
            cycles = np.maximum(least, touched)
            self._requests[key] = cycles, sectors(lanes, strides, width, offset, working)
        return self._requests[key]

    def banks(self, group: Group, access: AccessFacts, together: int = 1) -> Number:
        """Return the cycles of one request to a group in shared memory, for several elements."""
        box, width = self.plan.box(group), group.element_bytes
        key = id(box), access.terms, width, together
        if key not in self._banks:
            self._banks[key] = self.bank_request(access, box, width, together)
        return self._banks[key]

    def hand_out(self, elements: Number, element_bytes: int) -> None:
        """Add what threads take from shared memory or put there, whether lanes share it or not."""
        self.operand_bytes += self.launched_warps * elements * self.card.warp * element_bytes

    # -- L1 ---------------------------------------------------------------------------------------

    def missing(
        self, statement: StatementFacts, access: AccessFacts, sector: Number, wave: Number
    ) -> Number:
        """Return the share of a warp's sectors that L1 does not have yet.

        Neighbouring warps and the next steps of serial loops touch the same sectors again. They
        find them where what the resident blocks touch meanwhile fits L1: in one step for the line
        that is walked along, in a step of the loop that comes back for all that a tile touches.
        """
        key = statement.name, form(access), self.begins(access) % LINE_BYTES
        if key not in self._missing:
            self._missing[key] = self._absent(statement, access, sector, wave)
        return self._missing[key]

    def _absent(
        self, statement: StatementFacts, access: AccessFacts, sector: Number, wave: Number
    ) -> Number:
        plan, moving = self.plan, access.moving
        distinct: Number = 1.0
        for name, count in plan.threads.items():
            if name in moving:
                distinct = distinct * count
        sharing = plan.block_threads / np.maximum(1.0, distinct)
        step_sectors = np.maximum(1.0, self.warps * sector)
        serial = plan.serial_loops(statement)
        reuse: Number = 1.0
        if serial:
            step = abs(moving.get(serial[-1], 0)) * access.element_bytes
            if step == 0:
                reuse = float(min(_MOST_REUSED, plan.kernel.trips[serial[-1]]))
            elif step < SECTOR_BYTES:
                reuse = SECTOR_BYTES / step
        else:
            reuse = self._points_together(statement, access)
        walked = 1.0 / np.minimum(sharing, step_sectors) / reuse
        near = self._lines_stay(access, wave)
        short = mixed(near, walked, 1.0)
        instances = plan.points_along(statement.loops)
        for name in serial:
            instances = instances * plan.extent(name)
        touched = self._tile_sectors(access, frozenset())
        tile = np.minimum(1.0, touched / np.maximum(1.0, instances * step_sectors))
        comes_back = [at for at, name in enumerate(serial) if name not in moving]
        fits = self._stays(serial[: comes_back[-1] + 1] if comes_back else [])
        return np.minimum(short, mixed(fits, tile, short))

    def waiting(self, statement: StatementFacts, access: AccessFacts, wave: Number) -> Number:
        """Return the share of a thread's requests that wait for more than L1.

        A thread waits the first time it comes to a sector. It comes again along loops that do not
        move the address, and along one that moves it by less than a sector.
        """
        serial = self.plan.serial_loops(statement)
        waits: Number = 1.0
        if not serial:
            stays = self._lines_stay(access, wave)
            waits = mixed(stays, 1.0 / self._points_together(statement, access), 1.0)
        for position, name in enumerate(serial, start=1):
            step = abs(access.moving.get(name, 0)) * access.element_bytes
            innermost = position == len(serial)
            if step == 0:
                stays = 1.0 if innermost else self._stays(serial[:position])
                waits = waits * mixed(stays, 1.0 / self.plan.extent(name), 1.0)
            elif innermost and step < SECTOR_BYTES:
                stays = self._lines_stay(access, wave)
                waits = waits * mixed(stays, step / SECTOR_BYTES, 1.0)
        return waits

    def _points_together(self, statement: StatementFacts, access: AccessFacts) -> Number:
        """Return how many points of a thread along ``x`` touch one sector, one after the other."""
        along = self.plan.kernel.along_x
        if along is None or along not in statement.loops:
            return 1.0
        step = abs(access.moving.get(along, 0)) * access.element_bytes * self.plan.threads[along]
        return np.clip(SECTOR_BYTES / np.maximum(1.0, step), 1.0, self.plan.points[along])

    def _lines_stay(self, access: AccessFacts, wave: Number) -> Number:
        """Return the share of the lines of one step that L1 keeps until the next step.

        Rows that lie a multiple of a large power of two apart meet in few of its sets.
        """
        step = abs(access.moving.get(self.plan.kernel.along_x or "", 0)) * access.element_bytes
        crowded = min(MOST_CROWDED, max(1, (step & -step) // LINE_BYTES)) if step else 1
        moved = {*self.plan.kernel.threads} & access.moving.keys()
        points = np.where(self.plan.unrolled > 0, self.plan.points_along(moved), 1.0)
        uses = self.warps * wave * LINE_BYTES * self.present * crowded * points
        return np.clip(self.l1_bytes / np.maximum(1.0, uses), 0.0, 1.0)

    def _stays(self, serial: list[str]) -> Number:
        """Return the share of what steps of some serial loops touch that L1 keeps for the next."""
        still = frozenset(serial)
        if still not in self._kept:
            self._kept[still] = _kept(self._walked(still) * self.present, self.l1_bytes)
        return self._kept[still]

    def _walked(self, still: frozenset[str]) -> Number:
        """Return the bytes of global memory that a tile touches while some loops stand."""
        total: Number = 0.0
        for group, on in zip(self.plan.kernel.groups, self.plan.staged, strict=True):
            if not group.private:
                for access in {form(use.access): use.access for use in group.uses}.values():
                    own = self._tile_sectors(access, still)
                    total = total + (1.0 - on) * own * SECTOR_BYTES
        return total

    def _tile_sectors(self, access: AccessFacts, still: frozenset[str]) -> Number:
        """Return the sectors that a tile touches through one access while some loops stand."""
        total: Number = 1.0
        for position, terms in enumerate(access.terms, start=1):
            moved = {loop: self.plan.extent(loop) for loop, _ in terms if loop not in still}
            size = spanned(terms, moved)
            if position == len(access.terms):
                size = np.ceil(size * access.element_bytes / SECTOR_BYTES)
            total = total * size
        return total

    # -- beyond L2 --------------------------------------------------------------------------------

    @cached_property
    def fresh(self) -> float:
        """The share of what a launch touches that L2 has not kept from the one before."""
        work = self.plan.kernel.facts.work
        everything = sum(a.elements * a.element_bytes for a in work.arrays)
        lost = 2 * everything / self.card.l2_bytes - 1.0
        return min(1.0, max(LEAST_FRESH, lost)) if (work.launches or 1) > 1 else 1.0

    def fetched_bytes(self, group: Group) -> Number:
        """Return the bytes of a group's elements that one launch takes from memory.

        Blocks that run at the same time find them in L2. Where the whole does not fit it, those
        that run later fetch them again, and a block where it comes back to them.
        """
        kernel, steps = self.plan.kernel, self.plan.steps
        grid = kernel.grid
        again: Number = 1.0
        several = len(grid) >= len(("rows", "columns")) and grid[0] not in group.loops
        if several and self._passes_l2(group):
            rows, columns = grid
            resident = np.maximum(1.0, self.resident) * self.card.sms
            at_once = np.maximum(1.0, resident / steps[columns])
            again = np.maximum(1.0, steps[rows] / at_once)
        still = [n for n in kernel.band if n not in kernel.threads and n not in group.loops]
        back = prod((steps[name] for name in still), start=1.0)
        return self._touched_bytes(group) * again * mixed(self._lost, back, 1.0) * self.fresh

    @cached_property
    def _lost(self) -> Number:
        """The share of what blocks walk over that L2 has no more when a serial tile comes back."""
        at_once = np.minimum(self.plan.active, np.maximum(1.0, self.resident) * self.card.sms)
        return 1.0 - _kept(self._walked(frozenset()) * at_once, self.card.l2_bytes / 2)

    def _touched_bytes(self, group: Group) -> float:
        """Return the bytes of a group's elements that one launch touches, about."""
        kernel = self.plan.kernel
        statements = [kernel.statements[use.statement] for use in group.uses]
        loops = {name for one in statements for name in one.loops}
        elements = prod(float(kernel.trips[name]) for name in group.loops if name in loops)
        fill = max(map(self.plan.fill, statements))
        array = next(a for a in kernel.facts.work.arrays if a.name == group.array)
        dense = min(elements * min(1.0, fill * 1.5), float(array.elements))
        steps = (step for use in group.uses for step in use.access.moving.values())
        walks = any(abs(step) * group.element_bytes <= SECTOR_BYTES // 2 for step in steps)
        return dense * (group.element_bytes if walks or elements <= 1 else SECTOR_BYTES)

    def beyond_l1_cycles(self, group: Group, l2_bytes: Number) -> Number:
        """Return the cycles of a load that L1 does not answer, beyond those of L1.

        ``l2_bytes`` are all that the loads of the group take from L2; what of it comes from memory
        takes longer.
        """
        share = np.clip(self.fetched_bytes(group) / np.maximum(1.0, l2_bytes), 0.0, 1.0)
        return self.card.l2_cycles + share * self.card.dram_cycles

    def _passes_l2(self, group: Group) -> bool:
        """Tell whether L2 does not hold what a launch touches of a group."""
        return self.fresh == 1.0 and self._touched_bytes(group) > 0.5 * self.card.l2_bytes


_ROLLED_POINTS = 4
"""Points of a thread up to which a loop of unknown length is unrolled in full measure."""


def add_computes(of: PpcgCode) -> None:
    """Add the instances of all statements."""
    for at in range(len(of.plan.kernel.statements)):
        _Counting(of, at).add()


def _unlike(one: Number, other: Number) -> Flag:
    """Tell whether neither number is a multiple of the other."""
    return (np.mod(one, other) > 0) & (np.mod(other, one) > 0)


class _Counting:
    """Adds up one statement.

    Of an instance ``loads`` and ``addresses`` are instructions; ``load_cycles`` what the slowest
    load waits for, ``under_way`` what all would one by one, ``tested_cycles`` those behind tests;
    ``spread`` what requests of many lines or banks take in addition; ``stores`` 1 where something
    is stored that a later load may read. ``guards`` is the share of points that are tested one by
    one at every step: those that may lie beyond the end of a loop, and the share ``tests`` of those
    over a triangle.
    """

    loads: Number = 0.0
    addresses: Number = 0.0
    stores: Number = 0.0
    load_cycles: Number = 0.0
    under_way: Number = 0.0
    tested_cycles: Number = 0.0
    spread: Number = 0.0

    def __init__(self, of: PpcgCode, at: int) -> None:
        plan = self.plan = of.plan
        self.of, self.at, self.statement = of, at, plan.kernel.statements[at]
        loops = self.statement.loops
        self.mapped = tuple(name for name in plan.kernel.threads if name in loops)
        self.points, self.serial = plan.points_along(loops), plan.serial_loops(self.statement)
        steps: Number = 1.0
        for name in self.mapped:
            if name not in plan.kernel.grid:
                steps = steps * plan.steps[name]
        trips = float(prod(plan.kernel.trips[name] for name in self.serial))
        self.instances = self.points * steps * trips * plan.fill(self.statement)
        self.executed = self.instances * plan.busy_warps(loops)
        self.unrolled = (plan.unrolled if self.mapped else 0.0) > 0
        self.known = plan.known(self.statement, self.serial[-1]) if self.serial else True
        self.tests = of.tests(self.statement)
        self.guards = self._guarded(plan.threads)
        self.side = of.side(self.statement)

    @cached_property
    def in_full(self) -> Flag:
        """Where the serial loop inside is unrolled in full."""
        return self.of.in_full(self.statement)

    def add(self) -> None:
        """Add arithmetic, accesses, loops and tests, and what a thread waits for."""
        of, plan, constants, unrolled = self.of, self.plan, self.of.constants, self.unrolled
        steps = {name: np.where(unrolled, plan.points[name], 1.0) for name in self.mapped}
        arithmetic = unrolled_instructions(self.statement, constants, steps)
        of.add_arithmetic(self.statement, self.executed * arithmetic)
        for position, group in enumerate(plan.kernel.groups):
            for use in group.uses:
                if use.statement != self.at:
                    continue
                if group.private:
                    self._private_use(use.access)
                    continue
                self._shared_use(position, use)
                self._global_use(position, use)
        beside = np.where(unrolled, np.maximum(1.0, self.points), 1.0)
        addressing = np.where(unrolled, constants.unrolled_address, constants.loop_address)
        if self.serial:
            once = mixed(1.0 / plan.extent(self.serial[-1]), addressing, constants.known_address)
            addressing = np.where(self.in_full & (plan.cut_off == 0), once, addressing)
        of.add_instructions(
            self.executed
            * (
                self.loads
                + self.addresses * addressing
                + constants.loop_instructions / beside
                + plan.cut_off * constants.guard_instructions
            )
        )
        result = result_cycles(self.statement, of.card, constants) / self._beside_each_other()
        waits = (self._waits() + result) / self.side
        of.chain_cycles += plan.turns * self.instances * (waits + self.spread)

    def _guarded(self, loops: Collection[str]) -> Number:
        """Return the share of points behind tests of their own along some loops, or a triangle."""
        found, along = self.plan.guarded(loops), self.plan.kernel.threads[-1:]
        if not self.statement.coupled or (
            self.of.rows_end(self.statement) and not {*along} & {*loops}
        ):
            return found  # what is in front of a row is in front of its tests
        return np.maximum(self.tests, found)

    def _loaded(self, access: AccessFacts) -> tuple[Number, Number, Number]:
        """Return how often an access is made for each point of those side by side.

        And how often behind a test of its own, and of these so that no point was there before.
        Points that read the same element share the load. A test in a loop inside those that do not
        move the access stands in front of it anew for each of their points.
        """
        still = [name not in access.moving for name in self.mapped]
        inside = {*self.mapped[still.index(True) :]} if any(still) else set()
        moving = {*self.mapped} & access.moving.keys()
        share = 1.0 / self.plan.points_along({*self.mapped} - moving)
        guards = self._guarded(inside & moving)
        tested = mixed(guards, 1.0, self.plan.guarded(moving - inside) * share)
        first = np.minimum(tested, self._guarded(moving) * share)
        unrolled = self.unrolled
        often = np.where(unrolled, mixed(guards, 1.0, share), 1.0)
        return often, tested * unrolled, first * unrolled

    def _waits(self) -> Number:
        """Return the cycles that a thread waits for loads, for an instance of all points.

        The compiler unrolls a serial loop of known length, in parts where it is long; then a window
        of loads is under way at any time. Of one of unknown length it unrolls a few steps. A load
        does not pass a store that may be to the same element, nor a test, nor the branch of a
        division: there each step, and each tested point, waits; for what is in shared memory each
        for its own load.
        """
        constants, side = self.of.constants, self.side
        run: Number = np.where(self.unrolled, 1.0, constants.rolled)
        if self.serial:
            steps = self.plan.extent(self.serial[-1])
            few = np.minimum(constants.rolled, steps)
            few = np.clip(_ROLLED_POINTS * constants.rolled / side, 1.0, few)
            run = np.where(self.known, self._unrolled_steps, few)
        branches = has_branches(self.statement, self.serial[-1:])
        run = np.where((self.stores > 0) | branches, 1.0, run)
        tested = self.guards * side * self.unrolled
        free = np.maximum(
            self.load_cycles / run, self.under_way * beyond(side, tested) / constants.window
        )
        free = np.where(tested >= 1.0, (tested < side) * self.load_cycles, free)
        return free + self.tested_cycles * side

    @property
    def _unrolled_steps(self) -> Number:
        """Steps of a serial loop of known length that the compiler puts together."""
        steps, together = self.plan.extent(self.serial[-1]), self.of.constants.unrolled_part
        return np.where(self.in_full, steps, np.clip(np.floor(together / self.side), 1.0, steps))

    def _beside_each_other(self) -> Number:
        """Return for how many steps, which need nothing of others, a thread waits for results."""
        last, accesses = self.serial[-1:], self.statement.accesses
        written = [access for access in accesses if access.writes]
        needed = any(not {*last} <= access.moving.keys() for access in written) or any(
            one.array == access.array and one.subscripts != access.subscripts
            for access in written
            for one in accesses
        )
        if needed or not self.serial:
            return 1.0
        return np.where(self.known, self._unrolled_steps, 1.0)

    def _private_use(self, access: AccessFacts) -> None:
        """Count an access to a private array that left the registers."""
        of, local = self.of, self.plan.local
        total = local * of.launched_warps * self.executed
        bytes_each = of.card.warp * access.element_bytes
        times = access.reads + access.writes
        of.l1_wavefronts += total * times * bytes_each / LINE_BYTES
        of.instructions += total * times
        of.l2_bytes += total * access.writes * bytes_each
        self.load_cycles = np.maximum(self.load_cycles, local * of.card.l1_cycles)
        self.stores = np.maximum(self.stores, local)

    def _shared_use(self, position: int, use: Use) -> None:
        """Count an access to shared memory, where the group is staged."""
        of, on, group = self.of, self.plan.staged[position], self.plan.kernel.groups[position]
        access = use.access
        if nowhere(on):
            return
        often, tested, _ = self._loaded(access)
        waves, together = of.banks(group, access), self._together(access, group)
        for count in (2, 4):
            if not nowhere(together == count):
                waves = np.where(together == count, of.banks(group, access, count), waves)
        often = often / together / self.of.stays(group, on, use)[0]
        requests = on * self.executed * often * (access.reads + access.writes)
        of.add_shared(requests, waves)
        of.hand_out(requests * together, group.element_bytes)
        loads = on * access.reads * often
        self.loads = self.loads + loads
        self.spread = self.spread + loads * waves * of.constants.bank_wait
        wait = on * of.card.shared_cycles
        self.under_way = self.under_way + loads * of.card.shared_cycles
        self.tested_cycles = self.tested_cycles + wait * access.reads * tested
        self.load_cycles = np.maximum(self.load_cycles, wait)

    def _together(self, access: AccessFacts, group: Group) -> Number:
        """Return how many elements a load from shared memory takes: those of 16 bytes at most.

        It does where the serial loop inside begins with its tile and is unrolled, for one or two
        points, walks along a row, and rows begin at multiples of its bytes [machine code].
        """
        *outer, (terms, spread) = group.box or [((), 1)]
        if access.writes or spread or not self.serial or dict(terms) != {self.serial[-1]: 1}:
            return 1.0
        row = self.plan.box(group)[-1] * group.element_bytes
        coupled = no(self.plan.cut.get(self.serial[-1], False)) & (
            self.serial[-1] in self.statement.coupled
        )
        found: Number = 1.0
        for count in (2, 4):
            if count * group.element_bytes <= MOST_LOADED_BYTES:
                whole = np.mod(row, count * group.element_bytes) == 0 if outer else True
                at_once = (self.in_full | coupled) & (self.side <= 2)
                found = np.where(at_once & whole, count, found)
        return found

    def _global_use(self, position: int, use: Use) -> None:
        """Count an access through L1, where the group is not staged."""
        of, group, access = self.of, self.plan.kernel.groups[position], use.access
        away = 1.0 - self.plan.staged[position]
        if nowhere(away):
            return
        stays, _ = of.stays(group, self.plan.staged[position], use)
        stored = self._stored(access) * self._left_by_store(access) / stays
        often, tested, first = (own * stored for own in self._loaded(access))
        wave, sector = of.request(access)
        absent = of.missing(self.statement, access, sector, wave)
        absent = np.minimum(1.0, absent * stays) / of.sharing(group.loops) * self._own_share(access)
        once = min(float(access.reads), 1.0)  # several reads of one element are one load
        requests = self.executed * often
        of.add_global(requests * away * once, wave, sector, absent)
        if access.writes:
            of.add_stores(requests * away, wave, sector, of.torn(access))
            stores = away * (often >= 1.0) * self._may_alias(access)
            self.stores = np.maximum(self.stores, stores)
        least = of.card.warp * access.element_bytes / LINE_BYTES  # cycles of L1 at any rate
        lines_wait = least + beyond(wave, least) * of.constants.line_wait
        self.spread = self.spread + away * once * often * lines_wait
        self.loads = self.loads + away * (once + access.writes) * often
        self.addresses = self.addresses + away * often
        read = of.launched_warps * requests * once * sector * SECTOR_BYTES * absent
        beyond_l1 = of.beyond_l1_cycles(group, read)
        waits = np.minimum(1.0, of.waiting(self.statement, access, wave) * stays)
        cycles = of.card.l1_cycles + waits * beyond_l1
        self.under_way = self.under_way + away * once * often * cycles
        slow = of.constants.guard_waits * (
            first * cycles + beyond(tested, first) * of.card.l1_cycles
        )
        self.tested_cycles = self.tested_cycles + away * once * slow
        cycles = away * cycles * once * np.minimum(1.0, often * self.side)
        self.load_cycles = np.maximum(self.load_cycles, cycles)

    def _own_share(self, access: AccessFacts) -> Number:
        """Return the share of a block's lines that no access like this one, and before it, has.

        Of boxes of one form that lie apart: what the one that meets it most leaves of it.
        """
        kernel = self.plan.kernel
        extents = {**kernel.trips, **{name: self.plan.tile[name] for name in kernel.grid}}
        least = [1.0 for _ in access.terms[1:]] + [SECTOR_BYTES / access.element_bytes]
        sizes = [
            np.maximum(one, spanned(terms, {loop: extents[loop] for loop, _ in terms}))
            for terms, one in zip(access.terms, least, strict=False)
        ]
        left: Number = 1.0
        for other in self.statement.accesses:
            apart = [
                b - a for (_, a), (_, b) in zip(other.subscripts, access.subscripts, strict=False)
            ]
            if form(other) == form(access) and [0] * len(apart) < apart:
                shares = (beyond(1.0, abs(a) / size) for a, size in zip(apart, sizes, strict=True))
                left = np.minimum(left, 1.0 - prod(shares, start=1.0))
        return left

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

    def _left_by_store(self, access: AccessFacts) -> float:
        """Return how often what the step before has stored is loaded: first of unrolled steps."""
        loops = self.serial[-1:]
        steps = [dict(terms).get(name, 0) for terms in access.terms for name in loops]
        before = any(
            other.writes
            and form(other) == form(access)
            and [b - a for (_, a), (_, b) in zip(access.subscripts, other.subscripts, strict=True)]
            == steps
            for other in self.statement.accesses
        )
        return 1.0 / self.of.constants.rolled if any(steps) and before else 1.0

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
