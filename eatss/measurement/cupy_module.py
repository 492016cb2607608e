"""CuPy and the cards that CUDA lists, or the sentence why there are none; its errors in words."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.text import as_text, one_line
from eatss.cards.detect import cuda_uuid
from eatss.measurement.card import LaunchError


@frozen
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
            f"CuPy does not load: {one_line(error)}",
            hint="pip install 'eatss[cuda13]', or 'eatss[cuda12]' where the driver is of CUDA 12",
        ) from None


def cuda_card(cupy: Any, device: int | str) -> CudaCard:
    """Return a card by its number in CUDA's order, or by its UUID.

    Raises:
        InputError: ``EATSS-E022``, CUDA finds none, or none of this number
            or UUID.
    """
    runtime = cupy.cuda.runtime
    try:
        count = int(runtime.getDeviceCount())
    except RuntimeError as error:
        raise input_error(
            "EATSS-E022",
            f"CUDA finds no card: {one_line(error)}",
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
        "EATSS-E022",
        message,
        hint="see CUDA_VISIBLE_DEVICES, which hides cards and renumbers them, and nvidia-smi -L",
    )


def _card(runtime: Any, number: int) -> CudaCard:
    properties: Mapping[str, Any] = runtime.getDeviceProperties(number)
    return CudaCard(
        number=number,
        name=as_text(properties["name"]),
        capability=10 * int(properties["major"]) + int(properties["minor"]),
        uuid=cuda_uuid(properties),
    )


_LOST = frozenset(
    (
        4,  # the driver shuts down
        46,  # devices unavailable
        *(214, 220, 226, 227),  # ECC or NVLink error that could not be corrected, or was contained
        *(700, 702, 709, 710),  # illegal address, launch timeout, context destroyed, assert
        *range(714, 720),  # hardware stack, illegal instruction, alignment, space, pc, failure
        *(721, 999),  # external device, unknown
    )
)
"""Errors after which every call of the process fails (CUDA driver and runtime API, error codes)."""

_OUT_OF_MEMORY = 2


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn errors of CUDA and CuPy into a :class:`LaunchError`; ``doing`` says what was done."""
    try:
        yield
    except LaunchError:
        raise
    except Exception as error:
        found = launch_error(error, doing)
        if found is None:
            raise
        raise found from error


def launch_error(error: Exception, doing: str) -> LaunchError | None:
    """Return an error of CUDA or CuPy as a sentence, ``None`` for any other error."""
    if isinstance(error, MemoryError):
        return LaunchError(f"{doing}: the card's memory is too small ({one_line(error, 300)})")
    kind, code = type(error).__name__, getattr(error, "status", None)
    if kind == "CompileException":
        return LaunchError(
            f"{doing}: CuPy cannot compile its own kernels ({one_line(error, 300)}); "
            "install the headers of CUDA: pip install 'cupy-cuda13x[ctk]'"
        )
    if not isinstance(code, int):
        return None
    lost = code in _LOST and kind != "NVRTCError"  # which counts its errors apart
    return LaunchError(f"{doing}: {one_line(error, 300)}", lost=lost)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory was too small."""
    return isinstance(error, MemoryError) or getattr(error, "status", None) == _OUT_OF_MEMORY
