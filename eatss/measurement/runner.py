"""Runs of a loaded program on a stream: through CUDA graphs where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice, repeat
from typing import Any, Literal

from eatss.measurement.cupy_module import is_out_of_memory
from eatss.measurement.launches import MOST_LAUNCHES

GRAPH_LAUNCHES = 20_000
"""Launches of one graph; a run of more is several graphs, one after another."""

BATCH_S = 0.005
"""Graphs of short runs hold several, so that replaying lasts longer than enqueuing the next."""

_MOST_RUNS = 1000
_LONG_S = 0.1


class Runner:
    """Enqueues runs on a stream, which has to be the current one.

    ``launch`` launches the kernels of one run and yields after each.
    """

    def __init__(self, cupy: Any, stream: Any, launch: Callable[[], Iterator[None]]) -> None:
        self._cupy = cupy
        self._stream = stream
        self._launch = launch
        self._once: tuple[Any, ...] | None = None
        self._batch: tuple[Any, ...] = ()
        self._batch_runs = 0

    @property
    def launched_by(self) -> Literal["graph", "stream"]:
        """How a run is launched; ``stream`` until :meth:`prepare` has captured it."""
        return "stream" if self._once is None else "graph"

    def launch_once(self) -> None:
        """Enqueue one run launch by launch."""
        for _ in self._launch():
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
        batches = count // self._batch_runs if self._batch_runs else 0
        for graph in chain.from_iterable(repeat(self._batch, batches)):
            graph.launch(self._stream)
        for graph in chain.from_iterable(repeat(self._once, count - batches * self._batch_runs)):
            graph.launch(self._stream)

    def timed(self, enqueue: Callable[[], None]) -> float:
        """Wait for what is enqueued and return the seconds it took by the card's clock."""
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record(self._stream)
        enqueue()
        end.record(self._stream)
        end.synchronize()
        return self.between_s(start, end)

    def timed_apart(self, count: int, before: Callable[[], None]) -> float:
        """Run ``count`` times, each after ``before``; return the seconds of the runs alone."""
        cuda = self._cupy.cuda
        pairs = [(cuda.Event(), cuda.Event()) for _ in range(min(count, 128))]
        seconds = 0.0
        pending: list[tuple[Any, Any]] = []
        for number in range(count):
            start, end = pairs[number % len(pairs)]
            if number >= len(pairs):
                end.synchronize()  # of long ago: the card has all other pairs ahead of it
                seconds += self.between_s(*pending.pop(0))
            before()
            start.record(self._stream)
            self.run(1)
            end.record(self._stream)
            pending.append((start, end))
        self._stream.synchronize()
        return seconds + sum(self.between_s(*pair) for pair in pending)

    def between_s(self, start: Any, end: Any) -> float:
        """Return the seconds between two events that have happened."""
        return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def _captured(self, runs: int) -> tuple[tuple[Any, ...] | None, int]:
        """Return graphs of some runs and how many launches they are; ``None`` for too many."""
        launches = chain.from_iterable(self._launch() for _ in range(runs))
        graphs: list[Any] = []
        total = 0
        while True:
            graph, count = self._capture(launches)
            total += count
            if count:
                graph.upload(self._stream)
                graphs.append(graph)
            if total > MOST_LAUNCHES:
                return None, total
            if count < GRAPH_LAUNCHES:
                return tuple(graphs), total

    def _capture(self, launches: Iterator[None]) -> tuple[Any, int]:
        """Capture the next launches; return the graph and how many they are."""
        self._stream.begin_capture()
        try:
            count = sum(1 for _ in islice(launches, GRAPH_LAUNCHES))
        except BaseException:
            with suppress(Exception):  # what went wrong is on its way already
                self._stream.end_capture()
            raise
        return self._stream.end_capture(), count
