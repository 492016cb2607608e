"""Program and sizes in, a cubin for one card out: by NVRTC or nvcc, kept for the next time.

What is compiled once is kept in a folder under the SHA-256 of everything that decides it: text,
options, architecture, compiler and its full version. CuPy's own way to NVRTC is not used, because
it adds ``-ftz=true``, which is not what nvcc does to the same text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.diagnostics import input_error
from eatss.guard import guarded
from eatss.measurement import nvrtc
from eatss.measurement.card import CompileError
from eatss.measurement.options import CompilerChoice
from eatss.program import Program
from eatss.supervisor import child_environment, signal_group

CompilerName: TypeAlias = Literal["nvrtc", "nvcc"]

COMPILE_LIMIT_S = 300.0

_SHOWN_ERRORS = 4
_NVCC_RELEASE = re.compile(r"release [\d.]+, V([\d.]+)")
_STANDARD = "--std=c++17"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A compiler that is there. ``command`` starts nvcc, or the program of :mod:`.nvrtc`."""

    name: CompilerName
    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'NVRTC' if self.name == 'nvrtc' else 'nvcc'} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileTarget:
    """What it takes to compile a program for a card in another process, and to run it there.

    ``device`` is the card's number as CUDA counts, ``capability`` is as in 90 for 9.0, ``cache``
    the folder of what is compiled.
    """

    device: int
    capability: int
    toolchain: Toolchain
    cache: str

    def compile(self, program: Program, sizes: Mapping[str, int]) -> Path:
        """Return the machine code at these sizes.

        Raises:
            CompileError: it does not compile.
        """
        cache = Path(self.cache)
        return compile_program((self.toolchain,), program, sizes, self.capability, cache=cache).path

    def compile_text(self, text: str, file: str) -> Path:
        """Return the machine code of CUDA that belongs to no program.

        ``file`` is its name in messages.

        Raises:
            CompileError: it does not compile.
        """
        options = tuple(_target_options(self.toolchain, self.capability))
        return _cubin(self.toolchain, text, file, options, Path(self.cache), COMPILE_LIMIT_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A file with the machine code of a program at some sizes, and who made it."""

    path: Path
    toolchain: Toolchain


def find_toolchains(choice: CompilerChoice) -> tuple[Toolchain, ...]:
    """Return the compilers to use, the first one first, the others where it refuses.

    Raises:
        InputError: ``EATSS-E020``, there is none.
    """
    reasons: list[str] = []
    found: list[Toolchain] = []
    if choice in ("auto", "nvrtc"):
        try:
            command = (sys.executable, "-m", "eatss.measurement.nvrtc")
            found.append(Toolchain(name="nvrtc", version=nvrtc.version(), command=command))
        except Exception as error:  # CuPy and its libraries raise classes of their own
            reasons.append(f"NVRTC does not load ({_one_line(error)})")
    if choice in ("auto", "nvcc"):
        try:
            found.append(_nvcc())
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(f"nvcc does not start ({_one_line(error)})")
    if not found:
        raise input_error(
            "EATSS-E020",
            f"nothing compiles CUDA here: {'; '.join(reasons)}",
            hint="install the CUDA toolkit, or pip install 'cupy-cuda13x[ctk]' for NVRTC",
        )
    return tuple(found)


def default_cache() -> Path:
    """Return the folder that compiled programs are kept in: below ``XDG_CACHE_HOME``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "eatss" / "cubin"


def compile_program(
    toolchains: Sequence[Toolchain],
    program: Program,
    sizes: Mapping[str, int],
    capability: int,
    *,
    cache: Path,
    limit_s: float = COMPILE_LIMIT_S,
) -> Compiled:
    """Compile a program for a card, or find what was compiled before.

    Args:
        toolchains: compilers, tried in turn until one takes the text.
        program: what to compile.
        sizes: values of its parameters; those that are macros are compiled in.
        capability: of the card, as in 90 for 9.0.
        cache: folder of compiled programs; it is made if need be.
        limit_s: seconds a compiler may take.

    Raises:
        CompileError: none takes it; the text is the last one's first errors.
    """
    refused: CompileError | None = None
    for toolchain in toolchains:
        options = options_of(toolchain, program, sizes, capability)
        try:
            path = _cubin(toolchain, program.text, program.file, options, cache, limit_s)
        except CompileError as error:
            refused = error
            continue
        return Compiled(path=path, toolchain=toolchain)
    assert refused is not None
    raise refused


def compile_host_code(
    toolchain: Toolchain,
    program: Program,
    sizes: Mapping[str, int],
    capability: int,
    *,
    cache: Path,
    limit_s: float = COMPILE_LIMIT_S,
) -> Path:
    """Compile the whole text, launchers included, to a shared library by nvcc.

    Arguments are those of :func:`compile_program`.

    Raises:
        CompileError: nvcc does not take it.
    """
    options = (*options_of(toolchain, program, sizes, capability), "-shared", "-Xcompiler", "-fPIC")
    return _made(toolchain, program.text, program.file, options, cache, limit_s, suffix=".so")


def options_of(
    toolchain: Toolchain, program: Program, sizes: Mapping[str, int], capability: int
) -> tuple[str, ...]:
    """Return what a compiler is told; NVRTC optimises as ``-O3`` does without being told."""
    options = [*_target_options(toolchain, capability), *program.flags]
    for parameter in program.parameters:
        if parameter.kind == "macro":
            value = sizes[parameter.name]
            options.append(f"-D{parameter.name}={value if value >= 0 else f'({value})'}")
    return tuple(options)


def _target_options(toolchain: Toolchain, capability: int) -> list[str]:
    options = [f"-arch=sm_{capability}", _STANDARD]
    return [*options, "-O3"] if toolchain.name == "nvcc" else options


def _cubin(
    toolchain: Toolchain,
    text: str,
    file: str,
    options: tuple[str, ...],
    cache: Path,
    limit_s: float,
) -> Path:
    if toolchain.name == "nvcc":
        options = ("-cubin", *options)
    return _made(toolchain, text, file, options, cache, limit_s, suffix=".cubin")


def _made(
    toolchain: Toolchain,
    text: str,
    file: str,
    options: tuple[str, ...],
    cache: Path,
    limit_s: float,
    *,
    suffix: str,
) -> Path:
    decides = [1, toolchain.name, toolchain.version, options, file, text]
    key = hashlib.sha256(json.dumps(decides).encode()).hexdigest()
    kept = cache / f"{key}{suffix}"
    if kept.is_file() and kept.stat().st_size:
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=cache) as work:
        made = Path(work) / f"made{suffix}"
        if toolchain.name == "nvrtc":
            asked = nvrtc.Request(text=text, name=file, options=options, target=str(made))
            _run(toolchain, (), asked.to_json(), Path(work), limit_s)
        else:
            (Path(work) / file).write_text(text, encoding="utf-8")
            _run(toolchain, (*options, file, "-o", str(made)), "", work, limit_s)
        made.replace(kept)  # as one step: others may look for it, or make it too
    return kept


def _run(
    toolchain: Toolchain,
    words: Sequence[str],
    given: str,
    directory: str | Path,
    limit_s: float,
) -> None:
    try:
        compiler = subprocess.Popen(  # noqa: S603
            guarded([*toolchain.command, *words]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=directory,
            start_new_session=True,  # so that what nvcc starts ends with it
            env=child_environment({"LC_ALL": "C"}),
        )
    except OSError as error:
        raise CompileError(f"{toolchain} does not start: {error}") from None
    with compiler:
        try:
            said, _ = compiler.communicate(given, timeout=limit_s)
        except BaseException as error:
            signal_group(compiler, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CompileError(f"{toolchain} did not finish within {limit_s:g} s") from None
            raise
    if compiler.returncode:
        raise CompileError(f"{toolchain}: {first_errors(said)}")


def first_errors(said: str) -> str:
    """Return the first errors of what a compiler said, or its last line if it names none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    return "\n".join(errors[:_SHOWN_ERRORS] or lines[-1:] or ["it failed and said nothing"])


def _nvcc() -> Toolchain:
    path = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    said = subprocess.run(  # noqa: S603
        [path, "--version"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    found = _NVCC_RELEASE.search(said)
    return Toolchain(name="nvcc", version=found[1] if found else "unknown", command=(path,))


def usable_cache(wanted: Path) -> Path:
    """Return the folder if files can be made in it, otherwise one that lasts for this process."""
    with suppress(OSError):
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    return Path(tempfile.mkdtemp(prefix="eatss-cubin-"))


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
