"""The trials of a job: every variant prepared, then windows by turns until all have converged.

A variant is compiled and loaded, compared with the original and with the first variant that was
right, and repeated until it is known how many runs fill a window and whether many in a row drift.

Variants take one window each in every round, in reverse order in every other round, so that drift
of the card hits all alike; the n-th windows of all variants are of one round. A variant has
converged when it has enough windows and both its intervals are narrow. It stays in the turn until
all variants of its program have, so that a ratio rests on rounds that both took part in; it leaves
alone only where it failed or its budget is spent, whose seconds are those of its warm-up and
windows. A budget that is too small still buys the two windows that an interval needs.

The card's idle power is read before anything else, while it is cold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from eatss.base.diagnostics import InputError, input_error
from eatss.base.text import Texts
from eatss.measurement.arguments import Kept
from eatss.measurement.assemble import energy_estimate, mean_estimate, source_hash_of
from eatss.measurement.card import NotComparedError, VariantError, WrongResultError
from eatss.measurement.job import (
    FOR_AN_INTERVAL,
    CardLost,
    CardOpened,
    Emit,
    Entered,
    IdleRead,
    Job,
    Result,
    StageName,
    Task,
)
from eatss.measurement.measurement import Restoring
from eatss.measurement.metering import (
    GAP_LIMIT,
    SETTLE_S,
    Metering,
    Pace,
    Taken,
    least_window_s,
    longer,
    take_window,
)
from eatss.measurement.meters.meter import MeterError, Trace, steady, update_period_s
from eatss.measurement.options import BenchKeywords, MeasureOptions
from eatss.program import load_program
from eatss.verify.sizes import complete_sizes

if TYPE_CHECKING:
    from eatss.measurement.cupy_card import CupyCard
    from eatss.measurement.workload import CupyWorkload

IDLE_LIMIT_S = 60.0
IDLE_S = 2.5

ATTEMPTS = 3
"""A window that is too short is taken again, this often in all."""

COMPILE_LIMIT_S = 900.0
"""The slowest compiler of the largest text takes minutes."""

CHECK_RUNS = 10
"""Checks run the program and the original a few times each."""

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

_Found = TypeVar("_Found")


@dataclass(slots=True)
class Known:
    """What is known of programs, by what variants with the same results have in common.

    ``references`` are the results of the first variant that was right, with its label;
    ``repeatable`` is how many runs in a row do not drift.
    """

    references: dict[Texts, tuple[str, Kept]] = field(default_factory=dict)
    repeatable: dict[Texts, int] = field(default_factory=dict)


def open_card(path: str, options: BenchKeywords) -> CupyCard:
    """Return a new card of the class at an import path, ``package.module:name``.

    The class is told of an nvcc only if one is named.

    Raises:
        InputError: there is no such card, or it cannot be used from here.
        LaunchError: the card does not answer.
    """
    named = {} if options.nvcc is None else {"nvcc": options.nvcc}
    card: CupyCard = resolve_name(path)(device=options.device, compiler=options.compiler, **named)
    return card


def run_trials(card: CupyCard, meter: str, jobs: Iterable[Job], emit: Emit) -> None:
    """Measure the variants of jobs as they come and tell what happens, until the card is lost.

    What the first that is right of a program computes, those of later jobs are compared with.
    """
    try:
        metering = Metering(card, meter)
    except MeterError as error:
        emit(input_error("EATSS-E074", str(error), hint=error.remedy or None))
        return
    emit(
        CardOpened(
            device=card.info,
            meter=metering.primary,
            no_meter=metering.failure,
            missing_meters=metering.missing,
        )
    )
    known = Known()
    try:
        for job in jobs:
            _run(metering, job, emit, known)
    except VariantError as error:
        if not error.lost:
            raise
        emit(CardLost(reason=str(error)))


def _run(metering: Metering, job: Job, emit: Emit, known: Known) -> None:
    """Prepare all variants of a job, then measure those that are right."""
    if job.looks_around:
        emit(Entered(task=None, stage="idle power", limit_s=IDLE_LIMIT_S))
        found = metering.idle_power_w(pause_s=0.0, seconds=IDLE_S)
        known_w, reason = (None, found) if isinstance(found, str) else (found, "")
        emit(IdleRead(power_w=known_w, reason=reason))
    every = [_Trial(metering, job.options, emit, known, task) for task in job.tasks]
    loaded = [trial for trial in every if trial.attempt(trial.load)]
    trials = [trial for trial in loaded if trial.attempt(trial.examine)]
    if trials and job.looks_around:
        _note_other_processes(metering, every)
    programs: dict[Texts, list[_Trial]] = {}
    for trial in trials:
        programs.setdefault(trial.program, []).append(trial)
    while any(programs.values()):
        for active in programs.values():
            _take_round(active)
    if trials and job.looks_around:
        _note_other_processes(metering, every)


def _note_other_processes(metering: Metering, trials: list[_Trial]) -> None:
    found = metering.card.other_processes()
    note = "whether other processes used the card is not known"
    if found is not None:
        note = f"the card was also used by {', '.join(found)}: what that draws is in it"
    for trial in trials if found != () else ():
        trial.remark(note)


def _take_round(active: list[_Trial]) -> None:
    """Let every variant of a program that is behind take a window; drop those that end."""
    rounds = min((trial.windows for trial in active), default=0)
    turn = [trial for trial in active if trial.windows == rounds]
    for trial in reversed(turn) if rounds % 2 else turn:
        if not trial.attempt(trial.take_window):
            active.remove(trial)
    all_done = all(trial.converged or trial.spent for trial in active)
    for trial in [trial for trial in active if all_done or trial.spent]:
        trial.tell(ended="interval" if trial.converged else "budget")
        active.remove(trial)
        trial.workload.close()


def _repeated_s(took_s: float, least_s: float, repeated: Callable[[int], float]) -> float:
    """Return the seconds of one of many in a row, where one took ``took_s``."""
    count = 1
    while took_s < least_s:
        count = min(16 * count, math.ceil(1.2 * least_s * count / took_s))
        took_s = repeated(count)
    return took_s / count


class _Trial:
    """A variant, what it takes to run it, and what is known of it.

    ``program`` is what variants with the same results have in common, which take turns. A restoring
    takes ``restoring_s``. ``tried_runs`` is how many runs in a row were seen not to drift.
    """

    workload: CupyWorkload
    pace: Pace

    def __init__(
        self,
        metering: Metering,
        options: MeasureOptions,
        emit: Emit,
        known: Known,
        task: Task,
    ) -> None:
        self.metering, self.card, self.options = metering, metering.card, options
        self.emit, self.known, self.task = emit, known, task
        self.result = Result(task=task.index)
        self.program: Texts = ()
        self.tried_runs = 0
        self.restoring_s = 0.0
        self.no_restoring = ""
        self.warm = False

    @property
    def restores_inside(self) -> bool:
        """Whether inputs are restored before every run."""
        return self.result.restoring == "inside windows"

    @property
    def windows(self) -> int:
        """Windows taken so far."""
        return len(self.result.windows)

    @property
    def spent(self) -> bool:
        """Whether its budget is spent, and has bought the windows that an interval needs."""
        least = min(FOR_AN_INTERVAL, self.options.least_windows)
        return self.result.spent_s >= self.options.budget_s and self.windows >= least

    @property
    def converged(self) -> bool:
        """Whether time, and energy if it is known, are as narrow as asked for."""
        options, found = self.options, self.result
        if self.windows < options.least_windows:
            return False
        estimates = [mean_estimate([one.time_s for one in found.windows])]
        energies_j = [one.energy_j for one in found.windows if one.energy_j is not None]
        if energies_j and self.metering.works:
            estimates.append(energy_estimate(energies_j, found.restoring_j))
        widths = [estimate.relative for estimate in estimates]
        return all(width is not None and width <= options.target for width in widths)

    # what it tells

    def tell(self, **fields: Any) -> None:
        """Tell what is known of it, where that is more than before."""
        result = replace(self.result, **fields)
        if result != self.result:
            self.result = result
            self.emit(result)

    def remark(self, note: str) -> None:
        """Tell what a reader has to know, once."""
        self.tell(notes=self.result.noted(note).notes)

    def enter(self, stage: StageName, limit_s: float, window: int = 0) -> None:
        """Tell that a stage begins."""
        self.emit(Entered(task=self.task.index, stage=stage, limit_s=limit_s, window=window))

    def limit_s(self, expected_s: float) -> float:
        """Return when something expected to take ``expected_s`` seconds is taken to hang."""
        return self.options.timeout_s + 3 * expected_s

    def seconds(self, do: Callable[[], object]) -> float:
        """Return the seconds that something takes by the meters' clock, never none."""
        begin_s = self.card.now()
        do()
        return max(self.card.now() - begin_s, 1e-7)

    def attempt(self, do: Callable[[], _Found]) -> _Found | None:
        """Return what is done for it; tell of its failure, and be done with it then.

        Raises:
            VariantError: the card is lost.
        """
        try:
            return do()
        except InputError as error:
            failed = VariantError(error.message)
        except VariantError as error:
            failed = error
        self.tell(status=failed.status, reason=str(failed), ended="failed")
        if failed.lost:
            raise failed
        if self.program:
            self.workload.close()
        return None

    # until its first window

    def load(self) -> bool:
        """Compile it and bring it onto the card."""
        directory = Path(self.task.directory)
        program = load_program(directory)
        sizes, original = complete_sizes(program, self.options.sizes), program.original
        self.enter("compile", COMPILE_LIMIT_S)
        self.workload = self.card.load(program, directory, sizes, self.options.seed)
        self.program = (
            program.name,
            program.dtype,
            source_hash_of(program, directory),
            *(f"{name}={value}" for name, value in sorted(sizes.items())),
            *original.defines,
        )
        self.tell(resources=self.workload.resources())
        return True

    def examine(self) -> bool:
        """Make sure that it is right, and learn how it is to be repeated."""
        workload, timeout_s = self.workload, self.options.timeout_s
        checked, unchecked = list[str](), self.task.unchecked
        if self.options.check and not unchecked:
            self.enter("check", COMPILE_LIMIT_S + CHECK_RUNS * timeout_s)
            try:
                checked.append(workload.check(timeout_s))
            except NotComparedError as error:
                unchecked = str(error)
        # Making data for the first time may take a few runs of its own, to choose data that stay
        # finite and to capture graphs.
        self.enter("first run", FILL_LIMIT_S + RESET_RUNS * timeout_s)
        workload.reset()
        self.card.wait()
        self.enter("first run", timeout_s)
        first_s = self.seconds(lambda: workload.timed(1))
        if self.options.check:
            checked += self._compared()
        self.tell(
            restoring=self._repeated(first_s),
            compiler=workload.compiler,
            launched_by=workload.launched_by,
            checked=tuple(checked),
            unchecked=unchecked,
            data=workload.flavour,
        )
        return True

    def _compared(self) -> Texts:
        """Compare the results of the first run with those of the first variant that was right."""
        workload, references = self.workload, self.known.references
        self.enter("compare", COMPILE_LIMIT_S)
        if said := workload.drifted():
            self.remark(f"after one run from fresh data: {said}")
        if self.program not in references:
            references[self.program] = (self.task.label, workload.keep())
            return ()
        label, reference = references[self.program]
        words = f"the result of '{label}' at full size"
        difference = workload.difference(reference)
        if difference.equal:
            return (words,)
        if said := workload.magnified(difference):
            return (f"{words} ({said})",)
        raise WrongResultError(
            f"at full size the result differs from that of '{label}': {difference.message}"
        )

    def _repeated(self, first_s: float) -> Restoring:
        """Learn how long a run takes when many run in a row, and return how inputs are restored.

        What one variant of a program was seen to bear, the others bear too: they compute the same.
        """
        workload, options, repeatable = self.workload, self.options, self.known.repeatable

        def repeated_s(count: int) -> float:
            self.enter("try repeating", options.timeout_s)
            return self.seconds(lambda: workload.timed(count))

        pace = self.pace = Pace(
            run_s=_repeated_s(first_s, pace_s(options), repeated_s),
            window_s=options.least_window_s * (1 + options.spare),
            settle_s=options.settle_s,
        )
        if not workload.overwrites_inputs:
            return "none"
        runs = math.ceil(DRIFT_FACTOR * pace.all_runs)
        self.tried_runs = repeatable.get(self.program, 0)
        if runs <= self.tried_runs:
            return "between windows"
        if options.restoring == "between windows":
            self.tried_runs = 0
            self.remark("whether repeated runs drift was not tried")
            return "between windows"
        self.enter("try repeating", self.limit_s(runs * pace.run_s))
        workload.reset()
        workload.timed(runs)
        if said := workload.drifted():
            self.remark(
                f"inputs are restored before every run, since {runs} in a row drift: {said}"
            )
            return "inside windows"
        self.tried_runs = repeatable[self.program] = runs
        return "between windows"

    def _warm_up(self) -> None:
        """Run the load until power is steady, then set how long its windows last."""
        warm_up_s = self.options.warm_up_s
        self.enter("warm-up", self.limit_s(LONGEST_WARM_UP_S + warm_up_s))
        self.workload.reset()
        self.card.wait()
        loaded_s, settled = self._loaded(warm_up_s) if warm_up_s else (0.0, True)
        self.tell(warm_up_s=loaded_s)
        if not settled:
            self.remark(f"power had not settled after {loaded_s:.1f} s of warm-up")
        if self.restores_inside:
            self._measure_restoring()
        self.warm = True

    def _loaded(self, warm_up_s: float) -> tuple[float, bool]:
        """Run the load by pieces; return for how long, and whether power has settled."""
        loaded_s, piece_s = 0.0, max(warm_up_s, WARM_UP_PIECE_S)
        trace: Trace | None = None
        while True:
            count = max(1, math.ceil(piece_s / self.pace.run_s))
            with self.metering.recording() as traces:
                begin_s = self.card.now()
                self.workload.timed(count, restoring=self.restores_inside)
                took_s = self.card.now() - begin_s
            loaded_s += took_s
            seen = self.metering.primary_trace(traces)
            period_s = None if seen is None else update_period_s(seen)
            window_s = max(least_window_s(self.options, period_s), self.pace.window_s)
            self.pace = replace(self.pace, run_s=took_s / count, window_s=window_s)
            if trace is not None and seen is not None:
                seen = replace(seen, samples=trace.samples + seen.samples)
            trace = seen
            settled = trace is None or steady(trace, last_s=STEADY_S, within=STEADY_WITHIN)
            if loaded_s >= (warm_up_s if settled else max(LONGEST_WARM_UP_S, warm_up_s)):
                return loaded_s, settled
            piece_s = WARM_UP_PIECE_S

    def _measure_restoring(self) -> None:
        """Learn what restoring takes from windows of nothing else."""
        window_s = self.pace.window_s
        self.enter("restoring", self.limit_s(RESTORING_WINDOWS * 2 * window_s))

        def restore(count: int) -> None:
            self.workload.restore(count)
            self.card.wait()

        def restored_s(count: int) -> float:
            return self.seconds(partial(restore, count))

        self.restoring_s = run_s = _repeated_s(restored_s(1), PACE_S, restored_s)
        pace = Pace(run_s=run_s, window_s=window_s)
        settling = max(1, math.ceil(SETTLE_S / run_s))
        took_s, found_j = list[float](), list[float]()
        for _ in range(RESTORING_WINDOWS):
            power_w = self.metering.power_w(
                partial(restore, settling), lambda: took_s.append(restored_s(pace.runs))
            )
            if isinstance(power_w, str):
                self.no_restoring = f"what restoring the inputs takes is not known: {power_w}"
                return
            found_j.append(power_w * took_s[-1] / pace.runs)
        self.tell(restoring_j=tuple(found_j))

    # windows

    def take_window(self) -> bool:
        """Take a window, again where it was too short or the meter gave no reading; tell of it."""
        begin_s = self.card.now()
        if not self.warm:
            self._warm_up()
        for attempt in range(1, ATTEMPTS + 1):
            self.enter("window", self.limit_s(self.pace.expected_s), self.windows + 1)
            taken = take_window(
                self.metering, self.workload, self.pace, restoring=self.restores_inside
            )
            self._check_drift()
            unread = taken.no_energy and self.metering.works
            if attempt == ATTEMPTS or not (unread or taken.too_short(self.options)):
                break
            self.pace = longer(self.pace, taken, self.options)
        self.pace = self.pace.after(taken.window)
        self._note(taken, begin_s)
        return True

    def _check_drift(self) -> None:
        """Make sure of repeating where a window held more runs than were tried."""
        runs = self.pace.all_runs
        if self.result.restoring == "between windows" and runs > self.tried_runs:
            self.tried_runs = runs
            if said := self.workload.drifted():
                self.remark(f"{runs} runs in a row drift: {said}")

    def _note(self, taken: Taken, begin_s: float) -> None:
        """Tell of a window and of what is odd about it."""
        window, no_energy, number = taken.window, taken.no_energy, self.windows + 1
        # the share of the window in which the card did nothing
        gap = 1 - window.runs * (window.time_s + self.restoring_s) / window.duration_s
        if self.restores_inside:
            no_energy = no_energy or self.no_restoring
            if not no_energy and abs(gap) > GAP_LIMIT:
                no_energy = (
                    f"runs and restorings account for {100 * (1 - gap):.1f} % of a window, so "
                    "that what restoring takes cannot be subtracted"
                )
            energy_j = power_w = None
            if window.power_w is not None and not no_energy:
                whole_j = window.power_w * window.duration_s / window.runs
                energy_j = whole_j - fmean(self.result.restoring_j)
                power_w = energy_j / window.time_s
            window = replace(window, energy_j=energy_j, power_w=power_w)
        if taken.too_short(self.options):
            updates = window.readings[0].updates if window.readings else 0
            seen = f"{window.duration_s:.3g} s with {updates} updates of the sensor"
            self.remark(f"window {number} is shorter than asked for: {seen}")
        if gap > GAP_LIMIT:
            self.remark(f"in window {number} the card waited {100 * gap:.1f} % of the time")
        self.tell(
            windows=(*self.result.windows, window),
            no_energy=self.result.no_energy or no_energy,
            spent_s=self.result.spent_s + self.card.now() - begin_s,
        )


def pace_s(options: MeasureOptions) -> float:
    """Return how long runs are timed together, at least, to learn how many fill a window."""
    return min(PACE_S, max(SHORTEST_PACE_S, PACE_SHARE * options.least_window_s))
