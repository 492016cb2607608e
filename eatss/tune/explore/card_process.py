"""A card that is held for a sweep: programs in, what the card found out."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.base.supervisor import LiveWorker, Outcome, Refused, Take, Worker
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
from eatss.tune.explore.nouns import BenchJob, Order, Tried
from eatss.tune.store.nouns import CardSeen

ORDER_LIMIT_S = 120.0
"""Until the first stage of an order: reading a program."""


class CardGoneError(InputError):
    """The card does not answer any more, whichever process asks (``EATSS-W033``)."""


class HeldProcess:
    """A worker in a process of its own, and another one where that dies. Use it from one thread."""

    def __init__(self) -> None:
        self._worker: LiveWorker | None = None

    def start(self, worker: Worker, take: Take) -> Outcome | None:
        """Start a worker and wait until it is ready; return how it ended if it ended instead."""
        self._worker = LiveWorker(worker)  # so that it can be stopped while it starts
        outcome = self._worker.start(take)
        if outcome is not None:
            self._worker = None
        return outcome

    def stop(self) -> None:
        """Give up what it does, from another thread."""
        if self._worker is not None:
            self._worker.stop()

    def close(self) -> None:
        """End it."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None


@dataclass(slots=True)
class _Opened:
    """What a process told of its card."""

    opened: CardOpened | None = None
    idle: IdleRead | None = None
    refused: Refused | None = None
    reason: str = ""

    def take(self, event: Event) -> float | None:
        """Note an event; return the seconds that the stage may take which it begins."""
        match event:
            case CardOpened():
                self.opened = event
            case IdleRead():
                self.idle = event
            case Refused():
                self.refused = event
            case CardLost():
                self.reason = event.reason
            case Broken():
                self.reason = f"eatss failed, please report it: {event.error}"
        return event.limit_s if isinstance(event, Entered) else None


class CardProcess(HeldProcess):
    """Holds a card. A program that crashes or hangs costs itself alone."""

    def __init__(self, job: BenchJob) -> None:
        super().__init__()
        self._job = job
        self._told = _Opened()
        self._fruitless = 0

    def open(self) -> DeviceInfo:
        """Open the card and return which one it is.

        Raises:
            InputError: it cannot be used from here.
            CardGoneError: it does not answer.
        """
        while self._worker is None:
            self._open()
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
        take = partial(_taken, records, record)
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

    def _open(self) -> None:
        job = self._job
        before = self._told
        if before.opened is not None:  # of a process that died: results keep to its meter
            job = replace(job, reads_idle=False, keeps_meter=before.opened.meter)
        told = _Opened(idle=before.idle)
        outcome = self.start(
            Worker(
                module="eatss.tune.explore.card_worker",
                job=job,
                events=EVENTS,
                start_limit_s=START.limit_s,
            ),
            told.take,
        )
        if outcome is None:
            self._told = told
            return
        if told.refused is not None:
            raise told.refused.error()
        self._fruitless += 1
        if self._fruitless >= FRUITLESS_WORKERS:
            said = f": {' | '.join(outcome.said)}" if outcome.said else ""
            why = told.reason or f"the measuring process {outcome.how}{said}"
            raise CardGoneError(
                Diagnostic(
                    code="EATSS-W033",
                    message=f"the card does not answer: {why}",
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


def _taken(records: Records, record: Record, event: Event) -> float | None:
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
