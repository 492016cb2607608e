"""A program on the arrays of NumPy: its text run on the CPU, as ``eatss verify`` runs it.

It is slow, and it watches: a thread that writes beside an array, a race or a barrier that not all
reach is an error. So a pipeline is tested where there is no card.

``Program`` and sizes in, machine code for a card out: by NVRTC in this process, kept on disk.

Sources and sizes in, programs out: of C or loops in Python, or one that is there already.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.cache import Cache, key_of, versions
from eatss.base.diagnostics import Diagnostic, InternalError, input_error, warn_caller
from eatss.base.frozen import frozen
from eatss.cards import GpuProfile
from eatss.choose.options import SelectOptions
from eatss.frontend.options import DtypeName, Reading
from eatss.lower.recipe import CodeRequest, Recipe
from eatss.measurement import nvrtc
from eatss.program import Entry, Interface, Program
from eatss.program.tokens import definitions, size_text
from eatss.session.found import FoundProgram, find_interface, find_program
from eatss.session.jit.signature import CallSignature, class_of, coarse_class_of, sizes_of
from eatss.session.kept import Kept, kept_interface, kept_program
from eatss.session.source import Source, UnknownFilesError, read_files
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
        folder = Path(tempfile.mkdtemp(prefix="eatss-jit-"))
        # without a word of Python's: a callable that nobody has any more is no leak
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._builder = Builder(program, folder, folder, "cpu")
        self._lock = threading.Lock()

    def run(self, values: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
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


_KIND = "cubin-jit"
_STANDARD = "--std=c++17"


def cubin_of(
    program: Program,
    sizes: Mapping[str, int],
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
    defined = (f"-D{one.macro}={_number(sizes[one.name])}" for one in program.macros)
    options = (f"-arch=sm_{capability}", _STANDARD, *program.flags, *defined)
    text = _with_known(program, known)
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    compiler = (cupy.__version__, runtime, cupy.cuda.nvrtc.getVersion(), sys.platform)
    key = key_of("cubin", program.file, text, options, compiler, versions())
    kept = None if cache is None else cache.get(_KIND, key)
    if kept is not None:
        return kept
    try:
        made, log = nvrtc.compile_text(
            nvrtc.Request(text=text, name=program.file, options=options, target="")
        )
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


def _with_known(program: Program, sizes: Mapping[str, int]) -> str:
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


Sizes = tuple[tuple[str, int], ...]
"""Sizes by the names that the C source has for them."""


@frozen
class SourceMaker:
    """Makes programs of a source called ``name``, one for each class of sizes and type."""

    source: Any
    reading: Reading
    choosing: SelectOptions
    wanted: CodeRequest
    cache: Cache | None
    name: str
    exact_sizes: bool = False

    def files(self) -> str:
        """Return what tells the text of the source from any other, headers included."""
        if not isinstance(self.source, str | PathLike):
            return ""  # loops in Python that were read already
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
        reading, source = self._reading(dtype), Source.of(self.source)
        kept = kept_interface(self.cache, source, reading)
        return kept.found_or(lambda: find_interface(source, reading)).interface

    def class_of(self, signature: CallSignature, sizes: Mapping[str, int]) -> Sizes:
        """Return the sizes that stand for those of a call: the least of the class, or the same."""
        pairs = [(one.name, one.size, sizes[one.size]) for one in sizes_of(signature)]
        if self.exact_sizes:
            return tuple((name, value) for name, _, value in pairs)
        shaping = signature.shaping
        return tuple(
            (name, (class_of if size in shaping else coarse_class_of)(value))
            for name, size, value in pairs
        )

    def job(
        self, dtype: DtypeName | None, sizes: Sizes, profile: GpuProfile | None, *, wide: bool
    ) -> CodeJob:
        """Return all that decides a program; ``wide`` asks for indices of 64 bits."""
        assert profile is not None
        return CodeJob(
            source=self.source,
            reading=self._reading(dtype),
            sizes=sizes,
            profile=profile,
            choosing=self.choosing,
            wanted=replace(self.wanted, index_bits=64) if wide else self.wanted,
        )

    def made(self, job: CodeJob | None) -> Program:
        """Return the program of a job, generated or kept from before; it runs at all sizes.

        Raises:
            InputError: ``EATSS-K0xx``, and what :func:`eatss.codegen` raises.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        assert job is not None
        found = job.kept(self.cache).found_or(lambda: find_program(*job.given()))
        warn_caller(found.warnings)
        return found.program

    def _reading(self, dtype: DtypeName | None) -> Reading:
        return self.reading if dtype is None else replace(self.reading, dtype=dtype)


@frozen
class ProgramMaker:
    """Hands out a program that is there already, whatever the sizes: all are one class."""

    program: Program

    @property
    def name(self) -> str:
        """What the program is called."""
        return self.program.name

    def files(self) -> str:
        """Return nothing: it does not change."""
        return ""

    def interface(self, dtype: DtypeName | None) -> Interface:
        """Return what callers pass."""
        return Interface.of(self.program)

    def class_of(self, signature: CallSignature, sizes: Mapping[str, int]) -> Sizes:
        """Return nothing."""
        return ()

    def job(
        self, dtype: DtypeName | None, sizes: Sizes, profile: GpuProfile | None, *, wide: bool
    ) -> None:
        """Return nothing: it is made."""

    def made(self, job: CodeJob | None) -> Program:
        """Return the program."""
        return self.program


Maker: TypeAlias = SourceMaker | ProgramMaker
"""Where the programs of a callable come from."""


@frozen
class CodeJob:
    """All that decides a program that is selected and generated.

    ``sizes`` are those selected for, by their names in C: macros, or parameters of the function.
    """

    source: Any
    reading: Reading
    sizes: Sizes
    profile: GpuProfile
    choosing: SelectOptions
    wanted: CodeRequest
    recipe: Recipe | None = None

    def kept(self, cache: Cache | None) -> Kept[FoundProgram]:
        """Return the place of the program in a cache."""
        return kept_program(cache, *self.given())

    def given(
        self,
    ) -> tuple[Source, Reading, GpuProfile, SelectOptions, CodeRequest, Recipe | None, Sizes]:
        """Return what it is found with."""
        source = Source.of(self.source)
        return (
            source,
            self.reading,
            self.profile,
            self.choosing,
            self.wanted,
            self.recipe,
            self.sizes,
        )
