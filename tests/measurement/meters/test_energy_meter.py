"""``with energy_meter() as meter``: always a result, never a made-up number."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import eatss
from eatss.measurement.energy_meter import EnergyMeter, energy_meter, wait_for_cards
from eatss.measurement.meters import Meter, MeterError, Sample, Trace
from tests.refusals import refusing

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml, VirtualTime


Make = Callable[..., EnergyMeter]


class ReplayMeter:
    """A meter whose sensor tells of its recording what a trace tells from its begin on."""

    def __init__(self, trace: Trace, clock: VirtualTime) -> None:
        self.name, self._trace, self._clock = trace.meter, trace, clock

    def start(self) -> None:
        self._begin_s = self._clock.now()

    def stop(self) -> Trace:
        end_s = self._clock.now()
        moved = (one._replace(time_s=one.time_s + self._begin_s) for one in self._trace.samples)
        return replace(self._trace, samples=tuple(one for one in moved if one.time_s <= end_s))


def counter(power_w: float = 400.0, *, seconds: float = 20.0) -> Trace:
    return Trace(
        meter="NVML energy counter",
        kind="energy",
        samples=tuple(
            Sample(time_s=k / 10, value=power_w * k / 10) for k in range(int(10 * seconds))
        ),
    )


def power(power_w: float = 410.0, *, seconds: float = 20.0) -> Trace:
    return Trace(
        meter="NVML power",
        kind="power",
        samples=tuple(Sample(time_s=k / 20, value=power_w) for k in range(int(20 * seconds))),
    )


@pytest.fixture
def virtual(make_time: type[VirtualTime], make_fake: type[FakeNvml]) -> tuple[VirtualTime, Make]:
    """A clock, and a maker of meters that live on it and replay traces."""
    clock = make_time()
    module = make_fake(now=clock.now)

    def make(*traces: Trace, **options: Any) -> EnergyMeter:
        meters: list[Meter] = [ReplayMeter(trace, clock) for trace in traces or (counter(),)]
        return EnergyMeter(
            meters=meters, module=module, now=clock.now, sleep=clock.sleep, **options
        )

    return clock, make


def test_a_block_has_time_energy_and_how_sure_they_are(
    virtual: tuple[VirtualTime, Make],
) -> None:
    clock, make = virtual
    with make(counter(), power()) as meter:
        clock.sleep(2.0)
    result = meter.result
    assert result.time_s == pytest.approx(2.0)
    assert result.energy_j == pytest.approx(800)
    assert result.power_w == pytest.approx(400)
    assert result.uncertainty_j is not None
    assert 0 < result.uncertainty_j <= 2 * 40.01
    assert result.cards[0].meter == "NVML energy counter"
    assert result.cards[0].updates == 20
    assert [check.meter for check in result.cards[0].checks] == ["NVML power"]
    assert result.cards[0].checks[0].energy_j == pytest.approx(820)
    assert result.missing == ()
    assert result.cards[0].device is not None
    assert result.cards[0].device.uuid == "GPU-0"


def test_a_block_shorter_than_the_sensor_tells_has_a_reason_and_no_energy(
    virtual: tuple[VirtualTime, Make],
) -> None:
    clock, make = virtual
    with make(counter(), power()) as meter:
        clock.sleep(0.01)
    result = meter.result
    assert (result.energy_j, result.uncertainty_j, result.power_w) == (None, None, None)
    by_counter, by_power = (one.reason for one in result.missing)
    assert "did not move in 0.01 s (it does every 100 ms)" in by_counter
    assert "the block took only 0.01 s" in by_power


def test_a_block_that_raises_is_measured_up_to_there_and_its_error_goes_on(
    virtual: tuple[VirtualTime, Make],
) -> None:
    clock, make = virtual
    meter = make(counter())

    def work() -> None:
        clock.sleep(1.0)
        raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError), meter:
        work()
    assert meter.result.error == "ZeroDivisionError: by zero"
    assert meter.result.time_s == pytest.approx(1.0)
    assert meter.result.energy_j == pytest.approx(400)


def test_a_meter_that_fails_at_the_end_leaves_a_reason_and_the_next_meter_tells(
    virtual: tuple[VirtualTime, Make],
) -> None:
    clock, make = virtual

    class Vanishing(ReplayMeter):
        def stop(self) -> Trace:
            raise MeterError("the GPU is lost", "restart the machine")

    meter = make()
    meter.meters = [
        Vanishing(counter(), clock),
        ReplayMeter(power(), clock),
    ]
    with meter:
        clock.sleep(2.0)
    result = meter.result
    assert result.cards[0].meter == "NVML power"
    assert result.missing[0].what == "energy by NVML energy counter"
    assert result.missing[0].reason == "the GPU is lost (restart the machine)"


def test_a_card_that_is_lost_in_a_block_ends_nothing_but_its_energy(fake: FakeNvml) -> None:
    with EnergyMeter(module=fake, margin_s=0.0) as meter:
        fake.failing |= dict.fromkeys(
            ("nvmlShutdown", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage"), 15
        )
        time.sleep(0.05)
    assert meter.result.energy_j is None
    assert all("code 15" in one.reason for one in meter.result.missing)


def test_one_meter_measures_one_block_at_a_time_but_meters_nest(
    virtual: tuple[VirtualTime, Make],
) -> None:
    clock, make = virtual
    outer, inner = make(counter()), make(counter())
    with outer:
        clock.sleep(1.0)
        with refusing("EATSS-E061", "measuring a block already"):
            outer.__enter__()
        with inner:
            clock.sleep(1.0)
    assert inner.result.time_s == pytest.approx(1.0)
    assert outer.result.time_s == pytest.approx(2.0 + 2 * 0.15)
    assert outer.result.energy_j == pytest.approx(400 * 2.3)


def test_without_nvml_the_block_runs_and_the_reason_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    monkeypatch.setenv("PATH", str(tmp_path))
    choices: tuple[str, ...] = ("auto", "counter")
    for choice in choices:
        with energy_meter(meter=choice) as meter:
            ran = True
        assert ran
        assert meter.result.energy_j is None
        assert meter.result.power_w is None
        assert meter.result.time_s > 0
        assert any("nvidia-ml-py" in missing.reason for missing in meter.result.missing)
        assert "energy unknown" in str(meter.result)


def test_it_is_public_and_needs_neither_a_solver_nor_a_gpu() -> None:
    assert eatss.energy_meter is energy_meter
    script = """
import eatss, sys
with eatss.energy_meter(margin_s=0) as meter:
    pass
print(sorted({"z3", "islpy", "clang", "pydantic", "cupy"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_several_cards_are_each_told_and_summed(fake: FakeNvml) -> None:
    with EnergyMeter(gpus="all", module=fake, margin_s=0.03) as meter:
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
    wait_for_cards(cuda)
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


def test_a_card_whose_work_failed_is_given_back_all_the_same() -> None:
    cuda = FakeCuda(status=700)
    wait_for_cards(cuda)
    assert "cuCtxPopCurrent_v2 1" in cuda.calls


def test_without_cuda_nothing_is_waited_for() -> None:
    wait_for_cards(SimpleNamespace(cuDeviceGetCount=lambda _: 3))
    wait_for_cards(SimpleNamespace())


@pytest.mark.gpu
def test_a_real_card_draws_something_while_idle() -> None:
    with energy_meter() as meter:
        time.sleep(1.0)
    result = meter.result
    assert result.energy_j is not None, result.missing
    assert result.power_w is not None
    assert 5 < result.power_w < 2000
