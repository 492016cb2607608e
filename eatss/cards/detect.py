"""Detect the GPUs of this machine through NVML and CuPy, in the order in which CUDA counts them.

Neither is imported before :func:`detect` runs, and neither has to be there: what
cannot be asked becomes a sentence in :attr:`Detection.reasons`.

NVML lists all cards by their place on the bus. CUDA lists those that ``CUDA_VISIBLE_DEVICES``
names, in that order; its own order is the fastest first unless ``CUDA_DEVICE_ORDER`` is
``PCI_BUS_ID``. So CUDA is asked, in a process of its own, so that this one stays as it is.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from eatss.base.frozen import frozen
from eatss.base.targets import Capability
from eatss.base.text import Texts, as_text, one_line


@frozen
class DetectedGpu:
    """One card as NVML and CUDA report it; ``None`` means that neither does.

    ``max_sm_clock_mhz`` is the highest clock the driver allows; ``bandwidth_gb_s`` follows from
    memory clock and bus width at two transfers a clock; ``power_limit_w`` is the card's default
    limit.
    """

    name: str
    uuid: str
    driver_version: str | None = None
    compute_capability: Capability | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    shared_per_sm_bytes: int | None = None
    shared_per_block_bytes: int | None = None
    shared_per_block_optin_bytes: int | None = None
    registers_per_sm: int | None = None
    registers_per_block: int | None = None
    threads_per_block: int | None = None
    threads_per_warp: int | None = None
    max_threads_per_sm: int | None = None
    max_blocks_per_sm: int | None = None
    max_sm_clock_mhz: int | None = None
    bandwidth_gb_s: float | None = None
    power_limit_w: float | None = None


@frozen
class Detection:
    """The cards that CUDA sees, in its order, and a sentence for each reader that did not answer.

    Where CUDA cannot be asked, they are all cards, as NVML lists them.
    """

    gpus: tuple[DetectedGpu, ...]
    reasons: Texts
    driver_version: str | None = None


_CUDA_FIELDS = {
    "sm_count": "multiProcessorCount",
    "memory_bytes": "totalGlobalMem",
    "l2_bytes": "l2CacheSize",
    "shared_per_sm_bytes": "sharedMemPerMultiprocessor",
    "shared_per_block_bytes": "sharedMemPerBlock",
    "shared_per_block_optin_bytes": "sharedMemPerBlockOptin",
    "registers_per_sm": "regsPerMultiprocessor",
    "registers_per_block": "regsPerBlock",
    "threads_per_block": "maxThreadsPerBlock",
    "threads_per_warp": "warpSize",
    "max_threads_per_sm": "maxThreadsPerMultiProcessor",
    "max_blocks_per_sm": "maxBlocksPerMultiProcessor",
}


def detect(*, nvml: Any = None, cupy: Any = None) -> Detection:
    """Ask NVML and CuPy for the GPUs of this machine.

    Args:
        nvml: what stands in for the module ``pynvml``; imported if not given.
        cupy: what stands in for the module ``cupy``; imported if not given.

    Returns:
        One entry a card, matched between the two by UUID. Where both report a
        figure, CUDA's is taken, since it is what a kernel gets.
    """
    reasons: list[str] = []
    nvml, cupy = nvml or "pynvml", cupy or "cupy"
    found = _answer("NVML", nvml, "nvidia-ml-py", _read_nvml, reasons)
    driver, by_nvml = found or (None, ())
    by_cuda = _answer("CuPy", cupy, "cupy-cuda13x", cuda_cards, reasons) or ()
    listed = {gpu.uuid: gpu for gpu in by_nvml}
    gpus = tuple(_join(listed[gpu.uuid], gpu) if gpu.uuid in listed else gpu for gpu in by_cuda)
    if not gpus:
        order = cuda_order() if by_nvml else None
        gpus = by_nvml if order is None else tuple(listed[one] for one in order if one in listed)
        if by_nvml and not gpus:
            reasons.append(f"CUDA sees none of {len(by_nvml)}; {VISIBLE} may hide them")
    if not gpus and not reasons:
        reasons.append("the driver is there but reports no GPU")
    return Detection(gpus=gpus, reasons=tuple(reasons), driver_version=driver)


def _answer(
    reader: str, module: Any, package: str, read: Callable[[Any], Any], reasons: list[str]
) -> Any:
    """Return what is read of a module, or of that of a name; say in ``reasons`` if nothing is."""
    try:
        return read(importlib.import_module(module) if isinstance(module, str) else module)
    except Exception as error:  # NVML has error classes of its own; a broken installation any
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        why = f"was not asked: the package {package} is not installed"
        reasons.append(f"{reader} {why if missing else f'sees no GPU: {one_line(error)}'}")
    return None


def _read_nvml(nvml: Any) -> tuple[str, tuple[DetectedGpu, ...]]:
    nvml.nvmlInit()
    try:
        driver = as_text(nvml.nvmlSystemGetDriverVersion())
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        return driver, tuple(_nvml_gpu(nvml, handle, driver) for handle in handles)
    finally:
        nvml.nvmlShutdown()


def cuda_cards(cupy: Any) -> tuple[DetectedGpu, ...]:
    """Return the cards that CUDA sees, in its order."""
    runtime = cupy.cuda.runtime
    cards = range(runtime.getDeviceCount())
    return tuple(_cuda_gpu(runtime.getDeviceProperties(card)) for card in cards)


def _nvml_gpu(nvml: Any, handle: Any, driver: str) -> DetectedGpu:
    def ask(what: str, clock: str = "") -> Any:
        """Return an answer, or ``None`` where this card or this NVML does not know it."""
        try:
            given = (getattr(nvml, clock),) if clock else ()
            return getattr(nvml, f"nvmlDeviceGet{what}")(handle, *given)
        except (nvml.NVMLError, AttributeError):
            return None

    capability, memory = ask("CudaComputeCapability"), ask("MemoryInfo")
    limit_mw = ask("PowerManagementDefaultLimit")
    return DetectedGpu(
        name=as_text(nvml.nvmlDeviceGetName(handle)),
        uuid=as_text(nvml.nvmlDeviceGetUUID(handle)),
        driver_version=driver,
        compute_capability=None if capability is None else (capability[0], capability[1]),
        memory_bytes=None if memory is None else int(memory.total),
        max_sm_clock_mhz=ask("MaxClockInfo", "NVML_CLOCK_SM"),
        bandwidth_gb_s=_bandwidth_gb_s(
            ask("MaxClockInfo", "NVML_CLOCK_MEM"), ask("MemoryBusWidth")
        ),
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
    )


def _cuda_gpu(properties: Mapping[str, Any]) -> DetectedGpu:
    figures: dict[str, Any] = {
        field: int(properties[key]) for field, key in _CUDA_FIELDS.items() if properties.get(key)
    }
    memory_clock_khz = properties.get("memoryClockRate")
    memory_clock_mhz = memory_clock_khz // 1000 if memory_clock_khz else None
    return DetectedGpu(
        name=as_text(properties["name"]),
        uuid=cuda_uuid(properties) or "",
        compute_capability=(int(properties["major"]), int(properties["minor"])),
        bandwidth_gb_s=_bandwidth_gb_s(memory_clock_mhz, properties.get("memoryBusWidth")),
        **figures,
    )


def _bandwidth_gb_s(memory_clock_mhz: int | None, bus_width_bits: int | None) -> float | None:
    """Return the bandwidth of a double-data-rate memory, in 10^9 bytes a second."""
    if not memory_clock_mhz or not bus_width_bits:
        return None
    return 2 * memory_clock_mhz * bus_width_bits / 8 / 1000


_FULLER = {"name", "uuid", "memory_bytes", "bandwidth_gb_s"}
"""What NVML tells better: it counts all of the memory, CUDA what is left of it for programs."""


def _join(nvml: DetectedGpu, cuda: DetectedGpu) -> DetectedGpu:
    told = {
        name: value
        for name, value in asdict(cuda).items()
        if value is not None and (name not in _FULLER or getattr(nvml, name) is None)
    }
    return replace(nvml, **told)


_BYTES = 16


def cuda_uuid(properties: Mapping[str, Any]) -> str | None:
    """Return ``GPU-…`` for the properties that CuPy tells of a card, ``None`` if it is not known.

    CuPy reads the UUID as a text that ends at a zero, so of one card in sixteen it tells only the
    beginning: it is the card that CUDA lists with that, if one alone has it.
    """
    raw = bytes(properties.get("uuid") or b"")
    if len(raw) == _BYTES:
        return f"GPU-{uuid.UUID(bytes=raw)}"
    found = [one for one in cuda_order() or () if _digits(one).startswith(raw.hex())]
    return found[0] if len(found) == 1 else None


def _digits(listed: str) -> str:
    return listed.removeprefix("GPU-").replace("-", "")


VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
ANSWER_S = 30.0

_ASK = """
import ctypes, uuid
cuda = ctypes.CDLL("libcuda.so.1")
def ok(status):
    if status: raise SystemExit(0 if status == 100 else f"CUDA error {status}")  # 100: no card
ok(cuda.cuInit(0))
count = ctypes.c_int()
ok(cuda.cuDeviceGetCount(ctypes.byref(count)))
for number in range(count.value):
    device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    ok(cuda.cuDeviceGet(ctypes.byref(device), number))
    ok(cuda.cuDeviceGetUuid(ctypes.byref(raw), device))
    print(f"GPU-{uuid.UUID(bytes=bytes(raw))}")
"""


def cuda_order() -> Texts | None:
    """Return the UUIDs of the cards that CUDA sees, in its order; ``None`` if it cannot be asked.

    It is asked in another process, so that this one stays as it is, once for the same variables.
    """
    return _asked(os.environ.get(VISIBLE), os.environ.get(ORDER))


@lru_cache(maxsize=16)
def _asked(visible: str | None, order: str | None) -> Texts | None:
    del visible, order  # what the answer depends on
    try:
        done = subprocess.run(  # noqa: S603  (this Python, and a text of ours)
            (sys.executable, "-S", "-c", _ASK), capture_output=True, text=True, check=False,
            timeout=ANSWER_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return tuple(done.stdout.split()) if done.returncode == 0 else None
