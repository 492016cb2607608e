"""The protocol of energy meters and what they record."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from eatss.frozen import frozen

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
