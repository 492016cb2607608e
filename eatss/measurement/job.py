"""What the supervisor gives a worker to do, the events it tells of, and ``Progress``.

What is known of each variant while a measurement goes on: events in, state out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.base.frozen import frozen
from eatss.base.supervisor import Refused
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

Ending: TypeAlias = Literal["interval", "budget"]
"""A part of :data:`eatss.measurement.measurement.HowEnded`."""


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
class Job:
    """Variants measured by turns. ``card`` is the import path of what makes the card,
    ``package.module:name``. ``elapsed_s`` is how long ago the measurement began, in an earlier
    worker. ``looks_around`` says whether idle power and other processes on the card are looked for.
    """  # noqa: D205

    card: str
    options: MeasureOptions
    tasks: tuple[Task, ...]
    elapsed_s: float = 0.0
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
class Loaded:
    """A variant is on the card; ``resources`` is what its kernels take of it."""

    task: int
    resources: tuple[KernelResources, ...]


@frozen
class Prepared:
    """A variant is loaded and right; ``None`` is what is not known of one that is not.

    ``checked`` says in words what it was compared with, ``unchecked`` why it was not with the
    original, ``data`` what kind of random numbers its arguments hold.
    """

    task: int
    compiler: CompilerName | None = None
    launched_by: LaunchedBy | None = None
    restoring: Restoring = "none"
    checked: tuple[str, ...] = ()
    unchecked: str = ""
    data: str | None = None


@frozen
class WarmedUp:
    """A variant's load ran for ``warm_up_s`` seconds before its first window."""

    task: int
    warm_up_s: float


@frozen
class RestoringMeasured:
    """What restoring the inputs once takes, one value a window of nothing but restoring."""

    task: int
    energies_j: tuple[float, ...]


@frozen
class WindowTaken:
    """A window is done; ``spent_s`` is the variant's time since the last such event."""

    task: int
    window: Window
    no_energy: str
    spent_s: float


@frozen
class IdleRead:
    """Power of the idle card, or the reason why it is not known.

    Before anything ran, unless ``warm``: after all windows.
    """

    power_w: float | None
    reason: str
    warm: bool


@frozen
class Remarked:
    """A sentence that a reader of the result has to know; ``task`` is ``None`` if it is for all."""

    task: int | None
    note: str


@frozen
class Ended:
    """A variant needs no more windows."""

    task: int
    ended: Ending


@frozen
class Failed:
    """A variant failed."""

    task: int
    status: Status
    reason: str


@frozen
class CardLost:
    """The card is of no use any more to this worker, which ends."""

    reason: str


@frozen
class Broken:
    """eatss itself failed in the worker, which ends; ``error`` names the exception."""

    error: str


@frozen
class Done:
    """All variants ended or failed."""


Event: TypeAlias = (
    CardOpened
    | Entered
    | Loaded
    | Prepared
    | WarmedUp
    | RestoringMeasured
    | WindowTaken
    | IdleRead
    | Remarked
    | Ended
    | Failed
    | Refused
    | CardLost
    | Broken
    | Done
)

Emit: TypeAlias = Callable[[Event], None]


NOT_PREPARED = Prepared(task=-1)
"""Of a variant that was not, or not yet."""

FOR_AN_INTERVAL = 2
"""Windows."""

START = Entered(task=None, stage="start", limit_s=180.0)
"""Until the first stage: importing libraries and opening the card."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What is known of one variant. ``status`` is ``None`` unless it failed."""

    variant: Variant
    program: Program | None
    sizes: Sizes
    resources: tuple[KernelResources, ...] | None = None
    prepared: Prepared = NOT_PREPARED
    warm_up_s: float | None = None
    restoring_j: list[float] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    no_energy: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent_s: float = 0.0
    ended: HowEnded | None = None
    status: Status | None = None
    reason: str = ""

    def take(self, event: Event) -> None:
        """Note an event of this variant."""
        match event:
            case Loaded():
                self.resources = event.resources
            case Prepared():
                self.prepared = event
                for seen in (self.windows, self.no_energy, self.restoring_j):
                    seen.clear()  # of a worker that died
                self.spent_s = 0.0
            case WarmedUp():
                self.warm_up_s = event.warm_up_s
            case RestoringMeasured():
                self.restoring_j.extend(event.energies_j)
            case WindowTaken():
                self.windows.append(event.window)
                self.no_energy.append(event.no_energy)
                self.spent_s += event.spent_s
            case Remarked():
                self.note(event.note)
            case Ended():
                self.ended = event.ended
            case Failed():
                self.fail(event.status, event.reason)

    def note(self, note: str) -> None:
        """Note a sentence that a reader has to know, once."""
        if note not in self.notes:
            self.notes.append(note)

    def fail(self, status: Status, reason: str) -> None:
        """Note a failure; nothing more is done for the variant."""
        self.status, self.reason, self.ended = status, reason, "failed"

    def task(self, index: int) -> Task:
        """Return what is left to do of the variant."""
        return Task(
            index=index,
            label=self.variant.label,
            directory=str(Path(self.variant.directory or "").absolute()),
        )


@dataclass(slots=True, kw_only=True)
class Records:
    """What is known of all variants and of the card."""

    options: MeasureOptions
    variants: list[Record]
    device: DeviceInfo | None = None
    meter: str | None = None
    no_meter: str = ""
    missing_meters: tuple[Missing, ...] = ()
    idle_w: float | None = None
    no_idle: str = "the card was not seen idle"
    warm_idle_w: float | None = None
    no_warm_idle: str = "the card was not seen idle after the windows"
    stage: Entered | None = None

    def take(self, event: Event) -> None:
        """Note an event."""
        match event:
            case CardOpened():
                self.device, self.meter, self.no_meter = event.device, event.meter, event.no_meter
                self.missing_meters = event.missing_meters
            case Entered():
                self.stage = event
            case IdleRead(warm=True):
                self.warm_idle_w, self.no_warm_idle = event.power_w, event.reason
            case IdleRead():
                self.idle_w, self.no_idle = event.power_w, event.reason
            case Remarked(task=None):
                for record in self.variants:
                    record.note(event.note)
            case (
                Loaded() | Prepared() | WarmedUp() | RestoringMeasured() | WindowTaken()
                | Remarked() | Ended() | Failed()
            ):  # fmt: skip
                self.variants[event.task or 0].take(event)

    @property
    def running(self) -> Record | None:
        """The variant that runs now, ``None`` if what runs is for all."""
        if self.stage is None or self.stage.task is None:
            return None
        return self.variants[self.stage.task]

    def fail_running(self, status: Status, reason: str) -> None:
        """Note a failure of the variant that runs now, if one does."""
        if self.running is not None and self.running.ended is None:
            self.running.fail(status, reason)

    @property
    def windows(self) -> int:
        """Windows taken so far, of all variants."""
        return sum(len(record.windows) for record in self.variants)

    def left(self) -> tuple[Task, ...]:
        """Return what is left to do."""
        return tuple(
            record.task(index) for index, record in enumerate(self.variants) if record.ended is None
        )

    def give_up(self, reason: str) -> None:
        """End all variants that have not ended; what is measured well enough stays.

        Args:
            reason: a sentence.
        """
        least = min(FOR_AN_INTERVAL, self.options.least_windows)
        for record in self.variants:
            if record.ended is not None:
                continue
            if len(record.windows) < least:
                record.fail("launch error", reason)
            else:
                record.ended = "cut short"
                record.note(f"cut short after {len(record.windows)} windows: {reason}")

    def progress(self) -> Progress:
        """Return what runs now and what is left."""
        active = [record for record in self.variants if record.ended is None]
        running, stage = self.running, self.stage or START
        return Progress(
            variant="" if running is None else running.variant.label,
            stage=stage.stage,
            window=stage.window,
            variants_done=len(self.variants) - len(active),
            variants=len(self.variants),
            windows_done=self.windows,
            left_s=sum(max(0.0, self.options.budget_s - record.spent_s) for record in active),
        )
