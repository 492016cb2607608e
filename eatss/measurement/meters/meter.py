"""The protocol of energy meters, what they record, and joules and power over time from it.

Of a window of steady load (:func:`read`), how far off a reading can be: a counter's update happens
at an unknown moment ``u``; the first reading after it is stamped ``s``, with ``0 <= s - u <= d``,
``d`` being the time between two polls (two calls at most, see ``nvml.py``). The joules between two
updates are exact to 1 mJ, the time between their stamps is off by ``d`` at most, so the mean power
between them is off by at most ``d / span`` of itself, plus 1 mJ / span.

Of a block of code of any kind (:func:`interval_energy`) the moments are given, and what happened
between is unknown. A counter says what was drawn up to each of its updates, and nothing of the time
between two. So up to a moment at least the joules of the update before were drawn, and at most
those of the update after; in between any course that never falls is possible. What was drawn
between two moments is at least what the end has at least over what the begin has at most, and at
most the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.base.text import class_and_line, one_line
from eatss.measurement.measurement import Reading

TraceKind: TypeAlias = Literal["energy", "power"]

Floats: TypeAlias = NDArray[np.float64]


class Sample(NamedTuple):
    """A value of a sensor at a time of ``time.perf_counter``: joules of a counter, or watts."""

    time_s: float
    value: float


@frozen
class Trace:
    """What a meter saw: for a counter of energy, the moments at which it moved.

    ``samples`` are in the order of time. Samples of an ``energy`` trace are the first readings
    after each update; those of a ``power`` trace are the first readings of each new value.
    """

    meter: str
    kind: TraceKind
    samples: tuple[Sample, ...]


class Meter(Protocol):
    """A way to learn what a card draws. Recording costs the card nothing and needs no root."""

    @property
    def name(self) -> str:
        """Name for results, like ``NVML energy counter`` or ``nvidia-smi``."""
        ...

    def start(self) -> None:
        """Begin to record, in a thread or a process of its own.

        Raises:
            MeterError: the sensor does not answer.
        """
        ...

    def stop(self) -> Trace:
        """End recording and return the trace.

        Raises:
            MeterError: the sensor stopped answering.
        """
        ...


class MeterError(Exception):
    """A sensor that does not work here: a sentence, and what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy

    @property
    def whole(self) -> str:
        """The sentence, and in brackets what to do."""
        return f"{self} ({self.remedy})" if self.remedy else str(self)


class Recorder:
    """Meters of one card, which record together; one that fails is left out from then on.

    ``failures`` say why, by the names of meters.
    """

    def __init__(self, meters: Sequence[Meter]) -> None:
        self.live = list(meters)
        self.failures: dict[str, str] = {}

    @contextmanager
    def recording(self) -> Iterator[list[Trace]]:
        """Record while the block runs; the traces are in the list after it."""
        traces: list[Trace] = []
        started = []
        for meter in tuple(self.live):
            with self._guarded(meter):
                meter.start()
                started.append(meter)
        try:
            yield traces
        finally:
            for meter in started:
                with self._guarded(meter):
                    traces.append(meter.stop())

    @contextmanager
    def _guarded(self, meter: Meter) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of any package's meter
            self.live.remove(meter)
            self.failures[meter.name] = reason_of(error)


def reason_of(error: Exception) -> str:
    """Return what a sensor raised as a reason."""
    if isinstance(error, MeterError):
        return error.whole
    if isinstance(error, EatssError):
        return one_line(error, 400)
    return f"it failed: {class_and_line(error, 400)}"


STEP_S = 0.1
"""Power is told from a counter of energy over at least so long."""


@frozen
class PowerSample:
    """What was drawn at a time, in seconds since the work began; before it, negative.

    Attributes:
        time_s: Seconds since the block or the program began.
        power_w: Watts.
    """

    time_s: float
    power_w: float


def power_samples(traces: Sequence[Trace], begin_s: float, end_s: float) -> tuple[PowerSample, ...]:
    """Return the power to the end of a block: as a meter told it, else from a counter of energy.

    Args:
        traces: of one source; the first of a sensor of power is taken, if there is one.
        begin_s: when the block began, by the clock of the traces: 0 of the samples.
        end_s: when it ended; later samples are left out.
    """
    first = {trace.kind: trace.samples for trace in reversed(traces) if trace.samples}
    return tuple(
        PowerSample(time_s=sample.time_s - begin_s, power_w=sample.value)
        for sample in first.get("power") or _from_counter(first.get("energy", ()))
        if sample.time_s <= end_s
    )


def _from_counter(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield the mean power between readings of a counter, in the middle of the time between."""
    last: Sample | None = None
    for sample in samples:
        if last is not None:
            passed_s, drawn_j = sample.time_s - last.time_s, sample.value - last.value
            if passed_s < 0.95 * STEP_S:
                continue
            if drawn_j >= 0:
                middle_s = (sample.time_s + last.time_s) / 2
                yield Sample(time_s=middle_s, value=drawn_j / passed_s)
        last = sample


COUNTER_SETTLE_S = 0.05
"""An update stamped this much after the begin of a window happened inside it, and the joules
before it, which may be those of an idle card, are left out."""

POWER_SETTLE_S = 1.0
"""NVML's power is the mean of the last second on Ampere and newer cards (GA100 left out), so the
first second of a window still tells of the time before it."""

LEAST_INTERVALS = 3
"""Fewer intervals between updates than this say nothing."""

GAP_FACTOR = 5.0
LEAST_GAP_S = 0.5
"""A sensor that gives nothing for this long, and for this many times its usual period, paused."""


def read(
    trace: Trace,
    begin_s: float,
    end_s: float,
    *,
    settle_s: float | None = None,
    least_intervals: int = LEAST_INTERVALS,
) -> Reading | str:
    """Return the energy of the steady load between two moments, or why there is no number.

    A counter is read at its first update after ``begin_s + settle_s`` and at its last one before
    ``end_s``; power is integrated by trapezoids between such samples. Trapezoids, since a trace
    of power holds the moments at which a value was first seen: holding a value to the next
    one would be late by a period on average, holding it from the last one early by as much.

    Args:
        trace: what a meter recorded.
        begin_s: when the load began, by the clock of the trace.
        end_s: when it ended.
        settle_s: time after ``begin_s`` to leave out; by default 0.05 s for a counter and 1 s for
            power, which NVML averages over the last second.
        least_intervals: fewer intervals between updates give a reason.

    Returns:
        The reading, or a sentence that says why there is none.
    """
    if settle_s is None:
        settle_s = COUNTER_SETTLE_S if trace.kind == "energy" else POWER_SETTLE_S
    times, values = arrays(trace)
    inside = (times >= begin_s + settle_s) & (times <= end_s)
    times, values = times[inside], values[inside]
    updates = len(times) - 1
    if updates < least_intervals:
        seen = f"{len(times)} update" + "s" * (len(times) != 1)
        return (
            f"{trace.meter} gave {seen} in a window of {end_s - begin_s:.3g} s"
            f" (the first {settle_s:.3g} s left out), {least_intervals + 1} are needed"
        )
    energy_j = (_counted if trace.kind == "energy" else _integrated)(trace, times, values)
    if isinstance(energy_j, str):
        return energy_j
    span_s = float(times[-1] - times[0])
    return Reading(
        meter=trace.meter,
        energy_j=energy_j,
        span_s=span_s,
        power_w=energy_j / span_s,
        updates=updates,
    )


def update_period_s(trace: Trace) -> float | None:
    """Return the usual time between updates of a sensor, ``None`` if it is not known."""
    times, values = arrays(trace)
    gaps = np.diff(times[np.diff(values, prepend=np.nan) != 0])
    return float(np.median(gaps)) if len(gaps) else None


def steady(trace: Trace, *, last_s: float, within: float) -> bool:
    """Return whether power has settled: whether it stopped rising or falling.

    The mean powers of both halves of the last ``last_s`` seconds differ by at most
    ``within`` of the larger. Single values are not compared, since a sensor of momentary power
    swings under a steady load. A trace that is too short or has too few updates is not steady.
    """
    end_s = trace.samples[-1].time_s if trace.samples else 0.0
    begin_s, middle_s = end_s - last_s, end_s - last_s / 2
    if not trace.samples or trace.samples[0].time_s > begin_s:
        return False
    halves = [
        read(trace, *half, settle_s=0.0, least_intervals=2)
        for half in ((begin_s, middle_s), (middle_s, end_s))
    ]
    powers = [half.power_w for half in halves if isinstance(half, Reading)]
    return len(powers) == 2 and abs(powers[1] - powers[0]) <= within * max(powers)


def arrays(trace: Trace) -> tuple[Floats, Floats]:
    """Return times and values that are numbers, of equal times the last."""
    times, values = np.array(trace.samples, float).reshape(-1, 2).T
    told = (np.diff(times, append=np.inf) > 0) & np.isfinite(values)
    return times[told], values[told]


def _counted(trace: Trace, _: Floats, joules: Floats) -> float | str:
    """Return the joules between the first and the last sample of a counter."""
    back_j = -np.diff(joules).min()
    if back_j > 0:
        return (
            f"{trace.meter} went back by {back_j:.6g} J in the window:"
            " it wrapped or the driver was loaded anew"
        )
    energy_j = float(joules[-1] - joules[0])
    return energy_j if energy_j > 0 else f"{trace.meter} did not move in the window"


def _integrated(trace: Trace, times: Floats, watts: Floats) -> float | str:
    """Return the joules under the samples of power."""
    gaps = np.diff(times)
    longest = float(gaps.max())
    if longest > max(LEAST_GAP_S, GAP_FACTOR * float(np.median(gaps))):
        return f"{trace.meter} gave nothing for {longest:.3g} s of the window"
    if not (watts >= 0).all() or not watts.any():
        return f"{trace.meter} gave no power, or one that cannot be, as a sensor that is not there"
    return trapezoids(times, watts)


def trapezoids(times: Floats, watts: Floats) -> float:
    """Return the joules under samples of power."""
    return float(np.diff(times) @ (watts[1:] + watts[:-1]) / 2)


SHARP_S = 0.02
"""An update is recorded if the call before it was no longer ago than this; else nobody knows when
it happened (the thread was not scheduled, or slept too long), and it is left out."""

RESOLUTION_J = 1e-3
"""NVML counts whole millijoules."""


@frozen
class IntervalEnergy:
    """Joules between two moments as one meter tells them.

    The true value lies within ``uncertainty_j`` as far as the sensor itself is right: it is what
    the time between the sensor's values leaves open. ``updates`` counts its values between.
    """

    meter: str
    energy_j: float
    uncertainty_j: float
    updates: int


def interval_energy(trace: Trace, begin_s: float, end_s: float) -> IntervalEnergy | str:
    """Return the energy drawn between two moments, or why it is not known.

    A counter is interpolated between the updates around each moment; the uncertainty is what the
    card may have drawn otherwise: an update's joules may all fall on one side of the moment.
    Where the trace ends before an update follows, the mean power is continued, and all that is
    added so counts as uncertain. Power is integrated; since NVML's is the mean of the last
    second, a block has to be longer than that, and the largest change of power, for a second,
    is uncertain. An energy that is not more than its uncertainty is not known.
    """
    time_s = end_s - begin_s
    if time_s <= 0:
        return "the block took no time"
    tell = _by_counter if trace.kind == "energy" else _by_power
    told = tell(trace, *arrays(trace), begin_s, end_s)
    if isinstance(told, str) or told.uncertainty_j < told.energy_j:
        return told
    moved = f"moved {told.updates} times" if told.updates else "did not move"
    period_s = update_period_s(trace)
    usual = f" (it does every {1e3 * period_s:.3g} ms)" if period_s else ""
    return (
        f"{told.meter} {moved} in {time_s:.3g} s{usual}, which tells an energy below "
        f"{told.energy_j + told.uncertainty_j:.2g} J only"
    )


def _by_counter(
    trace: Trace, times: Floats, joules: Floats, begin_s: float, end_s: float
) -> IntervalEnergy | str:
    if len(times) < 2:
        time_s = end_s - begin_s
        return f"{trace.meter} gave fewer than two updates around a block of {time_s:.3g} s"
    whole = read(trace, times[0], times[-1], settle_s=0.0, least_intervals=1)
    if isinstance(whole, str):
        return whole
    # beyond its ends the counter goes on with the mean power, as far again as it is asked for
    early_s, late_s = (
        2 * max(0.0, float(beyond_s)) + SHARP_S
        for beyond_s in (times[0] - begin_s, end_s - times[-1])
    )
    at = np.r_[times[0] - early_s, times, times[-1] + late_s]
    counts = np.r_[joules[0] - whole.power_w * early_s, joules, joules[-1] + whole.power_w * late_s]
    moments = (begin_s, end_s)
    likely_j = float(np.ptp(np.interp(moments, at, counts)))
    least = counts[np.searchsorted(at, moments, "right") - 1]
    # an update may be stamped late: what was drawn ``SHARP_S`` before is in it
    most = counts[np.searchsorted(at - SHARP_S, moments)]
    most_j, least_j = float(most[1] - least[0]), max(0.0, float(least[1] - most[0]))
    return IntervalEnergy(
        meter=trace.meter,
        energy_j=likely_j,
        uncertainty_j=max(most_j - likely_j, likely_j - least_j) + 2 * RESOLUTION_J,
        updates=int(((times >= begin_s) & (times <= end_s)).sum()),
    )


def _by_power(
    trace: Trace, times: Floats, values: Floats, begin_s: float, end_s: float
) -> IntervalEnergy | str:
    if end_s - begin_s < POWER_SETTLE_S:
        took = f"the block took only {end_s - begin_s:.3g} s"
        return f"{trace.meter} averages over {POWER_SETTLE_S:g} s, {took}"
    inside = read(trace, begin_s, end_s, settle_s=0.0)
    if isinstance(inside, str):
        return inside
    moments = np.concatenate(([begin_s], times[(times > begin_s) & (times < end_s)], [end_s]))
    watts = np.interp(moments, times, values)
    return IntervalEnergy(
        meter=trace.meter,
        energy_j=trapezoids(moments, watts),
        uncertainty_j=float(values.max() - values.min()) * POWER_SETTLE_S,
        updates=inside.updates + 1,
    )
