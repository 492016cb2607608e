"""Energy between two moments, how far off it can be, and sensors that contradict.

:func:`~eatss.measurement.meters.meter.read` cuts a steady load at the sensor's own updates.
Here the moments are given and what happened between is unknown: a block of code of any kind.

A counter says what was drawn up to each of its updates, and nothing of the time between two. So
up to a moment at least the joules of the update before were drawn, and at most those of the update
after; in between any course that never falls is possible. What was drawn between two moments is at
least what the end has at least over what the begin has at most, and at most the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eatss.base.frozen import frozen
from eatss.measurement.meters.background import SHARP_S
from eatss.measurement.meters.meter import (
    POWER_SETTLE_S,
    Floats,
    Trace,
    arrays,
    read,
    trapezoids,
    update_period_s,
)

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
    known = arrays(trace)
    if isinstance(known, str):
        return known
    tell = _by_counter if trace.kind == "energy" else _by_power
    told = tell(trace, *known, begin_s, end_s)
    if isinstance(told, str) or told.uncertainty_j < told.energy_j:
        return told
    times = "once" if told.updates == 1 else f"{told.updates} times"
    moved = f"moved {times}" if told.updates else "did not move"
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
    begin, end = (_counter_at(one, times, joules, whole.power_w) for one in (begin_s, end_s))
    likely_j = end.likely_j - begin.likely_j
    least_j = max(0.0, end.least_j - begin.most_j)
    most_j = end.most_j - begin.least_j
    return IntervalEnergy(
        meter=trace.meter,
        energy_j=likely_j,
        uncertainty_j=max(most_j - likely_j, likely_j - least_j) + 2 * RESOLUTION_J,
        updates=int(((times >= begin_s) & (times <= end_s)).sum()),
    )


class _Bounds(NamedTuple):
    """What a counter was at a moment: at least, most likely, at most."""

    least_j: float
    likely_j: float
    most_j: float


def _counter_at(moment_s: float, times: Floats, joules: Floats, power_w: float) -> _Bounds:
    # An update may be stamped late: what was drawn before ``certain[k]`` is in ``joules[k]``.
    certain = times - SHARP_S
    before_j, since_j, beyond_j = (
        power_w * max(0.0, float(late_s))
        for late_s in (times[0] - moment_s, moment_s - times[-1], moment_s - certain[-1])
    )
    passed = max(int(np.searchsorted(times, moment_s, "right")) - 1, 0)
    following = min(int(np.searchsorted(certain, moment_s)), len(joules) - 1)
    after_j = joules[-1] + 2 * since_j if since_j > 0 else -math.inf
    most_j = joules[0] if moment_s < times[0] else max(joules[following] + beyond_j, after_j)
    return _Bounds(
        least_j=float(joules[passed]) - 2 * before_j,
        likely_j=float(np.interp(moment_s, times, joules)) + since_j - before_j,
        most_j=float(most_j),
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
