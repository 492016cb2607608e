"""A launch of generated code on a card: registers, blocks of an SM, what L1 has, requests."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property, reduce
from math import prod

import numpy as np

from eatss.analysis.facts import AccessFacts
from eatss.analysis.variant import VECTOR_BYTES, WORD_BYTES
from eatss.base.memo import once_by
from eatss.cost.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    lines,
    sectors,
)
from eatss.cost.card import REGISTER_STEP, Card, CodeConstants, CudaConstants
from eatss.cost.demand import DemandBuilder
from eatss.plan.contract import ROOM_BESIDE_SUMS, STEPS_LOADED
from eatss.plan.intervals import at_least, mixed
from eatss.plan.launch import Compute, LaunchPlan
from eatss.plan.numbers import Number, any_of, common_divisor, largest, no, nowhere
from eatss.plan.shares import UniformSet
from eatss.plan.stage import element_words, vector

_LEAST_L1_BYTES = 16 * 1024.0
_ROUNDED = 1e-9


def _of_box(uniform: UniformSet) -> Hashable:
    """Return what a box of a uniform set follows from."""
    return uniform.access.terms, uniform.spans, uniform.access.element_bytes


class CudaCode(DemandBuilder):
    """What a launch has of a card, and the sums of what its entries ask for."""

    def __init__(
        self, plan: LaunchPlan, card: Card, constants: CodeConstants, code: CudaConstants
    ) -> None:
        """Begin at nothing."""
        super().__init__(plan, card, constants)
        self.plan, self.code = plan, code
        every, self.warps = self.warps, card.warps_of(plan.computing)
        self.launched_warps = plan.active * self.warps
        self.copiers = every / self.warps
        self.chains: dict[int, Number] = {}
        for name in self.names:
            setattr(self, name, np.zeros(plan.shape))

    @property
    def far_cycles(self) -> float:
        """Cycles of a load that L1 does not answer."""
        return self.code.far_wait * self.card.l2_cycles

    @property
    def l2_bytes_cycle(self) -> float:
        """Bytes that an SM has from L2 in a cycle."""
        return self.card.l2_bytes_s / self.card.sms / self.card.clock_hz

    # -- registers --------------------------------------------------------------------------------

    @cached_property
    def _registers(self) -> tuple[Number, Number]:
        """The registers that a thread takes, and those it cannot do without and lacks.

        Sums and addresses it needs, and of what it multiplies one operand of all points, and a
        vector of the others. Operands of all points are under way together, those of several steps
        where they are loaded together or ahead, without a serial loop half of those of one. Halves
        on their way to buffers have registers of their own. A compiler may be told how many blocks
        are to run at a time.
        """
        plan, card, code = self.plan, self.card, self.code
        plain = [one for one in plan.computes if not one.contract]
        least = largest(map(self._least_words, plain))
        most = largest([self._fragment_words, *map(self.operand_words, plain)])
        held = code.base_registers + plan.held_words + plan.register_staged_words
        wanted, needed = held + most, held + least
        room = np.floor(card.registers_per_block / np.maximum(card.warp, plan.block_threads))
        whole = np.floor(room / REGISTER_STEP) * REGISTER_STEP
        cap = np.minimum(card.registers_per_thread, whole)
        if len(plain) == len(plan.computes):
            late = any_of(one.loads_late for one in plain)
            is_bound = (plan.any_staged > 0) & (plan.pipeline_stages > 1) & no(late)
            bound = np.maximum(needed, plan.held_words + ROOM_BESIDE_SUMS)
            wanted = np.where(is_bound, np.minimum(wanted, bound), wanted)
        return np.minimum(wanted, cap), np.maximum(0.0, needed - cap)

    @property
    def registers(self) -> Number:
        """Registers of a thread."""
        return self._registers[0]

    @property
    def spilled_words(self) -> Number:
        """Registers that a thread lacks."""
        return self._registers[1]

    @once_by(lambda self, one: one)
    def step_words(self, one: Compute) -> Number:
        """Return the registers of what a thread loads for a step of a statement.

        Of a running sum those of what it adds up get it.
        """
        words: Number = 0.0
        summed = self.plan.rows_loaded[0] if self.plan.cut.scans else ()
        for use in one.uses:
            if not use.held and use.access.array not in summed:
                each: Number = use.count / 2
                if one.serial:
                    each = self.plan.distinct(use) * one.steps_together(use)
                words = words + each * element_words(use.access.element_bytes)
        return words

    def operand_words(self, one: Compute) -> Number:
        """Return the registers for a statement's operands."""
        words = self.step_words(one)
        return np.where(one.ahead, STEPS_LOADED * words, self.code.operand_registers * words)

    def _least_words(self, one: Compute) -> Number:
        """Return the registers without which a thread cannot multiply what it loads for a step."""
        own = [
            self.plan.distinct(use) * element_words(use.access.element_bytes)
            for use in one.uses
            if not use.held and use.reads
        ]
        if len(own) < len(("rows", "columns")) or not self.plan.cut.held:
            return 0.0
        return reduce(np.minimum, own) + VECTOR_BYTES // WORD_BYTES

    @property
    def _fragment_words(self) -> Number:
        """The registers that a thread needs for elements of both factors of products.

        It has those of one of them for all of its rows, those of the other for one matrix at a
        time; of two steps all where they are loaded ahead. Of further parts it has those of one
        matrix each.
        """
        plan, products = self.plan, self.plan.contracts.values()
        least = largest(one.least_words for one in products)
        parts = max((one.part_words for one in products), default=0.0)
        return np.where(plan.register_prefetch_on, STEPS_LOADED * plan.step_words, least) + parts

    # -- blocks of an SM --------------------------------------------------------------------------

    @cached_property
    def shared_bytes(self) -> Number:
        """Shared memory of a block."""
        return self.plan.shared_bytes

    @cached_property
    def resident(self) -> Number:
        """Blocks that fit an SM."""
        threads, card = self.plan.block_threads, self.card
        limit = card.shared_optin_bytes
        resident = card.resident_blocks(threads, self.registers, self.shared_bytes, limit)
        streams = np.ceil(self.plan.stream.blocks / card.sms)
        return np.where((streams > 0) & (streams <= resident), streams, resident)

    def add_chain(self, cycles: Number, *parts: int) -> None:
        """Add what a block waits for in parts, or in one of those of which it runs one."""
        if self.plan.cut.apart and len(parts) == 1:
            self.chains[parts[0]] = self.chains.get(parts[0], 0.0) + cycles
        else:
            self.chain_cycles += cycles

    @property
    def blocks(self) -> Number:
        """Blocks that have work. What they do counts as if one had rows of all nests beside."""
        return self.plan.active * self.plan.nests

    @cached_property
    def present(self) -> Number:
        """Blocks of an SM that are there."""
        return np.clip(np.ceil(self.blocks / self.card.sms), 1.0, self.resident)

    @cached_property
    def guarded(self) -> Number:
        """The share of blocks whose tile the end of a loop cuts off."""
        plan = self.plan
        free: Number = 1.0
        for name in plan.cut.mapped:
            cut = np.mod(plan.trips[name], plan.tile[name]) > 0
            free = free * np.where(cut, 1.0 - 1.0 / plan.steps[name], 1.0)
        if plan.cut.sum_loop is not None:  # none of whose tiles is whole
            loop = plan.cut.sum_loop
            free = free * np.where(plan.trips[loop] < plan.tile[loop], 0.0, 1.0)
        return 1.0 - free

    # -- requests of a warp -----------------------------------------------------------------------

    def different_bytes(self, access: AccessFacts) -> Number:
        """Return the bytes that differ between the lanes of a request."""
        pairs = zip(self.plan.lanes, self.strides(access), strict=True)
        return prod((lanes for lanes, step in pairs if step), start=1.0 * access.element_bytes)

    @once_by(
        lambda self, access, unaligned=0.0, apart=1.0: (
            (*self.strides(access),),
            access.element_bytes,
            unaligned,
            apart,
        )
    )
    def request(
        self, access: AccessFacts, unaligned: float = 0.0, apart: float = 1.0
    ) -> tuple[Number, Number]:
        """Return cycles of L1 and sectors of one request of a warp to global memory.

        L1 gives 128 bytes that differ in a cycle, of one line.
        ``unaligned`` is the share of requests whose rows of lanes begin inside a line. Neighbouring
        threads along x are ``apart`` by so many iterations.
        """
        lanes, strides = self.plan.lanes, self.strides(access)
        strides = [strides[0] * apart, *strides[1:]] if strides else strides
        least = np.maximum(1.0, self.different_bytes(access) / LINE_BYTES)
        touched = lines(lanes, strides, access.element_bytes)
        found = sectors(lanes, strides, access.element_bytes)
        if strides and abs(strides[0]) == access.element_bytes:
            touched = np.maximum(touched, self._in_pieces(access, LINE_BYTES)[0])
            found = np.maximum(found, self._in_pieces(access, SECTOR_BYTES)[0])
        if unaligned and lanes:
            touched = touched + unaligned * self.card.warp / lanes[0]
        return np.maximum(least, touched), found

    def torn(self, access: AccessFacts) -> Number:
        """Return the sectors that one store of a warp writes in part only."""
        strides, torn = self.strides(access), super().torn(access)
        if not strides or abs(strides[0]) != access.element_bytes:
            return torn
        touched, ends = self._in_pieces(access, SECTOR_BYTES)
        return np.maximum(torn, np.minimum(touched, 2.0 * ends))

    @once_by(
        lambda self, access, size: ((*map(bool, self.strides(access)),), access.element_bytes, size)
    )
    def _in_pieces(self, access: AccessFacts, size: int) -> tuple[Number, Number]:
        """Return the lines or sectors of a request whose lanes are neighbours along x.

        Rows of lanes begin inside one where a tile is no multiple of it, and a warp has the end of
        a row and the beginning of another where rows are no multiple of a warp: each such piece
        touches one more, for the share of it that is returned, too, summed over pieces.
        """
        loop, threads = self.plan.axes[0]
        lanes, warp, strides = self.plan.lanes, self.card.warp, self.strides(access)
        rows = prod(
            (own for own, step in zip(lanes[1:], strides[1:], strict=True) if step), start=1.0
        )
        cuts = (threads - common_divisor(threads, float(warp))) / np.maximum(threads, warp)
        together = common_divisor(threads, self.plan.tile[loop]) * access.element_bytes
        ends = rows * (1.0 + cuts) * (1.0 - common_divisor(together, float(size)) / size)
        return rows * lanes[0] * access.element_bytes / size + ends, ends

    def row_sectors(self, access: AccessFacts, elements: Number) -> Number:
        """Return the sectors of so many elements of a row of a tile.

        Rows begin inside a sector where tiles are no multiple of it.
        """
        row = elements * access.element_bytes / SECTOR_BYTES
        return np.maximum(np.ceil(row), row + self._begins_inside(access))

    @once_by(lambda self, access: (access.terms[-1], access.element_bytes))
    def _begins_inside(self, access: AccessFacts) -> Number:
        """Return the share of rows of a tile that begin inside a sector."""
        plan = self.plan
        inside: Number = 0.0
        for name, factor in access.terms[-1]:
            if name in plan.tile:
                bytes_ = plan.tile[name] * abs(factor) * access.element_bytes
                share = 1.0 - common_divisor(bytes_, float(SECTOR_BYTES)) / SECTOR_BYTES
                inside = np.maximum(
                    inside, np.where(plan.trips[name] > plan.tile[name], share, 0.0)
                )
        return inside

    def row_request(self, access: AccessFacts) -> tuple[Number, Number]:
        """Return what :meth:`request` does where threads may have neighbouring points along x.

        Threads that follow each other have vectors that do.
        """
        mapped, (cycles, found) = self.plan.cut.mapped, self.request(access)
        rows = self.plan.neighbours(mapped[-1]) if mapped else False
        if nowhere(rows):
            return cycles, found
        own_cycles, own = self.request(access, apart=vector(access.element_bytes))
        return np.where(rows, own_cycles, cycles), np.where(rows, own, found)

    @once_by(lambda self, uniform: (uniform.group, uniform.access.terms))
    def banks(self, uniform: UniformSet) -> Number:
        """Return the cycles of one request to the tile of a uniform set in shared memory."""
        plan, access = self.plan, uniform.access
        if uniform.group is None or nowhere(plan.staged(uniform.group)):
            return 1.0
        sizes = plan.stages[uniform.group].declared
        return self.bank_request(access, sizes, access.element_bytes)

    # -- L1 ---------------------------------------------------------------------------------------

    @cached_property
    def working_bytes(self) -> Number:
        """What a block touches through L1 in a step of its innermost loops, in bytes."""
        most: Number = 0.0
        for one in self.plan.computes:
            total: Number = 0.0
            for use in one.uses:
                if not use.held and use.reads:
                    touched = self._step_lines(one, use) * LINE_BYTES
                    total = total + touched * (1.0 - self.plan.staged(use.group))
            most = np.maximum(most, total)
        return most

    def _step_lines(self, one: Compute, uniform: UniformSet) -> Number:
        """Return the lines that all threads of a block touch through a uniform set in one step.

        With serial loops a step is all points of the threads at one iteration, else one point.
        """
        plan, access = self.plan, uniform.access
        lines: Number = uniform.rows
        for name in plan.cut.mapped:
            step = abs(access.moving.get(name, 0)) * access.element_bytes
            if step:
                along = plan.extent(name) if one.serial else plan.threads[name]
                lines = lines * (
                    along if step >= LINE_BYTES else np.ceil(along * step / LINE_BYTES)
                )
        if plan.cut.sum_loop in access.moving:
            step = abs(access.moving[plan.cut.sum_loop]) * access.element_bytes
            lines = lines * np.ceil(plan.sum_lanes * min(step, LINE_BYTES) / LINE_BYTES)
        return lines

    @once_by(lambda self, uniform, whole: (_of_box(uniform), whole))
    def _box_sectors(self, uniform: UniformSet, whole: bool) -> Number:
        """Return the sectors of what a tile, or all of a block, touches through a uniform set."""
        plan, access = self.plan, uniform.access
        sizes = plan.box(uniform, whole=whole)
        if not sizes:
            return 1.0
        loop = plan.cut.sum_loop
        last = self.row_sectors(access, sizes[-1])
        if whole and loop is not None and loop in dict(access.terms[-1]):  # chunks go to blocks
            run = np.minimum(plan.tile[loop], sizes[-1])
            run = np.where(plan.chunks > 1, run, sizes[-1])
            last = self.row_sectors(access, run) * sizes[-1] / run
        if uniform.spans[-1]:  # a halo begins in a sector of its own
            last = last + 1.0
        return prod(sizes[:-1], start=1.0) * last

    def missing_bytes(self, one: Compute, uniform: UniformSet, requests: Number) -> Number:
        """Return the bytes that come from L2 for a uniform set that is not staged.

        At best every sector of what a block touches comes once. L1 has to hold what is touched
        until it is touched again: for neighbours and the next step the lines of a step, for the
        next sweep of a loop that does not move the set all that a sweep touches.

        Args:
            one: a statement.
            uniform: accesses of the statement.
            requests: of all warps of the launch.
        """
        plan, access = self.plan, uniform.access
        _, each = self.request(access)
        span = 0.0 if not uniform.spans else uniform.spans[-1] * access.element_bytes / SECTOR_BYTES
        rows = self.card.warp / plan.lanes[0] if plan.lanes else 1.0
        most = np.minimum(
            requests * each, requests / uniform.count * uniform.rows * (each + span * rows)
        )
        sweeps: Number = 1.0
        inside = False
        for name in reversed(one.serial):
            inside = inside or name in access.moving
            if inside and name not in access.moving:
                sweeps = sweeps * plan.block_trips(name)
        chunks = plan.chunks if plan.cut.sum_loop in access.moving else 1.0
        once = plan.active * one.share * self._box_sectors(uniform, True)
        once = np.minimum(most, np.maximum(1.0, once / chunks))
        swept = np.minimum(most, once * sweeps)
        near, far = self._near, self._far(uniform)
        short = mixed(near, swept, most)
        found = mixed(far * near, once, short) * SECTOR_BYTES
        names = [name for terms in access.terms for name, _ in terms]
        if len(names) > len({*names}) or any(len(terms) > 1 for terms in access.terms):
            return found
        touched = prod(plan.trips[name] for name in names if name in plan.trips) * one.fill
        return at_least(found, touched * access.element_bytes * (1.0 - _ROUNDED))

    @cached_property
    def _near(self) -> Number:
        """The share that L1 has room for of what is touched in a step."""
        return self._kept(self.working_bytes)

    @once_by(lambda self, uniform: _of_box(uniform))
    def _far(self, uniform: UniformSet) -> Number:
        """Return the same of what a sweep touches through a uniform set."""
        return self._kept(self._box_sectors(uniform, False) * SECTOR_BYTES)

    def _kept(self, touched: Number) -> Number:
        """Return the share of bytes that every block touches that L1 has room for."""
        left = self.card.l1_shared_bytes - self.present * self.shared_bytes
        l1_bytes = np.maximum(_LEAST_L1_BYTES, left)
        return np.clip(l1_bytes / np.maximum(1.0, touched * self.present), 0.0, 1.0)
