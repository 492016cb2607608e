"""A made-up NVML and a made-up clock."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from eatss.measurement.meters.background import Ticker


class VirtualTime(Ticker):
    """A clock that moves only when someone sleeps or a sensor takes its time."""

    def __init__(self, end_s: float = float("inf"), begin_s: float = 100.0) -> None:
        self.time_s = begin_s
        self.begin_s = begin_s
        self.end_s = begin_s + end_s
        self.overshoot: Iterator[float] = itertools.repeat(0.0)

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += max(0.0, seconds) + next(self.overshoot)

    def ended(self) -> bool:
        return self.time_s >= self.end_s


class FakeNvml:
    """Stands in for ``pynvml``: one steady card; ``failing`` maps a function to a return code."""

    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(f"code {value}")
            self.value = value

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.perf_counter,
        power_w: float = 400.0,
        period_s: float = 0.005,
    ) -> None:
        self.now = now
        self.power_watts = power_w
        self.period_s = period_s
        self.begin_s = now()
        self.failing: dict[str, Any] = {}
        self.users = 0
        self.calls = 0
        self.count = 2
        self.mig = [0, 0]
        self.reasons = 0x4
        self.processes: list[Any] = []
        self.power_wobble_w = 0.5

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml"):
            code = object.__getattribute__(self, "failing").get(name)
            if code is not None:

                def fail(*_: Any) -> None:
                    raise FakeNvml.NVMLError(code)

                return fail
        return object.__getattribute__(self, name)

    def _updates(self) -> int:
        return int((self.now() - self.begin_s) / self.period_s)

    def nvmlInit(self) -> None:
        self.users += 1

    def nvmlShutdown(self) -> None:
        self.users -= 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.159"

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index >= self.count:
            raise FakeNvml.NVMLError(2)
        return f"GPU-{index}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in {f"GPU-{index}" for index in range(self.count)}:
            raise FakeNvml.NVMLError(6)
        return uuid

    def nvmlDeviceGetName(self, _: str) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetCudaComputeCapability(self, _: str) -> list[int]:
        return [9, 0]

    def nvmlDeviceGetTotalEnergyConsumption(self, _: str) -> int:
        self.calls += 1
        return int(1000 * self.power_watts * self.period_s * self._updates())

    def nvmlDeviceGetPowerUsage(self, _: str) -> int:
        sign = 1 if self._updates() % 2 else -1
        return int(1000 * (self.power_watts + sign * self.power_wobble_w))

    def nvmlDeviceGetFieldValues(self, _: str, fields: list[int]) -> list[Any]:
        code = self.failing.get("field", 0)
        return [
            SimpleNamespace(fieldId=f, nvmlReturn=code, value=SimpleNamespace(uiVal=412_000))
            for f in fields
        ]

    def nvmlDeviceGetClockInfo(self, _: str, domain: int) -> int:
        return {1: 1980, 2: 3201}[domain]

    def nvmlDeviceGetTemperature(self, _: str, __: int) -> int:
        return 41

    def nvmlDeviceGetCurrentClocksEventReasons(self, _: str) -> int:
        return self.reasons

    def nvmlDeviceGetEnforcedPowerLimit(self, _: str) -> int:
        return 700_000

    def nvmlDeviceGetComputeRunningProcesses(self, _: str) -> list[Any]:
        return self.processes

    def nvmlDeviceGetMigMode(self, _: str) -> list[int]:
        return self.mig


@pytest.fixture
def fake() -> FakeNvml:
    """A card whose sensors move every 5 ms of the real clock."""
    return FakeNvml()


@pytest.fixture
def make_fake() -> type[FakeNvml]:
    return FakeNvml


@pytest.fixture
def make_time() -> type[VirtualTime]:
    return VirtualTime
