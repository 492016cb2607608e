"""The trials of a job: every variant prepared, then windows by turns until all have converged.

Variants take one window each in every round, in reverse order in every other round, so that drift
of the card hits all alike; the n-th windows of all variants are of one round. A variant has
converged when it has enough windows and both its intervals are narrow. It stays in the turn until
all variants of its program have, so that a ratio rests on rounds that both took part in; it leaves
alone only where it failed or its budget is spent, whose seconds are those of its warm-up and
windows. A budget that is too small still buys the two windows that an interval needs.

The card's idle power is read before anything else, while it is cold, and once more after all.
"""

from __future__ import annotations

from eatss.diagnostics import InputError
from eatss.measurement.card import Card, CompileError, LaunchError, WrongResultError
from eatss.measurement.job import (
    CardLost,
    Done,
    Emit,
    Ended,
    Ending,
    Entered,
    Failed,
    IdleRead,
    Job,
    Remarked,
    Task,
    WindowTaken,
)
from eatss.measurement.measurement import Status
from eatss.measurement.metering import Metering, card_opened
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.preparation import (
    Known,
    LoadedVariant,
    Preparation,
    Trial,
    WarmUp,
    run_limit_s,
)
from eatss.measurement.record import FOR_AN_INTERVAL
from eatss.measurement.statistics import energy_estimate, mean_estimate
from eatss.measurement.windows import (
    GAP_LIMIT,
    RawWindow,
    finish_window,
    follow,
    idle_power_w,
    longer,
    take_window,
    too_short,
)
from eatss.supervisor import Refused

IDLE_PAUSE_S = 2.0
"""After windows, until the card has come to rest."""

IDLE_S = 2.5

ATTEMPTS = 3
"""A window that is too short is taken again, this often in all."""

NO_ENERGY_PATIENCE = 4
"""Windows of a job that are taken again since the meter gave no reading."""


def run_trials(card: Card, job: Job, emit: Emit) -> None:
    """Measure the variants of a job and tell what happens, in order."""
    try:
        metering = Metering(card, job.options.meter, keep=job.meter)
    except MeterError as error:
        emit(Refused(code="EATSS-E074", message=str(error), hint=error.remedy or None))
        return
    emit(card_opened(card, metering))
    if run_on(card, metering, job, emit, Known()):
        emit(Done())


def run_on(card: Card, metering: Metering, job: Job, emit: Emit, known: Known) -> bool:
    """Measure the variants of a job on a card that is open; false if the card is lost.

    Args:
        card: which measures.
        metering: its meters.
        job: the variants.
        emit: is told what happens.
        known: what earlier jobs on this card left, and what this one leaves.
    """
    try:
        _Trials(card, metering, job, emit).run(known)
    except _LostError as lost:
        emit(CardLost(reason=str(lost)))
        return False
    return True


class _LostError(Exception):
    """The card is of no use any more."""


class _Trials:
    def __init__(self, card: Card, metering: Metering, job: Job, emit: Emit) -> None:
        self._card = card
        self._metering = metering
        self._job = job
        self._emit = emit
        self._origin_s = card.now() - job.elapsed_s
        self._patience = NO_ENERGY_PATIENCE
        self._others: tuple[str, ...] | None = ()

    def run(self, known: Known) -> None:
        """Prepare all variants, then measure those that are right."""
        if self._job.looks_around and not self._job.idle_known:
            self._idle(warm=False)
        preparation = Preparation(self._card, self._job.options, self._emit, known)
        loaded = [one for task in self._job.tasks if (one := self._loaded(preparation, task))]
        with preparation.checking(loaded):
            trials = [trial for one in loaded if (trial := self._examined(preparation, one))]
        if not trials:
            return
        if self._job.looks_around:
            self._note_other_processes("before the first window")
        programs: dict[tuple[str, ...], list[Trial]] = {}
        for trial in trials:
            programs.setdefault(trial.program, []).append(trial)
        while any(programs.values()):
            for active in programs.values():
                self._round(active)
        if self._job.looks_around:
            self._note_other_processes("after the last window")
            self._idle(warm=True)

    def _loaded(self, preparation: Preparation, task: Task) -> LoadedVariant | None:
        try:
            return preparation.load(task)
        except (CompileError, LaunchError, InputError) as error:
            self._fail(task, error)
            return None

    def _examined(self, preparation: Preparation, variant: LoadedVariant) -> Trial | None:
        try:
            return preparation.examine(variant)
        except (CompileError, LaunchError, WrongResultError, InputError) as error:
            self._fail(variant.task, error)
            return None

    def _fail(
        self, task: Task, error: CompileError | LaunchError | WrongResultError | InputError
    ) -> None:
        status: Status = "launch error"
        if isinstance(error, CompileError):
            status = "compile error"
        elif isinstance(error, WrongResultError):
            status = "wrong result"
        elif isinstance(error, LaunchError) and error.timed_out:
            status = "timeout"
        reason = error.diagnostics[0].message if isinstance(error, InputError) else str(error)
        self._emit(Failed(task=task.index, status=status, reason=reason))
        if isinstance(error, LaunchError) and error.lost:
            raise _LostError(str(error))

    def _idle(self, *, warm: bool) -> None:
        self._emit(Entered(task=None, stage="idle power", limit_s=60.0))
        pause_s = IDLE_PAUSE_S if warm else 0.0
        found = idle_power_w(self._card, self._metering, pause_s=pause_s, seconds=IDLE_S)
        if isinstance(found, str):
            self._emit(IdleRead(power_w=None, reason=found, warm=warm))
        else:
            self._emit(IdleRead(power_w=found, reason="", warm=warm))

    def _note_other_processes(self, when: str) -> None:
        """Remark on other processes that are on the card, unless they were there before."""
        found = self._card.other_processes()
        if found and found != self._others:
            note = f"{when} the card was also used by {', '.join(found)}: what that draws is in it"
            self._emit(Remarked(task=None, note=note))
        if found is None and self._others is not None:
            note = "whether other processes used the card is not known"
            self._emit(Remarked(task=None, note=note))
        self._others = found

    def _round(self, active: list[Trial]) -> None:
        """Let every variant of a program that is behind take a window; drop those that end."""
        taken = min((len(trial.times_s) for trial in active), default=0)
        turn = [trial for trial in active if len(trial.times_s) == taken]
        for trial in reversed(turn) if taken % 2 else turn:
            begin_s = self._card.now()
            try:
                if not trial.warm:
                    WarmUp(self._card, self._metering, self._job.options, self._emit).warm(trial)
                raw = self._window(trial)
            except LaunchError as error:
                active.remove(trial)
                self._fail(trial.task, error)
                trial.workload.close()
                continue
            self._note(trial, raw, begin_s)
        self._drop(active)

    def _window(self, trial: Trial) -> RawWindow:
        """Take a window, again where it was too short."""
        options = self._job.options
        for attempt in range(ATTEMPTS):
            limit_s = run_limit_s(options, trial.pace.expected_s)
            number = len(trial.times_s) + 1
            self._emit(
                Entered(task=trial.task.index, stage="window", limit_s=limit_s, window=number)
            )
            raw = take_window(
                self._card,
                self._metering,
                trial.workload,
                trial.pace,
                restoring=trial.restores_inside,
            )
            self._check_drift(trial)
            if attempt == ATTEMPTS - 1 or not self._take_again(raw):
                break
            trial.pace = longer(trial.pace, raw, options)
        trial.pace = follow(trial.pace, raw)
        return raw

    def _take_again(self, raw: RawWindow) -> bool:
        if raw.no_energy and self._metering.works and self._patience:
            self._patience -= 1
            return True
        return too_short(raw, self._job.options)

    def _check_drift(self, trial: Trial) -> None:
        """Make converged of repeating where a window held more runs than were tried."""
        runs = trial.pace.runs + trial.pace.settling_runs
        if trial.restoring != "between windows" or runs <= trial.tried_runs:
            return
        trial.tried_runs = runs
        said = trial.workload.drifted()
        if said:
            self._remark(trial, f"{runs} runs in a row drift: {said}")

    def _note(self, trial: Trial, raw: RawWindow, begin_s: float) -> None:
        """Tell of a window and of what is odd about it."""
        no_energy = raw.no_energy or (_no_difference(trial, raw) if trial.restores_inside else "")
        restoring_j = sum(trial.restoring_j) / len(trial.restoring_j) if trial.restoring_j else None
        window = finish_window(
            raw, origin_s=self._origin_s, restoring_j=restoring_j, no_energy=no_energy
        )
        if too_short(raw, self._job.options):
            updates = raw.readings[0].updates if raw.readings else 0
            seen = f"{raw.span.duration_s:.3g} s with {updates} updates of the sensor"
            self._remark(
                trial, f"window {len(trial.times_s) + 1} is shorter than asked for: {seen}"
            )
        gap = raw.gap(trial.restoring_s)
        if gap > GAP_LIMIT:
            waited = f"the card waited {100 * gap:.1f} % of the time"
            self._remark(trial, f"in window {len(trial.times_s) + 1} {waited}")
        trial.times_s.append(window.time_s)
        trial.energies_j.append(window.energy_j)
        spent_s = self._card.now() - begin_s
        trial.spent_s += spent_s
        self._emit(
            WindowTaken(task=trial.task.index, window=window, no_energy=no_energy, spent_s=spent_s)
        )

    def _drop(self, active: list[Trial]) -> None:
        """Drop the variants of a program that need no more windows, and tell why."""
        converged = [trial for trial in active if self._converged(trial)]
        spent = [trial for trial in active if self._spent(trial)]
        all_done = all(trial in converged or trial in spent for trial in active)
        for trial in list(active) if all_done else spent:
            ended: Ending = "interval" if trial in converged else "budget"
            self._emit(Ended(task=trial.task.index, ended=ended))
            active.remove(trial)
            trial.workload.close()

    def _spent(self, trial: Trial) -> bool:
        least = min(FOR_AN_INTERVAL, self._job.options.least_windows)
        return trial.spent_s >= self._job.options.budget_s and len(trial.times_s) >= least

    def _converged(self, trial: Trial) -> bool:
        options = self._job.options
        if len(trial.times_s) < options.least_windows:
            return False
        estimates = [mean_estimate(trial.times_s, options.confidence)]
        energies_j = [energy for energy in trial.energies_j if energy is not None]
        if energies_j and self._metering.works:
            estimates.append(energy_estimate(energies_j, trial.restoring_j, options.confidence))
        widths = [estimate.relative for estimate in estimates]
        return all(width is not None and width <= options.target for width in widths)

    def _remark(self, trial: Trial, note: str) -> None:
        self._emit(Remarked(task=trial.task.index, note=note))


def _no_difference(trial: Trial, raw: RawWindow) -> str:
    """Say why the energy of restorings cannot be subtracted, "" if it can."""
    if trial.no_restoring:
        return trial.no_restoring
    gap = raw.gap(trial.restoring_s)
    if abs(gap) <= GAP_LIMIT:
        return ""
    what = f"runs and restorings account for {100 * (1 - gap):.1f} % of a window"
    why = (
        "the card waited for this machine between them"
        if gap > 0
        else "restoring by itself is slower"
    )
    return f"{what} ({why}), so that what restoring takes cannot be subtracted"
