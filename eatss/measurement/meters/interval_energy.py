"""Energy between arbitrary moments, how far off it can be, and sensors that contradict.

:func:`~eatss.measurement.meters.meter.read` cuts a steady load at the sensor's own updates.
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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eatss.base.frozen import frozen
from eatss.measurement.meters.background import SHARP_S
from eatss.measurement.meters.meter import (
    POWER_SETTLE_S,
    Period,
    Trace,
    read,
    update_period_s,
)

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
    def of(cls, trace: Trace, *, ceiling_w: float = math.inf, late_s: float = SHARP_S) -> Course:
        """Return the course of a trace whose stamps are up to ``late_s`` late."""
        times = np.array([sample.time_s for sample in trace.samples])
        values = np.array([sample.value for sample in trace.samples])
        certain = times - late_s
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
    begin_s, end_s = np.array(spans, dtype=float).T
    begin, end = _counter_at(begin_s, course), _counter_at(end_s, course)
    with np.errstate(invalid="ignore"):  # no time at no known power
        span_most_j, gap_most_j = (
            np.fmin(drawn_j, course.ceiling_w * passed_s)
            for drawn_j, passed_s in (
                (end.most_j - begin.least_j, end_s - begin_s),
                (begin.most_j[1:] - end.least_j[:-1], begin_s[1:] - end_s[:-1]),
            )
        )
    likely_j = sum(end.likely_j - begin.likely_j)
    least_j = max(
        sum(np.maximum(0.0, end.least_j - begin.most_j)),
        end.least_j[-1] - begin.most_j[0] - sum(gap_most_j),
    )
    gaps_least_j = sum(np.maximum(0.0, begin.least_j[1:] - end.most_j[:-1]))
    most_j = min(sum(span_most_j), end.most_j[-1] - begin.least_j[0] - gaps_least_j)
    updates = np.searchsorted(times, end_s, "right") - np.searchsorted(times, begin_s)
    return IntervalEnergy(
        meter=meter,
        energy_j=float(likely_j),
        uncertainty_j=float(
            max(most_j - likely_j, likely_j - least_j) + 2 * len(spans) * RESOLUTION_J
        ),
        updates=int(updates.sum()),
    )


class _Bounds(NamedTuple):
    """What a counter was at some moments: at least, most likely, at most."""

    least_j: _Floats
    likely_j: _Floats
    most_j: _Floats


def _counter_at(moments_s: _Floats, course: Course) -> _Bounds:
    times, joules = course.times, course.values
    before_j, since_j, beyond_j = (
        course.power_w * np.maximum(0.0, late_s)
        for late_s in (times[0] - moments_s, moments_s - times[-1], moments_s - course.certain[-1])
    )
    passed = np.maximum(np.searchsorted(times, moments_s, "right") - 1, 0)
    # An update may be stamped late, so the next one may lie before a moment.
    following = np.minimum(np.searchsorted(course.certain, moments_s), len(joules) - 1)
    after_j = np.where(since_j > 0, joules[-1] + 2 * since_j, -math.inf)
    most_j = np.maximum(joules[following] + beyond_j, after_j)
    return _Bounds(
        least_j=joules[passed] - 2 * before_j,
        likely_j=np.interp(moments_s, times, joules) + since_j - before_j,
        most_j=np.where(moments_s < times[0], joules[0], most_j),
    )


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


TOLERANCE = 0.05
"""What a sensor may be off as it is built: NVML's power is specified to 5 %."""


def power_contradiction(told: Sequence[tuple[str, float]]) -> str:
    """Return that a sensor tells another mean power, in watts, of steady loads than the first."""
    for name, power_w in told[1:]:
        first, first_w = told[0]
        if abs(power_w - first_w) > 2 * TOLERANCE * max(power_w, first_w):
            return (
                f"sensors contradict each other: {first} tells {first_w:.4g} W, {name} "
                f"{power_w:.4g} W; at least one of them is wrong, or they cover different parts of "
                "the board"
            )
    return ""
