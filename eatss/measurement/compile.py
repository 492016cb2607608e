"""Program and sizes in, a cubin for one card out: by NVRTC or nvcc, kept for the next time.

What is compiled once is kept in a cache (:mod:`eatss.base.cache`) by everything that decides it:
text, options, architecture, compiler and its full version. What is loaded is a file of this
process, made anew from the cache, which only this user can have written. CuPy's own way to NVRTC is
not used, because it adds ``-ftz=true``, which is not what nvcc does to the same text.

:class:`Kernels` are those of a program loaded from machine code, :class:`Runner` its runs.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache as once
from itertools import chain, islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from eatss.base.cache import DEFAULT_LIMIT_BYTES, Cache, default_cache, key_of
from eatss.base.compilers import find_nvcc
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import write_whole
from eatss.base.frozen import frozen
from eatss.base.supervisor import child_environment, run_bounded
from eatss.base.text import Texts, one_line
from eatss.measurement import nvrtc
from eatss.measurement.arguments import ResolvedLaunch
from eatss.measurement.card import CompileError, is_out_of_memory
from eatss.measurement.measurement import CompilerName, KernelResources, LaunchedBy
from eatss.measurement.options import CompilerChoice
from eatss.program import KernelCode, Program
from eatss.program.expression import Sizes
from eatss.program.plan import MOST_LAUNCHES

COMPILE_LIMIT_S = 300.0

_SHOWN_ERRORS = 4


@frozen
class Toolchain:
    """A compiler that is there; ``command`` starts nvcc."""

    name: CompilerName
    version: str
    command: Texts = ()

    def __str__(self) -> str:
        return f"{'NVRTC' if self.name == 'nvrtc' else 'nvcc'} {self.version}"


@frozen
class CompileTarget:
    """What it takes to compile programs for a card, here or in another process, and to run them.

    ``device`` is the card's number as CUDA counts, ``capability`` is as in 90 for 9.0, ``cache``
    and ``limit_bytes`` the folder of what is compiled and how large it may be.
    """

    capability: int
    toolchain: Toolchain
    cache: str
    device: int = 0
    limit_bytes: int = DEFAULT_LIMIT_BYTES

    def compile(self, program: Program, sizes: Sizes) -> Path:
        """Return a file of this process with the machine code at these sizes.

        Args:
            program: what to compile.
            sizes: values of its parameters; those that are macros are compiled in.

        Raises:
            CompileError: it does not compile; the text is the compiler's first errors.
        """
        return self.compile_text(program.text, program.file, options_of(program, sizes))

    def compile_text(self, text: str, file: str, more: Sequence[str] = ()) -> Path:
        """Return the machine code of CUDA with more options.

        ``file`` is its name in messages.

        Raises:
            CompileError: it does not compile.
        """
        tool = self.toolchain
        options = (f"-arch=sm_{self.capability}", "--std=c++17", *more)
        kept = Cache(Path(self.cache), self.limit_bytes)
        key = key_of(3, tool.name, tool.version, options, file, text)
        code = kept.get("cubin", key)
        if code is None:
            code, said = (_by_nvcc if tool.command else _by_nvrtc)(tool, text, file, options)
            if code is None:
                raise CompileError(f"{tool}: {first_errors(said)}")
            kept.put("cubin", key, code)
        path = Path(_of_this_process().name) / f"{key}.cubin"
        write_whole(path, code)
        return path


def options_of(program: Program, sizes: Sizes) -> Texts:
    """Return what the compiler is told of a program, besides the card."""
    macros = ((one.macro, sizes[one.name]) for one in program.macros)
    defined = (f"-D{name}={n if n >= 0 else f'({n})'}" for name, n in macros)
    return (*program.flags, *defined)


def compile_target(
    capability: int,
    choice: CompilerChoice = "auto",
    nvcc: str | None = None,
    *,
    device: int = 0,
    cache: Path | None = None,
) -> CompileTarget:
    """Return what compiles for a card.

    Args:
        capability: of the card, as in 90 for 9.0.
        choice: which compiler; ``auto`` takes NVRTC if it is there.
        nvcc: path of an nvcc, by default that of this machine.
        device: number of the card.
        cache: folder of what is compiled, by default the user's. Where it cannot be used, one
            of this process is.

    Raises:
        InputError: ``EATSS-E020``, there is no compiler; ``EATSS-V010``, what is named is no nvcc.
    """
    kept = default_cache() if cache is None else Cache(cache)
    folder = kept.folder if kept.problem() is None else Path(_of_this_process().name) / "cache"
    return CompileTarget(
        capability=capability,
        toolchain=_toolchain(choice, nvcc),
        cache=str(folder),
        device=device,
        limit_bytes=kept.limit_bytes,
    )


def _toolchain(choice: CompilerChoice, nvcc: str | None) -> Toolchain:
    reasons = []
    if choice != "nvcc":
        try:
            return Toolchain(name="nvrtc", version=nvrtc.version())
        except Exception as error:  # CuPy and its libraries raise classes of their own
            reasons.append(f"NVRTC does not load ({one_line(error)})")
    if choice != "nvrtc":
        try:
            found = find_nvcc(nvcc)
            return Toolchain(name="nvcc", version=found.version, command=(found.path,))
        except InputError as error:
            if nvcc is not None:
                raise
            reasons.append(error.message)
    raise input_error(
        "EATSS-E020",
        f"nothing compiles CUDA here: {'; '.join(reasons)}",
        hint="install the CUDA toolkit, or pip install 'cupy-cuda13x[ctk]' for NVRTC",
    )


def _by_nvrtc(_: Toolchain, text: str, file: str, options: Texts) -> tuple[bytes | None, str]:
    return nvrtc.compile_text(text, file, options)


def _by_nvcc(tool: Toolchain, text: str, file: str, options: Texts) -> tuple[bytes | None, str]:
    """Return the machine code, ``None`` if the text does not compile, and what nvcc said."""
    with tempfile.TemporaryDirectory(prefix="eatss-making-") as work:
        made = Path(work) / "made"
        (Path(work) / file).write_text(text, encoding="utf-8")
        command = (*tool.command, "-cubin", "-O3", *options, file, "-o", str(made))
        environment = child_environment({"LC_ALL": "C"})
        try:
            code, said = run_bounded(command, work, COMPILE_LIMIT_S, environment=environment)
            return None if code else made.read_bytes(), said
        except subprocess.TimeoutExpired:
            return None, f"it did not finish within {COMPILE_LIMIT_S:g} s"
        except OSError as error:  # it does not start, or says that all is well and made no code
            return None, str(error)


def first_errors(said: str) -> str:
    """Return the first errors of what a compiler said, or its last line if it names none."""
    lines = said.split("\n")
    errors = [line.strip() for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    last = said.strip().rpartition("\n")[2] or "it failed and said nothing"
    return "\n".join(errors[:_SHOWN_ERRORS]) or last


@once
def _of_this_process() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="eatss-compiled-")


class Kernels:
    """Kernels on the current card."""

    def __init__(self, cupy: Any, program: Program, path: Path) -> None:
        """Load a cubin.

        Raises:
            LaunchError: the card cannot run a block of one of them.
        """
        self._index = np.int32 if program.index_bits == 32 else np.int64
        module = cupy.RawModule(path=str(path))
        self._by_name = {code.name: _loaded(module, code) for code in program.kernels}
        self._cupy = cupy
        self._codes = program.kernels

    def launch(self, launch: ResolvedLaunch, bound: Mapping[str, Any]) -> None:
        """Launch a kernel on the current stream.

        Args:
            launch: what to launch.
            bound: arrays and scalars of the launch's entry by name, as CuPy passes them.
        """
        integers = dict(launch.integers)
        passed = tuple(
            self._index(integers[name]) if name in integers else bound[name]
            for name in launch.arguments
        )
        kernel = self._by_name[launch.kernel]
        kernel(launch.grid, launch.block, passed, shared_mem=launch.shared_bytes)

    def resources(self) -> tuple[KernelResources, ...]:
        """Return what each kernel takes of the card."""
        return tuple(map(self._resources, self._codes))

    def _resources(self, code: KernelCode) -> KernelResources:
        kernel, threads, cuda = self._by_name[code.name], prod(code.block), self._cupy.cuda
        dynamic = code.shared_bytes if code.dynamic_shared else 0
        occupancy: float | None = None
        with suppress(AttributeError, KeyError, RuntimeError):  # of an older CuPy, or the driver's
            blocks = cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                kernel.kernel.ptr, threads, dynamic
            )
            most = cuda.Device().attributes["MaxThreadsPerMultiProcessor"]
            occupancy = float(blocks * threads / most)
        return KernelResources(
            kernel=code.name,
            registers=int(kernel.num_regs),
            local_bytes=int(kernel.local_size_bytes),
            shared_bytes=int(kernel.shared_size_bytes) + dynamic,
            threads=threads,
            occupancy=occupancy,
        )


def _loaded(module: Any, code: KernelCode) -> Any:
    kernel = module.get_function(code.name)
    if code.dynamic_shared:
        kernel.max_dynamic_shared_size_bytes = code.shared_bytes
    return kernel


GRAPH_LAUNCHES = 20_000
"""Launches of a graph of several runs, at most."""

BATCH_S = 0.005
"""Graphs of short runs hold several, so that replaying lasts longer than enqueuing the next."""

_MOST_RUNS = 1000
_LONG_S = 0.1
_EVENTS = 128
"""Pairs of events under way."""


@dataclass(slots=True)
class Runner:
    """Enqueues runs on a stream, which has to be the current one.

    ``launch`` launches the kernels of one run and yields after each.
    """

    cupy: Any
    stream: Any
    launch: Callable[[], Iterator[None]]
    _once: Any = None
    _batch: Any = None
    _batch_runs: int = 0

    @property
    def launched_by(self) -> LaunchedBy:
        """How a run is launched; ``stream`` until :meth:`prepare` has captured it."""
        return "stream" if self._once is None else "graph"

    def launch_once(self) -> None:
        """Enqueue one run launch by launch."""
        for _ in self.launch():
            pass

    def prepare(self, run_s: float) -> None:
        """Capture graphs; runs the program a few times.

        Args:
            run_s: what a run took, launch by launch.
        """
        try:
            self._once, count = self._captured(1)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        if self._once is None:
            return
        if run_s < _LONG_S:
            self.run(1)
            run_s = self.timed(lambda: self.run(1))
        wanted = int(BATCH_S / max(run_s, 1e-7))
        runs = min(_MOST_RUNS, GRAPH_LAUNCHES // max(1, count), wanted)
        if runs > 1:
            self._batch_runs = runs
            self._batch, _ = self._captured(runs)

    def run(self, count: int) -> None:
        """Enqueue runs."""
        if self._once is None:
            for _ in range(count):
                self.launch_once()
            return
        batches, once = divmod(count, self._batch_runs) if self._batch_runs else (0, count)
        for graph, times in ((self._batch, batches), (self._once, once)):
            for _ in range(times):
                graph.launch(self.stream)

    def timed(self, enqueue: Callable[[], None]) -> float:
        """Wait for what is enqueued and return the seconds it took by the card's clock."""
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start.record(self.stream)
        enqueue()
        end.record(self.stream)
        end.synchronize()
        return self.between_s(start, end)

    def timed_apart(self, count: int, before: Callable[[], None]) -> float:
        """Run ``count`` times, each after ``before``; return the seconds of the runs alone."""
        event, seconds = self.cupy.cuda.Event, 0.0
        pairs = [(event(), event()) for _ in range(min(count, _EVENTS))]
        for number in range(count):
            start, end = pairs[number % len(pairs)]
            if number >= len(pairs):
                end.synchronize()  # of long ago: the card has all other pairs ahead of it
                seconds += self.between_s(start, end)
            before()
            start.record(self.stream)
            self.run(1)
            end.record(self.stream)
        self.stream.synchronize()
        return seconds + sum(self.between_s(*pair) for pair in pairs)

    def between_s(self, start: Any, end: Any) -> float:
        """Return the seconds between two events that have happened."""
        return float(self.cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def _captured(self, runs: int) -> tuple[Any, int]:
        """Return a graph of some runs and how many launches they are; ``None`` for too many."""
        launches = chain.from_iterable(self.launch() for _ in range(runs))
        self.stream.begin_capture()
        try:
            count = sum(1 for _ in islice(launches, MOST_LAUNCHES + 1))
        except BaseException:
            with suppress(Exception):  # what went wrong is on its way already
                self.stream.end_capture()
            raise
        graph = self.stream.end_capture()
        if count > MOST_LAUNCHES:
            return None, count
        graph.upload(self.stream)
        return graph, count
