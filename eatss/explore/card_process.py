"""A card that is held for a sweep: programs in, what the card found out."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path

from eatss.diagnostics import Diagnostic, InputError
from eatss.explore.nouns import BenchJob, Order, Tried
from eatss.measurement.api import FRUITLESS_WORKERS, what_ended
from eatss.measurement.assemble import assemble
from eatss.measurement.counters import find_ncu, with_counters, without
from eatss.measurement.job import (
    EVENTS,
    Broken,
    CardLost,
    CardOpened,
    Entered,
    Event,
    IdleRead,
)
from eatss.measurement.launches import complete_sizes
from eatss.measurement.measurement import DeviceInfo, Measurement
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.record import START, Record, Records
from eatss.program import load_program
from eatss.store.nouns import CardSeen
from eatss.supervisor import LiveWorker, Outcome, Refused, Worker

ORDER_LIMIT_S = 120.0
"""Until the first stage of an order: reading a program."""


class CardGoneError(InputError):
    """The card does not answer any more, whichever process asks (``EATSS-W033``)."""


@dataclass(slots=True)
class _Opened:
    """What a process told of its card."""

    opened: CardOpened | None = None
    idle: IdleRead | None = None
    refused: Refused | None = None
    reason: str = ""


class CardProcess:
    """Holds a card in a process of its own, and another one where that dies.

    Use it from one thread. A program that crashes or hangs costs itself alone.
    """

    def __init__(self, job: BenchJob) -> None:
        self._job = job
        self._worker: LiveWorker | None = None
        self._told = _Opened()
        self._fruitless = 0

    def open(self) -> DeviceInfo:
        """Open the card and return which one it is.

        Raises:
            InputError: it cannot be used from here.
            CardGoneError: it does not answer.
        """
        while self._worker is None:
            self._start()
        assert self._told.opened is not None
        return self._told.opened.device

    def seen(self) -> CardSeen:
        """Return the card as stores know it."""
        device = self.open()
        idle = self._told.idle
        return CardSeen(
            uuid=device.uuid or f"{socket.gethostname()}:{self._job.device}",
            name=device.name,
            host=socket.gethostname(),
            compute_capability=device.compute_capability,
            driver=device.driver,
            power_limit_w=device.power_limit_w,
            idle_power_w=None if idle is None else idle.power_w,
        )

    def measure(self, order: Order) -> Tried:
        """Measure a program; its failure is a status.

        Raises:
            InputError: the card cannot be used from here.
            CardGoneError: two processes in a row could not use the card.
        """
        card = self.seen()
        begin_s = time.monotonic()
        records = self._records(order)
        (record,) = records.variants
        assert self._worker is not None

        def take(event: Event) -> float | None:
            return _taken(event, records, record)

        outcome = self._worker.ask(order, take, limit_s=ORDER_LIMIT_S)
        if outcome is not None:
            self._worker = None
            if record.ended is None:
                record.fail(*what_ended(records.stage, outcome))
        if record.ended is None:
            record.fail("launch error", "the measuring process ended it without a word")
        self._fruitless = 0 if outcome is None else self._fruitless
        measurement = assemble(records, record)
        if order.care.counters:
            measurement = _counted(measurement, order, records.options)
        return Tried(
            measurement=measurement,
            card=card,
            card_s=time.monotonic() - begin_s,
            card_j=_joules(record, order),
        )

    def stop(self) -> None:
        """Give up what is being measured, from another thread."""
        if self._worker is not None:
            self._worker.stop()

    def close(self) -> None:
        """Give the card back."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _start(self) -> None:
        job = self._job
        before = self._told
        if before.opened is not None:  # of a process that died: results keep to its meter
            job = replace(job, reads_idle=False, keeps_meter=before.opened.meter)
        told = _Opened(idle=before.idle)

        def take(event: Event) -> float | None:
            return _noted(event, told)

        worker = LiveWorker(
            Worker(
                module="eatss.explore.card_worker",
                job=job,
                events=EVENTS,
                start_limit_s=START.limit_s,
            )
        )
        self._worker = worker  # so that it can be stopped while it starts
        outcome = worker.start(take)
        if outcome is None:
            self._told = told
            return
        self._worker = None
        if told.refused is not None:
            raise told.refused.error()
        self._fruitless += 1
        if self._fruitless >= FRUITLESS_WORKERS:
            raise CardGoneError(
                Diagnostic(
                    code="EATSS-W033",
                    message=f"the card does not answer: {told.reason or _words(outcome)}",
                    hint="nvidia-smi says more; what was measured is kept",
                )
            )

    def _records(self, order: Order) -> Records:
        told = self._told
        assert told.opened is not None
        folder = Path(order.folder)
        program = load_program(folder)
        record = Record(
            variant=Variant(label=order.label, directory=folder),
            program=program,
            sizes=complete_sizes(program, dict(order.sizes)),
        )
        options = order.care.options(self._job, order.sizes)
        records = Records(options=options, variants=[record])
        records.take(told.opened)
        if told.idle is not None:
            records.take(told.idle)
        records.no_warm_idle = "it is not read between the variants of a sweep"
        return records


def _taken(event: Event, records: Records, record: Record) -> float | None:
    """Note an event; return the seconds that the stage may take which it begins."""
    if isinstance(event, CardLost):
        if record.ended is None:
            record.fail("launch error", event.reason)
        return None
    if isinstance(event, Broken):
        record.fail("launch error", f"eatss failed, please report it: {event.error}")
        return None
    records.take(event)
    return event.limit_s if isinstance(event, Entered) else None


def _noted(event: Event, told: _Opened) -> float | None:
    if isinstance(event, CardOpened):
        told.opened = event
    elif isinstance(event, IdleRead):
        told.idle = event
    elif isinstance(event, Refused):
        told.refused = event
    elif isinstance(event, CardLost):
        told.reason = event.reason
    elif isinstance(event, Broken):
        told.reason = f"eatss failed, please report it: {event.error}"
    return event.limit_s if isinstance(event, Entered) else None


def _words(outcome: Outcome) -> str:
    said = f": {' | '.join(outcome.said)}" if outcome.said else ""
    return f"the measuring process {outcome.how}{said}"


def _counted(measurement: Measurement, order: Order, options: MeasureOptions) -> Measurement:
    """Return a measurement with hardware counters, or with the reason why there are none."""
    try:
        ncu = find_ncu()
    except InputError as error:
        return without(measurement, error.diagnostics[0].message)
    return with_counters(measurement, Path(order.folder), options, ncu=ncu)


def _joules(record: Record, order: Order) -> float | None:
    """Return what the card drew in the windows of a variant and the load before each."""
    known = [
        window.readings[0].power_w * (window.duration_s + order.care.settle_s)
        for window in record.windows
        if window.readings
    ]
    return sum(known) if known else None
