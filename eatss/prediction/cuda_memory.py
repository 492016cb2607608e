"""What of generated code goes beyond L2: bytes of memory, and rows walked in pieces."""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.analysis.structure import ROWS_TOGETHER
from eatss.analysis.touched import TouchedBox, touched_bytes
from eatss.analysis.work import StatementFacts
from eatss.prediction.access import SECTOR_BYTES
from eatss.prediction.cuda_copies import loads_held
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.cuda_resources import CodeResources
from eatss.prediction.cuda_streams import stream_of
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet

_PAGE_PIECE_BYTES = 256
KEPT_SHARE = 0.7
"""Share of L2 up to which what launches touch is there for the next."""

_KEPT_OF_STREAMS = 0.8
"""Share of L2 that keeps what blocks read at different steps."""

KEPT_MISSES = 0.05
"""Share of it that is not."""


def moved_bytes(setting: CodeResources, l2_bytes: Column) -> Column:
    """Return the bytes of one launch from and to memory.

    Every sector once, unless all of it stays in L2 between launches. What blocks that do not run
    at the same time read again comes from memory where L2 cannot hold it.
    """
    of = setting.of
    arrays = of.facts.work.arrays
    everything = sum(a.elements * a.element_bytes for a in arrays)
    many = of.launches > 1 or len(of.structure.launches) > 1
    total, least = of.zeros, 0.0
    for array in arrays:
        reads, writes = [of.zeros], [of.zeros]
        boxes: dict[bool, list[TouchedBox]] = {True: [], False: []}
        for statement in of.statements:
            for uniform in of.uniform_sets[statement.name]:
                if uniform.access.array != array.name:
                    continue
                elements = min(touched_elements(of, statement, uniform), float(array.elements))
                touched = elements * array.element_bytes
                if uniform.reads and not (uniform.held and not loads_held(of, uniform)):
                    again = _again(setting, uniform, touched)
                    streamed = _streamed_again(of, uniform, everything)
                    reads.append(touched * np.maximum(again, streamed))
                    boxes[False] += uniform.touched
                if uniform.writes:
                    writes.append(touched * of.ones)
                    boxes[True] += uniform.touched
        whole = float(array.elements * array.element_bytes)
        least += sum(min(whole, touched_bytes(own)) for own in boxes.values())
        total = total + np.maximum.reduce(reads) + np.maximum.reduce(writes)
    least /= of.launches / max(1, of.facts.work.launches or 1)  # the host runs a loop of the kernel
    if many and everything < KEPT_SHARE * of.card.l2_bytes:
        total, least = total * KEPT_MISSES, least * KEPT_MISSES
    return np.maximum(np.minimum(total, np.maximum(l2_bytes, total * 0.02)), least)


def _streamed_again(of: CudaLaunch, uniform: UniformSet, everything: float) -> Column:
    """Return how often elements come from memory where blocks take equal shares of steps.

    Blocks of a row or column of tiles are at other steps then: what L2 does not keep of all arrays
    each of them reads anew. gemm of 3100 × 1900 × 2300 doubles took 14 % more energy as a stream on
    an H100 (``library-streams``).
    """
    kept = min(1.0, _KEPT_OF_STREAMS * of.card.l2_bytes / max(1.0, everything))
    moving = dict(uniform.access.strides)
    others = [name for name in of.cut.mapped if name not in moving]
    tiles = of.product(of.shape.steps[name] for name in others)
    return 1.0 + stream_of(of).streamed * (tiles - 1.0) * (1.0 - kept)


def scatter(of: CudaLaunch) -> Column:
    """Return how much longer memory takes because blocks come back to its pages for each point.

    Of narrow blocks with several points along ``x`` each point is another piece of a row.
    """
    if not of.cut.mapped or of.cut.sum_loop is not None:
        return of.ones
    along = of.cut.mapped[-1]
    moved = any(dict(uniform.access.strides).get(along) for uniform in of.all_uniform_sets)
    piece = of.shape.threads[along] * of.facts.element_bytes
    again = (of.shape.points[along] - 1.0) * _PAGE_PIECE_BYTES / piece
    return 1.0 + of.code.page_steps * again * moved


def touched_elements(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> float:
    """Return the elements of a uniform set that one launch touches."""
    moving = dict(uniform.access.strides)
    named = [n for n in moving if n in statement.loops and n in of.trips]
    dense = prod(of.trips[n] for n in named)
    apart = min((abs(s) * uniform.access.element_bytes for s in moving.values()), default=0)
    wasted = min(apart, SECTOR_BYTES) / uniform.access.element_bytes if apart else 1.0
    return dense * min(1.0, of.fills[statement.name] * 1.5) * max(1.0, wasted)


def _again(setting: CodeResources, uniform: UniformSet, touched: float) -> Column:
    """Return how often a uniform set's elements come from memory.

    Blocks along ``x`` run one after the other first, or, where copies run ahead, in groups of rows.
    """
    of = setting.of
    mapped = of.cut.mapped
    if len(mapped) < len(("rows", "columns")) or touched <= 0.5 * of.card.l2_bytes:
        return of.ones
    moving = dict(uniform.access.strides)
    *others, columns = mapped
    resident = np.maximum(1.0, setting.resident) * of.card.sms
    together = np.minimum(ROWS_TOGETHER, of.shape.steps[others[-1]])
    in_groups = (of.layout.boxes > 1) | (of.structure.instruction is not None)
    if columns not in moving:
        kept = touched * together / of.shape.steps[others[-1]] <= 0.5 * of.card.l2_bytes
        sweeps = of.shape.steps[columns] * together / resident
        again = np.maximum(1.0, np.where(in_groups & ~kept, sweeps, 1.0))
        return again if others[-1] in moving else of.ones
    rows = [n for n in others if n not in moving]
    if not rows:
        return of.ones
    at_once = np.maximum(1.0, resident / of.shape.steps[columns])
    if rows[-1] == others[-1]:
        at_once = np.where(in_groups, np.maximum(at_once, together), at_once)
    repeats = of.product(of.shape.steps[n] for n in rows)
    return np.maximum(1.0, repeats / at_once)
