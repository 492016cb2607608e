"""Meters that record beside the program that is measured: a thread that samples, or a program.

The meter that results rest on: NVML's counter of energy, cut at its own updates.

On an H200 the counter moves every 100 ms and a call takes about 4 ms, so it is asked nothing until
shortly before the next update is due, and then without pause until it moves.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Protocol

from eatss.measurement.meters.meter import MeterError, Sample, Trace, TraceKind

JOIN_S = 5.0
"""How long a sensor may take to answer the last question."""


class Ticker(Protocol):
    """The time a sampler lives in; a thread's or, in tests, a made-up one."""

    def now(self) -> float:
        """Return seconds of the clock that stamps samples."""
        ...

    def sleep(self, seconds: float) -> object:
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
        end = threading.Event()
        self.now = time.perf_counter
        self.sleep: Callable[[float], object] = end.wait
        self.ended = end.is_set
        self.end = end.set


class Recorder:
    """What meters that record beside the program have in common: one recording at a time."""

    def __init__(self, name: str, kind: TraceKind) -> None:
        self.name, self.kind = name, kind
        self._recording = False
        self._samples: list[Sample] = []

    def start(self) -> None:
        """Begin to record.

        Raises:
            MeterError: it records already, or cannot begin.
        """
        if self._recording:
            raise MeterError(
                f"{self.name} is recording already", "make a meter for each thread that measures"
            )
        self._samples = []
        self._begin()
        self._recording = True

    def stop(self) -> Trace:
        """End recording and return the trace.

        Raises:
            MeterError: the sensor stopped answering, or nothing was recorded.
        """
        if not self._recording:
            raise MeterError(f"{self.name} was not recording")
        self._recording = False
        self._end()
        return Trace(meter=self.name, kind=self.kind, samples=tuple(self._samples))

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class BackgroundMeter(Recorder):
    """A meter that runs a sampler in a daemon thread; base of those that poll."""

    def __init__(self, name: str, kind: TraceKind, sample: Sampler) -> None:
        super().__init__(name, kind)
        self.sample = sample

    def _begin(self) -> None:
        self._failure: Exception | None = None
        self._ticker = ThreadTicker()
        self._thread = threading.Thread(target=self._run, name=f"eatss {self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.sample(self._ticker, self._samples.append)
        except Exception as error:  # handed over to stop()
            self._failure = error

    def _end(self) -> None:
        self._ticker.end()
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            raise MeterError(
                f"{self.name} has not answered for {JOIN_S:g} s",
                "look for errors of the driver with `dmesg | grep -i nvrm`",
            )
        if isinstance(self._failure, MeterError):
            raise self._failure
        if self._failure is not None:
            raise MeterError(
                f"{self.name} failed: {type(self._failure).__name__}: {self._failure}",
                "choose another meter (`--meter`)",
            ) from self._failure


END_S = 2.0
"""How long the program may take to end when asked to."""

FIRST_VALUE_S = 5.0
"""How long the program may take to its first value; a shorter recording may be empty."""

Parse = Callable[[str, float], Sample | None]
"""Returns the sample of a line that was read at a moment, ``None`` for one without a value."""


class SubprocessMeter(Recorder):
    """Runs a program and turns the lines it prints into samples of power."""

    def __init__(self, name: str, command: Sequence[str], parse: Parse, remedy: str) -> None:
        super().__init__(name, "power")
        self.command, self.parse, self.remedy = command, parse, remedy

    @property
    def ended(self) -> bool:
        """Whether the program has ended by itself."""
        return self._recording and self._process.poll() is not None

    def _begin(self) -> None:
        self._said: list[str] = []
        self._begin_s = time.perf_counter()
        try:
            self._process = subprocess.Popen(  # noqa: S603  (a fixed program, no shell)
                self.command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                bufsize=1,
            )
        except OSError as error:
            raise MeterError(
                f"{self.command[0]} does not start: {error.strerror or error}", self.remedy
            ) from None
        self._threads = tuple(
            threading.Thread(target=self._follow, args=each, name=self.name, daemon=True)
            for each in ((self._process.stdout, self.parse), (self._process.stderr, None))
        )
        for thread in self._threads:
            thread.start()

    def _follow(self, lines: IO[str], parse: Parse | None) -> None:
        for line in map(str.strip, lines):
            sample = None if parse is None else parse(line, time.perf_counter())
            if sample is not None:
                self._samples.append(sample)
            elif line:
                self._said.append(line)

    def _end(self) -> None:
        """End the program.

        Raises:
            MeterError: it ended by itself, or printed something else than values.
        """
        process = self._process
        status = process.poll()
        if status is None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._threads:
            thread.join(END_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        said = f": {self._said[-1][:200]}" if self._said else ""
        if status is not None:
            raise MeterError(f"{self.name} ended by itself with status {status}{said}", self.remedy)
        silent = time.perf_counter() - self._begin_s > FIRST_VALUE_S
        if not self._samples and (self._said or silent):
            raise MeterError(f"{self.name} gave no value{said}", self.remedy)


COUNTER_NAME = "NVML energy counter"

POLL_S = 0.001
"""Pause between two calls while an update is due."""

EARLY = 0.2
LEAST_EARLY_S = 0.008
"""How long before the expected update polling begins: a share of the period, and at least this."""

SHARP_S = 0.02
"""An update is recorded if the call before it was no longer ago than this; else nobody knows when
it happened (the thread was not scheduled, or slept too long), and it is left out."""

_REMEMBERED = 8


class CounterMeter(BackgroundMeter):
    """A counter of energy, NVML's for one; the trace holds the moments at which it moved."""

    def __init__(self, read_j: Callable[[], float], *, name: str = COUNTER_NAME) -> None:
        super().__init__(name, "energy", partial(follow_counter, read_j))


def follow_counter(
    read_j: Callable[[], float], ticker: Ticker, record: Callable[[Sample], None]
) -> None:
    """Record the first reading after each update, stamped in the middle of the call.

    The update lies between that moment and the middle of the call before, at most
    ``max(SHARP_S, 2 calls)`` earlier.
    """
    periods: deque[float] = deque(maxlen=_REMEMBERED)
    last_j: float | None = None
    last_call_s = ticker.now()
    sharp_s: float | None = None
    rested = False
    while not ticker.ended():
        asked_s = ticker.now()
        value_j = read_j()
        answered_s = ticker.now()
        now_s = (asked_s + answered_s) / 2
        if last_j is None or value_j == last_j:
            last_j, last_call_s, rested = value_j, now_s, False
            ticker.sleep(POLL_S)
            continue
        if now_s - last_call_s <= max(SHARP_S, 2 * (answered_s - asked_s)):
            record(Sample(time_s=now_s, value=value_j))
            if sharp_s is not None:
                periods.append(now_s - sharp_s)
            sharp_s = now_s
        else:
            sharp_s = None
            if rested and periods:
                # Overslept: the updates come faster than they did.
                periods.append(min(periods) / 2)
        last_j, last_call_s = value_j, now_s
        rest_s = _rest_s(periods) - (ticker.now() - now_s)
        rested = rest_s > 0
        ticker.sleep(rest_s if rested else POLL_S)


def _rest_s(periods: deque[float]) -> float:
    """Return how long after an update nothing needs to be asked."""
    if len(periods) < 3:
        return 0.0
    period_s = min(periods)
    return period_s - max(LEAST_EARLY_S, EARLY * period_s)


POWER_NAME = "NVML power"

POWER_POLL_S = 0.005
"""Time between two questions: a call takes microseconds, a new value comes every 20 to 100 ms."""

CONFIRM_S = 0.2
"""A value that stays is recorded again after this time: the sensor answered, power was equal."""


class PowerMeter(BackgroundMeter):
    """A sensor of power, NVML's for one; the trace holds the first reading of each new value."""

    def __init__(
        self, read_w: Callable[[], float], *, name: str = POWER_NAME, poll_s: float = POWER_POLL_S
    ) -> None:
        super().__init__(name, "power", partial(follow_power, read_w, poll_s=poll_s))


def follow_power(
    read_w: Callable[[], float],
    ticker: Ticker,
    record: Callable[[Sample], None],
    *,
    poll_s: float = POWER_POLL_S,
) -> None:
    """Record each new value when it is first seen, and one that stays every ``CONFIRM_S``."""
    last: Sample | None = None
    while not ticker.ended():
        value_w = read_w()
        now_s = ticker.now()
        if last is None or value_w != last.value or now_s - last.time_s >= CONFIRM_S:
            last = Sample(time_s=now_s, value=value_w)
            record(last)
        ticker.sleep(poll_s)
