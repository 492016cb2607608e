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

FOR_AN_INTERVAL = 2
"""Windows."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What is known of one variant. ``status`` is ``None`` unless it failed."""

    variant: Variant
    program: Program | None
    sizes: Sizes
    resources: tuple[KernelResources, ...] | None = None
    prepared: Prepared | None = None
    warm_up_s: float | None = None
    restoring_j: list[float] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    no_energy: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent_s: float = 0.0
    ended: HowEnded | None = None
    status: Status | None = None
    reason: str = ""

    def fail(self, status: Status, reason: str) -> None:
        """Note a failure; nothing more is done for the variant."""
        self.status, self.reason, self.ended = status, reason, "failed"

    def task(self, index: int) -> Task:
        """Return what is left to do of the variant."""
        return Task(
            index=index,
            label=self.variant.label,
            directory=str(Path(self.variant.directory or "").absolute()),
            checked=() if self.prepared is None else self.prepared.checked,
            unchecked="" if self.prepared is None else self.prepared.unchecked,
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
        if isinstance(event, CardOpened):
            self.device, self.meter, self.no_meter = event.device, event.meter, event.no_meter
            self.missing_meters = event.missing_meters
        elif isinstance(event, Entered):
            self.stage = event
        elif isinstance(event, IdleRead):
            self._take_idle(event)
        elif isinstance(event, Remarked) and event.task is None:
            for record in self.variants:
                _note_once(record, event.note)
        else:
            self._take_variants(event)

    def _take_idle(self, event: IdleRead) -> None:
        if event.warm:
            self.warm_idle_w, self.no_warm_idle = event.power_w, event.reason
        else:
            self.idle_asked = True
            self.idle_w, self.no_idle = event.power_w, event.reason

    def _take_variants(self, event: Event) -> None:
        if isinstance(event, Loaded):
            self.variants[event.task].resources = event.resources
        elif isinstance(event, Prepared):
            self.variants[event.task].prepared = event
        elif isinstance(event, WarmedUp):
            record = self.variants[event.task]
            record.warm_up_s = (record.warm_up_s or 0.0) + event.warm_up_s
        elif isinstance(event, RestoringMeasured):
            self.variants[event.task].restoring_j.extend(event.energies_j)
        elif isinstance(event, WindowTaken):
            record = self.variants[event.task]
            record.windows.append(event.window)
            record.no_energy.append(event.no_energy)
            record.spent_s += event.spent_s
        elif isinstance(event, Remarked) and event.task is not None:
            _note_once(self.variants[event.task], event.note)
        elif isinstance(event, Ended):
            self.variants[event.task].ended = event.ended
        elif isinstance(event, Failed):
            self.variants[event.task].fail(event.status, event.reason)

    @property
    def running(self) -> Record | None:
        """The variant that runs now, ``None`` if what runs is for all."""
        if self.stage is None or self.stage.task is None:
            return None
        return self.variants[self.stage.task]

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
                continue
            record.ended = "cut short"
            _note_once(record, f"cut short after {len(record.windows)} windows: {reason}")

    def progress(self) -> Progress:
        """Return what runs now and what is left."""
        active = [record for record in self.variants if record.ended is None]
        running = self.running
        return Progress(
            variant="" if running is None else running.variant.label,
            stage="start" if self.stage is None else self.stage.stage,
            window=0 if self.stage is None else self.stage.window,
            variants_done=len(self.variants) - len(active),
            variants=len(self.variants),
            windows_done=self.windows,
            left_s=sum(max(0.0, self.options.budget_s - record.spent_s) for record in active),
        )


def _note_once(record: Record, note: str) -> None:
    if note not in record.notes:
        record.notes.append(note)
