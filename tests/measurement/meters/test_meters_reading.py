"""From traces to joules: within the bound that is promised, or a reason instead of a number."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.measurement.measurement import Reading
from eatss.measurement.meters import Sample, Trace, TraceKind, read, steady
from eatss.measurement.meters.meter import SHARP_S, IntervalEnergy, interval_energy


def trace(*samples: tuple[float, float], kind: TraceKind = "energy") -> Trace:
    return Trace(
        meter="NVML energy counter" if kind == "energy" else "NVML power",
        kind=kind,
        samples=tuple(Sample(time_s=t, value=v) for t, v in samples),
    )


def counted(power_w: float, *, seconds: float = 3.0, period_s: float = 0.1) -> Trace:
    count = round(seconds / period_s)
    return trace(*((k * period_s, power_w * k * period_s) for k in range(count + 1)))


@dataclass(frozen=True)
class Profile:
    """True power: constant between moments, so that true energy is known exactly."""

    moments: tuple[float, ...]
    watts: tuple[float, ...]

    def energy_j(self, time_s: float) -> float:
        edges = np.clip((0.0, *self.moments, np.inf), 0.0, max(time_s, 0.0))
        return float(np.dot(np.diff(edges), self.watts))

    def between(self, begin_s: float, end_s: float) -> float:
        return self.energy_j(end_s) - self.energy_j(begin_s)

    def power(self, time_s: float) -> float:
        return self.watts[int(np.searchsorted(self.moments, time_s, side="right"))]


@dataclass(frozen=True)
class Counter:
    """A synthetic counter: when it truly moved, and what was seen of it."""

    truth: Profile
    updates_s: tuple[float, ...]
    trace: Trace
    latest_s: float


@st.composite
def profiles(draw: st.DrawFn, begin_s: float = 0.0, seconds: float = 4.0) -> Profile:
    moments = sorted(draw(st.lists(st.floats(begin_s, begin_s + seconds), max_size=5)))
    watts = draw(st.lists(st.floats(50, 900), min_size=len(moments) + 1, max_size=len(moments) + 1))
    return Profile(moments=tuple(moments), watts=tuple(watts))


@st.composite
def counters(draw: st.DrawFn, latest_s: float = SHARP_S) -> Counter:
    """Updates jitter, are seen up to ``latest_s`` late, count whole millijoules, may be missed."""
    truth = draw(profiles())
    period_s = draw(st.floats(0.03, 0.25))
    count = int(4.0 / period_s)
    share = st.floats(0, 1)
    jitter = draw(st.lists(share, min_size=count, max_size=count))
    late = draw(st.lists(share, min_size=count, max_size=count))
    missed = draw(st.sets(st.integers(0, count - 1), max_size=3))
    kept = [k for k in range(count) if k not in missed]
    moved = {k: (k + 0.3 * jitter[k]) * period_s for k in kept}
    return Counter(
        truth=truth,
        updates_s=tuple(moved.values()),
        trace=trace(
            *(
                (moved[k] + late[k] * latest_s, int(truth.energy_j(moved[k]) * 1000) / 1000)
                for k in kept
            )
        ),
        latest_s=latest_s,
    )


@settings(max_examples=100, deadline=None)
@given(counters(), st.floats(0.2, 1.0), st.floats(2.5, 3.9))
def test_a_counter_reading_is_within_the_promised_bound(
    counter: Counter, begin_s: float, end_s: float
) -> None:
    reading = read(counter.trace, begin_s, end_s)
    if isinstance(reading, str):
        assert "did not move" in reading or "update" in reading
        return
    stamps = [sample.time_s for sample in counter.trace.samples]
    first = next(k for k, t in enumerate(stamps) if t >= begin_s + 0.05)
    last = max(k for k, t in enumerate(stamps) if t <= end_s)
    moved_first, moved_last = counter.updates_s[first], counter.updates_s[last]
    true_j = counter.truth.between(moved_first, moved_last)

    assert begin_s <= moved_first
    assert moved_last <= end_s
    assert reading.energy_j == pytest.approx(true_j, abs=1.1e-3)
    assert abs(reading.span_s - (moved_last - moved_first)) <= counter.latest_s + 1e-9
    true_w = true_j / (moved_last - moved_first)
    bound_w = true_w * counter.latest_s / reading.span_s + 1.1e-3 / reading.span_s
    assert abs(reading.power_w - true_w) <= bound_w * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(counters(), st.floats(0.2, 3.5), st.floats(0.005, 3.0))
def test_the_energy_of_a_block_lies_within_its_uncertainty(
    counter: Counter, begin_s: float, seconds: float
) -> None:
    # The recording goes on for a margin on either side of the block.
    samples = counter.trace.samples
    end_s = min(begin_s + seconds, samples[-1].time_s - 0.05)
    if not samples[0].time_s < begin_s < end_s:
        return
    energy = interval_energy(counter.trace, begin_s, end_s)
    if isinstance(energy, str):
        assert "which tells an energy below" in energy
        return
    true_j = counter.truth.between(begin_s, end_s)
    assert abs(energy.energy_j - true_j) <= energy.uncertainty_j * (1 + 1e-9)


@settings(max_examples=50, deadline=None)
@given(profiles(), st.floats(0.02, 0.12), st.lists(st.floats(0, 1), min_size=200, max_size=200))
def test_integrated_power_is_within_the_swing_between_samples(
    truth: Profile, period_s: float, jitter: list[float]
) -> None:
    times = [(k + 0.4 * jitter[k]) * period_s for k in range(int(4.0 / period_s))]
    power = trace(*((t, truth.power(t)) for t in times), kind="power")
    reading = read(power, 0.5, 3.8, settle_s=0.0)
    assert isinstance(reading, Reading)
    inside = [t for t in times if 0.5 <= t <= 3.8]
    true_j = truth.between(inside[0], inside[-1])
    bound_j = sum(
        (b - a) * np.ptp([truth.power(t) for t in (a, b, *_moments(truth, a, b))])
        for a, b in itertools.pairwise(inside)
    )
    assert abs(reading.energy_j - true_j) <= bound_j + 1e-6
    assert reading.span_s == pytest.approx(inside[-1] - inside[0])


def _moments(truth: Profile, begin_s: float, end_s: float) -> list[float]:
    return [moment for moment in truth.moments if begin_s <= moment <= end_s]


def test_the_first_second_of_power_tells_of_the_time_before_and_is_left_out() -> None:
    mean = [(k * 0.05, 90 + 610 * min(1.0, max(0.0, k * 0.05 - 1.0))) for k in range(100)]
    reading = read(trace(*mean, kind="power"), 1.0, 4.5)
    assert isinstance(reading, Reading)
    assert reading.power_w == pytest.approx(700)
    assert reading.span_s == pytest.approx(2.5)


def test_a_counter_that_runs_back_gives_a_reason() -> None:
    values = [(k * 0.1, 70.0 * k if k < 15 else 70.0 * (k - 15)) for k in range(30)]
    reason = read(trace(*values), 0.0, 3.0)
    assert isinstance(reason, str)
    assert "went back by 980 J" in reason
    after = read(trace(*values), 1.5, 3.0)
    assert isinstance(after, Reading)


def test_a_pause_of_the_driver_does_not_harm_a_counter_but_does_harm_power() -> None:
    times = [k * 0.05 for k in range(100) if not 40 < k < 60]
    reading = read(trace(*((t, 700 * t) for t in times)), 0.0, 5.0)
    assert isinstance(reading, Reading)
    assert reading.power_w == pytest.approx(700)
    reason = read(trace(*((t, 700.0) for t in times), kind="power"), 0.0, 5.0)
    assert reason == "NVML power gave nothing for 1 s of the window"


@pytest.mark.parametrize("power_w", [0.0, -1.0, float("nan")])
def test_power_that_cannot_be_gives_a_reason(power_w: float) -> None:
    assert isinstance(
        read(trace(*((k * 0.1, power_w) for k in range(30)), kind="power"), 0, 3), str
    )


def test_a_load_that_settled_is_steady_and_one_that_rises_is_not() -> None:
    assert steady(counted(700), last_s=1.0, within=0.01)
    rising = trace(*((k * 0.1, 300 * k * 0.1 + 100 * (k * 0.1) ** 2) for k in range(31)))
    assert not steady(rising, last_s=1.0, within=0.02)
    assert steady(rising, last_s=1.0, within=0.2)


def test_a_block_shorter_than_an_update_is_not_known() -> None:
    said = interval_energy(counted(700), 1.02, 1.06)
    assert "did not move in 0.04 s (it does every 100 ms)" in str(said)


def test_averaged_power_says_nothing_of_a_short_block() -> None:
    power = trace(*((k * 0.05, 700.0) for k in range(100)), kind="power")
    assert "averages over 1 s" in str(interval_energy(power, 1.0, 1.5))
    energy = interval_energy(power, 1.01, 3.02)
    assert isinstance(energy, IntervalEnergy)
    assert energy.energy_j == pytest.approx(700 * 2.01)
    assert energy.uncertainty_j == 0


@pytest.mark.parametrize("kind", ["energy", "power"])
def test_a_value_that_is_no_number_is_none(kind: TraceKind) -> None:
    values = [(k * 0.1, float("inf") if k == 29 else 70.0 * k) for k in range(30)]
    reading = read(trace(*values, kind=kind), 0, 3, settle_s=0.0)
    assert isinstance(reading, Reading)
    assert reading.span_s == pytest.approx(2.8)
