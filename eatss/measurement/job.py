"""A ``Job`` for a worker, the events it tells of, each variant's ``Result``, and ``Progress``.

The worker holds a result a variant and tells it anew whenever something is added; what is known of
all variants while a measurement goes on is in ``Records``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.base.supervisor import Worker
from eatss.base.text import Texts
from eatss.measurement.measurement import (
    CompilerName,
    DeviceInfo,
    HowEnded,
    KernelResources,
    LaunchedBy,
    Missing,
    Restoring,
    Status,
    Window,
)
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import Program
from eatss.program.expression import Sizes

StageName: TypeAlias = Literal[
    "start",
    "compile",
    "check",
    "first run",
    "compare",
    "try repeating",
    "idle power",
    "warm-up",
    "restoring",
    "window",
]


@frozen
class Progress:
    """What runs now, and how much is done.

    ``variant`` is a label, "" where what runs is for all. ``window`` counts the windows of that
    variant from 1, 0 where no window runs. ``left_s`` estimates the seconds of measuring that are
    left at most: the budgets of variants that have not ended.
    """

    variant: str
    stage: StageName
    window: int
    variants_done: int
    variants: int
    windows_done: int
    left_s: float


OnProgress: TypeAlias = Callable[[Progress], None] | None


@frozen
class Task:
    """A variant to measure.

    ``index`` counts the variants. ``unchecked`` says why it is not to be compared
    with the original, "" if it is.
    """

    index: int
    label: str
    directory: str
    unchecked: str = ""


@frozen
class Bench:
    """A card to hold, by the import path of what makes it, ``package.module:name``.

    ``options`` say how it measures where nothing else is said.
    """

    card: str
    options: MeasureOptions = MeasureOptions()

    def worker(self) -> Worker:
        """Return the process that holds it, and takes a :class:`Job` after the other."""
        return Worker(
            module="eatss.measurement.worker",
            job=self,
            start_limit_s=START.limit_s,
        )


@frozen
class Job:
    """Variants measured by turns, on a card that is held.

    ``looks_around`` says whether idle power and other processes on the card are looked for: without
    variants, idle power.
    """

    options: MeasureOptions
    tasks: tuple[Task, ...]
    looks_around: bool = True


@frozen
class CardOpened:
    """The card works; ``meter`` is what results rest on, or ``no_meter`` says why there is none.

    ``missing_meters`` says why other meters were not taken.
    """

    device: DeviceInfo
    meter: str | None
    no_meter: str
    missing_meters: tuple[Missing, ...] = ()


@frozen
class Entered:
    """A stage begins, which takes ``limit_s`` at most; ``task`` is ``None`` if it is for all."""

    task: int | None
    stage: StageName
    limit_s: float
    window: int = 0


@frozen
class Result:
    """What is known of a variant; ``None`` is what is not, or not yet.

    ``checked`` says in words what it was compared with, ``unchecked`` why it was not with the
    original, ``data`` what kind of random numbers its arguments hold. Its load ran for
    ``warm_up_s`` before the first window. ``restoring_j`` is what restoring the inputs once takes,
    one value a window of nothing but restoring. ``no_energy`` says why a window has no energy.
    ``spent_s`` is the time that windows took. ``status`` is ``None`` unless it failed.
    """

    task: int
    resources: tuple[KernelResources, ...] | None = None
    compiler: CompilerName | None = None
    launched_by: LaunchedBy | None = None
    restoring: Restoring = "none"
    checked: Texts = ()
    unchecked: str = ""
    data: str | None = None
    warm_up_s: float | None = None
    restoring_j: tuple[float, ...] = ()
    windows: tuple[Window, ...] = ()
    no_energy: str = ""
    notes: Texts = ()
    spent_s: float = 0.0
    ended: HowEnded | None = None
    status: Status | None = None
    reason: str = ""

    def noted(self, note: str) -> Result:
        """Return it with a sentence that a reader has to know, once."""
        return self if note in self.notes else replace(self, notes=(*self.notes, note))

    def failed(self, status: Status, reason: str) -> Result:
        """Return it failed; nothing more is done for the variant."""
        return replace(self, status=status, reason=reason, ended="failed")


@frozen
class IdleRead:
    """Power of the idle card before anything ran, or the reason why it is not known."""

    power_w: float | None
    reason: str


@frozen
class CardLost:
    """The card is of no use any more to this worker, which ends."""

    reason: str


Event: TypeAlias = CardOpened | Entered | Result | IdleRead | EatssError | CardLost

Emit: TypeAlias = Callable[[Event], None]

FOR_AN_INTERVAL = 2
"""Windows."""

START = Entered(task=None, stage="start", limit_s=180.0)
"""Until the first stage: importing libraries, opening the card, reading programs."""


@dataclass(slots=True, kw_only=True)
class Record:
    """A variant, and what is known of it."""

    variant: Variant
    program: Program | None
    sizes: Sizes
    result: Result

    def fail(self, status: Status, reason: str) -> None:
        """Note a failure, unless it has ended."""
        if self.result.ended is None:
            self.result = self.result.failed(status, reason)


@dataclass(slots=True, kw_only=True)
class Records:
    """What is known of all variants and of the card; ``last`` is what was told last."""

    options: MeasureOptions
    variants: list[Record]
    on_progress: OnProgress = None
    last: Event | None = None
    opened: CardOpened | None = None
    idle: IdleRead = field(default=IdleRead(power_w=None, reason="the card was not seen idle"))
    stage: Entered = START

    def take(self, event: Event) -> float | None:
        """Note an event; return the seconds that the stage may take which it begins."""
        self.last = event
        match event:
            case CardOpened():
                self.opened = event
            case Entered():
                self.stage = event
            case IdleRead():  # of the first worker: the card is cold
                self.idle = event if self.idle.power_w is None else self.idle
            case Result():
                self.variants[event.task].result = event
        if self.on_progress is not None:
            self.on_progress(self.progress())
        return event.limit_s if isinstance(event, Entered) else None

    def fail_running(self, status: Status, reason: str) -> None:
        """Note a failure of the variant that runs now, if one does."""
        if self.stage.task is not None:
            self.variants[self.stage.task].fail(status, reason)

    @property
    def windows(self) -> int:
        """Windows taken so far, of all variants."""
        return sum(len(record.result.windows) for record in self.variants)

    def left(self) -> tuple[Task, ...]:
        """Return what is left to do."""
        return tuple(
            Task(
                index=index,
                label=record.variant.label,
                directory=str(Path(record.variant.directory or "").absolute()),
            )
            for index, record in enumerate(self.variants)
            if record.result.ended is None
        )

    def give_up(self, reason: str) -> None:
        """End all variants that have not ended; what is measured well enough stays.

        Args:
            reason: a sentence.
        """
        least = min(FOR_AN_INTERVAL, self.options.least_windows)
        for record in self.variants:
            count = len(record.result.windows)
            if count < least:
                record.fail("launch error", reason)
            elif record.result.ended is None:
                said = f"cut short after {count} windows: {reason}"
                record.result = replace(record.result.noted(said), ended="cut short")

    def progress(self) -> Progress:
        """Return what runs now and what is left."""
        active = [one.result for one in self.variants if one.result.ended is None]
        running = self.stage.task
        return Progress(
            variant="" if running is None else self.variants[running].variant.label,
            stage=self.stage.stage,
            window=self.stage.window,
            variants_done=len(self.variants) - len(active),
            variants=len(self.variants),
            windows_done=self.windows,
            left_s=sum(max(0.0, self.options.budget_s - one.spent_s) for one in active),
        )
