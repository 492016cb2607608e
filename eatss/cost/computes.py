"""The price of a ``Contract``: products that warps compute, by an instruction for small matrices.

A warp has whole matrices of its tile. For each few steps of the sum every lane loads its elements
of both factors from shared memory, converts them where tensor cores multiply others, and the warp
multiplies. Halves and bytes are loaded as matrices of 8 rows of 16 bytes, four at a time.

The price of a ``Compute``: loads, arithmetic, and what a thread waits for in a statement.

Also of code that a cache of instructions does not keep since blocks of an SM run different loops.

    for (i < k) … unrolled …        // one block of an SM is here
    for (i > k) … unrolled …        // another has arrived here

Blocks with other rows of a triangle end the first loop at other times. Each loop by itself fits the
cache, as far as the generator unrolls it; two of them may not.
"""

from __future__ import annotations

from functools import cached_property
from itertools import takewhile
from math import prod

import numpy as np

from eatss.cost.access import (
    INTEGER_PRODUCT,
    LINE_BYTES,
    SECTOR_BYTES,
    instructions_of,
    issue_cycles,
    result_cycles,
    slow_cycles,
    slow_instructions,
    unrolled_instructions,
)
from eatss.cost.card import SCHEDULERS
from eatss.cost.cuda_code import CudaCode
from eatss.plan.contract import FRAGMENT_PLACES, Contract, most_unrolled, runs_along, unrolled
from eatss.plan.intervals import beyond, mixed
from eatss.plan.launch import Compute, LaunchPlan
from eatss.plan.numbers import Number, all_of, largest, no, nowhere
from eatss.plan.shares import UniformSet
from eatss.plan.stage import element_words

_VOTE_INSTRUCTIONS = 8.0
"""Instructions of a thread for each element that it looks at: its place, a load, two operations, a
turn of a loop. Counted in the code of symm for sm_90."""

_FUSED = 1.0
"""Multiply-adds of a plain product and its sum."""


def add_contract(of: CudaCode, one: Compute, own: Contract) -> None:
    """Add a statement that the variant's instruction computes."""
    card, instruction, statement = of.card, own.instruction, one.facts
    steps = one.share * one.steps(one.serial)
    cut = steps * one.cut_share
    alone = cut * (1.0 - one.runs_whole)
    plain = alone + (steps - alone) * _in_last_turns(of, one)
    _add_plain(of, one, own, plain)
    _add_votes(of, own, cut - alone)
    steps = steps * one.steps_beside - plain
    groups = own.terms * steps / instruction.steps
    elements = groups * own.loads
    loads = groups * _requests(one, own)
    count = groups * own.matrices * instruction.products
    done = count * instruction.multiply_adds / card.warp
    of.add_products(instruction.format, done, count)
    of.add_instructions(elements * instruction.conversions)
    first, _ = instruction.elements
    along = own.rows / instruction.points[0]
    each = instructions_of(statement.with_epilogue_scaling(), of.constants)
    extra = each / own.terms - (INTEGER_PRODUCT if statement.integer_products else _FUSED)
    of.add_arithmetic(statement, groups * along * first * max(0.0, extra))
    width = instruction.factor_bytes * card.warp
    of.add_shared(elements, width / LINE_BYTES)
    of.operand_bytes += of.launched_warps * elements * width
    of.add_instructions(loads + one.tile_steps * of.code.step_instructions)
    of.chain_cycles += steps * _group_cycles(of, own) / instruction.steps


def _add_votes(of: CudaCode, own: Contract, cut: Number) -> None:
    """Add what blocks do in front of cut tiles: each thread looks at its share of a tile."""
    if nowhere(cut):
        return
    tile, product = of.plan.tile, own.product
    votes = cut / tile[product.sum_loop]
    wide = np.maximum(tile[product.rows], tile[product.columns])
    loads = np.ceil(wide * tile[product.sum_loop] / of.plan.block_threads)
    of.add_shared(votes * loads, 1.0)
    of.add_instructions(votes * loads * _VOTE_INSTRUCTIONS)
    waits = loads * of.card.shared_cycles + of.code.barrier_wait * of.card.barrier_cycles
    of.chain_cycles += votes * waits


def _add_plain(of: CudaCode, one: Compute, own: Contract, steps: Number) -> None:
    """Add steps that each thread runs by itself, with a test of every point."""
    if nowhere(steps):
        return
    points, loads = of.plan.all_points, (own.rows + own.columns) * own.terms
    each = instructions_of(one.facts.with_epilogue_scaling(), of.constants)
    of.add_arithmetic(one.facts, steps * points * each)
    wave = one.facts.element_bytes * of.card.warp / LINE_BYTES
    of.add_shared(steps * loads, wave)
    tests = of.code.guard_instructions * points
    of.add_instructions(steps * (loads + of.code.loop_instructions + tests))
    waits = steps * (of.card.shared_cycles + loads * wave)
    of.chain_cycles += waits + steps * issue_cycles(one.facts, of.card, points * each)
    of.edge_cycles += (of.plan.pipeline_stages > 1) * waits


def _in_last_turns(of: CudaCode, one: Compute) -> Number:
    """Return the share of steps in turns that the end of the sum cuts off and that are not whole.

    Warps multiply in whole turns only.
    """
    products = [own for own in of.plan.cut.products if own.statement == one.facts.name]
    if all(own.ends_whole for own in products):
        return 0.0
    steps = of.plan.trips[products[0].sum_loop]
    return np.mod(steps, of.plan.tile[products[0].sum_loop]) / max(1.0, steps)


def _group_cycles(of: CudaCode, own: Contract) -> Number:
    """Return what a warp takes by itself for the steps of one instruction, in cycles.

    Of each product that a statement adds one.
    """
    instruction = own.instruction
    rate = of.card.tensor_rate(instruction.format) / SCHEDULERS
    issue = own.matrices * (instruction.multiply_adds * instruction.products) / rate
    wait = of.card.shared_cycles + own.loads * (instruction.factor_words if own.whole else 1.0)
    return own.terms * np.where(of.plan.register_prefetch_on, np.maximum(wait, issue), wait + issue)


def product_cycles(of: CudaCode) -> Number:
    """Return what a warp takes by itself for all products of a tile of their sums, in cycles."""
    total: Number = 0.0
    for own in of.plan.contracts.values():
        tile = of.plan.tile[own.product.sum_loop]
        total = total + _group_cycles(of, own) * tile / own.instruction.steps
    return total


def _requests(one: Compute, own: Contract) -> Number:
    """Return the loads for the steps of one instruction."""
    product = own.product
    factors = [use.access for use in one.uses if use.access.reference in product.references]
    return own.requests(
        *(
            any(
                loop in access.moving and not runs_along(access.terms, product.sum_loop)
                for access in factors
            )
            for loop in (product.rows, product.columns)
        )
    )


_INSTRUCTIONS_OF_A_PRODUCT = 1.25
"""Instructions of the code for each product that is unrolled, loads and copies among them. Counted
in machine code of symm and gemm for sm_90: 1270 to 1320 for 1024 products."""


def add_computes(of: CudaCode) -> None:
    """Add the instances of all statements."""
    for one in of.plan.computes:
        if one.contract:
            add_contract(of, one, one.contract)
        else:
            _Counting(of, one).add()


class _Counting:
    """Adds up one statement.

    ``longest`` is what a thread waits for the slowest load of a step, ``waited`` for all of them,
    batch by batch, ``wide`` what requests of many lines take in addition, ``filled`` the wait for
    what is loaded before all steps; in cycles. ``each`` are the floating-point instructions of an
    instance; ``guarded`` is the share of steps whose points are tested, ``rolled`` that of steps
    that are not unrolled, ``cut`` that of those in tiles that a bound cuts.
    """

    longest: Number = 0.0
    waited: Number = 0.0
    wide: Number = 0.0
    filled: Number = 0.0

    def __init__(self, of: CudaCode, one: Compute) -> None:
        self.of, self.plan, self.one = of, of.plan, one
        in_order = of.plan.variant.in_order
        sums = one.serial and not in_order and any(use.held and use.writes for use in one.uses)
        self.arithmetic = one.facts.with_epilogue_scaling() if sums else one.facts
        self.each = unrolled_instructions(self.arithmetic, of.constants, of.plan.points)
        tiled = of.plan.any_staged
        self.cut = tiled * one.cut_share * (1.0 - one.runs_whole)
        self.steps = one.steps(one.serial) * (1.0 + tiled * (one.steps_beside - 1.0))
        self.guarded = np.maximum(of.guarded, self.cut)
        self.rolled = np.maximum(self.guarded, tiled * self._in_last_tiles)

    def add(self) -> None:
        """Add arithmetic, loops and tests, accesses, and what a thread waits for."""
        of, one, code = self.of, self.one, self.of.code
        instances = one.share * one.points * self.steps
        slow = slow_instructions(one.facts, of.constants)
        of.add_arithmetic(one.facts, instances * beyond(self.each, slow))
        of.add_instructions(instances * np.minimum(self.each, slow))
        late = code.late_instructions * one.loads_late * of.launched_warps
        of.late += late * one.share * self.steps
        guards = code.guard_instructions * self.guarded * one.points
        overhead = code.loop_instructions / code.unrolled_steps if one.serial else 0.0
        tiles = one.tile_steps * code.step_instructions
        of.add_instructions(one.share * (self.steps * (overhead + guards) + tiles))
        for use in one.uses:
            if use.held:
                continue
            # what the same iteration wrote is in registers
            if use.reads and (use.group is None or self.plan.stages[use.group].filled):
                self._add_reads(use)
            if use.writes:
                requests, on = instances * max(1, use.count), self.plan.staged(use.group)
                of.add_stores(requests * (1.0 - on), *of.request(use.access), of.torn(use.access))
                of.add_shared(requests * on, of.banks(use))
                converts = float(use.access.converts)
                stored = code.load_instructions / self.plan.together(use.access, stored=True)
                of.add_instructions(requests * (stored + converts))
        self._add_wait()

    def _add_reads(self, use: UniformSet) -> None:
        """Add the loads through a uniform set, from shared memory where it is staged."""
        of, one, code = self.of, self.one, self.of.code
        on = self.plan.staged(use.group)
        body = self.plan.distinct(use)
        often = self._often(use, body)
        requests = one.share * body * often
        total = of.launched_warps * requests
        width = one.vector_width(use)
        banks = of.banks(use)
        near = np.where(width > 1, self.plan.vector_wavefronts(use.access), banks)
        wave, _ = of.request(use.access, 1.0 - use.rows / use.count)
        alone = requests * on * self.cut * (width > 1)  # what is tested is loaded one by one
        of.add_shared((requests * on - alone) / width, near)
        of.add_shared(alone, banks)
        of.operand_bytes += total * of.different_bytes(use.access)
        alone_each = code.load_instructions / self.plan.together(use.access)
        each = np.where(on > 0, 1.0 / width, alone_each)
        converts = requests * float(use.access.converts)
        of.add_instructions((requests - alone) * each + alone + converts)
        missing = of.missing_bytes(one, use, total) * (1.0 - on)
        of.l1_wavefronts += total * wave * (1.0 - on)
        of.l2_bytes += missing
        misses = np.clip(missing / np.maximum(1.0, total * SECTOR_BYTES), 0.0, 1.0)
        batch = code.batch if one.serial else code.stream_batch
        every = body * often / self.steps
        far = of.far_cycles * np.minimum(1.0, batch * misses) * (1.0 - on)
        wait = far + np.where(on > 0, of.card.shared_cycles, code.near_wait * of.card.l1_cycles)
        if use.access.reference in self.plan.filled:
            self.filled = np.maximum(self.filled, wait)
        else:
            self.longest = np.maximum(self.longest, wait * np.minimum(1.0, often / self.steps))
            self.waited = self.waited + far * every / batch
        self.wide = self.wide + every * (wave * (1.0 - on) * code.line_wait + near * on / width)

    def _often(self, use: UniformSet, body: Number) -> Number:
        """Return how often a thread reads the ``body`` of a set, at one step of its loops.

        It is read anew in serial loops down to the last that moves it, and in all of them where
        another access of the launch may write it. What short loops of a length that compilers know
        read again for each step of a loop around them stays in registers, as far as these have
        room: ``X[i][k]`` of all ``k`` over a tile of ``j``, whose steps are unrolled, or all of
        ``j`` where it is not tiled.
        """
        plan, one, moving = self.plan, self.one, use.access.moving
        if use.writes or plan.is_written(use.access.array):
            return one.steps(one.serial)
        last = max((at for at, name in enumerate(one.serial) if name in moving), default=-1)
        loops = one.serial[: last + 1]
        known = {loop.name for loop in plan.facts.inner_loops if loop.trip_count is not None}
        inside = [*takewhile(lambda n: n in moving and n in known, reversed(loops))]
        outside = loops[: len(loops) - len(inside)]
        again = [*takewhile(lambda name: name not in moving, reversed(outside))]
        if not inside or not again:
            return one.steps(loops)
        values = prod(plan.trips[name] for name in inside)
        words = values * body * element_words(use.access.element_bytes)
        around = one.steps(outside[: len(outside) - len(again)])
        tiles = prod((plan.steps.get(name, 1.0) for name in again), start=1.0)
        kept = (words <= self.of.code.unrolled_values) & (plan.staged(use.group) == 0)
        return np.where(kept, around * tiles * values, one.steps(loops))

    @property
    def _in_last_tiles(self) -> Number:
        """The share of steps in tiles that the end of the innermost loop cuts off.

        Such a tile has another loop, of a length that compilers do not know.
        """
        last = self.one.serial[-1] if self.one.serial else ""
        if last not in self.plan.tile:
            return 0.0
        steps = self.plan.trips[last]
        return np.mod(steps, self.plan.tile[last]) / max(1.0, steps)

    @cached_property
    def _together(self) -> Number:
        """The steps whose loads are under way together: registers have room for them.

        None is where tiles are written: no load moves in front of a store that may meet it, but in
        windows.
        """
        of, plan, serial = self.of, self.plan, self.one.serial
        if not serial:
            return 1.0
        most: Number = min(of.code.unrolled_steps, plan.trips[serial[-1]])
        # what other statements of the loop load is under way, too
        beside = (one for one in plan.computes if one.serial[-1:] == serial[-1:])
        words = sum(map(of.step_words, beside))
        taken = of.code.base_registers + plan.held_words
        taken = taken + FRAGMENT_PLACES * (plan.pipeline_stages > 1)
        room = of.card.registers_per_thread - taken
        window = np.where(plan.row_windows, plan.window(serial), 1.0)
        most = np.where(self._stored(self.one) > 0, window, most)
        return np.clip(room / np.maximum(1.0, words), 1.0, most)

    def _stored(self, one: Compute) -> Number:
        return largest(self.plan.staged(use.group) for use in one.uses if use.writes)

    def _windows(self) -> Number:
        """Return the statements of a loop whose steps are in registers, 0 where some have others.

        Their divisions have no branches.
        """
        beside = [one for one in self.plan.computes if one.serial == self.one.serial]
        on = self.plan.row_windows & (self.plan.window(self.one.serial) > 1)
        on = all_of([on, *(self._stored(one) > 0 for one in beside)])
        return np.where(on, float(len(beside)), 0.0)

    def _add_wait(self) -> None:
        """Add what the slowest thread of a block waits for in the statement.

        Tests of points keep the compiler from unrolling, so that each step waits for its slowest
        load. Arithmetic takes the latency of its results or, with many points, the issue of its
        instructions by one warp.
        """
        of, plan, one, guarded = self.of, self.plan, self.one, self.rolled
        tested = self.longest + self.waited
        memory = mixed(guarded, tested, self.longest / self._together + self.waited)
        issue = issue_cycles(one.facts, of.card, one.points * self.each)
        whole = result_cycles(self.arithmetic, of.card, of.constants)
        # steps that are unrolled wait for each other only where one adds to what the last had
        adds = any(use.reads and use.writes for use in one.uses)
        slow = slow_cycles(one.facts, of.card, of.constants)
        # along a row that is written a division needs what the step before has divided
        carried = whole - slow * (self._stored(one) == 0) if adds else 0.0
        overlapped = carried + (whole - carried) / self._together
        # of divisions without branches those of all statements of a step are under way together
        windows = self._windows()
        overlapped = np.where(windows > 0, whole / np.maximum(1.0, windows), overlapped)
        arithmetic = np.maximum(mixed(guarded, whole, overlapped), issue)
        others = (plan.steps[name] for name in plan.cut.mapped if name not in one.facts.loops)
        there = np.minimum(1.0, one.share * prod(others))
        each = memory + arithmetic + self.wide
        # what is loaded a step ahead comes while the step before computes; loads beside it do not
        hidden = np.maximum(self.longest + self.waited + self.wide, arithmetic)
        ahead = np.where(no(one.waits_for_nothing), np.maximum(hidden, each), hidden)
        loaded = one.ahead * (1 - guarded)
        of.add_chain(there * self.steps * mixed(loaded, ahead, each), one.part)
        of.add_chain(there * self.filled, one.part)
        boxes_ahead = plan.pipeline_stages > 1
        of.edge_cycles += boxes_ahead * there * self.steps * self.cut * (tested + whole)


def loops_apart(plan: LaunchPlan) -> tuple[Number, Number]:
    """Return what there is of loops that blocks of an SM are in at different times.

    First the instructions of all of them, 0 where all blocks run the same one; then the share of a
    warp's instructions that are fetched anew where a cache does not keep them. A turn that is not
    unrolled by the generator is by compilers, as far.
    """
    found = []
    for part in plan.cut.parts:
        own = [
            one
            for one in plan.computes
            if one.facts.name in part.statements
            and not one.contract
            and {*one.facts.coupled} & {*plan.cut.mapped}
            and {*one.facts.coupled} & {*part.serial} & {*plan.tile}
        ]
        if own:  # the loop is longer or shorter in other blocks
            points = sum(one.points for one in own)
            tiles = (plan.tile[name] for name in own[0].serial if name in plan.tile)
            found.append((prod(tiles, start=1.0), points))
    code: Number = 0.0
    again: Number = 0.0
    if len(found) >= len(("one", "another")):
        for steps, points in found:
            kept = np.minimum(steps * points, most_unrolled(plan.block_threads))
            in_parts = unrolled(steps, points, plan.block_threads)
            code = code + _INSTRUCTIONS_OF_A_PRODUCT * kept
            again = np.maximum(again, kept / np.where(in_parts, steps * points, kept))
    return code, again
