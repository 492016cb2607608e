"""The programs of a callable: made of a source at sizes, compiled for a card, run on the CPU."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from eatss.base.cache import Cache, key_of, versions
from eatss.base.diagnostics import Diagnostic, InternalError, input_error, warn_caller
from eatss.base.frozen import frozen
from eatss.cards import GpuProfile
from eatss.choose.options import SelectOptions
from eatss.frontend.options import DtypeName, Reading
from eatss.lower.recipe import CodeRequest
from eatss.measurement import nvrtc
from eatss.measurement.compile import options_of
from eatss.program import Entry, Interface, Program
from eatss.program.expression import SizePairs, Sizes
from eatss.program.tokens import definitions, size_text
from eatss.session.found import find_interface, find_program
from eatss.session.jit.arrays import Values
from eatss.session.jit.signature import CallSignature, class_of
from eatss.session.kept import kept
from eatss.session.source import Source, UnknownFilesError, read_files
from eatss.verify.build import Builder, CompileError
from eatss.verify.data import Buffer, blank_buffer
from eatss.verify.device import CpuMachine, Launched


class HostProgram:
    """A program for the CPU, run as ``eatss verify`` runs it: slowly, and every access is watched.

    It is compiled on its first call, for all sizes where that can be. Calls of several threads
    follow one another, because the library keeps what it sees.

    Args:
        program: what is called.
        signature: what its callers pass.
    """

    def __init__(self, program: Program, signature: CallSignature) -> None:
        self.program = program
        self._signature = signature
        folder = Path(tempfile.mkdtemp(prefix="eatss-jit-"))
        # without a word of Python's: a callable that nobody has any more is no leak
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._builder = Builder(program, folder, folder, "cpu")
        self._lock = threading.Lock()

    def run(self, values: Values, sizes: Sizes) -> None:
        """Run one call; arrays that are written hold the results.

        Args:
            values: arrays of NumPy and scalars by name.
            sizes: those of the problem.

        Raises:
            InputError: ``EATSS-J015``, it does not compile here.
            InternalError: ``EATSS-J900``, the generated code did what it may not.
        """
        with self._lock:
            try:
                library = self._builder.load(self._builder.generated(sizes), sizes)
            except CompileError as error:
                raise input_error(
                    "EATSS-J015",
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
        values: Values,
        sizes: Sizes,
    ) -> None:
        buffers = tuple(
            blank_buffer(argument, number, sizes) for number, argument in enumerate(entry.arguments)
        )
        given = []
        for buffer in buffers:
            argument = buffer.argument
            if argument.role == "parameter":
                buffer.array[...] = sizes[argument.name]
            elif argument.reads or argument.writes:
                value = values[names[argument.name]]
                buffer.array[...] = np.asarray(value).reshape(buffer.shape)
                given.append((buffer, value))
        wrong = _wrong(entry, machine.launch(entry, buffers, backward=False), buffers)
        if wrong:
            raise InternalError(
                Diagnostic(
                    code="EATSS-J900",
                    message=f"'{entry.launcher}' failed on the CPU: {wrong}",
                    hint="this is a fault of eatss; please report it with the source",
                )
            )
        for buffer, value in given:
            if buffer.argument.writes:
                value[...] = buffer.array.reshape(value.shape)


def _wrong(entry: Entry, done: Launched, buffers: Sequence[Buffer]) -> str:
    """Return what generated code did that it may not."""
    if done.code < 0:
        said = entry.assumptions[-done.code - 1].message
        return f"it refused sizes that its plan allows: {said}"
    if done.status != "ok":
        return done.message
    if done.observed is not None:
        return done.observed[1]
    stray = (one for one in buffers if one.first_stray_write() is not None)
    return next((f"memory beside '{one.argument.name}' was written" for one in stray), "")


_KIND = "cubin-jit"
_STANDARD = "--std=c++17"


def cubin_of(
    program: Program,
    sizes: Sizes,
    capability: int,
    cupy: Any,
    cache: Cache | None,
) -> bytes:
    """Return the machine code of a program for some sizes.

    Macros are compiled in, of arguments the compiler is told.

    Args:
        program: what to compile.
        sizes: those of the problem.
        capability: of the card, as in 90 for 9.0.
        cupy: the module, which knows where NVRTC is.
        cache: what was compiled before.

    Raises:
        InputError: ``EATSS-J015``, NVRTC refuses the text or is not there.
    """
    known = {one.name: sizes[one.name] for one in program.parameters if one.kind != "macro"}
    options = (f"-arch=sm_{capability}", _STANDARD, *options_of(program, sizes))
    text = _with_known(program, known)
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    compiler = (cupy.__version__, runtime, cupy.cuda.nvrtc.getVersion(), sys.platform)
    key = key_of("cubin", program.file, text, options, compiler, versions())
    kept = None if cache is None else cache.get(_KIND, key)
    if kept is not None:
        return kept
    try:
        made, log = nvrtc.compile_text(text, program.file, options)
    except Exception as error:  # CuPy and its libraries raise classes of their own
        made, log = None, " ".join(str(error).split())
    if made is None:
        raise input_error(
            "EATSS-J015",
            f"NVRTC does not compile '{program.name}': {log[:400]}",
            hint="'eatss doctor' says what this machine has",
        )
    if cache is not None:
        cache.put(_KIND, key, made)
    return made


def _with_known(program: Program, sizes: Sizes) -> str:
    """Return a text whose kernels say what sizes they are passed: as fast as if compiled in."""
    text = program.text
    arguments = {kernel.name: kernel.arguments for kernel in program.kernels}
    for function in reversed(definitions(text, arguments)):
        said = "".join(
            f" __builtin_assume({size_text(name)} == {_number(sizes[name])});"
            for name in arguments[function.name]
            if name in sizes
        )
        place = text.rindex("{", 0, function.body[0].start) + 1
        text = text[:place] + said + text[place:]
    return text


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


@frozen
class Maker:
    """Makes the programs of a callable called ``name``: one for each class of sizes and type.

    All of a callable are made of one ``source``, or are the ``program`` that is there already. Of
    one that is to be made, ``sizes`` are those selected for, and ``recipe`` what is decided.
    """

    name: str
    program: Program | None = None
    source: Any = None
    reading: Reading = Reading()
    choosing: SelectOptions = SelectOptions(target="cuda")
    wanted: CodeRequest = CodeRequest()
    exact_sizes: bool = False
    cache: Cache | None = None
    profile: GpuProfile | None = None
    sizes: SizePairs = ()

    def files(self) -> str:
        """Return what tells the text of the source from any other, headers included."""
        if not isinstance(self.source, str | PathLike):
            return ""  # loops in Python that were read already, or a program
        try:
            return key_of(read_files(self.source, self.reading.frontend().include_dirs))
        except (UnknownFilesError, OSError, ValueError):
            return ""  # who reads it says what is wrong

    def interface(self, dtype: DtypeName | None) -> Interface:
        """Return what callers pass, where floating-point numbers are of a type.

        The source is read, nothing is scheduled.

        Raises:
            InputError: the source is refused.
        """
        if self.program is not None:
            return Interface.of(self.program)
        given = Source.of(self.source), self._reading(dtype)
        return kept(self.cache, "interface", lambda: find_interface(*given), *given).noun

    def class_of(self, sizes: SizePairs) -> SizePairs:
        """Return the sizes that stand for those of a call: the least of the class, or the same."""
        if self.program is not None:
            return ()
        return tuple(
            (name, value if self.exact_sizes else class_of(value)) for name, value in sizes
        )

    def at(
        self, dtype: DtypeName | None, sizes: SizePairs, profile: GpuProfile | None, *, wide: bool
    ) -> Maker:
        """Return what makes one program; ``wide`` asks for indices of 64 bits."""
        wanted = replace(self.wanted, index_bits=64) if wide else self.wanted
        reading = self._reading(dtype)
        return replace(self, sizes=sizes, profile=profile, reading=reading, wanted=wanted)

    def made(self) -> Program:
        """Return the program, generated or kept from before; it runs at all sizes.

        Raises:
            InputError: ``EATSS-K0xx``, and what :func:`eatss.codegen` raises.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        if self.program is not None:
            return self.program
        given = self._given()
        found = kept(self.cache, "codegen", lambda: find_program(*given), *given)
        warn_caller(found.warnings)
        return found.noun

    def _given(self) -> Any:
        assert self.profile is not None
        how = Source.of(self.source), self.reading, self.profile, self.choosing, self.wanted
        return *how, None, self.sizes

    def _reading(self, dtype: DtypeName | None) -> Reading:
        return self.reading if dtype is None else replace(self.reading, dtype=dtype)
