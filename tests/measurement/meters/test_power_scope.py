"""What NVML's power is of: a GPU, or the module that it shares with a CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eatss.measurement.meters.interval_energy import power_contradiction
from eatss.measurement.meters.nvml import NvmlDevice, device_info

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml


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


def test_windows_of_a_load_are_compared_by_power() -> None:
    assert not power_contradiction([("counter", 400.0), ("power", 430.0)])
    said = power_contradiction([("counter", 400.0), ("power", 560.0)])
    assert "counter tells 400 W, power 560 W" in said
    assert not power_contradiction([("counter", 400.0)])
    assert not power_contradiction([])
