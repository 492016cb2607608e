"""Program and sizes in, a cubin for one card out: by NVRTC or nvcc, kept for the next time.

What is compiled once is kept in a cache (:mod:`eatss.base.cache`) by everything that decides it:
text, options, architecture, compiler and its full version. What is loaded is a file of this
process, made anew from the cache, which only this user can have written. CuPy's own way to NVRTC is
not used, because it adds ``-ftz=true``, which is not what nvcc does to the same text.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache as once
from pathlib import Path
from typing import Literal

from eatss.base.cache import DEFAULT_LIMIT_BYTES, Cache, default_cache, key_of
from eatss.base.compilers import find_nvcc
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import write_whole
from eatss.base.frozen import frozen
from eatss.base.supervisor import child_environment, run_bounded
from eatss.base.text import one_line
from eatss.measurement import nvrtc
from eatss.measurement.card import CompileError
from eatss.measurement.measurement import CompilerName
from eatss.measurement.options import CompilerChoice
from eatss.program import Program
from eatss.program.expression import Sizes

COMPILE_LIMIT_S = 300.0

_SHOWN_ERRORS = 4
_STANDARD = "--std=c++17"


@frozen
class Toolchain:
    """A compiler that is there. ``command`` starts nvcc, or the program of :mod:`.nvrtc`."""

    name: CompilerName
    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'NVRTC' if self.name == 'nvrtc' else 'nvcc'} {self.version}"


@frozen
class CompileTarget:
    """What it takes to compile a program for a card in another process, and to run it there.

    ``device`` is the card's number as CUDA counts, ``capability`` is as in 90 for 9.0, ``cache``
    and ``limit_bytes`` the folder of what is compiled and how large it may be.
    """

    device: int
    capability: int
    toolchain: Toolchain
    cache: str
    limit_bytes: int = DEFAULT_LIMIT_BYTES

    def compile(self, program: Program, sizes: Sizes) -> Path:
        """Return the machine code at these sizes.

        Raises:
            CompileError: it does not compile.
        """
        options = options_of(self.toolchain, program, sizes, self.capability)
        return _made(self.toolchain, program.text, program.file, options, self._cache)

    def compile_text(self, text: str, file: str) -> Path:
        """Return the machine code of CUDA that belongs to no program.

        ``file`` is its name in messages.

        Raises:
            CompileError: it does not compile.
        """
        options = _target_options(self.toolchain, self.capability)
        return _made(self.toolchain, text, file, options, self._cache)

    @property
    def _cache(self) -> Cache:
        return Cache(Path(self.cache), self.limit_bytes)


@frozen
class Compiled:
    """A file with the machine code of a program at some sizes, and who made it."""

    path: Path
    toolchain: Toolchain


def find_toolchains(choice: CompilerChoice, nvcc: str | None = None) -> tuple[Toolchain, ...]:
    """Return the compilers to use, the first one first, the others where it refuses.

    Args:
        choice: which.
        nvcc: path of an nvcc, by default that of this machine.

    Raises:
        InputError: ``EATSS-E020``, there is none; ``EATSS-V040``, what is named is no nvcc.
    """
    reasons: list[str] = []
    found: list[Toolchain] = []
    if choice in ("auto", "nvrtc"):
        try:
            command = (sys.executable, "-m", "eatss.measurement.nvrtc")
            found.append(Toolchain(name="nvrtc", version=nvrtc.version(), command=command))
        except Exception as error:  # CuPy and its libraries raise classes of their own
            reasons.append(f"NVRTC does not load ({one_line(error)})")
    if choice in ("auto", "nvcc"):
        try:
            found.append(_nvcc(nvcc))
        except InputError as error:
            if nvcc is not None:
                raise
            reasons.append(error.diagnostics[0].message)
    if not found:
        raise input_error(
            "EATSS-E020",
            f"nothing compiles CUDA here: {'; '.join(reasons)}",
            hint="install the CUDA toolkit, or pip install 'cupy-cuda13x[ctk]' for NVRTC",
        )
    return tuple(found)


def compile_program(
    toolchains: Sequence[Toolchain],
    program: Program,
    sizes: Sizes,
    capability: int,
    *,
    cache: Path | Cache,
    limit_s: float = COMPILE_LIMIT_S,
) -> Compiled:
    """Compile a program for a card, or find what was compiled before.

    Args:
        toolchains: compilers, tried in turn until one takes the text.
        program: what to compile.
        sizes: values of its parameters; those that are macros are compiled in.
        capability: of the card, as in 90 for 9.0.
        cache: where compiled programs are kept, or the folder of such a cache.
        limit_s: seconds a compiler may take.

    Raises:
        CompileError: none takes it; the text is the last one's first errors.
    """
    refused: CompileError | None = None
    for toolchain in toolchains:
        options = options_of(toolchain, program, sizes, capability)
        try:
            path = _made(toolchain, program.text, program.file, options, cache, limit_s=limit_s)
        except CompileError as error:
            refused = error
        else:
            return Compiled(path=path, toolchain=toolchain)
    assert refused is not None
    raise refused


def compile_host_code(
    toolchain: Toolchain, program: Program, sizes: Sizes, capability: int, *, cache: Cache
) -> Path:
    """Compile the whole text, launchers included, to a shared library by nvcc.

    Arguments are those of :func:`compile_program`.

    Raises:
        CompileError: nvcc does not take it.
    """
    options = (*options_of(toolchain, program, sizes, capability), "-shared", "-Xcompiler", "-fPIC")
    return _made(toolchain, program.text, program.file, options, cache, kind="library")


def options_of(
    toolchain: Toolchain, program: Program, sizes: Sizes, capability: int
) -> tuple[str, ...]:
    """Return what a compiler is told; NVRTC optimises as ``-O3`` does without being told."""
    macros = ((one.macro, sizes[one.name]) for one in program.macros)
    return (
        *_target_options(toolchain, capability),
        *program.flags,
        *(f"-D{name}={value if value >= 0 else f'({value})'}" for name, value in macros),
    )


def _target_options(toolchain: Toolchain, capability: int) -> tuple[str, ...]:
    optimised = ("-O3",) if toolchain.name == "nvcc" else ()
    return (f"-arch=sm_{capability}", _STANDARD, *optimised)


def _made(
    toolchain: Toolchain,
    text: str,
    file: str,
    options: tuple[str, ...],
    cache: Path | Cache,
    *,
    kind: Literal["cubin", "library"] = "cubin",
    limit_s: float = COMPILE_LIMIT_S,
) -> Path:
    """Return a file of this process with what was compiled, now or before."""
    by_nvcc = toolchain.name == "nvcc"
    target = options[0].removeprefix("-arch=")
    if by_nvcc and kind == "cubin":
        options = ("-cubin", *options)
    kept = Cache(cache) if isinstance(cache, Path) else cache
    key = key_of(1, toolchain.name, toolchain.version, options, file, text)
    code = kept.get(kind, key)
    if code is None:
        with tempfile.TemporaryDirectory(prefix="eatss-making-") as work:
            made = Path(work) / "made"
            if by_nvcc:
                (Path(work) / file).write_text(text, encoding="utf-8")
                _run(toolchain, (*options, file, "-o", str(made)), "", work, limit_s)
            else:
                asked = nvrtc.Request(text=text, name=file, options=options, target=str(made))
                _run(toolchain, (), asked.to_json(), work, limit_s)
            try:
                code = made.read_bytes()
            except FileNotFoundError:
                raise CompileError(f"{toolchain} says that all is well, and made no code") from None
        kept.put(kind, key, code, about=f"{file} by {toolchain} for {target}")
    path = Path(_of_this_process().name) / f"{key}{'.cubin' if kind == 'cubin' else '.so'}"
    write_whole(path, code)
    return path


def _run(
    toolchain: Toolchain, words: Sequence[str], given: str, directory: str, limit_s: float
) -> None:
    command, environment = (*toolchain.command, *words), child_environment({"LC_ALL": "C"})
    try:
        code, said = run_bounded(command, directory, limit_s, given, environment)
    except OSError as error:
        raise CompileError(f"{toolchain} does not start: {error}") from None
    except subprocess.TimeoutExpired:
        raise CompileError(f"{toolchain} did not finish within {limit_s:g} s") from None
    if code:
        raise CompileError(f"{toolchain}: {first_errors(said)}")


def first_errors(said: str) -> str:
    """Return the first errors of what a compiler said, or its last line if it names none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    return "\n".join(errors[:_SHOWN_ERRORS] or lines[-1:] or ["it failed and said nothing"])


def _nvcc(named: str | None) -> Toolchain:
    found = find_nvcc(named)
    return Toolchain(name="nvcc", version=found.version, command=(found.path,))


def usable_cache(wanted: Path | Cache | None = None) -> Cache:
    """Return a cache, by default the user's, if it can be used, else one for this process.

    Args:
        wanted: a cache, or its folder.
    """
    cache = Cache(wanted) if isinstance(wanted, Path) else wanted or default_cache()
    return cache if cache.problem() is None else Cache(Path(_of_this_process().name) / "cache")


@once
def _of_this_process() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="eatss-compiled-")
