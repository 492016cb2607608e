"""Phases of blocks that take rows through several kernels, and what threads keep of a row.

    out[i][j] = exp(in[i][j] - most[i]);    out_k[rj] = exp(in[i][j] - most_v);
    … barrier …                             …
    sum_r += out[i][j];                     sum_r += out_k[rj];

Where one tile holds a whole row, a thread has the same elements of it in every phase. A register in
the place of such an element has at each moment what the element would have in memory. What a row
has one value of, its maximum or its sum, all of its lanes have in a register each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from eatss.analysis.facts import AccessFacts, KernelFacts
from eatss.analysis.layout import Candidates, FusedRows, SplitK
from eatss.analysis.variant import KernelVariant, LaunchFacts
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.memo import Memo
from eatss.base.targets import CUDA
from eatss.plan.contract import are_held, held_words
from eatss.plan.launch import LaunchPlan, Limits, launch_plan, trips_of
from eatss.plan.numbers import Flag, Number, all_of, chosen, largest
from eatss.plan.stage import element_words
from eatss.program.expression import IntExpr

_SERIAL_TILE = 32.0

SEVERAL = 4
"""Points of a thread from which on quotients by one value share its reciprocal in steps."""


@frozen
class RowPhase:
    """What blocks do with their rows between two barriers, as a launch of its own.

    ``kernel`` is the one that it is of. ``rows`` are the loops over rows, ``lane_loop`` is the one
    whose iterations the lanes of a row share, if there is one. ``length`` is how many elements of a
    row that is, where code knows it. It divides by so many ``divisors``, elements as they are.
    """

    kernel: str
    launch: LaunchFacts
    rows: Names
    lane_loop: str | None
    length: int | None
    divisors: int = 0


@frozen
class PassedRow:
    """Lanes of row ``row`` pass what they have to those of all rows, in front of a phase.

    They do so by shuffles: one block has all ``rows``, which are numbered from 0, each warp a lane
    of each.
    """

    phase: int
    row: IntExpr
    rows: int


@frozen
class KeptRow:
    """An array of which threads may keep their elements of a row from phase to phase.

    Its rows are touched from element ``begin`` to element ``end``, ``None`` where only a launch
    knows them, in phases ``first`` to ``last``. They are loaded as phases of ``loads`` read
    them; memory gets what phases of ``stores`` write. ``places`` are the accesses that
    registers answer in each phase, by statement and number, ``references`` the same by index of
    those of the kernel. What is ``lasting`` stays in registers for all steps of a block that goes
    through them: it is loaded in front of the first as that does, and stored behind the last.
    What one row has written for others is ``passed``.
    """

    array: str
    element_bytes: int
    begin: int | None
    end: int | None
    first: int
    last: int
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    places: tuple[frozenset[tuple[str, int]], ...]
    references: tuple[tuple[int, ...], ...]
    lasting: bool = False
    passed: PassedRow | None = None


@frozen
class RowValue:
    """An array of which all lanes of a row have its element; memory gets it from some phases.

    It is loaded as phases of ``loads`` read it. ``places`` are the accesses that are of it, by
    statement and number, ``references`` the same in each phase by index of those of the kernel;
    ``transfers`` says that those of registers are.
    """

    array: str
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    transfers: bool
    places: frozenset[tuple[str, int]]
    references: tuple[tuple[int, ...], ...]


@frozen
class RowStorage:
    """What registers may have of rows while blocks go through phases.

    Rows lie so in memory that threads may have ``vector`` elements of each at a time.
    """

    kept: tuple[KeptRow, ...] = ()
    values: tuple[RowValue, ...] = ()
    vector: int = 1


@frozen
class RowRun:
    """Kernels that follow each other and share rows: they, or some of them, can become one.

    ``storage`` is what registers may have, by the kernels that become one. With ``steps`` it is all
    of them, and blocks go through so many steps of the innermost loop on the host, too; where
    ``together`` is not 0 one block has all rows, which are so many.
    """

    kernels: Names
    phases: tuple[RowPhase, ...]
    storage: tuple[tuple[Names, RowStorage], ...] = ()
    steps: int = 0
    together: int = 0

    def part(self, start: int, end: int) -> RowRun:
        """Return some of the kernels, in the same order."""
        kernels = self.kernels[start:end]
        phases = tuple(phase for phase in self.phases if phase.kernel in kernels)
        return RowRun(kernels=kernels, phases=phases, storage=self.storage)

    @property
    def registers(self) -> RowStorage:
        """What registers may have where all of the kernels are one."""
        return dict(self.storage).get(self.kernels, RowStorage())


def slots_of(tile: Number, lanes: Number) -> Number:
    """Return how many elements of a tile of a row a thread has."""
    return -(-tile // lanes)


def kept_rows(storage: RowStorage, block: FusedRows, registers: Number) -> list[Flag]:
    """Return for each row that may be kept where it is: one tile has it, and registers have room.

    Rows whose length is known at launch only are kept where they turn out to be no longer.

    Args:
        storage: what may be kept.
        block: the threads of rows, and what they take at a time.
        registers: that a thread may have.
    """
    room, slots = held_words(registers), slots_of(block.tile, block.lanes)
    taken: list[Number] = [0.0] * max((own.last for own in storage.kept), default=0)
    found = []
    for own in storage.kept:
        words = slots * element_words(own.element_bytes)
        whole: Flag = block.whole > 0
        if own.begin is not None and own.end is not None:
            whole = own.begin // block.tile == own.end // block.tile
        # the last phase has it element by element
        phases = range(len(taken)) if own.lasting else range(own.first, own.last)
        left = room - largest(taken[phase] for phase in phases)
        on = whole & (block.lanes > 1) & are_held(slots, words, left)
        if own.passed is not None:
            on = on & (block.columns > 0) & (CUDA.lanes % block.rows == 0)
            on = on & (own.passed.rows <= block.rows)
        for phase in phases:
            taken[phase] = taken[phase] + words * on
        found.append(on)
    return found


def row_vector(storage: RowStorage, kept: Sequence[Flag], block: FusedRows) -> Number:
    """Return how many elements of a row that follow each other a thread has: 16 bytes, or one.

    Args:
        storage: what may be kept.
        kept: whether each of them is: all have to be.
        block: the threads of rows, and what they take at a time.
    """
    if block.columns or block.steps or storage.vector == 1:
        return 1
    whole = slots_of(block.tile, block.lanes) % storage.vector == 0
    every = bool(kept) & all_of(kept)
    return chosen(whole & (block.lanes > 1) & every, storage.vector, 1)


def phase_plans(
    facts: Mapping[str, KernelFacts],
    run: RowRun,
    kept: Sequence[KeptRow],
    block: FusedRows,
    card: Limits,
    *,
    in_order: bool,
    once: Memo,
) -> list[LaunchPlan]:
    """Return what each phase of a run does, as a launch of its own whose blocks have the same rows.

    Args:
        facts: the kernels by name.
        run: what they share.
        kept: the arrays of which threads keep their elements.
        block: its rows and threads.
        card: what bounds them.
        in_order: whether sums keep their order.
        once: the plans of phases of other runs.
    """
    values = run.registers.values
    on: list[Flag] = [np.asarray(one in kept) for one in run.registers.kept]
    vector = row_vector(run.registers, on, block)
    added = {own.array for own in values if own.transfers}
    plans = []
    for number, phase in enumerate(run.phases):
        held = tuple(
            replace(own, loads=own.loads and own.array not in added) for own in phase.launch.held
        )
        cut = replace(phase, launch=replace(phase.launch, held=held))
        own = _without_kept(facts[phase.kernel], number, kept, values)
        filled = tuple(at for one in kept for at in one.references[number])
        plan = partial(_phase_plan, own, cut, filled, vector, block, card, in_order=in_order)
        columns = (block.rows, block.lanes, block.tile, vector)
        sizes = (np.asarray(one).tobytes() for one in columns)
        plans.append(once(plan, own, cut, filled, block.columns, in_order, *sizes))
    return plans


def _phase_plan(
    facts: KernelFacts,
    phase: RowPhase,
    filled: Numbers,
    vector: Number,
    block: FusedRows,
    card: Limits,
    *,
    in_order: bool,
) -> LaunchPlan:
    variant = KernelVariant(launches=(phase.launch,), in_order=in_order)
    layout = _phase_layouts(facts, phase, block, variant)
    plan = launch_plan(facts, phase.launch, layout, card)
    row_vectors = phase.lane_loop, 1.0 * vector
    return replace(plan, columns=bool(block.columns), filled=filled, row_vectors=row_vectors)


def _phase_layouts(
    facts: KernelFacts, phase: RowPhase, block: FusedRows, variant: KernelVariant
) -> Candidates:
    """Return the layouts of a phase as a launch: one tile has a row, where lanes share a loop."""
    ones = np.ones(len(block.rows))
    *outer, last = phase.rows
    tiles = {loop.name: ones * _SERIAL_TILE for loop in facts.loops}
    threads = {loop.name: ones for loop in facts.loops}
    tiles |= dict.fromkeys(outer, ones)
    tiles[last] = threads[last] = block.rows
    loop, spreads = phase.lane_loop, phase.launch.sum_loop is not None
    if loop is not None and not spreads:
        tiles[loop] = block.lanes * np.ceil(trips_of(facts)[loop] / block.lanes)
        threads[loop] = block.lanes
    lanes = block.lanes if spreads else ones
    return Candidates(
        variant=variant,
        tile_sizes=tuple(tiles.items()),
        block=tuple(threads.items()),
        spread=SplitK(lanes=lanes, tile=block.tile, chunks=ones),
        stages=ones,
    )


def _without_kept(
    facts: KernelFacts,
    number: int,
    kept: Sequence[KeptRow],
    values: Sequence[RowValue],
) -> KernelFacts:
    """Return a kernel without the accesses of a phase that registers answer."""

    def left(access: AccessFacts) -> AccessFacts:
        held: list[RowValue | KeptRow] = [*values, *kept]
        here = (one for one in held if access.reference in one.references[number])
        own = next((one for one in here if one.array == access.array), None)
        if own is None:
            return access
        reads = access.reads if number in own.loads else 0
        return replace(access, reads=reads, writes=access.writes and number in own.stores)

    work = facts.work
    statements = tuple(
        replace(one, accesses=tuple(a for a in map(left, one.accesses) if a.reads or a.writes))
        for one in work.statements
    )
    return replace(facts, work=replace(work, statements=statements))
