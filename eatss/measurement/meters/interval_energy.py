"""Energy between two arbitrary moments, and how far off it can be.

:func:`~eatss.measurement.meters.reading.read` cuts a steady load at the sensor's own updates.
Here the moments are given and what happened between is unknown: a block of code of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eatss.measurement.meters.counter import SHARP_S
from eatss.measurement.meters.meter import Trace
from eatss.measurement.meters.reading import POWER_SETTLE_S, read

RESOLUTION_J = 1e-3
"""NVML counts whole millijoules."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    if end_s <= begin_s:
        return "the block took no time"
    if trace.kind == "energy":
        return _by_counter(trace, begin_s, end_s)
    return _by_power(trace, begin_s, end_s)


def _by_counter(trace: Trace, begin_s: float, end_s: float) -> IntervalEnergy | str:
    if len(trace.samples) < 2:
        return (
            f"{trace.meter} gave fewer than two updates around a block of {end_s - begin_s:.3g} s"
        )
    whole = read(
        trace,
        trace.samples[0].time_s,
        trace.samples[-1].time_s,
        settle_s=0.0,
        least_intervals=1,
    )
    if isinstance(whole, str):
        return whole
    times, joules = _arrays(trace)
    first, first_off = _counter_at(begin_s, times, joules, whole.power_w)
    last, last_off = _counter_at(end_s, times, joules, whole.power_w)
    return IntervalEnergy(
        meter=trace.meter,
        energy_j=last - first,
        uncertainty_j=first_off + last_off + 2 * RESOLUTION_J,
        updates=int(np.count_nonzero((times >= begin_s) & (times <= end_s))),
    )


def _counter_at(
    moment_s: float, times: _Floats, joules: _Floats, power_w: float
) -> tuple[float, float]:
    """Return what the counter was at a moment, and how far off that can be."""
    if moment_s < times[0] or moment_s > times[-1]:
        near = 0 if moment_s < times[0] else -1
        beyond_j = power_w * (moment_s - times[near])
        return float(joules[near] + beyond_j), abs(beyond_j)
    value_j = float(np.interp(moment_s, times, joules))
    low_j = float(joules[np.searchsorted(times, moment_s, side="right") - 1])
    # An update is stamped up to SHARP_S late, so the next one may lie before this moment.
    after = int(np.searchsorted(times, moment_s + SHARP_S, side="left"))
    high_j = (
        float(joules[after])
        if after < len(joules)
        else float(joules[-1]) + power_w * (moment_s + SHARP_S - float(times[-1]))
    )
    return value_j, max(value_j - low_j, high_j - value_j)


def _by_power(trace: Trace, begin_s: float, end_s: float) -> IntervalEnergy | str:
    if end_s - begin_s < POWER_SETTLE_S:
        return (
            f"{trace.meter} averages over {POWER_SETTLE_S:g} s, the block took only"
            f" {end_s - begin_s:.3g} s"
        )
    inside = read(trace, begin_s, end_s, settle_s=0.0)
    if isinstance(inside, str):
        return inside
    times, watts = _arrays(trace)
    around = np.concatenate(([begin_s], times[(times > begin_s) & (times < end_s)], [end_s]))
    values = np.interp(around, times, watts)
    energy_j = float(np.sum(np.diff(around) * (values[1:] + values[:-1]) / 2))
    return IntervalEnergy(
        meter=trace.meter,
        energy_j=energy_j,
        uncertainty_j=float(watts.max() - watts.min()) * POWER_SETTLE_S,
        updates=inside.updates + 1,
    )


def _arrays(trace: Trace) -> tuple[_Floats, _Floats]:
    times = np.array([sample.time_s for sample in trace.samples])
    return times, np.array([sample.value for sample in trace.samples])
