"""The meters and the state of a card around a stretch of load: start, stop, cut at its edges.

Which energy sensors of this machine answer: a line of ``eatss doctor``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from itertools import chain
from typing import Any

import numpy as np

from eatss.base.frozen import frozen
from eatss.cards.environment import Check
from eatss.measurement.card import MeteredCard, named_cards
from eatss.measurement.job import CardOpened
from eatss.measurement.measurement import CardState, LoadState, Reading
from eatss.measurement.meters.choose import choose_meters
from eatss.measurement.meters.meter import (
    POWER_SETTLE_S,
    Meter,
    MeterError,
    Trace,
    read,
    update_period_s,
)
from eatss.measurement.meters.nvml import NvmlDevice


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

    @property
    def settled_s(self) -> float:
        """From when on a sensor of power tells of nothing but the load.

        It tells of a time that is past: of a load's first ``POWER_SETTLE_S`` that before it, too.
        """
        return max(self.load_begin_s + POWER_SETTLE_S, self.begin_s)


class Metering:
    """The meters of a card. One that fails is left out from then on.

    Results rest on the first meter that starts (``primary``) and on no other: where it fails
    later, ``failure`` says why, and no other meter takes its place.
    """

    def __init__(self, card: MeteredCard, choice: str) -> None:
        """Get the meters and start each once, to learn which ones work.

        Raises:
            MeterError: the meter that was asked for by name does not work here.
        """
        self.card = card
        self.primary: str | None = None
        self.failure = ""
        self._live: list[Meter] = list(card.meters(choice))
        with self.recording():
            pass
        if self._live:
            self.primary, self.failure = self._live[0].name, ""
        elif choice == "none":
            self.failure = "no meter was asked for"
        elif not self.failure:
            reasons = "; ".join(f"{one.what}: {one.reason}" for one in card.missing_meters())
            self.failure = f"no sensor of energy or power answers here: {reasons or 'see doctor'}"

    @property
    def works(self) -> bool:
        """Whether the meter that results rest on still answers."""
        return any(meter.name == self.primary for meter in self._live)

    @contextmanager
    def recording(self) -> Iterator[list[Trace]]:
        """Record while the block runs; the traces are in the list after it."""
        traces: list[Trace] = []
        started: list[Meter] = []
        for meter in tuple(self._live):
            with self._guarded(meter):
                meter.start()
                started.append(meter)
        try:
            yield traces
        finally:
            for meter in started:
                with self._guarded(meter):
                    traces.append(meter.stop())

    @contextmanager
    def _guarded(self, meter: Meter) -> Iterator[None]:
        """Leave a meter out from now on if it fails in the block."""
        try:
            yield
        except MeterError as error:
            self._live.remove(meter)
            if self.primary is None or meter.name == self.primary:
                self.failure = error.whole

    def readings(self, traces: Sequence[Trace], span: Span) -> tuple[tuple[Reading, ...], str]:
        """Return what the meters say of a span, the primary first, and why that one says nothing.

        A trace of power is cut from when on it is of the load alone.
        """
        found: list[Reading] = []
        why = self.failure
        for trace in traces:
            settle_s = None if trace.kind == "energy" else span.settled_s - span.begin_s
            reading = read(trace, span.begin_s, span.end_s, settle_s=settle_s)
            if isinstance(reading, Reading):
                found.append(reading)
            if trace.meter == self.primary:
                why = reading if isinstance(reading, str) else ""
        found.sort(key=lambda reading: reading.meter != self.primary)
        return tuple(found), why

    def power_w(self, settle: Callable[[], object], load: Callable[[], object]) -> float | str:
        """Return the mean power of a load after it has settled, or why it is not known."""
        now = self.card.now
        with self.recording() as traces:
            load_begin_s = now()
            settle()
            begin_s = now()
            load()
            span = Span(load_begin_s=load_begin_s, begin_s=begin_s, end_s=now())
        readings, why = self.readings(traces, span)
        return why or readings[0].power_w

    def period_s(self, traces: Sequence[Trace]) -> float | None:
        """Return the seconds between updates of the primary meter, ``None`` if not known."""
        trace = self.primary_trace(traces)
        return None if trace is None else update_period_s(trace)

    def primary_trace(self, traces: Sequence[Trace]) -> Trace | None:
        """Return the trace of the primary meter, ``None`` if it gave none."""
        return next((trace for trace in traces if trace.meter == self.primary), None)

    def opened(self) -> CardOpened:
        """Return what is to be told of a card that works and of its meters."""
        return CardOpened(
            device=self.card.info,
            meter=self.primary,
            no_meter=self.failure,
            missing_meters=self.card.missing_meters(),
        )


def most_power_w(traces: Sequence[Trace], span: Span) -> float | None:
    """Return the highest value of a sensor of power in a span, ``None`` if there is none."""
    return max(
        (
            sample.value
            for trace in traces
            if trace.kind == "power"
            for sample in trace.samples
            if span.settled_s <= sample.time_s <= span.end_s
        ),
        default=None,
    )


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
    clocks, memory, warmth, reasons = (
        [value for state in seen if (value := getattr(state, field.name)) is not None]
        for field in fields(CardState)
    )
    return LoadState(
        samples=len(seen),
        sm_clock_lowest_mhz=min(clocks, default=None),
        sm_clock_mean_mhz=float(np.mean(clocks)) if clocks else None,
        sm_clock_highest_mhz=max(clocks, default=None),
        memory_clock_mhz=min(memory, default=None),
        temperature_c=max(warmth, default=None),
        throttle=tuple(dict.fromkeys(chain(*reasons))) if reasons else None,
    )


def examine_sensors(device: int | str = 0, *, module: Any = None) -> Check:
    """Look at the energy sensors of a card, for ``eatss doctor``.

    Args:
        device: the card's number as CUDA counts those it sees, or its UUID, as for measuring.
        module: what stands in for ``pynvml``.
    """
    (named,) = named_cards(device, module=module)
    remedy = "time is measured all the same; energy needs a card that tells it"
    try:
        with closing(NvmlDevice(named.device, module=module)) as card:
            chosen = choose_meters("auto", named.device, nvml=card)
        found = ", ".join(meter.name for meter in chosen.meters)
        reason = "" if found else chosen.missing[0].reason
    except MeterError as error:
        found, reason, remedy = "", named.reason or str(error), error.remedy or remedy
    return Check(
        name="energy meter",
        ok=True if found else None,
        found=found or reason,
        needed_for="measuring energy",
        remedy="" if found else remedy,
    )
