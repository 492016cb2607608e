"""The copies of generated code: boxes to shared memory, sums, and registers that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.card import SCHEDULERS
from eatss.prediction.cuda_caches import request, torn_request
from eatss.prediction.cuda_families import Family
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.cuda_setting import Setting
from eatss.prediction.demand import Column
from eatss.prediction.tally import Tally


def add_copies(setting: Setting, tally: Tally) -> None:
    """Add the copies to shared memory and the barriers around them."""
    of = setting.of
    code, threads = of.code, of.shape.block_threads
    barriers = of.zeros
    for at, box in enumerate(setting.boxes):
        on = of.staged(at) * of.cut.copies[at]
        if not on.any():
            continue
        times = of.ones
        for name in of.serial_band[: box.depth]:
            times = times * of.shape.steps[name]
        loads = np.ceil(prod(box.sizes, start=of.ones) / threads)
        row_sectors = np.ceil(box.sizes[-1] * box.element_bytes / SECTOR_BYTES)
        box_bytes = prod(box.sizes[:-1], start=of.ones) * row_sectors * SECTOR_BYTES
        fetched = of.active * box_bytes * times * on
        wave = np.maximum(box.element_bytes * of.card.warp / LINE_BYTES, 1.0)
        lines = np.ceil(of.card.warp / np.maximum(1.0, box.sizes[-1]))
        requests = loads * times * on
        tally.l1_wavefronts += of.launched_warps * requests * np.maximum(wave, lines)
        tally.add_shared(requests, of.ones * wave)
        tally.l2_bytes += fetched
        tally.copied_bytes += fetched
        even = _walks_rows(of, box.sizes)
        tally.add_instructions(
            requests * np.where(even, code.copy_instructions, code.ragged_instructions)
        )
        waits = np.ceil(loads / np.where(even, code.batch, code.ragged_batch))
        waits = waits + loads * wave * code.line_wait / of.far_cycles
        tally.chain_cycles += on * times * of.far_cycles * waits
        barriers = np.maximum(barriers, on * times * 2)
    tally.chain_cycles += barriers * code.barrier_wait * of.card.barrier_cycles
    tally.add_instructions(barriers * 2)


def add_held(of: CudaLaunch, tally: Tally) -> None:
    """Add the loads and stores of what registers keep."""
    code = of.code
    for own in of.cut.held:
        families = [f for f in of.all_families if f.access.reference in own.references]
        if not families:
            continue
        access, points = families[0].access, of.points()
        if own.loads:
            tally.add_global(points, *request(of, access))
        tally.add_stores(points, *request(of, access), torn_request(of, access))
        tally.add_instructions(points * (1.0 + own.loads) * code.load_instructions)
        if own.loads:
            waits = np.maximum(1.0, of.points() / code.batch)
            tally.chain_cycles += of.far_cycles * waits


def loads_held(of: CudaLaunch, family: Family) -> bool:
    """Tell whether a thread loads what registers keep of a family before it adds to it."""
    return any(own.loads for own in of.cut.held if family.access.reference in own.references)


def add_sums(of: CudaLaunch, tally: Tally) -> None:
    """Add the shuffles and atomic additions at the end of spread sums."""
    if of.cut.sum_loop is None:
        return
    rounds = np.log2(np.maximum(1.0, of.shape.lanes))
    points = of.points()
    tally.add_instructions(points * rounds * 4)
    tally.chain_cycles += points * rounds * of.habits.result_wait * of.card.fp64_cycles * 2
    atomics = np.where(of.shape.chunks > 1, points, 0.0)
    tally.add_global(atomics, of.ones * 2.0, of.ones * 8.0)
    tally.chain_cycles += np.where(of.shape.chunks > 1, of.card.atomic_cycles, 0.0)


def add_spills(setting: Setting, tally: Tally) -> None:
    """Add the loads and stores of what registers do not hold."""
    of = setting.of
    if not setting.spilled_words.any():
        return
    main = max(of.statements, key=lambda s: s.instances or 0)
    traffic = of.launched_warps * setting.spilled_words * of.steps(of.serial(main)) * 2
    tally.instructions += traffic
    tally.l1_wavefronts += traffic
    tally.l2_bytes += traffic * LINE_BYTES * of.code.spill_missing


def add_phases(of: CudaLaunch, tally: Tally) -> None:
    """Add what a block takes by itself where barriers keep its warps together.

    Copying and computing are one after the other then; other blocks of the SM fill the gaps. It
    comes last: it takes what the others have added up.
    """
    card = of.card
    on = np.maximum.reduce([of.zeros, *(of.staged(at) for at in range(len(of.cut.stageable)))])
    busy = np.maximum.reduce(
        [
            tally.instructions / SCHEDULERS,
            tally.fp64 * card.warp / card.fp64_per_cycle,
            tally.fp32 * card.warp / card.fp32_per_cycle,
            tally.l1_wavefronts + tally.shared_wavefronts,
        ]
    )
    l2_bytes_cycle = card.l2_bytes_s / card.sms / card.clock_hz
    tally.chain_cycles += on * (busy + tally.copied_bytes / l2_bytes_cycle) / of.active


def _walks_rows(of: CudaLaunch, sizes: Sequence[Column]) -> npt.NDArray[np.bool_]:
    """Tell where threads copy whole rows, unrolled [``codegen.staging_walk``].

    Elsewhere each element is found by divisions, and may lie outside of what is read.
    """
    longer = np.asarray(sum((size > 1) * 1 for size in sizes))
    columns = of.ones
    for size in sizes:
        columns = np.where(size > 1, size, columns)  # the last long one
    threads = of.shape.block_threads
    whole = (np.mod(threads, columns) == 0) & (np.mod(prod(sizes, start=of.ones), threads) == 0)
    return np.asarray((longer == len(("rows", "columns"))) & whole)
