"""Following a counter and a power sensor: sharp, economical, and never silently broken."""

from __future__ import annotations

import itertools
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.measurement.meters import MeterError, NvmlDevice, Sample, Trace, update_period_s
from eatss.measurement.meters.background import (
    CONFIRM_S,
    CounterMeter,
    follow,
    follow_counter,
)
from eatss.measurement.meters.meter import SHARP_S

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml, VirtualTime


class Counter:
    """Joules that become visible every ``period_s``; a call takes ``call_s``."""

    def __init__(self, clock: VirtualTime, *, period_s: float, call_s: float) -> None:
        self.clock, self.period_s, self.call_s = clock, period_s, call_s
        self.calls = 0

    def __call__(self) -> float:
        self.calls += 1
        self.clock.time_s += self.call_s / 2
        value = 40.0 * int((self.clock.time_s - 100.0) / self.period_s)
        self.clock.time_s += self.call_s / 2
        return value


def trace(samples: list[Sample]) -> Trace:
    return Trace(meter="counter", kind="energy", samples=tuple(samples))


@pytest.mark.parametrize("call_s", [0.0, 0.004])
def test_updates_are_seen_within_two_calls(make_time: type[VirtualTime], call_s: float) -> None:
    clock = make_time(3.0)
    counter = Counter(clock, period_s=0.1, call_s=call_s)
    samples: list[Sample] = []
    follow_counter(counter, clock, samples.append)
    assert 28 <= len(samples) <= 30
    for sample in samples:
        late_s = (sample.time_s - 100.0) % 0.1
        assert late_s <= 2 * call_s + 0.0021 or late_s > 0.0999999


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.floats(0.02, 0.25), st.floats(0.0, 0.015), st.lists(st.floats(0, 0.05), min_size=1))
def test_whatever_calls_and_the_scheduler_take_a_stamp_is_as_sharp_as_promised(
    make_time: type[VirtualTime], period_s: float, call_s: float, overshoots: list[float]
) -> None:
    clock = make_time(1.5)
    clock.overshoot = itertools.cycle([*overshoots, 0.0, 0.0])
    samples: list[Sample] = []
    follow_counter(Counter(clock, period_s=period_s, call_s=call_s), clock, samples.append)
    for sample in samples:
        moved_s = 100.0 + round(sample.value / 40) * period_s
        assert -1e-9 <= sample.time_s - moved_s <= max(SHARP_S, 2 * call_s) + 1e-9


def test_power_that_stays_is_confirmed_and_power_that_moves_is_seen_at_once(
    make_time: type[VirtualTime],
) -> None:
    clock, samples = make_time(2.0), list[Sample]()
    follow(lambda: 90.0 if clock.time_s < 101 else 700.0, clock, samples.append)
    gaps = [b.time_s - a.time_s for a, b in itertools.pairwise(samples)]
    assert max(gaps) <= CONFIRM_S + 0.0051
    first = next(sample for sample in samples if sample.value == 700)
    assert first.time_s == pytest.approx(101.0, abs=0.0051)


def test_a_card_that_vanishes_while_recording_is_reported_at_the_end(fake: FakeNvml) -> None:
    meter = CounterMeter(NvmlDevice(module=fake).total_energy_j)
    meter.start()
    fake.failing["nvmlDeviceGetTotalEnergyConsumption"] = 15
    time.sleep(0.03)
    with pytest.raises(MeterError, match="code 15"):
        meter.stop()
    fake.failing.clear()
    meter.start()
    assert meter.stop().kind == "energy"


@pytest.mark.gpu
def test_a_real_counter_moves_in_a_steady_rhythm() -> None:
    with closing(NvmlDevice()) as device:
        meter = CounterMeter(device.total_energy_j)
        meter.start()
        time.sleep(1.5)
        period = update_period_s(meter.stop())
    assert period is not None
    assert 0.005 < period < 1.2
