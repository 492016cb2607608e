"""What launches of several steps of time ask of a card [:mod:`eatss.plan.time_tiles`]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import prod

import numpy as np

from eatss.analysis.facts import StatementFacts
from eatss.analysis.layout import TimeTile
from eatss.analysis.variant import WORD_BYTES
from eatss.base.frozen import frozen
from eatss.base.targets import CUDA
from eatss.cost.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    division_cycles,
    instructions_of,
    is_wide,
    slow_instructions,
)
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.plan.numbers import Flag, Number
from eatss.plan.time_tiles import (
    Level,
    TimeRun,
    TimeTilePlan,
    Version,
    edge_reads_of,
    is_possible,
    pairs_of,
    shuffles_of,
    stored_cells,
    vector_width,
)

_EACH, _ACCESS, _ROW = 0.8, 1.5, 22.0
"""Instructions beside arithmetic and shuffles: an update at a cell, a load or store, and a row.

From machine code of 50 tiles of ten stencils for an H200, of which it is 0.9 to 1.1."""

_REGISTERS, _OF_LINES, _OF_CALLS, _OF_WORD, _OF_NEXT = 32.0, 4.0, 5.0, 2.8, 0.4
"""Registers beside windows; where warps have lines; where operations are many instructions; of a
row's cells for each word of them, and for each that is prefetched. From the same tiles, which took
0.85 to 1.15 of what comes of it."""

_SPARE = 1.12
"""So many times more registers are counted on: with one too many, fewer warps run at a time."""

_EDGE_READ = 3.0
"""Instructions for a cell of another warp: a load, and which warps and lanes there are."""

_ALONE = 2.7
"""Cycles in which a warp by itself issues an instruction. This and the next two are from 290 tiles
of 20 stencils on H200s (``benchmarks/stencils.py``)."""

_AT_EDGES = 0.9
"""Share of a tile's time that the last ones take longer: those at edges, whose cells are tested."""

_IN_TURNS = 0.5
"""Share of its latency that a division takes while no other one of the warp runs: it branches."""

_FETCHED = 0.35
"""Share of the instructions of a loop that does not fit the cache which are fetched anew."""


@frozen
class TilePrices:
    """What tiles of a depth ask of a card, an entry a candidate.

    ``tile`` are columns of sizes, ``statements`` those of a step by name, ``model`` the card and
    figures of code.
    """

    run: TimeRun
    plan: TimeTilePlan
    tile: TimeTile
    statements: Mapping[str, StatementFacts]
    model: CudaModel

    @property
    def launches(self) -> int:
        """Launches of a run; the steps that are left run one by one."""
        return 2 * int(pairs_of(self.run.steps, self.plan.depth))

    @property
    def twin_bytes(self) -> float:
        """Memory for a second copy of the fields that steps hand on."""
        each = dict(self.run.element_bytes)
        arrays = (self.plan.versions[number].field.array for number in self.plan.loaded)
        return float(prod(self.run.cells) * sum(map(each.__getitem__, arrays)))

    @property
    def points(self) -> Number:
        """Cells of a row that a thread has."""
        return self.tile.columns * (self.tile.rows if self.run.dims > 2 else 1)

    @property
    def words(self) -> dict[str, int]:
        """Registers of a cell of each array."""
        return {name: -(-size // WORD_BYTES) for name, size in self.run.element_bytes}

    @property
    def registers(self) -> Number:
        """Registers of a thread: windows, rows that are loaded ahead, and all else."""
        plan, words, copied = self.plan, self.words, set[int]()
        for level in plan.levels:
            statement = self.statements[self.run.updates[level.update]]
            if not statement.operations:  # one window serves both
                copied |= {source.version for source in level.sources if source is not None}
        kept = sum(
            one.rows * words[one.field.array]
            for number, one in enumerate(plan.versions)
            if one.halo is not None and number not in {*plan.stored, *copied}
        )
        ahead = self.tile.prefetch * sum(
            words[plan.versions[number].field.array] for number in plan.loaded
        )
        kinds = {kind for one in self.statements.values() for kind, _ in one.operations}
        base = _REGISTERS + _OF_CALLS * bool(kinds & _CALLS) + _OF_LINES * (self.run.dims > 2)
        each = kept + _OF_NEXT * ahead + _OF_WORD * max(words.values())
        return _SPARE * (base + each * self.points)

    def pieces(self, array: str) -> Number:
        """Return in how many accesses each 32 bytes of a row are read, or written."""
        columns = self.tile.columns
        return columns / vector_width(dict(self.run.element_bytes)[array], columns)

    @property
    def fits(self) -> Flag:
        """Which tiles keep something between their halos, and their windows in registers."""
        card, threads = self.model.card, self.tile.warps * CUDA.lanes
        fine: Flag = self.registers * threads <= card.registers_per_sm
        return fine & (self.registers <= _MOST_REGISTERS) & is_possible(self.plan, self.tile)

    @property
    def demand(self) -> Demand:
        """What launches ask of the card."""
        asked = _Asked(self)
        for level in self.plan.levels:
            if self.plan.versions[level.version].halo is not None:
                asked.add_level(level)
        for number, version in enumerate(self.plan.versions):
            if version.shared_slots:
                asked.add_edges(version, self.plan.edge_lines(number, self.tile.rows))
        for number in self.plan.loaded:
            asked.add_memory(self.plan.versions[number], loads=True)
        for number in self.plan.stored:
            asked.add_memory(self.plan.versions[number], loads=False)
        return asked.demand()


class _Asked:
    """Sums over the levels and rows of a launch, an entry a candidate; names as in ``Demand``."""

    def __init__(self, of: TilePrices) -> None:
        self._of, self._run, self._plan, self._tile = of, of.run, of.plan, of.tile
        count = len(of.tile.columns)
        self._blocks = np.ones(count)
        for extent, cells in zip(of.run.cells, stored_cells(of.plan, of.tile), strict=True):
            self._blocks = self._blocks * np.ceil(extent / cells)
        self._rows = of.plan.rows(of.tile.length) if of.run.dims > 1 else np.ones(count)
        self._points = of.points
        self._turns = self._blocks * of.tile.warps * self._rows
        self._bytes, self._words = dict(of.run.element_bytes), of.words
        self._sums = {one.name: np.zeros(count) for one in fields(Demand)}
        self._chain: Number = np.zeros(count)
        sizes = np.stack([of.tile.rows, of.tile.columns])
        self._sizes, self._size_at = np.unique(sizes, axis=1, return_inverse=True)

    def add_level(self, level: Level) -> None:
        """Add an update: arithmetic, what keeps other cells, and cells of other lanes."""
        run, sums, card = self._run, self._sums, self._of.model.card
        array = self._plan.versions[level.version].field.array
        words, size = self._words[array], self._bytes[array]
        statement = self._of.statements[run.updates[level.update]]
        cells = self._turns * self._points
        wide = is_wide(statement)
        arithmetic = instructions_of(statement, self._of.model.constants)
        slow = slow_instructions(statement, self._of.model.constants)
        sums["fp64" if wide else "fp32"] += cells * (arithmetic - slow)
        compared = dict(statement.operations).get("compare", 0) * words  # values are selected, too
        sums["instructions"] += cells * (_EACH + slow + compared)
        shuffled = self._turns * self._counted(shuffles_of, level) * words
        read = self._turns * self._counted(edge_reads_of, level)
        sums["instructions"] += shuffled + read * _EDGE_READ
        sums["shared_wavefronts"] += shuffled + read * words
        far = cells * run.far_reads[level.update]
        sums["instructions"] += far * _ACCESS
        sums["l1_wavefronts"] += far * self._tile.columns * CUDA.lanes * size / LINE_BYTES
        sums["l2_bytes"] += far * CUDA.lanes * size
        if level.step == 0:  # rows of later steps are the same ones a little later
            far_bytes = float(prod(run.cells)) * size * run.far_reads[level.update]
            sums["dram_bytes"] += far_bytes
        divided = _IN_TURNS * division_cycles(statement, card)
        self._chain = self._chain + self._points * divided
        if run.dims == 1:  # the cells beside were computed just now
            self._chain = self._chain + card.shared_cycles

    def _counted(self, count: Callable[[Level, int, int, int], int], level: Level) -> Number:
        """Return how many cells of others a thread asks for at a level."""
        found = [count(level, self._run.dims, int(r), int(c)) for r, c in self._sizes.T]
        return np.array(found)[self._size_at.reshape(-1)]

    def add_edges(self, version: Version, edge_lines: Number) -> None:
        """Add what warps leave for each other in shared memory, and a barrier a row."""
        array = version.field.array
        lines = edge_lines * self._tile.columns
        self._sums["shared_wavefronts"] += self._turns * lines * self._words[array]
        self._sums["instructions"] += self._turns * lines
        each = version.shared_slots * lines * CUDA.lanes * self._bytes[array]
        self._sums["shared_bytes"] += self._tile.warps * each

    def add_memory(self, version: Version, *, loads: bool) -> None:
        """Add the loads of a field's rows, halos among them, or the stores of its cells."""
        sums, columns = self._sums, self._tile.columns
        size, stored = self._bytes[version.field.array], float(prod(self._run.cells))
        pieces = self._of.pieces(version.field.array)
        sums["instructions"] += self._turns * self._points * pieces / columns * _ACCESS
        row = self._points * CUDA.lanes
        sums["l1_wavefronts"] += self._turns * row * size / LINE_BYTES * pieces
        torn = SECTOR_BYTES * self._points / columns
        sums["l2_bytes"] += self._turns * (row * size + torn) if loads else stored * size * pieces
        again = self._turns * row / stored - 1.0 if loads else 0.0
        sums["dram_bytes"] += stored * size * (1.0 + _FROM_MEMORY * again)

    def demand(self) -> Demand:
        """Return the sums, and what else is said of candidates."""
        card, model, count = self._of.model.card, self._of.model, len(self._blocks)
        self._sums["instructions"] += self._turns * _ROW
        each_row = sum(self._sums[one] for one in ("instructions", "fp32", "fp64")) / self._turns
        waits = card.l1_cycles + card.l2_cycles + card.dram_cycles
        barrier = model.constants.barrier_wait * card.barrier_cycles
        chain = _ALONE * each_row + self._chain + (self._sums["shared_bytes"] > 0) * barrier
        at_once = card.sms * np.maximum(1.0, self._resident())
        late = 1.0 + _AT_EDGES / np.ceil(self._blocks / at_once)
        waits = waits / self._tile.prefetch
        each = np.hypot(chain, waits) if self._run.dims > 1 else chain + waits
        known = {
            "launches": np.full(count, float(self._of.launches)),
            "blocks": self._blocks,
            "threads": self._tile.warps * float(CUDA.lanes),
            "registers": np.minimum(self._of.registers, float(card.registers_per_thread)),
            "shared_limit_bytes": np.full(count, float(card.shared_optin_bytes)),
            "lanes": np.ones(count),
            "scatter": np.ones(count),
            "apart_code": each_row * self._plan.unroll,
            "apart_again": np.full(count, _FETCHED),
            "chain_cycles": model.code.start_cycles + late * self._rows * each,
        }
        return Demand(**self._sums | known)

    def _resident(self) -> Number:
        card, shared = self._of.model.card, self._sums["shared_bytes"]
        threads = self._tile.warps * float(CUDA.lanes)
        most = np.full(len(shared), float(card.shared_optin_bytes))
        return card.resident_blocks(threads, self._of.registers, shared, most)


_FROM_MEMORY = 0.3
"""Share of the cells of halos that come from memory again; L2 has the others. Assumed."""


_MOST_REGISTERS = 224.0
"""Registers that are expected at most: a few more may be needed, and there are 255."""


_CALLS = frozenset({"divide", "square root", "function"})
"""Kinds of operations that are many instructions."""
