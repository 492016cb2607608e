"""What a launch of generated code asks of a card, as a function of threads, points and tiles.

A thread computes its points of a tile unrolled. What a point adds to over serial loops stays in
registers. What threads of a block share may be staged in shared memory, tile by tile of the serial
loops. Tiles that lie inside their loops run without tests, with many loads under way at a time.
The structure (:mod:`eatss.analysis.structure`) is the generator's own description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.structure import LaunchFacts, PartFacts, Structure
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.prediction.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    bank_wavefronts,
    lanes_of,
    lines,
    sectors,
)
from eatss.prediction.card import Card
from eatss.prediction.cuda_habits import CudaHabits
from eatss.prediction.cuda_shape import CudaCandidates, launch_shape, trips_of
from eatss.prediction.demand import Column, Demand
from eatss.prediction.habits import Habits
from eatss.prediction.terms import resident_blocks

_WORD_BYTES = 4
_WIDE_BYTES = 8
_SLOW = ("divide", "square root", "function")
_LEAST_L1_BYTES = 16 * 1024.0
_ISSUE = 4
_PAGE_PIECE_BYTES = 256
_MOST_POINTS = 64
_KEPT_SHARE = 0.7
_KEPT_MISSES = 0.05


@dataclass(frozen=True, slots=True)
class Family:
    """Accesses of one statement that differ by constants only: ``A[i-1]``, ``A[i]``.

    ``spans`` are, for each dimension, the differences of their constants; ``count`` is how many
    elements one point touches through them, ``rows`` in how many rows of the array. ``held`` says
    that registers have them; ``group`` is the position of the stageable group they belong to.
    """

    access: AccessFacts
    spans: tuple[int, ...]
    count: int
    rows: int
    reads: int
    writes: bool
    held: bool
    group: int | None


def families_of(statement: StatementFacts, launch: LaunchFacts) -> tuple[Family, ...]:
    """Return the accesses of a statement, those that differ by constants together."""
    held = {at for own in launch.held for at in own.references}
    alike: dict[object, list[AccessFacts]] = {}
    for access in statement.accesses:
        group = _group_of(access, launch)
        form = tuple(terms for terms, _ in access.subscripts)
        key = access.array, form, access.reference in held, group, access.writes
        alike.setdefault(key, []).append(access)
    families = []
    for accesses in alike.values():
        first = accesses[0]
        offsets = list(zip(*(tuple(c for _, c in a.subscripts) for a in accesses), strict=True))
        families.append(
            Family(
                access=first,
                spans=tuple(max(along) - min(along) for along in offsets),
                count=len(accesses),
                rows=len({tuple(c for _, c in a.subscripts)[:-1] for a in accesses}),
                reads=sum(1 for a in accesses if a.reads),
                writes=any(a.writes for a in accesses),
                held=first.reference in held,
                group=_group_of(first, launch),
            )
        )
    return tuple(families)


def _group_of(access: AccessFacts, launch: LaunchFacts) -> int | None:
    found = (at for at, group in enumerate(launch.stageable) if access.reference in group)
    return next(found, None)


@dataclass(frozen=True, slots=True)
class LaunchDemand:
    """What one launch asks of the card; ``fits`` says where its sums fit registers."""

    demand: Demand
    fits: npt.NDArray[np.bool_]


def cuda_demands(
    facts: KernelFacts,
    structure: Structure,
    candidates: CudaCandidates,
    card: Card,
    habits: Habits,
    code: CudaHabits,
) -> tuple[LaunchDemand, ...]:
    """Return what each launch of a structure asks of the card, an entry a candidate.

    Args:
        facts: the kernel.
        structure: one of its cuts.
        candidates: threads, tiles and places.
        card: what decides how many blocks run at a time and what caches hold.
        habits: latencies of chips.
        code: instructions and cycles of generated code.
    """
    launches = (
        _Launch(facts, structure, launch, candidates, card, habits, code)
        for launch in structure.launches
        if launch.statements
    )
    return tuple(LaunchDemand(launch.demand(), launch.fits()) for launch in launches)


class _Launch:
    """Adds up what one thread, warp and block of a launch do."""

    def __init__(
        self,
        facts: KernelFacts,
        structure: Structure,
        launch: LaunchFacts,
        candidates: CudaCandidates,
        card: Card,
        habits: Habits,
        code: CudaHabits,
    ) -> None:
        self.facts, self.structure, self.launch = facts, structure, launch
        self.candidates, self.card, self.habits, self.code = candidates, card, habits, code
        self.trips = trips_of(facts)
        if structure.host_loop is not None:
            self.host_trips = self.trips.pop(structure.host_loop)
        else:
            self.host_trips = 1.0
        self.launches = float(facts.work.launches or 1) * self.host_trips
        self.shape = launch_shape(structure, launch, self.trips, candidates, card.threads_per_block)
        self.size = len(candidates)
        self.zero, self.ones = np.zeros(self.size), np.ones(self.size)
        self.statements = [s for s in facts.work.statements if s.name in launch.statements]
        self.part_of = {name: part for part in launch.parts for name in part.statements}
        self.families = {s.name: families_of(s, launch) for s in self.statements}
        self.widths = {a.name: a.element_bytes for a in facts.work.arrays}
        self.serial_band = [
            loop.name
            for loop in facts.loops
            if loop.name not in launch.mapped and loop.name != structure.host_loop
        ]
        self.inner = [loop.name for loop in facts.inner_loops]
        self.warps = np.ceil(self.shape.block_threads / card.warp)
        self.lanes = lanes_of([count for _, count in self.shape.axes])
        self.fills = {s.name: self._fill(s) for s in self.statements}
        self.fill = max(self.fills.values(), default=1.0)
        self.active = np.maximum(1.0, self.shape.blocks * self.fill)
        self.instructions = self.zero.copy()
        self.fp64, self.fp32 = self.zero.copy(), self.zero.copy()
        self.l1, self.shared, self.l2_bytes = self.zero.copy(), self.zero.copy(), self.zero.copy()
        self.copied_bytes = self.zero
        self.read_bytes = self.zero
        self.chain = self.ones * code.start_cycles

    # what a statement does in a block

    def _fill(self, statement: StatementFacts) -> float:
        """Return the share of the box of its loops that a statement runs at, in a launch."""
        if statement.instances is None:
            return 1.0
        box = prod(self.trips[name] for name in statement.loops if name in self.trips)
        return min(1.0, statement.instances / max(1.0, box * self.launches))

    def _serial(self, statement: StatementFacts) -> list[str]:
        """Return the loops that a thread runs itself around a statement, outermost first."""
        order = [*self.serial_band, *self.inner]
        return [name for name in order if name in statement.loops and name in self.trips]

    def _points(self, statement: StatementFacts) -> Column:
        """Return the points of a thread that a statement runs at, those of the sum left out."""
        named = (n for n in self.launch.mapped if n in statement.loops)
        return np.asarray(prod((self.shape.points[n] for n in named), start=self.ones))

    def _share(self, statement: StatementFacts) -> Column:
        """Return the share of blocks that a statement runs in, and of its steps it runs there."""
        share = self.ones * (self.fills[statement.name] / self.fill)
        for name in self.launch.mapped:
            if name not in statement.loops:
                share = share / self.shape.steps[name]
        return share

    def _steps(self, statement: StatementFacts, names: Sequence[str]) -> Column:
        """Return how often a thread runs some serial loops around a statement."""
        steps = np.asarray(prod((self.trips[n] for n in names), start=self.ones))
        if self.launch.sum_loop in names:
            steps = steps / (self.shape.lanes * self.shape.chunks)
        return np.asarray(np.maximum(steps, 1.0))

    def _distinct(self, family: Family) -> Column:
        """Return the elements that the points of a thread touch through a family, at one step."""
        moving = dict(family.access.strides)
        named = [n for n in self.launch.mapped if n in moving]
        each = np.asarray(prod((self.shape.points[n] for n in named), start=self.ones))
        together = self.ones
        for (terms, _), span in zip(family.access.subscripts, family.spans, strict=True):
            loops = [n for n, factor in terms if n in named and abs(factor) == 1]
            if len(loops) == 1:
                points, threads = self.shape.points[loops[0]], self.shape.threads[loops[0]]
                together = together * np.where(
                    threads == 1, points + span, points * min(span + 1, family.count)
                )
            else:
                together = together * min(span + 1, family.count)
        return np.minimum(each * family.count, together)

    def _reading_loops(self, statement: StatementFacts, family: Family) -> list[str]:
        """Return the serial loops in which a family is read anew: down to the last that moves it.

        What another access of the launch may write is read in all of them.
        """
        serial = self._serial(statement)
        if family.writes or self._is_written(family.access.array):
            return serial
        moving = dict(family.access.strides)
        last = max((at for at, name in enumerate(serial) if name in moving), default=-1)
        return serial[: last + 1]

    def _is_written(self, array: str) -> bool:
        return any(a.writes and a.array == array for s in self.statements for a in s.accesses)

    def _strides(self, access: AccessFacts) -> list[float]:
        """Return the bytes between neighbouring threads along each axis."""
        moving = dict(access.strides)
        return [float(moving.get(name, 0) * access.element_bytes) for name, _ in self.shape.axes]

    def _different(self, access: AccessFacts) -> Column:
        """Return the bytes that differ between the lanes of a request."""
        different = self.ones * access.element_bytes
        for lanes, step in zip(self.lanes, self._strides(access), strict=True):
            if step:
                different = different * lanes
        return different

    def _wave(self, access: AccessFacts, unaligned: float = 0.0) -> Column:
        """Return the cycles of L1 for a request: 128 bytes that differ each, or a line each.

        ``unaligned`` is the share of requests whose rows of lanes begin inside a line.
        """
        strides = self._strides(access)
        least = np.maximum(1.0, self._different(access) / LINE_BYTES)
        touched = lines(self.lanes, strides, access.element_bytes)
        if unaligned and self.lanes:
            touched = touched + unaligned * self.card.warp / self.lanes[0]
        return np.asarray(least + self.habits.line_cycles * np.maximum(0.0, touched - least))

    # boxes and footprints

    def _extent(self, name: str, *, whole: bool, declared: bool = False) -> Column:
        """Return the iterations of a loop that a tile holds, or all that a block runs.

        What is ``declared`` is for whole tiles, however short the loop.
        """
        if declared and name in self.shape.tile:
            return self.shape.tile[name]
        if name in self.launch.mapped:
            return np.minimum(self.shape.tile[name], self.trips[name])
        if name == self.structure.host_loop:
            return self.ones
        if not whole and name in self.shape.tile:
            return np.minimum(self.shape.tile[name], self.trips[name])
        return self.ones * self.trips[name]

    def _box(self, family: Family, *, whole: bool, declared: bool = False) -> list[Column]:
        """Return the extents, a dimension each, of what a tile touches through a family."""
        sizes = []
        for (terms, _), span in zip(family.access.subscripts, family.spans, strict=True):
            size = self.ones * (1.0 + span)
            for name, factor in terms:
                extent = self._extent(name, whole=whole, declared=declared)
                size = size + abs(factor) * (extent - 1)
            sizes.append(size)
        return sizes

    def _box_sectors(self, family: Family, *, whole: bool) -> Column:
        sizes = self._box(family, whole=whole)
        if not sizes:
            return self.ones
        width = family.access.element_bytes
        last = np.ceil(sizes[-1] * width / SECTOR_BYTES)
        along = {name for name, _ in family.access.subscripts[-1][0]}
        if whole and self.launch.sum_loop in along:  # chunks of it go to blocks
            run = np.minimum(self.shape.tile[self.launch.sum_loop], sizes[-1])
            run = np.where(self.shape.chunks > 1, run, sizes[-1])
            last = np.ceil(run * width / SECTOR_BYTES) * sizes[-1] / run
        if family.spans[-1]:  # a halo begins in a sector of its own
            last = last + 1.0
        return np.asarray(prod(sizes[:-1], start=self.ones) * last)

    def _group_boxes(self, *, declared: bool = False) -> list[tuple[list[Column], int, int]]:
        """Return, for each stageable group, its box, the width of an element, and its depth.

        The depth is how many of the serial loops of the band stand around the copy.
        """
        boxes = []
        for at in range(len(self.launch.stageable)):
            members = [f for own in self.families.values() for f in own if f.group == at]
            if not members:
                boxes.append(([self.ones], _WORD_BYTES, 0))
                continue
            sizes = [
                np.maximum.reduce(extents)
                for extents in zip(
                    *(self._box(f, whole=False, declared=declared) for f in members), strict=True
                )
            ]
            moving = {name for f in members for name, _ in f.access.strides}
            depth = max((p + 1 for p, n in enumerate(self.serial_band) if n in moving), default=0)
            boxes.append((sizes, members[0].access.element_bytes, depth))
        return boxes

    def _staged(self, at: int) -> Column:
        if self.launch.sum_loop is not None:
            return self.zero
        return self.candidates.staged.get(self.launch.stageable[at], self.zero)

    # the sum

    def demand(self) -> Demand:
        """Return what the launch asks for."""
        boxes = self._group_boxes()
        padded = [_padded(sizes) for sizes, _, _ in self._group_boxes(declared=True)]
        self.shared_bytes = np.asarray(
            sum(
                (
                    self._staged(at) * self.launch.copies[at] * prod(own, start=self.ones) * width
                    for at, (own, (_, width, _)) in enumerate(zip(padded, boxes, strict=True))
                ),
                start=self.zero,
            )
        )
        registers, needed = self._registers()
        cap = np.minimum(
            self.card.registers_per_thread,
            np.floor(self.card.registers_per_block / np.maximum(32.0, self.shape.block_threads) / 8)
            * 8,
        )
        spilled = np.maximum(0.0, needed - cap)
        registers = np.minimum(registers, cap)
        self.resident = resident_blocks(
            self.shape.block_threads,
            registers,
            self.shared_bytes,
            self.card,
            self.card.shared_optin_bytes,
        )
        self.present = np.clip(np.ceil(self.active / self.card.sms), 1.0, self.resident)
        self.room = np.maximum(
            _LEAST_L1_BYTES, self.card.l1_shared_bytes - self.present * self.shared_bytes
        )
        self.guarded = self._guarded_share()
        self.working = self._working_bytes()
        self._copies(boxes)
        for statement in self.statements:
            self._statement(statement, padded)
        self._held()
        self._ends()
        self._spills(spilled)
        self._phases()
        total = self.active * self.warps
        self.instructions += total * self.code.start_instructions
        return Demand(
            launches=self.ones * self.launches,
            blocks=np.maximum(1.0, self.active),
            threads=self.shape.block_threads,
            registers=registers,
            shared_bytes=self.shared_bytes,
            shared_limit_bytes=self.ones * self.card.shared_optin_bytes,
            instructions=self.instructions,
            fp64=self.fp64,
            fp32=self.fp32,
            lanes=self.shape.block_threads / (self.warps * self.card.warp),
            l1_wavefronts=self.l1,
            shared_wavefronts=self.shared,
            shared_read_bytes=self.read_bytes,
            l2_bytes=self.l2_bytes,
            dram_bytes=self._dram_bytes(),
            scatter=self._scatter(),
            chain_cycles=self.chain,
        )

    def _registers(self) -> tuple[Column, Column]:
        """Return the registers that a thread takes if it may, and those it cannot do without.

        Sums and addresses it needs; operands of all points are under way together, without a
        serial loop half of those of one.
        """
        held = self.ones * self.code.base_registers
        for own in self.launch.held:
            held = held + self._all_points() * max(1, own.element_bytes // _WORD_BYTES)
        wanted = self.zero
        for statement in self.statements:
            serial = bool(self._serial(statement))
            words = self.zero
            for family in self.families[statement.name]:
                if not family.held:
                    width = max(1, family.access.element_bytes // _WORD_BYTES)
                    each = self._distinct(family) if serial else self.ones * family.count / 2
                    words = words + each * width
            wanted = np.maximum(wanted, words)
        return held + self.code.operand_registers * wanted, held

    def fits(self) -> npt.NDArray[np.bool_]:
        """Tell where what points add up stays in registers [``codegen.storage``].

        A quarter of a thread's registers is left for addresses and operands.
        """
        words = self.zero
        for own in self.launch.held:
            words = words + self._all_points() * max(1, own.element_bytes // _WORD_BYTES)
        block = self.card.registers_per_block / np.maximum(1.0, self.shape.block_threads)
        most = np.minimum(self.card.registers_per_thread, np.floor(block))
        few = self._all_points() <= _MOST_POINTS
        return np.asarray((words <= np.floor(most * 3 / 4)) & (few | (words == 0)))

    def _all_points(self) -> Column:
        return np.asarray(prod(self.shape.points.values(), start=self.ones))

    def _guarded_share(self) -> Column:
        """Return the share of blocks whose tile the end of a loop cuts off."""
        free = self.ones
        for name in self.launch.mapped:
            cut = np.mod(self.trips[name], self.shape.tile[name]) > 0
            free = free * np.where(cut, 1.0 - 1.0 / self.shape.steps[name], 1.0)
        return 1.0 - free

    def _copies(self, boxes: Sequence[tuple[list[Column], int, int]]) -> None:
        """Count the copies to shared memory and the barriers around them."""
        code, shape = self.code, self.shape
        barriers = self.zero
        for at, (sizes, width, depth) in enumerate(boxes):
            on = self._staged(at) * self.launch.copies[at]
            if not on.any():
                continue
            times = self.ones
            for name in self.serial_band[:depth]:
                times = times * shape.steps[name]
            elements = prod(sizes, start=self.ones)
            loads = np.ceil(elements / shape.block_threads)
            requests = self.active * self.warps * loads * times * on
            rows = prod(sizes[:-1], start=self.ones)
            row_sectors = np.ceil(sizes[-1] * width / SECTOR_BYTES)
            fetched = self.active * rows * row_sectors * SECTOR_BYTES * times * on
            wave = np.maximum(width * self.card.warp / LINE_BYTES, 1.0)
            lines = np.ceil(self.card.warp / np.maximum(1.0, sizes[-1]))
            self.l1 += requests * np.maximum(wave, lines)
            self.shared += requests * wave
            self.l2_bytes += fetched
            self.copied_bytes = self.copied_bytes + fetched
            even = self._walks_rows(sizes)
            self.instructions += requests * np.where(
                even, code.copy_instructions, code.ragged_instructions
            )
            waits = (
                np.ceil(loads / np.where(even, code.batch, code.ragged_batch))
                + loads * wave * code.line_wait / code.memory_cycles
            )
            self.chain += on * times * code.memory_cycles * waits
            barriers = np.maximum(barriers, on * times * 2)
        self.chain += barriers * code.barrier_cycles
        self.instructions += self.active * self.warps * barriers * 2

    def _walks_rows(self, sizes: Sequence[Column]) -> npt.NDArray[np.bool_]:
        """Tell where threads copy whole rows, unrolled [``codegen.staging_walk``].

        Elsewhere each element is found by divisions, and may lie outside of what is read.
        """
        longer = np.asarray(sum((size > 1) * 1 for size in sizes))
        columns = self.ones
        for size in sizes:
            columns = np.where(size > 1, size, columns)  # the last long one
        threads = self.shape.block_threads
        whole = (np.mod(threads, columns) == 0) & (
            np.mod(prod(sizes, start=self.ones), threads) == 0
        )
        return np.asarray((longer == 2) & whole)

    def _statement(self, statement: StatementFacts, padded: Sequence[list[Column]]) -> None:
        """Count the instances of a statement with their loads and stores."""
        code = self.code
        share = self._share(statement)
        serial = self._serial(statement)
        points = self._points(statement)
        steps = self._steps(statement, serial)
        runs = self.active * self.warps * share
        self._arithmetic(statement, runs * points * steps)
        guards = code.guard_instructions * self.guarded * points
        overhead = code.loop_instructions / code.unrolled_steps if serial else 0.0
        self.instructions += runs * steps * (overhead + guards)
        part = self.part_of[statement.name]
        tiles = self._tile_steps(part)
        self.instructions += runs * tiles * code.step_instructions
        batch = code.batch if serial else code.stream_batch
        longest, waited, wide = self.zero, self.zero, self.zero
        for family in self.families[statement.name]:
            if family.held:
                continue
            body = self._distinct(family)
            reading = self._reading_loops(statement, family)
            often = self._steps(statement, reading)
            on = self.zero if family.group is None else self._staged(family.group)
            if family.reads:
                requests = runs * body * often
                near = self._shared_wave(family, padded)
                wave = self._wave(family.access, 1.0 - family.rows / family.count)
                self.shared += requests * near * on
                self.read_bytes = self.read_bytes + requests * self._different(family.access)
                self.l1 += requests * wave * (1.0 - on)
                self.instructions += requests * np.where(on > 0, 1.0, code.load_instructions)
                missing = self._global_reads(statement, family, requests, share) * (1.0 - on)
                self.l2_bytes += missing
                misses = np.clip(missing / np.maximum(1.0, requests * SECTOR_BYTES), 0.0, 1.0)
                every = body * often / steps
                wide = wide + every * (wave * (1.0 - on) * code.line_wait + near * on)
                far = code.memory_cycles * np.minimum(1.0, batch * misses) * (1.0 - on)
                wait = far + np.where(on > 0, code.shared_cycles, code.l1_cycles)
                longest = np.maximum(longest, wait * np.minimum(1.0, often / steps))
                waited = waited + far * every / batch
            if family.writes:
                requests = runs * points * steps * max(1, family.count)
                wave = self._wave(family.access)
                touched = sectors(
                    self.lanes, self._strides(family.access), family.access.element_bytes
                )
                self.l1 += requests * wave
                self.l2_bytes += requests * touched * SECTOR_BYTES
                self.instructions += requests * code.load_instructions
        self._wait(statement, share, points, steps, longest, waited, wide)

    def _wait(
        self,
        statement: StatementFacts,
        share: Column,
        points: Column,
        steps: Column,
        longest: Column,
        waited: Column,
        wide: Column,
    ) -> None:
        """Add what the slowest thread of a block waits for in a statement.

        ``longest`` is the wait for its slowest load, ``waited`` that for all of a step, batch by
        batch, and ``wide`` what requests of many lines take in addition. Arithmetic takes the
        latency of its results or, with many points, the issue of its instructions by one warp.
        """
        code = self.code
        serial = self._serial(statement)
        last = self.trips[serial[-1]] if serial else 1.0
        together = min(code.unrolled_steps, last) if serial else 1.0
        free = longest / together + waited
        tested = longest + waited
        memory = free * (1 - self.guarded) + tested * self.guarded
        counts = dict(statement.operations)
        slow = sum(counts.get(kind, 0) for kind in _SLOW)
        is_wide = statement.element_bytes >= _WIDE_BYTES
        result = self.habits.fp64_cycles if is_wide else self.habits.fp32_cycles
        division = self.habits.slow_cycles64 if is_wide else self.habits.slow_cycles32
        fused = max(counts.get("add", 0), counts.get("multiply", 0))
        each = fused + slow * (self.habits.division64 if is_wide else self.habits.division32)
        rate = self.card.fp64_per_cycle if is_wide else self.card.fp32_per_cycle
        issue = points * each * self.card.warp * _ISSUE / rate
        arithmetic = np.maximum(result + slow * division, issue)
        there = np.minimum(
            1.0,
            share
            * prod(self.shape.steps[n] for n in self.launch.mapped if n not in statement.loops),
        )
        self.chain += there * steps * (memory + arithmetic + wide)

    def _arithmetic(self, statement: StatementFacts, total: Column) -> None:
        """Count floating-point instructions; a product and a sum are one where they meet."""
        counts = dict(statement.operations)
        fused = max(counts.get("add", 0), counts.get("multiply", 0)) + counts.get("compare", 0)
        slow = sum(counts.get(kind, 0) for kind in _SLOW)
        wide = statement.element_bytes >= _WIDE_BYTES
        each = fused + slow * (self.habits.division64 if wide else self.habits.division32)
        if wide:
            self.fp64 += total * each
        else:
            self.fp32 += total * each
        self.instructions += total * each

    def _tile_steps(self, part: PartFacts) -> Column:
        """Return how many tiles of serial loops a block runs for a part."""
        steps = self.ones
        for name in part.serial:
            steps = steps * self.shape.steps.get(name, self.ones)
        if self.launch.sum_loop is not None:
            steps = steps * np.maximum(
                1.0,
                self.trips[self.launch.sum_loop]
                / (self.shape.tile[self.launch.sum_loop] * self.shape.chunks),
            )
        return steps

    def _shared_wave(self, family: Family, padded: Sequence[list[Column]]) -> Column:
        """Return the cycles of a request to a staged box."""
        if family.group is None:
            return self.ones
        steps: dict[str, Column] = {}
        apart = self.ones
        sizes = padded[family.group]
        for (terms, _), size in zip(
            reversed(family.access.subscripts), reversed(sizes), strict=True
        ):
            for name, factor in terms:
                steps[name] = steps.get(name, self.zero) + factor * apart
            apart = apart * size
        along = [steps.get(name, self.zero) for name, _ in self.shape.axes]
        if not self._staged(family.group).any():
            return self.ones
        return bank_wavefronts(self.lanes, along, family.access.element_bytes)

    def _working_bytes(self) -> Column:
        """Return what a block touches through L1 in a step of its innermost loops, in bytes."""
        most = self.zero
        for statement in self.statements:
            total = self.zero
            for family in self.families[statement.name]:
                if family.held or not family.reads:
                    continue
                on = self.zero if family.group is None else self._staged(family.group)
                touched = self._step_lines(statement, family) * LINE_BYTES
                total = total + touched * (1.0 - on)
            most = np.maximum(most, total)
        return most

    def _step_lines(self, statement: StatementFacts, family: Family) -> Column:
        """Return the lines that all threads of a block touch in one step.

        With serial loops a step is all points of the threads at one iteration, else one point.
        """
        moving = dict(family.access.strides)
        lines = self.ones * family.rows
        steps = self._serial(statement)
        for name in self.launch.mapped:
            step = abs(moving.get(name, 0)) * family.access.element_bytes
            if step == 0:
                continue
            extent = self._extent(name, whole=False) if steps else self.shape.threads[name]
            lines = lines * (extent if step >= LINE_BYTES else np.ceil(extent * step / LINE_BYTES))
        if self.launch.sum_loop in moving:
            step = abs(moving[self.launch.sum_loop]) * family.access.element_bytes
            lines = lines * np.ceil(self.shape.lanes * min(step, LINE_BYTES) / LINE_BYTES)
        return np.asarray(lines)

    def _global_reads(
        self, statement: StatementFacts, family: Family, requests: Column, share: Column
    ) -> Column:
        """Return the bytes that come from L2 for a family that is not staged.

        At best every sector of what a block touches comes once. L1 has to hold what is touched
        until it is touched again: for neighbours and the next step the lines of a step, for the
        next sweep of a loop that does not move the family all that a sweep touches.
        """
        access = family.access
        each = sectors(self.lanes, self._strides(access), access.element_bytes)
        span = 0.0 if not family.spans else family.spans[-1] * access.element_bytes / SECTOR_BYTES
        rows = self.card.warp / self.lanes[0] if self.lanes else self.ones
        together = np.minimum(
            requests * each, requests / family.count * family.rows * (each + span * rows)
        )
        most = together
        blocks = self.active * share
        once = blocks * self._box_sectors(family, whole=True)
        moving = dict(access.strides)
        serial = self._serial(statement)
        sweeps, inside = self.ones, False
        for name in reversed(serial):
            inside = inside or name in moving
            if inside and name not in moving:
                sweeps = sweeps * self.trips[name]
        chunks = self.shape.chunks if self.launch.sum_loop in moving else self.ones
        once = np.minimum(most, np.maximum(1.0, once / chunks))
        swept = np.minimum(most, once * sweeps)
        near = np.clip(self.room / np.maximum(1.0, self.working * self.present), 0.0, 1.0)
        sweep_bytes = self._box_sectors(family, whole=False) * SECTOR_BYTES
        far = np.clip(self.room / np.maximum(1.0, sweep_bytes * self.present), 0.0, 1.0)
        short = swept * near + most * (1.0 - near)
        return np.asarray((once * far * near + short * (1.0 - far * near)) * SECTOR_BYTES)

    def _held(self) -> None:
        """Count the loads and stores of what registers keep."""
        code = self.code
        for own in self.launch.held:
            families = [
                f
                for fs in self.families.values()
                for f in fs
                if f.access.reference in own.references
            ]
            if not families:
                continue
            access = families[0].access
            ways = 1.0 + own.loads
            requests = self.active * self.warps * self._all_points() * ways
            wave = self._wave(access)
            touched = sectors(self.lanes, self._strides(access), own.element_bytes)
            self.l1 += requests * wave
            self.l2_bytes += requests * touched * SECTOR_BYTES
            self.instructions += requests * code.load_instructions
            if own.loads:
                self.chain += code.memory_cycles * np.maximum(1.0, self._all_points() / code.batch)

    def _phases(self) -> None:
        """Add what a block takes by itself where barriers keep its warps together.

        Copying and computing are one after the other then; other blocks of the SM fill the gaps.
        """
        staged = [self._staged(at) for at in range(len(self.launch.stageable))]
        on = np.maximum.reduce([self.zero, *staged])
        card = self.card
        busy = np.maximum.reduce(
            [
                self.instructions / _ISSUE,
                self.fp64 * card.warp / card.fp64_per_cycle,
                self.fp32 * card.warp / card.fp32_per_cycle,
                self.l1 + self.shared,
            ]
        )
        l2_bytes_cycle = card.l2_bytes_s / card.sms / card.clock_hz
        self.chain += on * (busy + self.copied_bytes / l2_bytes_cycle) / self.active

    def _ends(self) -> None:
        """Count the shuffles and atomic additions at the end of spread sums."""
        if self.launch.sum_loop is None:
            return
        rounds = np.log2(np.maximum(1.0, self.shape.lanes))
        points = self._all_points()
        self.instructions += self.active * self.warps * points * rounds * 4
        self.chain += points * rounds * self.habits.fp64_cycles * 2
        atomics = np.where(self.shape.chunks > 1, self.active * self.warps * points, 0.0)
        self.l1 += atomics * 2
        self.l2_bytes += atomics * SECTOR_BYTES * 8
        self.chain += np.where(self.shape.chunks > 1, self.code.atomic_cycles, 0.0)

    def _spills(self, spilled: Column) -> None:
        """Count the loads and stores of what registers do not hold."""
        if not spilled.any() or not self.statements:
            return
        main = max(self.statements, key=lambda s: s.instances or 0)
        steps = self._steps(main, self._serial(main))
        traffic = self.active * self.warps * spilled * steps * 2
        self.instructions += traffic
        self.l1 += traffic
        self.l2_bytes += traffic * LINE_BYTES * self.code.spill_missing

    def _dram_bytes(self) -> Column:
        """Return the bytes of one launch from and to memory.

        Every element once, unless all of it stays in L2 between launches. What blocks that do not
        run at the same time read again comes from memory where L2 cannot hold it.
        """
        everything = sum(a.elements * a.element_bytes for a in self.facts.work.arrays)
        many = self.launches > 1 or len(self.structure.launches) > 1
        kept = many and everything < _KEPT_SHARE * self.card.l2_bytes
        total = self.zero
        for array in self.facts.work.arrays:
            reads, writes = [self.zero], [self.zero]
            for statement in self.statements:
                for family in self.families[statement.name]:
                    if family.access.array != array.name:
                        continue
                    touched = (
                        min(self._touched(statement, family), float(array.elements))
                        * array.element_bytes
                    )
                    again = self._again(family, touched)
                    if family.reads and not (family.held and not self._loads(family)):
                        reads.append(touched * again)
                    if family.writes:
                        writes.append(touched * self.ones)
            total = total + np.maximum.reduce(reads) + np.maximum.reduce(writes)
        if kept:
            total = total * _KEPT_MISSES
        return np.minimum(total, np.maximum(self.l2_bytes, total * 0.02))

    def _scatter(self) -> Column:
        """Return how much longer memory takes because blocks come back to its pages for each point.

        Of narrow blocks with several points along ``x`` each point is another piece of a row.
        """
        if not self.launch.mapped or self.launch.sum_loop is not None:
            return self.ones
        along = self.launch.mapped[-1]
        moved = any(
            dict(f.access.strides).get(along) for own in self.families.values() for f in own
        )
        piece = self.shape.threads[along] * self.facts.element_bytes
        again = (self.shape.points[along] - 1.0) * _PAGE_PIECE_BYTES / piece
        return 1.0 + self.code.page_steps * again * moved

    def _loads(self, family: Family) -> bool:
        return any(
            own.loads for own in self.launch.held if family.access.reference in own.references
        )

    def _touched(self, statement: StatementFacts, family: Family) -> float:
        """Return the elements of a family that one launch touches."""
        moving = dict(family.access.strides)
        named = [n for n in moving if n in statement.loops and n in self.trips]
        dense = prod(self.trips[n] for n in named)
        fill = self.fills[statement.name]
        apart = min((abs(s) * family.access.element_bytes for s in moving.values()), default=0)
        wasted = min(apart, SECTOR_BYTES) / family.access.element_bytes if apart else 1.0
        return dense * min(1.0, fill * 1.5) * max(1.0, wasted)

    def _again(self, family: Family, touched: float) -> Column:
        """Return how often a family's elements come from memory.

        Blocks along ``x`` run one after the other first.
        """
        if len(self.launch.mapped) < 2 or touched <= 0.5 * self.card.l2_bytes:
            return self.ones
        moving = dict(family.access.strides)
        rows = [n for n in self.launch.mapped[:-1] if n not in moving]
        if not rows or self.launch.mapped[-1] not in moving:
            return self.ones
        resident = np.maximum(1.0, self.resident) * self.card.sms
        at_once = np.maximum(1.0, resident / self.shape.steps[self.launch.mapped[-1]])
        repeats = prod((self.shape.steps[n] for n in rows), start=self.ones)
        return np.maximum(1.0, repeats / at_once)


def _padded(sizes: Sequence[Column]) -> list[Column]:
    """Return the extents of a box as declared: rows of odd length [``codegen.staging``]."""
    if len(sizes) < 2:
        return list(sizes)
    rows = prod(sizes[:-1], start=np.ones(len(sizes[0])))
    even = (np.mod(sizes[-1], 2) == 0) & (rows > 1)
    return [*sizes[:-1], sizes[-1] + even]
