"""A launch of PPCG's code on a card: registers, blocks of an SM, what L1 has, requests."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np

from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES, line_wavefronts, lines, sectors
from eatss.cost.card import BLOCK_SHARED_BYTES, Card
from eatss.cost.constants import CodeConstants
from eatss.cost.demand_builder import DemandBuilder
from eatss.plan.numbers import Number
from eatss.plan.ppcg import PpcgPlan
from eatss.plan.ppcg_groups import Group
from eatss.plan.rows import element_words

CARVE_OUTS_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Shared memory that an SM can be set to; what is left is L1 [CUDA C++ Programming Guide]."""

LEAST_L1_BYTES = 16 * 1024.0

MOST_CROWDED = 16
"""Sets of L1 that lines a power of two apart miss, at most, for each one they meet in."""

LEAST_FRESH = 0.05
"""Share of what a launch touches that comes from memory though all arrays fit L2."""

_MOST_REUSED = 64

_MOST_ADDRESSES = 16.0


def form(access: AccessFacts) -> object:
    """Return what accesses that differ by constants only have in common."""
    return access.array, access.terms


def l1_left(shared_bytes: Number, card: Card) -> Number:
    """Return the bytes of L1 of an SM beside the shared memory of all blocks that fit it.

    The driver takes the least carve-out that keeps no block from running, even where fewer run.
    """
    sizes = np.array([kib * 1024.0 for kib in CARVE_OUTS_KIB])
    sizes = sizes[sizes <= card.shared_per_sm_bytes]
    at = np.minimum(np.searchsorted(sizes, shared_bytes), len(sizes) - 1)
    taken = np.maximum(sizes[at], shared_bytes)
    return np.maximum(LEAST_L1_BYTES, card.l1_shared_bytes - taken)


class PpcgCode(DemandBuilder):
    """What a launch has of a card, and the sums of what its entries ask for."""

    def __init__(self, plan: PpcgPlan, card: Card, constants: CodeConstants) -> None:
        """Begin at nothing."""
        super().__init__(plan, card, constants)
        self.plan = plan
        self._kept: dict[frozenset[str], Number] = {}

    # -- what a thread and an SM have -------------------------------------------------------------

    @cached_property
    def _wanted_registers(self) -> Number:
        plan, constants = self.plan, self.constants
        width, points = element_words(plan.kernel.facts.element_bytes), plan.all_points
        reads = (sum(a.reads for a in one.accesses) for one in plan.kernel.statements)
        addresses = np.where(plan.unrolled > 0, np.minimum(points, _MOST_ADDRESSES), 1.0)
        private = (group for group in plan.kernel.groups if group.private)
        words = sum(points * element_words(group.element_bytes) for group in private)
        return (
            constants.base_registers
            + words * (1.0 - plan.local) * constants.private_register_factor
            + max(reads, default=1) * width * 2
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
        threads, limit = self.plan.block_threads, self.card.shared_per_block_bytes
        return self.card.resident_blocks(threads, self.registers, self.plan.shared_bytes, limit)

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
            different = np.minimum(resident, across / np.gcd(across.astype(np.int64), int(sms)))
        elif moved == [True, False]:
            different = np.minimum(resident, np.maximum(1.0, np.ceil(resident * sms / across)))
        else:
            return 1.0
        return 1.0 + self.constants.lockstep * (resident / np.maximum(1.0, different) - 1.0)

    # -- requests of a warp -----------------------------------------------------------------------

    def begins(self, access: AccessFacts) -> int:
        """Return the bytes from the beginning of a sector to that of a row of lanes."""
        strides = self.strides(access)
        along = bool(strides) and 0 < abs(strides[0]) <= SECTOR_BYTES
        return access.origin * access.element_bytes if along else 0

    def request(self, access: AccessFacts) -> tuple[Number, Number]:
        """Return wavefronts and sectors of one request of a warp to global memory."""
        lanes, strides, width = self.plan.lanes, self.strides(access), access.element_bytes
        offset, least = self.begins(access), self.card.warp * width / LINE_BYTES
        touched = lines(lanes, strides, width, offset)
        cycles = line_wavefronts(least, touched, self.constants.line_cycles)
        return cycles, sectors(lanes, strides, width, offset)

    # -- L1 ---------------------------------------------------------------------------------------

    def missing(
        self, statement: StatementFacts, access: AccessFacts, sector: Number, wave: Number
    ) -> Number:
        """Return the share of a warp's sectors that L1 does not have yet.

        Neighbouring warps and the next steps of serial loops touch the same sectors again. They
        find them where what the resident blocks touch meanwhile fits L1: in one step for the line
        that is walked along, in a step of the loop that comes back for all that a tile touches.
        """
        plan, moving = self.plan, access.moving
        distinct: Number = 1.0
        for name, count in plan.threads.items():
            if name in moving:
                distinct = distinct * count
        sharing = plan.block_threads / np.maximum(1.0, distinct)
        step_sectors = np.maximum(1.0, self.warps * sector)
        serial = plan.serial_loops(statement)
        reuse = 1.0
        if serial:
            step = abs(moving.get(serial[-1], 0)) * access.element_bytes
            if step == 0:
                reuse = float(min(_MOST_REUSED, plan.kernel.trips[serial[-1]]))
            elif step < SECTOR_BYTES:
                reuse = SECTOR_BYTES / step
        walked = 1.0 / np.minimum(sharing, step_sectors) / reuse
        near = self._lines_stay(access, wave)
        short = walked * near + (1.0 - near)
        instances = plan.points_along(statement.loops)
        for name in serial:
            instances = instances * plan.extent(name)
        touched = self._tile_sectors(access, frozenset())
        tile = np.minimum(1.0, touched / np.maximum(1.0, instances * step_sectors))
        comes_back = [at for at, name in enumerate(serial) if name not in moving]
        fits = self._stays(serial[: comes_back[-1] + 1] if comes_back else [])
        return np.minimum(short, tile * fits + short * (1.0 - fits))

    def waiting(self, statement: StatementFacts, access: AccessFacts, wave: Number) -> Number:
        """Return the share of a thread's requests that wait for more than L1.

        A thread waits the first time it comes to a sector. It comes again along loops that do not
        move the address, and along one that moves it by less than a sector.
        """
        serial = self.plan.serial_loops(statement)
        waits: Number = 1.0
        for position, name in enumerate(serial, start=1):
            step = abs(access.moving.get(name, 0)) * access.element_bytes
            innermost = position == len(serial)
            if step == 0:
                stays = 1.0 if innermost else self._stays(serial[:position])
                waits = waits * (1.0 - stays + stays / self.plan.extent(name))
            elif innermost and step < SECTOR_BYTES:
                stays = self._lines_stay(access, wave)
                waits = waits * (1.0 - stays + stays * step / SECTOR_BYTES)
        return waits

    def _lines_stay(self, access: AccessFacts, wave: Number) -> Number:
        """Return the share of the lines of one step that L1 keeps until the next step.

        Rows that lie a multiple of a large power of two apart meet in few of its sets.
        """
        step = abs(access.moving.get(self.plan.kernel.along_x or "", 0)) * access.element_bytes
        crowded = min(MOST_CROWDED, max(1, (step & -step) // LINE_BYTES)) if step else 1
        points = np.where(self.plan.unrolled > 0, self.plan.all_points, 1.0)
        uses = self.warps * wave * LINE_BYTES * self.present * crowded * points
        return np.clip(self.l1_bytes / np.maximum(1.0, uses), 0.0, 1.0)

    def _stays(self, serial: list[str]) -> Number:
        """Return the share of what a step of some serial loops touches that L1 keeps for the next.

        Lines go in the order they came: of twice what L1 has room for nothing is left.
        """
        still = frozenset(serial)
        if still not in self._kept:
            touched: Number = 0.0
            for group, on in zip(self.plan.kernel.groups, self.plan.staged, strict=True):
                if not group.private:
                    for access in {form(use.access): use.access for use in group.uses}.values():
                        own = self._tile_sectors(access, still)
                        touched = touched + (1.0 - on) * own * SECTOR_BYTES
            room = 2 * self.l1_bytes / np.maximum(1.0, touched * self.present) - 1.0
            self._kept[still] = np.clip(room, 0.0, 1.0)
        return self._kept[still]

    def _tile_sectors(self, access: AccessFacts, still: frozenset[str]) -> Number:
        """Return the sectors that a tile touches through one access while some loops stand."""
        total: Number = 1.0
        for position, terms in enumerate(access.terms, start=1):
            size: Number = 1.0
            for loop, factor in terms:
                if loop not in still:
                    size = size + abs(factor) * (self.plan.extent(loop) - 1)
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
        that run later fetch them again.
        """
        grid, steps, touched = self.plan.kernel.grid, self.plan.steps, self._touched_bytes(group)
        again: Number = 1.0
        several = len(grid) >= len(("rows", "columns")) and grid[0] not in group.loops
        if self.fresh == 1.0 and several and touched > 0.5 * self.card.l2_bytes:
            rows, columns = grid
            resident = np.maximum(1.0, self.resident) * self.card.sms
            at_once = np.maximum(1.0, resident / steps[columns])
            again = np.maximum(1.0, steps[rows] / at_once)
        return touched * again * self.fresh

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
        card, constants = self.card, self.constants
        return constants.l2_wait * card.l2_cycles + share * constants.dram_wait * card.dram_cycles
