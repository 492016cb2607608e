"""The price of a ``Stage``: the copy of a tile to shared memory, and the barriers around it.

The price of sums: what registers keep, lanes and blocks share, and blocks leave for others.
"""

from __future__ import annotations

import math
from math import prod

import numpy as np

from eatss.analysis.variant import WORD_BYTES, RegisterTileFacts
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES, issue_cycles, unrolled_instructions
from eatss.cost.card import SCHEDULERS
from eatss.cost.computes import product_cycles
from eatss.cost.cuda_code import CudaCode
from eatss.plan.launch import LaunchPlan
from eatss.plan.numbers import Number, largest, nowhere
from eatss.plan.shares import UniformSet
from eatss.plan.stage import FEWEST_AHEAD, PIECE_BYTES, element_words, vector


def add_stages(of: CudaCode) -> None:
    """Add the copies to shared memory, those back from there, and the barriers around them."""
    plan, code, card, tile = of.plan, of.code, of.card, _tile_cycles(of)
    barriers: Number = 0.0
    turns: Number = 0.0
    bytes_a_turn: Number = 0.0
    for at, stage in enumerate(plan.stages):
        used = plan.staged(at) * len(stage.parts)
        if nowhere(used):
            continue
        on, filled = used * stage.filled, _filled(plan, at)
        times = prod(map(plan.tiles_of_block, plan.serial_band[: stage.depth]), start=filled)
        loads = np.ceil(prod(stage.touched) / plan.block_threads)
        columns, width = stage.touched[-1], stage.element_bytes
        row_sectors = of.row_sectors(plan.widest(at), columns)
        tile_bytes = prod(stage.touched[:-1], start=1.0) * row_sectors * SECTOR_BYTES
        fetched = plan.active * tile_bytes * times * on
        # copies of products that warps compute are counted by element, but for halves
        by_element = plan.variant.instruction is not None and width >= WORD_BYTES
        together = 1 if by_element else stage.width
        wave = np.maximum(width * card.warp / LINE_BYTES, 1.0 / together)
        requests = loads * times * on * of.copiers
        piece = np.where(stage.transposed, PIECE_BYTES / width, np.inf)
        lines = np.ceil(card.warp / np.minimum(piece, np.maximum(1.0, columns)))
        in_vectors = np.where(
            stage.through_registers & plan.transposed_in_registers, vector(width), 1.0
        )
        of.l1_wavefronts += of.launched_warps * requests * np.maximum(wave, lines / in_vectors)
        of.add_shared(requests, wave)
        of.l2_bytes += fetched
        of.copied_bytes += fetched
        even = stage.unrolled | (together > 1)
        _add_stored(of, at, loads * times, wave)
        ahead = (stage.buffers > 1) & (even | (not stage.narrow))
        each = np.where(even, code.copy_instructions, code.ragged_instructions)
        sent = (ahead | plan.copies_together) & (not stage.narrow) & even
        each = np.where(sent, code.ahead_instructions, each)
        each = np.where(in_vectors > 1, each / in_vectors + 1.0, each)
        of.add_instructions(requests / together * each)
        waits = np.ceil(loads / together / np.where(even, code.batch, code.ragged_batch))
        waits = waits + loads * wave * code.line_wait / of.far_cycles
        alone = of.far_cycles * waits * (1.0 - 1.0 * stage.in_front)
        alone = np.where(plan.copies_together, loads * wave, alone)  # and once for all of a turn
        turns = np.maximum(turns, on * ahead * times)
        bytes_a_turn = bytes_a_turn + on * ahead * tile_bytes
        # what is sent ahead is waited for as far as the tiles before it do not take as long
        behind = np.maximum(0.0, of.far_cycles + loads * wave - (stage.buffers - 1.0) * tile)
        of.add_chain(on * times * np.where(ahead, behind, alone), *stage.parts)
        # where the loops around it begin anew, the first tile has nothing before it
        last = plan.serial_band[stage.depth - 1] if stage.depth else None
        again = (filled if last is None else times / plan.tiles_of_block(last)) - filled
        of.add_chain(on * ahead * again * of.far_cycles, *stage.parts)
        barriers = np.maximum(
            barriers, used * times * (np.where(ahead, 1.0, 2.0) + bool(stage.stored_in))
        )
    of.chain_cycles += plan.copies_together * _tiles(plan) * of.far_cycles
    of.chain_cycles += barriers * code.barrier_wait * card.barrier_cycles
    of.add_instructions(barriers * 2)
    of.edge_cycles += turns * _behind_cycles(of, bytes_a_turn, tile)


def _tile_cycles(of: CudaCode) -> Number:
    """Return what a warp takes by itself for what a block does with its tiles, in cycles.

    That is, for a tile of the serial loops, the products of warps or the arithmetic of threads that
    load vectors of their points, step by step. Those that load several steps at a time wait first.
    """
    plan, total = of.plan, product_cycles(of)
    in_rows = largest(1.0 * plan.neighbours(name) for name in plan.cut.mapped) > 0
    for one in plan.computes:
        if not one.contract and one.serial:
            each = unrolled_instructions(one.facts, of.constants, plan.points)
            steps = one.steps(one.serial) / one.tile_steps
            issue = issue_cycles(one.facts, of.card, one.points * each)
            ahead = in_rows & (largest([1.0, *map(one.steps_together, one.uses)]) == 1)
            total = total + ahead * one.share * steps * issue
    return total


def _behind_cycles(of: CudaCode, bytes_a_turn: Number, tile: Number) -> Number:
    """Return what all threads of a block wait for tiles in a turn, though these are filled ahead.

    Blocks go on together, and the first one that wants a sector has it from memory. What a turn
    copies takes the way from L2 as long as it takes. Copies among products start through half of a
    turn with two buffers, else through nearly all of it. Parts of a launch have turns of their own,
    one after the other. Turns of threads that multiply alone are so long that there is nothing to
    wait for.
    """
    plan, card = of.plan, of.card
    if plan.variant.instruction is None:
        return 0.0
    parts = sum(1 for part in plan.cut.parts if part.serial) or 1
    warps = np.ceil(plan.block_threads / card.warp) / SCHEDULERS
    turn = tile / parts * np.maximum(1.0, warps * of.present)
    late = (
        turn * plan.register_prefetch_on * np.where(plan.pipeline_stages == FEWEST_AHEAD, 0.5, 1.0)
    )
    if any(stage.narrow for stage in plan.stages):  # they start in front
        late = 0.0
    arrive = (
        of.far_cycles + card.dram_cycles + bytes_a_turn / parts * of.present / of.l2_bytes_cycle
    )
    return parts * np.maximum(0.0, arrive - ((plan.pipeline_stages - 1.0) * turn - late))


def _add_stored(of: CudaCode, group: int, copies: Number, wave: Number) -> None:
    """Add what threads copy back of a tile: so many elements each, in each part that writes it.

    A request takes ``wave`` cycles of shared memory.
    """
    stage, plan = of.plan.stages[group], of.plan
    alone = plan.staged(group) * len(stage.stored_in) * copies
    if nowhere(alone):
        return
    requests = alone * of.copiers
    columns = stage.touched[-1]
    sectors = of.row_sectors(plan.widest(group), columns)
    of.add_stores(requests, wave, sectors / np.maximum(1.0, columns / of.card.warp), 0.0)
    of.add_shared(requests, wave)
    of.add_instructions(requests * of.code.copy_instructions)
    of.chain_cycles += alone * wave


def _tiles(plan: LaunchPlan) -> Number:
    """Return the tiles of serial loops that a block has, in all parts of the launch."""
    return sum(prod(plan.steps.get(name, 1.0) for name in one.serial) for one in plan.cut.parts)


def _filled(plan: LaunchPlan, group: int) -> float:
    """Return the share of its steps that a block copies a tile in: those that its readers run in.

    As in a triangle, or where another statement of the nest has more instances.
    """
    most = max(one.fill for one in plan.computes)
    shares = [
        one.fill / most
        for one in plan.computes
        if most and any(use.group == group for use in one.uses)
    ]
    return max(shares, default=1.0)


_ATOMIC_TURN_CYCLES = 25.0
"""Cycles between two atomic operations on one sector of L2. From gramschmidt in doubles on an H100,
where 63 blocks add to an element: with two points a thread, and so two operations of a block on a
sector, it took 1.11 times the time (``gramschmidt-layouts``)."""

_ATOMIC_MOVES = 2.0
"""How often L2 moves what an atomic addition adds to."""

_EXCHANGE = 2.0
"""Atomic operations in the place of one where blocks compare and exchange: the value is read
first. That another block comes in between, and it is done again, is not counted."""

_MOVES = 3.0
"""Instructions for an element of a part: it is stored, loaded and added."""

_WAITS = 20.0
"""Loads from L2, one after the other, in the time that putting tiles together takes a block of an
SM: it leaves a part, passes a fence and says so, takes a ticket, waits and loads. From gemm of 1111
floats on an H100, against layouts without streams (``library-streams-by-hand``)."""


def add_held(of: CudaCode) -> None:
    """Add the loads and stores of what registers keep, or the atomic additions of it."""
    plan, code, points = of.plan, of.code, of.plan.all_points
    if plan.cut.scans:  # each step is stored
        points = points * plan.scan_steps
    for own in plan.cut.held:
        uses = [use for use in plan.uses if use.access.reference in own.references]
        if not uses:
            continue
        access = uses[0].access
        if own.across:
            _add_combined(of, own, *of.row_request(access))
            continue
        cycles, sectors = of.row_request(access)
        if plan.cut.shared_loop is not None:  # it starts at zero, and L2 reads, adds and writes
            times = _EXCHANGE if own.exchanges else 1.0
            of.add_global(points * times, cycles, sectors * _ATOMIC_MOVES)
            of.add_instructions(points * code.load_instructions * times)
            # those of all blocks to one sector come one after the other
            rows = plan.neighbours(plan.cut.mapped[-1]) if plan.cut.mapped else False
            requests = np.where(rows, vector(own.element_bytes), 1.0)
            turns = plan.blocks_of_sum * requests * _ATOMIC_TURN_CYCLES
            of.chain_cycles += (of.card.atomic_cycles + turns) * times
            continue
        if own.loads:
            of.add_global(points, cycles, sectors)
            of.chain_cycles += of.far_cycles * np.maximum(1.0, points / code.batch)
        if own.stored:
            of.add_stores(points, cycles, sectors, of.torn(access))
        of.add_instructions(points * (float(own.stored) + own.loads) * code.load_instructions)


def _add_combined(of: CudaCode, own: RegisterTileFacts, cycles: Number, sectors: Number) -> None:
    """Add what makes one of the parts that points along some loops have: of a warp, then of all.

    Atomic operations on one sector come one after the other, in the time of all blocks. Where
    values are exchanged only those that change something are, and each is waited for: of ``n``
    parts in any order the harmonic number of ``n`` are the least so far.
    """
    plan, points = of.plan, of.plan.points_beside(own.across)
    rounds = plan.rounds_across(own.across)
    left = points / 2.0**rounds
    times = _EXCHANGE if own.exchanges else 1.0
    of.add_instructions(points * (1.0 + 4.0 * rounds) + left * of.code.load_instructions * times)
    of.add_global(left * times, cycles, sectors * _ATOMIC_MOVES)
    each = prod((plan.threads[name] * plan.steps[name] for name in own.across), start=1.0)
    results = prod((plan.trips[one] for one in plan.cut.mapped if one not in own.across), start=1.0)
    beside = min(SECTOR_BYTES / own.element_bytes, results)
    parts = np.maximum(1.0, each / 2.0**rounds)
    turns = parts * beside * _ATOMIC_TURN_CYCLES
    waits: Number = 1.0
    if own.exchanges:
        changing = (1.0 + np.log2(parts) * math.log(2.0)) / parts
        waits = points * times * np.minimum(1.0, changing * of.card.warp / 2.0**rounds)
    alone = rounds * of.card.shared_cycles + of.card.atomic_cycles * waits
    of.chain_cycles += turns * np.minimum(1.0, of.card.sms / plan.blocks) + alone
    of.edge_cycles += (plan.pipeline_stages > 1) * alone  # nothing is copied or multiplied then


def add_spread(of: CudaCode) -> None:
    """Add the shuffles and atomic operations at the end of spread sums.

    Warps that share one leave their parts in shared memory, where the first one adds them up. Of
    sums side by side it leaves the whole there, behind one more barrier.
    """
    plan, points, card = of.plan, of.plan.all_points, of.card
    if plan.cut.sum_loop is None:
        return
    if plan.cut.scans:
        _add_scan(of, points * plan.scan_steps * len({own.array for own in plan.cut.held}))
        return
    lanes = np.maximum(1.0, plan.lanes_of_sum)
    warps = np.maximum(1.0, plan.sum_lanes / lanes)
    rounds, handed = np.log2(lanes), np.where(warps > 1, points * warps, 0.0)
    of.add_instructions(points * rounds * 4 + handed / warps)
    of.add_shared((handed + points * (warps > 1)) / warps, 1.0)
    of.chain_cycles += points * rounds * of.constants.result_wait * card.fp64_cycles * 2
    wait = of.code.barrier_wait * card.barrier_cycles + card.shared_cycles
    waits = (warps > 1) * (1.0 + (plan.beside > 1))
    of.chain_cycles += waits * wait + handed * card.fp64_cycles
    times, shared = _EXCHANGE if plan.cut.exchanges else 1.0, plan.blocks_of_sum > 1
    of.add_global(np.where(shared, points * times / warps, 0.0), 2.0, 8.0)
    turns = plan.blocks_of_sum * _ATOMIC_TURN_CYCLES
    of.chain_cycles += np.where(shared, (of.card.atomic_cycles + turns) * times, 0.0)


def _add_scan(of: CudaCode, steps: Number) -> None:
    """Add the shuffles of so many steps of a warp, of which each waits for the one before.

    Where lanes have vectors of steps, these are as a step is, and of each step a lane adds up what
    is before it in its vector, and what is in front of that.
    """
    rounds, words = np.log2(of.plan.sum_lanes), element_words(of.plan.cut.held[0].element_bytes)
    width = of.plan.rows_loaded[1]
    of.add_instructions(2.0 * steps * (width > 1))
    steps = steps / width
    passed_on = (words + 3.0) * (1.0 + (width > 1))
    of.add_instructions(steps * (rounds * (words + 3.0) + passed_on - 3.0))
    each = of.constants.result_wait * of.card.fp64_cycles + of.card.shared_cycles
    tiles = steps * of.plan.sum_lanes / of.plan.tile[of.plan.cut.sum_loop or ""]
    of.chain_cycles += steps * each + tiles * rounds * each
    if of.plan.cut.looks_back:
        _add_look_back(of, steps * words, np.where(of.plan.chunks > 1, 1.0, 0.0))


def _add_look_back(of: CudaCode, steps: Number, on: Number) -> None:
    """Add what a warp needs to know of the tiles before its own, and to put it in front.

    It takes a number, leaves what it has, then whether it has, and finds that of others likewise.
    """
    card, rounds = of.card, np.log2(of.plan.sum_lanes)
    of.add_instructions(on * (2.0 * steps + _LOOKS * 8.0 * rounds))
    of.add_global(on * _LOOKS * 2.0, 4.0, float(card.warp * WORD_BYTES))
    of.chain_cycles += on * (card.atomic_cycles + _LOOKS * 2.0 * of.far_cycles)


_LOOKS = 3.0
"""Times that a warp looks back at as many tiles as it has lanes. From sums of 10^8 floats on an
H200: 0.53 ms with tiles of 512, 0.36 with 1024, 0.32 with 2048."""


def add_parts(of: CudaCode) -> Number:
    """Add what parts of sums take that blocks leave and find; return the cycles of a block.

    Parts go to L2 and come from there, a line of each register of a warp. Blocks do so at the same
    time, as they have equal shares, and nothing is computed meanwhile.
    """
    plan, words, width = of.plan, of.plan.all_points, of.plan.facts.element_bytes
    if plan.cut.stream_loop is None:
        return 0.0
    often = words * plan.stream.cuts / plan.active
    of.add_instructions(often * _MOVES)
    of.add_global(2.0 * often, np.ceil(width / 4.0), width)
    each = np.ceil(plan.stream.blocks / of.card.sms)
    moved = 2.0 * (words * plan.block_threads * width * each) / of.l2_bytes_cycle
    return np.where(plan.stream.cuts > 0, _WAITS * each * of.far_cycles + moved, 0.0)


def loads_held(plan: LaunchPlan, use: UniformSet) -> bool:
    """Tell whether a thread loads what registers keep of a uniform set before it adds to it."""
    return any(own.loads for own in plan.cut.held if use.access.reference in own.references)


def stores_held(plan: LaunchPlan, use: UniformSet) -> bool:
    """Tell whether what a statement writes gets to memory: all but what registers have alone."""
    return all(own.stored for own in plan.cut.held if use.access.reference in own.references)
