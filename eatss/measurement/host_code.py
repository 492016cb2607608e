"""The launchers of a program, compiled: for runs of more launches than Python keeps up with."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eatss.measurement.card import LaunchError
from eatss.program import Argument, Program
from eatss.verify.data import as_parameter, dtype_of


class HostCode:
    """A shared library with the launchers of a program, on the current card."""

    def __init__(self, program: Program, path: Path) -> None:
        """Load what :func:`eatss.measurement.compile.compile_host_code` made.

        Raises:
            LaunchError: it does not load.
        """
        self._program = program
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise LaunchError(f"the host code of {program.name} does not load: {error}") from None

    def run(
        self, bound: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], stream: int
    ) -> None:
        """Enqueue one run: every entry in order.

        Args:
            bound: arrays and scalars of each entry by name.
            sizes: values of the program's parameters.
            stream: address of the stream.

        Raises:
            LaunchError: a launcher refuses.
        """
        for entry, values in zip(self._program.entries, bound, strict=True):
            passed = [_passed(argument, values, sizes) for argument in entry.arguments]
            code = int(getattr(self._library, entry.launcher)(*passed, ctypes.c_void_p(stream)))
            if code < 0:
                message = entry.assumptions[-code - 1].message
                raise LaunchError(f"the launcher refuses these sizes: {message}")
            if code:
                raise LaunchError(f"{entry.launcher} returned CUDA error {code}", lost=True)


def _passed(argument: Argument, values: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    if argument.role in ("array", "cell"):
        return ctypes.c_void_p(values[argument.name].data.ptr)
    if argument.role == "parameter":
        return as_parameter(dtype_of(argument).type(sizes[argument.name]))
    return as_parameter(values[argument.name])
