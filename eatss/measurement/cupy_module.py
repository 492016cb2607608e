"""CuPy, and the cards that CUDA lists, or the sentence why there are none."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eatss.diagnostics import InputError, input_error
from eatss.gpu.cuda_uuid import cuda_uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaCard:
    """A card as CUDA lists it; ``uuid`` is spelled as NVML does."""

    number: int
    name: str
    capability: int
    uuid: str | None


def import_cupy() -> Any:
    """Return the module CuPy.

    Raises:
        InputError: ``EATSS-E021``, it is not installed or does not load.
    """
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise input_error(
            "EATSS-E021",
            f"CuPy does not load: {_one_line(error)}",
            hint="pip install 'eatss[cuda13]', or 'eatss[cuda12]' where the driver is of CUDA 12",
        ) from None


def cuda_card(cupy: Any, device: int | str) -> CudaCard:
    """Return a card by its number in CUDA's order, or by its UUID.

    Raises:
        InputError: ``EATSS-E022``, CUDA finds none; ``EATSS-E023``, there is none of this number
            or UUID.
    """
    runtime = cupy.cuda.runtime
    try:
        count = int(runtime.getDeviceCount())
    except RuntimeError as error:
        raise input_error(
            "EATSS-E022",
            f"CUDA finds no card: {_one_line(error)}",
            hint="measure where nvidia-smi lists a card; start a container with its GPUs",
        ) from None
    if isinstance(device, str):
        cards = [_card(runtime, number) for number in range(count)]
        named = next((card for card in cards if card.uuid == device), None)
        if named is None:
            seen = ", ".join(card.uuid or f"card {card.number}" for card in cards)
            raise _no_such(f"there is no card {device}: CUDA sees {seen}")
        return named
    if not 0 <= device < count:
        raise _no_such(f"there is no card {device}: CUDA sees {count}, counted from 0")
    return _card(runtime, device)


def _no_such(message: str) -> InputError:
    return input_error(
        "EATSS-E023",
        message,
        hint="see CUDA_VISIBLE_DEVICES, which hides cards and renumbers them, and nvidia-smi -L",
    )


def _card(runtime: Any, number: int) -> CudaCard:
    properties: Mapping[str, Any] = runtime.getDeviceProperties(number)
    name = properties["name"]
    return CudaCard(
        number=number,
        name=name.decode(errors="replace") if isinstance(name, bytes) else str(name),
        capability=10 * int(properties["major"]) + int(properties["minor"]),
        uuid=cuda_uuid(properties),
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
