"""Compiles the generated text, the original, and the original over numbers with error bounds."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import Names
from eatss.base.supervisor import run_bounded
from eatss.base.text import Texts
from eatss.program import Program
from eatss.program.expression import Sizes
from eatss.verify.compare import Pointers
from eatss.verify.instrumentation import instrumented_text
from eatss.verify.result import DEFAULT_COMPILERS, Compilers, Device
from eatss.verify.sources import (
    TextByName,
    gpu_text,
    has_parts,
    included_text,
    original_text,
    size_variable,
    size_variables,
    with_numbers,
    with_open_arrays,
    with_switches,
)

SHIM = Path(__file__).parent / "shim"
_COMPILE_LIMIT_S = 300.0
# -fivopts: GCC 12 takes some functions that write for pure, and loses their stores
_EXACT = (
    "-O1",
    "-fno-ivopts",
    "-ffp-contract=off",
    "-fwrapv",
    "-shared",
    "-fPIC",
    "-w",
    "-Wl,-Bsymbolic",
)
SECTIONS = ("-ffunction-sections", "-fdata-sections")
NUMBERS = (
    "-std=gnu++17",
    "-fpermissive",
    "-fno-operator-names",
    *_EXACT,
    "-O2",
    "-fno-strict-aliasing",
)
TEXT = (
    "-std=c++17",
    "-DEATSS_CPU",
    "-DEATSS_BRANCHES",
    *_EXACT,
    "-Og",  # compiles in half the time of -O1, where the longest runs take a sixth less
    "-fira-region=one",  # a sixth less again, and runs take as long
    "-fsanitize=thread",
    "-fsanitize=bounds-strict",
    "--param=tsan-instrument-func-entry-exit=0",
)
_HALF = "eatss_half"
_HALVES = ("-fexcess-precision=16",)
"""Operations on halves round each to a half, which compilers do not do by themselves."""

_EXPORTED = "{ global: eatss_*; local: *; };"
_MACRO = re.compile(r"#define (\w+)(\([^)]*\))? ?(.*)")
_UNDEFINED = re.compile(r"undefined reference to [`'](\w+)'")


Build: TypeAlias = Callable[[Path, TextByName], Path]
"""Builds a library of texts for sizes."""


def if_it_can(what: str) -> Texts:
    """Return the option for what this processor can do by itself, if it can."""
    with suppress(OSError):
        if f" {what} " in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            return (f"-m{what}",)
    return ()


class CompileError(Exception):
    """A compiler refused: what it said, shortened."""


class Builder:
    """Compiles a program's libraries, each once.

    On a CPU macro sizes become variables, so that one library serves all sizes; where the
    original does not allow that (arrays at file scope), there is one library for each choice.
    """

    def __init__(
        self,
        program: Program,
        directory: Path,
        work: Path,
        device: Device,
        compilers: Compilers = DEFAULT_COMPILERS,
    ) -> None:
        self._compilers = compilers
        self._program = program
        self._directory = directory
        self._work = work
        self._device = device
        self._macros = tuple(one.name for one in program.macros)
        self._built: dict[tuple[str, Texts], Path | CompileError] = {}
        self._vanished: Names | None = None

    def generated(self, sizes: Sizes) -> Path:
        """Return the library of the generated text; ``CompileError`` if it does not compile."""
        if self._device == "gpu":
            return self._once("gpu", {name: str(sizes[name]) for name in self._macros}, self._gpu)
        return self._either("cpu", sizes, self._cpu)

    def original(self, sizes: Sizes) -> Path:
        """Return the library of the original; ``CompileError`` if it does not compile."""
        return self._either("original", sizes, self._original)

    def numbers(self, sizes: Sizes) -> Path:
        """Return the original over numbers with error bounds; ``CompileError`` if it is not C++."""
        return self._either("numbers", sizes, self._numbers)

    def load(self, path: Path, sizes: Sizes) -> ctypes.CDLL:
        """Load a library and give the macro sizes that it has as variables their values."""
        library = ctypes.CDLL(str(path))
        for name in self._macros:
            try:
                variable = ctypes.c_int.in_dll(library, size_variable(name))
            except ValueError:
                break
            variable.value = sizes[name]
        return library

    def call(self, library: ctypes.CDLL, entry: int) -> Callable[[Pointers], bool]:
        """Return what runs an entry of an original on pointers to its arguments.

        It tells whether the function reached its region.
        """
        function = getattr(library, f"eatss_call_{entry}")
        function.restype = ctypes.c_int
        return lambda pointers: bool(function(pointers))

    # -----------------------------------------------------------------------------------------

    def _either(self, kind: str, sizes: Sizes, build: Build) -> Path:
        """Return the library for all sizes, or where there is none the one for these."""
        with suppress(CompileError):
            if self._macros:
                variables = {name: size_variable(name) for name in self._macros}
                return self._once(kind, variables, build)
        return self._once(kind, {name: str(sizes[name]) for name in self._macros}, build)

    def _once(self, kind: str, texts: TextByName, build: Build) -> Path:
        key = (kind, tuple(texts.values()))
        if key not in self._built:
            tag = "any" if self._vary(texts) else "_".join(texts.values()).replace("-", "m")
            made = self._work / f"{kind}_{tag or 'fixed'}.so"
            try:
                self._built[key] = build(made, texts)
            except CompileError as error:
                self._built[key] = error
        found = self._built[key]
        if isinstance(found, CompileError):
            raise found
        return found

    def _vary(self, texts: TextByName) -> Sequence[str]:
        """Return the macro sizes that variables stand for."""
        return [name for name, text in texts.items() if text == size_variable(name)]

    def _set(self, texts: TextByName) -> list[str]:
        """Return options that set macro sizes in the generated text."""
        return _definitions({one.macro: texts[one.name] for one in self._program.macros})

    def _cpu(self, target: Path, texts: TextByName) -> Path:
        text, branches = instrumented_text(self._program)
        variables = target.with_suffix(".hpp")
        variables.write_text(
            size_variables(self._vary(texts), language="c++")
            + f"eatss::Taken eatss::taken[{len(branches) + 1}];\n",
            encoding="utf-8",
        )
        source = target.with_suffix(".cu")
        place = (self._directory / self._program.file).resolve()
        source.write_text(f'#line 1 "{place}"\n{text}', encoding="utf-8")
        command = [
            self._compilers.cxx,
            *TEXT,
            *if_it_can("fma"),  # products of tensor cores are full of it
            *self._set(texts),
            f"-I{place.parent}",
        ]
        command += ["-include", str(SHIM / "eatss_cpu.hpp"), "-include", str(variables)]
        made = self._compile([*command, "-x", "c++", "-c", str(source)], target.with_suffix(".o"))
        return self._compile([self._compilers.cxx, *_EXACT, str(made), "-lm"], target)

    def _gpu(self, target: Path, texts: TextByName) -> Path:
        source = target.with_suffix(".cu")
        source.write_text(gpu_text(self._program, self._directory), encoding="utf-8")
        command = [self._compilers.nvcc, "-arch=native", "-O3", "-std=c++17", "-shared"]
        command += [
            "-Xcompiler",
            "-fPIC",
            "-Xlinker",
            "-Bsymbolic",
            *self._program.flags,
            *self._set(texts),
        ]
        return self._compile([*command, str(source)], target)

    def _original(self, target: Path, texts: TextByName) -> Path:
        program = self._program
        included = included_text(program, self._directory)
        if has_parts(program):
            included = self._switched(included, target, _definitions(texts), "c")
        command = [self._compilers.cc, "-x", "c", "-std=gnu11", *_EXACT, *self._only_called()]
        command += _definitions(texts)
        if _HALF in program.text:  # the function that converts one takes ten times as long
            command += [*_HALVES, *if_it_can("f16c")]
        source = target.with_suffix(".c")
        source.write_text(self._text(included, texts, "c"), encoding="utf-8")
        return self._compile([*command, *self._options(), str(source), "-lm"], target)

    def _text(self, included: str, texts: TextByName, language: Literal["c", "c++"]) -> str:
        return original_text(
            self._program,
            included,
            language=language,
            sizes=texts,
            variables=size_variables(self._vary(texts), language=language),
        )

    def _numbers(self, target: Path, texts: TextByName) -> Path:
        """Compile the original as C++; after C's preprocessor, which may paste names of types."""
        program = self._program
        included = included_text(program, self._directory)
        included = self._switched(included, target, _definitions(texts), "c++")
        source = target.with_suffix(".cpp")
        text = self._text(included, texts, "c++")
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        command = [self._compilers.cxx, *NUMBERS, *self._only_called()]
        command += ["-include", str(SHIM / "eatss_number.hpp"), "-x", "c++", str(source), "-lm"]
        return self._compile(command, target)

    def _only_called(self) -> Names:
        """Return options that keep what calls reach: ``main`` may use other files' functions."""
        exported = self._work / "exported.map"
        exported.write_text(_EXPORTED, encoding="utf-8")
        linked = ("-Wl,--gc-sections", "-Wl,-z,defs", f"-Wl,--version-script={exported}")
        return (*SECTIONS, *linked)

    def _switched(
        self, included: str, target: Path, sizes: Sequence[str], language: Literal["c", "c++"]
    ) -> str:
        """Preprocess the original, put switches around its regions; return what includes it."""
        source, expanded = target.with_suffix(".c"), target.with_suffix(".i")
        source.write_text(included, encoding="utf-8", errors="surrogateescape")
        command = [self._compilers.cc, "-E", "-std=gnu11", *sizes, *self._options(), str(source)]
        text = self._compile(command, expanded).read_text(errors="surrogateescape")
        text = with_switches(text, self._program, self._directory, system_headers=language == "c")
        if language == "c++":
            text = with_open_arrays(text)
            text = with_numbers(text) if self._program.fast_math else text
        expanded.write_text(text, encoding="utf-8", errors="surrogateescape")
        return f'#include "{expanded}"\n'

    def _options(self) -> list[str]:
        original = self._program.original
        include = [
            f"-I{self._directory}",
            *(f"-I{self._directory / place}" for place in original.include_dirs),
        ]
        given = [f"-D{define}" for define in original.defines]
        if self._vanished is None:
            self._vanished = self._vanishing(given, include) if self._macros else ()
        return [*given, *self._vanished, *include]

    def _vanishing(self, given: Sequence[str], include: Sequence[str]) -> Names:
        """Return options that define what the original no longer does where its sizes are given.

        Headers define the sizes of a data set together, where none of them is (``#if !defined(N)
        && !defined(TSTEPS)``).
        """
        path = (self._directory / self._program.original.file).resolve()
        source, listing = self._work / "macros.c", self._work / "macros.txt"
        source.write_text(f'#include "{path}"\n', encoding="utf-8", errors="surrogateescape")

        def defined(*options: str) -> dict[str, str]:
            gcc = self._compilers.cc
            command = [gcc, "-E", "-dM", "-std=gnu11", *options, *include, str(source)]
            text = self._compile(command, listing).read_text(errors="surrogateescape")
            found = _MACRO.finditer(text)
            return {match[1]: f"-D{match[1]}{match[2] or ''}={match[3]}" for match in found}

        try:
            usual = defined(*given)
            kept = defined(*given, *(f"-D{name}=1" for name in self._macros))
        except CompileError:
            return ()
        return tuple(option for name, option in usual.items() if name not in kept)

    def _compile(self, command: Sequence[str], target: Path) -> Path:
        if shutil.which(command[0]) is None:
            raise input_error(
                "EATSS-V010",
                f"there is no compiler '{command[0]}'",
                hint="install it, or name another with --cc, --cxx or --nvcc; verification needs "
                "gcc and g++, and nvcc for --device gpu",
            )
        try:
            code, said = run_bounded(
                [*command, "-o", str(target)],
                ".",
                _COMPILE_LIMIT_S,
                environment={**os.environ, "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            message = f"{command[0]} did not finish within {_COMPILE_LIMIT_S:.0f} s"
            raise CompileError(message) from None
        if code:
            raise CompileError(_shortened(said))
        return target


def _shortened(said: str) -> str:
    """Return the first errors of a compiler, or what the linker misses."""
    undefined = dict.fromkeys(match[1] for match in _UNDEFINED.finditer(said))
    if undefined:
        return "it uses " + ", ".join(f"'{name}'" for name in undefined) + ", defined elsewhere"
    lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines()
    return "\n".join(lines[:4])


def _definitions(texts: TextByName) -> list[str]:
    return [
        f"-D{name}=({text})" if text[0] == "-" else f"-D{name}={text}"
        for name, text in texts.items()
    ]
