"""A meter that gives back traces as if a sensor told them now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from eatss.measurement.meters import MeterError, Trace


class ReplayMeter:
    """Gives back traces in order, one for each recording.

    With a clock, a trace begins at the moment of :meth:`start` and what lies after the moment of
    :meth:`stop` is left out; without one, traces come back with the times they were recorded at.
    """

    def __init__(
        self,
        traces: Iterable[Trace],
        *,
        clock: Callable[[], float] | None = None,
        name: str | None = None,
    ) -> None:
        self._traces = tuple(traces)
        self._clock = clock
        self._name = name
        self._next = 0
        self._begin_s: float | None = None
        self._recording = False

    @property
    def name(self) -> str:
        """Name of the meter that recorded the trace that comes next."""
        if self._name is not None:
            return self._name
        if not self._traces:
            return "replay"
        return self._traces[min(self._next, len(self._traces) - 1)].meter

    def start(self) -> None:
        """Begin to give back the next trace.

        Raises:
            MeterError: all were given back, or one is being given back.
        """
        if self._recording:
            raise MeterError(f"{self.name} is recording already")
        if self._next >= len(self._traces):
            raise MeterError(
                f"the recording ends after {len(self._traces)} traces", "record more traces"
            )
        self._recording = True
        self._begin_s = None if self._clock is None else self._clock()

    def stop(self) -> Trace:
        """Return the trace.

        Raises:
            MeterError: none was begun.
        """
        if not self._recording:
            raise MeterError(f"{self.name} was not recording")
        name = self.name
        trace = replace(self._traces[self._next], meter=name)
        self._recording = False
        self._next += 1
        if self._clock is None or self._begin_s is None or not trace.samples:
            return trace
        shift_s, end_s = self._begin_s - trace.samples[0].time_s, self._clock()
        moved = (replace(sample, time_s=sample.time_s + shift_s) for sample in trace.samples)
        return replace(trace, samples=tuple(s for s in moved if s.time_s <= end_s))
