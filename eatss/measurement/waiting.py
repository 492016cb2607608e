"""Waiting for what was launched: what frameworks have given to cards and have not seen end."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """What was waited for, in words, and why something could not be."""

    by: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def wait_for_frameworks(in_use: Callable[[int], bool] | None = None) -> Waited:
    """Wait for the cards that CuPy and PyTorch use, if the program has imported them.

    Each waits for its current card, and for others that are in use. A card that the program has
    not touched is left alone: waiting for it would begin to use it.

    Args:
        in_use: tells whether this process uses the card of a number.
    """
    by: list[str] = []
    failures: list[str] = []
    for name, wait in (("cupy", _wait_for_cupy), ("torch", _wait_for_torch)):
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            cards = wait(module, in_use or card_in_use)
        except Exception as error:  # of the framework's own making
            said = " ".join(str(error).split())[:200]
            failures.append(f"{name} could not be waited for: {said}")
        else:
            if cards:
                by.append(f"{name}: card{'s' * (len(cards) > 1)} {', '.join(map(str, cards))}")
    return Waited(by=tuple(by), failures=tuple(failures))


def card_in_use(number: int, cuda: Any = None) -> bool:
    """Return whether this process has begun to use a card: whether it has a CUDA context there."""
    flags, active, device = ctypes.c_uint(), ctypes.c_int(), ctypes.c_int()
    try:
        library = cuda if cuda is not None else ctypes.CDLL("libcuda.so.1")
        if library.cuDeviceGet(ctypes.byref(device), number):
            return False
        state = library.cuDevicePrimaryCtxGetState
        failed = state(device, ctypes.byref(flags), ctypes.byref(active))
    except (OSError, AttributeError):
        return False
    return not failed and bool(active.value)


def _wait_for_cupy(cupy: Any, in_use: Callable[[int], bool]) -> Numbers:
    runtime = cupy.cuda.runtime
    current = int(runtime.getDevice()) if hasattr(runtime, "getDevice") else 0
    runtime.deviceSynchronize()
    count = int(runtime.getDeviceCount()) if hasattr(runtime, "getDeviceCount") else 1
    others = [number for number in range(count) if number != current and in_use(number)]
    for number in others:
        with cupy.cuda.Device(number):
            runtime.deviceSynchronize()
    return (current, *others)


def _wait_for_torch(torch: Any, in_use: Callable[[int], bool]) -> Numbers:
    if not torch.cuda.is_initialized():
        return ()
    current = int(torch.cuda.current_device()) if hasattr(torch.cuda, "current_device") else 0
    torch.cuda.synchronize()
    count = int(torch.cuda.device_count()) if hasattr(torch.cuda, "device_count") else 1
    others = [number for number in range(count) if number != current and in_use(number)]
    for number in others:
        torch.cuda.synchronize(number)
    return (current, *others)
