"""``Measurement``: what a run of a generated program took, how sure that is, or why it failed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from eatss.measurement.estimate import Estimate
from eatss.shown import Tabular, figure

SCHEMA_VERSION = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""

Status: TypeAlias = Literal[
    "ok",
    "rejected by the model",
    "compile error",
    "launch error",
    "wrong result",
    "timeout",
    "unstable",
]

Objective: TypeAlias = Literal["time", "energy"]

HowEnded: TypeAlias = Literal["interval", "budget", "interrupted", "failed", "cut short"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """The card and the software that ran on it. ``None`` is what could not be read.

    ``power_scope`` says what NVML's power is of, where it says so: the ``GPU``, or the ``module``
    that it shares with a CPU.
    """

    name: str
    uuid: str | None
    compute_capability: int | None
    driver: str | None
    toolkit: str | None
    power_limit_w: float | None = None
    power_scope: Literal["", "GPU", "module"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardState:
    """Clocks in MHz, temperature in degrees Celsius and why the clocks are held back.

    ``None`` is what could not be read; ``throttle`` is empty where nothing holds the clocks back.
    """

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """What :class:`CardState` was while a load ran, from ``samples`` looks at it.

    Clocks in MHz: of the SMs the lowest, the mean and the highest, of memory the lowest; the
    highest temperature in degrees Celsius; everything that held the clocks back at some time.
    ``None`` is what no look could read.
    """

    samples: int = 0
    sm_clock_lowest_mhz: int | None = None
    sm_clock_mean_mhz: float | None = None
    sm_clock_highest_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one meter says of one window.

    ``energy_j`` is the energy of ``span_s`` seconds of steady load inside the window, cut at the
    meter's own updates; ``power_w`` is their ratio. ``updates`` counts the values the sensor
    gave in that span.
    """

    meter: str
    energy_j: float
    span_s: float
    power_w: float
    updates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One uninterrupted stretch of repeated runs.

    ``time_s`` is the time of one run by the card's own clock, ``readings`` the meters' values,
    the one that ``energy_j`` (of one run, gross) rests on first. ``begin_s`` counts from the start
    of the measurement and orders the windows of all variants. ``before`` and ``after`` are of the
    card at rest on either side, ``during`` of the card under the load.
    """

    begin_s: float
    duration_s: float
    runs: int
    time_s: float
    energy_j: float | None
    power_w: float | None
    readings: tuple[Reading, ...]
    before: CardState
    after: CardState
    during: LoadState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How it was measured.

    ``launched_by`` says who launches the kernels of a run: a CUDA ``graph``, Python launch by
    launch on a ``stream``, or the program's own compiled ``host code`` where they are very many.

    ``restoring`` says how overwritten inputs were put back (``Measurement.notes`` say where drift
    was not tried): ``none`` (nothing is overwritten that
    is read, or repeating does not drift), ``between windows``, or ``inside windows`` (repeating
    drifts within a window; what restoring takes was measured apart and subtracted).
    ``checked`` says in words what results were compared with, ``data`` what kind of random numbers
    the arguments hold, as :data:`eatss.verify.data.FLAVOURS` names them (``None`` if it was not
    told). ``ended`` says why no more windows were taken: ``interval`` (narrow enough), ``budget``,
    ``interrupted``, ``failed``, or ``cut short`` (the card vanished, but what was measured until
    then stays).
    """

    meter: str | None
    compiler: Literal["nvrtc", "nvcc"] | None
    launched_by: Literal["graph", "stream", "host code"] | None
    restoring: Literal["none", "between windows", "inside windows"]
    confidence: float
    target: float
    least_window_s: float
    least_updates: int
    warm_up_s: float | None
    seed: int
    checked: tuple[str, ...]
    ended: HowEnded
    data: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCount:
    """Floating-point operations of one kind: ``add`` (and subtract), ``multiply``, ``divide``,
    ``square root`` or ``function``.
    """  # noqa: D205

    kind: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A hardware counter summed over the kernels of one run, with its unit as the tool names it."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounters:
    """Hardware counters of one kernel, summed over its ``launches`` in one run."""

    kernel: str
    launches: int
    counters: tuple[Counter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What a kernel takes of the card, as the driver says.

    ``registers`` of a thread, ``local_bytes`` of a thread (spilled registers and arrays with
    computed indices), ``shared_bytes`` and ``threads`` of a block. ``occupancy`` is the share of an
    SM's threads that blocks of it can keep busy, ``None`` where the driver does not say.
    """

    kernel: str
    registers: int
    local_bytes: int
    shared_bytes: int
    threads: int
    occupancy: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A field of the measurement that has no value, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a measurement comes from, so that it can be repeated.

    Hashes are SHA-256 in hexadecimal: of the original C file, of the generated text, and of
    everything chosen in measuring and compiling. ``revision`` is the git revision of eatss.
    """

    eatss_version: str
    revision: str | None
    source_hash: str | None
    text_hash: str | None
    option_hash: str
    created: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Tabular):
    """What one variant of a program took on one card.

    Energy is gross (all the card drew) unless a name says ``net``. A value that was not measured
    is ``None`` and stands in ``missing`` with the reason.

    Attributes:
        program: Name of the program.
        variant: Label of the variant, ``"selected"``.
        status: How it ended, ``"ok"`` for right and measured.
        reason: Why it is not ``ok``, a sentence.
        sizes: Pairs of a parameter of the program and its value.
        tile_sizes: Pairs of a kernel and its pairs of a loop and a tile size.
        dtype: ``"float"`` or ``"double"``; empty if nothing was generated.
        time_s: Seconds of one run, the mean over windows.
        energy_j: Joules of one run, gross, the mean over windows.
        net_energy_j: Joules less what the idle card draws in the same time.
        power_w: Watts: energy over time.
        idle_power_w: Watts of the idle card before anything ran, or after all where that failed.
        time_estimate: Mean and interval of ``time_s``.
        energy_estimate: Mean and interval of ``energy_j``.
        operations: Floating-point operations of one run by kind, counted from the loops.
        flops: All of them [EATSS, Sec. V-B].
        least_bytes: Every element read once and every one written once.
        gflops: 10^9 operations a second.
        gflops_per_joule: 10^9 operations a joule: PPW.
        method: How it was measured.
        windows: The stretches of repeated runs that the means rest on.
        device: The card.
        provenance: Where the numbers come from: versions, hashes, host, time.
        counters: Hardware counters of each kernel, if asked for.
        resources: Registers, shared memory and occupancy of each kernel.
        idle_power_after_w: Watts of the idle, warm card after everything.
        missing: What has no value, and why.
        notes: Sentences that a reader has to know.
        schema_version: Of the JSON form.
    """

    shown_by = "eatss.report.measurement:measurement_parts"
    rows_by = "eatss.measurement.rows:measurement_rows"

    program: str
    variant: str
    status: Status
    reason: str
    sizes: tuple[tuple[str, int], ...]
    tile_sizes: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    dtype: str
    time_s: float | None
    energy_j: float | None
    net_energy_j: float | None
    power_w: float | None
    idle_power_w: float | None
    time_estimate: Estimate | None
    energy_estimate: Estimate | None
    operations: tuple[OperationCount, ...] | None
    flops: int | None
    least_bytes: int | None
    gflops: float | None
    gflops_per_joule: float | None
    method: Method
    windows: tuple[Window, ...]
    device: DeviceInfo | None
    provenance: Provenance
    counters: tuple[KernelCounters, ...] | None = None
    resources: tuple[KernelResources, ...] | None = None
    idle_power_after_w: float | None = None
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    schema_version: int = field(default=SCHEMA_VERSION)

    def __repr__(self) -> str:
        name = " ".join(dict.fromkeys(filter(None, (self.program, self.variant))))
        if self.time_s is None and self.energy_j is None:
            return f"<Measurement {name}: {self.status}{self.reason and ', '}{self.reason}>"
        card = "" if self.device is None else f", on {self.device.name}"
        return (
            f"<Measurement {name}: {self.status}, {figure(self.time_s, 'ms', 1e3)}"
            f"{_spread(self.time_estimate)}, {figure(self.energy_j, 'J')}"
            f"{_spread(self.energy_estimate)}, {figure(self.power_w, 'W')}{card}>"
        )

    @property
    def ok(self) -> bool:
        """Whether the program was measured and right."""
        return self.status == "ok"

    def cost(self, objective: Objective) -> float:
        """Return seconds or joules of a run; infinite for a failure or what was not measured."""
        value = self.time_s if objective == "time" else self.energy_j
        usable = self.status in ("ok", "unstable")
        return value if usable and value is not None else math.inf


def _spread(estimate: Estimate | None) -> str:
    """Return half the interval as a percentage, ``" ±0.12%"``; "" where there is none."""
    relative = None if estimate is None else estimate.relative
    return "" if relative is None else f" ±{100 * relative:.2g}%"
