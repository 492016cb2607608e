"""The prediction for kernels that are one, whose blocks take rows through all of them.

Every phase is counted as a launch of its own whose blocks have the same rows. Then blocks, launches
and latencies are joined. What phases have in common comes from memory once, if the rows of all
blocks that run at a time fit L2; what a thread keeps of a row comes from L2 once, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, RowBlock, SplitK, mapped
from eatss.analysis.structure import Structure
from eatss.analysis.work import AccessFacts
from eatss.gpu.profile import GpuProfile
from eatss.plan.phases import KeptRow, RowPhase, RowRun, kept_rows, slots_of
from eatss.plan.registers import registers_of_a_thread
from eatss.plan.rows import element_words
from eatss.prediction.card import SCHEDULERS, Card
from eatss.prediction.cuda_copies import loads_held
from eatss.prediction.cuda_launch import CudaLaunch, launch_of, trips_of
from eatss.prediction.cuda_memory import KEPT_MISSES, KEPT_SHARE, touched_elements
from eatss.prediction.cuda_model import CudaModel, demand_of
from eatss.prediction.cuda_resources import fits
from eatss.prediction.demand import TENSOR_COLUMNS, Column, Demand
from eatss.prediction.terms import Predicted, predict

_SERIAL_TILE = 32.0
_ROWS_IN_L2 = 0.5
"""Share of L2 up to which the rows of blocks that run at a time are there from phase to phase."""


@dataclass(frozen=True, slots=True)
class RowsPrediction:
    """What is expected of candidates; ``fits`` says which have what they add up in registers."""

    demand: Demand
    expected: Predicted
    fits: npt.NDArray[np.bool_]


def rows_prediction(
    facts: Mapping[str, KernelFacts],
    run: RowRun,
    block: RowBlock,
    profile: GpuProfile,
    *,
    in_order: bool,
) -> RowsPrediction:
    """Return what is expected of a run of kernels as one.

    Args:
        facts: the kernels by name.
        run: what they share.
        block: its rows and threads, an entry a candidate.
        profile: the card.
        in_order: whether sums keep their order.
    """
    card = CudaModel.of(facts[run.kernels[0]], profile).card
    cap = registers_of_a_thread(card, block.threads)
    storage, ones = run.registers, np.ones(len(block.rows), dtype=bool)
    fits = kept_rows(storage, block.tile, block.lanes, cap)
    flags = np.array([ones, *fits]).T
    found: RowsPrediction | None = None
    for line in np.unique(flags, axis=0).tolist():
        kept = [own for own, on in zip(storage.kept, line[1:], strict=True) if on]
        own = _joined(facts, run, kept, block, profile, in_order)
        here = (flags == line).all(axis=1)
        found = own if found is None else mapped(partial(np.where, here), own, found)
    assert found is not None
    return found


def _kept_words(run: RowRun, kept: Sequence[KeptRow], block: RowBlock) -> Column:
    """Return the registers that what is kept takes where most of it is."""
    most = 0
    for number in range(len(run.phases) - 1):
        there = [one for one in kept if one.first <= number < one.last]
        most = max(most, sum(element_words(one.element_bytes) for one in there))
    return np.asarray(most * slots_of(block.tile, block.lanes))


def _joined(
    facts: Mapping[str, KernelFacts],
    run: RowRun,
    kept: Sequence[KeptRow],
    block: RowBlock,
    profile: GpuProfile,
    in_order: bool,
) -> RowsPrediction:
    """Return what is expected with some arrays kept."""
    launches: list[CudaLaunch] = []
    values = {own.array: own.stores for own in run.registers.values}
    for number, phase in enumerate(run.phases):
        held = tuple(
            replace(own, loads=own.loads and own.array not in values) for own in phase.launch.held
        )
        cut = replace(phase.launch, held=held)
        model = CudaModel.of(facts[phase.kernel], profile)
        structure = Structure(launches=(cut,), in_order=in_order)
        of = launch_of(
            _without_kept(facts[phase.kernel], number, kept, values),
            cut,
            _phase_layouts(facts[phase.kernel], phase, block, structure),
            model.card,
            model.constants,
            model.code,
        )
        launches.append(of)
    first, card = launches[0], launches[0].card
    parts = [demand_of(of) for of in launches]
    barriers = sum(1 for phase in run.phases if phase.launch.sum_loop is not None)
    wait = first.code.barrier_wait * card.barrier_cycles
    registers = np.maximum.reduce([part.registers for part in parts])
    registers = registers + _kept_words(run, kept, block)
    threads = block.threads

    def total(name: str) -> Column:
        return np.asarray(sum(getattr(part, name) for part in parts))

    l2_bytes = total("l2_bytes")
    blocks = np.maximum.reduce([part.blocks for part in parts])
    alone = (_busy_cycles(parts, card) + _fetch_cycles(l2_bytes, card)) / blocks
    demand = replace(
        parts[0],
        blocks=blocks,
        threads=threads,
        registers=np.minimum(registers, float(card.registers_per_thread)),
        shared_bytes=_warps_bytes(facts, run, block, card),
        lanes=np.ones(len(block.rows)),
        late=np.zeros(len(block.rows)),
        l2_bytes=l2_bytes,
        dram_bytes=_moved_bytes(launches, parts, registers, block, l2_bytes),
        scatter=np.ones(len(block.rows)),
        chain_cycles=total("chain_cycles") + barriers * wait + alone,
        **{
            name: total(name)
            for name in (
                "instructions",
                "fp64",
                "fp32",
                *TENSOR_COLUMNS.values(),
                "l1_wavefronts",
                "shared_wavefronts",
                "operand_bytes",
                "torn_bytes",
                "edge_cycles",
            )
        },
    )
    expected = predict(demand, card, CudaModel.of(first.facts, profile).constants)
    return RowsPrediction(demand, expected, np.logical_and.reduce([fits(of) for of in launches]))


def _busy_cycles(parts: Sequence[Demand], card: Card) -> Column:
    """Return the cycles of an SM that the phases of all blocks take, one phase after the other.

    Barriers keep a block from loading its rows while it computes with them; others of the SM may.
    """
    found = np.zeros(len(parts[0]))
    for part in parts:
        found = found + np.maximum.reduce(
            [
                part.instructions / SCHEDULERS,
                part.fp64 * card.warp / card.fp64_per_cycle,
                part.fp32 * card.warp / card.fp32_per_cycle,
                part.l1_wavefronts + part.shared_wavefronts,
            ]
        )
    return found


def _fetch_cycles(l2_bytes: Column, card: Card) -> Column:
    """Return the cycles of an SM that bytes take from L2."""
    return np.asarray(l2_bytes * card.sms * card.clock_hz / card.l2_bytes_s)


def _phase_layouts(
    facts: KernelFacts, phase: RowPhase, block: RowBlock, structure: Structure
) -> Candidates:
    """Return the layouts of a phase as a launch: one tile has a row, where lanes share a loop."""
    ones = np.ones(len(block.rows))
    trips = trips_of(facts)
    *outer, last = phase.rows
    tiles = {loop.name: ones * _SERIAL_TILE for loop in facts.loops}
    threads = {loop.name: ones for loop in facts.loops}
    tiles |= dict.fromkeys(outer, ones)
    tiles[last] = threads[last] = block.rows
    lanes = ones
    if phase.launch.sum_loop is not None:
        lanes = block.lanes
    elif phase.lane_loop is not None:
        rounds = np.ceil(trips[phase.lane_loop] / block.lanes)
        tiles[phase.lane_loop] = block.lanes * rounds
        threads[phase.lane_loop] = block.lanes
    return Candidates(
        structure=structure,
        tile_sizes=tuple(tiles.items()),
        block=tuple(threads.items()),
        spread=SplitK(lanes=lanes, tile=block.tile, chunks=ones),
        stages=ones,
    )


def _without_kept(
    facts: KernelFacts,
    number: int,
    kept: Sequence[KeptRow],
    values: Mapping[str, Sequence[int]],
) -> KernelFacts:
    """Return a kernel without the accesses of a phase that registers answer."""

    def left(access: AccessFacts) -> AccessFacts | None:
        if access.array in values:
            writes = access.writes and number in values[access.array]
            return replace(access, reads=0) if writes else None
        own = next((k for k in kept if k.array == access.array), None)
        if own is None or access.reference not in own.references[number]:
            return access
        reads = access.reads if number == own.load_in else 0
        writes = access.writes and number in own.stores
        return replace(access, reads=reads, writes=writes) if reads or writes else None

    statements = tuple(
        replace(
            statement,
            accesses=tuple(one for one in map(left, statement.accesses) if one is not None),
        )
        for statement in facts.work.statements
    )
    return replace(facts, work=replace(facts.work, statements=statements))


def _warps_bytes(
    facts: Mapping[str, KernelFacts], run: RowRun, block: RowBlock, card: Card
) -> Column:
    """Return the shared memory in which warps leave their parts of sums."""
    warps = np.ceil(block.lanes / card.warp)
    words = sum(
        own.element_bytes
        for phase in run.phases
        if phase.launch.sum_loop is not None
        for own in phase.launch.held
    )
    return np.asarray(np.where(warps > 1, block.rows * warps * words, 0.0))


def _moved_bytes(
    launches: Sequence[CudaLaunch],
    parts: Sequence[Demand],
    registers: Column,
    block: RowBlock,
    l2_bytes: Column,
) -> Column:
    """Return the bytes of a launch from and to memory, where L2 has the rows that are under way.

    Where it does not, each phase moves what it would as a launch.
    """
    card = launches[0].card
    arrays = {a.name: a for of in launches for a in of.facts.work.arrays}
    reads = dict.fromkeys(arrays, 0.0)
    writes = dict.fromkeys(arrays, 0.0)
    first_written: set[str] = set()
    for of in launches:
        for statement in of.statements:
            for uniform in of.uniform_sets[statement.name]:
                array = arrays[uniform.access.array]
                elements = min(touched_elements(of, statement, uniform), float(array.elements))
                moved = elements * array.element_bytes
                loads = uniform.reads and not (uniform.held and not loads_held(of, uniform))
                if loads and array.name not in first_written:
                    reads[array.name] = max(reads[array.name], moved)
                if uniform.writes:
                    writes[array.name] = max(writes[array.name], moved)
        first_written |= {name for name, moved in writes.items() if moved}
    once = sum(reads.values()) + sum(writes.values())
    blocks = np.maximum.reduce([part.blocks for part in parts])
    warps = np.ceil(block.threads / card.warp)
    resident = np.minimum(
        np.floor(card.threads_per_sm / (warps * card.warp)),
        np.floor(card.registers_per_sm / (np.maximum(1.0, registers) * warps * card.warp)),
    )
    under_way = once * np.minimum(1.0, np.maximum(1.0, resident) * card.sms / blocks)
    apart = np.asarray(sum(part.dram_bytes for part in parts))
    found = np.where(under_way <= _ROWS_IN_L2 * card.l2_bytes, np.minimum(once, apart), apart)
    everything = sum(a.elements * a.element_bytes for a in arrays.values())
    if launches[0].launches > 1 and everything < KEPT_SHARE * card.l2_bytes:
        found = found * KEPT_MISSES
    return np.minimum(found, np.maximum(l2_bytes, found * 0.02))
