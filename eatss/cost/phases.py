"""The price of phases: kernels that are one, whose blocks take rows through all of them.

Every phase is counted as a launch of its own whose blocks have the same rows. Then blocks, launches
and latencies are joined. What phases have in common comes from memory once, if the rows of all
blocks that run at a time fit L2; what a thread keeps of a row comes from L2 once, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import RowBlock, mapped
from eatss.cards.profile import GpuProfile
from eatss.cost.card import Card
from eatss.cost.cuda_model import CudaModel, busy_cycles
from eatss.cost.demand import Demand
from eatss.cost.memory import KEPT_MISSES, KEPT_SHARE, touched_elements
from eatss.cost.sums import loads_held
from eatss.cost.terms import Predicted, predict
from eatss.plan.launch import LaunchPlan
from eatss.plan.numbers import Flag, Number
from eatss.plan.phases import KeptRow, RowRun, kept_rows, phase_plans, slots_of
from eatss.plan.registers import registers_of_a_thread
from eatss.plan.rows import element_words

_ROWS_IN_L2 = 0.5
"""Share of L2 up to which the rows of blocks that run at a time are there from phase to phase."""


@dataclass(frozen=True, slots=True)
class RowsPrediction:
    """What is expected of candidates; ``fits`` says which have what they add up in registers."""

    demand: Demand
    expected: Predicted
    fits: Flag


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
    model = CudaModel.of(facts[run.kernels[0]], profile)
    storage, cap = run.registers, registers_of_a_thread(model.card, block.threads)
    kept = kept_rows(storage, block.tile, block.lanes, cap)
    flags = np.array([np.ones(len(block.rows), dtype=bool), *kept]).T
    found: RowsPrediction | None = None
    for line in np.unique(flags, axis=0).tolist():
        rows = [own for own, on in zip(storage.kept, line[1:], strict=True) if on]
        plans = phase_plans(facts, run, rows, block, model.card, in_order=in_order)
        own = _joined(model, plans, run, rows, block)
        here = (flags == line).all(axis=1)
        found = own if found is None else mapped(partial(np.where, here), own, found)
    assert found is not None
    return found


def _joined(
    model: CudaModel,
    plans: Sequence[LaunchPlan],
    run: RowRun,
    kept: Sequence[KeptRow],
    block: RowBlock,
) -> RowsPrediction:
    """Return what is expected with some arrays kept."""
    card, parts = model.card, [model.demand(plan) for plan in plans]
    first, total = parts[0], mapped(lambda *columns: sum(columns), *parts)
    ones, blocks = np.ones(len(first)), np.maximum.reduce([part.blocks for part in parts])
    registers = np.maximum.reduce([part.registers for part in parts])
    registers = registers + _kept_words(run, kept, block)
    spread = [phase.launch for phase in run.phases if phase.launch.sum_loop is not None]
    # barriers keep a block from loading its rows while it computes with them; others of the SM may
    fetch = total.l2_bytes * card.sms * card.clock_hz / card.l2_bytes_s
    alone = (sum(busy_cycles(part, card) for part in parts) + fetch) / blocks
    wait = len(spread) * (model.code.barrier_wait * card.barrier_cycles)
    # warps leave their parts of sums in shared memory
    warps = np.ceil(block.lanes / card.warp)
    words = sum(own.element_bytes for launch in spread for own in launch.held)
    demand = replace(
        total,
        launches=first.launches,
        blocks=blocks,
        threads=block.threads,
        registers=np.minimum(registers, float(card.registers_per_thread)),
        shared_bytes=np.where(warps > 1, block.rows * warps * words, 0.0),
        shared_limit_bytes=first.shared_limit_bytes,
        lanes=ones,
        late=0.0 * ones,
        dram_bytes=_moved_bytes(plans, total, card, registers, block, blocks),
        scatter=ones,
        chain_cycles=total.chain_cycles + wait + alone,
        apart_code=first.apart_code,
        apart_again=first.apart_again,
    )
    fits = np.logical_and.reduce(np.broadcast_arrays(*(plan.fits for plan in plans)))
    return RowsPrediction(demand, predict(demand, card, model.constants), fits)


def _kept_words(run: RowRun, kept: Sequence[KeptRow], block: RowBlock) -> Number:
    """Return the registers that what is kept takes where most of it is."""
    most = max(
        sum(element_words(own.element_bytes) for own in kept if own.first <= number < own.last)
        for number in range(len(run.phases))
    )
    return most * slots_of(block.tile, block.lanes)


def _moved_bytes(
    plans: Sequence[LaunchPlan],
    total: Demand,
    card: Card,
    registers: Number,
    block: RowBlock,
    blocks: Number,
) -> Number:
    """Return the bytes of a launch from and to memory, where L2 has the rows that are under way.

    Where it does not, each phase moves what it would as a launch.
    """
    arrays = {array.name: array for plan in plans for array in plan.facts.work.arrays}
    reads, writes = dict.fromkeys(arrays, 0.0), dict.fromkeys(arrays, 0.0)
    for plan in plans:
        first_written = {name for name, moved in writes.items() if moved}
        for one in plan.computes:
            for use in one.uses:
                array, name = arrays[use.access.array], use.access.array
                moved = min(touched_elements(one, use), float(array.elements)) * array.element_bytes
                loads = use.reads and (not use.held or loads_held(plan, use))
                if loads and name not in first_written:
                    reads[name] = max(reads[name], moved)
                if use.writes:
                    writes[name] = max(writes[name], moved)
    once = sum(reads.values()) + sum(writes.values())
    threads = np.ceil(block.threads / card.warp) * card.warp
    resident = np.minimum(
        np.floor(card.threads_per_sm / threads),
        np.floor(card.registers_per_sm / (np.maximum(1.0, registers) * threads)),
    )
    under_way = once * np.minimum(1.0, np.maximum(1.0, resident) * card.sms / blocks)
    found, apart = np.minimum(once, total.dram_bytes), total.dram_bytes
    found = np.where(under_way <= _ROWS_IN_L2 * card.l2_bytes, found, apart)
    everything = sum(array.elements * array.element_bytes for array in arrays.values())
    if plans[0].launches > 1 and everything < KEPT_SHARE * card.l2_bytes:
        found = found * KEPT_MISSES
    return np.minimum(found, np.maximum(total.l2_bytes, found * 0.02))
