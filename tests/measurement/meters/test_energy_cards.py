"""Several cards, traces and waiting of ``energy_meter``."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eatss.measurement.energy_meter import EnergyMeter, wait_for_cards
from eatss.measurement.meters import (
    Meter,
    Sample,
    Trace,
)
from tests.measurement.replay import ReplayMeter

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml, VirtualTime

Make = Callable[..., EnergyMeter]


def counter(power_w: float = 400.0, *, seconds: float = 30.0, period_s: float = 0.1) -> Trace:
    times = [k * period_s for k in range(int(seconds / period_s))]
    return Trace(
        meter="NVML energy counter",
        kind="energy",
        samples=tuple(Sample(time_s=t, value=power_w * t) for t in times),
    )


@pytest.fixture
def virtual(make_time: type[VirtualTime], make_fake: type[FakeNvml]) -> tuple[VirtualTime, Make]:
    """A clock, and a maker of meters whose first card replays a counter on it."""
    clock = make_time()
    module = make_fake(now=clock.now)

    def make(trace: Trace | None = None, **options: Any) -> EnergyMeter:
        meters: list[Meter] = [ReplayMeter([trace or counter()], clock=clock.now)]
        return EnergyMeter(
            meters=meters, module=module, now=clock.now, sleep=clock.sleep, **options
        )

    return clock, make


def test_several_cards_are_each_told_and_summed(fake: FakeNvml) -> None:
    with EnergyMeter(device="all", module=fake, margin_s=0.03) as meter:
        time.sleep(0.2)
    found = meter.result
    assert [one.name for one in found.cards] == ["card 0", "card 1"]
    assert [one.device.uuid for one in found.cards if one.device] == ["GPU-0", "GPU-1"]
    each = [one.energy_j for one in found.cards]
    assert None not in each, found.missing
    assert found.energy_j == pytest.approx(sum(one for one in each if one is not None))
    assert found.uncertainty_j == pytest.approx(
        sum(one.uncertainty_j for one in found.cards if one.uncertainty_j is not None)
    )
    assert fake.users == 0
    assert "2 cards" in str(found)


# -- waiting ----------------------------------------------------------------------------------


class FakeCuda:
    """The driver of three cards, of which this process uses the first two."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.calls: list[str] = []
        self.number = -1

    def cuDeviceGetCount(self, told: Any) -> int:
        told._obj.value = 3
        return 0

    def cuDeviceGet(self, told: Any, number: int) -> int:
        told._obj.value = self.number = number
        return 0

    def cuDevicePrimaryCtxGetState(self, _: Any, __: Any, told: Any) -> int:
        told._obj.value = int(self.number < 2)
        return 0

    def cuCtxSynchronize(self) -> int:
        self.calls.append(f"synchronize {self.number}")
        return self.status

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*_: object) -> int:
            self.calls.append(f"{name} {self.number}")
            return 0

        return call


def test_every_card_in_use_is_waited_for_and_no_other_is_touched() -> None:
    cuda = FakeCuda()
    assert wait_for_cards(cuda) == (["card 0", "card 1"], [])
    assert cuda.calls == [
        f"{call} {number}"
        for number in (0, 1)
        for call in (
            "cuDevicePrimaryCtxRetain",
            "cuCtxPushCurrent_v2",
            "synchronize",
            "cuCtxPopCurrent_v2",
            "cuDevicePrimaryCtxRelease_v2",
        )
    ]


def test_a_card_whose_work_failed_is_told() -> None:
    waited, failures = wait_for_cards(FakeCuda(status=700))
    assert waited == []
    assert failures[0] == "card 0 could not be waited for: CUDA error 700"


def test_without_cuda_nothing_is_waited_for() -> None:
    assert wait_for_cards(SimpleNamespace(cuDeviceGetCount=lambda _: 3)) == ([], [])
    assert wait_for_cards(SimpleNamespace()) == ([], [])


def test_the_result_says_what_was_waited_for(
    virtual: tuple[VirtualTime, Make], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, make = virtual
    with make(synchronize=lambda: None) as meter:
        clock.sleep(1.0)
    assert meter.result.waited_for == ("synchronize()",)
    monkeypatch.setattr(
        "eatss.measurement.energy_meter.wait_for_cards", lambda: (["card 1"], ["card 0: busy"])
    )
    with make() as meter:
        clock.sleep(1.0)
    assert meter.result.waited_for == ("card 1",)
    assert [one.reason for one in meter.result.missing] == ["card 0: busy"]
