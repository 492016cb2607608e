"""The meters and the state of a card around a stretch of load, and windows of runs.

Time. The runs of a window are one call of :meth:`~eatss.measurement.card.SteadyLoad.timed`, so the
card's queue is never empty in it, and the time of a run is the card's own time over the number of
runs.

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
``timed`` leaves restoring out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from eatss.base.frozen import frozen
from eatss.base.targets import CardNumber
from eatss.cards.environment import Check
from eatss.measurement.card import SteadyLoad, named_cards
from eatss.measurement.measurement import CardState, LoadState, Reading, Window
from eatss.measurement.meters.choose import choose_meters
from eatss.measurement.meters.meter import (
    POWER_SETTLE_S,
    MeterError,
    Recorder,
    Trace,
    read,
)
from eatss.measurement.meters.nvml import NvmlDevice
from eatss.measurement.options import MeasureOptions

if TYPE_CHECKING:
    from eatss.measurement.cupy_card import CupyCard


class Metering(Recorder):
    """The meters of a card. One that fails is left out from then on.

    Results rest on the first meter that starts (``primary``) and on no other: where it fails
    later, ``failure`` says why, and no other meter takes its place.
    """

    def __init__(self, card: CupyCard, choice: str) -> None:
        """Get the meters and start each once, to learn which ones work.

        Raises:
            MeterError: the meter that was asked for by name does not work here.
        """
        chosen = card.meters(choice)
        super().__init__(chosen.meters)
        self.card = card
        self.missing = chosen.missing
        with self.recording():
            pass
        self.primary = self.live[0].name if self.live else None

    @property
    def works(self) -> bool:
        """Whether the meter that results rest on still answers."""
        return any(meter.name == self.primary for meter in self.live)

    @property
    def failure(self) -> str:
        """Why no meter tells the energy, or the one that results rest on no more."""
        if self.primary is not None:
            return self.failures.get(self.primary, "")
        reasons = (*self.failures.values(), *(one.reason for one in self.missing))
        return "; ".join(reasons) or "no sensor of energy or power answers here"

    def readings(
        self, traces: Sequence[Trace], load_begin_s: float, begin_s: float, end_s: float
    ) -> tuple[tuple[Reading, ...], str]:
        """Return what the meters say of the time from ``begin_s`` on, the primary first.

        And why that one says nothing. A trace of power is cut from when on it is of the load alone.
        """
        settle_s = _settled_s(load_begin_s, begin_s) - begin_s
        told = {
            trace.meter: read(
                trace, begin_s, end_s, settle_s=None if trace.kind == "energy" else settle_s
            )
            for trace in traces
        }
        found = [one for one in told.values() if isinstance(one, Reading)]
        found.sort(key=lambda reading: reading.meter != self.primary)
        why = told.get(self.primary or "", self.failure)
        return tuple(found), why if isinstance(why, str) else ""

    def power_w(self, settle: Callable[[], object], load: Callable[[], object]) -> float | str:
        """Return the mean power of a load after it has settled, or why it is not known."""
        now = self.card.now
        with self.recording() as traces:
            load_begin_s = now()
            settle()
            begin_s = now()
            load()
            end_s = now()
        readings, why = self.readings(traces, load_begin_s, begin_s, end_s)
        return why or readings[0].power_w

    def idle_power_w(self, *, pause_s: float, seconds: float) -> float | str:
        """Return the power of the card doing nothing, or why it is not known.

        Args:
            pause_s: time that is left out first, for the card to come to rest.
            seconds: time that is measured.
        """
        sleep = self.card.sleep
        return self.power_w(partial(sleep, pause_s), partial(sleep, seconds))

    def primary_trace(self, traces: Sequence[Trace]) -> Trace | None:
        """Return the trace of the primary meter, ``None`` if it gave none."""
        return next((trace for trace in traces if trace.meter == self.primary), None)


def _settled_s(load_begin_s: float, begin_s: float) -> float:
    """Return from when on a sensor of power tells of nothing but the load.

    It tells of a time that is past: of a load's first ``POWER_SETTLE_S`` that before it, too.
    """
    return max(load_begin_s + POWER_SETTLE_S, begin_s)


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
    def all_runs(self) -> int:
        """Runs of settling and of the window."""
        return self.runs + self.settling_runs

    @property
    def expected_s(self) -> float:
        """Seconds that settling and the window take."""
        return self.all_runs * self.run_s

    def after(self, window: Window) -> Pace:
        """Return the pace for the next window, from how long the runs of one took."""
        return replace(self, run_s=window.duration_s / window.runs)


@frozen
class Taken:
    """A window as it was taken, restorings not yet subtracted, and why it has no energy, or ``""``.

    ``most_power_w`` is the highest value in it of a sensor of power, ``None`` without one.
    """

    window: Window
    no_energy: str
    most_power_w: float | None

    def too_short(self, options: MeasureOptions) -> bool:
        """Return whether it lasts too short or its meter moved too few times."""
        readings = () if self.no_energy else self.window.readings[:1]
        return self.window.duration_s < options.least_window_s or any(
            one.updates < options.least_updates for one in readings
        )


def least_window_s(options: MeasureOptions, period_s: float | None) -> float:
    """Return how long windows are: the updates at both edges do not count as inside."""
    return max(options.least_window_s, (options.least_updates + 2) * (period_s or 0.0))


def take_window(metering: Metering, load: SteadyLoad, pace: Pace, *, restoring: bool) -> Taken:
    """Take one window of runs.

    Raises:
        LaunchError: the card refused or a kernel failed.
    """
    card = metering.card
    load.reset()
    card.wait()
    with metering.recording() as traces:
        load_begin_s = card.now()
        if pace.settling_runs:
            load.timed(pace.settling_runs, restoring=restoring)
        with card.sampled_states(LOOK_S) as seen:
            begin_s = card.now()
            time_s = load.timed(pace.runs, restoring=restoring) / pace.runs
            end_s = card.now()
    readings, why = metering.readings(traces, load_begin_s, begin_s, end_s)
    power_w = None if why else readings[0].power_w
    watts = (
        sample.value
        for trace in traces
        for sample in trace.samples
        if trace.kind == "power" and _settled_s(load_begin_s, begin_s) <= sample.time_s <= end_s
    )
    window = Window(
        duration_s=end_s - begin_s,
        runs=pace.runs,
        time_s=time_s,
        energy_j=None if power_w is None else power_w * time_s,
        power_w=power_w,
        readings=readings,
        during=load_state(seen),
    )
    return Taken(window=window, no_energy=why, most_power_w=max(watts, default=None))


def longer(pace: Pace, taken: Taken, options: MeasureOptions) -> Pace:
    """Return the pace after a window that was too short or gave no reading."""
    window, wanted_s = taken.window, pace.window_s
    if taken.no_energy:
        wanted_s *= 1.5
    elif window.duration_s < options.least_window_s:
        wanted_s *= SHORT_FACTOR
    else:
        reading = window.readings[0]
        per_update_s = reading.span_s / reading.updates
        lost_s = window.duration_s - reading.span_s
        wanted_s = max(wanted_s, lost_s + (options.least_updates + 1) * per_update_s)
    return replace(pace, window_s=wanted_s).after(window)


def load_state(seen: Sequence[CardState]) -> LoadState:
    """Return what was seen of a load as one."""
    clocks, memory, warmth, reasons = (
        [value for state in seen if (value := getattr(state, field.name)) is not None]
        for field in fields(CardState)
    )
    return LoadState(
        samples=len(seen),
        sm_clock_lowest_mhz=min(clocks, default=None),
        sm_clock_mean_mhz=float(np.mean(clocks)) if clocks else None,
        sm_clock_highest_mhz=max(clocks, default=None),
        memory_clock_mhz=min(memory, default=None),
        temperature_c=max(warmth, default=None),
        throttle=tuple(dict.fromkeys(chain(*reasons))) if reasons else None,
    )


def examine_sensors(device: CardNumber = 0, *, module: Any = None) -> Check:
    """Look at the energy sensors of a card, for ``eatss doctor``.

    Args:
        device: the card's number as CUDA counts those it sees, or its UUID, as for measuring.
        module: what stands in for ``pynvml``.
    """
    (named,) = named_cards(device, module=module)
    remedy = "time is measured all the same; energy needs a card that tells it"
    try:
        with closing(NvmlDevice(named.device, module=module)) as card:
            chosen = choose_meters("auto", named.device, nvml=card)
    except MeterError as error:
        found, why, remedy = "", named.reason or str(error), error.remedy or remedy
    else:
        found = ", ".join(meter.name for meter in chosen.meters)
        why = "; ".join(one.reason for one in chosen.missing)
    return Check(
        name="energy meter",
        ok=True if found else None,
        found=found or why,
        needed_for="measuring energy",
        remedy="" if found else remedy,
    )
