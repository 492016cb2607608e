"""The protocol of energy meters, what they record, and power over time as data from it.

From a trace to joules: what one meter says of one window, or why it says nothing.

How far off a reading can be. A counter's update happens at an unknown moment ``u``; the first
reading after it is stamped ``s``, with ``0 <= s - u <= d``, ``d`` being the time between two polls
(two calls at most, see ``nvml.py``). The joules between two updates are exact to 1 mJ, the time
between their stamps is off by ``d`` at most, so the mean power between them is off by at most
``d / span`` of itself, plus 1 mJ / span.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from eatss.base.frozen import frozen
from eatss.measurement.measurement import Reading

TraceKind: TypeAlias = Literal["energy", "power"]


@frozen
class Sample:
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


@runtime_checkable
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
    usable = [trace for trace in traces if trace.samples]
    power = next((trace for trace in usable if trace.kind == "power"), None)
    if power is not None:
        found: Iterator[Sample] = iter(power.samples)
    else:
        found = _from_counter(next((trace for trace in usable if trace.kind == "energy"), None))
    return tuple(
        PowerSample(time_s=sample.time_s - begin_s, power_w=sample.value)
        for sample in found
        if sample.time_s <= end_s
    )


def _from_counter(trace: Trace | None) -> Iterator[Sample]:
    """Yield the mean power between readings of a counter, in the middle of the time between."""
    if trace is None:
        return
    last = trace.samples[0]
    for sample in trace.samples[1:]:
        passed_s = sample.time_s - last.time_s
        if passed_s < 0.95 * STEP_S:
            continue
        if sample.value >= last.value:
            middle_s = (sample.time_s + last.time_s) / 2
            yield Sample(time_s=middle_s, value=(sample.value - last.value) / passed_s)
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


@frozen
class Period:
    """Time between updates of a sensor: ``count`` intervals."""

    median_s: float
    longest_s: float
    count: int


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
    samples = _in_order(trace)
    if isinstance(samples, str):
        return samples
    inside = [s for s in samples if begin_s + settle_s <= s.time_s <= end_s]
    updates = len(inside) - 1
    if updates < least_intervals:
        seen = f"{len(inside)} update" + "s" * (len(inside) != 1)
        return (
            f"{trace.meter} gave {seen} in a window of {end_s - begin_s:.3g} s"
            f" (the first {settle_s:.3g} s left out), {least_intervals + 1} are needed"
        )
    span_s = inside[-1].time_s - inside[0].time_s
    energy_j = _counted(trace, inside) if trace.kind == "energy" else _integrated(trace, inside)
    if isinstance(energy_j, str):
        return energy_j
    return Reading(
        meter=trace.meter,
        energy_j=energy_j,
        span_s=span_s,
        power_w=energy_j / span_s,
        updates=updates,
    )


def update_period_s(trace: Trace) -> Period | str:
    """Return the time between the updates of a sensor, or why it is not known."""
    samples = _in_order(trace)
    if isinstance(samples, str):
        return samples
    moved = samples[:1] + [b for a, b in pairwise(samples) if b.value != a.value]
    if len(moved) < 2:
        return f"{trace.meter} did not move"
    gaps = np.diff([sample.time_s for sample in moved])
    return Period(median_s=float(np.median(gaps)), longest_s=float(gaps.max()), count=len(gaps))


def steady(trace: Trace, *, last_s: float, within: float) -> bool:
    """Return whether power has settled: whether it stopped rising or falling.

    The mean powers of both halves of the last ``last_s`` seconds differ by at most
    ``within`` of the larger. Single values are not compared, since a sensor of momentary power
    swings under a steady load. A trace that is too short or has too few updates is not steady.
    """
    samples = _in_order(trace)
    if isinstance(samples, str) or len(samples) < 2:
        return False
    end_s = samples[-1].time_s
    begin_s, middle_s = end_s - last_s, end_s - last_s / 2
    if samples[0].time_s > begin_s:
        return False
    halves = [
        read(trace, begin_s, middle_s, settle_s=0.0, least_intervals=2),
        read(trace, middle_s, end_s, settle_s=0.0, least_intervals=2),
    ]
    powers = [half.power_w for half in halves if isinstance(half, Reading)]
    if len(powers) < 2:
        return False
    return abs(powers[1] - powers[0]) <= within * max(powers)


def _in_order(trace: Trace) -> list[Sample] | str:
    """Return the samples, of equal moments the last; a reason where time or a counter runs back."""
    samples: list[Sample] = []
    for sample in trace.samples:
        if not (math.isfinite(sample.time_s) and math.isfinite(sample.value)):
            return f"{trace.meter} gave a value that is no number"
        if samples and sample.time_s < samples[-1].time_s:
            return f"the samples of {trace.meter} are not in the order of time"
        if samples and sample.time_s == samples[-1].time_s:
            samples.pop()
        samples.append(sample)
    return samples


def _counted(trace: Trace, samples: list[Sample]) -> float | str:
    """Return the joules between the first and the last sample of a counter."""
    for before, after in pairwise(samples):
        if after.value < before.value:
            return (
                f"{trace.meter} went back by {before.value - after.value:.6g} J in the window:"
                " it wrapped or the driver was loaded anew"
            )
    energy_j = samples[-1].value - samples[0].value
    if energy_j <= 0:
        return f"{trace.meter} did not move in the window"
    return energy_j


def _integrated(trace: Trace, samples: list[Sample]) -> float | str:
    """Return the joules under the samples of power."""
    times = np.array([sample.time_s for sample in samples])
    watts = np.array([sample.value for sample in samples])
    if (watts < 0).any():
        return f"{trace.meter} gave a negative power"
    gaps = np.diff(times)
    longest = float(gaps.max())
    if longest > max(LEAST_GAP_S, GAP_FACTOR * float(np.median(gaps))):
        return f"{trace.meter} gave nothing for {longest:.3g} s of the window"
    energy_j = float(gaps @ (watts[1:] + watts[:-1]) / 2)  # trapezoids
    if energy_j <= 0:
        return f"{trace.meter} gave a power of zero, as a sensor does that is not there"
    return energy_j
