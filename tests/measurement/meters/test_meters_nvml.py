"""NVML's answers and refusals, in words."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eatss.measurement.measurement import CardState
from eatss.measurement.meters import MeterError, NvmlDevice, NvmlError, card_state, device_info

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml


@pytest.mark.parametrize(("code", "word"), [(9, "modprobe"), (3, "Volta")])
def test_what_the_driver_refuses_is_said_with_what_to_do(
    fake: FakeNvml, code: int, word: str
) -> None:
    device = NvmlDevice(module=fake)
    fake.failing["nvmlDeviceGetTotalEnergyConsumption"] = code
    with pytest.raises(NvmlError, match=f"energy counter: code {code}") as caught:
        device.total_energy_j()
    assert word in caught.value.remedy


def test_units_are_joules_watts_and_megahertz(fake: FakeNvml) -> None:
    fake.period_s, fake.begin_s = 1.0, fake.now() - 10.5
    with closing(NvmlDevice(1, module=fake)) as device:
        assert device.total_energy_j() == pytest.approx(4000)
        assert device.power_w() == pytest.approx(400, abs=1)
        assert device.known("power_limit_w") == pytest.approx(700)
        assert (device.known("name"), device.known("uuid")) == ("NVIDIA H200", "GPU-1")


def test_nvml_is_given_back_as_often_as_it_was_taken(fake: FakeNvml) -> None:
    first, second = NvmlDevice(module=fake), NvmlDevice("GPU-1", module=fake)
    assert fake.users == 2
    first.close()
    first.close()
    assert fake.users == 1
    second.close()
    assert fake.users == 0
    with pytest.raises(MeterError, match="card 7: code 2"):
        NvmlDevice(7, module=fake)
    with pytest.raises(MeterError, match="code 6"):
        NvmlDevice("GPU-none", module=fake)
    assert fake.users == 0


def test_the_state_of_a_card_is_in_words(fake: FakeNvml) -> None:
    fake.reasons = 0x1 | 0x4 | 0x40
    assert card_state(NvmlDevice(module=fake)) == CardState(
        sm_clock_mhz=1980,
        memory_clock_mhz=3201,
        temperature_c=41,
        throttle=("software power cap", "hardware thermal slowdown"),
    )


@pytest.mark.parametrize(("mode", "enabled"), [([1, 1], True), ([0, 1], False)])
def test_mig_is_seen(fake: FakeNvml, mode: list[int], enabled: bool) -> None:
    fake.mig = mode
    assert NvmlDevice(module=fake).mig_enabled() is enabled


def answering(gpu_w: float, module_w: float | None) -> Any:
    """Return what a driver answers that knows scopes: 3 is ``not supported``."""
    told = {0: gpu_w, 1: module_w}

    def answer(_: str, fields: list[tuple[int, int]]) -> list[Any]:
        watts = told[fields[0][1]]
        value = SimpleNamespace(uiVal=int(1000 * (watts or 0)))
        return [SimpleNamespace(nvmlReturn=0 if watts is not None else 3, value=value)]

    return answer


@pytest.mark.parametrize(
    ("gpu_w", "module_w", "scope"),
    [(400.0, None, "GPU"), (400.0, 400.0, "GPU"), (400.0, 550.0, "GPU"), (290.0, 400.0, "module")],
)
def test_the_scope_is_the_one_whose_power_is_told(
    fake: FakeNvml, gpu_w: float, module_w: float | None, scope: str
) -> None:
    fake.nvmlDeviceGetFieldValues = answering(gpu_w, module_w)  # type: ignore[method-assign]
    device = NvmlDevice(0, module=fake)
    assert device_info(device).power_scope == scope
    device.close()


def test_a_driver_without_scopes_tells_none(fake: FakeNvml) -> None:
    fake.failing["nvmlDeviceGetFieldValues"] = 3
    device = NvmlDevice(0, module=fake)
    assert device_info(device).power_scope == ""
    device.close()


@pytest.mark.gpu
def test_a_real_card_tells_its_energy_and_state() -> None:
    with closing(NvmlDevice()) as device:
        assert device.total_energy_j() > 0
        assert 5 < device.power_w() < 2000
        state = card_state(device)
        assert state.sm_clock_mhz is not None
        assert state.temperature_c is not None
        assert state.throttle is not None
