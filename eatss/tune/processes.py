"""The processes of a sweep: some make variants in parallel, ahead of one that holds the card.

The card measures one variant at a time.
"""

from __future__ import annotations

import queue
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from eatss.base.diagnostics import EatssError, InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.supervisor import LiveWorker, Outcome, Take, Worker
from eatss.measurement.api import what_ended
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
from eatss.tune.generation import measured_row
from eatss.tune.jobs import BuiltVariant, MakerJob, Policy, VariantJob
from eatss.tune.rows import CardSeen, Row
from eatss.verify.sizes import complete_sizes

ONLY_THE_REFERENCE = "only the reference of the sweep was compared with the original"

ATTEMPTS = 2
"""So many processes in a row that get nowhere, and the card is taken to be gone."""


class CardProcess(LiveWorker):
    """Holds a card. A program that crashes or hangs costs itself alone."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.worker())
        self._options = bench.options
        self._seen = Records(options=bench.options, variants=[])
        self._referred = False

    def open(self) -> DeviceInfo:
        """Open the card and return which one it is.

        Raises:
            InputError: it cannot be used from here, or does not answer.
        """
        why = ""

        def take(event: Event) -> float | None:
            nonlocal why
            if isinstance(event, EatssError):
                raise event
            if isinstance(event, CardLost):
                why = event.reason
            return self._seen.take(event)

        for _ in range(0 if self.runs else ATTEMPTS):
            self._referred = False
            outcome = self.start(take)
            if outcome is None and self._seen.opened is None:
                job = Job(options=self._options, tasks=())
                outcome = self.ask(job, take, limit_s=START.limit_s)
            if outcome is None:
                break
            why = why or " | ".join((f"the measuring process {outcome.how}", *outcome.said))
        if not self.runs or self._seen.opened is None:
            raise input_error(
                "EATSS-W033",
                f"the card does not answer: {why}",
                hint="nvidia-smi says more; what was measured is kept",
            )
        return self._seen.opened.device

    def seen(self) -> CardSeen:
        """Return the card as stores know it."""
        device = self.open()
        return CardSeen(
            uuid=device.uuid or f"{socket.gethostname()}:{self._options.device}",
            name=device.name,
            host=socket.gethostname(),
            compute_capability=device.compute_capability,
            driver=device.driver,
            power_limit_w=device.power_limit_w,
            idle_power_w=self._seen.idle.power_w,
        )

    def measure(self, work: MeasureJob, built: BuiltVariant) -> VariantResult:
        """Measure a program that was made; its failure is a status.

        Raises:
            InputError: the card cannot be used from here, or does not answer.
        """
        assert built.folder is not None
        card, policy, folder = self.seen(), work.policy, Path(built.folder)
        label = work.wanted.role or work.wanted.variant
        begin_s = time.monotonic()
        program = load_program(folder)
        record = Record(
            variant=Variant(label=label, directory=folder),
            program=program,
            sizes=complete_sizes(program, {}),
            result=Result(task=0),
        )
        records = replace(
            self._seen, options=policy.options(self._options), variants=[record], stage=START
        )
        outcome = self._refer(work.reference, built, records)
        if outcome is None:
            unchecked = "" if policy.checks else ONLY_THE_REFERENCE
            task = Task(index=0, label=label, directory=built.folder, unchecked=unchecked)
            outcome = self._run(task, records, partial(_taken, records))
        if outcome is not None:
            record.fail(*what_ended(records.stage, outcome))
        record.fail("launch error", "the measuring process ended it without a word")
        measurement = assemble(records, record)
        if policy.counters:
            measurement = _counted(measurement, records)
        row = replace(
            measured_row(built.row, measurement),
            stage=policy.stage,
            card=card.uuid,
            card_s=time.monotonic() - begin_s,
            card_j=_joules(record, policy.settle_s),
        )
        return VariantResult(row=row, folder=built.folder, card=card)

    def _run(self, task: Task, records: Records, take: Take) -> Outcome | None:
        job = Job(options=records.options, tasks=(task,), looks_around=False)
        return self.ask(job, take, limit_s=START.limit_s)

    def _refer(
        self, reference: str | None, built: BuiltVariant, records: Records
    ) -> Outcome | None:
        """Let a fresh process run the reference, so that its results are there.

        What it takes is not told; return how the process ended, if it did.
        """
        if reference is None or self._referred:
            return None
        self._referred = True
        if reference == built.folder:
            return None
        options = replace(
            self._options,
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
            directory=reference,
            unchecked=ONLY_THE_REFERENCE,
        )

        def take(event: Event) -> float | None:
            return None if isinstance(event, Result) else _taken(records, event)

        return self._run(task, replace(records, options=options), take)


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

    def make(self, wanted: VariantJob) -> BuiltVariant:
        """Return a variant, or why there is none.

        Raises:
            InputError: nothing can be made here.
        """

        def refuse(event: EatssError) -> None:
            raise event

        outcome = None if self.runs else self.start(refuse)
        if outcome is not None:
            raise input_error(
                "EATSS-W033",
                f"the process that generates variants {outcome.how} when it started: "
                + " | ".join(outcome.said),
                hint="it may lack memory: try with fewer --makers",
            )
        found: list[BuiltVariant] = []
        outcome = self.ask(wanted, found.append, limit_s=MAKE_LIMIT_S)
        if found:
            return found[0]
        assert outcome is not None, "it tells of each variant"
        late = f"did not end within {MAKE_LIMIT_S:g} s"
        why = " | ".join((outcome.how if outcome.in_time else late, *outcome.said))
        reason = f"the process that generates it {why}"
        return BuiltVariant(row=wanted.row("rejected by the model", reason))


AHEAD = 2
"""Variants on the way for each process that makes them, beside those on cards."""


@frozen
class MeasureJob:
    """A variant and how carefully it is measured.

    ``reference`` is the folder of a program whose results others are compared with.
    """

    wanted: VariantJob
    policy: Policy
    reference: str | None = None


@frozen
class VariantResult:
    """What became of a variant; ``card`` is ``None`` where it never came to one."""

    row: Row
    folder: str | None = None
    card: CardSeen | None = None


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
        self._done: queue.SimpleQueue[VariantResult | BaseException] = queue.SimpleQueue()
        self._free: queue.SimpleQueue[MakerProcess] = queue.SimpleQueue()
        self._making = [MakerProcess(maker) for _ in range(count)]
        self._card = CardProcess(bench)
        self._makers, self._measurer = ThreadPoolExecutor(count), ThreadPoolExecutor(1)
        for one in self._making:
            self._free.put(one)

    @property
    def room(self) -> int:
        """How many variants more may be on the way now."""
        return self._limit - self._on_the_way

    def submit(self, work: MeasureJob) -> None:
        """Take a variant on; does not wait."""
        self._on_the_way += 1
        self._makers.submit(self._make, work)

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
        for pool in (self._makers, self._measurer):
            pool.shutdown(wait=False, cancel_futures=True)
        for one in (*self._making, self._card):
            one.stop()
        for pool in (self._makers, self._measurer):
            pool.shutdown()
        for one in (*self._making, self._card):
            one.end()

    def _make(self, work: MeasureJob) -> None:
        process = self._free.get()
        try:
            built = process.make(work.wanted)
            if built.folder is None:
                self._done.put(VariantResult(row=built.row))
            else:
                self._measurer.submit(self._measure, work, built)
        except BaseException as error:
            self._done.put(error)
        finally:
            self._free.put(process)

    def _measure(self, work: MeasureJob, built: BuiltVariant) -> None:
        try:
            self._done.put(self._card.measure(work, built))
        except BaseException as error:
            self._done.put(error)
