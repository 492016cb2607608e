"""Several cards, traces and waiting of ``energy_meter``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eatss.measurement.energy_meter import (
    EnergyMeter,
    cards_in_use,
    wait_for_frameworks,
)
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


def frameworks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put a CuPy on card 1 and a PyTorch on card 0 of three cards; return what they wait for."""
    waited: list[str] = []
    current = [1]

    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None:
            self.before, current[0] = current[0], self.number

        def __exit__(self, *_: object) -> None:
            current[0] = self.before

    runtime = SimpleNamespace(
        getDevice=lambda: current[0],
        deviceSynchronize=lambda: waited.append(f"cupy {current[0]}"),
    )
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=Device))
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: 0,
        synchronize=lambda number=0: waited.append(f"torch {number}"),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    return waited


def test_every_card_in_use_is_waited_for_and_no_other_is_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = frameworks(monkeypatch)
    found = wait_for_frameworks(in_use=lambda: (0, 1))
    assert waited == ["cupy 1", "cupy 0", "torch 0", "torch 1"]
    assert found.by == ("cupy: cards 1, 0", "torch: cards 0, 1")
    assert found.failures == ()


def test_the_result_says_what_was_waited_for(
    virtual: tuple[VirtualTime, Make], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, make = virtual
    with make(synchronize=lambda: None) as meter:
        clock.sleep(1.0)
    assert meter.result.waited_for == ("synchronize()",)
    with make() as meter:
        clock.sleep(1.0)
    assert meter.result.waited_for == ()
    waited = frameworks(monkeypatch)
    monkeypatch.setattr("eatss.measurement.energy_meter.cards_in_use", lambda: None)
    with make() as meter:
        clock.sleep(1.0)
    assert meter.result.waited_for == ("cupy: card 1", "torch: card 0")
    assert waited == ["cupy 1", "torch 0"] * 2


@pytest.mark.parametrize(("status", "active", "used"), [(0, 1, (0, 1)), (0, 0, ()), (3, 1, ())])
def test_a_card_is_in_use_if_this_process_has_a_context_there(
    status: int, active: int, used: tuple[int, ...]
) -> None:
    def count(told: Any) -> int:
        told._obj.value = 2
        return 0

    def state(_: Any, __: Any, told: Any) -> int:
        told._obj.value = active
        return status

    cuda = SimpleNamespace(
        cuDeviceGetCount=count, cuDeviceGet=lambda *_: 0, cuDevicePrimaryCtxGetState=state
    )
    assert cards_in_use(cuda) == used
    assert cards_in_use(SimpleNamespace(cuDeviceGetCount=lambda _: 3)) == ()  # not begun
    assert cards_in_use(SimpleNamespace()) is None
