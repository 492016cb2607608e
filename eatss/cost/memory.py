"""What of generated code goes beyond L2: bytes of memory, and rows walked in pieces."""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.analysis.structure import ROWS_TOGETHER
from eatss.analysis.touched import TouchedBox, touched_bytes
from eatss.cost.access import SECTOR_BYTES
from eatss.cost.cuda_code import CudaCode
from eatss.cost.sums import loads_held
from eatss.plan.launch import Compute
from eatss.plan.numbers import Number
from eatss.plan.uniform_references import UniformSet

_PAGE_PIECE_BYTES = 256
KEPT_SHARE = 0.7
"""Share of L2 up to which what launches touch is there for the next."""

_KEPT_OF_STREAMS = 0.8
"""Share of L2 that keeps what blocks read at different steps."""

KEPT_MISSES = 0.05
"""Share of it that is not."""


def moved_bytes(of: CudaCode) -> Number:
    """Return the bytes of one launch from and to memory.

    Every sector once, unless all of it stays in L2 between launches. What blocks that do not run
    at the same time read again comes from memory where L2 cannot hold it.
    """
    plan, work = of.plan, of.plan.facts.work
    everything = sum(a.elements * a.element_bytes for a in work.arrays)
    many = plan.launches > 1 or len(plan.structure.launches) > 1
    total: Number = 0.0
    least = 0.0
    for array in work.arrays:
        moved: dict[bool, Number] = {True: 0.0, False: 0.0}
        boxes: dict[bool, list[TouchedBox]] = {True: [], False: []}
        whole = float(array.elements * array.element_bytes)
        for one in plan.computes:
            for use in one.uses:
                if use.access.array != array.name:
                    continue
                elements = min(touched_elements(one, use), float(array.elements))
                touched = elements * array.element_bytes
                if use.reads and (not use.held or loads_held(plan, use)):
                    again = np.maximum(_again(of, use, touched), _streamed(of, use, everything))
                    moved[False] = np.maximum(moved[False], touched * again)
                    boxes[False] += use.touched
                if use.writes:
                    moved[True] = np.maximum(moved[True], touched)
                    boxes[True] += use.touched
        least += sum(min(whole, touched_bytes(own)) for own in boxes.values())
        total = total + moved[False] + moved[True]
    least /= plan.launches / max(1, work.launches or 1)  # the host runs a loop of the kernel
    if many and everything < KEPT_SHARE * of.card.l2_bytes:
        total, least = total * KEPT_MISSES, least * KEPT_MISSES
    return np.maximum(np.minimum(total, np.maximum(of.l2_bytes, total * 0.02)), least)


def _streamed(of: CudaCode, use: UniformSet, everything: float) -> Number:
    """Return how often elements come from memory where blocks take equal shares of steps.

    Blocks of a row or column of tiles are at other steps then: what L2 does not keep of all arrays
    each of them reads anew. gemm of 3100 × 1900 × 2300 doubles took 14 % more energy as a stream on
    an H100 (``library-streams``).
    """
    kept = min(1.0, _KEPT_OF_STREAMS * of.card.l2_bytes / max(1.0, everything))
    others = [name for name in of.plan.cut.mapped if name not in use.access.moving]
    tiles = prod((of.plan.steps[name] for name in others), start=1.0)
    return 1.0 + of.plan.stream.streamed * (tiles - 1.0) * (1.0 - kept)


def scatter(of: CudaCode) -> Number:
    """Return how much longer memory takes because blocks come back to its pages for each point.

    Of narrow blocks with several points along ``x`` each point is another piece of a row.
    """
    plan = of.plan
    if not plan.cut.mapped or plan.cut.sum_loop is not None:
        return 1.0
    along = plan.cut.mapped[-1]
    moved = any(along in use.access.moving for use in plan.uses)
    piece = plan.threads[along] * plan.facts.element_bytes
    again = (plan.points[along] - 1.0) * _PAGE_PIECE_BYTES / piece
    return 1.0 + of.code.page_steps * again * moved


def touched_elements(one: Compute, use: UniformSet) -> float:
    """Return the elements of a uniform set that one launch touches."""
    moving, width = use.access.moving, use.access.element_bytes
    trips = one.plan.trips
    dense = prod(trips[name] for name in moving if name in one.facts.loops and name in trips)
    apart = min((abs(step) * width for step in moving.values()), default=0)
    wasted = min(apart, SECTOR_BYTES) / width if apart else 1.0
    return dense * min(1.0, one.fill * 1.5) * max(1.0, wasted)


def _again(of: CudaCode, use: UniformSet, touched: float) -> Number:
    """Return how often a uniform set's elements come from memory.

    Blocks along ``x`` run one after the other first, or, where copies run ahead, in groups of rows.
    """
    plan, steps, moving, half = of.plan, of.plan.steps, use.access.moving, 0.5 * of.card.l2_bytes
    if len(plan.cut.mapped) < len(("rows", "columns")) or touched <= half:
        return 1.0
    *others, columns = plan.cut.mapped
    resident = np.maximum(1.0, of.resident) * of.card.sms
    together = np.minimum(ROWS_TOGETHER, steps[others[-1]])
    in_groups = (plan.layout.boxes > 1) | (plan.structure.instruction is not None)
    if columns not in moving:
        if others[-1] not in moving:
            return 1.0
        kept = touched * together / steps[others[-1]] <= half
        sweeps = steps[columns] * together / resident
        return np.maximum(1.0, np.where(in_groups & ~kept, sweeps, 1.0))
    rows = [name for name in others if name not in moving]
    if not rows:
        return 1.0
    at_once = np.maximum(1.0, resident / steps[columns])
    if rows[-1] == others[-1]:
        at_once = np.where(in_groups, np.maximum(at_once, together), at_once)
    return np.maximum(1.0, prod((steps[name] for name in rows), start=1.0) / at_once)
