"""The trials of a job: every variant prepared, then windows by turns until all are sure enough.

Variants take one window each in every round, in reverse order in every other round, so that drift
of the card hits all alike; the n-th windows of all variants are of one round. A variant is sure
when it has enough windows and both its intervals are narrow. It stays in the turn until all
variants of its program are sure, so that a ratio rests on rounds that both took part in; it leaves
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
from eatss.measurement.lane import Lane, Loaded, Preparation, Tell, WarmUp, run_limit_s
from eatss.measurement.measurement import Status
from eatss.measurement.meter_gaps import card_opened
from eatss.measurement.metering import Metering
from eatss.measurement.meters.meter import MeterError
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


def run_trials(card: Card, job: Job, tell: Tell) -> None:
    """Measure the variants of a job and tell what happens, in order."""
    try:
        metering = Metering(card, job.options.meter, keep=job.meter)
    except MeterError as error:
        tell(Refused(code="EATSS-E074", message=str(error), hint=error.remedy or None))
        return
    tell(card_opened(card, metering))
    try:
        _Trials(card, metering, job, tell).run()
    except _LostError as lost:
        tell(CardLost(reason=str(lost)))
    else:
        tell(Done())


class _LostError(Exception):
    """The card is of no use any more."""


class _Trials:
    def __init__(self, card: Card, metering: Metering, job: Job, tell: Tell) -> None:
        self._card = card
        self._metering = metering
        self._job = job
        self._tell = tell
        self._origin_s = card.now() - job.elapsed_s
        self._patience = NO_ENERGY_PATIENCE
        self._others: tuple[str, ...] | None = ()

    def run(self) -> None:
        """Prepare all variants, then measure those that are right."""
        if not self._job.idle_known:
            self._idle(warm=False)
        preparation = Preparation(self._card, self._job.options, self._tell)
        loaded = [one for task in self._job.tasks if (one := self._loaded(preparation, task))]
        with preparation.checking(loaded):
            lanes = [lane for one in loaded if (lane := self._examined(preparation, one))]
        if not lanes:
            return
        self._look_for_others("before the first window")
        programs: dict[tuple[str, ...], list[Lane]] = {}
        for lane in lanes:
            programs.setdefault(lane.program, []).append(lane)
        while any(programs.values()):
            for active in programs.values():
                self._round(active)
        self._look_for_others("after the last window")
        self._idle(warm=True)

    def _loaded(self, preparation: Preparation, task: Task) -> Loaded | None:
        try:
            return preparation.load(task)
        except (CompileError, LaunchError, InputError) as error:
            self._fail(task, error)
            return None

    def _examined(self, preparation: Preparation, variant: Loaded) -> Lane | None:
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
        self._tell(Failed(task=task.index, status=status, reason=reason))
        if isinstance(error, LaunchError) and error.lost:
            raise _LostError(str(error))

    def _idle(self, *, warm: bool) -> None:
        self._tell(Entered(task=None, stage="idle power", limit_s=60.0))
        pause_s = IDLE_PAUSE_S if warm else 0.0
        found = idle_power_w(self._card, self._metering, pause_s=pause_s, seconds=IDLE_S)
        if isinstance(found, str):
            self._tell(IdleRead(power_w=None, reason=found, warm=warm))
        else:
            self._tell(IdleRead(power_w=found, reason="", warm=warm))

    def _look_for_others(self, when: str) -> None:
        """Remark on other processes that are on the card, unless they were there before."""
        found = self._card.others()
        if found and found != self._others:
            note = f"{when} the card was also used by {', '.join(found)}: what that draws is in it"
            self._tell(Remarked(task=None, note=note))
        if found is None and self._others is not None:
            note = "whether other processes used the card is not known"
            self._tell(Remarked(task=None, note=note))
        self._others = found

    def _round(self, active: list[Lane]) -> None:
        """Let every variant of a program that is behind take a window; drop those that end."""
        taken = min((len(lane.times_s) for lane in active), default=0)
        turn = [lane for lane in active if len(lane.times_s) == taken]
        for lane in reversed(turn) if taken % 2 else turn:
            begin_s = self._card.now()
            try:
                if not lane.warm:
                    WarmUp(self._card, self._metering, self._job.options, self._tell).warm(lane)
                raw = self._window(lane)
            except LaunchError as error:
                active.remove(lane)
                self._fail(lane.task, error)
                lane.workload.close()
                continue
            self._note(lane, raw, begin_s)
        self._drop(active)

    def _window(self, lane: Lane) -> RawWindow:
        """Take a window, again where it was too short."""
        options = self._job.options
        for attempt in range(ATTEMPTS):
            limit_s = run_limit_s(options, lane.pace.expected_s)
            number = len(lane.times_s) + 1
            self._tell(
                Entered(task=lane.task.index, stage="window", limit_s=limit_s, window=number)
            )
            raw = take_window(
                self._card,
                self._metering,
                lane.workload,
                lane.pace,
                restoring=lane.restores_inside,
            )
            self._check_drift(lane)
            if attempt == ATTEMPTS - 1 or not self._take_again(raw):
                break
            lane.pace = longer(lane.pace, raw, options)
        lane.pace = follow(lane.pace, raw)
        return raw

    def _take_again(self, raw: RawWindow) -> bool:
        if raw.no_energy and self._metering.works and self._patience:
            self._patience -= 1
            return True
        return too_short(raw, self._job.options)

    def _check_drift(self, lane: Lane) -> None:
        """Make sure of repeating where a window held more runs than were tried."""
        runs = lane.pace.runs + lane.pace.settling_runs
        if lane.restoring != "between windows" or runs <= lane.tried_runs:
            return
        lane.tried_runs = runs
        said = lane.workload.drifted()
        if said:
            self._remark(lane, f"{runs} runs in a row drift: {said}")

    def _note(self, lane: Lane, raw: RawWindow, begin_s: float) -> None:
        """Tell of a window and of what is odd about it."""
        no_energy = raw.no_energy or (_no_difference(lane, raw) if lane.restores_inside else "")
        restoring_j = sum(lane.restoring_j) / len(lane.restoring_j) if lane.restoring_j else None
        window = finish_window(
            raw, origin_s=self._origin_s, restoring_j=restoring_j, no_energy=no_energy
        )
        if too_short(raw, self._job.options):
            updates = raw.readings[0].updates if raw.readings else 0
            seen = f"{raw.span.duration_s:.3g} s with {updates} updates of the sensor"
            self._remark(lane, f"window {len(lane.times_s) + 1} is shorter than asked for: {seen}")
        gap = raw.gap(lane.restoring_s)
        if gap > GAP_LIMIT:
            waited = f"the card waited {100 * gap:.1f} % of the time"
            self._remark(lane, f"in window {len(lane.times_s) + 1} {waited}")
        lane.times_s.append(window.time_s)
        lane.energies_j.append(window.energy_j)
        spent_s = self._card.now() - begin_s
        lane.spent_s += spent_s
        self._tell(
            WindowTaken(task=lane.task.index, window=window, no_energy=no_energy, spent_s=spent_s)
        )

    def _drop(self, active: list[Lane]) -> None:
        """Drop the variants of a program that need no more windows, and tell why."""
        sure = [lane for lane in active if self._sure(lane)]
        spent = [lane for lane in active if self._spent(lane)]
        all_done = all(lane in sure or lane in spent for lane in active)
        for lane in list(active) if all_done else spent:
            ended: Ending = "interval" if lane in sure else "budget"
            self._tell(Ended(task=lane.task.index, ended=ended))
            active.remove(lane)
            lane.workload.close()

    def _spent(self, lane: Lane) -> bool:
        least = min(FOR_AN_INTERVAL, self._job.options.least_windows)
        return lane.spent_s >= self._job.options.budget_s and len(lane.times_s) >= least

    def _sure(self, lane: Lane) -> bool:
        options = self._job.options
        if len(lane.times_s) < options.least_windows:
            return False
        estimates = [mean_estimate(lane.times_s, options.confidence)]
        energies_j = [energy for energy in lane.energies_j if energy is not None]
        if energies_j and self._metering.works:
            estimates.append(energy_estimate(energies_j, lane.restoring_j, options.confidence))
        widths = [estimate.relative for estimate in estimates]
        return all(width is not None and width <= options.target for width in widths)

    def _remark(self, lane: Lane, note: str) -> None:
        self._tell(Remarked(task=lane.task.index, note=note))


def _no_difference(lane: Lane, raw: RawWindow) -> str:
    """Say why the energy of restorings cannot be subtracted, "" if it can."""
    if lane.no_restoring:
        return lane.no_restoring
    gap = raw.gap(lane.restoring_s)
    if abs(gap) <= GAP_LIMIT:
        return ""
    what = f"runs and restorings account for {100 * (1 - gap):.1f} % of a window"
    why = (
        "the card waited for this machine between them"
        if gap > 0
        else "restoring by itself is slower"
    )
    return f"{what} ({why}), so that what restoring takes cannot be subtracted"
