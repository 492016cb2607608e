"""``with energy_meter() as meter``: always a result, never a made-up number."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.measurement.energy_meter import EnergyMeter, energy_meter
from eatss.measurement.meters import Meter, MeterError, Sample, Trace
from tests.measurement.replay import ReplayMeter

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml, VirtualTime


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
def virtual(
    make_time: type[VirtualTime], make_fake: type[FakeNvml]
) -> tuple[VirtualTime, Callable[..., EnergyMeter]]:
    """A clock, and a maker of meters that live on it and replay traces."""
    clock = make_time()
    module = make_fake(now=clock.now)

    def make(*traces: Trace, **options: Any) -> EnergyMeter:
        meters: list[Meter] = [ReplayMeter([trace], clock=clock.now) for trace in traces]
        return EnergyMeter(
            meters=meters, module=module, now=clock.now, sleep=clock.sleep, **options
        )

    return clock, make


def test_a_block_has_time_energy_and_how_sure_they_are(
    virtual: tuple[VirtualTime, Callable[..., EnergyMeter]],
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
    assert result.cards[0].before is not None
    assert result.cards[0].before == result.cards[0].after


def test_a_block_shorter_than_the_sensor_tells_has_a_reason_and_no_energy(
    virtual: tuple[VirtualTime, Callable[..., EnergyMeter]],
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
    virtual: tuple[VirtualTime, Callable[..., EnergyMeter]],
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
    virtual: tuple[VirtualTime, Callable[..., EnergyMeter]],
) -> None:
    clock, make = virtual

    class Vanishing(ReplayMeter):
        def stop(self) -> Trace:
            raise MeterError("the GPU is lost", "restart the machine")

    meter = make()
    meter.meters = [
        Vanishing([counter()], clock=clock.now),
        ReplayMeter([power()], clock=clock.now),
    ]
    with meter:
        clock.sleep(2.0)
    result = meter.result
    assert result.cards[0].meter == "NVML power"
    assert result.missing[0].what == "energy by NVML energy counter"
    assert result.missing[0].reason == "the GPU is lost (restart the machine)"


def test_one_meter_measures_one_block_at_a_time_but_meters_nest(
    virtual: tuple[VirtualTime, Callable[..., EnergyMeter]],
) -> None:
    clock, make = virtual
    outer, inner = make(counter()), make(counter())
    with outer:
        clock.sleep(1.0)
        with pytest.raises(InputError, match="measuring a block already") as caught:
            outer.__enter__()
        assert caught.value.code == "EATSS-E061"
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


@pytest.mark.gpu
def test_a_real_card_draws_something_while_idle() -> None:
    with energy_meter() as meter:
        time.sleep(1.0)
    result = meter.result
    assert result.energy_j is not None, result.missing
    assert result.power_w is not None
    assert 5 < result.power_w < 2000
