"""What launches of several steps of time ask of a card [:mod:`eatss.plan.time_tiles`]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from eatss.analysis.facts import StatementFacts
from eatss.analysis.layout import TimeTile
from eatss.analysis.variant import WORD_BYTES
from eatss.base.targets import CUDA
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES, instructions_of, is_wide
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.plan.numbers import Flag, Number
from eatss.plan.time_tiles import Level, TimeRun, TimeTilePlan, sources_of, stored_cells

_EACH, _EACH_WORD = 1.5, 1.5
"""Instructions of an update at a cell besides its arithmetic, and those for each register of it:
tests of cells at edges, and what keeps them; from machine code of eight stencils for an H200."""

_LOAD, _STORE, _ROW = 5.0, 4.0, 12.0
"""Instructions for a cell that is loaded or stored, and of a row; from the same."""

_REGISTERS, _OF_LINES, _OF_CALLS, _OF_WORD = 22.0, 8.0, 40.0, 3.0
"""Registers beside windows; where warps have lines; where operations are many instructions; of a
row's cells for each word of them. From the same, which took 0.8 to 1.2 of what comes of it."""

_CHAIN = 3.0
"""Operations of an update that wait for the newest row, one after the other; assumed."""


def tiles_of(run: TimeRun, plan: TimeTilePlan) -> int:
    """Return how many launches of a depth there are: two at a time, what is left runs alone."""
    return 2 * (run.steps // (2 * plan.depth))


def tiles_demand(
    run: TimeRun,
    plan: TimeTilePlan,
    tile: TimeTile,
    statements: Mapping[str, StatementFacts],
    model: CudaModel,
) -> Demand:
    """Return what launches of a depth ask of a card, an entry a candidate.

    Args:
        run: the loop.
        plan: of the depth.
        tile: columns of its other sizes.
        statements: those of a step, by name.
        model: the card, and figures of code.
    """
    card, constants = model.card, model.constants
    kept = stored_cells(plan, tile)
    blocks = np.ones(len(tile.columns))
    for extent, cells in zip(run.cells, kept, strict=True):
        blocks = blocks * np.ceil(extent / cells)
    rows = plan.rows(tile.length) if run.dims > 1 else np.ones(len(tile.columns))
    points = points_of(run, tile)
    warps = blocks * tile.warps
    turns = warps * rows
    width = dict(run.element_bytes)
    words = words_of(run)
    demand = {one.name: np.zeros(len(tile.columns)) for one in fields(Demand)}
    chain = np.zeros(len(tile.columns))
    shared = np.zeros(len(tile.columns))
    for level in plan.levels:
        version = plan.versions[level.version]
        if version.halo is None:
            continue
        statement = statements[run.updates[level.update]]
        own = words[version.field.array]
        arithmetic = instructions_of(statement, constants)
        demand["fp64" if is_wide(statement) else "fp32"] += turns * points * arithmetic
        demand["instructions"] += turns * points * (_EACH + _EACH_WORD * own)
        shuffled = _shuffled(plan, level, run.dims, tile)
        demand["instructions"] += turns * shuffled * own
        demand["shared_wavefronts"] += turns * shuffled * own
        far = run.far_reads[level.update] * points
        size = width[version.field.array]
        demand["instructions"] += turns * far * _LOAD
        demand["l1_wavefronts"] += turns * far * tile.columns * CUDA.lanes * size / LINE_BYTES
        demand["l2_bytes"] += turns * far * CUDA.lanes * size
        cycles = card.fp64_cycles if is_wide(statement) else card.fp32_cycles
        chain = chain + _CHAIN * cycles
        chain = chain + (card.shared_cycles if run.dims == 1 else 0.0)
    for version in plan.versions:
        if version.shared_slots:
            own = words[version.field.array]
            lines = np.minimum(tile.rows, 2) * tile.columns
            demand["shared_wavefronts"] += 2 * turns * lines * own
            demand["instructions"] += 2 * turns * lines
            size = width[version.field.array]
            shared = shared + version.shared_slots * tile.warps * lines * CUDA.lanes * size
    if np.any(shared):
        chain = chain + constants.barrier_wait * card.barrier_cycles
    demand["instructions"] += turns * _ROW
    row_cells = points * CUDA.lanes
    stored = np.prod([np.full(len(blocks), float(one)) for one in run.cells], axis=0)
    for number in (*plan.loaded, *plan.stored):
        size = width[plan.versions[number].field.array]
        loads = number in plan.loaded
        demand["instructions"] += turns * points * (_LOAD if loads else _STORE)
        lines = row_cells * size / LINE_BYTES
        demand["l1_wavefronts"] += turns * lines * tile.columns
        moved = row_cells * size + SECTOR_BYTES * points / tile.columns
        demand["l2_bytes"] += turns * moved if loads else stored * size
        again = turns * row_cells / stored if loads else np.ones(len(blocks))
        demand["dram_bytes"] += stored * size * (1.0 + _FROM_MEMORY * (again - 1.0))
    registers = _registers(run, plan, tile, statements)
    waits = card.l1_cycles + card.l2_cycles + card.dram_cycles
    each = np.maximum(chain, waits) if run.dims > 1 else chain + waits
    demand |= {
        "launches": np.full(len(blocks), float(tiles_of(run, plan))),
        "blocks": blocks,
        "threads": tile.warps * float(CUDA.lanes),
        "registers": np.minimum(registers, float(card.registers_per_thread)),
        "shared_bytes": shared,
        "shared_limit_bytes": np.full(len(blocks), float(card.shared_optin_bytes)),
        "lanes": np.ones(len(blocks)),
        "scatter": np.ones(len(blocks)),
        "chain_cycles": model.code.start_cycles + rows * each,
    }
    return Demand(**demand)


_FROM_MEMORY = 0.3
"""Share of the cells of halos that come from memory again; L2 has the others. Assumed."""


def fits(
    run: TimeRun,
    plan: TimeTilePlan,
    tile: TimeTile,
    statements: Mapping[str, StatementFacts],
    model: CudaModel,
) -> Flag:
    """Return which tiles keep something between their halos, and their windows in registers."""
    registers = _registers(run, plan, tile, statements)
    fine: Flag = registers * tile.warps * CUDA.lanes <= model.card.registers_per_sm
    fine = fine & (registers <= _MOST_REGISTERS)
    for cells in stored_cells(plan, tile):
        fine = fine & (cells > 0)
    return fine


_MOST_REGISTERS = 224.0
"""Registers that are expected at most: compilers spill where a few more are needed than there are."""


def _registers(
    run: TimeRun,
    plan: TimeTilePlan,
    tile: TimeTile,
    statements: Mapping[str, StatementFacts],
) -> Number:
    """Return the registers of a thread: windows, rows that are loaded ahead, and all else."""
    words, copied = words_of(run), set[int]()
    for level in plan.levels:
        if not statements[run.updates[level.update]].operations:  # one window serves both
            copied |= {source.version for source in level.sources if source is not None}
    kept = sum(
        one.slots * words[one.field.array]
        for number, one in enumerate(plan.versions)
        if one.halo is not None and number not in {*plan.stored, *copied}
    )
    ahead = sum(words[plan.versions[number].field.array] for number in plan.loaded)
    kinds = {kind for one in statements.values() for kind, _ in one.operations}
    calls = _OF_CALLS * bool(kinds & _CALLS)
    lines = _OF_LINES * (run.dims > 2)
    each = kept + ahead + _OF_WORD * max(words.values())
    return _REGISTERS + calls + lines + each * points_of(run, tile)


_CALLS = frozenset({"divide", "square root", "function"})
"""Kinds of operations that are many instructions."""


def points_of(run: TimeRun, tile: TimeTile) -> Number:
    """Return the cells of a row that a thread has."""
    return tile.columns * (tile.rows if run.dims > 2 else 1)


def words_of(run: TimeRun) -> dict[str, int]:
    """Return the registers of a cell of each array."""
    return {name: -(-size // WORD_BYTES) for name, size in run.element_bytes}


def _shuffled(plan: TimeTilePlan, level: Level, dims: int, tile: TimeTile) -> Number:
    """Return the registers of other lanes that a level asks for."""
    lines = tile.rows if dims > 2 else 1
    total: Number = 0.0
    for source in {*sources_of(level, dims)}:
        total = total + np.minimum(abs(source.offset[-1]), tile.columns) * lines
    return total
