"""Recording beside the program that is measured: a thread that samples, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from eatss.measurement.meters.meter import MeterError, Sample, Trace, TraceKind

JOIN_S = 5.0
"""How long a sensor may take to answer the last question."""


class Ticker(Protocol):
    """The time a sampler lives in; a thread's or, in tests, a made-up one."""

    def now(self) -> float:
        """Return seconds of the clock that stamps samples."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, shorter if recording ends."""
        ...

    def ended(self) -> bool:
        """Return whether to stop sampling."""
        ...


Sampler = Callable[[Ticker, Callable[[Sample], None]], None]
"""Samples until the ticker has ended, handing on one sample after the other."""


class ThreadTicker:
    """``time.perf_counter`` and an event that ends sleeping."""

    def __init__(self) -> None:
        self._end = threading.Event()

    def now(self) -> float:
        """Return seconds of ``time.perf_counter``."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Wait, at most until :meth:`end`."""
        self._end.wait(seconds)

    def ended(self) -> bool:
        """Return whether :meth:`end` was called."""
        return self._end.is_set()

    def end(self) -> None:
        """End sampling and sleeping."""
        self._end.set()


class BackgroundMeter:
    """A meter that runs a sampler in a daemon thread; base of those that poll."""

    def __init__(self, name: str, kind: TraceKind, sample: Sampler) -> None:
        self._name = name
        self._kind: TraceKind = kind
        self._sample = sample
        self._ticker: ThreadTicker | None = None
        self._thread: threading.Thread | None = None
        self._samples: list[Sample] = []
        self._failure: Exception | None = None

    @property
    def name(self) -> str:
        """Name for results."""
        return self._name

    def start(self) -> None:
        """Begin to record.

        Raises:
            MeterError: it records already.
        """
        if self._thread is not None:
            raise MeterError(
                f"{self._name} is recording already", "make a meter for each thread that measures"
            )
        ticker = ThreadTicker()
        self._samples, self._failure, self._ticker = [], None, ticker
        self._thread = threading.Thread(
            target=self._run, args=(ticker,), name=f"eatss {self._name}", daemon=True
        )
        self._thread.start()

    def _run(self, ticker: ThreadTicker) -> None:
        try:
            self._sample(ticker, self._samples.append)
        except Exception as error:  # handed over to stop()
            self._failure = error

    def stop(self) -> Trace:
        """End recording and return the trace.

        Raises:
            MeterError: the sensor stopped answering, or nothing was recorded.
        """
        thread, ticker = self._thread, self._ticker
        if thread is None or ticker is None:
            raise MeterError(f"{self._name} was not recording")
        ticker.end()
        thread.join(JOIN_S)
        self._thread = self._ticker = None
        if thread.is_alive():
            raise MeterError(
                f"{self._name} has not answered for {JOIN_S:g} s",
                "look for errors of the driver with `dmesg | grep -i nvrm`",
            )
        if self._failure is not None:
            if isinstance(self._failure, MeterError):
                raise self._failure
            raise MeterError(
                f"{self._name} failed: {type(self._failure).__name__}: {self._failure}",
                "choose another meter (`--meter`)",
            ) from self._failure
        return Trace(meter=self._name, kind=self._kind, samples=tuple(self._samples))
