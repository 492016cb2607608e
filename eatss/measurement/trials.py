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
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

from eatss.base.diagnostics import InputError, input_error
from eatss.base.text import Texts
from eatss.measurement.arguments import complete_sizes
from eatss.measurement.assemble import energy_estimate, mean_estimate
from eatss.measurement.card import NotComparedError, VariantError, WrongResultError
from eatss.measurement.job import (
    FOR_AN_INTERVAL,
    CardLost,
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
from eatss.measurement.meters.meter import MeterError, Trace, steady
from eatss.measurement.options import BenchKeywords, MeasureOptions
from eatss.program import load_program

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

    references: dict[Texts, tuple[str, object]] = field(default_factory=dict)
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
    emit(metering.opened())
    known = Known()
    for job in jobs:
        try:
            _Trials(card, metering, job, emit, known).run()
        except VariantError as error:
            if not error.lost:
                raise
            emit(CardLost(reason=str(error)))
            return


@dataclass(slots=True, kw_only=True)
class _Trial:
    """A variant, what it takes to run it, and what is known of it.

    ``program`` is what variants with the same results have in common, which take turns. A restoring
    takes ``restoring_s``. ``tried_runs`` is how many runs in a row were seen not to drift.
    """

    task: Task
    result: Result
    program: Texts = ()
    workload: CupyWorkload = field(init=False)
    pace: Pace = field(init=False)
    tried_runs: int = 0
    restoring_s: float = 0.0
    no_restoring: str = ""
    warm: bool = False

    @property
    def restores_inside(self) -> bool:
        """Whether inputs are restored before every run."""
        return self.result.restoring == "inside windows"


class _Trials:
    def __init__(
        self, card: CupyCard, metering: Metering, job: Job, emit: Emit, known: Known
    ) -> None:
        self._card = card
        self._metering = metering
        self._job = job
        self._options = job.options
        self._emit = emit
        self._known = known
        self._origin_s = card.now() - job.elapsed_s

    def run(self) -> None:
        """Prepare all variants, then measure those that are right."""
        looks_around = self._job.looks_around
        if looks_around:
            self._enter(None, "idle power", IDLE_LIMIT_S)
            self._emit(self._idle())
        every = [_Trial(task=task, result=Result(task=task.index)) for task in self._job.tasks]
        loaded = [trial for trial in every if self._attempt(trial, self._load)]
        trials = [trial for trial in loaded if self._attempt(trial, self._examine)]
        if not trials:
            return
        if looks_around:
            self._note_other_processes(every)
        programs: dict[Texts, list[_Trial]] = {}
        for trial in trials:
            programs.setdefault(trial.program, []).append(trial)
        while any(programs.values()):
            for active in programs.values():
                self._round(active)
        if looks_around:
            self._note_other_processes(every)

    def _attempt(self, trial: _Trial, do: Callable[[_Trial], _Found]) -> _Found | None:
        """Return what is done for a variant; tell of its failure, and be done with it then.

        Raises:
            VariantError: the card is lost.
        """
        try:
            return do(trial)
        except InputError as error:
            failed = VariantError(error.diagnostics[0].message)
        except VariantError as error:
            failed = error
        self._told(trial, trial.result.failed(failed.status, str(failed)))
        if failed.lost:
            raise failed
        if trial.program:
            trial.workload.close()
        return None

    def _told(self, trial: _Trial, result: Result) -> None:
        """Tell what is known of a variant, where that is more than before."""
        if result != trial.result:
            trial.result = result
            self._emit(result)

    def _learned(self, trial: _Trial, **fields: Any) -> None:
        self._told(trial, replace(trial.result, **fields))

    def _remark(self, trial: _Trial, note: str) -> None:
        self._told(trial, trial.result.noted(note))

    def _enter(self, task: Task | None, stage: StageName, limit_s: float, window: int = 0) -> None:
        index = None if task is None else task.index
        self._emit(Entered(task=index, stage=stage, limit_s=limit_s, window=window))

    def _limit_s(self, expected_s: float) -> float:
        """Return when something expected to take ``expected_s`` seconds is taken to hang."""
        return self._options.timeout_s + 3 * expected_s

    def _seconds(self, do: Callable[[], object]) -> float:
        """Return the seconds that something takes by the meters' clock, never none."""
        begin_s = self._card.now()
        do()
        return max(self._card.now() - begin_s, 1e-7)

    def _run_s(self, took_s: float, least_s: float, repeated: Callable[[int], float]) -> float:
        """Return the seconds of one of many in a row, where one took ``took_s``."""
        count = 1
        while took_s < least_s:
            count = min(16 * count, math.ceil(1.2 * least_s * count / took_s))
            took_s = repeated(count)
        return took_s / count

    # around all variants

    def _idle(self) -> IdleRead:
        found = self._metering.idle_power_w(pause_s=0.0, seconds=IDLE_S)
        if isinstance(found, str):
            return IdleRead(power_w=None, reason=found)
        return IdleRead(power_w=found, reason="")

    def _note_other_processes(self, trials: list[_Trial]) -> None:
        found = self._card.other_processes()
        note = "whether other processes used the card is not known"
        if found is not None:
            note = f"the card was also used by {', '.join(found)}: what that draws is in it"
        for trial in trials if found != () else ():
            self._remark(trial, note)

    # a variant until its first window

    def _load(self, trial: _Trial) -> bool:
        """Compile a variant and bring it onto the card."""
        directory = Path(trial.task.directory)
        program = load_program(directory)
        sizes = complete_sizes(program, self._options.sizes)
        self._enter(trial.task, "compile", COMPILE_LIMIT_S)
        trial.workload = self._card.load(program, directory, sizes, self._options.seed)
        original = program.original
        trial.program = (
            program.name,
            program.dtype,
            sha256((directory / original.file).read_bytes()).hexdigest(),
            *(f"{name}={value}" for name, value in sorted(sizes.items())),
            *original.defines,
        )
        self._learned(trial, resources=trial.workload.resources())
        return True

    def _examine(self, trial: _Trial) -> bool:
        """Make sure that a variant is right, and learn how it is to be repeated."""
        task, workload, timeout_s = trial.task, trial.workload, self._options.timeout_s
        checked, unchecked = list[str](), task.unchecked
        if self._options.check and not unchecked:
            self._enter(task, "check", COMPILE_LIMIT_S + CHECK_RUNS * timeout_s)
            try:
                checked.append(workload.check(timeout_s))
            except NotComparedError as error:
                unchecked = str(error)
        # Making data for the first time may take a few runs of its own, to choose data that stay
        # finite and to capture graphs.
        self._enter(task, "first run", FILL_LIMIT_S + RESET_RUNS * timeout_s)
        workload.reset()
        self._card.wait()
        self._enter(task, "first run", timeout_s)
        first_s = self._seconds(lambda: workload.timed(1))
        if self._options.check:
            self._compare(trial, checked)
        restoring = self._repeat(trial, first_s)
        self._learned(
            trial,
            compiler=workload.compiler,
            launched_by=workload.launched_by,
            restoring=restoring,
            checked=tuple(checked),
            unchecked=unchecked,
            data=workload.flavour,
        )
        return True

    def _compare(self, trial: _Trial, checked: list[str]) -> None:
        """Compare the results of the first run with those of the first variant that was right."""
        task, workload = trial.task, trial.workload
        self._enter(task, "compare", COMPILE_LIMIT_S)
        if said := workload.drifted():
            self._remark(trial, f"after one run from fresh data: {said}")
        if trial.program not in self._known.references:
            self._known.references[trial.program] = (task.label, workload.keep())
            return
        label, reference = self._known.references[trial.program]
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

    def _repeat(self, trial: _Trial, first_s: float) -> Restoring:
        """Learn how long a run takes when many run in a row, and return how inputs are restored.

        What one variant of a program was seen to bear, the others bear too: they compute the same.
        """
        task, workload, options = trial.task, trial.workload, self._options

        def repeated(count: int) -> float:
            self._enter(task, "try repeating", options.timeout_s)
            return self._seconds(lambda: workload.timed(count))

        trial.pace = Pace(
            run_s=self._run_s(first_s, pace_s(options), repeated),
            window_s=options.least_window_s * (1 + options.spare),
            settle_s=options.settle_s,
        )
        if not workload.overwrites_inputs:
            return "none"
        runs = math.ceil(DRIFT_FACTOR * (trial.pace.runs + trial.pace.settling_runs))
        known = self._known.repeatable.get(trial.program, 0)
        if runs <= known:
            trial.tried_runs = known
            return "between windows"
        if options.restoring == "between windows":
            self._remark(trial, "whether repeated runs drift was not tried")
            return "between windows"
        self._enter(task, "try repeating", self._limit_s(runs * trial.pace.run_s))
        workload.reset()
        workload.timed(runs)
        if said := workload.drifted():
            self._remark(
                trial, f"inputs are restored before every run, since {runs} in a row drift: {said}"
            )
            return "inside windows"
        trial.tried_runs = self._known.repeatable[trial.program] = runs
        return "between windows"

    def _warm_up(self, trial: _Trial) -> None:
        """Run the load until power is steady, then set how long its windows last."""
        task, warm_up_s = trial.task, self._options.warm_up_s
        self._enter(task, "warm-up", self._limit_s(LONGEST_WARM_UP_S + warm_up_s))
        trial.workload.reset()
        self._card.wait()
        loaded_s, settled = self._loaded(trial, warm_up_s) if warm_up_s else (0.0, True)
        self._learned(trial, warm_up_s=loaded_s)
        if not settled:
            self._remark(trial, f"power had not settled after {loaded_s:.1f} s of warm-up")
        if trial.restores_inside:
            self._measure_restoring(trial)
        trial.warm = True

    def _loaded(self, trial: _Trial, warm_up_s: float) -> tuple[float, bool]:
        """Run the load by pieces; return for how long, and whether power has settled."""
        metering, longest_s = self._metering, max(LONGEST_WARM_UP_S, warm_up_s)
        loaded_s, piece_s = 0.0, max(warm_up_s, WARM_UP_PIECE_S)
        trace: Trace | None = None
        while True:
            count = max(1, math.ceil(piece_s / trial.pace.run_s))
            with metering.recording() as traces:
                begin_s = self._card.now()
                trial.workload.timed(count, restoring=trial.restores_inside)
                took_s = self._card.now() - begin_s
            loaded_s += took_s
            window_s = least_window_s(self._options, metering.period_s(traces))
            trial.pace = replace(
                trial.pace, run_s=took_s / count, window_s=max(window_s, trial.pace.window_s)
            )
            seen = metering.primary_trace(traces)
            if trace is not None and seen is not None:
                seen = replace(seen, samples=trace.samples + seen.samples)
            trace = seen
            settled = trace is None or steady(trace, last_s=STEADY_S, within=STEADY_WITHIN)
            if loaded_s >= longest_s or (loaded_s >= warm_up_s and settled):
                return loaded_s, settled
            piece_s = WARM_UP_PIECE_S

    def _measure_restoring(self, trial: _Trial) -> None:
        """Learn what restoring takes from windows of nothing else."""
        window_s = trial.pace.window_s
        self._enter(trial.task, "restoring", self._limit_s(RESTORING_WINDOWS * 2 * window_s))

        def restore(count: int) -> None:
            trial.workload.restore(count)
            self._card.wait()

        def restored(count: int) -> float:
            return self._seconds(partial(restore, count))

        run_s = self._run_s(restored(1), PACE_S, restored)
        pace = Pace(run_s=run_s, window_s=window_s)
        trial.restoring_s = run_s
        took_s, found_j = list[float](), list[float]()
        for _ in range(RESTORING_WINDOWS):
            power_w = self._metering.power_w(
                partial(restore, max(1, math.ceil(SETTLE_S / run_s))),
                lambda: took_s.append(restored(pace.runs)),
            )
            if isinstance(power_w, str):
                trial.no_restoring = f"what restoring the inputs takes is not known: {power_w}"
                return
            found_j.append(power_w * took_s[-1] / pace.runs)
        self._learned(trial, restoring_j=tuple(found_j))

    # windows

    def _round(self, active: list[_Trial]) -> None:
        """Let every variant of a program that is behind take a window; drop those that end."""
        rounds = min((len(trial.result.windows) for trial in active), default=0)
        turn = [trial for trial in active if len(trial.result.windows) == rounds]
        for trial in reversed(turn) if rounds % 2 else turn:
            begin_s = self._card.now()
            taken = self._attempt(trial, self._window)
            if taken is None:
                active.remove(trial)
            else:
                self._note(trial, taken, begin_s)
        spent = [trial for trial in active if self._spent(trial.result)]
        converged = [trial for trial in active if self._converged(trial.result)]
        all_done = all(trial in converged or trial in spent for trial in active)
        for trial in list(active) if all_done else spent:
            self._learned(trial, ended="interval" if trial in converged else "budget")
            active.remove(trial)
            trial.workload.close()

    def _window(self, trial: _Trial) -> Taken:
        """Take a window, again where it was too short or the meter gave no reading."""
        if not trial.warm:
            self._warm_up(trial)
        for attempt in range(ATTEMPTS):
            limit_s, number = self._limit_s(trial.pace.expected_s), len(trial.result.windows) + 1
            self._enter(trial.task, "window", limit_s, window=number)
            taken = take_window(
                self._metering,
                trial.workload,
                trial.pace,
                restoring=trial.restores_inside,
                origin_s=self._origin_s,
            )
            self._check_drift(trial)
            unread = taken.no_energy and self._metering.works
            if attempt == ATTEMPTS - 1 or not (unread or taken.too_short(self._options)):
                break
            trial.pace = longer(trial.pace, taken, self._options)
        trial.pace = trial.pace.after(taken.window)
        return taken

    def _check_drift(self, trial: _Trial) -> None:
        """Make converged of repeating where a window held more runs than were tried."""
        runs = trial.pace.runs + trial.pace.settling_runs
        if trial.result.restoring != "between windows" or runs <= trial.tried_runs:
            return
        trial.tried_runs = runs
        if said := trial.workload.drifted():
            self._remark(trial, f"{runs} runs in a row drift: {said}")

    def _note(self, trial: _Trial, taken: Taken, begin_s: float) -> None:
        """Tell of a window and of what is odd about it."""
        window, number = taken.window, len(trial.result.windows) + 1
        # the share of the window in which the card did nothing
        gap = 1 - window.runs * (window.time_s + trial.restoring_s) / window.duration_s
        no_energy = taken.no_energy
        if trial.restores_inside:
            no_energy = no_energy or _no_difference(trial, gap)
            restoring_j = trial.result.restoring_j
            energy_j: float | None = None
            if window.power_w is not None and not no_energy:
                whole_j = window.power_w * window.duration_s / window.runs
                energy_j = whole_j - sum(restoring_j) / len(restoring_j)
            power_w = None if energy_j is None else energy_j / window.time_s
            window = replace(window, energy_j=energy_j, power_w=power_w)
        if taken.too_short(self._options):
            updates = window.readings[0].updates if window.readings else 0
            seen = f"{window.duration_s:.3g} s with {updates} updates of the sensor"
            self._remark(trial, f"window {number} is shorter than asked for: {seen}")
        if gap > GAP_LIMIT:
            self._remark(trial, f"in window {number} the card waited {100 * gap:.1f} % of the time")
        self._learned(
            trial,
            windows=(*trial.result.windows, window),
            no_energy=trial.result.no_energy or no_energy,
            spent_s=trial.result.spent_s + self._card.now() - begin_s,
        )

    def _spent(self, found: Result) -> bool:
        least = min(FOR_AN_INTERVAL, self._options.least_windows)
        return found.spent_s >= self._options.budget_s and len(found.windows) >= least

    def _converged(self, found: Result) -> bool:
        options = self._options
        if len(found.windows) < options.least_windows:
            return False
        estimates = [mean_estimate([one.time_s for one in found.windows], options.confidence)]
        energies_j = [one.energy_j for one in found.windows if one.energy_j is not None]
        if energies_j and self._metering.works:
            estimates.append(energy_estimate(energies_j, found.restoring_j, options.confidence))
        widths = [estimate.relative for estimate in estimates]
        return all(width is not None and width <= options.target for width in widths)


def pace_s(options: MeasureOptions) -> float:
    """Return how long runs are timed together, at least, to learn how many fill a window."""
    return min(PACE_S, max(SHORTEST_PACE_S, PACE_SHARE * options.least_window_s))


def _no_difference(trial: _Trial, gap: float) -> str:
    """Say why the energy of restorings cannot be subtracted, "" if it can."""
    if trial.no_restoring or abs(gap) <= GAP_LIMIT:
        return trial.no_restoring
    return (
        f"runs and restorings account for {100 * (1 - gap):.1f} % of a window, so that "
        "what restoring takes cannot be subtracted"
    )
