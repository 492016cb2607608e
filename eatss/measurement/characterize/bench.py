"""``CupyBench``: the card of this machine, which runs microbenchmarks.

NVML does not always tell the mean clock of the SMs over a load. While the matrix units of an H200
work on 16 or 19 bits its samples say 1905 to 1980 MHz, and the SMs count 1757 to 1815 million
cycles a second. So each SM says its own cycles and the card's nanoseconds before and after; one
over the other is the clock.

Codes: E050 there is no nvdisasm, E020 nothing compiles.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import input_error
from eatss.measurement.card import CompileError, translated
from eatss.measurement.characterize.benchmark import (
    KERNEL,
    WARP,
    Argument,
    Benchmark,
    Buffer,
    Occupancy,
    Opcodes,
    disassembled,
    find_disassembler,
    machine_code,
)
from eatss.measurement.cupy_card import CupyCard

_THREADS = 1024
"""Of a block: one or two fill an SM, so that every SM gets one."""

_BLOCKS_PER_SM = 4
MOST_SMS = 1024

_TEXT = r"""
extern "C" __global__ void __launch_bounds__(1024) now(longlong2 *told)
{
    if (threadIdx.x) return;
    unsigned sm;
    unsigned long long ns;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    const long long cycles = clock64();
    if (sm < 1024) told[sm] = make_longlong2(cycles, (long long)ns);
}
"""
"""A kernel that writes, for each SM by its number, its cycles and the time in ns."""

_LEAST_NS = 1e6
"""Shorter spans say little: on some cards the timer moves once in a microsecond."""

_LEAST_SHARE = 0.5
_SEED = 0


def mean_clock_mhz(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> float | None:
    """Return the mean clock between two tellings, in MHz.

    Args:
        before: shape (SMs, 2), cycles and ns of each SM; 0 where it told nothing.
        after: the same, later.

    Returns:
        The median over SMs; ``None`` where fewer than half of those that told anything did so
        twice, their cycles do not grow, or less than a millisecond lies between.
    """
    cycles, ns = (after - before).astype(np.float64).T
    begun, ended = before[:, 1] > 0, after[:, 1] > 0
    whole = begun & ended & (cycles > 0) & (ns >= _LEAST_NS)
    if not whole.any() or whole.sum() < _LEAST_SHARE * (begun | ended).sum():
        return None
    return float(np.median(cycles[whole] / ns[whole]) * 1e3)


_NEVER = np.iinfo(np.int64).max


class CupyBench:
    """The card of this machine."""

    def __init__(self, card: CupyCard) -> None:
        found = find_disassembler()
        if found is None:
            raise input_error(
                "EATSS-E050",
                "nothing disassembles machine code here, so no benchmark can be checked",
                hint="install nvdisasm: of the CUDA toolkit, or pip install nvidia-cuda-nvdisasm",
            )
        self._disassembler = found
        self.card = card
        self._buffers: dict[Buffer, Any] = {}
        self._opcodes: dict[str, Opcodes] = {}
        try:
            path = card.compile_target.compile_text(_TEXT, "sm_clock.cu")
        except CompileError as error:
            raise input_error("EATSS-E020", f"nothing compiles for this card: {error}") from None
        with self.at("the clock of the SMs") as cupy:
            self._now = cupy.RawModule(path=str(path)).get_function("now")
            self._told = cupy.zeros((2, MOST_SMS, 2), dtype=cupy.int64)

    @contextmanager
    def at(self, doing: str) -> Iterator[Any]:
        """Make the card and its stream the current ones, put its errors in words, yield CuPy."""
        with translated(doing), self.card.memory.current():
            yield self.card.memory.cupy

    def tell(self, when: int) -> None:
        """Let every SM tell its cycles and nanoseconds: before a load (0) and after it (1)."""
        if not when:
            self._told[:] = 0
        blocks = _BLOCKS_PER_SM * (self.card.gpu.sm_count or 1)
        self._now((blocks,), (_THREADS,), (self._told[when],))

    def mean_clock_mhz(self) -> float | None:
        """Return the mean clock between both; the stream has to be done."""
        return mean_clock_mhz(*self._told.get())

    def compile(self, benchmarks: Iterable[Benchmark]) -> None:
        """Compile and disassemble ahead, many at once."""

        def tried(benchmark: Benchmark) -> None:
            with suppress(CompileError):  # load() says so
                self._compiled(benchmark)

        texts = {benchmark.text: benchmark for benchmark in benchmarks}
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1)) as pool:
            list(pool.map(tried, texts.values()))

    def load(self, benchmark: Benchmark) -> CupyBenchmark:
        """Return a benchmark with its buffers in place.

        Raises:
            CompileError: it does not compile.
            LaunchError: it does not fit the card.
        """
        path, opcodes = self._compiled(benchmark)
        with self.at(benchmark.name) as cupy:
            kernel = cupy.RawModule(path=str(path)).get_function(KERNEL)
            arguments = [self._argument(*one) for one in enumerate(benchmark.arguments)]
        return CupyBenchmark(
            benchmark=benchmark, bench=self, kernel=kernel, arguments=arguments, opcodes=opcodes
        )

    def _compiled(self, benchmark: Benchmark) -> tuple[Path, Opcodes]:
        path = self.card.compile_target.compile_text(benchmark.text, "benchmark.cu")
        if benchmark.text not in self._opcodes:
            try:
                text = disassembled(self._disassembler, path)
            except (OSError, subprocess.SubprocessError) as error:
                raise CompileError(f"nvdisasm does not read it: {error}") from None
            self._opcodes[benchmark.text] = machine_code(text, KERNEL)
        return path, self._opcodes[benchmark.text]

    def _argument(self, place: int, wanted: Argument) -> Any:
        """Return an argument as CuPy takes it; one of a launch is ``None`` until then.

        Buffers of one kind are shared, but for the two of a kernel.
        """
        if isinstance(wanted, int):
            return np.int32(wanted)
        if wanted == "activity":
            cupy = self.card.memory.cupy
            return cupy.zeros((MOST_SMS, 3), dtype=cupy.int64)
        if isinstance(wanted, str):
            return None
        key = wanted if place else replace(wanted, fill="nothing", stride=1)
        if key not in self._buffers:
            self._buffers[key] = self._filled(wanted)
        return self._buffers[key]

    def _filled(self, wanted: Buffer) -> Any:
        cupy = self.card.memory.cupy
        words = -(-wanted.size_bytes // 4)
        if wanted.fill == "ring":
            lanes = cupy.arange(words, dtype=cupy.uint32)
            return (lanes & ~np.uint32(31)) | ((lanes + np.uint32(5)) & np.uint32(31))
        if wanted.fill in ("chain", "nothing"):
            found = cupy.zeros(words, dtype=cupy.uint32)
            if wanted.fill == "chain":
                visited = cupy.random.RandomState(_SEED).permutation(words // wanted.stride)
                visited = visited * wanted.stride
                found[visited] = cupy.roll(visited, -1).astype(cupy.uint32)
            return found
        rng = cupy.random.default_rng(_SEED)
        if wanted.fill == "bits":
            return rng.integers(0, 2**32, size=words, dtype=cupy.uint32)
        kind = np.dtype(np.float32 if wanted.fill == "fp32" else np.float64)
        return 1 + rng.random(wanted.size_bytes // kind.itemsize, dtype=kind)


@dataclass(slots=True, kw_only=True)
class CupyBenchmark:
    """A benchmark loaded through CuPy: its loop in machine code, and how often it repeats its work.

    ``clock_mhz`` is the mean clock of the SMs over the last :meth:`timed`, ``None`` if they do not
    tell.
    """

    benchmark: Benchmark
    bench: CupyBench
    kernel: Any
    arguments: list[Any]
    opcodes: Opcodes
    repeats: int = 1
    clock_mhz: float | None = None

    def reset(self) -> None:
        """Do nothing: what a launch reads, none changes."""

    def timed(self, count: int, *, restoring: bool = False) -> float:
        """Launch and wait; return the seconds of all launches by the card's clock."""
        del restoring
        bench, stream = self.bench, self.bench.card.memory.stream
        with bench.at(self.benchmark.name) as cupy:
            launch = self._graph(stream) if self.benchmark.group == "launch" else self._launch
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            bench.tell(0)
            start.record(stream)
            for _ in range(count):
                launch()
            end.record(stream)
            bench.tell(1)
            stream.synchronize()
            self.clock_mhz = bench.mean_clock_mhz()
            return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def cycles(self) -> float:
        """Launch once and return the cycles that its slowest thread counted."""
        with self.bench.at(self.benchmark.name):
            self._launch()
            return float(self.arguments[0].view(np.int64)[: self.benchmark.threads].max())

    def occupancy(self) -> Occupancy:
        """Launch once and return its occupancy."""
        benchmark, gpu = self.benchmark, self.bench.card.gpu
        with self.bench.at(benchmark.name) as cupy:
            told = self.arguments[benchmark.arguments.index("activity")]
            told[:] = cupy.asarray(np.array([0, _NEVER, 0]))
            self._launch(recording=1)
            busy, begun, ended = cupy.asnumpy(told).T
            resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                self.kernel.kernel.ptr, benchmark.threads, benchmark.shared_bytes
            )
        most, used = (gpu.max_threads_per_sm or WARP) // WARP, ended > 0
        elapsed = float((ended[used] - begun[used]).sum())
        return Occupancy(
            theoretical=int(resident) * -(-benchmark.threads // WARP) / most,
            achieved=float(busy[used].sum()) / elapsed / most if elapsed > 0 else None,
        )

    def _graph(self, stream: Any) -> Callable[[], None]:
        """Return what launches a graph of ``repeats``, which they are for an empty kernel."""
        stream.begin_capture()
        for _ in range(self.repeats):
            self._launch()
        graph = stream.end_capture()
        graph.upload(stream)
        return partial(graph.launch, stream)

    def _launch(self, *, recording: int = 0) -> None:
        benchmark = self.benchmark
        given = {"repeat": np.int32(self.repeats), "recording": np.int32(recording)}
        passed = tuple(
            given[str(wanted)] if held is None else held
            for wanted, held in zip(benchmark.arguments, self.arguments, strict=True)
        )
        self.kernel(
            (benchmark.blocks,), (benchmark.threads,), passed, shared_mem=benchmark.shared_bytes
        )
