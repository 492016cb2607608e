"""What NVML says of one card: energy, power, clocks, who else uses it.

A thin layer over ``pynvml`` that only reads. Every refusal of the driver becomes an
:class:`~eatss.measurement.meters.nvml.NvmlError` with a sentence and a remedy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any, Literal, TypeVar

from eatss.base.targets import CardNumber
from eatss.base.text import Texts, as_text, class_and_line
from eatss.measurement.measurement import CardState, DeviceInfo
from eatss.measurement.meters.meter import MeterError

NOT_SUPPORTED = 3
FUNCTION_NOT_FOUND = 13

_REMEDIES = {
    NOT_SUPPORTED: "choose another meter (`--meter`); the counter needs a Volta card or newer",
    FUNCTION_NOT_FOUND: "update the NVIDIA driver and nvidia-ml-py",
}
_OTHER = (
    "see what `nvidia-smi -L` and `dmesg | grep -i nvrm` say: the driver has to be loaded "
    "(`modprobe nvidia`), /dev/nvidia* readable, a container started with `--gpus all`"
)


class NvmlError(MeterError):
    """NVML refused; ``code`` is its return code."""

    def __init__(self, what: str, code: int, said: str) -> None:
        super().__init__(f"{what}: {said}", _REMEDIES.get(code, _OTHER))
        self.code = code


_Answer = TypeVar("_Answer")

_POWER_FIELD, _GPU_SCOPE, _MODULE_SCOPE = 186, 0, 1
"""``NVML_FI_DEV_POWER_INSTANT``, and ``NVML_POWER_SCOPE_GPU`` and ``_MODULE``."""

_CLOCK_SM, _CLOCK_MEMORY, _TEMPERATURE_GPU = 1, 2, 0
"""``NVML_CLOCK_SM``, ``NVML_CLOCK_MEM`` and ``NVML_TEMPERATURE_GPU``."""

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


class NvmlDevice:
    """One card, asked through NVML; open until :meth:`close`.

    NVML counts its users, so many of these may be open at once, of any thread.
    """

    def __init__(self, device: CardNumber = 0, *, module: Any = None) -> None:
        """Open a card.

        Args:
            device: its number as the driver lists it (which is not always CUDA's), or its UUID.
            module: what stands in for ``pynvml``; imported if not given.

        Raises:
            MeterError: there is no NVML, no driver, or no such card.
        """
        self._module = module if module is not None else import_pynvml()
        self._ask("NVML", "nvmlInit")
        self._open = True
        try:
            self._handle = self._find(device)
        except BaseException:
            self.close()
            raise

    def _find(self, device: CardNumber) -> Any:
        way = "UUID" if isinstance(device, str) else "Index"
        return self._ask(f"card {device}", f"nvmlDeviceGetHandleBy{way}", device)

    def count(self) -> int:
        """Return how many cards the driver lists."""
        return int(self._ask("the number of cards", "nvmlDeviceGetCount"))

    def close(self) -> None:
        """Give NVML back; nothing happens the second time."""
        if self._open:
            self._open = False
            with suppress(NvmlError):  # of a card that is lost, whose readings say so
                self._ask("NVML", "nvmlShutdown")

    def _ask(self, what: str, function: str, *arguments: object) -> Any:
        try:
            return getattr(self._module, function)(*arguments)
        except (self._module.NVMLError, AttributeError) as error:
            code = int(getattr(error, "value", FUNCTION_NOT_FOUND))
            raise NvmlError(what, code, str(error)) from None

    def _of_card(self, what: str, function: str, *arguments: object) -> Any:
        """Ask what NVML says of the card."""
        return self._ask(what, f"nvmlDeviceGet{function}", self._handle, *arguments)

    def total_energy_j(self) -> float:
        """Return the joules since the driver was loaded (in steps of 1 mJ, Volta or newer)."""
        return int(self._of_card("energy counter", "TotalEnergyConsumption")) / 1000

    def power_w(self) -> float:
        """Return the power; from Ampere on, GA100 left out, the mean of the last second."""
        return int(self._of_card("power", "PowerUsage")) / 1000

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
        found = self._of_card(what, "FieldValues", [(_POWER_FIELD, scope)])[0]
        if int(found.nvmlReturn):
            raise NvmlError(what, int(found.nvmlReturn), "the driver does not tell it")
        return int(found.value.uiVal) / 1000

    def known(self, reading: str) -> Any:
        """Return a reading by its name in ``READINGS``; ``None`` if the card does not tell it."""
        function, constants, made = READINGS[reading]
        return _or_none(lambda: made(self._of_card(reading, function, *constants)))

    def driver_version(self) -> str:
        """Return the version of the driver."""
        return as_text(self._ask("driver version", "nvmlSystemGetDriverVersion"))

    def processes(self) -> dict[int, str]:
        """Return the processes that compute on the card, in words, by the numbers of the driver."""
        found = {}
        for process in self._of_card("processes", "ComputeRunningProcesses"):
            held = process.usedGpuMemory
            memory = "" if held is None else f" ({held / 2**20:.0f} MiB)"
            found[int(process.pid)] = f"process {process.pid}{memory}"
        return found

    def mig_enabled(self) -> bool:
        """Return whether the card is cut into instances (MIG)."""
        try:
            mode = self._of_card("MIG mode", "MigMode")
        except NvmlError as error:
            if error.code in {NOT_SUPPORTED, FUNCTION_NOT_FOUND}:
                return False
            raise
        return int(mode[0]) == 1


def card_state(device: NvmlDevice) -> CardState:
    """Return clocks, temperature and throttling; ``None`` for what the card does not tell."""
    return CardState(**{field.name: device.known(field.name) for field in fields(CardState)})


def device_info(device: NvmlDevice, *, toolkit: str | None = None) -> DeviceInfo:
    """Return which card it is; ``None`` for what the card does not tell."""
    return DeviceInfo(
        name=device.known("name") or "GPU of unknown name",
        **{name: device.known(name) for name in ("uuid", "compute_capability", "power_limit_w")},
        driver=_or_none(device.driver_version),
        toolkit=toolkit,
        power_scope=_or_none(device.power_scope) or "",
    )


def throttle_words(mask: int) -> Texts:
    """Return the words for the bits of a mask of clocks event reasons."""
    bits = [1 << place for place in range(int(mask).bit_length()) if mask >> place & 1]
    return tuple(THROTTLE_WORDS.get(bit, f"reason {bit:#x}") for bit in bits if bit != _IDLE_BIT)


READINGS: Mapping[str, tuple[str, tuple[int, ...], Callable[[Any], Any]]] = {
    "name": ("Name", (), as_text),
    "uuid": ("UUID", (), as_text),
    "compute_capability": ("CudaComputeCapability", (), lambda pair: 10 * pair[0] + pair[1]),
    "power_limit_w": ("EnforcedPowerLimit", (), lambda mw: int(mw) / 1000),
    "sm_clock_mhz": ("ClockInfo", (_CLOCK_SM,), int),
    "memory_clock_mhz": ("ClockInfo", (_CLOCK_MEMORY,), int),
    "temperature_c": ("Temperature", (_TEMPERATURE_GPU,), int),
    "throttle": ("CurrentClocksEventReasons", (), throttle_words),
}
"""What NVML is asked for by ``nvmlDeviceGet…``, with constants of it, and what is made of it.

``throttle`` is what holds the clocks back, in words; idling is not among them.
"""


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
        missing = isinstance(error, ModuleNotFoundError) and error.name == "pynvml"
        why = "the package nvidia-ml-py is not installed" if missing else class_and_line(error)
        raise MeterError(f"NVML cannot be asked: {why}", "pip install nvidia-ml-py") from error
