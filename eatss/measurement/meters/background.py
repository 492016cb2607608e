"""Meters that record beside the program that is measured: a thread that samples a sensor.

The meter that results rest on is NVML's counter of energy, cut at its own updates. On an H200 the
counter moves every 100 ms and a call takes about 4 ms, so it is asked nothing until shortly before
the next update is due, and then without pause until it moves.

Jetsons have no counter of energy, and NVML tells no power of them: that of the GPU's rail is read
from the board's INA3221 monitor, which ``tegrastats`` shows as well. The paper measured a Xavier
by it [EATSS, Sec. V].
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from eatss.base.frozen import frozen
from eatss.base.text import class_and_line
from eatss.measurement.measurement import CardState
from eatss.measurement.meters.meter import SHARP_S, Meter, MeterError, Sample, Trace, TraceKind

JOIN_S = 5.0
"""How long a sensor may take to answer the last question."""


ReadNumber: TypeAlias = Callable[[], float]


class Ticker:
    """The time a sampler lives in: that of a thread, until recording ends."""

    def __init__(self) -> None:
        self._over = threading.Event()

    def now(self) -> float:
        """Return seconds of the clock that stamps samples."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Wait, shorter if recording ends."""
        self._over.wait(seconds)

    def ended(self) -> bool:
        """Return whether to stop sampling."""
        return self._over.is_set()

    def end(self) -> None:
        """End recording."""
        self._over.set()


Sampler = Callable[[Ticker, Callable[[Sample], None]], None]
"""Samples until the ticker has ended, handing on one sample after the other."""


class BackgroundMeter:
    """A meter that runs a sampler in a daemon thread, one recording at a time."""

    def __init__(self, name: str, kind: TraceKind, sample: Sampler) -> None:
        self.name, self.kind, self.sample = name, kind, sample
        self._ticker: Ticker | None = None

    def start(self) -> None:
        """Begin to record.

        Raises:
            MeterError: it records already.
        """
        if self._ticker is not None:
            raise MeterError(
                f"{self.name} is recording already", "make a meter for each thread that measures"
            )
        self._ticker = Ticker()
        self._samples: Future[tuple[Sample, ...]] = Future()
        recording = (self._ticker, self._samples)
        threading.Thread(target=self._run, args=recording, daemon=True).start()

    def _run(self, ticker: Ticker, samples: Future[tuple[Sample, ...]]) -> None:
        found = list[Sample]()
        try:
            self.sample(ticker, found.append)
        except Exception as error:  # handed over to stop()
            samples.set_exception(error)
        else:
            samples.set_result(tuple(found))

    def stop(self) -> Trace:
        """End recording and return the trace.

        Raises:
            MeterError: the sensor stopped answering.
        """
        ticker, self._ticker = self._ticker, None
        assert ticker is not None
        ticker.end()
        try:
            return Trace(meter=self.name, kind=self.kind, samples=self._samples.result(JOIN_S))
        except MeterError:
            raise
        except TimeoutError:
            why, remedy = f"has not answered for {JOIN_S:g} s", "see `dmesg | grep -i nvrm`"
        except Exception as error:  # of any sensor
            why, remedy = f"failed: {class_and_line(error)}", "choose another meter (`--meter`)"
        raise MeterError(f"{self.name} {why}", remedy)


@contextmanager
def sampled_states(
    state: Callable[[], CardState], period_s: float
) -> Iterator[Sequence[CardState]]:
    """Call ``state`` every ``period_s`` in a thread while the block runs.

    Yields:
        What it returned, complete after the block. A look that ends after the block is left out,
        since it may be of a card at rest.
    """
    seen = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(period_s):
            found = state()
            if not over.is_set():
                seen.append(found)

    thread = threading.Thread(target=watch, name="card state", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


COUNTER_NAME = "NVML energy counter"

POLL_S = 0.001
"""Pause between two calls while an update is due."""

EARLY = 0.2
LEAST_EARLY_S = 0.008
"""How long before the expected update polling begins: a share of the period, and at least this."""

_REMEMBERED = 8


class CounterMeter(BackgroundMeter):
    """A counter of energy, NVML's for one; the trace holds the moments at which it moved."""

    def __init__(self, read_j: ReadNumber, *, name: str = COUNTER_NAME) -> None:
        super().__init__(name, "energy", partial(follow_counter, read_j))


def follow_counter(read_j: ReadNumber, ticker: Ticker, record: Callable[[Sample], None]) -> None:
    """Record the first reading after each update, stamped in the middle of the call.

    The update lies between that moment and the middle of the call before, at most
    ``max(SHARP_S, 2 calls)`` earlier.
    """
    periods: deque[float] = deque(maxlen=_REMEMBERED)
    last_j: float | None = None
    last_call_s = ticker.now()
    sharp_s: float | None = None
    while not ticker.ended():
        asked_s = ticker.now()
        value_j = read_j()
        answered_s = ticker.now()
        now_s, before_s = (asked_s + answered_s) / 2, last_call_s
        moved = last_j is not None and value_j != last_j
        last_j, last_call_s = value_j, now_s
        if not moved:
            ticker.sleep(POLL_S)
            continue
        if now_s - before_s <= max(SHARP_S, 2 * (answered_s - asked_s)):
            record(Sample(time_s=now_s, value=value_j))
            if sharp_s is not None:
                periods.append(now_s - sharp_s)
            sharp_s = now_s
        else:  # overslept, or not scheduled: the period is learned anew
            sharp_s = None
            periods.clear()
        ticker.sleep(max(POLL_S, _rest_s(periods) - (ticker.now() - now_s)))


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
        self, read_w: ReadNumber, *, name: str = POWER_NAME, poll_s: float = POWER_POLL_S
    ) -> None:
        super().__init__(name, "power", partial(follow, read_w, poll_s=poll_s))


def follow(
    read: ReadNumber,
    ticker: Ticker,
    record: Callable[[Sample], None],
    *,
    poll_s: float = POWER_POLL_S,
) -> None:
    """Record each new value when it is first seen, and one that stays every ``CONFIRM_S``.

    Args:
        read: asks the sensor.
        ticker: the time to live in.
        record: takes what is found.
        poll_s: seconds between two questions.
    """
    last: Sample | None = None
    while not ticker.ended():
        asked_s = ticker.now()
        value = read()
        now_s = ticker.now()
        if last is None or value != last.value or now_s - last.time_s >= CONFIRM_S:
            last = Sample(time_s=now_s, value=value)
            record(last)
        ticker.sleep(max(0.0, poll_s - (ticker.now() - asked_s)))


SYSFS_POLL_S = 0.02
"""The monitor converts its three channels in some milliseconds."""

DRIVERS = Path("/sys/bus/i2c/drivers")

_MONITORS = (
    ("ina3221x/*/iio:device*/rail_name_*", ("in_power{}_input",)),
    ("ina3221/*/hwmon/hwmon*/in*_label", ("in{}_input", "curr{}_input")),
)
"""Where old and new kernels name the rails, and the files of a channel."""

_REMEDY = "run on a Jetson, as a user who may read its power monitor"


@frozen
class Rail:
    """A supply of the board: a file of milliwatts, or two of millivolts and milliamperes."""

    name: str
    files: tuple[Path, ...]

    def power_w(self) -> float:
        """Return the power now.

        Raises:
            MeterError: the monitor does not answer.
        """
        try:
            values = [int(file.read_text(encoding="ascii")) for file in self.files]
        except (OSError, ValueError) as error:
            raise MeterError(f"the power monitor of {self.name} fails: {error}", _REMEDY) from None
        return values[0] / 1e3 if len(values) == 1 else values[0] * values[1] / 1e6


def jetson_meter() -> Meter:
    """Return a meter on the GPU's rail, the one that feeds least besides it.

    Boards name it ``GPU`` (Xavier), ``VDD_GPU_SOC`` (Orin), ``VDD_CPU_GPU_CV`` (Orin Nano),
    ``VDD_SYS_GPU`` (TX2) or ``POM_5V_GPU`` (Nano).

    Raises:
        MeterError: this is no Jetson, or its monitor cannot be read.
    """
    rails = [rail for rail in ina3221_rails() if "GPU" in rail.name.split("_")]
    if not rails:
        raise MeterError("this machine has no INA3221 power monitor of a GPU", _REMEDY)
    rail = min(rails, key=lambda one: one.name.count("_"))
    rail.power_w()
    return PowerMeter(rail.power_w, name=f"INA3221 rail {rail.name}", poll_s=SYSFS_POLL_S)


def ina3221_rails() -> tuple[Rail, ...]:
    """Return the rails of all INA3221 monitors."""
    rails = []
    for pattern, names in _MONITORS:
        for label in sorted(DRIVERS.glob(pattern)):
            channel = re.sub(r"\D", "", label.name)
            files = tuple(label.with_name(name.format(channel)) for name in names)
            # The fourth and later channels are sums of shunt voltages and have no current.
            if all(file.exists() for file in files):
                rails.append(Rail(name=label.read_text(encoding="utf-8").strip(), files=files))
    return tuple(rails)
