"""One window: how many runs it takes, and what a run took by it.

Time. The runs of a window are one call of :meth:`Workload.timed`, so the card's queue is never
empty in it, and the time of a run is the card's own time over the number of runs.

Energy. Before the window the same load runs for half a second (``settle_s``), so that clocks and
power are those of the load when the window begins. The meter is read at its own updates inside the
window, which gives the mean power P; the energy of a run is P times the time of a run. A run longer
than ``LONGEST_SETTLE_S`` is not repeated for settling, and a window of few long runs is cut at
updates that are not the edges of runs, which adds at most the time between two updates at either
end.

Where inputs are restored inside the window, every run is preceded by a restoring. The window
lasted D seconds by the clock of the meters and held n runs, so a run with its restoring took
``P D / n`` joules. Restoring alone, repeated for windows of its own, takes ``P_r D_r / n_r``
joules; the mean of these over its windows is subtracted. Time needs no such subtraction, as
:meth:`Workload.timed` leaves restoring out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from eatss.base.frozen import frozen
from eatss.measurement.card import SteadyLoad
from eatss.measurement.measurement import CardState, LoadState, Reading, Window
from eatss.measurement.metering import Metering, Span, load_state, most_power_w
from eatss.measurement.options import MeasureOptions

SETTLE_S = 0.5
LONGEST_SETTLE_S = 10.0
"""In a run that takes longer the card comes to power early enough to be of no weight."""

MARGIN = 1.02
"""Windows are planned this much longer, so that a slightly faster card does not cut them short."""

SHORT_FACTOR = 1.1
"""Windows of a variant are planned this much longer once one was too short, for good: to take one
again since its runs were fast, time and again, would leave the slow ones in the mean."""

GAP_LIMIT = 0.01
"""Share of a window in which the card did nothing that is worth a remark. Where restorings are
subtracted, energy is not known then: what the card drew waiting is of neither."""

LOOK_S = 0.2
"""Time between looks at clocks while a load runs; each takes the driver a millisecond."""


@frozen
class Pace:
    """How long a run takes by the meters' clock, and how long settling and windows are to last."""

    run_s: float
    window_s: float
    settle_s: float = SETTLE_S

    @property
    def runs(self) -> int:
        """Runs of a window."""
        return max(1, math.ceil(self.window_s * MARGIN / self.run_s))

    @property
    def settling_runs(self) -> int:
        """Runs before a window."""
        return 0 if self.run_s > LONGEST_SETTLE_S else max(1, math.ceil(self.settle_s / self.run_s))

    @property
    def expected_s(self) -> float:
        """Seconds that settling and the window take."""
        return (self.runs + self.settling_runs) * self.run_s


@frozen
class RawWindow:
    """A window before energies are those of a run.

    ``most_power_w`` is the highest value in it of a sensor of power, ``None`` without one.
    """

    span: Span
    runs: int
    card_s: float
    readings: tuple[Reading, ...]
    no_energy: str
    before: CardState
    after: CardState
    during: LoadState
    most_power_w: float | None = None

    @property
    def time_s(self) -> float:
        """Seconds of one run by the card's clock."""
        return self.card_s / self.runs

    @property
    def power_w(self) -> float | None:
        """Mean power, ``None`` where ``no_energy`` says why."""
        return None if self.no_energy else self.readings[0].power_w

    def gap(self, restoring_s: float) -> float:
        """Return the share of the window in which the card did nothing.

        ``restoring_s`` is the time of a restoring before each run, 0 without.
        """
        return 1 - (self.card_s + self.runs * restoring_s) / self.span.duration_s


def least_window_s(options: MeasureOptions, period_s: float | None) -> float:
    """Return how long windows are: the updates at both edges do not count as inside."""
    if period_s is None:
        return options.least_window_s
    return max(options.least_window_s, (options.least_updates + 2) * period_s)


def take_window(
    metering: Metering, workload: SteadyLoad, pace: Pace, *, restoring: bool
) -> RawWindow:
    """Take one window of runs.

    Raises:
        LaunchError: the card refused or a kernel failed.
    """
    card = metering.card
    before = card.state()
    workload.reset()
    card.wait()
    with metering.recording() as traces:
        load_begin_s = card.now()
        if pace.settling_runs:
            workload.timed(pace.settling_runs, restoring=restoring)
        with card.sampled_states(LOOK_S) as seen:
            begin_s = card.now()
            card_s = workload.timed(pace.runs, restoring=restoring)
            end_s = card.now()
        after = card.state()
    span = Span(load_begin_s=load_begin_s, begin_s=begin_s, end_s=end_s)
    readings, why = metering.readings(traces, span)
    return RawWindow(
        span=span,
        runs=pace.runs,
        card_s=card_s,
        readings=readings,
        no_energy=why,
        before=before,
        after=after,
        during=load_state(seen),
        most_power_w=most_power_w(traces, span),
    )


def too_short(raw: RawWindow, options: MeasureOptions) -> bool:
    """Return whether the window lasts too short or its meter moved too few times."""
    return raw.span.duration_s < options.least_window_s or _too_few(raw, options)


def _too_few(raw: RawWindow, options: MeasureOptions) -> bool:
    return not raw.no_energy and any(
        one.updates < options.least_updates for one in raw.readings[:1]
    )


def longer(pace: Pace, raw: RawWindow, options: MeasureOptions) -> Pace:
    """Return the pace after a window that was too short or gave no reading."""
    wanted_s = pace.window_s
    if raw.no_energy:
        wanted_s *= 1.5
    elif raw.span.duration_s < options.least_window_s:
        wanted_s *= SHORT_FACTOR
    elif _too_few(raw, options):
        reading = raw.readings[0]
        lost_s = raw.span.duration_s - reading.span_s
        per_update_s = reading.span_s / reading.updates
        wanted_s = max(wanted_s, lost_s + (options.least_updates + 1) * per_update_s)
    return follow(replace(pace, window_s=wanted_s), raw)


def follow(pace: Pace, raw: RawWindow) -> Pace:
    """Return the pace for the next window, from how long the runs of this one took."""
    return replace(pace, run_s=raw.span.duration_s / raw.runs)


def finish_window(
    raw: RawWindow, *, origin_s: float, restoring_j: float | None, no_energy: str
) -> Window:
    """Return a window with the energy of one run.

    Args:
        raw: as taken.
        origin_s: when the measurement began.
        restoring_j: energy of one restoring where inputs were restored inside the window.
        no_energy: why the energy is not known, "" if it is.
    """
    energy_j: float | None = None
    if raw.power_w is not None and not no_energy:
        if restoring_j is None:
            energy_j = raw.power_w * raw.time_s
        else:
            energy_j = raw.power_w * raw.span.duration_s / raw.runs - restoring_j
    return Window(
        begin_s=raw.span.begin_s - origin_s,
        duration_s=raw.span.duration_s,
        runs=raw.runs,
        time_s=raw.time_s,
        energy_j=energy_j,
        power_w=None if energy_j is None else energy_j / raw.time_s,
        readings=raw.readings,
        before=raw.before,
        after=raw.after,
        during=raw.during,
    )


def idle_power_w(metering: Metering, *, pause_s: float, seconds: float) -> float | str:
    """Return the power of the card doing nothing, or why it is not known.

    Args:
        metering: meters of the card.
        pause_s: time that is left out first, for the card to come to rest.
        seconds: time that is measured.
    """
    sleep = metering.card.sleep
    return metering.power_w(partial(sleep, pause_s), partial(sleep, seconds))
