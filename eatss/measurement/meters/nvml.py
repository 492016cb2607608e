"""What NVML says of one card: energy, power, clocks, who else uses it.

A thin layer over ``pynvml`` that only reads. Every refusal of the driver becomes an
:class:`~eatss.measurement.meters.nvml.NvmlError` with a sentence and a remedy.

Power by ``nvidia-smi``, for machines whose NVML Python cannot reach, and as a second witness.
"""

from __future__ import annotations

import csv
import importlib
import os
import re
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from eatss.base.compilers import in_container
from eatss.base.frozen import frozen
from eatss.base.text import as_text, class_and_line
from eatss.measurement.measurement import CardState, DeviceInfo
from eatss.measurement.meters.background import SubprocessMeter
from eatss.measurement.meters.meter import MeterError, Sample

NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
UNKNOWN = 999

LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
"""Codes after which nothing can be asked of the card any more."""

_AGAIN = "try again; if it stays, restart the machine or ask its administrator"
_ABSENT = frozenset({1, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, 17, 28})

_MEANING: dict[int, tuple[str, str]] = {
    1: ("NVML was not initialised", _AGAIN),
    2: (
        "the driver knows no such card, or rejects the question",
        "list the cards with `nvidia-smi -L` and name one by its number or UUID",
    ),
    NOT_SUPPORTED: (
        "this card does not offer it",
        "choose another meter (`--meter`); the energy counter needs a Volta card or newer",
    ),
    NO_PERMISSION: (
        "the driver does not permit it to this user",
        "ask the administrator for access to /dev/nvidia*",
    ),
    5: ("NVML is initialised already", _AGAIN),
    6: (
        "the driver does not find the card",
        "list the cards with `nvidia-smi -L` and name one by its number or UUID",
    ),
    7: ("the answer does not fit the space given", "install a newer nvidia-ml-py"),
    8: (
        "the card's power cables are not attached as they must be",
        "check the external power cables of the card",
    ),
    DRIVER_NOT_LOADED: (
        "the NVIDIA driver is not loaded",
        "load it with `modprobe nvidia`, or install it: https://www.nvidia.com/drivers",
    ),
    10: ("the driver did not answer in time", _AGAIN),
    11: ("the driver met a fault of the card's interrupt", _AGAIN),
    LIBRARY_NOT_FOUND: (
        "the library of NVML (libnvidia-ml.so.1) is not there",
        "install the NVIDIA driver, which brings it: https://www.nvidia.com/drivers",
    ),
    FUNCTION_NOT_FOUND: (
        "this driver or nvidia-ml-py is too old for it",
        "update the NVIDIA driver and nvidia-ml-py",
    ),
    14: (
        "the card's configuration memory (infoROM) is corrupted",
        "ask the administrator to run `nvidia-smi -q` and have the card repaired",
    ),
    GPU_IS_LOST: (
        "the GPU is lost: it fell off the bus or does not answer any more",
        "look for Xid errors with `dmesg | grep -i nvrm`; the machine must be restarted",
    ),
    RESET_REQUIRED: (
        "the GPU must be reset before it can be used again",
        "ask the administrator for `nvidia-smi --gpu-reset`, or restart the machine",
    ),
    17: (
        "the operating system refuses access to the driver",
        "ask the administrator for access to /dev/nvidia*",
    ),
    18: (
        "the loaded driver and the library of NVML have different versions",
        "restart the machine, or reload the driver, after the driver update",
    ),
    19: ("the card is in use", "wait for the other program to end"),
    20: ("there is not enough memory", "free memory of this machine"),
    21: ("the sensor has no data", "choose another meter (`--meter`)"),
    22: ("a virtual GPU with ECC does not offer it", "choose another meter (`--meter`)"),
    23: ("the driver ran out of resources", _AGAIN),
    24: ("the card does not offer this frequency", "choose another meter (`--meter`)"),
    25: (
        "driver and nvidia-ml-py speak different versions of the question",
        "update the NVIDIA driver and nvidia-ml-py",
    ),
    26: ("this driver has dropped the question", "install a newer nvidia-ml-py"),
    27: ("the card is not ready yet", "wait a moment and try again"),
    28: (
        "the driver finds no GPU",
        "check that the card is seated and shown by `lspci | grep -i nvidia`",
    ),
    29: ("the card is in a state in which it does not answer this", _AGAIN),
    30: ("the card does not offer this kind of reset", _AGAIN),
    UNKNOWN: ("the driver failed for a reason it does not name", _AGAIN),
}


class NvmlError(MeterError):
    """NVML refused; ``code`` is its return code, ``lost`` says that the card is gone."""

    def __init__(self, message: str, remedy: str, *, code: int) -> None:
        super().__init__(message, remedy)
        self.code = code

    @property
    def lost(self) -> bool:
        """Whether the card cannot be asked anything any more."""
        return self.code in LOST


def nvml_error(what: str, code: int, *, root: Path = Path("/")) -> NvmlError:
    """Return the error for a return code met while reading ``what``.

    Where the driver is absent in a container, the remedy is that of the container:
    the files of the driver come from its host.
    """
    sentence, remedy = _MEANING.get(
        code, (f"the driver failed with the unknown code {code}", "update nvidia-ml-py")
    )
    if code in _ABSENT and in_container(root):
        device = "" if (root / "dev/nvidiactl").exists() else ", /dev/nvidiactl is missing"
        sentence = f"{sentence} (in a container{device})"
        remedy = (
            "start the container with its GPU: install the NVIDIA container toolkit on the "
            "host and run `docker run --gpus all …` (Kubernetes: request nvidia.com/gpu)"
        )
    if code in {NO_PERMISSION, 17} and in_container(root):
        remedy = "let the container use the host's /dev/nvidia* with read and write permission"
    return NvmlError(f"{what}: {sentence}", remedy, code=code)


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


@frozen
class GpuProcess:
    """A process that computes on the card; ``memory_bytes`` is ``None`` where not told."""

    pid: int
    memory_bytes: int | None

    def __str__(self) -> str:
        held = "" if self.memory_bytes is None else f" ({self.memory_bytes / 2**20:.0f} MiB)"
        return f"process {self.pid}{held}"


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
        self._ask("NVML", "nvmlInit")
        self._open = True
        try:
            self._handle = self._find(device)
        except BaseException:
            self.close()
            raise

    def _find(self, device: int | str) -> Any:
        if isinstance(device, str):
            return self._ask(f"card {device}", "nvmlDeviceGetHandleByUUID", device)
        count = int(self._ask("the number of cards", "nvmlDeviceGetCount"))
        if not 0 <= device < count:
            cards = "no card" if not count else f"{count} card" + "s" * (count > 1)
            raise MeterError(
                f"there is no card {device}: the driver lists {cards}",
                "list the cards with `nvidia-smi -L`; the first is 0",
            )
        return self._ask(f"card {device}", "nvmlDeviceGetHandleByIndex", device)

    def close(self) -> None:
        """Give NVML back; nothing happens the second time."""
        if self._open:
            self._open = False
            self._ask("NVML", "nvmlShutdown")

    def _ask(self, what: str, function: str, *arguments: object) -> Any:
        """Call a function of NVML; arguments that are names of its constants stand for them."""
        try:
            given = [
                getattr(self._module, one)
                if isinstance(one, str) and one.startswith("NVML_")
                else one
                for one in arguments
            ]
            return getattr(self._module, function)(*given)
        except self._module.NVMLError as error:
            code = int(getattr(error, "value", UNKNOWN))
            raise nvml_error(what, code, root=self._root) from None
        except AttributeError:
            raise nvml_error(what, FUNCTION_NOT_FOUND, root=self._root) from None

    def _of_card(self, what: str, function: str, *arguments: object) -> Any:
        """Ask what NVML says of the card."""
        return self._ask(what, f"nvmlDeviceGet{function}", self._handle, *arguments)

    @property
    def name(self) -> str:
        """The card's name."""
        return as_text(self._of_card("name", "Name"))

    @property
    def uuid(self) -> str:
        """The card's UUID, ``GPU-…``."""
        return as_text(self._of_card("UUID", "UUID"))

    @property
    def driver_version(self) -> str:
        """Version of the driver."""
        return as_text(self._ask("driver version", "nvmlSystemGetDriverVersion"))

    def compute_capability(self) -> int:
        """Return the compute capability, 90 for 9.0."""
        major, minor = self._of_card("compute capability", "CudaComputeCapability")
        return 10 * int(major) + int(minor)

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
            raise nvml_error(what, int(found.nvmlReturn), root=self._root)
        return int(found.value.uiVal) / 1000

    def sm_clock_mhz(self) -> int:
        """Return the clock of the SMs."""
        return int(self._of_card("SM clock", "ClockInfo", "NVML_CLOCK_SM"))

    def memory_clock_mhz(self) -> int:
        """Return the clock of the memory."""
        return int(self._of_card("memory clock", "ClockInfo", "NVML_CLOCK_MEM"))

    def temperature_c(self) -> int:
        """Return the temperature of the GPU."""
        return int(self._of_card("temperature", "Temperature", "NVML_TEMPERATURE_GPU"))

    def throttle(self) -> tuple[str, ...]:
        """Return what holds the clocks back, in words; idling is not among them."""
        try:
            mask = self._of_card("clock reasons", "CurrentClocksEventReasons")
        except NvmlError as error:
            if error.code != FUNCTION_NOT_FOUND:
                raise
            mask = self._of_card("clock reasons", "CurrentClocksThrottleReasons")
        return throttle_words(int(mask))

    def power_limit_w(self) -> float:
        """Return the power limit in force."""
        return int(self._of_card("power limit", "EnforcedPowerLimit")) / 1000

    def other_processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes that compute on the card, this one left out.

        In a container the driver may tell the numbers of the host; then this process,
        once it uses the card, looks like another one.
        """
        return tuple(process for process in self.processes() if process.pid != os.getpid())

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes that compute on the card, by the numbers the driver tells."""
        listed = self._of_card("processes", "ComputeRunningProcesses")
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
            mode = self._of_card("MIG mode", "MigMode")
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
            f"NVML cannot be asked: pynvml does not load: {class_and_line(error)}",
            "pip install --force-reinstall nvidia-ml-py",
        ) from error


SMI_NAME = "nvidia-smi"
SMI_PERIOD_MS = 50
SMI_ANSWER_S = 20.0

_FIELDS = ("power.draw.average", "power.draw", "power.draw.instant")
"""Best first: the mean of the last second can be integrated, a momentary value swings."""

_REMEDY = "install the NVIDIA driver, which brings nvidia-smi: https://www.nvidia.com/drivers"
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_CLOCKS_AGREE_S = 1.0


class SmiMeter(SubprocessMeter):
    """``nvidia-smi`` in a process of its own, printing the power every 50 ms."""

    def __init__(self, device: int | str = 0, *, command: str = "nvidia-smi") -> None:
        super().__init__(SMI_NAME, [command], self._sample, _REMEDY)
        self._program = command
        self._device = str(device)
        self._field = ""

    def probe(self) -> str:
        """Return the field of power that this driver and card answer.

        Raises:
            MeterError: nvidia-smi is not there, fails, or tells no power.
        """
        said = ""
        for field in _FIELDS:
            answer = self._once(field)
            if answer.returncode == 0 and smi_power_w(answer.stdout.strip()) is not None:
                self._field = field
                return field
            said = " ".join((answer.stdout.strip() or answer.stderr.strip()).split())[:200]
        raise MeterError(
            f"nvidia-smi tells no power of card {self._device}: {said or 'it says nothing'}",
            "look at `nvidia-smi -q -d POWER`; choose another meter (`--meter`)",
        )

    def _once(self, field: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603  (a fixed program, no shell)
                [self._program, *self._query(field)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SMI_ANSWER_S,
                check=False,
            )
        except FileNotFoundError:
            raise MeterError("nvidia-smi is not on the path", _REMEDY) from None
        except OSError as error:
            raise MeterError(f"nvidia-smi does not start: {error.strerror}", _REMEDY) from None
        except subprocess.TimeoutExpired:
            raise MeterError(
                f"nvidia-smi did not answer in {SMI_ANSWER_S:g} s",
                "look for errors of the driver with `dmesg | grep -i nvrm`",
            ) from None

    def _query(self, field: str) -> list[str]:
        return [f"--query-gpu={field},timestamp", "--format=csv,noheader", "-i", self._device]

    def _begin(self) -> None:
        query = self._query(self._field or self.probe())
        self.command = [self._program, *query, "-lms", str(SMI_PERIOD_MS)]
        self._earliest_s = time.perf_counter() - _CLOCKS_AGREE_S
        self._offset_s = time.time() - time.perf_counter()
        super()._begin()

    def _sample(self, line: str, read_s: float) -> Sample | None:
        """Take the line's own time where it fits that of reading: pipes may hold lines back."""
        power_w = smi_power_w(line)
        if power_w is None:
            return None
        wall_s = smi_time_s(line)
        time_s = read_s if wall_s is None else wall_s - self._offset_s
        if not self._earliest_s <= time_s <= read_s + _CLOCKS_AGREE_S:
            time_s = read_s
        return Sample(time_s=min(time_s, read_s), value=power_w)


def smi_power_w(line: str) -> float | None:
    """Return the watts of a line like ``92.41 W, 2026/11/21 16:20:51.123``; else ``None``.

    ``[N/A]``, ``[Not Supported]``, ``[Unknown Error]`` and the line of a header give ``None``.
    """
    cell = _cells(line)[0] if line else ""
    number, _, unit = cell.partition(" ")
    if not _NUMBER.fullmatch(number) or unit not in {"", "W"}:
        return None
    return float(number)


def smi_time_s(line: str) -> float | None:
    """Return the seconds since 1970 of the line's time stamp, which is local; ``None`` without."""
    for cell in _cells(line)[1:]:
        for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
            try:
                return datetime.strptime(cell, form).timestamp()
            except ValueError:
                continue
    return None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line]), [""])]
