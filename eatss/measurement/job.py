"""What the supervisor gives a worker to do, the events it tells of, and ``Progress``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from eatss.base.extensions import Origin
from eatss.base.frozen import frozen
from eatss.base.supervisor import Refused
from eatss.measurement.measurement import (
    CompilerName,
    DeviceInfo,
    KernelResources,
    LaunchedBy,
    Missing,
    Restoring,
    Status,
    Window,
)
from eatss.measurement.options import MeasureOptions

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

    ``index`` counts the variants of the measurement. What an earlier worker already did:
    ``checked`` against the original (or ``unchecked``, why not), windows (their times and energies
    of one run), ``spent_s``.
    """

    index: int
    label: str
    directory: str
    checked: tuple[str, ...] = ()
    unchecked: str = ""
    times_s: tuple[float, ...] = ()
    energies_j: tuple[float | None, ...] = ()
    spent_s: float = 0.0


@frozen
class Job:
    """Variants measured by turns. ``card`` is the import path of what makes the card,
    ``package.module:name``. Of earlier workers: ``elapsed_s`` is how long ago the measurement
    began, ``meter`` what their windows rest on, ``idle_known`` whether the cold card was read.
    ``meter_origin`` is where the worker finds a meter that was registered. ``looks_around`` says
    whether idle power and other processes on the card are looked for.
    """  # noqa: D205

    card: str
    options: MeasureOptions
    tasks: tuple[Task, ...]
    elapsed_s: float = 0.0
    meter: str | None = None
    idle_known: bool = False
    meter_origin: Origin | None = None
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

EVENTS: tuple[type[Any], ...] = Event.__args__
