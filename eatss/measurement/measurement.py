"""The nouns of measuring: ``Measurement``, ``Comparison``, their parts, as JSON and rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import reduce
from typing import Any, Literal, TypeAlias

from eatss.base.codec import Document
from eatss.base.frozen import frozen
from eatss.base.shown import Shown, Tabular, figure, in_lines
from eatss.base.text import Texts, equations
from eatss.program.expression import SizePairs


@frozen
class Estimate:
    """A mean and its confidence interval, both in the unit of what was measured.

    ``count`` is the number of windows behind it. With one window there is no interval:
    ``low`` and ``high`` are ``None``.
    """

    mean: float
    low: float | None
    high: float | None
    count: int

    @property
    def relative(self) -> float | None:
        """Half the interval over the mean; ``None`` where there is no interval or no mean."""
        if self.low is None or self.high is None or self.mean == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.mean)


@frozen
class Ratio:
    """A ratio of two means and its confidence interval, ``None`` where it has none."""

    value: float
    low: float | None
    high: float | None


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

CompilerName: TypeAlias = Literal["nvrtc", "nvcc"]
LaunchedBy: TypeAlias = Literal["graph", "stream", "host code"]
Restoring: TypeAlias = Literal["none", "between windows", "inside windows"]

HowEnded: TypeAlias = Literal["interval", "budget", "interrupted", "failed", "cut short"]


@frozen
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


@frozen
class CardState:
    """Clocks in MHz, temperature in degrees Celsius and why the clocks are held back.

    ``None`` is what could not be read; ``throttle`` is empty where nothing holds the clocks back.
    """

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    throttle: Texts | None = None


@frozen
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
    throttle: Texts | None = None


@frozen
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


@frozen
class Window:
    """One uninterrupted stretch of repeated runs.

    ``time_s`` is the time of one run by the card's own clock, ``readings`` the meters' values,
    the one that ``energy_j`` (of one run, gross) rests on first. ``during`` is of the card under
    the load.
    """

    duration_s: float
    runs: int
    time_s: float
    energy_j: float | None
    power_w: float | None
    readings: tuple[Reading, ...]
    during: LoadState | None = None


@frozen
class Method:
    """How it was measured.

    ``launched_by`` says who launches the kernels of a run: a CUDA ``graph``, or Python launch by
    launch on a ``stream`` where they are very many (``host code`` in measurements of before).

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
    compiler: CompilerName | None
    launched_by: LaunchedBy | None
    restoring: Restoring
    target: float
    least_window_s: float
    least_updates: int
    warm_up_s: float | None
    seed: int
    checked: Texts
    ended: HowEnded
    data: str | None = None


@frozen
class OperationCount:
    """Floating-point operations of one kind: ``add`` (and subtract), ``multiply``, ``divide``,
    ``square root`` or ``function``.
    """  # noqa: D205

    kind: str
    count: int


@frozen
class Counter:
    """A hardware counter summed over the kernels of one run, with its unit as the tool names it."""

    name: str
    value: float
    unit: str


@frozen
class KernelCounters:
    """Hardware counters of one kernel, summed over its ``launches`` in one run."""

    kernel: str
    launches: int
    counters: tuple[Counter, ...]


@frozen
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


@frozen
class Missing:
    """A field of the measurement that has no value, and why."""

    what: str
    reason: str


@frozen
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


@frozen
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
        idle_power_w: Watts of the idle card before anything ran.
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
        missing: What has no value, and why.
        notes: Sentences that a reader has to know.
        schema_version: Of the JSON form.
    """

    shown_by = "measurement"
    rows_by = "eatss.measurement.measurement:measurement_rows"

    program: str
    variant: str
    status: Status
    reason: str
    sizes: SizePairs
    tile_sizes: tuple[tuple[str, SizePairs], ...]
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
    missing: tuple[Missing, ...] = ()
    notes: Texts = ()
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


@frozen
class ComparisonRow:
    """A variant beside the baseline. A ratio is ``None`` where either was not measured.

    Attributes:
        measurement: Of the variant.
        speedup: The baseline's time over the variant's; above 1 is better.
        energy_ratio: The variant's energy over the baseline's; below 1 is better.
        ppw_ratio: The variant's PPW over the baseline's; above 1 is better.
    """

    measurement: Measurement
    speedup: Ratio | None
    energy_ratio: Ratio | None
    ppw_ratio: Ratio | None

    def __repr__(self) -> str:
        found = self.measurement
        return (
            f"<ComparisonRow {found.variant}: {found.status}, {figure(found.time_s, 'ms', 1e3)}, "
            f"{figure(found.energy_j, 'J')}; speed-up {_ratio(self.speedup)}, "
            f"energy ratio {_ratio(self.energy_ratio)}>"
        )


@frozen
class Comparison(Tabular):
    """Variants measured in turns, in one run.

    Attributes:
        program: Name of the program.
        baseline: The variant that others are set beside, the label of one of the rows.
        rows: A row a variant, with its measurement and its ratios to the baseline.
        notes: Where variants were measured with another kind of data than the baseline.
        schema_version: Of the JSON form.
    """

    shown_by = "comparison"
    rows_by = "eatss.measurement.measurement:comparison_rows"

    program: str
    baseline: str
    rows: tuple[ComparisonRow, ...]
    notes: Texts = ()
    schema_version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        head = f"Comparison {self.program}: baseline {self.baseline}"
        return in_lines(head, [repr(row)[len("<ComparisonRow ") : -1] for row in self.rows])

    def row(self, variant: str) -> ComparisonRow:
        """Return the row of a variant; ``KeyError`` if there is none."""
        for row in self.rows:
            if row.measurement.variant == variant:
                return row
        raise KeyError(variant)


def _ratio(ratio: Ratio | None) -> str:
    return "-" if ratio is None else f"{ratio.value:.4g}"


MEASUREMENT = Document(
    title="measurement",
    kind=Measurement,
    other_version="EATSS-E070",
    damaged="EATSS-E070",
    hint="measure again with this version of eatss, or read it with the one that wrote it",
)
measurement_to_dict, measurement_from_dict = MEASUREMENT.to_dict, MEASUREMENT.from_dict

COMPARISON = Document(
    title="comparison",
    kind=Comparison,
    other_version="EATSS-E070",
    damaged="EATSS-E070",
    hint=MEASUREMENT.hint,
)
comparison_to_dict, comparison_from_dict = COMPARISON.to_dict, COMPARISON.from_dict


@frozen
class Measurements(Shown):
    """What ``eatss measure --format json`` prints: a measurement for each program."""

    shown_by = "measurements"

    measurements: tuple[Measurement, ...]


Cell: TypeAlias = str | int | float | None


Cells: TypeAlias = dict[str, Cell]

_COLUMNS: Mapping[str, str] = {
    "program": "program",
    "variant": "variant",
    "status": "status",
    "reason": "reason",
    "dtype": "dtype",
    "sizes": "sizes",
    "tile_sizes": "tile_sizes",
    "time_s": "time_s",
    "time_s_low": "time_estimate.low",
    "time_s_high": "time_estimate.high",
    "energy_j": "energy_j",
    "energy_j_low": "energy_estimate.low",
    "energy_j_high": "energy_estimate.high",
    "net_energy_j": "net_energy_j",
    "power_w": "power_w",
    "idle_power_w": "idle_power_w",
    "flops": "flops",
    "least_bytes": "least_bytes",
    "gflops": "gflops",
    "gflops_per_joule": "gflops_per_joule",
    "windows": "windows",
    "ended": "method.ended",
    "meter": "method.meter",
    "compiler": "method.compiler",
    "launched_by": "method.launched_by",
    "restoring": "method.restoring",
    "data": "method.data",
    "device": "device.name",
    "device_uuid": "device.uuid",
    "driver": "device.driver",
    "toolkit": "device.toolkit",
    "eatss_version": "provenance.eatss_version",
    "revision": "provenance.revision",
    "source_hash": "provenance.source_hash",
    "text_hash": "provenance.text_hash",
    "option_hash": "provenance.option_hash",
    "created": "provenance.created",
}
"""Where the cells of a measurement are from."""

_RATIOS: Mapping[str, str] = {
    f"{ratio}{end}": f"{ratio}.{end.strip('_') or 'value'}"
    for ratio in ("speedup", "energy_ratio", "ppw_ratio")
    for end in ("", "_low", "_high")
}
"""Where the cells of a comparison are from, besides."""


def measurement_rows(found: Measurement) -> list[Cells]:
    """Return the one row of a measurement; what was not measured is ``None``."""
    return [_row(found)]


def comparison_rows(comparison: Comparison) -> list[Cells]:
    """Return a row a variant, with its ratios to the baseline."""
    return [
        {**_row(row.measurement), "baseline": comparison.baseline, **_cells(row, _RATIOS)}
        for row in comparison.rows
    ]


def _row(found: Measurement) -> Cells:
    tiles = (f"{kernel}:{equations(sizes, ',')}" for kernel, sizes in found.tile_sizes)
    return _cells(found, _COLUMNS) | {
        "sizes": equations(found.sizes, ","),
        "tile_sizes": " ".join(tiles),
        "windows": len(found.windows),
        "missing": "; ".join(f"{missing.what}: {missing.reason}" for missing in found.missing),
    }


def _cells(noun: object, columns: Mapping[str, str]) -> Cells:
    def at(path: str) -> Any:
        return reduce(lambda part, name: getattr(part, name, None), path.split("."), noun)

    return {title: at(path) for title, path in columns.items()}
