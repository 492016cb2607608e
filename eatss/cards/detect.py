"""Detect the GPUs of this machine through NVML and CuPy.

Neither is imported before :func:`detect` runs, and neither has to be there: what
cannot be asked becomes a sentence in :attr:`Detection.reasons`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from eatss.base.frozen import frozen
from eatss.base.text import as_text, one_line
from eatss.cards.cuda_order import cuda_uuid


@frozen
class DetectedGpu:
    """One card as NVML and CUDA report it; ``None`` means that neither does.

    ``readers`` names who answered (``NVML``, ``CuPy``). ``max_sm_clock_mhz`` is the
    highest clock the driver allows; ``bandwidth_gb_s`` follows from memory clock and
    bus width at two transfers a clock; ``power_limit_w`` is the card's default limit.
    """

    name: str
    uuid: str
    readers: tuple[str, ...]
    driver_version: str | None = None
    compute_capability: tuple[int, int] | None = None
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
    """The cards of this machine, and a sentence for each reader that could not be asked."""

    gpus: tuple[DetectedGpu, ...]
    reasons: tuple[str, ...]
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


def detect_gpus(*, nvml: Any = None, cupy: Any = None) -> tuple[DetectedGpu, ...]:
    """Return the GPUs of this machine; none is an empty tuple (see :func:`detect` for why)."""
    return detect(nvml=nvml, cupy=cupy).gpus


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
    nvml = nvml or _module("pynvml", "NVML", "nvidia-ml-py", reasons)
    cupy = cupy or _module("cupy", "CuPy", "cupy-cuda13x", reasons)
    driver: str | None = None
    by_nvml: tuple[DetectedGpu, ...] = ()
    by_cuda: tuple[DetectedGpu, ...] = ()
    try:
        if nvml:
            driver, by_nvml = _read_nvml(nvml)
    except Exception as error:  # NVML has error classes of its own
        reasons.append(f"NVML sees no GPU: {one_line(error)}")
    try:
        if cupy:
            runtime = cupy.cuda.runtime
            cards = range(runtime.getDeviceCount())
            by_cuda = tuple(_cuda_gpu(runtime.getDeviceProperties(card), nvml) for card in cards)
    except Exception as error:  # likewise CUDA
        reasons.append(f"CuPy sees no GPU: {one_line(error)}")
    gpus = _merge(by_nvml, by_cuda)
    if not gpus and not reasons:
        reasons.append("the driver is there but reports no GPU")
    return Detection(gpus=gpus, reasons=tuple(reasons), driver_version=driver)


def _module(name: str, reader: str, package: str, reasons: list[str]) -> Any:
    """Import a module that may be missing or broken; say which in ``reasons``."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            reasons.append(f"{reader} was not asked: the package {package} is not installed")
        else:
            reasons.append(f"{reader} does not load: it needs {error.name}, which is missing")
    except Exception as error:  # a broken installation raises anything
        reasons.append(f"{reader} does not load: {one_line(error)}")
    return None


def _read_nvml(nvml: Any) -> tuple[str, tuple[DetectedGpu, ...]]:
    nvml.nvmlInit()
    try:
        driver = as_text(nvml.nvmlSystemGetDriverVersion())
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        return driver, tuple(_nvml_gpu(nvml, handle, driver) for handle in handles)
    finally:
        nvml.nvmlShutdown()


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
        readers=("NVML",),
        driver_version=driver,
        compute_capability=None if capability is None else (capability[0], capability[1]),
        memory_bytes=None if memory is None else int(memory.total),
        max_sm_clock_mhz=ask("MaxClockInfo", "NVML_CLOCK_SM"),
        bandwidth_gb_s=_bandwidth_gb_s(
            ask("MaxClockInfo", "NVML_CLOCK_MEM"), ask("MemoryBusWidth")
        ),
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
    )


def _cuda_gpu(properties: Mapping[str, Any], nvml: Any) -> DetectedGpu:
    figures: dict[str, Any] = {
        field: int(properties[key]) for field, key in _CUDA_FIELDS.items() if properties.get(key)
    }
    memory_clock_khz = properties.get("memoryClockRate")
    memory_clock_mhz = memory_clock_khz // 1000 if memory_clock_khz else None
    return DetectedGpu(
        name=as_text(properties["name"]),
        uuid=cuda_uuid(properties, nvml) or "",
        readers=("CuPy",),
        compute_capability=(int(properties["major"]), int(properties["minor"])),
        bandwidth_gb_s=_bandwidth_gb_s(memory_clock_mhz, properties.get("memoryBusWidth")),
        **figures,
    )


def _bandwidth_gb_s(memory_clock_mhz: int | None, bus_width_bits: int | None) -> float | None:
    """Return the bandwidth of a double-data-rate memory, in 10^9 bytes a second."""
    if not memory_clock_mhz or not bus_width_bits:
        return None
    return 2 * memory_clock_mhz * bus_width_bits / 8 / 1000


def _merge(
    by_nvml: tuple[DetectedGpu, ...], by_cuda: tuple[DetectedGpu, ...]
) -> tuple[DetectedGpu, ...]:
    """Join the answers of both readers by UUID, NVML's order first."""
    cuda = {gpu.uuid: gpu for gpu in by_cuda if gpu.uuid}
    joined = [_join(gpu, cuda[gpu.uuid]) if gpu.uuid in cuda else gpu for gpu in by_nvml]
    known = {gpu.uuid for gpu in by_nvml if gpu.uuid}
    return (*joined, *(gpu for gpu in by_cuda if gpu.uuid not in known))


def _join(nvml: DetectedGpu, cuda: DetectedGpu) -> DetectedGpu:
    # NVML counts all of the memory, CUDA what is left of it for programs; NVML's name and
    # bandwidth are the fuller ones.
    fuller = {"name", "uuid", "memory_bytes", "bandwidth_gb_s"}
    figures: dict[str, Any] = {}
    for field in fields(DetectedGpu):
        told = getattr(nvml, field.name), getattr(cuda, field.name)
        first, other = told if field.name in fuller else reversed(told)
        figures[field.name] = other if first in (None, 0) else first
    return DetectedGpu(**figures | {"readers": ("NVML", "CuPy")})
