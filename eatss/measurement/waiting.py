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


def wait_for_frameworks(in_use: Callable[[], Numbers | None] | None = None) -> Waited:
    """Wait for the cards that CuPy and PyTorch use, if the program has imported them.

    A card that the program has not touched is left alone: waiting for it would begin to use it.
    Where CUDA does not tell which cards are in use, each framework waits for its current card.

    Args:
        in_use: tells which cards this process uses, as :func:`cards_in_use`.
    """
    by: list[str] = []
    failures: list[str] = []
    for name, wait in (("cupy", _wait_for_cupy), ("torch", _wait_for_torch)):
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            cards = wait(module, (in_use or cards_in_use)())
        except Exception as error:  # of the framework's own making
            said = " ".join(str(error).split())[:200]
            failures.append(f"{name} could not be waited for: {said}")
        else:
            if cards:
                by.append(f"{name}: card{'s' * (len(cards) > 1)} {', '.join(map(str, cards))}")
    return Waited(by=tuple(by), failures=tuple(failures))


def cards_in_use(cuda: Any = None) -> Numbers | None:
    """Return the cards that this process uses: where it has a CUDA context.

    Args:
        cuda: what stands in for the driver's library.

    Returns:
        Their numbers; none if the process has not begun to use CUDA; ``None`` if it is not known.
    """
    count = ctypes.c_int()
    try:
        library = cuda if cuda is not None else ctypes.CDLL("libcuda.so.1")
        if library.cuDeviceGetCount(ctypes.byref(count)):
            return ()
        return tuple(number for number in range(count.value) if _in_use(number, library))
    except (OSError, AttributeError):
        return None


def _in_use(number: int, library: Any) -> bool:
    flags, active, device = ctypes.c_uint(), ctypes.c_int(), ctypes.c_int()
    if library.cuDeviceGet(ctypes.byref(device), number):
        return False
    failed = library.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
    return not failed and bool(active.value)


def _wait_for_cupy(cupy: Any, in_use: Numbers | None) -> Numbers:
    if in_use == ():
        return ()
    runtime = cupy.cuda.runtime
    cards = _current_first(int(runtime.getDevice()), in_use)
    for number in cards:
        with cupy.cuda.Device(number):
            runtime.deviceSynchronize()
    return cards


def _wait_for_torch(torch: Any, in_use: Numbers | None) -> Numbers:
    if in_use == () or not torch.cuda.is_initialized():
        return ()
    cards = _current_first(int(torch.cuda.current_device()), in_use)
    for number in cards:
        torch.cuda.synchronize(number)
    return cards


def _current_first(current: int, in_use: Numbers | None) -> Numbers:
    if in_use is None:
        return (current,)
    return tuple(sorted(in_use, key=lambda number: (number != current, number)))
