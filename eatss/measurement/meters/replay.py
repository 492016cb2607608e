"""Recorded traces: kept as JSON, given back as if a sensor told them now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import get_args

from eatss.measurement.meters.meter import MeterError, Sample, Trace, TraceKind

TRACES_SCHEMA = 1
"""Version of the JSON form of traces."""


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


def save_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write traces as JSON: seconds of a common clock beside joules or watts."""
    document = {
        "schema_version": TRACES_SCHEMA,
        "traces": [
            {
                "meter": trace.meter,
                "kind": trace.kind,
                "samples": [[sample.time_s, sample.value] for sample in trace.samples],
            }
            for trace in traces
        ],
    }
    path.write_text(json.dumps(document) + "\n", encoding="utf-8")


def load_traces(path: Path) -> tuple[Trace, ...]:
    """Read traces that :func:`save_traces` wrote.

    Raises:
        MeterError: the file cannot be read or does not hold traces.
    """
    remedy = "name a file that eatss recorded"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version = document["schema_version"]
        if version != TRACES_SCHEMA:
            raise MeterError(
                f"{path} has version {version} of the form of traces, not {TRACES_SCHEMA}",
                "use the release of eatss that wrote it, or record anew",
            )
        traces = [
            Trace(
                meter=str(entry["meter"]),
                kind=entry["kind"],
                samples=tuple(Sample(time_s=float(t), value=float(v)) for t, v in entry["samples"]),
            )
            for entry in document["traces"]
        ]
        if odd := [trace.kind for trace in traces if trace.kind not in get_args(TraceKind)]:
            raise ValueError(f"unknown kind {odd[0]!r}")
        return tuple(traces)
    except OSError as error:
        raise MeterError(f"{path} cannot be read: {error.strerror}", remedy) from None
    except (ValueError, TypeError, KeyError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise MeterError(f"{path} holds no traces ({detail})", remedy) from None
