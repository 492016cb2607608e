"""The processes of a sweep: some make variants in parallel, ahead of one that holds the card.

The card measures one variant at a time.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, EatssError, InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.supervisor import LiveWorker, Outcome, Worker
from eatss.measurement.api import what_ended
from eatss.measurement.arguments import complete_sizes
from eatss.measurement.assemble import assemble
from eatss.measurement.counters import find_ncu, with_counters, without
from eatss.measurement.job import (
    START,
    Bench,
    CardLost,
    Event,
    Job,
    Record,
    Records,
    Result,
    Task,
)
from eatss.measurement.measurement import DeviceInfo, Measurement
from eatss.measurement.options import Variant
from eatss.program import load_program
from eatss.tune.jobs import BuiltVariant, MakerJob, Policy, Trial, VariantJob
from eatss.tune.rows import CardSeen

ONLY_THE_REFERENCE = "only the reference of the sweep was compared with the original"

FRUITLESS_WORKERS = 2
"""So many processes in a row that get nowhere, and the card is taken to be gone."""


class CardGoneError(InputError):
    """The card does not answer any more, whichever process asks (``EATSS-W033``)."""


class CardProcess(LiveWorker):
    """Holds a card. A program that crashes or hangs costs itself alone."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.worker())
        self._bench = bench
        self._seen = Records(options=bench.options, variants=[])
        self._referred = False
        self._fruitless = 0

    def open(self) -> DeviceInfo:
        """Open the card and return which one it is.

        Raises:
            InputError: it cannot be used from here.
            CardGoneError: it does not answer.
        """
        while not self.runs:
            self._open()
        assert self._seen.opened is not None
        return self._seen.opened.device

    def seen(self) -> CardSeen:
        """Return the card as stores know it."""
        device = self.open()
        return CardSeen(
            uuid=device.uuid or f"{socket.gethostname()}:{self._bench.options.device}",
            name=device.name,
            host=socket.gethostname(),
            compute_capability=device.compute_capability,
            driver=device.driver,
            power_limit_w=device.power_limit_w,
            idle_power_w=self._seen.idle.power_w,
        )

    def measure(
        self, built: BuiltVariant, policy: Policy, label: str, reference: BuiltVariant | None
    ) -> Trial:
        """Measure a program; its failure is a status.

        Args:
            built: the program.
            policy: how carefully.
            label: what it is called.
            reference: whose results others are compared with; a fresh process runs it first.

        Raises:
            InputError: the card cannot be used from here.
            CardGoneError: two processes in a row could not use the card.
        """
        card = self.seen()
        begin_s = time.monotonic()
        records = self._records(built, policy, label)
        (record,) = records.variants
        (task,) = records.left()
        task = replace(task, unchecked="" if policy.checks else ONLY_THE_REFERENCE)
        outcome = self._refer(reference, built, records)
        if outcome is None:
            job = Job(options=records.options, tasks=(task,), looks_around=False)
            outcome = self.ask(job, partial(_taken, records), limit_s=START.limit_s)
        if outcome is not None:
            record.fail(*what_ended(records.stage, outcome))
        record.fail("launch error", "the measuring process ended it without a word")
        self._fruitless = 0 if outcome is None else self._fruitless
        measurement = assemble(records, record)
        if policy.counters:
            measurement = _counted(measurement, records)
        return Trial(
            measurement=measurement,
            card=card,
            card_s=time.monotonic() - begin_s,
            card_j=_joules(record, policy.settle_s),
        )

    def _open(self) -> None:
        told, seen = [], replace(self._seen)

        def take(event: Event) -> float | None:
            told.append(event)
            return seen.take(event)

        outcome = self.start(take)
        if outcome is None and self._seen.opened is None:  # else by a process that died
            job = Job(options=self._bench.options, tasks=())
            outcome = self.ask(job, take, limit_s=START.limit_s)
        refused = next((one for one in told if isinstance(one, EatssError)), None)
        if refused is not None:
            raise refused
        if outcome is None:
            self._seen = seen
            self._referred = False
            return
        self._fruitless += 1
        if self._fruitless >= FRUITLESS_WORKERS:
            said = f": {' | '.join(outcome.said)}" if outcome.said else ""
            lost = [one.reason for one in told if isinstance(one, CardLost)]
            why = next(iter(lost), f"the measuring process {outcome.how}{said}")
            raise CardGoneError(
                Diagnostic(
                    code="EATSS-W033",
                    message=f"the card does not answer: {why}",
                    hint="nvidia-smi says more; what was measured is kept",
                )
            )

    def _refer(
        self, reference: BuiltVariant | None, built: BuiltVariant, records: Records
    ) -> Outcome | None:
        """Let a fresh process run the reference, so that its results are there.

        What it takes is not told; return how the process ended, if it did.
        """
        if reference is None or reference.folder is None or self._referred:
            return None
        self._referred = True
        if reference.folder == built.folder:
            return None
        options = replace(
            self._bench.options,
            check=True,
            least_windows=1,
            least_window_s=1e-3,
            least_updates=1,
            target=1e9,
            budget_s=1e-3,
            warm_up_s=0.0,
            settle_s=1e-3,
        )
        task = Task(
            index=0,
            label="the reference",
            directory=reference.folder,
            unchecked=ONLY_THE_REFERENCE,
        )

        def take(event: Event) -> float | None:
            return None if isinstance(event, Result) else _taken(records, event)

        job = Job(options=options, tasks=(task,), looks_around=False)
        return self.ask(job, take, limit_s=START.limit_s)

    def _records(self, built: BuiltVariant, policy: Policy, label: str) -> Records:
        assert built.folder is not None
        folder = Path(built.folder)
        program = load_program(folder)
        record = Record(
            variant=Variant(label=label, directory=folder),
            program=program,
            sizes=complete_sizes(program, {}),
            result=Result(task=0),
        )
        options = policy.options(self._bench.options)
        return replace(self._seen, options=options, variants=[record], stage=START)


def _taken(records: Records, event: Event) -> float | None:
    """Note an event; return the seconds that the stage may take which it begins."""
    if isinstance(event, CardLost):
        records.variants[0].fail("launch error", event.reason)
    return records.take(event)


def _counted(measurement: Measurement, records: Records) -> Measurement:
    """Return a measurement with hardware counters, or with the reason why there are none."""
    try:
        ncu = find_ncu()
    except InputError as error:
        return without(measurement, error.diagnostics[0].message)
    folder = records.variants[0].variant.directory
    return with_counters(measurement, folder, records.options, ncu=ncu)


def _joules(record: Record, settle_s: float) -> float | None:
    """Return what the card drew in the windows of a variant and the load before each."""
    known = [
        window.readings[0].power_w * (window.duration_s + settle_s)
        for window in record.result.windows
        if window.readings
    ]
    return sum(known) if known else None


MAKE_LIMIT_S = 300.0
"""The slowest generator and compiler of the largest variant take minutes."""


class MakerProcess(LiveWorker):
    """Makes variants, one at a time."""

    def __init__(self, job: MakerJob) -> None:
        super().__init__(
            Worker(
                module="eatss.tune.maker_worker",
                job=job,
                start_limit_s=MAKE_LIMIT_S,
            )
        )

    def warm(self) -> None:
        """Start the process and let it analyse the program.

        Raises:
            InputError: nothing can be made here.
        """
        refused: list[EatssError] = []
        outcome = self.start(refused.append)
        if refused:
            raise refused[0]
        if outcome is not None:
            raise input_error(
                "EATSS-W033",
                f"the process that generates variants {outcome.how} when it started"
                + (f": {' | '.join(outcome.said)}" if outcome.said else ""),
                hint="it may lack memory: try with fewer --makers",
            )

    def make(self, wanted: VariantJob) -> BuiltVariant:
        """Return a variant, or why there is none.

        Raises:
            InputError: nothing can be made here.
        """
        if not self.runs:
            self.warm()
        found: list[BuiltVariant] = []
        outcome = self.ask(wanted, found.append, limit_s=MAKE_LIMIT_S)
        return found[0] if found else self._failed(wanted, outcome)

    def _failed(self, wanted: VariantJob, outcome: Outcome | None) -> BuiltVariant:
        why = "said nothing" if outcome is None else outcome.how
        if outcome is not None and not outcome.in_time:
            why = f"did not end within {MAKE_LIMIT_S:g} s"
        said = "" if outcome is None or not outcome.said else f": {' | '.join(outcome.said)}"
        return BuiltVariant(
            variant=wanted.variant,
            folder=None,
            status="rejected by the model",
            reason=f"the process that generates it {why}{said}",
        )


AHEAD = 2
"""Variants on the way for each process that makes them, beside those on cards."""


@frozen
class MeasureJob:
    """A variant and how carefully it is measured, beside a reference that was made before."""

    wanted: VariantJob
    policy: Policy
    reference: BuiltVariant | None = None


@frozen
class VariantResult:
    """What became of a variant; ``tried`` is ``None`` where it never came to a card."""

    work: MeasureJob
    built: BuiltVariant
    trial: Trial | None


class Runner:
    """The card of this machine, and processes that make variants for it.

    Args:
        maker: what variants are made of.
        count: how many processes make them.
        bench: the card.
    """

    def __init__(self, maker: MakerJob, count: int, bench: Bench) -> None:
        self._limit = AHEAD * count + 2
        self._on_the_way = 0
        self._to_make: queue.Queue[MeasureJob | None] = queue.Queue()
        self._to_measure: queue.Queue[tuple[MeasureJob, BuiltVariant] | None] = queue.Queue()
        self._done: queue.Queue[VariantResult | BaseException] = queue.Queue()
        self._ending = False
        self._busy: list[LiveWorker] = []
        self._threads = [
            threading.Thread(target=self._make, args=(maker,), daemon=True) for _ in range(count)
        ]
        self._threads.append(threading.Thread(target=self._measure, args=(bench,), daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def room(self) -> int:
        """How many variants more may be on the way now."""
        return self._limit - self._on_the_way

    def submit(self, work: MeasureJob) -> None:
        """Take a variant on; does not wait."""
        self._on_the_way += 1
        self._to_make.put(work)

    def done(self, timeout_s: float) -> VariantResult | None:
        """Return what is done next; ``None`` if nothing is within the time.

        Raises:
            EatssError: the machine cannot make or measure.
        """
        try:
            found = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        self._on_the_way -= 1
        return found

    def close(self) -> None:
        """End everything that is on the way."""
        self._ending = True
        for one in self._busy:
            one.stop()
        for _ in self._threads:
            self._to_make.put(None)
            self._to_measure.put(None)
        for thread in self._threads:
            thread.join()

    def _make(self, job: MakerJob) -> None:
        process = MakerProcess(job)
        self._busy.append(process)
        try:
            process.warm()
            while not self._ending and (work := self._to_make.get()) is not None:
                built = process.make(work.wanted)
                if built.folder is None:
                    self._done.put(VariantResult(work=work, built=built, trial=None))
                else:
                    self._to_measure.put((work, built))
        except BaseException as error:
            self._done.put(error)
        finally:
            process.end()

    def _measure(self, bench: Bench) -> None:
        """Measure variants as they are made."""
        process = CardProcess(bench)
        self._busy.append(process)
        try:
            while not self._ending and (found := self._to_measure.get()) is not None:
                work, built = found
                label = work.wanted.role or work.wanted.variant
                trial = process.measure(built, work.policy, label, work.reference)
                self._done.put(VariantResult(work=work, built=built, trial=trial))
        except BaseException as error:
            self._done.put(error)
        finally:
            process.end()
