"""A loaded generated program: where its arguments live, and what its errors mean."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from eatss.program import Entry
from eatss.verify.data import Buffers, as_parameter
from eatss.verify.result import Status

_KINDS: dict[str, Status] = {
    "launch": "launch error",
    "barrier": "barrier",
    "shared memory": "shared memory",
    "memory": "out of bounds",
    "race": "race",
}


@dataclass(frozen=True, slots=True)
class Launched:
    """What a launcher returned, and what went wrong in words, if anything did.

    ``observed`` is wrong too, but need not have had an effect: a race, or a read beside an array.
    """

    code: int
    status: Status
    message: str
    observed: tuple[Status, str] | None = None


class Machine(Protocol):
    """Runs entries of a loaded library."""

    @property
    def orders(self) -> tuple[bool, ...]:
        """Orders of blocks and threads to run in: forward, and backward where one can choose."""
        ...

    def launch(self, entry: Entry, buffers: Buffers, *, backward: bool) -> Launched:
        """Run an entry; buffers hold the arguments before and after."""
        ...


class CpuMachine:
    """The text compiled for the host with the shim."""

    orders: tuple[bool, ...] = (False, True)

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        word = ctypes.c_size_t
        library.eatss_cpu_watch.argtypes = ctypes.c_char_p, ctypes.c_void_p, word, word, word
        library.eatss_cpu_error.restype = ctypes.c_char_p
        library.eatss_cpu_observed.restype = ctypes.c_char_p
        library.eatss_cpu_blocks.restype = ctypes.c_uint64
        library.eatss_cpu_taken.restype = ctypes.POINTER(ctypes.c_uint64)
        library.eatss_cpu_steps.restype = ctypes.c_uint64

    def taken(self, branches: int) -> npt.NDArray[np.uint64]:
        """Return how many threads found each branch false and true."""
        found = self._library.eatss_cpu_taken()[: 2 * branches]
        return np.array(found, np.uint64).reshape(branches, 2)

    @property
    def steps(self) -> int:
        """Events that have been counted: how long all launches took, on whatever machine."""
        return int(self._library.eatss_cpu_steps())

    def ran(self, kernel: str) -> bool:
        """Return whether any block of a kernel ran."""
        return bool(self._library.eatss_cpu_blocks(kernel.encode()))

    def launch(
        self, entry: Entry, buffers: Buffers, *, backward: bool, dry: bool = False
    ) -> Launched:
        """Run an entry on the buffers themselves; a ``dry`` one only checks its launches."""
        self._library.eatss_cpu_reset(int(backward), int(dry))
        names = [buffer.argument.name.encode() for buffer in buffers]  # the library keeps them
        for name, buffer in zip(names, buffers, strict=True):
            if buffer.argument.role in ("array", "cell"):
                array = buffer.array
                self._library.eatss_cpu_watch(
                    name, buffer.address, array.nbytes, buffer.guard, array.itemsize
                )
        code = _call(self._library, entry, buffers, [buffer.address for buffer in buffers])
        if (failed := _told(self._library.eatss_cpu_error())) is not None:
            return Launched(code, *failed)
        if code > 0:
            return Launched(code, "launch error", f"{entry.launcher} returned CUDA error {code}")
        return Launched(code, "ok", "", _told(self._library.eatss_cpu_observed()))


def _told(said: bytes | None) -> tuple[Status, str] | None:
    """Return what the library says went wrong."""
    if said is None:
        return None
    kind, _, message = said.decode(errors="replace").partition(": ")
    return _KINDS.get(kind, "launch error"), message


class GpuMachine:
    """The text compiled by nvcc, with the driver of ``sources``."""

    orders: tuple[bool, ...] = (False,)

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        word, pointer = ctypes.c_size_t, ctypes.c_void_p
        library.eatss_device_put.restype = pointer
        library.eatss_device_put.argtypes = pointer, word
        library.eatss_device_take.argtypes = pointer, pointer, word
        library.eatss_device_error.restype = ctypes.c_char_p

    def launch(self, entry: Entry, buffers: Buffers, *, backward: bool) -> Launched:
        """Run an entry on copies in device memory, guard zones included."""
        assert not backward
        library = self._library
        places = [library.eatss_device_put(one.raw.ctypes.data, one.raw.size) for one in buffers]
        if None in places:
            raise RuntimeError("the CUDA runtime has no room for the arguments")
        pairs = [*zip(places, buffers, strict=True)]
        addresses = [place + buffer.guard for place, buffer in pairs]
        code = _call(library, entry, buffers, addresses)
        failed = library.eatss_device_wait()
        if code > 0 or failed:
            text = library.eatss_device_error(code if code > 0 else failed).decode()
            return Launched(code, "launch error" if code > 0 else "crash", text)
        for place, buffer in pairs:
            failed |= library.eatss_device_take(buffer.raw.ctypes.data, place, buffer.raw.size)
        if failed:
            raise RuntimeError("the CUDA runtime does not give the arguments back")
        return Launched(code, "ok", "")


def machine_of(library: ctypes.CDLL) -> Machine:
    """Return the machine a library was compiled for."""
    return CpuMachine(library) if hasattr(library, "eatss_cpu_error") else GpuMachine(library)


def _call(library: ctypes.CDLL, entry: Entry, buffers: Buffers, addresses: Sequence[int]) -> int:
    passed: list[Any] = [
        as_parameter(buffer.array.reshape(-1)[0])
        if buffer.argument.role in ("scalar", "parameter")
        else ctypes.c_void_p(address)
        for buffer, address in zip(buffers, addresses, strict=True)
    ]
    return int(getattr(library, entry.launcher)(*passed, ctypes.c_void_p()))
