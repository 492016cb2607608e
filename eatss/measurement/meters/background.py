"""Meters that record beside the program that is measured: a thread that samples, or a program.

The meter that results rest on: NVML's counter of energy, cut at its own updates.

On an H200 the counter moves every 100 ms and a call takes about 4 ms, so it is asked nothing until
shortly before the next update is due, and then without pause until it moves.

Power of a Jetson's GPU rail: the INA3221 monitor in sysfs, or the tool ``tegrastats``.

Jetsons have no counter of energy, and NVML tells no power of them. The paper measured a Xavier
this way [EATSS, Sec. V].
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from eatss.base.frozen import frozen
from eatss.measurement.meters.meter import Meter, MeterError, Sample, Trace, TraceKind

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


SYSFS_POLL_S = 0.02
"""The monitor converts its three channels in some milliseconds."""

TEGRASTATS_PERIOD_MS = 50
TEGRASTATS_ANSWER_S = 3.0

_RAIL = re.compile(r"(?<![\w/])([A-Z][A-Z0-9_]*) (\d+)(?:mW)?/(\d+)(?:mW)?(?![\w/])")
_REMEDY = "run on a Jetson, as a user who may read its power monitor (`sudo tegrastats`)"


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


def jetson_meter(*, root: Path = Path("/")) -> Meter:
    """Return a meter on the GPU's rail, named after the rail.

    Raises:
        MeterError: this is no Jetson, or its monitor cannot be read.
    """
    rails = ina3221_rails(root)
    rail_name = gpu_rail(tuple(rail.name for rail in rails))
    if rail_name is not None:
        rail = next(rail for rail in rails if rail.name == rail_name)
        rail.power_w()
        return rail_meter(rail)
    if shutil.which("tegrastats"):
        return tegrastats_meter()
    if rails:
        names = ", ".join(rail.name for rail in rails)
        raise MeterError(f"the power monitor has no rail of the GPU (only {names})", _REMEDY)
    raise MeterError("this machine has no INA3221 power monitor and no tegrastats", _REMEDY)


def rail_meter(rail: Rail) -> PowerMeter:
    """Return a meter that samples one rail in sysfs."""
    return PowerMeter(rail.power_w, name=f"INA3221 rail {rail.name}", poll_s=SYSFS_POLL_S)


def ina3221_rails(root: Path = Path("/")) -> tuple[Rail, ...]:
    """Return the rails of all INA3221 monitors, as old (iio) and new (hwmon) kernels list them."""
    drivers = root / "sys/bus/i2c/drivers"
    rails = []
    for label in sorted(drivers.glob("ina3221x/*/iio:device*/rail_name_*")):
        channel = label.name.removeprefix("rail_name_")
        power = label.with_name(f"in_power{channel}_input")
        name = _line(label)
        if name and power.exists():
            rails.append(Rail(name=name, files=(power,)))
    for label in _hwmon_labels(root):
        channel = label.name.removeprefix("in").removesuffix("_label")
        files = (label.with_name(f"in{channel}_input"), label.with_name(f"curr{channel}_input"))
        name = _line(label)
        # The fourth and later channels are sums of shunt voltages and have no current.
        if name and all(file.exists() for file in files):
            rails.append(Rail(name=name, files=files))
    return tuple(rails)


def _hwmon_labels(root: Path) -> list[Path]:
    direct = root.glob("sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*/in*_label")
    by_class = (
        label
        for name in sorted(root.glob("sys/class/hwmon/hwmon*/name"))
        if _line(name) == "ina3221"
        for label in name.parent.glob("in*_label")
    )
    unique = {label.resolve(): label for label in (*sorted(direct), *sorted(by_class))}
    return list(unique.values())


def gpu_rail(names: tuple[str, ...]) -> str | None:
    """Return the rail of the GPU, the one that feeds least besides it; ``None`` without one.

    Boards name it ``GPU`` (Xavier), ``VDD_GPU_SOC`` (Orin), ``VDD_CPU_GPU_CV`` (Orin Nano),
    ``VDD_SYS_GPU`` (TX2) or ``POM_5V_GPU`` (Nano).
    """
    of_gpu = [name for name in names if "GPU" in name.upper().split("_")]
    shared = ("CPU", "CV", "SOC")
    return min(
        of_gpu,
        key=lambda name: (sum(part in name.upper().split("_") for part in shared), len(name)),
        default=None,
    )


def tegrastats_meter(command: str = "tegrastats") -> SubprocessMeter:
    """Return a meter that runs ``tegrastats``, named after the GPU's rail.

    Raises:
        MeterError: the tool does not run or tells of no such rail.
    """
    call = [command, "--interval", str(TEGRASTATS_PERIOD_MS)]
    rail = _reported_rail(call)

    def sample(line: str, read_s: float) -> Sample | None:
        power_w = tegrastats_rails(line).get(rail)
        return None if power_w is None else Sample(time_s=read_s, value=power_w)

    return SubprocessMeter(f"tegrastats rail {rail}", call, sample, _REMEDY)


def _reported_rail(call: list[str]) -> str:
    """Run the tool until it has named the GPU's rail."""
    named = threading.Event()
    found: list[str] = []

    def sample(line: str, read_s: float) -> Sample | None:
        rail = gpu_rail(tuple(tegrastats_rails(line)))
        if rail is None:
            return None
        found.append(rail)
        named.set()
        return Sample(time_s=read_s, value=tegrastats_rails(line)[rail])

    probe = SubprocessMeter("tegrastats", call, sample, _REMEDY)
    probe.start()
    deadline_s = time.monotonic() + TEGRASTATS_ANSWER_S
    while not named.wait(0.02) and not probe.ended and time.monotonic() < deadline_s:
        pass
    probe.stop()
    if not found:
        raise MeterError("tegrastats names no rail of the GPU", _REMEDY)
    return found[0]


def tegrastats_rails(line: str) -> dict[str, float]:
    """Return the momentary watts of each rail in a line of tegrastats.

    Old releases print ``GPU 310/295``, newer ones ``VDD_GPU_SOC 1234mW/1230mW``: now/mean, in
    milliwatts.
    """
    return {name: int(now) / 1e3 for name, now, _ in _RAIL.findall(line)}


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
