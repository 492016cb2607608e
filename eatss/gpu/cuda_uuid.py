"""The UUID of a card that CUDA lists, as NVML spells it."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_BYTES = 16


def cuda_uuid(properties: Mapping[str, Any], nvml: Any = None) -> str | None:
    """Return ``GPU-…`` for the properties that CuPy tells of a card, ``None`` if it is not known.

    CuPy reads the UUID as a text that ends at a zero, so of one card in sixteen it tells only the
    beginning. NVML is asked for the card in the same PCI slot then.

    Args:
        properties: as of ``cupy.cuda.runtime.getDeviceProperties``.
        nvml: what stands in for the module ``pynvml``; imported if needed.
    """
    raw = bytes(properties.get("uuid") or b"")
    if len(raw) == _BYTES:
        return f"GPU-{uuid.UUID(bytes=raw)}"
    slot = _slot(properties)
    told = None if slot is None else _in_slot(slot, nvml)
    begun = raw.hex()
    return told if told is not None and _digits(told).startswith(begun) else None


def _slot(properties: Mapping[str, Any]) -> str | None:
    parts = [properties.get(key) for key in ("pciDomainID", "pciBusID", "pciDeviceID")]
    if not all(isinstance(part, int) for part in parts):
        return None
    domain, bus, device = parts
    return f"{domain:08x}:{bus:02x}:{device:02x}.0"


def _in_slot(slot: str, nvml: Any) -> str | None:
    """Return what NVML calls the card in a PCI slot, ``None`` where it cannot be asked."""
    try:
        module = nvml if nvml is not None else importlib.import_module("pynvml")
        module.nvmlInit()
    except Exception:  # a driver that is missing or broken raises anything
        return None
    try:
        told = module.nvmlDeviceGetUUID(module.nvmlDeviceGetHandleByPciBusId(slot))
        return told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    except Exception:  # likewise
        return None
    finally:
        with suppress(Exception):  # likewise
            module.nvmlShutdown()


def _digits(told: str) -> str:
    return told.removeprefix("GPU-").replace("-", "").lower()
