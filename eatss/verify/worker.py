"""The process that compiles and runs foreign code; it may crash or hang, its parent does not.

It is given a job, and tells of the stage it enters and of the result of each run.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from pkgutil import resolve_name

import numpy as np

from eatss.base.diagnostics import EatssError, input_error
from eatss.base.supervisor import connect
from eatss.base.text import equations
from eatss.program import Entry, Program, load_program
from eatss.program.expression import OwnSizes
from eatss.program.tokens import tokens
from eatss.verify.build import Builder, CompileError
from eatss.verify.compare import (
    Bounds,
    Pointers,
    bits_equal,
    bounds_by_perturbing,
    bounds_by_running,
    compare,
    count_not_finite,
    roundings_of,
)
from eatss.verify.data import (
    EXTREME,
    FLAVOURS,
    INFINITE,
    SIGNED,
    Buffer,
    Buffers,
    Flavour,
    make_buffers,
)
from eatss.verify.device import CpuMachine, Launched, Machine, machine_of
from eatss.verify.result import (
    Compared,
    Done,
    Entered,
    Event,
    Job,
    Run,
    SizeResult,
    Stage,
    Status,
    must_be_bit_equal,
)
from eatss.verify.search import Search
from eatss.verify.sizes import expected_code

_SHIFTS = frozenset(("<<", ">>", "<<=", ">>="))

_SECOND_ORDER_STEPS = 1e8
"""Events; a run that takes more is not repeated with blocks and threads in reverse order, nor one
of half as many that need not run."""


def main() -> None:
    """Run the job on standard input."""
    nowhere = os.open(os.devnull, os.O_WRONLY)  # what the original prints is not ours
    os.dup2(nowhere, 1)
    job, _, emit = connect(Job)
    try:
        _Worker(job, emit).work()
    except EatssError as error:
        emit(error)


_RUN_STEPS, _BOUNDS_STEPS = 2_000_000, 8_000_000
"""What data, the original and comparing take of the same time, and what bounds take."""

MOST_VAGUE = 0.05
"""Share of elements that may be loose or not finite; with more, other data are tried too."""


@dataclass(slots=True)
class _Reference:
    """Arguments before and after the original, and bounds once they are asked."""

    before: tuple[Buffer, ...]
    after: tuple[Buffer, ...]
    bounds: Bounds | None = None


class _LeftOutError(Exception):
    """Sizes of our own choice are not for the original; the text says why."""

    def __init__(self, reason: str, *, is_slow: bool = False) -> None:
        super().__init__(reason)
        self.is_slow = is_slow


class _FailedError(Exception):
    """The generated program does something wrong; ``result`` is what comparing found."""

    def __init__(self, status: Status, message: str, result: SizeResult | None = None) -> None:
        super().__init__(message)
        self.status, self.result = status, result


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
        self._search = Search(
            self._program, _RUN_STEPS if self._bit_equal else _RUN_STEPS + _BOUNDS_STEPS
        )
        self._number = 0
        self._failed = False

    def work(self) -> None:
        """Do all runs and tell the parent of each."""
        if self._job.device == "gpu" and not self._job.machine:
            self._stage("compile", self._job.runs[0])
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(self._compile_ahead, self._job.runs))
        ended_early = any(self._do(run, aimed) for run, aimed in self._runs())
        counted = sum(one.kind != "part" for one in self._search.branches)
        self._emit(
            Done(
                idle=self._search.idle(),
                branches=counted if self._search.machines else None,
                untaken=self._search.untaken_branches(ended_early=ended_early),
            )
        )

    def _runs(self) -> Iterator[tuple[Run, bool]]:
        """Yield what to run, and whether in both orders of blocks whatever comes of the first."""
        for run in (*self._job.runs, *self._job.further):
            yield run, True
        if self._job.searches:
            aimed = self._search.aimed()
            while not self._failed and (best := next(aimed, None)) is not None:
                yield best, True
            for run in self._search.others():
                yield run, False

    def _do(self, run: Run, aimed: bool) -> bool:
        """Do a run and tell of it; return whether it is the last one."""
        before = len(self._search.untaken())
        result = self._run(run, aimed)
        self._search.note(run)
        told = self._number < len(self._job.runs) or result.failed
        self._number += 1
        if told or result.status == "ok":
            told = told or len(self._search.untaken()) < before
            self._emit(Compared(result=result, told=told))
        self._failed |= result.failed
        return result.status == "compile error" or (result.failed and self._job.first_failure)

    def _compile_ahead(self, run: Run) -> None:
        with suppress(CompileError):
            self._builder.generated(dict(run.sizes))

    def _run(self, run: Run, aimed: bool) -> SizeResult:
        entry = self._program.entries[run.entry]
        blank = SizeResult(
            launcher=entry.launcher, sizes=run.sizes, status="ok", data=run.data(entry)
        )
        best: SizeResult | None = None
        self._stage("compile", run)
        try:
            machine = self._machine(dict(run.sizes))
            code = expected_code(entry, dict(run.sizes))
            if run.probe or code:
                return self._code(run, entry, machine, blank, code)
            for reference in self._references(run, entry):
                result = self._both_orders(run, aimed, entry, machine, reference, blank)
                if best is None or _vague(result) < _vague(best):
                    best = result
                if _vague(best) <= MOST_VAGUE * best.compared:
                    break
        except CompileError as error:
            return replace(blank, status="compile error", message=str(error))
        except _FailedError as failed:
            return replace(failed.result or blank, status=failed.status, message=str(failed))
        except _LeftOutError as reason:
            if reason.is_slow:
                self._search.too_long.append(run)
            return best or replace(blank, status="left out", message=str(reason))
        assert best is not None
        return best

    def _machine(self, sizes: OwnSizes) -> Machine:
        """Return what runs the generated program at these sizes."""
        if not self._job.machine:
            path = self._builder.generated(sizes)
            made = machine_of(self._builder.load(path, sizes))
            if isinstance(made, CpuMachine):
                self._search.machines[path] = made
            return made
        place, *further = self._job.machine
        found: Machine = resolve_name(place)(self._program, sizes, *further)
        return found

    def _both_orders(
        self,
        run: Run,
        aimed: bool,
        entry: Entry,
        machine: Machine,
        reference: _Reference,
        result: SizeResult,
    ) -> SizeResult:
        """Run blocks and threads in one order and in the other.

        The other has fewer blocks, which go on by a grid. It is for runs that have to be, or may
        come to code that none has run. A race that had no effect in either order is reported after
        wrong results of both.
        """
        observed: _FailedError | None = None
        before = len(self._search.untaken())
        for backward in machine.orders:
            steps = self._search.steps()
            result, seen = self._once(run, entry, machine, reference, result, backward)
            observed = observed or seen
            most = _SECOND_ORDER_STEPS / (1 if run.has_to_be else 2)
            if self._search.steps() - steps > most:
                break
            if not aimed and len(self._search.untaken()) == before:
                break
        if observed is not None:
            raise observed
        return result

    def _code(
        self, run: Run, entry: Entry, machine: Machine, blank: SizeResult, code: int
    ) -> SizeResult:
        """Check that the entry refuses sizes at which an assumption does not hold, or accepts."""
        buffers = make_buffers(entry, dict.fromkeys(dict(run.sizes), 0), "uniform", 0)
        self._stage("generated", run)
        for buffer in buffers:
            if buffer.argument.role == "parameter":
                buffer.array[...] = dict(run.sizes)[buffer.argument.name]
        dry = {"dry": True} if isinstance(machine, CpuMachine) else {}
        launched = machine.launch(entry, buffers, backward=False, **dry)
        if not code:
            _check(entry, launched, buffers)
        elif launched.code != code:
            said = entry.assumptions[-code - 1].message
            message = f"{entry.launcher} returned {launched.code}, not {code} ({said})"
            raise _FailedError("not refused", message)
        return replace(blank, refused=code != 0)

    def _references(self, run: Run, entry: Entry) -> Iterator[_Reference]:
        """Yield runs of the original on several kinds of data; finite ones, if there are any."""
        sizes = dict(run.sizes)
        try:
            library = self._builder.load(self._builder.original(sizes), sizes)
        except CompileError as error:
            raise input_error(
                "EATSS-V005",
                f"the original '{self._program.original.file}' does not compile: {error}",
                hint="check that it and the headers it includes stand where the plan says",
            ) from None
        call = self._builder.call(library, run.entry)
        least: tuple[int, _Reference] | None = None
        flavours: Sequence[Flavour] = (run.flavour,)
        if run.flavour in (FLAVOURS[0], SIGNED):
            signed = run.flavour == SIGNED and not _shifts(self._program)
            flavours = (SIGNED, *FLAVOURS) if signed else FLAVOURS  # C shifts by no negative number
        elif not self._bit_equal:  # sums in another order may overflow where C's do not
            flavours = (INFINITE,)
        for flavour in flavours:
            self._stage("original", run)
            before = make_buffers(entry, sizes, flavour, self._job.seed, run.shifted, run.endless)
            after = tuple(buffer.copy() for buffer in before)
            if not _call_forked(run, call, after):
                at = equations(run.sizes)
                raise input_error(
                    "EATSS-V005",
                    f"function '{entry.function}' ends before its region at {at}, so that calling "
                    "it does not tell what the region does",
                    hint="move the region into a function of its own",
                )
            found = _Reference(before, after)
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
    ) -> tuple[SizeResult, _FailedError | None]:
        """Run the generated program; return what comparing finds, and what had no effect."""
        before, expected = reference.before, reference.after
        actual = tuple(buffer.copy() for buffer in before)
        self._stage("generated", run)
        launched = machine.launch(entry, actual, backward=backward)
        _check(entry, launched, actual)
        bounds: Bounds = [None] * len(before)
        if not self._bit_equal and not bits_equal(expected, actual):
            if reference.bounds is None:
                reference.bounds = self._bounds(run, before, expected)
            bounds = reference.bounds
        alike = run.flavour in (INFINITE, EXTREME) and not (
            run.flavour == EXTREME and self._bit_equal
        )
        changed = sum(_changed(*pair) for pair in zip(before, expected, strict=True))
        result = compare(expected, actual, bounds, replace(result, changed=changed), alike=alike)
        if (first := result.difference) is not None:
            order = " with blocks and threads in reverse order" if backward else ""
            at = "".join(f"[{index}]" for index in first.indices)
            message = f"{first.array}{at} is {first.actual}, the original gives {first.expected}"
            raise _FailedError("wrong result", message + order, result)
        seen = launched.observed
        return result, None if seen is None else _FailedError(*seen, result)

    def _bounds(self, run: Run, before: Buffers, expected: Buffers) -> Bounds:
        sizes = dict(run.sizes)
        self._stage("compile", run)
        try:
            library = self._builder.load(self._builder.numbers(sizes), sizes)
        except CompileError:
            original = self._builder.load(self._builder.original(sizes), sizes)
            call = self._builder.call(original, run.entry)
            self._stage("bounds", run)
            return bounds_by_perturbing(
                before,
                expected,
                sizes,
                lambda changed: _call_forked(run, call, changed),
                self._roundings,
            )
        self._stage("bounds", run)
        call = self._builder.call(library, run.entry)
        return bounds_by_running(before, library, call, self._roundings)

    def _stage(self, stage: Stage, run: Run) -> None:
        self._emit(Entered(stage=stage, run=run, number=self._number))


def _check(entry: Entry, launched: Launched, actual: Buffers) -> None:
    """Raise if something went wrong apart from wrong values."""
    if launched.status != "ok":
        raise _FailedError(launched.status, launched.message)
    if launched.code < 0:
        said = entry.assumptions[-launched.code - 1].message
        message = f"{entry.launcher} refused sizes that its plan allows: {said}"
        raise _FailedError("launch error", message)
    for buffer in actual:
        stray = buffer.first_stray_write()
        if stray is not None:
            side = "after the end" if stray >= 0 else "before the start"
            place = stray - buffer.array.nbytes if stray >= 0 else -stray
            message = f"memory {place} bytes {side} of '{buffer.argument.name}' was written"
            raise _FailedError("out of bounds", message)


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
    left, right = before.elements, after.elements
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
