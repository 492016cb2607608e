"""A program loaded from machine code, launched by CuPy or its own host code; its runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from eatss.measurement.card import LaunchError
from eatss.measurement.cupy_module import is_out_of_memory
from eatss.measurement.launches import MOST_LAUNCHES, ResolvedLaunch
from eatss.measurement.measurement import KernelResources, LaunchedBy
from eatss.program import Argument, KernelCode, Program
from eatss.program.expression import Sizes
from eatss.verify.data import as_parameter, dtype_of


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
    threads = prod(code.block)
    if threads > kernel.max_threads_per_block:
        raise LaunchError(
            f"kernel {code.name} takes {kernel.num_regs} registers a thread: on this card its "
            f"blocks may have {kernel.max_threads_per_block} threads, not {threads}"
        )
    if code.dynamic_shared:
        kernel.max_dynamic_shared_size_bytes = code.shared_bytes
    return kernel


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

    def run(self, bound: Sequence[Mapping[str, Any]], sizes: Sizes, stream: int) -> None:
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


def _passed(argument: Argument, values: Mapping[str, Any], sizes: Sizes) -> Any:
    if argument.role in ("array", "cell"):
        return ctypes.c_void_p(values[argument.name].data.ptr)
    if argument.role == "parameter":
        return as_parameter(dtype_of(argument).type(sizes[argument.name]))
    return as_parameter(values[argument.name])


GRAPH_LAUNCHES = 20_000
"""Launches of one graph; a run of more is several graphs, one after another."""

BATCH_S = 0.005
"""Graphs of short runs hold several, so that replaying lasts longer than enqueuing the next."""

_MOST_RUNS = 1000
_LONG_S = 0.1


@dataclass(slots=True)
class Runner:
    """Enqueues runs on a stream, which has to be the current one.

    ``launch`` launches the kernels of one run and yields after each.
    """

    cupy: Any
    stream: Any
    launch: Callable[[], Iterator[None]]
    _once: tuple[Any, ...] | None = None
    _batch: tuple[Any, ...] = ()
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
            batch, _ = self._captured(runs)
            assert batch is not None  # it is one graph at most
            self._batch, self._batch_runs = batch, runs

    def run(self, count: int) -> None:
        """Enqueue runs."""
        if self._once is None:
            for _ in range(count):
                self.launch_once()
            return
        batches, once = divmod(count, self._batch_runs) if self._batch_runs else (0, count)
        for graph in (*self._batch,) * batches:
            graph.launch(self.stream)
        for graph in (*self._once,) * once:
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
        cuda = self.cupy.cuda
        pairs = [(cuda.Event(), cuda.Event()) for _ in range(min(count, 128))]
        seconds = 0.0
        pending: list[tuple[Any, Any]] = []
        for number in range(count):
            start, end = pairs[number % len(pairs)]
            if number >= len(pairs):
                end.synchronize()  # of long ago: the card has all other pairs ahead of it
                seconds += self.between_s(*pending.pop(0))
            before()
            start.record(self.stream)
            self.run(1)
            end.record(self.stream)
            pending.append((start, end))
        self.stream.synchronize()
        return seconds + sum(self.between_s(*pair) for pair in pending)

    def between_s(self, start: Any, end: Any) -> float:
        """Return the seconds between two events that have happened."""
        return float(self.cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def _captured(self, runs: int) -> tuple[tuple[Any, ...] | None, int]:
        """Return graphs of some runs and how many launches they are; ``None`` for too many."""
        launches = chain.from_iterable(self.launch() for _ in range(runs))
        graphs: list[Any] = []
        total = 0
        while True:
            self.stream.begin_capture()
            try:
                count = sum(1 for _ in islice(launches, GRAPH_LAUNCHES))
            except BaseException:
                with suppress(Exception):  # what went wrong is on its way already
                    self.stream.end_capture()
                raise
            graph = self.stream.end_capture()
            total += count
            if count:
                graph.upload(self.stream)
                graphs.append(graph)
            if total > MOST_LAUNCHES:
                return None, total
            if count < GRAPH_LAUNCHES:
                return tuple(graphs), total
