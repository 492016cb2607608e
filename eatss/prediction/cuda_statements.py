"""What the statements of generated code ask for: loads, arithmetic, and what a thread waits for."""

from __future__ import annotations

from itertools import takewhile
from math import prod

import numpy as np

from eatss.analysis.work import StatementFacts
from eatss.plan.contract import FRAGMENT_PLACES
from eatss.plan.rows import element_words
from eatss.prediction.access import SECTOR_BYTES
from eatss.prediction.arithmetic import is_wide, result_cycles, slow_cycles, unrolled_instructions
from eatss.prediction.card import SCHEDULERS
from eatss.prediction.cuda_boxes import steps_together, vector_wavefronts, vector_width
from eatss.prediction.cuda_caches import bank_request, missing_bytes, request, torn_request
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.cuda_products import (
    add_product,
    is_product,
    loads_late,
    operands_ahead,
    product_cycles,
    waits_for_nothing,
)
from eatss.prediction.cuda_resources import (
    CodeResources,
    distinct,
    held_registers,
    step_words,
)
from eatss.prediction.demand import Column
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.uniform_references import UniformSet


def add_statements(setting: CodeResources, demand: DemandBuilder) -> None:
    """Add the instances of all statements."""
    for statement in setting.of.statements:
        if is_product(setting.of, statement):
            add_product(setting.of, demand, statement)
        else:
            _Counting(setting, demand, statement).add()


def tile_cycles(of: CudaLaunch) -> Column:
    """Return what a warp takes by itself for what a block does with its boxes, in cycles.

    That is, for a tile of the serial loops, the products of warps or the arithmetic of threads that
    load vectors of their points, step by step. Those that load several steps at a time wait first.
    """
    total = product_cycles(of)
    in_rows = np.logical_or.reduce([of.never, *map(of.neighbours, of.cut.mapped)])
    for statement in of.statements:
        if not is_product(of, statement) and of.serial(statement):
            each = unrolled_instructions(statement, of.constants, of.shape.points)
            steps = of.steps(of.serial(statement)) / of.tile_steps(statement)
            issue = _issue_cycles(of, statement, of.points_of(statement) * each)
            together = [
                steps_together(of, statement, own) for own in of.uniform_sets[statement.name]
            ]
            ahead = in_rows & (np.maximum.reduce([of.ones, *together]) == 1)
            total = total + ahead * of.share(statement) * steps * issue
    return total


def _issue_cycles(of: CudaLaunch, statement: StatementFacts, instructions: Column) -> Column:
    """Return the cycles in which the units of a scheduler run floating-point instructions."""
    rate = of.card.fp64_per_cycle if is_wide(statement) else of.card.fp32_per_cycle
    return instructions * of.card.warp * SCHEDULERS / rate


class _Counting:
    """Adds up one statement.

    ``longest`` is what a thread waits for the slowest load of a step, ``waited`` for all of them,
    batch by batch, ``wide`` what requests of many lines take in addition; in cycles. ``each`` are
    the floating-point instructions of an instance; ``guarded`` is the share of steps whose points
    are tested, ``rolled`` that of steps that are not unrolled, ``cut`` that of those in tiles that
    a bound cuts.
    """

    def __init__(
        self, setting: CodeResources, demand: DemandBuilder, statement: StatementFacts
    ) -> None:
        of = setting.of
        self.setting, self.of, self.demand, self.statement = setting, of, demand, statement
        self.serial = of.serial(statement)
        self.points, self.steps = of.points_of(statement), of.steps(self.serial)
        self.share = of.share(statement)
        self.arithmetic = statement
        if self.serial and _sums_in_registers(of, statement):
            self.arithmetic = statement.with_factors_last()
        self.each = unrolled_instructions(self.arithmetic, of.constants, of.shape.points)
        self.longest, self.waited, self.wide = of.zeros, of.zeros, of.zeros
        tiled = of.any_staged
        self.cut = tiled * of.cut_share(statement) * (1.0 - of.runs_whole(statement))
        self.steps = self.steps * (1.0 + tiled * (of.steps_beside(statement) - 1.0))
        self.guarded = np.maximum(setting.guarded, self.cut)
        self.rolled = np.maximum(self.guarded, tiled * self._in_last_tiles())

    def add(self) -> None:
        """Add arithmetic, loops and tests, accesses, and what a thread waits for."""
        of, code, guarded = self.of, self.of.code, self.guarded
        instances = self.share * self.points * self.steps
        self.demand.add_arithmetic(self.statement, instances * self.each)
        late = code.late_instructions * loads_late(of, self.statement) * of.launched_warps
        self.demand.late += late * self.share * self.steps
        guards = code.guard_instructions * guarded * self.points
        overhead = code.loop_instructions / code.unrolled_steps if self.serial else 0.0
        tiles = of.tile_steps(self.statement) * code.step_instructions
        self.demand.add_instructions(self.share * (self.steps * (overhead + guards) + tiles))
        for uniform in of.uniform_sets[self.statement.name]:
            if uniform.held:
                continue
            if uniform.reads:
                self._add_reads(uniform)
            if uniform.writes:
                requests = instances * max(1, uniform.count)
                torn = torn_request(of, uniform.access)
                self.demand.add_stores(requests, *request(of, uniform.access), torn)
                converts = float(uniform.access.converts)
                self.demand.add_instructions(requests * (code.load_instructions + converts))
        self._add_wait()

    def _add_reads(self, uniform: UniformSet) -> None:
        """Add the loads through a uniform set, from shared memory where it is staged."""
        of, code, demand = self.of, self.of.code, self.demand
        on = of.staged(uniform.group)
        body = distinct(of, uniform)
        often = self._often(uniform, body)
        requests = self.share * body * often
        converts = float(uniform.access.converts)
        total = of.launched_warps * requests
        width = vector_width(of, self.statement, uniform)
        near = np.where(
            width > 1,
            vector_wavefronts(of, uniform.access),
            bank_request(self.setting, uniform),
        )
        wave, _ = request(of, uniform.access, 1.0 - uniform.rows / uniform.count)
        alone = requests * on * self.cut * (width > 1)  # what is tested is loaded one by one
        demand.add_shared((requests * on - alone) / width, near)
        demand.add_shared(alone, bank_request(self.setting, uniform))
        demand.operand_bytes += total * of.different_bytes(uniform.access)
        each = np.where(on > 0, 1.0 / width, code.load_instructions)
        demand.add_instructions((requests - alone) * each + alone + requests * converts)
        missing = missing_bytes(self.setting, self.statement, uniform, total) * (1.0 - on)
        demand.l1_wavefronts += total * wave * (1.0 - on)
        demand.l2_bytes += missing
        misses = np.clip(missing / np.maximum(1.0, total * SECTOR_BYTES), 0.0, 1.0)
        batch = code.batch if self.serial else code.stream_batch
        every = body * often / self.steps
        far = of.far_cycles * np.minimum(1.0, batch * misses) * (1.0 - on)
        wait = far + np.where(on > 0, of.card.shared_cycles, code.near_wait * of.card.l1_cycles)
        self.longest = np.maximum(self.longest, wait * np.minimum(1.0, often / self.steps))
        self.waited = self.waited + far * every / batch
        self.wide = self.wide + every * (wave * (1.0 - on) * code.line_wait + near * on / width)

    def _reading_loops(self, uniform: UniformSet) -> list[str]:
        """Return the serial loops in which a set is read anew: down to the last that moves it.

        What another access of the launch may write is read in all of them.
        """
        if uniform.writes or self.of.is_written(uniform.access.array):
            return self.serial
        moving = dict(uniform.access.strides)
        last = max((at for at, name in enumerate(self.serial) if name in moving), default=-1)
        return self.serial[: last + 1]

    def _often(self, uniform: UniformSet, body: Column) -> Column:
        """Return how often a thread reads the ``body`` of a set, at one step of its loops.

        What short loops of a length that compilers know read again for each step of a loop around
        them stays in registers, as far as these have room: ``X[i][k]`` of all ``k`` over a tile of
        ``j``, whose steps are unrolled, or all of ``j`` where it is not tiled.
        """
        of, loops = self.of, self._reading_loops(uniform)
        known = {one.name for one in of.facts.inner_loops if one.trip_count is not None}
        moving = dict(uniform.access.strides)
        inside = [*takewhile(lambda n: n in moving and n in known, reversed(loops))]
        outside = loops[: len(loops) - len(inside)]
        again = [*takewhile(lambda name: name not in moving, reversed(outside))]
        if not inside or not again or uniform.writes or of.is_written(uniform.access.array):
            return of.steps(loops)
        values = prod(of.trips[name] for name in inside)
        words = values * body * element_words(uniform.access.element_bytes)
        around = of.steps(outside[: len(outside) - len(again)])
        tiles = of.product(of.shape.steps.get(name, of.ones) for name in again)
        kept = (words <= of.code.unrolled_values) & (of.staged(uniform.group) == 0)
        return np.where(kept, around * tiles * values, of.steps(loops))

    def _in_last_tiles(self) -> Column:
        """Return the share of steps in tiles that the end of the innermost loop cuts off.

        Such a tile has another loop, of a length that compilers do not know.
        """
        of = self.of
        if not self.serial or self.serial[-1] not in of.shape.tile:
            return of.zeros
        steps = of.trips[self.serial[-1]]
        return np.asarray(np.mod(steps, of.shape.tile[self.serial[-1]]) / max(1.0, steps))

    def _together(self) -> Column:
        """Return the steps whose loads are under way together: registers have room for them."""
        of = self.of
        if not self.serial:
            return of.ones
        most = min(of.code.unrolled_steps, of.trips[self.serial[-1]])
        # what other statements of the loop load is under way, too
        beside = [one for one in of.statements if of.serial(one)[-1:] == self.serial[-1:]]
        words = sum((step_words(of, one) for one in beside), start=of.zeros)
        taken = of.code.base_registers + held_registers(of)
        taken = taken + FRAGMENT_PLACES * (of.layout.boxes > 1)
        room = of.card.registers_per_thread - taken
        return np.asarray(np.clip(room / np.maximum(1.0, words), 1.0, most))

    def _add_wait(self) -> None:
        """Add what the slowest thread of a block waits for in the statement.

        Tests of points keep the compiler from unrolling, so that each step waits for its slowest
        load. Arithmetic takes the latency of its results or, with many points, the issue of its
        instructions by one warp.
        """
        of, guarded = self.of, self.rolled
        together = self._together()
        free = self.longest / together + self.waited
        tested = self.longest + self.waited
        memory = free * (1 - guarded) + tested * guarded
        issue = _issue_cycles(of, self.statement, self.points * self.each)
        whole = result_cycles(self.arithmetic, of.card, of.constants)
        # steps that are unrolled wait for each other only where one adds to what the last had
        adds = any(
            uniform.reads and uniform.writes for uniform in of.uniform_sets[self.statement.name]
        )
        carried = whole - slow_cycles(self.statement, of.card) if adds else 0.0
        overlapped = carried + (whole - carried) / together
        arithmetic = np.maximum(overlapped * (1 - guarded) + whole * guarded, issue)
        shape, loops = of.shape, self.statement.loops
        copies = prod(shape.steps[n] for n in of.cut.mapped if n not in loops)
        there: Column = np.minimum(1.0, self.share * copies)
        each = memory + arithmetic + self.wide
        # what is loaded a step ahead comes while the step before computes; loads beside it do not
        hidden = np.maximum(self.longest + self.waited + self.wide, arithmetic)
        beside = ~waits_for_nothing(of, self.statement)
        ahead = np.where(beside, np.maximum(hidden, each), hidden)
        loaded = operands_ahead(of, self.statement) * (1 - guarded)
        each = ahead * loaded + each * (1 - loaded)
        self.demand.chain_cycles += there * self.steps * each
        boxes_ahead = of.layout.boxes > 1
        self.demand.edge_cycles += boxes_ahead * there * self.steps * self.cut * (tested + whole)


def _sums_in_registers(of: CudaLaunch, statement: StatementFacts) -> bool:
    """Tell whether registers have what a statement adds to, in an order of the compiler's own."""
    own = of.uniform_sets[statement.name]
    return not of.structure.in_order and any(one.held and one.writes for one in own)
