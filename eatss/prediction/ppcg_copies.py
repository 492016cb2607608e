"""The copies that PPCG's code makes: private arrays, boxes in shared memory, spilled registers."""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.demand import Column
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.ppcg_caches import Caches
from eatss.prediction.ppcg_groups import Group
from eatss.prediction.ppcg_memory import Memory
from eatss.prediction.ppcg_promotion import box_sizes
from eatss.prediction.ppcg_resources import CodeResources
from eatss.prediction.ppcg_shapes import fill_of


def add_copies(of: CodeResources, caches: Caches, memory: Memory, demand: DemandBuilder) -> None:
    """Add the copies of private and shared groups, and the barriers around them."""
    kernel, constants = of.kernel, of.constants
    fill = max((fill_of(kernel, s) for s in kernel.facts.work.statements), default=1.0)
    barriers = np.zeros(len(of))
    for group, on in zip(kernel.groups, of.staged, strict=True):
        depth = max((p for p, n in enumerate(kernel.band) if n in group.loops), default=-1)
        steps = _serial_steps(of, depth) * fill
        ways = (1.0 if group.reads else 0.0) + (1.0 if group.writes else 0.0)
        if group.private:
            count = of.shape.points_of(kernel.threads)
            access = group.uses[0].access
            wave, sector = caches.request(access)
            requests = count * steps
            if group.reads:
                demand.add_global(requests, wave, sector)
            if group.writes:
                demand.add_stores(requests, wave, sector, caches.torn(access))
            demand.add_instructions(requests * ways * 2)
            latency = (
                constants.l2_wait * of.card.l2_cycles + constants.dram_wait * of.card.dram_cycles
            )
            demand.chain_cycles += steps * ways * latency * np.ceil(count / constants.window)
        elif group.shareable and group.box is not None:
            loads, waits, waves, sector, torn = _copy_loop(of, group)
            requests = loads * steps * ways * on
            shared = caches.sharing(group.loops)
            if group.reads:
                demand.add_global(loads * steps * on, waves, sector, 1.0 / shared)
            if group.writes:
                demand.add_stores(loads * steps * on, waves, sector, torn)
            demand.add_shared(requests, waves)
            demand.add_instructions(requests * constants.copy_instructions)
            moved = of.launched_warps * requests * sector * SECTOR_BYTES / shared
            demand.chain_cycles += on * steps * ways * memory.cycles(group, moved) * waits
            barriers = np.maximum(barriers, on * steps * 2)
    demand.add_instructions(barriers * constants.barrier_instructions)
    demand.chain_cycles += barriers * constants.barrier_wait * of.card.barrier_cycles


def add_spills(of: CodeResources, demand: DemandBuilder) -> None:
    """Add the loads and stores of private arrays that registers do not hold."""
    statements = of.kernel.facts.work.statements
    if not statements:
        return
    main = max(statements, key=lambda s: s.instances or 0)
    serial = prod(float(of.kernel.trips[n]) for n in main.loops if n not in of.kernel.threads)
    traffic = of.launched_warps * of.spilled_words * serial * fill_of(of.kernel, main) * 2
    demand.instructions += traffic
    demand.l1_wavefronts += traffic
    demand.l2_bytes += traffic * LINE_BYTES * of.constants.spill_missing


def _serial_steps(of: CodeResources, depth: int) -> Column:
    """Return how often a block runs the tile loops down to position ``depth`` of the band."""
    steps = of.shape.turns.copy()
    for position, name in enumerate(of.kernel.band):
        if name not in of.kernel.grid and position <= depth:
            steps = steps * of.shape.steps[name]
    return steps


def _copy_loop(of: CodeResources, group: Group) -> tuple[Column, Column, Column, Column, Column]:
    """Return loads a thread, how often it waits, and of one wavefronts, sectors and torn ones.

    The last dimensions of the box are dealt out to the threads along the last axes. The compiler
    unrolls a loop of known length, so that a window of loads is under way; of one that begins at
    the thread's number, or that the end of the array cuts off, a few are.
    """
    sizes = box_sizes(of.kernel, group, of.shape.tile)
    threads = [of.shape.block[name] for name in of.kernel.threads]
    serial, dealt = np.ones(len(of)), np.ones(len(of))
    mapped = min(len(sizes), len(threads))
    for size in sizes[: len(sizes) - mapped]:
        serial = serial * size
    for size, count in zip(
        sizes[len(sizes) - mapped :], threads[len(threads) - mapped :], strict=True
    ):
        dealt = dealt * np.ceil(size / count)
    loads = serial * dealt
    even = (dealt == 1) & (loads <= of.constants.unrolled_steps)
    for name in group.loops:
        if name in of.shape.tile:
            even &= np.mod(of.kernel.trips[name], of.shape.tile[name]) == 0
    waits = np.ceil(loads / np.where(even, of.constants.window, of.constants.rolled))
    along = np.minimum(threads[-1], sizes[-1])
    rows = np.minimum(
        np.maximum(1.0, of.card.warp / threads[-1]),
        sizes[-2] if len(sizes) > 1 else np.ones(len(of)),
    )
    in_row = np.minimum(along, of.card.warp)
    row_sectors = in_row * group.element_bytes / SECTOR_BYTES
    sector = rows * np.ceil(row_sectors)
    torn = rows * (np.mod(row_sectors, 1.0) > 0)
    waves = np.maximum(rows, of.card.warp * group.element_bytes / LINE_BYTES)
    return loads, waits, waves, sector, torn
