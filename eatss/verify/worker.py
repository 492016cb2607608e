"""The process that compiles and runs foreign code; it may crash or hang, its parent does not.

It is given a job, and tells of the stage it enters and of the result of each run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product, takewhile
from math import inf, log2
from pathlib import Path
from pkgutil import resolve_name
from random import Random
from typing import TypeAlias

import numpy as np

from eatss.base.diagnostics import EatssError, input_error
from eatss.base.supervisor import Refused, connect
from eatss.program import Entry, Program, load_program
from eatss.program.expression import SizePairs, Sizes
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
    Job,
    Run,
    SizeResult,
    Stage,
    Status,
    must_be_bit_equal,
    sum_of,
)
from eatss.verify.sizes import (
    TESTS_VALUES,
    boundary_sizes,
    estimated_points,
    launched_kernels,
    moved_by_vectors,
    varied_sizes,
)

_SHIFTS = frozenset(("<<", ">>", "<<=", ">>="))

_SECOND_ORDER_STEPS = 1e8
"""Events; a run that takes more is not repeated with blocks and threads in reverse order, nor one
of half as many that need not run."""


def main() -> None:
    """Run the job on standard input."""
    nowhere = os.open(os.devnull, os.O_WRONLY)  # what the original prints is not ours
    job, _, emit = connect(Job, printed_to=nowhere, finite=False)
    try:
        _Worker(job, emit).work()
    except EatssError as error:
        emit(Refused.because(error))


_BUDGET_STEPS, _SEARCH_STEPS, _SURE_STEPS = 6e8, 3e9, 1.5e10
"""Events of generated code, some 4e8 a second, at which no further run begins: while all code ran;
of runs that may come to code that none ran; of those that surely do."""

_SPARE_LIMIT_S = 1.0
"""Processor time of the original in a run that need not be."""

_MOST_TRIED, _MOST_VAIN, _GROWTH = 3, 8, 1.15
"""Runs that surely come to a place; those in a row that perhaps do and show nothing, and how much
larger they become, in points."""

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
            job.compilers,
        )
        self._bit_equal = must_be_bit_equal(self._program, job.device)
        self._roundings = roundings_of(self._program)
        self._counting: dict[Path, CpuMachine] = {}
        self._number = 0
        self._failed = False
        self._done: set[Run] = set()
        self._estimates: dict[SizePairs, float] = {}
        self._steps, self._spent, self._points = 0, 0.0, 0.0
        self._too_long: list[Run] = []
        self._tried: Counter[_Way] = Counter()
        self._vain, self._least = (0, 0), 0.0
        self._known: tuple[int, tuple[_Way, ...]] = (-1, ())
        self._branches = instrumented_text(self._program)[1]
        self._conditions = Conditions(self._program, self._branches)
        self._launched = cache(self._kernels_of)
        self._to = cache(self._runs_to)
        self._varied = cache(partial(varied_sizes, self._program))
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
                counts=self._counted(),
                reachable=() if ended_early else tuple(self._reachable()),
            )
        )

    def _all_runs(self) -> None:
        for run in (*self._job.runs, *self._job.further):
            if self._is_last(run):
                return
        if self._job.searches:
            while not self._failed and (best := self._next()) is not None:
                if self._is_last(best):
                    return
            for run in self._others():
                is_cheap = _SHARE * self._price(run) <= _BUDGET_STEPS - self._spent
                if is_cheap and self._is_last(run):
                    return

    def _next(self) -> Run | None:
        """Return the cheapest run that comes to code that none ran, surely or else perhaps.

        Places behind conditions that none met are not tried by chance. What was tried so has to
        grow until it shows something.
        """
        unrun = self._unrun()
        if len(unrun) < self._vain[0]:
            self._vain, self._least = (len(unrun), 0), 0.0
        sure = [(*way, False) for way in unrun if self._tried[way] < _MOST_TRIED]
        if (run := self._cheapest("surely", sure, _SURE_STEPS)) is not None:
            self._tried.update(way for way in unrun if self._reached(run, *way) == "surely")
            return run
        open_ = [
            (k, way, True)
            for k, way in unrun
            if self._branches[k].kind != "part" and not {*self._branches[k].inside} & {*unrun}
        ]
        if self._vain[1] >= _MOST_VAIN:
            return None
        run = self._cheapest("perhaps", open_, _SEARCH_STEPS, self._least)
        if run is not None:
            self._vain = len(unrun), self._vain[1] + 1
            if self._vain[1] % len(self._shifts[run.entry]) == 0:
                self._least = _GROWTH * self._points_of(run)
        return run

    def _cheapest(
        self,
        certainty: Reached,
        places: Sequence[tuple[int, bool, bool]],
        most_steps: float,
        least_points: float = 0.0,
    ) -> Run | None:
        """Return the cheapest run to one of some places, and mark it as done."""
        found = []
        for number, way, anywhere in places:
            for run in self._to(number, way, anywhere):
                if run in self._done or self._points_of(run) < least_points:
                    continue
                if self._reached(run, number, way) == certainty:
                    found.append(run)
                    break
        best = min(found, key=self._price, default=None)
        if best is None or self._price(best) > most_steps - self._spent:
            return None
        self._done.add(best)
        return best

    def _others(self) -> Iterator[Run]:
        """Yield runs whose sizes no condition asks for, in an order of chance."""
        varied = [*self._varied()]
        Random(0).shuffle(varied)  # noqa: S311 - not for secrets
        entries = range(len(self._program.entries))
        every = product((*boundary_sizes(self._program), *varied), entries)
        for number, (sizes, entry) in enumerate(every):
            yield Run(
                entry=entry,
                sizes=tuple(sizes.items()),
                limit_s=_SPARE_LIMIT_S,
                spare=True,
                signed=number % 2 == 0,
                shifted=self._shifts[entry][number % len(self._shifts[entry])],
            )

    def _runs_to(self, number: int, way: bool, anywhere: bool) -> list[Run]:
        """Return runs at sizes that a place asks for, or ``anywhere``, the cheapest first."""
        more = self._varied() if anywhere else ()
        return sorted(self._runs_at(number, way, more), key=self._cheapest_first)

    def _runs_at(
        self, number: int, way: bool, more: Sequence[Sizes] = (), *, affordable: bool = True
    ) -> Iterator[Run]:
        """Yield runs of each entry at sizes, with arrays that start where a place depends on."""
        every = least_sizes(self._branches, number, way, self._names)
        chosen = [
            sizes
            for least in every
            for sizes in varied_sizes(self._program, least, affordable=affordable)
        ]
        chosen += more
        chain = (number, *(k for k, _ in self._branches[number].inside))
        asks = self._conditions.asks_where_arrays_start(number)
        infinite = any(TESTS_VALUES in self._branches[k].condition for k in chain)
        for entry, shifts in enumerate(self._shifts):
            for shifted, sizes in product(shifts if asks else ((),), chosen):
                yield Run(
                    entry=entry,
                    sizes=tuple(sizes.items()),
                    limit_s=_SPARE_LIMIT_S,
                    spare=True,
                    infinite=infinite,
                    shifted=shifted,
                )

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
            for run in self._runs_at(number, way, affordable=False):
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

    def _cheapest_first(self, run: Run) -> tuple[int, float, bool]:
        """Order runs by their price, about; of those alike, one with more elements is first."""
        points = self._points_of(run)
        elements = sum(value for _, value in run.sizes)
        return round(2 * log2(points)), -elements, bool(run.shifted)

    def _unrun(self) -> list[_Way]:
        """Return the ways to code that none ran."""
        return [(k, way) for k, way in self._untaken() if way in self._branches[k].ways]

    def _is_last(self, run: Run) -> bool:
        """Do a run, tell of it, and tell whether no other has to follow."""
        before = len(self._untaken())
        result = self._run(run)
        self._note_price(run)
        told = self._number < len(self._job.runs) or result.failed
        self._number += 1
        if told or result.status == "ok":
            told = told or len(self._untaken()) < before
            self._emit(Compared(result=result, told=told))
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
        if run.code is not None:
            return
        taken = self._all_steps() - self._steps
        self._steps += taken
        self._spent += taken + self._beside
        if taken:
            self._points += self._points_of(run)

    def _all_steps(self) -> int:
        """Return the events that all libraries have counted together; 0 on a card."""
        return sum(machine.steps for machine in self._counting.values())

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
        if run.code is not None:
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

        The other has fewer blocks, which go on by a grid. It is for runs that have to be, or may
        come to code that none has run. A race that had no effect in either order is reported after
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
            is_aimed = not run.spare or run in self._done
            if not is_aimed and len(self._untaken()) == before:
                break
        if result.status == "ok" and observed is not None:
            return replace(result, status=observed[0], message=observed[1])
        return result

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
