"""The protocol of energy meters, what they record, and power over time as data from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eatss.base.frozen import frozen

TraceKind: TypeAlias = Literal["energy", "power"]


@frozen
class Sample:
    """A value of a sensor at a time of ``time.perf_counter``: joules of a counter, or watts.

    ``late_s`` is how long before ``time_s`` a counter may have had this value already; ``None`` for
    what :mod:`eatss.measurement.meters.background` allows.
    """

    time_s: float
    value: float
    late_s: float | None = None


@frozen
class Trace:
    """What a meter saw: for a counter of energy, the moments at which it moved.

    ``samples`` are in the order of time. Samples of an ``energy`` trace are the first readings
    after each update; those of a ``power`` trace are the first readings of each new value.
    """

    meter: str
    kind: TraceKind
    samples: tuple[Sample, ...]


class Meter(Protocol):
    """A way to learn what a card draws. Recording costs the card nothing and needs no root."""

    @property
    def name(self) -> str:
        """Name for results, like ``NVML energy counter`` or ``nvidia-smi``."""
        ...

    def start(self) -> None:
        """Begin to record, in a thread or a process of its own.

        Raises:
            MeterError: the sensor does not answer.
        """
        ...

    def stop(self) -> Trace:
        """End recording and return the trace.

        Raises:
            MeterError: the sensor stopped answering.
        """
        ...


class MeterError(Exception):
    """A sensor that does not work here: a sentence, and what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy

    @property
    def whole(self) -> str:
        """The sentence, and in brackets what to do."""
        return f"{self} ({self.remedy})" if self.remedy else str(self)


STEP_S = 0.1
"""Power is told from a counter of energy over at least so long."""

LATE_SHARE = 0.1
"""And over so long that its ends may be late by at most this share."""


@frozen
class PowerSample:
    """What was drawn at a time, in seconds since the work began; before it, negative.

    Attributes:
        time_s: Seconds since the block or the program began.
        power_w: Watts.
    """

    time_s: float
    power_w: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerTrace:
    """Power over time of one source, as two arrays of one length.

    Attributes:
        source: ``"card 0"``, ``"CPU package 0"``, or the name of a meter.
        time_s: Seconds since the block or the program began, rising; before it, negative.
        power_w: Watts at these times.
    """

    source: str
    time_s: NDArray[np.float64]
    power_w: NDArray[np.float64]

    @classmethod
    def of(cls, source: str, samples: Sequence[PowerSample]) -> PowerTrace:
        """Return samples as arrays."""
        return cls(
            source=source,
            time_s=np.array([sample.time_s for sample in samples], dtype=float),
            power_w=np.array([sample.power_w for sample in samples], dtype=float),
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row a sample, with ``source``, ``time_s`` and ``power_w``."""
        pairs = zip(self.time_s.tolist(), self.power_w.tolist(), strict=True)
        return [{"source": self.source, "time_s": t, "power_w": w} for t, w in pairs]


def power_samples(traces: Sequence[Trace], begin_s: float, end_s: float) -> tuple[PowerSample, ...]:
    """Return the power to the end of a block: as a meter told it, else from a counter of energy.

    Args:
        traces: of one source; the first of a sensor of power is taken, if there is one.
        begin_s: when the block began, by the clock of the traces: 0 of the samples.
        end_s: when it ended; later samples are left out.
    """
    usable = [trace for trace in traces if trace.samples]
    power = next((trace for trace in usable if trace.kind == "power"), None)
    if power is not None:
        found: Iterator[Sample] = iter(power.samples)
    else:
        found = _from_counter(next((trace for trace in usable if trace.kind == "energy"), None))
    return tuple(
        PowerSample(time_s=sample.time_s - begin_s, power_w=sample.value)
        for sample in found
        if sample.time_s <= end_s
    )


def _from_counter(trace: Trace | None) -> Iterator[Sample]:
    """Yield the mean power between readings of a counter, in the middle of the time between."""
    if trace is None:
        return
    last = trace.samples[0]
    for sample in trace.samples[1:]:
        passed_s = sample.time_s - last.time_s
        late_s = max(last.late_s or 0.0, sample.late_s or 0.0)
        if passed_s < max(STEP_S * 0.95, late_s / LATE_SHARE):
            continue
        if sample.value >= last.value:
            middle_s = (sample.time_s + last.time_s) / 2
            yield Sample(time_s=middle_s, value=(sample.value - last.value) / passed_s)
        last = sample
