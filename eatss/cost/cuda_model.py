"""What of generated code goes beyond L2: bytes of memory, and rows walked in pieces.

What a launch of generated code asks of a card, as a function of threads, points and tiles.

A launch is planned (:mod:`eatss.plan.launch`), and each entry of the plan has its price: copies in
``stages``, statements in ``computes`` and ``contracts``, what registers keep in ``sums``.
:class:`CudaModel` is asked for one kernel, one card and many layouts.

The price of phases: kernels that are one, whose blocks take rows through all of them.

Every phase is counted as a launch of its own whose blocks have the same rows. Then blocks, launches
and latencies are joined. What phases have in common comes from memory once, if the rows of all
blocks that run at a time fit L2; what a thread keeps of a row comes from L2 once, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from math import prod

import numpy as np

from eatss.analysis.facts import KernelFacts, TouchedBox, touched_bytes
from eatss.analysis.layout import Candidates, FusedRows, mapped
from eatss.analysis.variant import SWIZZLED_ROWS
from eatss.base.frozen import frozen
from eatss.base.memo import Memo
from eatss.base.quotients import INSTRUCTIONS
from eatss.base.tape import Column as Recorded
from eatss.cards.profile import GpuProfile
from eatss.cost.access import SECTOR_BYTES, with_fused_quotients
from eatss.cost.card import SCHEDULERS, Card, CodeConstants, CudaConstants, card_of
from eatss.cost.computes import add_computes, loops_apart
from eatss.cost.cuda_code import CudaCode
from eatss.cost.demand import TENSOR_COLUMNS, Column, Demand
from eatss.cost.expected import Prediction
from eatss.cost.stages import add_held, add_parts, add_spread, add_stages, loads_held, stores_held
from eatss.cost.terms import Predicted, predict, prediction_at
from eatss.plan.contract import registers_of_a_thread
from eatss.plan.intervals import Interval
from eatss.plan.launch import Compute, LaunchPlan, plan
from eatss.plan.numbers import Flag, Number, all_of, largest, nowhere
from eatss.plan.phases import KeptRow, RowPhase, RowRun, kept_rows, phase_plans, slots_of
from eatss.plan.shares import UniformSet, lanes_of_warp, takers_of_parts
from eatss.plan.stage import element_words

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
    many = plan.launches > 1 or len(plan.variant.launches) > 1
    total: Number = 0.0
    for array in work.arrays:
        moved: dict[bool, Number] = {True: 0.0, False: 0.0}
        for one in plan.computes:
            for use in one.uses:
                if use.access.array != array.name:
                    continue
                elements = min(touched_elements(one, use), float(array.elements))
                touched = elements * array.element_bytes
                if _loads(plan, use):
                    again = np.maximum(_again(of, use, touched), _streamed(of, use, everything))
                    moved[False] = np.maximum(moved[False], touched * again)
                if use.writes and stores_held(plan, use):
                    moved[True] = np.maximum(moved[True], touched)
        total = total + moved[False] + moved[True]
    again = plan.launches / max(1, work.launches or 1)  # the host runs a loop of the kernel
    least = sum(_least_bytes(of)) / again
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
    """Return how much longer memory takes for what it reads and writes, and because of its pages.

    Blocks come back to these for each point: of narrow blocks with several points along ``x`` each
    point is another piece of a row.
    """
    plan = of.plan
    mixed = of.card.mixed(*_least_bytes(of))
    if not plan.cut.mapped or plan.cut.sum_loop is not None:
        return mixed
    along = plan.cut.mapped[-1]
    moved = any(along in use.access.moving for use in plan.uses)
    piece = plan.threads[along] * plan.facts.element_bytes
    again = (plan.points[along] - 1.0) * _PAGE_PIECE_BYTES / piece
    return mixed * (1.0 + of.code.page_steps * again * moved)


def _least_bytes(of: CudaCode) -> tuple[float, float]:
    """Return the bytes that a launch reads and writes at least, each once."""
    found = {False: 0.0, True: 0.0}
    for array in of.plan.facts.work.arrays:
        boxes: dict[bool, list[TouchedBox]] = {True: [], False: []}
        for use in of.plan.uses:
            if use.access.array == array.name:
                if _loads(of.plan, use):
                    boxes[False] += use.touched
                if use.writes and stores_held(of.plan, use):
                    boxes[True] += use.touched
        for writes, own in boxes.items():
            found[writes] += min(float(array.elements * array.element_bytes), touched_bytes(own))
    return found[False], found[True]


def _loads(plan: LaunchPlan, use: UniformSet) -> bool:
    """Tell whether a launch loads elements of a uniform set."""
    return use.reads > 0 and (not use.held or loads_held(plan, use))


def touched_elements(one: Compute, use: UniformSet, more: float = 1.5) -> float:
    """Return the elements of a uniform set that one launch touches.

    Of a box that it runs a share of, as of a triangle, ``more`` than that share.
    """
    moving, width = use.access.moving, use.access.element_bytes
    trips = one.plan.trips
    dense = prod(trips[name] for name in moving if name in one.facts.loops and name in trips)
    apart = min((abs(step) * width for step in moving.values()), default=0)
    wasted = min(apart, SECTOR_BYTES) / width if apart else 1.0
    return dense * min(1.0, one.fill * more) * max(1.0, wasted)


def _again(of: CudaCode, use: UniformSet, touched: float) -> Number:
    """Return how often a uniform set's elements come from memory.

    Blocks along ``x`` run one after the other first, or, where copies run ahead, in groups of rows.
    """
    plan, steps, moving, half = of.plan, of.plan.steps, use.access.moving, 0.5 * of.card.l2_bytes
    if len(plan.cut.mapped) < len(("rows", "columns")) or touched <= half:
        return 1.0
    *others, columns = plan.cut.mapped
    resident = np.maximum(1.0, of.resident) * of.card.sms
    together = np.minimum(SWIZZLED_ROWS, steps[others[-1]])
    in_groups = (plan.pipeline_stages > 1) | (plan.variant.instruction is not None)
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


def demand_of(
    launch: LaunchPlan, card: Card, constants: CodeConstants, code: CudaConstants
) -> Demand:
    """Return what a launch asks of the card."""
    of = CudaCode(launch, card, constants, code)
    of.chain_cycles += code.start_cycles
    add_stages(of)
    add_computes(of)
    before = of.l2_bytes + 0.0
    add_held(of)
    add_spread(of)
    stream_cycles = add_parts(of)
    of.held_bytes = of.l2_bytes - before
    if not nowhere(of.spilled_words):
        main = max(launch.computes, key=lambda one: one.facts.instances or 0)
        of.add_spills(of.spilled_words, main.steps(main.serial), code.spill_missing)
    _add_phases(of)
    of.add_instructions(code.start_instructions)
    of.chain_cycles += largest(of.chains.values())
    apart_code, apart_again = loops_apart(launch)
    each = np.ceil(launch.stream.blocks / card.sms)
    return of.demand(
        launch.shape,
        launches=launch.launches,
        lanes=launch.computing / (of.warps * card.warp),
        shared_limit_bytes=card.shared_optin_bytes,
        late=of.late / np.maximum(1.0, of.fp64 + of.fp32),
        dram_bytes=moved_bytes(of),
        scatter=scatter(of),
        streams=each,
        stream_tiles=each * launch.stream.tiles,
        stream_turns=launch.stream.turns,
        stream_cycles=stream_cycles,
        apart_code=apart_code,
        apart_again=apart_again,
    )


def _add_phases(of: CudaCode) -> None:
    """Add what a block takes by itself where barriers keep its warps together.

    Copying and computing are one after the other then; other blocks of the SM fill the gaps. Where
    copies run ahead there are none but before the first tile is there, and while results are
    written. It comes last: it takes what the others have added up.
    """
    card, plan = of.card, of.plan
    on, ahead = plan.any_staged, plan.pipeline_stages > 1
    tensor = {form: getattr(of, name, 0.0) for form, name in TENSOR_COLUMNS.items()}
    busy = busy_cycles(of, card)
    for form, own in tensor.items():
        busy = np.maximum(busy, own * card.warp / card.tensor_rate(form))
    copied = of.copied_bytes / of.l2_bytes_cycle
    of.chain_cycles += on * ~ahead * (busy + copied) / of.blocks
    held = of.held_bytes / of.l2_bytes_cycle / of.blocks
    of.edge_cycles += on * ahead * (of.code.start_cycles + of.far_cycles + held)


def busy_cycles(part: CudaCode | Demand, card: Card) -> Column:
    """Return the cycles of an SM in which units that are no tensor cores are busy with a launch."""
    found: Column = np.maximum(
        np.maximum(
            part.issued / SCHEDULERS,
            part.fp64 * card.warp / card.fp64_per_cycle,
        ),
        np.maximum(
            part.fp32 * card.warp / card.fp32_per_cycle,
            part.l1_wavefronts + part.shared_wavefronts,
        ),
    )
    return found


@frozen
class CudaPrediction:
    """What is expected of layouts of one variant.

    ``launches`` are demand and prediction of each launch; ``total`` is their sum. ``fits`` says
    which layouts keep their sums in registers.
    """

    launches: tuple[tuple[Demand, Predicted], ...]
    total: Predicted
    fits: Flag

    @property
    def shared_bytes(self) -> Column:
        """Shared memory of the largest block, in bytes."""
        return reduce(np.maximum, (demand.shared_bytes for demand, _ in self.launches))

    def at(self, row: int) -> Prediction | None:
        """Return the prediction of one layout, ``None`` where it cannot launch.

        Blocks, threads and registers are those of the launch that takes longest.
        """
        demand, _ = max(self.launches, key=lambda launch: float(launch[1].time_s[row]))
        return prediction_at(demand, self.total, row)


_COLD_CYCLES = 4.0
"""Cycles of an instruction that launches before have not left to an SM: see
:mod:`eatss.cost.class_blocks`. On an H200 products of Floyd-Warshall took 1.23 ms in four launches,
1.25 in one whose text has 6500 instructions, 0.71 with 2400 and 0.53 with 2300."""


@frozen
class CudaModel:
    """What generated code for one kernel does on one card.

    With others ``beside`` it, which are like it, all have so many times its blocks in so many
    launches; the last number is how many they are. An SM has blocks of all of them.
    """

    facts: KernelFacts
    card: Card
    constants: CodeConstants
    code: CudaConstants
    beside: tuple[float, float, int] | None = None

    @classmethod
    def of(cls, facts: KernelFacts, profile: GpuProfile) -> CudaModel:
        """Return the model of a kernel on a card."""
        code = CudaConstants()
        constants = replace(
            CodeConstants(),
            sharpness=code.sharpness,
            launch_wait=code.launch_wait,
            host_launch_s=0.0,
            quotient=float(INSTRUCTIONS),
        )
        return cls(facts=facts, card=card_of(profile), constants=constants, code=code)

    def demand(self, launch: LaunchPlan) -> Demand:
        """Return what a launch asks of the card."""
        own = demand_of(launch, self.card, self.constants, self.code)
        if self.beside is None:
            return own
        times, launches, kernels = self.beside
        tiles = prod((launch.steps.get(name, 1.0) for name in launch.serial_band), start=1.0)
        text = own.issued / (own.blocks * self.card.warps_of(own.threads) * tiles)
        return own.beside(times, launches, _COLD_CYCLES * kernels * text)

    def columns(self, layout: Candidates) -> CudaPrediction:
        """Return what is expected of layouts under one variant, an entry each.

        Of boxes of layouts it is what none of a box goes under.
        """
        own = layout.map(
            lambda one: one if isinstance(one, Interval | Recorded) else np.asarray(one, np.float64)
        )
        plans = plan(self.facts, own, self.card)
        demands = map(self.demand, plans)
        launches = tuple((one, predict(one, self.card, self.constants)) for one in demands)
        return CudaPrediction(
            launches=launches,
            total=_sum([expected for _, expected in launches]),
            fits=all_of(launch.fits for launch in plans),
        )


def _sum(parts: Sequence[Predicted]) -> Predicted:
    """Return what launches take one after the other."""
    resident = reduce(np.minimum, (part.resident_blocks for part in parts))
    total = mapped(lambda *columns: sum(columns), *parts)
    return replace(total, resident_blocks=resident)


_ROWS_IN_L2 = 0.5
"""Share of L2 up to which the rows of blocks that run at a time are there from phase to phase."""


@frozen
class RowsPrediction:
    """What is expected of candidates; ``fits`` says which have what they add up in registers."""

    demand: Demand
    expected: Predicted
    fits: Flag


def rows_prediction(
    facts: Mapping[str, KernelFacts],
    run: RowRun,
    block: FusedRows,
    profile: GpuProfile,
    *,
    in_order: bool,
    once: Memo | None = None,
) -> RowsPrediction:
    """Return what is expected of a run of kernels as one.

    Args:
        facts: the kernels by name.
        run: what they share.
        block: its rows and threads, an entry a candidate.
        profile: the card.
        in_order: whether sums keep their order.
        once: what phases of other runs ask of that card.
    """
    once = once or Memo()
    model = CudaModel.of(facts[run.kernels[0]], profile)
    if run.steps:
        facts = {one.kernel: _with_reciprocals(facts[one.kernel], one) for one in run.phases}
    storage, cap = run.registers, registers_of_a_thread(model.card, block.threads)
    kept = kept_rows(storage, block, cap)
    flags = np.array([np.ones(len(block.rows), dtype=bool), *kept]).T
    found: RowsPrediction | None = None
    for line in sorted({*map(tuple, flags.tolist())}):
        rows = [own for own, on in zip(storage.kept, line[1:], strict=True) if on]
        plan = partial(
            phase_plans, facts, run, block=block, card=model.card, in_order=in_order, once=once
        )
        own = _joined(model, plan(kept=rows), run, rows, block, once)
        if run.steps:  # what lasts is loaded and stored once
            rest = [replace(one, loads=(), stores=()) if one.lasting else one for one in rows]
            others = _joined(model, plan(kept=rest), run, rest, block, once)
            own = _through_steps(own, others, run, model)
        here = (flags == line).all(axis=1)
        found = own if found is None else mapped(partial(np.where, here), own, found)
    assert found is not None
    return found


def _with_reciprocals(facts: KernelFacts, phase: RowPhase) -> KernelFacts:
    """Return a kernel whose quotients of several points by one value share its reciprocal."""
    statements = (with_fused_quotients(one, phase.divisors) for one in facts.work.statements)
    return replace(facts, work=replace(facts.work, statements=tuple(statements)))


def _joined(
    model: CudaModel,
    plans: Sequence[LaunchPlan],
    run: RowRun,
    kept: Sequence[KeptRow],
    block: FusedRows,
    once: Memo,
) -> RowsPrediction:
    """Return what is expected with some arrays kept."""
    card = model.card
    parts = [once(partial(model.demand, plan), "demand", of=plan) for plan in plans]
    first, total = parts[0], mapped(lambda *columns: sum(columns), *parts)
    ones, blocks = np.ones(len(first)), np.maximum.reduce([part.blocks for part in parts])
    registers = np.maximum.reduce([part.registers for part in parts])
    fewer = model.code.row_registers - model.code.base_registers
    registers = registers + fewer + _kept_words(run, kept, block)
    spread = [phase.launch for phase in run.phases if phase.launch.sum_loop is not None]
    # barriers keep a block from loading its rows while it computes with them; others of the SM may
    fetch = total.l2_bytes * card.sms * card.clock_hz / card.l2_bytes_s
    alone = (sum(busy_cycles(part, card) for part in parts) + fetch) / blocks
    # warps leave their parts of sums in shared memory; those of one pass them on there
    beside = block.rows if block.columns else ones
    lanes = lanes_of_warp(block.lanes, beside)
    warps = np.ceil(block.lanes / lanes)
    wait = (warps == 1) * len(spread) * (model.code.barrier_wait * card.barrier_cycles)
    if block.columns:  # one warp adds up the parts of all
        own = warps / takers_of_parts(warps, lanes)
        wait = wait + (warps > 1) * len(spread) * own * card.fp64_cycles
    passed = (element_words(own.element_bytes) for own in kept if own.passed is not None)
    passed_words = slots_of(block.tile, block.lanes) * sum(passed)  # an SM shuffles a warp a cycle
    wait = wait + passed_words * np.ceil(block.threads / card.warp)
    words = sum(own.element_bytes for launch in spread for own in launch.held)
    shared_bytes = np.where(warps > 1, block.rows * (warps + (beside > 1)) * words, 0.0)
    registers = np.minimum(registers, float(card.registers_per_thread))
    resident = card.resident_blocks(
        block.threads, registers, shared_bytes, first.shared_limit_bytes
    )
    started = np.minimum(resident, np.ceil(blocks / card.sms)) * model.code.row_start_cycles
    demand = replace(
        total,
        launches=first.launches,
        blocks=blocks,
        threads=block.threads,
        registers=registers,
        shared_bytes=shared_bytes,
        shared_limit_bytes=first.shared_limit_bytes,
        lanes=ones,
        of_lanes=first.of_lanes,
        late=0.0 * ones,
        dram_bytes=_moved_bytes(plans, total, card, resident, blocks),
        scatter=card.mixed(*_row_bytes(plans)) * ones,
        chain_cycles=total.chain_cycles + wait + alone + started,
        apart_code=first.apart_code,
        apart_again=first.apart_again,
    )
    fits = np.logical_and.reduce(np.broadcast_arrays(*(plan.fits for plan in plans)))
    expected = predict(demand, card, _of_rows(model))
    return RowsPrediction(demand=demand, expected=expected, fits=fits)


def _of_rows(model: CudaModel) -> CodeConstants:
    """Return the constants of launches whose blocks take rows through phases."""
    return replace(model.constants, sharpness=model.code.row_sharpness)


def _through_steps(
    first: RowsPrediction, others: RowsPrediction, run: RowRun, model: CudaModel
) -> RowsPrediction:
    """Return what is expected of blocks that go through steps, of which the first is a launch."""
    own, steps = first.demand, run.steps
    begun = others.demand.chain_cycles - len(run.phases) * model.code.start_cycles
    rest = replace(others.demand, chain_cycles=begun)
    every = {one: getattr(own, one) + (steps - 1) * getattr(rest, one) for one in _OF_STEPS}
    demand = replace(own, launches=own.launches / steps, **every)
    expected = predict(demand, model.card, _of_rows(model))
    return replace(first, demand=demand, expected=expected)


_OF_STEPS = (
    *("instructions", "fp64", "fp32", "l1_wavefronts", "shared_wavefronts", "operand_bytes"),
    *("l2_bytes", "torn_bytes", "dram_bytes", "chain_cycles"),
)
"""What steps ask for one after another; they have no tensor cores, and copy nothing ahead."""


def _kept_words(run: RowRun, kept: Sequence[KeptRow], block: FusedRows) -> Number:
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
    resident: Number,
    blocks: Number,
) -> Number:
    """Return the bytes of a launch from and to memory, where L2 has the rows that are under way.

    Where it does not, each phase moves what it would as a launch.
    """
    arrays = {array.name: array for plan in plans for array in plan.facts.work.arrays}
    once = sum(_row_bytes(plans))
    under_way = once * np.minimum(1.0, np.maximum(1.0, resident) * card.sms / blocks)
    found, apart = np.minimum(once, total.dram_bytes), total.dram_bytes
    found = np.where(under_way <= _ROWS_IN_L2 * card.l2_bytes, found, apart)
    everything = sum(array.elements * array.element_bytes for array in arrays.values())
    if plans[0].launches > 1 and everything < KEPT_SHARE * card.l2_bytes:
        found = found * KEPT_MISSES
    return np.minimum(found, np.maximum(total.l2_bytes, found * 0.02))


def _row_bytes(plans: Sequence[LaunchPlan]) -> tuple[float, float]:
    """Return the bytes that phases read and write, those of each array once."""
    arrays = {array.name: array for plan in plans for array in plan.facts.work.arrays}
    reads, writes = dict.fromkeys(arrays, 0.0), dict.fromkeys(arrays, 0.0)
    for phase in plans:
        first_written = {name for name, moved in writes.items() if moved}
        for one in phase.computes:
            for use in one.uses:
                array, name = arrays[use.access.array], use.access.array
                touched = min(touched_elements(one, use, more=1.0), float(array.elements))
                moved = touched * array.element_bytes
                if _loads(phase, use) and name not in first_written:
                    reads[name] = max(reads[name], moved)
                if use.writes:
                    writes[name] = max(writes[name], moved)
    return sum(reads.values()), sum(writes.values())
