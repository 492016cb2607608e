"""What the supervisor gives a worker to do, and the events the worker tells of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from eatss.extensions import Origin
from eatss.measurement.measurement import (
    DeviceInfo,
    KernelResources,
    Missing,
    Status,
    Window,
)
from eatss.measurement.options import MeasureOptions
from eatss.measurement.progress import StageName
from eatss.supervisor import Refused

Ending: TypeAlias = Literal["interval", "budget"]
"""A part of :data:`eatss.measurement.measurement.HowEnded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOpened:
    """The card works; ``meter`` is what results rest on, or ``no_meter`` says why there is none.

    ``missing_meters`` says why other meters were not taken.
    """

    device: DeviceInfo
    meter: str | None
    no_meter: str
    missing_meters: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A stage begins, which takes ``limit_s`` at most; ``task`` is ``None`` if it is for all."""

    task: int | None
    stage: StageName
    limit_s: float
    window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A variant is on the card; ``resources`` is what its kernels take of it."""

    task: int
    resources: tuple[KernelResources, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A variant is loaded and right.

    ``checked`` says in words what it was compared with, ``unchecked`` why it was not with the
    original, ``data`` what kind of random numbers its arguments hold.
    """

    task: int
    compiler: Literal["nvrtc", "nvcc"]
    launched_by: Literal["graph", "stream", "host code"]
    restoring: Literal["none", "between windows", "inside windows"]
    checked: tuple[str, ...]
    unchecked: str = ""
    data: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmedUp:
    """A variant's load ran for ``warm_up_s`` seconds before its first window."""

    task: int
    warm_up_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoringMeasured:
    """What restoring the inputs once takes, one value a window of nothing but restoring."""

    task: int
    energies_j: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTaken:
    """A window is done; ``spent_s`` is the variant's time since the last such event."""

    task: int
    window: Window
    no_energy: str
    spent_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRead:
    """Power of the idle card, or the reason why it is not known.

    Before anything ran, unless ``warm``: after all windows.
    """

    power_w: float | None
    reason: str
    warm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarked:
    """A sentence that a reader of the result has to know; ``task`` is ``None`` if it is for all."""

    task: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A variant needs no more windows."""

    task: int
    ended: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A variant failed."""

    task: int
    status: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLost:
    """The card is of no use any more to this worker, which ends."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """eatss itself failed in the worker, which ends; ``error`` names the exception."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
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
