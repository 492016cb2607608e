"""Runs programs of PPCG one after the other; a process of its own, which a crash or hang may end.

Takes a line of JSON, does what it says, answers with a line of JSON. Imports no other package:
it has to start fast.
"""

from __future__ import annotations

import _ctypes
import ctypes
import json
import mmap
import os
import sys
import time
from math import prod
from typing import Any

FLAVOURS = {"uniform": 0, "dominant": 1, "small": 2}
DIGEST = 2 * 4096 + 16384
"""Numbers that stand for an array, as in ``ppcg_runtime.cu``."""


class Child:
    """The library that all share, that of the variant at hand and the memory of its arguments."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        self._library.eatss_error_text.restype = ctypes.c_char_p
        self._library.eatss_restored_bytes.restype = ctypes.c_longlong
        self._library.eatss_burn.argtypes = [ctypes.c_double]
        self._loaded: ctypes.CDLL | None = None
        self._parameters: list[dict[str, Any]] = []
        self._kept: list[object] = []
        self._arrays = 0

    def open(self) -> dict[str, Any]:
        """Open the card."""
        return self._error(self._library.eatss_open())

    def load(
        self, library: str, parameters: list[dict[str, Any]], *, host_statements: bool
    ) -> dict[str, Any]:
        """Take another variant's library in place of the one before."""
        if self._loaded is not None:
            _ctypes.dlclose(self._loaded._handle)
        self._kept.clear()
        self._arrays, self._parameters = 0, parameters
        self._loaded = ctypes.CDLL(library)
        self._library.eatss_load(self._loaded.eatss_call, int(host_statements))
        return self._error(0)

    def burn(self, seconds: float) -> dict[str, Any]:
        """Load the card."""
        return self._error(self._library.eatss_burn(seconds))

    def first(self) -> dict[str, Any]:
        """Make the arguments, run once."""
        scalars = 0
        for place, one in enumerate(self._parameters):
            shape, size = one["shape"], 8 if one["dtype"] == "double" else 4
            if not shape:
                # less than one: what repeated runs scale by them does not grow
                number = (0.6, 0.4, 0.3, 0.7)[scalars % 4]
                value = (ctypes.c_double if size == 8 else ctypes.c_float)(number)
                scalars += 1
                self._kept.append(value)
                self._library.eatss_scalar(place, ctypes.byref(value))
                continue
            count = prod(shape)
            # memory of the host that nothing touches takes none
            room = mmap.mmap(-1, count * size)
            view = (ctypes.c_char * (count * size)).from_buffer(room)
            self._kept += [room, view]
            error = self._library.eatss_array(
                place,
                ctypes.byref(view),
                size,
                ctypes.c_longlong(count),
                ctypes.c_longlong(shape[-2] if len(shape) > 1 else 1),
                ctypes.c_longlong(shape[-1]),
                ctypes.c_longlong(max(shape)),
                FLAVOURS[one["flavour"]],
            )
            if error:
                return self._error(error)
            self._arrays += 1
        return {
            **self.timed(1, restoring=False),
            "restored_bytes": self._library.eatss_restored_bytes(),
        }

    def timed(self, runs: int, *, restoring: bool) -> dict[str, Any]:
        """Run again and again."""
        elapsed = ctypes.c_float()
        error = self._library.eatss_timed(runs, int(restoring), ctypes.byref(elapsed))
        end_s = time.perf_counter()
        answer = {"ms": elapsed.value, "begin_s": end_s - elapsed.value * 1e-3, "end_s": end_s}
        return {**self._error(error), **answer}

    def window(self, settling: int, runs: int, *, restoring: bool) -> dict[str, Any]:
        """Load the card, then run without a pause."""
        error = self._library.eatss_restore()
        load_begin_s = time.perf_counter()
        if settling and not error:
            self.timed(settling, restoring=restoring)
        answer = self.timed(runs, restoring=restoring)
        return {**answer, "load_begin_s": load_begin_s}

    def digest(self, path: str) -> dict[str, Any]:
        """Write what stands for the results into a file."""
        numbers = (ctypes.c_double * DIGEST)()
        written = 0
        with open(path, "wb") as file:  # noqa: PTH123
            for number in range(self._arrays):
                found = self._library.eatss_digest(number, numbers)
                if found < 0:
                    return {"error": "the results could not be read"}
                if found:
                    file.write(bytes(numbers))
                    written += 1
        return {"error": "", "arrays": written}

    def _error(self, number: int) -> dict[str, Any]:
        if number == -1:
            return {"error": "a later run asked for other memory than the first", "usable": True}
        if number == -2:
            return {"error": "the program copies an array more than once", "usable": True}
        if not number:
            return {"error": ""}
        text = self._library.eatss_error_text(number).decode()
        return {"error": f"CUDA: {text}", "usable": not self._library.eatss_restore()}


def main() -> None:
    """Answer until the input ends."""
    child = Child(sys.argv[1])
    for line in sys.stdin:
        command = json.loads(line)
        what = command.pop("do")
        print(json.dumps(getattr(child, what)(**command)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
