"""The process that compiles and runs foreign code; it may crash or hang, its parent does not.

Reads a job as JSON from standard input; writes one JSON object a line: the stage it enters,
and the result of each run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from math import inf, log2
from pathlib import Path
from pkgutil import resolve_name
from typing import TypeAlias

import numpy as np

from eatss.base.diagnostics import EatssError, input_error
from eatss.base.supervisor import Refused, connect
from eatss.program import Entry, Program, load_program
from eatss.program.expression import SizePairs
from eatss.program.tokens import tokens
from eatss.verify.build import Builder, CompileError
from eatss.verify.compare import (
    Bounds,
    Comparison,
    Pointers,
    bits_equal,
    bounds_by_length,
    bounds_by_running,
    compare,
    count_not_finite,
    rounding_as,
    roundings_of,
    with_perturbed,
)
from eatss.verify.conditions import Conditions, Reached
from eatss.verify.data import FLAVOURS, INFINITE, SIGNED, Buffer, Buffers, make_buffers
from eatss.verify.device import CpuMachine, Launched, Machine, machine_of
from eatss.verify.instrumentation import instrumented_text, least_sizes
from eatss.verify.result import (
    Compared,
    Counts,
    Done,
    Entered,
    Event,
    Further,
    Job,
    Run,
    SizeResult,
    Stage,
    Status,
    must_be_bit_equal,
    sum_of,
)
from eatss.verify.sizes import (
    estimated_points,
    fits,
    launched_kernels,
    moved_by_vectors,
    sizes_from,
)

_SHIFTS = frozenset(("<<", ">>", "<<=", ">>="))

_SECOND_ORDER_STEPS = 1e8
"""Events; a run that takes more is not repeated with blocks and threads in reverse order, nor one
of half as many that need not run."""


def main() -> None:
    """Run the job on standard input."""
    nowhere = os.open(os.devnull, os.O_WRONLY)  # what the original prints is not ours
    job, emit = connect(Job, printed_to=nowhere, finite=False)
    try:
        _Worker(job, emit).work()
    except EatssError as error:
        emit(Refused.because(error))


_BUDGET_STEPS, _SEARCH_STEPS, _AIM_STEPS = 6e8, 2e9, 3e9
"""Events of generated code, some 4e8 a second: for all runs; while there is code that none ran;
while conditions tell which sizes come to it."""

_SMALL_STEPS, _SHORT_STEPS, _AIMED_STEPS = 3e7, 2e8, 8e8
"""The same for one run, of those that are tried first; for one at sizes that conditions ask for."""

_AIMED_LIMIT_S = 1.0
"""Processor time of the original there."""

_MOST_INSISTED, _INSISTED_STEPS, _PATIENCE = 3, 1e10, 5.0
"""Runs at sizes that conditions ask for which are more work, the most steps of one, and how much
longer it may take than others before it counts as one that does not end."""

_MOST_VAIN, _GROWTH, _MOST_TRIED = 5, 1.5, 3
"""Runs in a row that show nothing more; how much larger the next ones are then, in points; runs for
one place."""

_PRICES = 2
"""Prices that count as alike, in each factor of two."""

_SHARE = 3
"""A run that may be left out takes at most this part of what is left."""

_RUN_STEPS, _BOUNDS_STEPS = 2_000_000, 8_000_000
"""What data, the original and comparing take of the same time, and what bounds take."""

MOST_VAGUE = 0.05
"""Share of elements that may be loose or not finite; with more, other data are tried too."""


_Way: TypeAlias = tuple[int, bool]
"""The number of a branch, and what holds there."""


@dataclass(slots=True)
class _Reference:
    """Arguments before and after the original, how long it took, and bounds once they are asked."""

    before: tuple[Buffer, ...]
    after: tuple[Buffer, ...]
    seconds: float
    bounds: Bounds | None = None


class _LeftOutError(Exception):
    """Sizes of our own choice are not for the original; the text says why."""

    def __init__(self, reason: str, *, is_slow: bool = False) -> None:
        super().__init__(reason)
        self.is_slow = is_slow


class _Worker:
    def __init__(self, job: Job, emit: Callable[[Event], None]) -> None:
        self._job = job
        self._emit = emit
        directory = Path(job.directory)
        self._program: Program = load_program(directory)
        self._builder = Builder(
            self._program,
            directory,
            Path(job.work),
            job.device,
            Path(job.kept) if job.kept else None,
            job.compilers,
        )
        self._bit_equal = must_be_bit_equal(self._program, job.device)
        self._roundings = roundings_of(self._program)
        self._counting: dict[Path, CpuMachine] = {}
        self._further = Further()
        self._number = 0
        self._failed = False
        self._estimates: dict[SizePairs, float] = {}
        self._steps, self._spent, self._points = 0, 0.0, 0.0
        self._too_long: list[Run] = []
        self._known: tuple[int, tuple[_Way, ...]] = (-1, ())
        self._branches = instrumented_text(self._program)[1]
        self._conditions = Conditions(self._program, self._branches)
        self._unaffordable: dict[_Way, Run] = {}
        self._launched = cache(self._kernels_of)
        self._sizes_from = cache(self._larger)
        self._shifts: list[tuple[tuple[int, ...], ...]] = [
            ((), *((one,) for one in moved_by_vectors(self._program, entry)))
            for entry in self._program.entries
        ]
        kernels = {kernel.name for kernel in self._program.kernels}
        self._names = frozenset(parameter.name for parameter in self._program.parameters)
        self._in_kernels = [k for k, one in enumerate(self._branches) if one.function in kernels]

    def work(self) -> None:
        """Do all runs and tell the parent of each."""
        if self._job.device == "gpu" and not self._job.machine:
            self._stage("compile", self._job.runs[0])
            start = time.perf_counter()
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(self._compile_ahead, self._job.runs))
            self._builder.compile_time_s = time.perf_counter() - start  # not the sum of threads
        self._all_runs()
        ended_early = self._failed and self._job.first_failure
        self._emit(
            Done(
                compile_time_s=self._builder.compile_time_s,
                further=self._further,
                counts=self._counted(),
                reachable=() if ended_early else tuple(self._reachable()),
            )
        )

    def _all_runs(self) -> None:
        waiting = []
        for number, run in enumerate((*self._job.runs, *self._job.further)):
            if run.spare:
                waiting.append((number, run))
            elif self._is_last(number, run):
                return
        told = len(self._job.runs)
        small = [one for one in waiting if one[0] < told]
        waiting = [one for one in waiting if one[0] >= told]
        if self._aim(len(self._job.runs) + len(self._job.further)):
            return
        if self._search(small, _SMALL_STEPS) or self._search(waiting, _SHORT_STEPS):
            return
        every = sorted((*waiting, *small), key=lambda one: self._points_of(one[1]))
        if self._search(every, _SEARCH_STEPS, _GROWTH):
            return
        for number, run in sorted(every, key=lambda one: (one[0] < told, one[0])):
            is_cheap = _SHARE * self._price(run) <= _BUDGET_STEPS - self._spent
            if is_cheap and self._is_last(number, run):
                return

    def _aim(self, number: int) -> bool:
        """Do runs at sizes that conditions ask for, the cheapest first, while code is unrun.

        Returns:
            Whether no other run has to follow.
        """
        blank = next((run for run in self._job.further if run.spare), None)
        planned: dict[_Way, list[Run]] = {}
        looked: set[tuple[_Way, bool]] = set()
        done: set[Run] = set()
        while blank is not None and not self._failed:
            unrun = self._unrun()
            for way in unrun:
                is_behind = any(before in unrun for before in self._branches[way[0]].inside)
                if not planned.get(way) and (way, is_behind) not in looked:
                    looked.add((way, is_behind))
                    planned[way] = self._aimed(blank, *way, is_behind)
            ready = [way for way in unrun if planned.get(way)]
            if not ready:
                return self._insist(number)
            way = min(ready, key=lambda way: (-len(planned[way]), self._points_of(planned[way][0])))
            others = list(dict.fromkeys(planned[other][0] for other in ready))
            run = self._merged(planned[way].pop(0), way, others)
            if run not in done and self._is_affordable(run, way):
                done.add(run)
                if self._is_last(number, run):
                    return True
        return False

    def _insist(self, number: int) -> bool:
        """Do a few runs that are much work, where nothing less comes to some code."""
        cheapest = sorted(self._unaffordable.items(), key=lambda one: self._price(one[1]))
        for way, run in cheapest[:_MOST_INSISTED]:
            if way in self._unrun() and self._price(run) <= _INSISTED_STEPS:
                if self._is_last(number, replace(run, patience=_PATIENCE)):
                    return True
                self._unaffordable.pop(way, None)
        return False

    def _merged(self, run: Run, way: _Way, others: Sequence[Run]) -> Run:
        """Return a run that comes to where several do, if it is less work than these."""
        for other in others:
            merged = replace(
                run,
                sizes=tuple((n, max(v, dict(other.sizes)[n])) for n, v in run.sizes),
                shifted=tuple(sorted({*run.shifted, *other.shifted})),
            )
            if (
                merged != run
                and other.entry == run.entry
                and self._points_of(merged) < self._points_of(run) + self._points_of(other)
                and self._price(merged) <= self._most_aimed
                and self._reached(merged, *way) == "surely"
                and fits(self._program, dict(merged.sizes))
            ):
                run = merged
        return run

    @property
    def _most_aimed(self) -> float:
        """Steps that a run may take at sizes that conditions ask for."""
        return min(_AIMED_STEPS, _AIM_STEPS - self._spent)

    def _is_affordable(self, run: Run, way: _Way) -> bool:
        """Tell whether a run is little enough work to come to a place; note if it is not."""
        if self._price(run) <= self._most_aimed:
            self._unaffordable.pop(way, None)
            return True
        if self._reached(run, *way) == "surely":
            self._unaffordable.setdefault(way, run)
        return False

    def _aimed(self, blank: Run, number: int, way: bool, is_behind: bool) -> list[Run]:
        """Return runs that come to a place, the cheapest first.

        Those that may come to it are taken where there is no other, sizes matter, and it is not
        behind a condition that has to be met first.
        """
        every = least_sizes(self._branches, number, way, self._names)
        sizes = [one for least in every for one in self._sizes_from(tuple(least.items()))]
        like = replace(blank, signed=False, infinite=False, limit_s=_AIMED_LIMIT_S)
        runs = self._runs_at(number, dict.fromkeys(sizes), like)
        surely: list[Run] = []
        perhaps: list[Run] = []
        for run in sorted(runs, key=self._cheapest_first):
            found = self._reached(run, number, way)
            if found != "never":
                (surely if found == "surely" else perhaps).append(run)
            if len(surely) == _MOST_TRIED:
                break
        return surely or (perhaps[:_MOST_TRIED] if every[-1] and not is_behind else [])

    def _reachable(self) -> Iterator[_Way]:
        """Yield ways to code that none ran, to which conditions say that some sizes come.

        They need not be little work. Where conditions do not tell whether a place is come to, its
        own has to hold at some sizes and to ask for no remainder (which of two ways to copy), and
        no other place of the kernel that asks for the same ran: a loop asks in all of its versions
        which buffer is next, and whether there is another tile.
        """
        untaken = set(self._untaken())
        ran = {
            (self._branches[k].function, self._branches[k].condition, way)
            for k in self._in_kernels
            for way in (False, True)
            if (k, way) not in untaken
        }
        for number, way in self._unrun():
            branch = self._branches[number]
            if branch.kind == "part":
                continue
            tried: list[Run] = []
            found: set[Reached] = set()
            for run in self._runs_of_any_price(number, way):
                tried.append(run)
                found.add(self._reached(run, number, way))
                if "surely" in found:
                    break
            if "surely" in found or (
                "perhaps" in found
                and "%" not in branch.condition
                and (branch.function, branch.condition, way) not in ran
                and any(self._reached(run, number, way, alone=True) == "surely" for run in tried)
            ):
                yield number, way

    def _runs_at(self, number: int, sizes: Iterable[SizePairs], like: Run) -> Iterator[Run]:
        """Yield runs of each entry at sizes, with arrays that start where a place depends on."""
        asks = self._conditions.asks_where_arrays_start(number)
        chosen = tuple(sizes)
        for entry, shifts in enumerate(self._shifts):
            for arrays in shifts if asks else ((),):
                for one in chosen:
                    yield replace(like, entry=entry, sizes=one, shifted=arrays)

    def _runs_of_any_price(self, number: int, way: bool) -> Iterator[Run]:
        """Return runs that may come to a place, however much work and memory they need."""
        sizes = [
            one
            for least in least_sizes(self._branches, number, way, self._names)
            for one in self._sizes_from(tuple(least.items()), affordable=False)
        ]
        return self._runs_at(number, sizes, Run(entry=0, sizes=()))

    def _larger(self, least: SizePairs, *, affordable: bool = True) -> list[SizePairs]:
        found = sizes_from(self._program, dict(least), affordable=affordable)
        return [tuple(sizes.items()) for sizes in found]

    def _cheapest_first(self, run: Run) -> tuple[int, float, bool]:
        """Order runs by their price, about; of those alike, one with more elements is first."""
        points = self._points_of(run)
        elements = sum(value for _, value in run.sizes)
        return round(_PRICES * log2(points)), -elements, bool(run.shifted)

    def _search(
        self, waiting: list[tuple[int, Run]], most_steps: float, growth: float | None = None
    ) -> bool:
        """Do runs while there is code that none ran, and they may come to it.

        Of those that do not, ``growth`` tells how much larger the next has to be; without it, a
        few are enough. What ran is taken out of ``waiting``.

        Returns:
            Whether no other run has to follow.
        """
        vain, least = 0, 0.0
        for number, run in tuple(waiting):
            left = min(most_steps, _SEARCH_STEPS - self._spent)
            if self._failed or self._price(run) > left or self._points_of(run) < least:
                continue
            if not self._may_show_more(run):
                continue
            before = len(self._unrun())
            waiting.remove((number, run))
            if self._is_last(number, run):
                return True
            vain = 0 if len(self._unrun()) < before else vain + 1
            if vain >= _MOST_VAIN and growth is None:
                break
            if vain >= 2 and growth is not None:
                least, vain = growth * self._points_of(run), 0
        return False

    def _unrun(self) -> list[_Way]:
        """Return the ways to code that none ran."""
        return [(k, way) for k, way in self._untaken() if way in self._branches[k].ways]

    def _is_last(self, number: int, run: Run) -> bool:
        """Do a run, tell of it, and tell whether no other has to follow."""
        self._number = number
        before = len(self._untaken())
        result = self._run(run)
        self._note_price(run)
        if number < len(self._job.runs) or result.failed or len(self._untaken()) < before:
            self._emit(Compared(result=result))
        elif result.status == "ok":
            self._further = self._further.plus(result)
        self._failed = self._failed or result.failed
        return self._job.first_failure and result.failed

    def _points_of(self, run: Run) -> float:
        if run.sizes not in self._estimates:
            self._estimates[run.sizes] = estimated_points(self._program, dict(run.sizes))
        return self._estimates[run.sizes]

    @property
    def _beside(self) -> int:
        """Steps that a run takes beside those of generated code."""
        return _RUN_STEPS if self._bit_equal else _RUN_STEPS + _BOUNDS_STEPS

    def _price(self, run: Run) -> float:
        """Return the steps that a run will take, judged by those that ran.

        Where the original took too long, it does so at sizes of which none is smaller, too.
        """
        for one in self._too_long:
            pairs = zip(one.sizes, run.sizes, strict=True)
            if one.entry == run.entry and all(less <= size for (_, less), (_, size) in pairs):
                return inf
        return self._beside + self._points_of(run) * self._steps / max(1.0, self._points)

    def _note_price(self, run: Run) -> None:
        """Learn from a run how long others will take, in steps that all machines count alike."""
        if run.code or run.code_only:
            return
        taken = self._all_steps() - self._steps
        self._steps += taken
        self._spent += taken + self._beside
        if taken:
            self._points += self._points_of(run)

    def _all_steps(self) -> int:
        """Return the events that all libraries have counted together; 0 on a card."""
        return sum(machine.steps for machine in self._counting.values())

    def _may_show_more(self, run: Run) -> bool:
        """Tell whether a run may come to code that none has run."""
        return any(
            self._reached(run, k, way) != "never"
            for k, way in self._unrun()
            if self._branches[k].kind != "part"
        )

    def _reached(self, run: Run, number: int, way: bool, *, alone: bool = False) -> Reached:
        """Tell whether a run takes a way; ``alone``, whatever stands before it."""
        if self._branches[number].function not in self._launched(run.entry, run.sizes):
            return "never"
        arguments = self._program.entries[run.entry].arguments
        shifted = frozenset(arguments[argument].name for argument in run.shifted)
        return self._conditions.reached(number, way, dict(run.sizes), shifted, alone=alone)

    def _kernels_of(self, entry: int, sizes: SizePairs) -> frozenset[str]:
        return launched_kernels(self._program.entries[entry], dict(sizes))

    def _counted(self) -> Counts | None:
        """Return what all libraries have counted together; ``None`` on a card."""
        if not self._counting:
            return None
        return sum_of([machine.counts(len(self._branches)) for machine in self._counting.values()])

    def _untaken(self) -> tuple[_Way, ...]:
        steps = self._all_steps()
        if self._known[0] != steps:
            counts = self._counted()
            self._known = steps, () if counts is None else counts.untaken(self._in_kernels)
        return self._known[1]

    def _compile_ahead(self, run: Run) -> None:
        with suppress(CompileError):
            self._builder.generated(dict(run.sizes))

    def _run(self, run: Run) -> SizeResult:
        entry = self._program.entries[run.entry]
        blank = SizeResult(
            launcher=entry.launcher, sizes=run.sizes, status="ok", data=run.data(entry)
        )
        self._stage("compile", run)
        try:
            machine = self._machine(dict(run.sizes))
        except CompileError as error:
            return replace(blank, status="compile error", message=str(error))
        if run.code or run.code_only:
            return self._code(run, entry, machine, blank)
        best: SizeResult | None = None
        try:
            for reference in self._references(run, entry):
                result = self._both_orders(run, entry, machine, reference, blank)
                if result.status != "ok":
                    return result
                if best is None or _vague(result) < _vague(best):
                    best = result
                if _vague(best) <= MOST_VAGUE * best.compared:
                    break
        except _LeftOutError as reason:
            if reason.is_slow:
                self._too_long.append(run)
            return best or replace(blank, status="left out", message=str(reason))
        assert best is not None
        return best

    def _machine(self, sizes: dict[str, int]) -> Machine:
        """Return what runs the generated program at these sizes."""
        if not self._job.machine:
            path = self._builder.generated(sizes)
            made = machine_of(self._builder.load(path, sizes))
            if isinstance(made, CpuMachine):
                self._counting[path] = made
            return made
        place, *further = self._job.machine
        found: Machine = resolve_name(place)(self._program, sizes, *further)
        return found

    def _both_orders(
        self, run: Run, entry: Entry, machine: Machine, reference: _Reference, blank: SizeResult
    ) -> SizeResult:
        """Run blocks and threads in one order and in the other.

        The other is for runs that have to be, or come to code that none has run, and for strides,
        which only few blocks take. A race that had no effect in either order is reported after
        wrong results of both.
        """
        result = replace(blank, original_time_s=reference.seconds)
        observed: tuple[Status, str] | None = None
        before = len(self._untaken())
        for backward in machine.orders:
            steps = self._all_steps()
            result, seen = self._once(run, entry, machine, reference, result, backward)
            observed = observed or seen
            most = _SECOND_ORDER_STEPS / (2 if run.spare else 1)
            if result.status != "ok" or self._all_steps() - steps > most:
                break
            is_vain = run.spare and len(self._untaken()) == before
            if is_vain and not self._strides_are_unrun():
                break
        if result.status == "ok" and observed is not None:
            return replace(result, status=observed[0], message=observed[1])
        return result

    def _strides_are_unrun(self) -> bool:
        """Tell whether none ran some code that blocks come to when they go on by a grid."""
        return any(
            "gridDim" in self._branches[number].condition
            for k, _ in self._unrun()
            for number in (k, *(number for number, _ in self._branches[k].inside))
        )

    def _code(self, run: Run, entry: Entry, machine: Machine, blank: SizeResult) -> SizeResult:
        """Check that the entry refuses sizes at which an assumption does not hold, or accepts."""
        sizes = dict(run.sizes)
        buffers = make_buffers(entry, dict.fromkeys(sizes, 0), "uniform", 0)
        self._stage("generated", run)
        for buffer in buffers:
            if buffer.argument.role == "parameter":
                buffer.array[...] = sizes[buffer.argument.name]
        dry = {"dry": True} if isinstance(machine, CpuMachine) else {}
        launched = machine.launch(entry, buffers, backward=False, **dry)
        if launched.status != "ok" and not run.code:
            return replace(blank, status=launched.status, message=launched.message)
        if launched.code == run.code:
            return replace(blank, refused=run.code != 0)
        message = f"{entry.launcher} returned {launched.code}"
        if not run.code:
            message += " at sizes that its plan allows"
            return replace(blank, status="launch error", message=message)
        message += f", not {run.code} ({entry.assumptions[-run.code - 1].message})"
        return replace(blank, status="not refused", message=message)

    def _references(self, run: Run, entry: Entry) -> Iterator[_Reference]:
        """Yield runs of the original on several kinds of data; finite ones, if there are any."""
        sizes = dict(run.sizes)
        try:
            library = self._builder.load(self._builder.original(sizes), sizes)
        except CompileError as error:
            raise input_error(
                "EATSS-V011",
                f"the original '{self._program.original.file}' does not compile: {error}",
                hint="check that it and the headers it includes stand where the plan says",
            ) from None
        call = self._builder.call(library, run.entry)
        least: tuple[int, _Reference] | None = None
        signed = run.signed and not _shifts(self._program)  # C shifts by no negative number
        flavours = (SIGNED, *FLAVOURS) if signed else FLAVOURS
        for flavour in (INFINITE,) if run.infinite else flavours:
            self._stage("original", run)
            before = make_buffers(entry, sizes, flavour, self._job.seed, run.shifted, run.endless)
            after = tuple(buffer.copy() for buffer in before)
            start = time.perf_counter()
            if not _call_forked(run, call, after):
                at = ", ".join(f"{name}={value}" for name, value in run.sizes)
                raise input_error(
                    "EATSS-V005",
                    f"function '{entry.function}' ends before its region at {at}, so that calling "
                    "it does not tell what the region does",
                    hint="move the region into a function of its own",
                )
            found = _Reference(before, after, time.perf_counter() - start)
            broken = sum(count_not_finite(buffer.array) for buffer in after)
            if not broken:
                yield found
            if least is None or broken < least[0]:
                least = broken, found
        if least is not None and least[0]:
            yield least[1]

    def _once(
        self,
        run: Run,
        entry: Entry,
        machine: Machine,
        reference: _Reference,
        result: SizeResult,
        backward: bool,
    ) -> tuple[SizeResult, tuple[Status, str] | None]:
        before, expected = reference.before, reference.after
        actual = tuple(buffer.copy() for buffer in before)
        self._stage("generated", run)
        start = time.perf_counter()
        launched = machine.launch(entry, actual, backward=backward)
        result = replace(result, generated_time_s=time.perf_counter() - start)
        failed = _failure(entry, launched, actual, result)
        if failed is not None:
            return failed, None
        bounds: Bounds = [None] * len(before)
        if not self._bit_equal and not bits_equal(expected, actual):
            if reference.bounds is None:
                reference.bounds = self._bounds(run, before, expected)
            bounds = reference.bounds
        found: Comparison = compare(expected, actual, bounds, alike=run.infinite)
        result = replace(
            result,
            worst_error=max(result.worst_error, found.worst_error),
            bound=found.bound if found.worst_error >= result.worst_error else result.bound,
            compared=found.compared,
            changed=sum(_changed(*pair) for pair in zip(before, expected, strict=True)),
            not_finite=found.not_finite,
            loose=max(result.loose, found.loose),
            difference=found.difference,
        )
        if found.difference is None:
            return result, launched.observed
        order = " with blocks and threads in reverse order" if backward else ""
        at = "".join(f"[{index}]" for index in found.difference.indices)
        message = (
            f"{found.difference.array}{at} is {found.difference.actual}, "
            f"the original gives {found.difference.expected}{order}"
        )
        return replace(result, status="wrong result", message=message), None

    def _bounds(self, run: Run, before: Buffers, expected: Buffers) -> Bounds:
        sizes = dict(run.sizes)
        self._stage("compile", run)
        try:
            library = self._builder.load(self._builder.numbers(sizes), sizes)
        except CompileError:
            original = self._builder.call(
                self._builder.load(self._builder.original(sizes), sizes), run.entry
            )
            self._stage("bounds", run)
            return with_perturbed(
                bounds_by_length(expected, sizes, self._roundings),
                before,
                expected,
                sizes,
                lambda changed: _call_forked(run, original, changed),
                self._roundings,
            )
        call = self._builder.call(library, run.entry)
        self._stage("bounds", run)
        rounded = rounding_as(library, call, self._roundings) if self._roundings else None
        return bounds_by_running(before, call, rounded)

    def _stage(self, stage: Stage, run: Run) -> None:
        self._emit(Entered(stage=stage, run=run, number=self._number))


def _failure(
    entry: Entry, launched: Launched, actual: Buffers, result: SizeResult
) -> SizeResult | None:
    """Return what went wrong apart from wrong values, or ``None``."""
    if launched.status != "ok":
        return replace(result, status=launched.status, message=launched.message)
    if launched.code < 0:
        said = entry.assumptions[-launched.code - 1].message
        message = f"{entry.launcher} refused sizes that its plan allows: {said}"
        return replace(result, status="launch error", message=message)
    for buffer in actual:
        stray = buffer.first_stray_write()
        if stray is not None:
            side = "after the end" if stray >= 0 else "before the start"
            place = stray - buffer.array.nbytes if stray >= 0 else -stray
            message = f"memory {place} bytes {side} of '{buffer.argument.name}' was written"
            return replace(result, status="out of bounds", message=message)
    return None


_NOT_REACHED = 113
"""Exit status of a process in which the original ended before its region."""


def _call_forked(run: Run, call: Callable[[Pointers], int], buffers: Buffers) -> bool:
    """Call the original in a process of its own, which has a limit and may crash.

    Returns:
        Whether it reached its region.

    Raises:
        _LeftOutError: sizes that nobody asked for take too long or have no meaning in C.
    """
    child = os.fork()
    if child == 0:
        if run.limit_s is not None:
            signal.setitimer(signal.ITIMER_PROF, run.limit_s)
        os._exit(0 if call(_pointers(buffers)) else _NOT_REACHED)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == _NOT_REACHED:
        return False
    if run.limit_s is not None:
        _check_meaning(run, ended, buffers)
    if ended < 0:
        os.kill(os.getpid(), -ended)  # the parent tells of it
    if ended > 0:
        os._exit(ended)
    return True


def _check_meaning(run: Run, ended: int, buffers: Buffers) -> None:
    """Leave sizes out that nobody asked for, where the original has no limit or no meaning."""
    if ended == -signal.SIGPROF:
        reason = f"the original takes longer than {run.limit_s:g} s there"
        raise _LeftOutError(reason, is_slow=True)
    for buffer in buffers:
        if buffer.first_stray_write() is not None:
            raise _LeftOutError(f"the original writes beside '{buffer.argument.name}' there")
    if ended and any(value <= 0 for _, value in run.sizes):
        raise _LeftOutError("the original has no meaning there: it crashes")


def _changed(before: Buffer, after: Buffer) -> int:
    """Return how many elements the original has changed."""
    left, right = np.atleast_1d(before.array), np.atleast_1d(after.array)
    bits = f"u{left.itemsize}"
    return int(np.count_nonzero(left.view(bits) != right.view(bits)))


def _vague(result: SizeResult) -> int:
    """Return how many elements the comparison says little of."""
    return result.loose + result.not_finite


def _pointers(buffers: Buffers) -> Pointers:
    return (ctypes.c_void_p * len(buffers))(*(buffer.address for buffer in buffers))


def _shifts(program: Program) -> bool:
    """Tell whether the kernels or the launchers shift anything."""
    texts = (token.text for token in tokens(program.text))
    return any(text in _SHIFTS for text in takewhile("#ifdef EATSS_MAIN".__ne__, texts))


if __name__ == "__main__":
    main()
