"""A program on the arrays of NumPy: its text run on the CPU, as ``eatss verify`` runs it.

It is slow, and it watches: a thread that writes beside an array, a race or a barrier that not all
reach is an error. So a pipeline is tested where there is no card.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, InternalError, input_error
from eatss.program import Entry, Program
from eatss.session.jit.signature import CallSignature
from eatss.verify.build import Builder, CompileError
from eatss.verify.data import Buffer, blank_buffer
from eatss.verify.device import CpuMachine


class HostProgram:
    """A program for the CPU: compiled on its first call, for all sizes where that can be.

    Calls of several threads follow one another, because the library keeps what it sees.

    Args:
        program: what is called.
        signature: what its callers pass.
    """

    def __init__(self, program: Program, signature: CallSignature) -> None:
        self.program = program
        self._signature = signature
        self._folder = tempfile.TemporaryDirectory(prefix="eatss-jit-")
        folder = Path(self._folder.name)
        self._builder = Builder(program, folder, folder, "cpu", None)
        self._lock = threading.Lock()

    def run(self, values: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        """Run one call; arrays that are written hold the results.

        Args:
            values: arrays of NumPy and scalars by name.
            sizes: those of the problem.

        Raises:
            InputError: ``EATSS-J017``, it does not compile here.
            InternalError: ``EATSS-J900``, the generated code did what it may not.
        """
        with self._lock:
            try:
                library = self._builder.load(self._builder.generated(sizes), sizes)
            except CompileError as error:
                raise input_error(
                    "EATSS-J017",
                    f"'{self.program.name}' does not compile for the CPU: {error}",
                    hint="arrays of NumPy need g++ on the path; arrays on a card do not",
                ) from None
            machine = CpuMachine(library)
            for number, entry in enumerate(self.program.entries):
                names = {inner: outer for outer, inner in self._signature.names[number]}
                self._run_entry(machine, entry, names, values, sizes)

    def _run_entry(
        self,
        machine: CpuMachine,
        entry: Entry,
        names: Mapping[str, str],
        values: Mapping[str, Any],
        sizes: Mapping[str, int],
    ) -> None:
        buffers = tuple(
            blank_buffer(argument, number, sizes) for number, argument in enumerate(entry.arguments)
        )
        for buffer in buffers:
            argument = buffer.argument
            if argument.role == "parameter":
                buffer.array[...] = sizes[argument.name]
            elif argument.reads or argument.writes:
                _copy(values[names[argument.name]], buffer)
        done = machine.launch(entry, buffers, backward=False)
        if done.code < 0:
            said = entry.assumptions[-done.code - 1].message
            raise _fault(entry, f"it refused sizes that its plan allows: {said}")
        if done.status != "ok":
            raise _fault(entry, done.message)
        if done.observed is not None:
            raise _fault(entry, done.observed[1])
        for buffer in buffers:
            if buffer.first_stray_write() is not None:
                raise _fault(entry, f"memory beside '{buffer.argument.name}' was written")
            if buffer.argument.writes:
                _result(values[names[buffer.argument.name]], buffer)


def _copy(value: Any, buffer: Buffer) -> None:
    buffer.array[...] = np.asarray(value).reshape(buffer.shape)


def _result(value: npt.NDArray[Any], buffer: Buffer) -> None:
    value[...] = buffer.array.reshape(value.shape)


def _fault(entry: Entry, what: str) -> InternalError:
    return InternalError(
        Diagnostic(
            code="EATSS-J900",
            message=f"'{entry.launcher}' failed on the CPU: {what}",
            hint="this is a fault of eatss; please report it with the source",
        )
    )
