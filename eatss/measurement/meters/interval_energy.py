"""Energy between arbitrary moments, how far off it can be, and sensors that contradict.

:func:`~eatss.measurement.meters.reading.read` cuts a steady load at the sensor's own updates.
Here the moments are given and what happened between is unknown: blocks of code of any kind.

A counter says what was drawn up to each of its updates, and nothing of the time between two. So
up to a moment ``t`` at least the joules of the update before were drawn, and at most those of the
update after; in between any course that never falls is possible. Over several spans the least and
the most that can have been drawn follow from that alone::

    least = sum over spans of max(0, least(end) - most(begin))
    most  = most(last end) - least(first begin) - sum over gaps of the least that they can take

Where it is known that no more than some power is ever drawn, a gap of a millisecond takes no more
than that for a millisecond, and so of short spans close together the sum is known::

    least >= least(last end) - most(first begin) - sum over gaps of power * time
    most  <= sum over spans of power * time
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eatss.frozen import frozen
from eatss.measurement.meters.background import SHARP_S
from eatss.measurement.meters.meter import Trace
from eatss.measurement.meters.reading import POWER_SETTLE_S, Period, read, update_period_s

RESOLUTION_J = 1e-3
"""NVML counts whole millijoules."""

_Floats = NDArray[np.float64]

Span = tuple[float, float]
"""Begin and end, by the clock of the traces."""


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
    is uncertain.
    """
    return energy_of_spans(Course.of(trace), ((begin_s, end_s),))


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """A trace, ready to be asked for many spans; ``fault`` says why it can tell none.

    ``certain`` are times, rising: what was drawn before ``certain[k]`` is in ``values[k]``, since a
    sample may be stamped late. ``ceiling_w`` is a power that is never exceeded, infinite where none
    is known. ``period_s`` is the usual time between two values of the sensor, ``None`` if it is not
    known.
    """

    trace: Trace
    times: _Floats
    values: _Floats
    certain: _Floats
    power_w: float = 0.0
    fault: str = ""
    ceiling_w: float = math.inf
    period_s: float | None = None

    @classmethod
    def of(cls, trace: Trace, *, ceiling_w: float = math.inf) -> Course:
        """Return the course of a trace."""
        times = np.array([sample.time_s for sample in trace.samples])
        values = np.array([sample.value for sample in trace.samples])
        late = [SHARP_S if sample.late_s is None else sample.late_s for sample in trace.samples]
        certain = np.maximum.accumulate(times - np.array(late))
        period = update_period_s(trace)
        period_s = period.median_s if isinstance(period, Period) else None
        course = cls(trace, times, values, certain, ceiling_w=ceiling_w, period_s=period_s)
        if trace.kind != "energy" or len(times) < 2:
            return course
        whole = read(trace, times[0], times[-1], settle_s=0.0, least_intervals=1)
        if isinstance(whole, str):
            return replace(course, fault=whole)
        return replace(course, power_w=whole.power_w)


def energy_of_spans(course: Course, spans: Sequence[Span]) -> IntervalEnergy | str:
    """Return what was drawn in all of several spans together, or why it is not known.

    Args:
        course: of one meter.
        spans: in the order of time; none begins before the one before it has ended.
    """
    if sum(end_s - begin_s for begin_s, end_s in spans) <= 0:
        return "the block took no time"
    if course.fault:
        return course.fault
    if course.trace.kind == "energy":
        return _by_counter(course, spans)
    return _by_power(course, spans)


def resolved(
    energy: IntervalEnergy | str, time_s: float, period_s: float | None = None
) -> IntervalEnergy | str:
    """Return an energy that is more than its uncertainty, else why there is none.

    Args:
        energy: what a meter tells, or why it does not.
        time_s: of the spans that it is of.
        period_s: the usual time between two values of the meter.
    """
    if isinstance(energy, str) or energy.uncertainty_j < energy.energy_j:
        return energy
    times = "once" if energy.updates == 1 else f"{energy.updates} times"
    moved = f"moved {times}" if energy.updates else "did not move"
    usual = "" if period_s is None else f" (it does every {1e3 * period_s:.3g} ms)"
    return (
        f"{energy.meter} {moved} in {time_s:.3g} s{usual}, which tells an energy below "
        f"{energy.energy_j + energy.uncertainty_j:.2g} J only"
    )


def joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return spans in the order of time, those that overlap as one."""
    found: list[Span] = []
    for begin_s, end_s in sorted(spans):
        if found and begin_s <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end_s))
        else:
            found.append((begin_s, end_s))
    return tuple(found)


def _by_counter(course: Course, spans: Sequence[Span]) -> IntervalEnergy | str:
    times, meter = course.times, course.trace.meter
    if len(times) < 2:
        time_s = spans[-1][1] - spans[0][0]
        return f"{meter} gave fewer than two updates around a block of {time_s:.3g} s"
    likely_j = least_j = most_j = 0.0
    gaps_least_j = gaps_most_j = 0.0
    bounds = [
        (_counter_at(begin_s, course), _counter_at(end_s, course)) for begin_s, end_s in spans
    ]
    before: tuple[float, _Bounds] | None = None
    for (begin_s, end_s), (begin, end) in zip(spans, bounds, strict=True):
        likely_j += end.likely_j - begin.likely_j
        least_j += max(0.0, end.least_j - begin.most_j)
        most_j += min(end.most_j - begin.least_j, course.ceiling_w * (end_s - begin_s))
        if before is not None:
            passed_s, last = begin_s - before[0], before[1]
            gaps_least_j += max(0.0, begin.least_j - last.most_j)
            gaps_most_j += min(begin.most_j - last.least_j, course.ceiling_w * passed_s)
        before = end_s, end
    first, last = bounds[0][0], bounds[-1][1]
    least_j = max(least_j, last.least_j - first.most_j - gaps_most_j)
    most_j = min(most_j, last.most_j - first.least_j - gaps_least_j)
    off_j = max(most_j - likely_j, likely_j - least_j)
    return IntervalEnergy(
        meter=meter,
        energy_j=likely_j,
        uncertainty_j=off_j + 2 * len(spans) * RESOLUTION_J,
        updates=_updates(times, spans),
    )


class _Bounds(NamedTuple):
    """What a counter was at a moment: at least, most likely, at most."""

    least_j: float
    likely_j: float
    most_j: float


def _counter_at(moment_s: float, course: Course) -> _Bounds:
    times, joules, power_w = course.times, course.values, course.power_w
    first_s, last_s, last_j = float(times[0]), float(times[-1]), float(joules[-1])
    if moment_s < first_s:
        first_j, before_j = float(joules[0]), power_w * (first_s - moment_s)
        return _Bounds(first_j - 2 * before_j, first_j - before_j, first_j)
    # An update may be stamped late, so the next one may lie before this moment.
    after = bisect_left(course.certain, moment_s)
    beyond_j = power_w * (moment_s - float(course.certain[-1]))
    most_j = float(joules[after]) if after < len(joules) else last_j + beyond_j
    if moment_s > last_s:
        since_j = power_w * (moment_s - last_s)
        return _Bounds(last_j, last_j + since_j, max(most_j, last_j + 2 * since_j))
    following = bisect_right(times, moment_s)
    least_s, least_j = float(times[following - 1]), float(joules[following - 1])
    if following == len(times):
        return _Bounds(least_j, least_j, most_j)
    slope_w = (float(joules[following]) - least_j) / (float(times[following]) - least_s)
    return _Bounds(least_j, least_j + slope_w * (moment_s - least_s), most_j)


def _by_power(course: Course, spans: Sequence[Span]) -> IntervalEnergy | str:
    meter, energy_j, updates = course.trace.meter, 0.0, 0
    short = [end_s - begin_s for begin_s, end_s in spans if end_s - begin_s < POWER_SETTLE_S]
    if short:
        took = "the block" if len(spans) == 1 else f"{len(short)} of {len(spans)} blocks"
        return f"{meter} averages over {POWER_SETTLE_S:g} s, {took} took only {max(short):.3g} s"
    for begin_s, end_s in spans:
        first, last = np.searchsorted(course.times, (begin_s, end_s), side="left")
        around = course.trace.samples[max(0, first - 1) : last + 1]
        inside = read(replace(course.trace, samples=around), begin_s, end_s, settle_s=0.0)
        if isinstance(inside, str):
            return inside
        within = course.times[(course.times > begin_s) & (course.times < end_s)]
        moments = np.concatenate(([begin_s], within, [end_s]))
        watts = np.interp(moments, course.times, course.values)
        energy_j += float(np.sum(np.diff(moments) * (watts[1:] + watts[:-1]) / 2))
        updates += inside.updates + 1
    swing_w = float(course.values.max() - course.values.min())
    return IntervalEnergy(
        meter=meter,
        energy_j=energy_j,
        uncertainty_j=swing_w * POWER_SETTLE_S * len(spans),
        updates=updates,
    )


def _updates(times: _Floats, spans: Sequence[Span]) -> int:
    return sum(bisect_right(times, end_s) - bisect_left(times, begin_s) for begin_s, end_s in spans)


TOLERANCE = 0.05
"""What a sensor may be off as it is built: NVML's power is specified to 5 %."""


def contradiction(told: Sequence[IntervalEnergy], time_s: float) -> str:
    """Return that sensors contradict the first one, beyond what both leave open; "" if none does.

    Args:
        told: what each tells of the same time.
        time_s: how long that is.
    """
    for other in told[1:]:
        first = told[0]
        open_j = first.uncertainty_j + other.uncertainty_j
        open_j += TOLERANCE * max(first.energy_j, other.energy_j)
        if abs(first.energy_j - other.energy_j) > open_j:
            return _sentence(
                (first.meter, f"{first.energy_j:.4g} J ({first.energy_j / time_s:.4g} W)"),
                (other.meter, f"{other.energy_j:.4g} J ({other.energy_j / time_s:.4g} W)"),
            )
    return ""


def power_contradiction(told: Sequence[tuple[str, float]]) -> str:
    """Return the same of sensors that each tell a mean power of steady loads, in watts."""
    for name, power_w in told[1:]:
        if abs(power_w - told[0][1]) > 2 * TOLERANCE * max(power_w, told[0][1]):
            return _sentence((told[0][0], f"{told[0][1]:.4g} W"), (name, f"{power_w:.4g} W"))
    return ""


def _sentence(one: tuple[str, str], other: tuple[str, str]) -> str:
    return (
        f"sensors contradict each other: {one[0]} tells {one[1]}, {other[0]} {other[1]}; at least "
        "one of them is wrong, or they cover different parts of the board"
    )
