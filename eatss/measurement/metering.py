"""The meters and the state of a card around a stretch of load: start, stop, cut at its edges."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from eatss.frozen import frozen
from eatss.measurement.card import MeteredCard
from eatss.measurement.job import CardOpened
from eatss.measurement.measurement import CardState, LoadState, Missing, Reading
from eatss.measurement.meters.meter import Meter, MeterError, Trace
from eatss.measurement.meters.reading import POWER_SETTLE_S, read, update_period_s


@frozen
class Span:
    """A stretch of steady load: it began at ``load_begin_s``, what is measured at ``begin_s``."""

    load_begin_s: float
    begin_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Seconds of what is measured."""
        return self.end_s - self.begin_s


@dataclass(slots=True)
class Recording:
    """What the meters saw, once recording has ended."""

    traces: tuple[Trace, ...] = field(default=())


@runtime_checkable
class ExplainsMissingMeters(Protocol):
    """A card that knows why it does not offer some meters; not every card does."""

    def missing_meters(self) -> tuple[Missing, ...]:
        """Return what ``meters`` left out the last time it was asked, and why."""
        ...


class Metering:
    """The meters of a card. One that fails is left out from then on.

    Results rest on the first meter that starts (``primary``) and on no other: where it fails
    later, ``failure`` says why, and no other meter takes its place.
    """

    def __init__(self, card: MeteredCard, choice: str, *, keep: str | None = None) -> None:
        """Get the meters and start each once, to learn which ones work.

        Args:
            card: whose meters.
            choice: as the user put it.
            keep: name of the meter that earlier windows of the measurement rest on. Later ones
                rest on it too, or have no energy: two meters' values have no common mean.

        Raises:
            MeterError: the meter that was asked for by name does not work here.
        """
        self.primary: str | None = None
        self.failure = ""
        self._live: list[Meter] = []
        try:
            self._live.extend(card.meters(choice))
        except MeterError as error:
            if keep is None:
                raise
            self.failure = str(error)
        with self.recording():
            pass
        if keep is not None:
            self.primary = keep
            why = f": {self.failure}" if self.failure else ""
            gone = f"the meter of earlier windows, {keep}, is gone{why}"
            self.failure = "" if self.works else gone
        elif self._live:
            self.primary, self.failure = self._live[0].name, ""
        elif choice == "none":
            self.failure = "no meter was asked for"
        elif not self.failure:
            self.failure = _no_sensor(card)

    @property
    def works(self) -> bool:
        """Whether the meter that results rest on still answers."""
        return any(meter.name == self.primary for meter in self._live)

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Record while the block runs; the traces are there after it."""
        recording = Recording()
        started = self._start()
        try:
            yield recording
        finally:
            recording.traces = self._stop(started)

    def readings(self, recording: Recording, span: Span) -> tuple[tuple[Reading, ...], str]:
        """Return what the meters say of a span, the primary first, and why that one says nothing.

        A sensor of power tells of a time that is past, so its trace is cut ``POWER_SETTLE_S``
        after the load began, or when what is measured began if that is later.
        """
        found: list[Reading] = []
        why = self.failure
        for trace in recording.traces:
            reading = _cut(trace, span)
            if isinstance(reading, Reading):
                found.append(reading)
            if trace.meter == self.primary:
                why = reading if isinstance(reading, str) else ""
        found.sort(key=lambda reading: reading.meter != self.primary)
        return tuple(found), why

    def most_power_w(self, recording: Recording, span: Span) -> float | None:
        """Return the highest value of a sensor of power in a span, ``None`` if there is none.

        Values of the load's first ``POWER_SETTLE_S`` are of the time before it, too.
        """
        begin_s = max(span.load_begin_s + POWER_SETTLE_S, span.begin_s)
        values = [
            sample.value
            for trace in recording.traces
            if trace.kind == "power"
            for sample in trace.samples
            if begin_s <= sample.time_s <= span.end_s
        ]
        return max(values, default=None)

    def period_s(self, recording: Recording) -> float | None:
        """Return the seconds between updates of the primary meter, ``None`` if not known."""
        for trace in recording.traces:
            if trace.meter == self.primary:
                period = update_period_s(trace)
                return None if isinstance(period, str) else period.median_s
        return None

    def primary_trace(self, recording: Recording) -> Trace | None:
        """Return the trace of the primary meter, ``None`` if it gave none."""
        return next((t for t in recording.traces if t.meter == self.primary), None)

    def _start(self) -> list[Meter]:
        started: list[Meter] = []
        for meter in tuple(self._live):
            try:
                meter.start()
            except MeterError as error:
                self._drop(meter, error)
            else:
                started.append(meter)
        return started

    def _stop(self, started: Sequence[Meter]) -> tuple[Trace, ...]:
        traces: list[Trace] = []
        for meter in started:
            try:
                traces.append(meter.stop())
            except MeterError as error:
                self._drop(meter, error)
        return tuple(traces)

    def _drop(self, meter: Meter, error: MeterError) -> None:
        self._live.remove(meter)
        if self.primary is None or meter.name == self.primary:
            self.failure = f"{error} ({error.remedy})" if error.remedy else str(error)


def _cut(trace: Trace, span: Span) -> Reading | str:
    if trace.kind == "energy":
        return read(trace, span.begin_s, span.end_s)
    settled_s = max(span.load_begin_s + POWER_SETTLE_S, span.begin_s)
    return read(trace, span.begin_s, span.end_s, settle_s=settled_s - span.begin_s)


def card_opened(card: MeteredCard, metering: Metering) -> CardOpened:
    """Return what is to be told of a card that works and of its meters."""
    return CardOpened(
        device=card.info,
        meter=metering.primary,
        no_meter=metering.failure,
        missing_meters=_missing_meters(card),
    )


def _no_sensor(card: MeteredCard) -> str:
    """Say that a card has no meter at all, and why not each."""
    reasons = "; ".join(f"{meter.what}: {meter.reason}" for meter in _missing_meters(card))
    sentence = "no sensor of energy or power answers here"
    return f"{sentence}: {reasons}" if reasons else f"{sentence}; eatss doctor says more"


def _missing_meters(card: MeteredCard) -> tuple[Missing, ...]:
    return card.missing_meters() if isinstance(card, ExplainsMissingMeters) else ()


@contextmanager
def sampled_states(
    state: Callable[[], CardState], period_s: float
) -> Iterator[Sequence[CardState]]:
    """Call ``state`` every ``period_s`` in a thread while the block runs.

    Yields:
        What it returned, complete after the block. A look that ends after the block is left out,
        since it may be of a card at rest.
    """
    seen: list[CardState] = []
    failed: list[Exception] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(period_s):
            try:
                found = state()
            except Exception as error:  # raised where the block ends
                failed.append(error)
                return
            if not over.is_set():
                seen.append(found)

    thread = threading.Thread(target=watch, name="card state", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def load_state(seen: Sequence[CardState]) -> LoadState:
    """Return what was seen of a load as one."""
    clocks = [state.sm_clock_mhz for state in seen if state.sm_clock_mhz is not None]
    memory = [state.memory_clock_mhz for state in seen if state.memory_clock_mhz is not None]
    warmth = [state.temperature_c for state in seen if state.temperature_c is not None]
    reasons = [state.throttle for state in seen if state.throttle is not None]
    return LoadState(
        samples=len(seen),
        sm_clock_lowest_mhz=min(clocks, default=None),
        sm_clock_mean_mhz=float(np.mean(clocks)) if clocks else None,
        sm_clock_highest_mhz=max(clocks, default=None),
        memory_clock_mhz=min(memory, default=None),
        temperature_c=max(warmth, default=None),
        throttle=tuple(dict.fromkeys(sum(reasons, ()))) if reasons else None,
    )
