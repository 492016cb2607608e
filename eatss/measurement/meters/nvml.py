"""What NVML says of one card: energy, power, clocks, who else uses it.

A thin layer over ``pynvml`` that only reads. Every refusal of the driver becomes an
:class:`~eatss.measurement.meters.nvml_errors.NvmlError` with a sentence and a remedy.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from eatss.measurement.measurement import CardState, DeviceInfo
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.meters.nvml_errors import (
    FUNCTION_NOT_FOUND,
    NOT_SUPPORTED,
    UNKNOWN,
    NvmlError,
    nvml_error,
)

_Answer = TypeVar("_Answer")

_POWER_FIELD, _GPU_SCOPE, _MODULE_SCOPE = 186, 0, 1
"""``NVML_FI_DEV_POWER_INSTANT``, and ``NVML_POWER_SCOPE_GPU`` and ``_MODULE``."""

_IDLE_BIT = 0x1
THROTTLE_WORDS = {
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}
"""Bits of NVML's clocks event reasons (once called throttle reasons)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that computes on the card; ``memory_bytes`` is ``None`` where not told."""

    pid: int
    memory_bytes: int | None


class NvmlDevice:
    """One card, asked through NVML; open until :meth:`close`.

    NVML counts its users, so many of these may be open at once, of any thread.
    """

    def __init__(
        self, device: int | str = 0, *, module: Any = None, root: Path = Path("/")
    ) -> None:
        """Open a card.

        Args:
            device: its number as the driver lists it (which is not always CUDA's), or its UUID.
            module: what stands in for ``pynvml``; imported if not given.
            root: where ``/dev`` and ``/proc`` are looked for.

        Raises:
            MeterError: there is no NVML, no driver, or no such card.
        """
        self._root = root
        self._module = module if module is not None else import_pynvml()
        self._open = False
        self._ask("NVML", self._module.nvmlInit)
        self._open = True
        try:
            self._handle = self._find(device)
        except BaseException:
            self.close()
            raise

    def _find(self, device: int | str) -> Any:
        if isinstance(device, str):
            return self._ask(
                f"card {device}", lambda: self._module.nvmlDeviceGetHandleByUUID(device)
            )
        count = int(self._ask("the number of cards", self._module.nvmlDeviceGetCount))
        if not 0 <= device < count:
            cards = "no card" if not count else f"{count} card" + "s" * (count > 1)
            raise MeterError(
                f"there is no card {device}: the driver lists {cards}",
                "list the cards with `nvidia-smi -L`; the first is 0",
            )
        return self._ask(f"card {device}", lambda: self._module.nvmlDeviceGetHandleByIndex(device))

    def close(self) -> None:
        """Give NVML back; nothing happens the second time."""
        if self._open:
            self._open = False
            self._ask("NVML", self._module.nvmlShutdown)

    def _ask(self, what: str, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except self._module.NVMLError as error:
            code = int(getattr(error, "value", UNKNOWN))
            raise nvml_error(what, code, root=self._root) from None
        except AttributeError:
            raise nvml_error(what, FUNCTION_NOT_FOUND, root=self._root) from None

    @property
    def name(self) -> str:
        """The card's name."""
        return _text(self._ask("name", lambda: self._module.nvmlDeviceGetName(self._handle)))

    @property
    def uuid(self) -> str:
        """The card's UUID, ``GPU-…``."""
        return _text(self._ask("UUID", lambda: self._module.nvmlDeviceGetUUID(self._handle)))

    @property
    def driver_version(self) -> str:
        """Version of the driver."""
        return _text(self._ask("driver version", self._module.nvmlSystemGetDriverVersion))

    def compute_capability(self) -> int:
        """Return the compute capability, 90 for 9.0."""
        major, minor = self._ask(
            "compute capability",
            lambda: self._module.nvmlDeviceGetCudaComputeCapability(self._handle),
        )
        return 10 * int(major) + int(minor)

    def total_energy_j(self) -> float:
        """Return the joules since the driver was loaded (in steps of 1 mJ, Volta or newer)."""
        return (
            self._ask(
                "energy counter",
                lambda: int(self._module.nvmlDeviceGetTotalEnergyConsumption(self._handle)),
            )
            / 1000
        )

    def power_w(self) -> float:
        """Return the power; from Ampere on, GA100 left out, the mean of the last second."""
        return (
            self._ask("power", lambda: int(self._module.nvmlDeviceGetPowerUsage(self._handle)))
            / 1000
        )

    def power_scope(self) -> Literal["GPU", "module"]:
        """Return what the power is of: the GPU, or the module of a GPU and a CPU (GH200, GB200).

        Raises:
            NvmlError: the driver knows no scopes.
        """
        gpu_w = self._power_of_w(_GPU_SCOPE)
        try:
            module_w = self._power_of_w(_MODULE_SCOPE)
        except NvmlError:
            return "GPU"
        nearer = abs(self.power_w() - module_w) < abs(self.power_w() - gpu_w)
        return "module" if nearer and module_w > gpu_w else "GPU"

    def _power_of_w(self, scope: int) -> float:
        what = "power of a scope"
        fields = [(_POWER_FIELD, scope)]
        found = self._ask(
            what, lambda: self._module.nvmlDeviceGetFieldValues(self._handle, fields)[0]
        )
        if int(found.nvmlReturn):
            raise nvml_error(what, int(found.nvmlReturn), root=self._root)
        return int(found.value.uiVal) / 1000

    def sm_clock_mhz(self) -> int:
        """Return the clock of the SMs."""
        return self._clock("SM clock", "NVML_CLOCK_SM")

    def memory_clock_mhz(self) -> int:
        """Return the clock of the memory."""
        return self._clock("memory clock", "NVML_CLOCK_MEM")

    def _clock(self, what: str, domain: str) -> int:
        return int(
            self._ask(
                what,
                lambda: self._module.nvmlDeviceGetClockInfo(
                    self._handle, getattr(self._module, domain)
                ),
            )
        )

    def temperature_c(self) -> int:
        """Return the temperature of the GPU."""
        return int(
            self._ask(
                "temperature",
                lambda: self._module.nvmlDeviceGetTemperature(
                    self._handle, self._module.NVML_TEMPERATURE_GPU
                ),
            )
        )

    def throttle(self) -> tuple[str, ...]:
        """Return what holds the clocks back, in words; idling is not among them."""
        try:
            mask = int(
                self._ask(
                    "clock reasons",
                    lambda: self._module.nvmlDeviceGetCurrentClocksEventReasons(self._handle),
                )
            )
        except NvmlError as error:
            if error.code != FUNCTION_NOT_FOUND:
                raise
            mask = int(
                self._ask(
                    "clock reasons",
                    lambda: self._module.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle),
                )
            )
        return throttle_words(mask)

    def power_limit_w(self) -> float:
        """Return the power limit in force."""
        return (
            self._ask(
                "power limit",
                lambda: int(self._module.nvmlDeviceGetEnforcedPowerLimit(self._handle)),
            )
            / 1000
        )

    def other_processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes that compute on the card, this one left out.

        In a container the driver may tell the numbers of the host; then this process,
        once it uses the card, looks like another one.
        """
        return tuple(process for process in self.processes() if process.pid != os.getpid())

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes that compute on the card, by the numbers the driver tells."""
        listed = self._ask(
            "processes",
            lambda: self._module.nvmlDeviceGetComputeRunningProcesses(self._handle),
        )
        return tuple(
            GpuProcess(
                pid=int(process.pid),
                memory_bytes=None if process.usedGpuMemory is None else int(process.usedGpuMemory),
            )
            for process in listed
        )

    def mig_enabled(self) -> bool:
        """Return whether the card is cut into instances (MIG)."""
        try:
            mode = self._ask("MIG mode", lambda: self._module.nvmlDeviceGetMigMode(self._handle))
        except NvmlError as error:
            if error.code in {NOT_SUPPORTED, FUNCTION_NOT_FOUND}:
                return False
            raise
        return int(mode[0]) == 1


def card_state(device: NvmlDevice) -> CardState:
    """Return clocks, temperature and throttling; ``None`` for what the card does not tell."""
    return CardState(
        sm_clock_mhz=_or_none(device.sm_clock_mhz),
        memory_clock_mhz=_or_none(device.memory_clock_mhz),
        temperature_c=_or_none(device.temperature_c),
        throttle=_or_none(device.throttle),
    )


def device_info(device: NvmlDevice, *, toolkit: str | None = None) -> DeviceInfo:
    """Return which card it is; ``None`` for what the card does not tell."""
    return DeviceInfo(
        name=_or_none(lambda: device.name) or "GPU of unknown name",
        uuid=_or_none(lambda: device.uuid),
        compute_capability=_or_none(device.compute_capability),
        driver=_or_none(lambda: device.driver_version),
        toolkit=toolkit,
        power_limit_w=_or_none(device.power_limit_w),
        power_scope=_or_none(device.power_scope) or "",
    )


def throttle_words(mask: int) -> tuple[str, ...]:
    """Return the words for the bits of a mask of clocks event reasons."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return tuple(THROTTLE_WORDS.get(bit, f"reason {bit:#x}") for bit in bits if bit != _IDLE_BIT)


def _or_none(ask: Callable[[], _Answer]) -> _Answer | None:
    try:
        return ask()
    except MeterError:
        return None


def import_pynvml() -> Any:
    """Return the module ``pynvml``.

    Raises:
        MeterError: it is not installed, or does not load.
    """
    try:
        return importlib.import_module("pynvml")
    except Exception as error:  # a broken installation raises anything
        if isinstance(error, ModuleNotFoundError) and error.name == "pynvml":
            sentence = "NVML cannot be asked: the package nvidia-ml-py is not installed"
            raise MeterError(sentence, "pip install nvidia-ml-py") from None
        raise MeterError(
            f"NVML cannot be asked: pynvml does not load: {type(error).__name__}: {error}",
            "pip install --force-reinstall nvidia-ml-py",
        ) from error


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
