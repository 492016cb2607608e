"""What launches of several steps of time ask of a card [:mod:`eatss.plan.time_tiles`]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    slow_instructions,
)
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand, Sums
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
    def blocks(self) -> Number:
        """Blocks of a launch."""
        pairs = zip(self.run.cells, stored_cells(self.plan, self.tile), strict=True)
        return prod((np.ceil(extent / cells) for extent, cells in pairs), start=1.0)

    @property
    def rows(self) -> Number:
        """Rows that a warp goes through."""
        return self.plan.rows(self.tile.length) if self.run.dims > 1 else 1.0

    @property
    def turns(self) -> Number:
        """Rows of all warps of a launch."""
        return self.blocks * self.tile.warps * self.rows

    @property
    def demand(self) -> Demand:
        """What launches ask of the card."""
        of, card, versions = _Asked(), self.model.card, self.plan.versions
        for level in self.plan.levels:
            if versions[level.version].halo is not None:
                self._add_level(of, level)
        for number, version in enumerate(versions):
            if version.shared_slots:
                self._add_edges(of, version, self.plan.edge_lines(number, self.tile.rows))
        for number in self.plan.loaded:
            self._add_memory(of, versions[number], loads=True)
        for number in self.plan.stored:
            self._add_memory(of, versions[number], loads=False)
        of.instructions += self.turns * _ROW
        each_row = of.issued / self.turns
        barrier = self.model.constants.barrier_wait * card.barrier_cycles
        chain = _ALONE * each_row + of.chain_cycles + (of.shared_bytes > 0) * barrier
        threads, most = self.tile.warps * float(CUDA.lanes), float(card.shared_optin_bytes)
        resident = card.resident_blocks(threads, self.registers, of.shared_bytes, most)
        at_once = card.sms * np.maximum(1.0, resident)
        late = 1.0 + _AT_EDGES / np.ceil(self.blocks / at_once)
        waits = (card.l1_cycles + card.l2_cycles + card.dram_cycles) / self.tile.prefetch
        each = np.hypot(chain, waits) if self.run.dims > 1 else chain + waits
        return of.demand(
            len(self.tile.columns),
            launches=self.launches,
            blocks=self.blocks,
            threads=threads,
            registers=np.minimum(self.registers, card.registers_per_thread),
            shared_limit_bytes=most,
            lanes=1.0,
            scatter=1.0,
            apart_code=each_row * self.plan.unroll,
            apart_again=_FETCHED,
            chain_cycles=self.model.code.start_cycles + late * self.rows * each,
        )

    def _add_level(self, of: _Asked, level: Level) -> None:
        """Add an update: arithmetic, what keeps other cells, and cells of other lanes."""
        run, card, constants = self.run, self.model.card, self.model.constants
        array = self.plan.versions[level.version].field.array
        words, size = self.words[array], dict(run.element_bytes)[array]
        statement = self.statements[run.updates[level.update]]
        cells = self.turns * self.points
        slow = slow_instructions(statement, constants)
        of.add_floating(statement, cells * (instructions_of(statement, constants) - slow))
        compared = dict(statement.operations).get("compare", 0) * words  # values are selected, too
        of.instructions += cells * (_EACH + slow + compared)
        shuffled = self.turns * self._counted(shuffles_of, level) * words
        read = self.turns * self._counted(edge_reads_of, level)
        of.instructions += shuffled + read * _EDGE_READ
        of.shared_wavefronts += shuffled + read * words
        far = cells * run.far_reads[level.update]
        of.instructions += far * _ACCESS
        of.l1_wavefronts += far * self.tile.columns * CUDA.lanes * size / LINE_BYTES
        of.l2_bytes += far * CUDA.lanes * size
        if level.step == 0:  # rows of later steps are the same ones a little later
            of.dram_bytes += float(prod(run.cells)) * size * run.far_reads[level.update]
        of.chain_cycles += self.points * (_IN_TURNS * division_cycles(statement, card))
        if run.dims == 1:  # the cells beside were computed just now
            of.chain_cycles += card.shared_cycles

    def _counted(self, count: Callable[[Level, int, int, int], int], level: Level) -> Number:
        """Return how many cells of others a thread asks for at a level."""
        pairs = np.stack([self.tile.rows, self.tile.columns])
        sizes, back = np.unique(pairs, axis=1, return_inverse=True)
        found = [count(level, self.run.dims, int(r), int(c)) for r, c in sizes.T]
        return np.array(found)[back.reshape(-1)]

    def _add_edges(self, of: _Asked, version: Version, edge_lines: Number) -> None:
        """Add what warps leave for each other in shared memory, and a barrier a row."""
        array, lines = version.field.array, edge_lines * self.tile.columns
        of.shared_wavefronts += self.turns * lines * self.words[array]
        of.instructions += self.turns * lines
        each = version.shared_slots * lines * CUDA.lanes * dict(self.run.element_bytes)[array]
        of.shared_bytes += self.tile.warps * each

    def _add_memory(self, of: _Asked, version: Version, *, loads: bool) -> None:
        """Add the loads of a field's rows, halos among them, or the stores of its cells."""
        array, columns, turns = version.field.array, self.tile.columns, self.turns
        size, stored = dict(self.run.element_bytes)[array], float(prod(self.run.cells))
        pieces = self.pieces(array)
        of.instructions += turns * self.points * pieces / columns * _ACCESS
        row = self.points * CUDA.lanes
        of.l1_wavefronts += turns * row * size / LINE_BYTES * pieces
        torn = SECTOR_BYTES * self.points / columns
        of.l2_bytes += turns * (row * size + torn) if loads else stored * size * pieces
        again = turns * row / stored - 1.0 if loads else 0.0
        of.dram_bytes += stored * size * (1.0 + _FROM_MEMORY * again)


class _Asked(Sums):
    """Sums over the levels and rows of a launch."""

    shared_bytes: Number = 0.0
    dram_bytes: Number = 0.0


_FROM_MEMORY = 0.3
"""Share of the cells of halos that come from memory again; L2 has the others. Assumed."""


_MOST_REGISTERS = 224.0
"""Registers that are expected at most: a few more may be needed, and there are 255."""


_CALLS = frozenset({"divide", "square root", "function"})
"""Kinds of operations that are many instructions."""
