"""What is known of each variant while a measurement goes on: events in, state out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from eatss.measurement.job import (
    CardOpened,
    Ended,
    Entered,
    Event,
    Failed,
    IdleRead,
    Loaded,
    Prepared,
    Progress,
    Remarked,
    RestoringMeasured,
    Task,
    WarmedUp,
    WindowTaken,
)
from eatss.measurement.measurement import (
    DeviceInfo,
    HowEnded,
    KernelResources,
    Missing,
    Status,
    Window,
)
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import Program
from eatss.program.expression import Sizes

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
            case WarmedUp():
                self.warm_up_s = (self.warm_up_s or 0.0) + event.warm_up_s
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
            checked=self.prepared.checked,
            unchecked=self.prepared.unchecked,
            times_s=tuple(window.time_s for window in self.windows),
            energies_j=tuple(window.energy_j for window in self.windows),
            spent_s=self.spent_s,
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
    idle_asked: bool = False
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
                self.idle_asked = True
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
