"""The copies of generated code: boxes to shared memory, sums, and registers that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from eatss.analysis.structure import WORD_BYTES
from eatss.plan.rows import PIECE_BYTES, element_words, vector
from eatss.plan.stage import FEWEST_AHEAD, Stage
from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.card import SCHEDULERS
from eatss.prediction.cuda_boxes import GroupBox, in_front, is_narrow, stages_of
from eatss.prediction.cuda_caches import row_request, torn_request
from eatss.prediction.cuda_launch import CudaLaunch, Flags
from eatss.prediction.cuda_products import loads_ahead, operands_ahead
from eatss.prediction.cuda_resources import CodeResources
from eatss.prediction.cuda_statements import tile_cycles
from eatss.prediction.demand import Column
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.uniform_references import UniformSet

_ATOMIC_TURN_CYCLES = 25.0
"""Cycles between two atomic operations on one sector of L2. From gramschmidt in doubles on an H100,
where 63 blocks add to an element: with two points a thread, and so two operations of a block on a
sector, it took 1.11 times the time (``gramschmidt-layouts``)."""

_ATOMIC_MOVES = 2.0
"""How often L2 moves what an atomic addition adds to."""

_EXCHANGE = 2.0
"""Atomic operations in the place of one where blocks compare and exchange: the value is read
first. That another block comes in between, and it is done again, is not counted."""


def add_copies(setting: CodeResources, demand: DemandBuilder) -> None:
    """Add the copies to shared memory and the barriers around them."""
    of = setting.of
    code, threads = of.code, of.shape.block_threads
    barriers, turns, bytes_a_turn = of.zeros, of.zeros, of.zeros
    tile = tile_cycles(of)
    all_stages = stages_of(of, setting.boxes)
    in_lines = through_registers(of, setting.boxes)
    every = zip(setting.boxes, all_stages, in_front(of, setting.boxes), strict=True)
    for at, (box, stages, front) in enumerate(every):
        ahead = stages > 1
        on = of.staged(at) * of.cut.copies[at]
        if not on.any():
            continue
        filled = _filled(of, at)
        times = of.ones * filled
        for name in of.serial_band[: box.depth]:
            times = times * of.shape.steps[name]
        loads = np.ceil(of.product(box.sizes) / threads)
        stage = box.stage
        row_sectors = np.ceil(box.sizes[-1] * stage.element_bytes / SECTOR_BYTES)
        box_bytes = of.product(box.sizes[:-1]) * row_sectors * SECTOR_BYTES
        fetched = of.active * box_bytes * times * on
        together = _copied_together(of, at, stage)
        wave = np.maximum(stage.element_bytes * of.card.warp / LINE_BYTES, 1.0 / together)
        requests = loads * times * on
        lines = _request_lines(of, box)
        width = np.where(in_lines, vector(stage.element_bytes), 1.0)
        demand.l1_wavefronts += of.launched_warps * requests * np.maximum(wave, lines / width)
        demand.add_shared(requests, of.ones * wave)
        demand.l2_bytes += fetched
        demand.copied_bytes += fetched
        even = stage.unrolled | (together > 1)
        narrow = is_narrow(of, at)
        ahead = ahead & (even | (not narrow))
        each = _copy_instructions(of, even, ahead & (not narrow))
        each = np.where(in_lines, each / width + 1.0, each)
        demand.add_instructions(requests / together * each)
        waits = np.ceil(loads / together / np.where(even, code.batch, code.ragged_batch))
        waits = waits + loads * wave * code.line_wait / of.far_cycles
        alone = of.far_cycles * waits * (1.0 - front)
        here = on * ahead * times
        turns = np.maximum(turns, here)
        bytes_a_turn = bytes_a_turn + on * ahead * box_bytes
        # what is sent ahead is waited for as far as the tiles before it do not take as long
        behind = np.maximum(0.0, of.far_cycles + loads * wave - (stages - 1.0) * tile)
        demand.chain_cycles += on * times * np.where(ahead, behind, alone)
        # where the loops around it begin anew, the first tile has nothing before it
        around = times / of.shape.steps[of.serial_band[box.depth - 1]] if box.depth else filled
        again = around - filled
        demand.chain_cycles += on * ahead * again * of.far_cycles
        barriers = np.maximum(barriers, on * times * np.where(ahead, 1.0, 2.0))
    demand.chain_cycles += barriers * code.barrier_wait * of.card.barrier_cycles
    demand.add_instructions(barriers * 2)
    demand.edge_cycles += turns * _behind_cycles(setting, bytes_a_turn, tile)


def through_registers(of: CudaLaunch, boxes: Sequence[GroupBox]) -> Flags:
    """Tell where boxes are turned on their way through registers, a vector at a time.

    Rows of all of them lie otherwise than those of their arrays, operands are loaded ahead, and
    registers have room for the vectors, too.
    """
    found, registers = of.layout.boxes > 1, of.zeros
    for at, box in enumerate(boxes):
        on = of.staged(at) > 0
        if not on.any():
            continue
        found = found & (~on | box.stage.through_registers)
        each = prod(box.stage.extents) / of.shape.block_threads
        registers = registers + on * each * element_words(box.stage.element_bytes)
    if not found.any():
        return np.asarray(found)
    ahead = [operands_ahead(of, one, registers) for one in of.statements if of.serial(one)]
    return np.asarray(np.logical_and.reduce([found, *ahead]) & bool(ahead))


def _request_lines(of: CudaLaunch, box: GroupBox) -> Column:
    """Return the lines of the array that a warp copies from at a time, piece by piece if so."""
    piece = np.where(box.stage.transposed, PIECE_BYTES / box.stage.element_bytes, np.inf)
    return np.ceil(of.card.warp / np.minimum(piece, np.maximum(1.0, box.sizes[-1])))


def _copy_instructions(of: CudaLaunch, even: Flags, ahead: Flags) -> Column:
    """Return the instructions of a thread for an element."""
    each = np.where(even, of.code.copy_instructions, of.code.ragged_instructions)
    return np.where(ahead & even, of.code.ahead_instructions, each)


def _behind_cycles(setting: CodeResources, bytes_a_turn: Column, tile: Column) -> Column:
    """Return what all threads of a block wait for boxes in a turn, though these are filled ahead.

    Blocks go on together, and the first one that wants a sector has it from memory. What a turn
    copies takes the way from L2 as long as it takes. Copies among products start through half of a
    turn with two boxes, else through nearly all of it. Parts of a launch have turns of their own,
    one after the other. Turns of threads that multiply alone are so long that there is nothing to
    wait for.
    """
    of, card = setting.of, setting.of.card
    if of.structure.instruction is None:
        return of.zeros
    parts = sum(1 for part in of.cut.parts if part.serial) or 1
    warps = np.ceil(of.shape.block_threads / card.warp) / SCHEDULERS
    turn = tile / parts * np.maximum(1.0, warps * setting.present)
    late = turn * loads_ahead(of) * np.where(of.layout.boxes == FEWEST_AHEAD, 0.5, 1.0)
    if any(is_narrow(of, at) for at in range(len(of.cut.stageable))):  # they start in front
        late = of.zeros
    l2_bytes_cycle = card.l2_bytes_s / card.sms / card.clock_hz
    arrive = (
        of.far_cycles + card.dram_cycles + bytes_a_turn / parts * setting.present / l2_bytes_cycle
    )
    found: Column = np.maximum(0.0, arrive - ((of.layout.boxes - 1.0) * turn - late))
    return parts * found


def _filled(of: CudaLaunch, group: int) -> float:
    """Return the share of its steps that a block copies a box in: those that its readers run in.

    As in a triangle, or where another statement of the nest has more instances.
    """
    most = max(of.fills.values())
    shares = [
        of.fills[name] / most
        for name, own in of.uniform_sets.items()
        if most and any(one.group == group for one in own)
    ]
    return max(shares, default=1.0)


def add_held(of: CudaLaunch, demand: DemandBuilder) -> None:
    """Add the loads and stores of what registers keep, or the atomic additions of it."""
    code = of.code
    for own in of.cut.held:
        uniform_sets = [f for f in of.all_uniform_sets if f.access.reference in own.references]
        if not uniform_sets:
            continue
        access, points = uniform_sets[0].access, of.points()
        each = row_request(of, access)
        if of.cut.shared_loop is not None:  # it starts at zero, and L2 reads, adds and writes
            cycles, sectors = each
            times = _EXCHANGE if own.exchanges else 1.0
            demand.add_global(points * times, cycles, sectors * _ATOMIC_MOVES)
            demand.add_instructions(points * code.load_instructions * times)
            # those of all blocks to one sector come one after the other
            rows = of.neighbours(of.cut.mapped[-1]) if of.cut.mapped else False
            requests = np.where(rows, vector(own.element_bytes), 1.0)
            turns = of.shape.chunks * requests * _ATOMIC_TURN_CYCLES
            demand.chain_cycles += (of.card.atomic_cycles + turns) * times
            continue
        if own.loads:
            demand.add_global(points, *each)
        demand.add_stores(points, *each, torn_request(of, access))
        demand.add_instructions(points * (1.0 + own.loads) * code.load_instructions)
        if own.loads:
            waits = np.maximum(1.0, of.points() / code.batch)
            demand.chain_cycles += of.far_cycles * waits


def loads_held(of: CudaLaunch, uniform: UniformSet) -> bool:
    """Tell whether a thread loads what registers keep of a uniform set before it adds to it."""
    return any(own.loads for own in of.cut.held if uniform.access.reference in own.references)


def add_sums(of: CudaLaunch, demand: DemandBuilder) -> None:
    """Add the shuffles and atomic operations at the end of spread sums."""
    if of.cut.sum_loop is None:
        return
    rounds = np.log2(np.maximum(1.0, of.shape.lanes))
    points = of.points()
    demand.add_instructions(points * rounds * 4)
    demand.chain_cycles += points * rounds * of.constants.result_wait * of.card.fp64_cycles * 2
    times = _EXCHANGE if of.cut.exchanges else 1.0
    atomics = np.where(of.shape.chunks > 1, points * times, 0.0)
    demand.add_global(atomics, of.ones * 2.0, of.ones * 8.0)
    turns = of.shape.chunks * _ATOMIC_TURN_CYCLES
    cycles = (of.card.atomic_cycles + turns) * times
    demand.chain_cycles += np.where(of.shape.chunks > 1, cycles, 0.0)


def add_spills(setting: CodeResources, demand: DemandBuilder) -> None:
    """Add the loads and stores of what registers do not hold."""
    of = setting.of
    if not setting.spilled_words.any():
        return
    main = max(of.statements, key=lambda s: s.instances or 0)
    demand.add_spills(setting.spilled_words, of.steps(of.serial(main)), of.code.spill_missing)


def add_phases(of: CudaLaunch, demand: DemandBuilder) -> None:
    """Add what a block takes by itself where barriers keep its warps together.

    Copying and computing are one after the other then; other blocks of the SM fill the gaps. Where
    copies run ahead there are none but before the first box is there, and while results are
    written. It comes last: it takes what the others have added up.
    """
    card = of.card
    on = of.any_staged
    busy = np.maximum.reduce(
        [
            demand.instructions / SCHEDULERS,
            demand.fp64 * card.warp / card.fp64_per_cycle,
            demand.fp32 * card.warp / card.fp32_per_cycle,
            *(own * card.warp / card.tensor_rate(form) for form, own in demand.tensor.items()),
            demand.l1_wavefronts + demand.shared_wavefronts,
        ]
    )
    l2_bytes_cycle = card.l2_bytes_s / card.sms / card.clock_hz
    copied = demand.copied_bytes / l2_bytes_cycle
    ahead = of.layout.boxes > 1
    demand.chain_cycles += on * ~ahead * (busy + copied) / of.active
    held = demand.held_bytes / l2_bytes_cycle / of.active
    demand.edge_cycles += on * ahead * (of.code.start_cycles + of.far_cycles + held)


def _copied_together(of: CudaLaunch, at: int, stage: Stage) -> Column:
    """Return the elements that a thread copies at a time: vectors where boxes begin at such.

    Copies of products that warps compute are counted by element, but for halves.
    """
    by_element = of.structure.instruction is not None and stage.element_bytes >= WORD_BYTES
    inside = any(any(one.spans) for one in of.readers(at))
    return of.ones * (1 if by_element or inside else stage.width)
