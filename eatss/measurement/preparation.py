"""A variant on its way through the trials, from loading it to its first window."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from os import cpu_count
from pathlib import Path
from typing import Literal

from eatss.frozen import frozen
from eatss.measurement.card import (
    Card,
    CompileError,
    LaunchError,
    NotComparedError,
    TellsResources,
    Workload,
    WrongResultError,
)
from eatss.measurement.job import (
    Emit,
    Entered,
    Loaded,
    Prepared,
    Remarked,
    RestoringMeasured,
    StageName,
    Task,
    WarmedUp,
)
from eatss.measurement.launches import complete_sizes
from eatss.measurement.metering import Metering
from eatss.measurement.meters.meter import Trace
from eatss.measurement.meters.reading import steady
from eatss.measurement.options import MeasureOptions
from eatss.measurement.windows import Pace, least_window_s, restore, restoring_energy_j
from eatss.program import Program, load_program
from eatss.program.expression import SizePairs

COMPILE_LIMIT_S = 900.0
"""The slowest compiler of the largest text takes minutes."""

CHECK_RUNS = 10
"""Checks run the program and the original a few times each."""

MOST_CHECKS = 16
"""Variants that are checked at once."""

FILL_LIMIT_S = 30.0
"""All memory of a card is filled with random numbers in less."""

RESET_RUNS = 5

PACE_S = 0.1
"""Runs are timed together for at most this long to learn how many fill a window."""

SHORTEST_PACE_S = 0.02

PACE_SHARE = 1 / 8
"""Of the shortest window: what a quick pass may spend on learning how long its window is."""

DRIFT_FACTOR = 1.2
"""Repeating is tried for this many times the runs that a window is expected to hold."""

RESTORING_WINDOWS = 3

LONGEST_WARM_UP_S = 10.0
WARM_UP_PIECE_S = 0.5
STEADY_S = 1.0
STEADY_WITHIN = 0.02
"""Power is steady where the means of the halves of ``STEADY_S`` differ by less than this."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """A variant that is loaded and right, and what was measured of it so far.

    ``energies_j`` are of a run in each window, ``restoring_j`` of a restoring, which takes
    ``restoring_s``. ``tried_runs`` is how many runs in a row were seen not to drift. ``program`` is
    the same for all variants of one program, which take turns.
    """

    task: Task
    program: tuple[str, ...]
    workload: Workload
    restoring: Literal["none", "between windows", "inside windows"]
    pace: Pace
    tried_runs: int
    times_s: list[float]
    energies_j: list[float | None]
    spent_s: float
    restoring_j: list[float] = field(default_factory=list)
    restoring_s: float = 0.0
    no_restoring: str = ""
    warm: bool = False

    @property
    def restores_inside(self) -> bool:
        """Whether inputs are restored before every run."""
        return self.restoring == "inside windows"


@frozen
class LoadedVariant:
    """A variant that is loaded, and not looked at."""

    task: Task
    program: Program
    directory: Path
    workload: Workload

    sizes: SizePairs

    @property
    def same_results(self) -> tuple[str, ...]:
        """What variants with the same results have in common."""
        original = self.program.original
        source = (self.directory / original.file).read_bytes()
        sizes = (f"{name}={value}" for name, value in sorted(self.sizes))
        made = (self.program.name, self.program.dtype, sha256(source).hexdigest())
        return (*made, *sizes, *original.defines)


@dataclass(slots=True)
class Known:
    """What is known of programs, by what variants with the same results have in common.

    ``references`` are the results of the first variant that was right, with its label;
    ``repeatable`` is how many runs in a row do not drift.
    """

    references: dict[tuple[str, ...], tuple[str, object]] = field(default_factory=dict)
    repeatable: dict[tuple[str, ...], int] = field(default_factory=dict)


class Preparation:
    """Loads variants and makes sure that they are right.

    Args:
        card: which loads them.
        options: how they are measured.
        emit: is told what happens.
        known: what earlier variants on this card left.
    """

    def __init__(self, card: Card, options: MeasureOptions, emit: Emit, known: Known) -> None:
        self._card = card
        self._options = options
        self._emit = emit
        self._references = known.references
        self._repeatable = known.repeatable
        self._checks: dict[int, Future[str]] = {}

    def load(self, task: Task) -> LoadedVariant:
        """Return a variant, compiled and on the card.

        Raises:
            CompileError: it does not compile.
            LaunchError: it cannot be launched.
        """
        directory = Path(task.directory)
        program = load_program(directory)
        sizes = complete_sizes(program, self._options.sizes)
        self._enter(task, "compile", COMPILE_LIMIT_S)
        workload = self._card.load(program, directory, sizes, self._options.seed)
        if isinstance(workload, TellsResources):
            self._emit(Loaded(task=task.index, resources=workload.resources()))
        return LoadedVariant(
            task=task,
            program=program,
            directory=directory,
            workload=workload,
            sizes=tuple(sizes.items()),
        )

    @contextmanager
    def checking(self, variants: Sequence[LoadedVariant]) -> Iterator[None]:
        """Check variants against the original ahead of their turn, several at once.

        Only those whose checks are processes of their own: one that crashes here would be taken
        for the variant whose turn it is.
        """
        with ThreadPoolExecutor(min(MOST_CHECKS, cpu_count() or 1)) as pool:
            try:
                for one in variants:
                    if self._needs_check(one.task) and one.workload.checks_apart:
                        future = pool.submit(one.workload.check, self._options.timeout_s)
                        self._checks[one.task.index] = future
                yield
            finally:
                pool.shutdown(cancel_futures=True)

    def examine(self, variant: LoadedVariant) -> Trial:
        """Return a loaded variant ready to be measured.

        Raises:
            CompileError: it does not compile at a reduced size.
            LaunchError: it cannot be launched.
            WrongResultError: it computes something else than the original or another variant.
        """
        try:
            return self._examined(variant)
        except (CompileError, LaunchError, WrongResultError) as error:
            if not (isinstance(error, LaunchError) and error.lost):
                variant.workload.close()
            raise

    def _needs_check(self, task: Task) -> bool:
        return self._options.check and not (task.checked or task.unchecked)

    def _examined(self, variant: LoadedVariant) -> Trial:
        task, workload = variant.task, variant.workload
        checked, unchecked = list(task.checked), task.unchecked
        if self._needs_check(task):
            limit_s = self._options.timeout_s
            self._enter(task, "check", COMPILE_LIMIT_S + CHECK_RUNS * limit_s)
            ahead = self._checks.get(task.index)
            try:
                checked.append(workload.check(limit_s) if ahead is None else ahead.result())
            except NotComparedError as error:
                unchecked = str(error)
        first_s = self._first_run(task, workload)
        if self._options.check:
            self._compare(variant, checked)
        pace = self._pace(task, workload, first_s)
        restoring, tried_runs = self._restoring(variant, pace)
        self._emit(
            Prepared(
                task=task.index,
                compiler=workload.compiler,
                launched_by=workload.launched_by,
                restoring=restoring,
                checked=tuple(checked),
                unchecked=unchecked,
                data=workload.flavour,
            )
        )
        return Trial(
            task=task,
            program=variant.same_results,
            workload=workload,
            restoring=restoring,
            pace=pace,
            tried_runs=tried_runs,
            times_s=list(task.times_s),
            energies_j=list(task.energies_j),
            spent_s=task.spent_s,
        )

    def _first_run(self, task: Task, workload: Workload) -> float:
        """Run once from fresh data and return the seconds it took.

        Making data for the first time may take a few runs of its own, to choose data that stay
        finite and to capture graphs.
        """
        self._enter(task, "first run", FILL_LIMIT_S + RESET_RUNS * self._options.timeout_s)
        workload.reset()
        self._card.wait()
        self._enter(task, "first run", self._options.timeout_s)
        begin_s = self._card.now()
        workload.timed(1)
        return self._card.now() - begin_s

    def _compare(self, variant: LoadedVariant, checked: list[str]) -> None:
        """Compare the results of the first run with those of the first variant that was right."""
        task, workload = variant.task, variant.workload
        self._enter(task, "compare", COMPILE_LIMIT_S)
        said = workload.drifted()
        if said:
            self._emit(Remarked(task=task.index, note=f"after one run from fresh data: {said}"))
        key = variant.same_results
        if key not in self._references:
            self._references[key] = (task.label, workload.keep())
            return
        label, reference = self._references[key]
        words = f"the result of '{label}' at full size"
        difference = workload.difference(reference)
        if not difference.equal:
            said = workload.magnified(difference)
            if not said:
                raise WrongResultError(
                    f"at full size the result differs from that of '{label}': {difference.message}"
                )
            words += f" ({said})"
        if words not in checked:
            checked.append(words)

    def _pace(self, task: Task, workload: Workload, first_s: float) -> Pace:
        """Learn how long a run takes when many run in a row."""
        count, took_s = 1, max(first_s, 1e-7)
        least_s = pace_s(self._options)
        while took_s < least_s:
            self._enter(task, "try repeating", self._options.timeout_s)
            count = min(16 * count, math.ceil(1.2 * least_s * count / took_s))
            begin_s = self._card.now()
            workload.timed(count)
            took_s = max(self._card.now() - begin_s, 1e-7)
        return Pace(
            run_s=took_s / count,
            window_s=self._options.least_window_s * (1 + self._options.spare),
            settle_s=self._options.settle_s,
        )

    def _restoring(
        self, variant: LoadedVariant, pace: Pace
    ) -> tuple[Literal["none", "between windows", "inside windows"], int]:
        """Decide how inputs are restored; also return how many runs in a row do not drift.

        What one variant of a program was seen to bear, the others bear too: they compute the same.
        """
        task, workload = variant.task, variant.workload
        if not workload.overwrites_inputs:
            return "none", 0
        runs = math.ceil(DRIFT_FACTOR * (pace.runs + pace.settling_runs))
        known = self._repeatable.get(variant.same_results, 0)
        if runs <= known:
            return "between windows", known
        if self._options.restoring == "between windows":
            self._emit(Remarked(task=task.index, note="whether repeated runs drift was not tried"))
            return "between windows", 0
        self._enter(task, "try repeating", run_limit_s(self._options, runs * pace.run_s))
        workload.reset()
        workload.timed(runs)
        said = workload.drifted()
        if not said:
            self._repeatable[variant.same_results] = runs
            return "between windows", runs
        self._emit(
            Remarked(
                task=task.index,
                note=f"inputs are restored before every run, since {runs} in a row drift: {said}",
            )
        )
        return "inside windows", 0

    def _enter(self, task: Task, stage: StageName, limit_s: float) -> None:
        self._emit(Entered(task=task.index, stage=stage, limit_s=limit_s))


class WarmUp:
    """Brings a card to the power of a load, and measures what restoring takes."""

    def __init__(self, card: Card, metering: Metering, options: MeasureOptions, emit: Emit) -> None:
        self._card = card
        self._metering = metering
        self._options = options
        self._emit = emit

    def warm(self, trial: Trial) -> None:
        """Run the load until power is steady, then set how long its windows last.

        Raises:
            LaunchError: the card refused or a kernel failed.
        """
        index = trial.task.index
        limit_s = run_limit_s(self._options, LONGEST_WARM_UP_S + self._options.warm_up_s)
        self._emit(Entered(task=index, stage="warm-up", limit_s=limit_s))
        trial.workload.reset()
        self._card.wait()
        loaded_s, trace = self._load(trial) if self._options.warm_up_s else (0.0, None)
        self._emit(WarmedUp(task=index, warm_up_s=loaded_s))
        if trace is not None and not _steady(trace):
            note = f"power had not settled after {loaded_s:.1f} s of warm-up"
            self._emit(Remarked(task=index, note=note))
        if trial.restores_inside:
            self._measure_restoring(trial)
        trial.warm = True

    def _load(self, trial: Trial) -> tuple[float, Trace | None]:
        options = self._options
        loaded_s, piece_s = 0.0, max(options.warm_up_s, WARM_UP_PIECE_S)
        longest_s = max(LONGEST_WARM_UP_S, options.warm_up_s)
        trace: Trace | None = None
        while True:
            count = max(1, math.ceil(piece_s / trial.pace.run_s))
            with self._metering.recording() as recording:
                begin_s = self._card.now()
                trial.workload.timed(count, restoring=trial.restores_inside)
                took_s = self._card.now() - begin_s
            trial.pace = replace(trial.pace, run_s=took_s / count)
            loaded_s += took_s
            period_s = self._metering.period_s(recording)
            if period_s is not None:
                window_s = max(least_window_s(options, period_s), trial.pace.window_s)
                trial.pace = replace(trial.pace, window_s=window_s)
            trace = _joined(trace, self._metering.primary_trace(recording))
            settled = trace is None or _steady(trace)
            if loaded_s >= longest_s or (loaded_s >= options.warm_up_s and settled):
                return loaded_s, trace
            piece_s = WARM_UP_PIECE_S

    def _measure_restoring(self, trial: Trial) -> None:
        index, workload = trial.task.index, trial.workload
        limit_s = run_limit_s(self._options, RESTORING_WINDOWS * 2 * trial.pace.window_s)
        self._emit(Entered(task=index, stage="restoring", limit_s=limit_s))
        count, took_s = 1, max(restore(self._card, workload, 1), 1e-7)
        while took_s < PACE_S:
            count = min(16 * count, math.ceil(1.2 * PACE_S * count / took_s))
            took_s = max(restore(self._card, workload, count), 1e-7)
        pace = Pace(run_s=took_s / count, window_s=trial.pace.window_s)
        trial.restoring_s = pace.run_s
        for _ in range(RESTORING_WINDOWS):
            found = restoring_energy_j(self._card, self._metering, workload, pace)
            if isinstance(found, str):
                trial.no_restoring = f"what restoring the inputs takes is not known: {found}"
                trial.restoring_j.clear()
                return
            trial.restoring_j.append(found)
        self._emit(RestoringMeasured(task=index, energies_j=tuple(trial.restoring_j)))


def pace_s(options: MeasureOptions) -> float:
    """Return how long runs are timed together, at least, to learn how many fill a window."""
    return min(PACE_S, max(SHORTEST_PACE_S, PACE_SHARE * options.least_window_s))


def run_limit_s(options: MeasureOptions, expected_s: float) -> float:
    """Return when something expected to take ``expected_s`` seconds is taken to hang."""
    return options.timeout_s + 3 * expected_s


def _steady(trace: Trace) -> bool:
    return steady(trace, last_s=STEADY_S, within=STEADY_WITHIN)


def _joined(before: Trace | None, after: Trace | None) -> Trace | None:
    """Return two traces of one meter, recorded one after the other, as one."""
    if before is None or after is None:
        return after
    return replace(after, samples=before.samples + after.samples)
