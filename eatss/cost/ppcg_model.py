"""What PPCG's code for a kernel asks of a card, as a function of tiles, blocks and options.

A launch is planned by PPCG's rules (:mod:`eatss.plan.ppcg`) and priced as that of eatss is:
copies, then statements, then memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from eatss.analysis.facts import KernelFacts, touched_bytes
from eatss.base.frozen import frozen
from eatss.cards.profile import GpuProfile
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES
from eatss.cost.card import SCHEDULERS, Card, CodeConstants, card_of
from eatss.cost.demand import Demand
from eatss.cost.ppcg_code import PpcgCode, add_computes
from eatss.cost.terms import Predicted, predict
from eatss.plan.intervals import at_least, beyond
from eatss.plan.numbers import Flag, Number, all_of, any_of, largest, no
from eatss.plan.ppcg import Group, PpcgCandidates, PpcgKernel, PpcgPlan, ppcg_plan
from eatss.plan.stage import element_words

PAGE_PIECE_BYTES = 256

PAGE_BYTES = 2048
"""Of a page of memory, assumed: a block that walks further comes no oftener to one page."""

_LEAST_SHARE = 1e-6
"""Of blocks that have something to do; of none all sums are zero."""

_MOST_THREADS = 1024.0
"""Threads of a block on any card: a power of two, so that it is a multiple of smaller ones only."""

_OF_LANES = 0.5
"""Share of an instruction's energy that its lanes take, not the warp; of 1, 0.75 and 0.5, by blocks
of 2 and 3 threads."""

_COPY_UNROLL = 4
"""Steps of a loop of unknown length that the compiler puts together; from machine code."""


@frozen
class PpcgModel:
    """What PPCG's code for one kernel does on one card."""

    kernel: PpcgKernel
    card: Card
    constants: CodeConstants

    @classmethod
    def of(cls, facts: KernelFacts, profile: GpuProfile) -> PpcgModel:
        """Return the model of a kernel on a card."""
        return cls(kernel=PpcgKernel(facts), card=card_of(profile), constants=CodeConstants())

    def plan(self, candidates: PpcgCandidates) -> PpcgPlan:
        """Return what a launch of each candidate's code does."""
        return ppcg_plan(self.kernel, candidates)

    def columns(self, candidates: PpcgCandidates) -> tuple[Demand, Predicted]:
        """Return demand of a launch and prediction of a run, both with an entry a candidate."""
        of = PpcgCode(self.plan(candidates), self.card, self.constants)
        demand = _demand(of)
        return demand, predict(demand, self.card, self.constants)


def _demand(of: PpcgCode) -> Demand:
    """Return what each candidate's code asks of the card in one launch."""
    plan, constants, statements = of.plan, of.constants, of.plan.kernel.statements
    barriers = _add_copies(of)
    add_computes(of)
    if statements:
        main = max(statements, key=lambda s: s.instances or 0)
        trips = plan.kernel.trips
        serial = prod(float(trips[name]) for name in main.loops if name not in plan.threads)
        of.add_spills(of.spilled_words * serial, plan.fill(main), of.spills_missing)
    of.add_instructions(constants.start_instructions / plan.turns + constants.turn_instructions)
    many = (plan.kernel.facts.work.launches or 1) > 1
    of.chain_cycles = of.chain_cycles * (_over_mean(of) if many else 1.0)
    each = of.launched_warps / plan.turns
    # a warp issues in order, and after those of its block that share its scheduler, where they wait
    # for each other and no other block is there
    before = beyond(of.warps / SCHEDULERS, 1.0) / np.maximum(1.0, of.resident)
    before = before * np.minimum(1.0, barriers / 2)
    in_turn = 1.0 + constants.block_waits * before
    of.chain_cycles += constants.start_cycles + of.issue_cycles / each * in_turn
    return of.demand(
        len(plan),
        of_lanes=_OF_LANES,
        launches=float(plan.kernel.facts.work.launches or 1),
        registers=of.registers,
        shared_bytes=plan.shared_bytes,
        shared_limit_bytes=float(of.card.shared_per_block_bytes),
        dram_bytes=_moved_bytes(of),
        split_bytes=_split_bytes(of),
        scatter=_scatter(of),
        uneven=_uneven(plan),
        empty=0.0 if many else 1.0 - _busy(plan),
    )


def _uneven(plan: PpcgPlan) -> float:
    """Return by how much the last blocks have more work than all in the mean, over the mean.

    Negative where the first ones have more.
    """
    main = max(plan.kernel.statements, key=lambda one: one.instances or 0, default=None)
    if main is None or not {*main.coupled} & {*plan.serial_loops(main)}:
        return 0.0
    return 4.0 * main.late - 2.0  # work rises along the first loop, or falls


def _busy(plan: PpcgPlan) -> float:
    """Return the share of blocks that have something to do, which then have whole tiles.

    Others have nothing beyond a triangle, or where the host's loops make launches smaller and
    smaller.
    """
    work = plan.kernel.facts.work
    writes = (a for one in work.statements for a in one.accesses if a.writes)
    alike = all(one.touched is None or one.touched.fill == 1 for one in writes)
    if not plan.kernel.threads or alike:
        return 1.0
    return max(_LEAST_SHARE, *map(plan.fill, work.statements))


def _over_mean(of: PpcgCode) -> Number:
    """Return how much longer the blocks that a launch waits for take than all do in the mean.

    Where an SM has several in turn, it has some of either kind.
    """
    plan = of.plan
    several = np.ceil(plan.active / (np.maximum(1.0, of.resident) * of.card.sms)) * plan.turns
    return 1.0 / np.minimum(1.0, _busy(plan) * several)


# -- copies: private arrays, boxes in shared memory -----------------------------------------------


def _add_copies(of: PpcgCode) -> Number:
    """Add the copies of private and shared groups, and the barriers around them.

    Return how many barriers a tile has.
    """
    plan, card, constants = of.plan, of.card, of.constants
    fill = max(map(plan.fill, plan.kernel.statements), default=1.0)
    barriers: Number = 0.0
    latency = card.l2_cycles + card.dram_cycles  # all blocks that copy the same wait for the first
    for group, on in zip(plan.kernel.groups, plan.staged, strict=True):
        steps = _serial_steps(plan, group) * fill / plan.turns_beside(group)
        ways = 1.0 * group.reads + 1.0 * group.writes
        if group.private:
            count, access = plan.all_points, group.uses[0].access
            request = of.request(access)
            if group.reads:
                of.add_global(count * steps, *request)
            if group.writes:
                of.add_stores(count * steps, *request, of.torn(access))
            of.add_instructions(count * steps * ways * 2)
            of.chain_cycles += (
                plan.turns * steps * group.reads * latency * np.ceil(count / constants.window)
            )
        elif group.shareable:
            loads, each, waits, waves, sector, parts = _copy_loop(of, group)
            shared = of.sharing(group.loops)
            # as if all lanes had an element: those without ask for nothing
            asked = prod(plan.box(group)) / plan.block_threads
            waves = at_least(np.ceil(waves * asked / loads) * loads / asked, waves)
            requests, asked = loads * steps * on, asked * steps * on
            if group.reads:
                of.add_global(asked, waves, sector, 1.0 / shared)
            if group.writes:
                of.add_stores(asked, waves, sector, parts)
            of.add_shared(asked * ways, waves)
            of.hand_out(asked * ways, group.element_bytes)
            of.add_instructions(requests * ways * each)
            of.chain_cycles += plan.turns * on * steps * group.reads * latency * waits
            barriers = np.maximum(barriers, on * steps * 2)
    of.add_instructions(barriers * constants.barrier_instructions)
    of.chain_cycles += plan.turns * barriers * constants.barrier_wait * card.barrier_cycles
    return barriers


def _serial_steps(plan: PpcgPlan, group: Group) -> Number:
    """Return how often a tile runs the tile loops down to the last that moves a group."""
    band, grid = plan.kernel.band, plan.kernel.grid
    depth = max((at for at, name in enumerate(band, start=1) if name in group.loops), default=0)
    return prod((plan.steps[n] for n in band[:depth] if n not in grid), start=1.0)


def _copy_loop(of: PpcgCode, group: Group) -> tuple[Number, ...]:
    """Return what a thread copies of a group, and how.

    Loads, instructions of one, how often it waits, and of one wavefronts, sectors and torn ones.

    The last dimensions of the box are dealt out to the threads along the last axes. The compiler
    unrolls a loop of known length, so that a window of loads is under way, a few where only some
    threads copy; one that begins at the thread's number, or that the end of the array cuts off,
    stays a loop.
    """
    plan, card, constants = of.plan, of.card, of.constants
    sizes, threads = plan.box(group), [*plan.threads.values()]
    mapped = min(len(sizes), len(threads))
    first = len(sizes) - mapped
    pairs = [*zip(sizes[first:], threads[len(threads) - mapped :], strict=True)]
    counts = [*sizes[:first], *(np.ceil(size / count) for size, count in pairs)]
    dealt, loads = prod(counts[first:], start=1.0), prod(counts, start=1.0)
    even = (dealt == 1) & (loads <= constants.unrolled_steps)
    cuts = [any_of(plan.tiles_cut(n) for n, _ in t if n in plan.tile) for t, _ in group.box or ()]
    for cut, count in zip(cuts, counts, strict=True):
        even = even & (no(cut) | (count == 1))  # of one element a test stands around all loops
    every = all_of(size == count for size, count in pairs)
    most_loads = constants.copy_registers / element_words(group.element_bytes)
    under_way = np.minimum(np.where(every, constants.window, constants.rolled), most_loads)
    few, most = sizes[-1], threads[-1]
    uneven = (np.mod(few, most) > 0) & (few > most) & (most <= card.warp)
    strides: list[Number] = [*[1.0] * first, *threads[len(threads) - mapped :]]
    alone = [
        (np.mod(_MOST_THREADS, own) > 0) & no(cut) for own, cut in zip(strides, cuts, strict=True)
    ]
    requests, rolled = rolled_loads(counts, uneven, loads, alone)
    waits = np.where(even, np.ceil(loads / under_way), rolled)
    loads = np.where(even, loads, requests)
    each = np.where(even, constants.copy_instructions, constants.rolled_copy)
    across = np.maximum(1.0, card.warp / threads[-1])
    rows = np.minimum(across, sizes[-2] if len(sizes) > 1 else 1.0)
    along = np.minimum(np.minimum(threads[-1], sizes[-1]), card.warp)
    row_sectors = along * group.element_bytes / SECTOR_BYTES
    waves = np.maximum(rows, card.warp * group.element_bytes / LINE_BYTES)
    torn = rows * (np.mod(row_sectors, 1.0) > 0)
    return loads, each, waits, waves, rows * np.ceil(row_sectors), torn


def rolled_loads(
    counts: Sequence[Number], uneven: Flag, loads: Number, alone: Sequence[Flag]
) -> tuple[Number, Number]:
    """Return requests of a warp, and how often it waits, in loops that stay loops, outermost first.

    The compiler unrolls the innermost of more than one step by four. In front of that it makes the
    steps that are left: it waits for the first alone, then for the others. Where some lanes of a
    warp have a step less (``uneven``), it runs what is left for either. A loop inside another stays
    as it is, and each load waits ``alone``, where its stride is no power of two and no end cuts it
    off [machine code].
    """
    outer: Number = 1.0
    inner: Number = 1.0
    single: Flag = False
    for count, own in zip(reversed(counts), reversed(alone), strict=True):
        single = np.where(inner > 1, single, own)
        outer = np.where(inner > 1, outer * count, 1.0)
        inner = np.where(inner > 1, inner, count)
    single = single & (outer > 1)
    left, others = np.mod(inner, _COPY_UNROLL), np.mod(inner - 1, _COPY_UNROLL)
    most = np.maximum(left, np.where(uneven, others, 0.0))
    whole = np.floor(inner / _COPY_UNROLL)
    requests = outer * (_COPY_UNROLL * whole + most)
    waits = outer * (whole + np.minimum(2.0, most))
    requests, waits = (np.where(single, outer * inner, one) for one in (requests, waits))
    return at_least(requests, loads), at_least(waits, np.ceil(loads / _COPY_UNROLL))


# -- beyond L2 ------------------------------------------------------------------------------------


def _moved_bytes(of: PpcgCode) -> Number:
    """Return the bytes of one launch from and to memory.

    At least every sector once, unless all of it stays in L2 between launches. What blocks
    that do not run at the same time read again comes from memory where L2 cannot hold it.
    """
    total: Number = 0.0
    least = 0.0
    for array in of.plan.kernel.facts.work.arrays:
        groups = [group for group in of.plan.kernel.groups if group.array == array.name]
        for writing in (False, True):
            mine = [group for group in groups if (group.writes if writing else group.reads)]
            total = total + largest(map(of.fetched_bytes, mine))
            touched = [
                use.access.touched
                for group in mine
                for use in group.uses
                if use.access.touched is not None
                if (use.access.writes if writing else use.access.reads)
            ]
            whole = float(array.elements * array.element_bytes)
            least += min(whole, touched_bytes(touched)) * of.fresh
    return np.maximum(np.minimum(total, np.maximum(of.l2_bytes, total * 0.02)), least)


def _scatter(of: PpcgCode) -> Number:
    """Return how much longer memory takes because a block walks along its rows in steps.

    With one point a thread along ``x``, neighbouring blocks fetch neighbouring pieces of a
    page of memory at the same time. With more, each comes back to the page for every point.
    It matters where points are loops around loads and stores of global memory.
    """
    plan, constants = of.plan, of.constants
    along, groups = plan.kernel.along_x, plan.kernel.groups
    if along is None or not any(group.writes and not group.private for group in groups):
        return 1.0
    points = plan.points[along]
    piece = plan.threads[along] * plan.kernel.facts.element_bytes
    whole = np.maximum(piece, float(SECTOR_BYTES))
    steps = beyond(np.minimum(points * piece, PAGE_BYTES) / whole, 1.0)
    steps = steps * PAGE_PIECE_BYTES / whole
    return 1.0 + (plan.unrolled == 0) * constants.page_steps * steps


def _split_bytes(of: PpcgCode) -> Number:
    """Return bytes that take as long as lines take longer that two warps update in place.

    Rows of lanes do not begin at a line there: a part of it is wanted while the other is stored.
    Lines of other arrays that come meanwhile fill the time.
    """
    plan, line, along = of.plan, LINE_BYTES, of.plan.kernel.along_x or ""
    several = plan.points.get(along, 1.0) > 1
    times = np.where(several, of.constants.split_lines, of.constants.split_once)
    total: Number = 0.0
    for group, on in zip(plan.kernel.groups, plan.staged, strict=True):
        updates = (use.access for use in group.uses if use.access.reads and use.access.writes)
        access = next(updates, None)
        if group.private or access is None or access.moving.get(along) != 1:
            continue
        width = access.element_bytes
        rows = (abs(step) * width for name, step in access.moving.items() if name != along)
        apart = gcd(line, *rows)  # rows begin at multiples of it
        split = 1.0 if access.origin * width % apart else 1.0 - apart / line
        shared = np.minimum(1.0, line / (plan.lanes[0] * width))
        moved = 2.0 * of.fetched_bytes(group)
        others: dict[str, Number] = {}
        for one in plan.kernel.groups:
            if one.array != group.array and not one.private:
                most = np.maximum(others.get(one.array, 0.0), of.fetched_bytes(one))
                others[one.array] = most
        total = total + (1.0 - on) * split * shared * beyond(moved, sum(others.values()))
    return times * total
