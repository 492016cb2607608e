"""What ``eatss characterize`` and ``eatss roofline`` print: what was measured of a card, balances.

Columns of arithmetic and memory are those of MIPP, Tables I to IV.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import nan
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from eatss.base.codec import JsonObject
from eatss.base.frozen import frozen
from eatss.cards.document import calibration_to_document
from eatss.cards.match import CLOCK_SHARES, calibration_of
from eatss.cards.profile import COEFFICIENTS, Calibration, GpuProfile
from eatss.measurement.characterize.arithmetic import peak_per_cycle
from eatss.measurement.characterize.benchmark import Record, Result, Width
from eatss.measurement.characterize.fit import EnergyFit
from eatss.measurement.characterize.roofline import (
    RooflinePoint,
    power_limited_roofline_of,
    roofline_of,
)
from eatss.report.card_plots import Roofs
from eatss.report.render import (
    NONE,
    Columns,
    Getter,
    Parts,
    apart,
    figure,
    headed,
    listing,
    listing_of,
    percent,
    render,
    uncalibrated,
)

LARGEST = 10
"""Residuals that are listed."""

_FOUR_DIGITS = {"real/cycle", "accesses/cycle", "GB/s", "avg W", "max W", "MIPS/W"}

Rows = dict[str, dict[str, float]]
"""Figures of what has a name, by the titles of their columns; NaN is what was not measured."""


def arithmetic_rows(record: Record, fit: EnergyFit) -> Rows:
    """Return the instructions of a record, tensor cores' last, as MIPP, Tables I and II.

    Rates count instructions of threads on an SM in a cycle (an mma is 32): ``spec`` is by the CUDA
    C++ Programming Guide. ``gross`` is all that the card drew for one instruction of a thread,
    ``net`` leaves out constant power; both hold the few other instructions of the loop. MIPS are
    10^6 instructions per second. NaN is what is not specified, too.
    """
    rows, subject = {}, record.subject
    for one in (*record.of("arithmetic"), *record.of("tensor")):
        # an mma is counted once for a warp
        operations = one.operations * (32 if one.group == "tensor" else 1)
        drawn = _drawn(one, fit)
        rows[one.name] = {
            "spec/cycle": peak_per_cycle(one.name, subject.compute_capability) or nan,
            "real/cycle": operations / drawn.cycles / subject.sm_count,
            "avg W": one.power_w or nan,
            "max W": one.most_power_w or nan,
            "gross pJ": drawn.energy_j / operations * 1e12,
            "net pJ": drawn.net_j / operations * 1e12,
            "GFLOP/s/W": (one.flops or nan) / drawn.energy_j / 1e9,
            "MIPS/W": operations / drawn.energy_j / 1e6,
        }
    return rows


def memory_rows(record: Record, fit: EnergyFit) -> Rows:
    """Return the levels of memory of a record as MIPP, Tables III and IV: accesses of a warp.

    Rates count accesses on the whole card, and the bytes that they ask for. A transaction is a
    wavefront: 128 bytes of a line of L1, or a cycle of shared memory; for constant memory a load.
    ``net`` leaves out constant power.
    """
    rows = {}
    for one in record.of("memory"):
        wavefronts = one.amount("l1_wavefronts") or one.amount("shared_wavefronts")
        drawn = _drawn(one, fit)
        rows[one.name] = {
            "accesses/cycle": one.operations / drawn.cycles,
            "GB/s": one.useful_bytes / one.time_s / 1e9,
            "avg W": one.power_w or nan,
            "max W": one.most_power_w or nan,
            "nJ/transaction": drawn.energy_j / (wavefronts or one.operations) * 1e9,
            "gross pJ/B": drawn.energy_j / one.useful_bytes * 1e12,
            "net pJ/B": drawn.net_j / one.useful_bytes * 1e12,
        }
    return rows


class _Drawn(NamedTuple):
    """Cycles of a benchmark and its energy, all of it and beyond constant power."""

    cycles: float
    energy_j: float
    net_j: float


def _drawn(one: Result, fit: EnergyFit) -> _Drawn:
    energy_j, constant_j = one.energy_j or nan, fit.constant_w.value * one.time_s
    return _Drawn(one.time_s * (one.sm_clock_mhz or nan) * 1e6, energy_j, energy_j - constant_j)


def rows_table(what: str, rows: Rows) -> Table:
    """Return rows as a table whose first column says what has the names."""
    titles = next(iter(rows.values()), {})
    lines = (
        (name, *(figure(value, 4 if title in _FOUR_DIGITS else 3) for title, value in row.items()))
        for name, row in rows.items()
    )
    return listing((what, *(f">{title}" for title in titles)), lines)


def latency_table(record: Record, clock_mhz: float) -> Table:
    """Return what one thread waits for, in cycles and at a clock in ns, and what a launch takes."""
    columns: Columns = {
        "latency": lambda one: one.name.removesuffix(" latency"),
        "cycles": "cycles",
        "ns": lambda one: (
            one.cycles / clock_mhz * 1e3 if one.cycles else one.time_s / one.operations * 1e9
        ),
    }
    return listing_of((*record.of("latency"), *record.of("launch")), columns)


def coefficients_table(calibration: Calibration) -> Table:
    """Return coefficients with 95 % intervals and the spread between cards."""
    rows = []
    for name, one in calibration.coefficients:
        unit, what = COEFFICIENTS[name]
        factor, shown_unit = scaled(unit)
        low, high = figure(factor * one.low), figure(factor * one.high)
        interval = "" if one.low == one.high else f"[{low}, {high}]"
        spread = NONE if one.spread is None else f"±{percent(one.spread, '.2f')}"
        rows.append((name, factor * one.value, interval, shown_unit, spread, what))
    titles = ("coefficient", "value", "95 % interval", "unit", ">between cards", "what")
    return listing(titles, rows)


def fit_table(fit: EnergyFit) -> Parts:
    """Return how well the fit explains the energies, and the largest residuals."""
    worst = sorted(fit.residuals, key=lambda one: -abs(one.share))[:LARGEST]
    lines = (
        f"R² {fit.r_squared:.5f} over {len(fit.residuals)} benchmarks; "
        f"median residual {percent(fit.median_residual, '.2g')}, "
        f"worst {percent(abs(worst[0].share), '.2g')}"
    )
    columns: Columns = {
        "largest residuals": "name",
        "measured mJ": lambda one: 1e3 * one.energy_j,
        "fitted mJ": lambda one: 1e3 * one.fitted_j,
        ">residual": lambda one: percent(one.share, "+.1f"),
    }
    return [lines, listing_of(worst, columns)]


def scaled(unit: str) -> tuple[float, str]:
    """Return what seconds are multiplied with to be read as microseconds."""
    return (1e6, "µs") if unit == "s" else (1.0, unit)


def render_characterisation(
    record: Record, fit: EnergyFit, calibration: Calibration, output: str
) -> str:
    """Return the tables of a record and of the calibration it is part of, or the latter as JSON."""
    if output == "json":
        return json.dumps(calibration_to_document(calibration), indent=2) + "\n"
    tables = (
        rows_table("instruction", arithmetic_rows(record, fit)),
        rows_table("memory", memory_rows(record, fit)),
        latency_table(record, calibration.value("clock_mhz") or fit.top_clock_mhz),
        coefficients_table(calibration),
    )
    return render(*apart([_head(record)], *([one] for one in tables), fit_table(fit)))


def _head(record: Record) -> Text:
    subject = record.subject
    about = f"  driver {subject.driver}, {subject.toolkit}, {subject.created[:10]}"
    return headed(subject.name, about, of_kernel=True)


_OWN_CLOCK = 0.98
"""Share of the highest clock below which a record is one of a clock that the owner set."""


@frozen
class CardRoofline:
    """Everything that ``eatss roofline`` shows of a card."""

    profile: GpuProfile
    widths: tuple[Width, ...]
    programs: tuple[RooflinePoint, ...] = ()
    record: Record | None = None

    def roofs(self) -> tuple[Roofs, ...]:
        """Return what is to be drawn, a width a row; ``lowered`` is at the record's clock.

        Raises:
            InputError: ``EATSS-B030``, the coefficients make none.
        """
        points = () if self.record is None else self.record.of("intensity")
        own = calibration_of(self.profile)["clock_mhz"]
        clock_mhz = max((one.sm_clock_mhz or 0.0 for one in points), default=0.0) or own
        share = clock_mhz / own if clock_mhz < _OWN_CLOCK * own else 1.0
        held = replace(self.profile, clock_share=share)
        return tuple(
            Roofs(
                title=width,
                machine=roofline_of(self.profile, width),
                lowered=power_limited_roofline_of(held, width),
                results=tuple(one for one in points if one.name.startswith(width)),
                programs=tuple(one for one in self.programs if one.width == width),
            )
            for width in self.widths
        )

    @property
    def title(self) -> str:
        """The card, and whether it is known."""
        known = "" if self.profile.calibration is not None else " (uncalibrated)"
        return self.profile.title + known


_FLOPS_ALONE, _BYTES_ALONE = 1e6, 1e-6
"""Intensities in flop/byte at which flops, or bytes, are nearly all that there is."""


def over_clock(card: CardRoofline) -> list[dict[str, float]]:
    """Return what a flop and a byte take alone at lower clocks, constant power included.

    Clocks are in MHz, rates in 10^9 a second, energies in pJ.
    """
    rows = []
    for share in CLOCK_SHARES:
        held = replace(card.profile, clock_share=share)
        row = {"MHz": calibration_of(held)["clock_mhz"]}
        for width in card.widths:
            lowered = power_limited_roofline_of(held, width)
            row[f"{width} GFLOP/s"] = 1e-9 / float(lowered.time_s(1.0, _FLOPS_ALONE))
            row[f"{width} pJ/flop"] = 1e12 * float(lowered.energy_j(1.0, _FLOPS_ALONE))
            row["GB/s"] = 1e-9 / float(lowered.time_s(_BYTES_ALONE, _BYTES_ALONE))
            row["pJ/byte"] = 1e12 * float(lowered.energy_j(_BYTES_ALONE, _BYTES_ALONE))
        rows.append(row)
    return rows


def _measured(roofs: Sequence[Roofs]) -> list[JsonObject]:
    """Return the points that do a flop with what the model says of each, the limit heeded.

    Times are of one repeat.
    """
    return [
        {
            "width": row.title,
            "intensity": (intensity := one.flops / one.useful_bytes),
            "time_s": one.time_s,
            "predicted_s": float(row.lowered.time_s(one.flops, intensity)),
            "sm_clock_mhz": one.sm_clock_mhz,
            "energy_j": one.energy_j,
            "predicted_j": float(row.lowered.energy_j(one.flops, intensity)),
            "power_w": one.power_w,
            "predicted_w": float(row.lowered.power_w(intensity)),
            "capped": one.capped,
        }
        for row in roofs
        for one in row.results
        if one.flops and row.lowered is not None
    ]


def render_roofline(card: CardRoofline, output: str) -> str:
    """Return a card's rooflines as ``table`` or ``json``."""
    roofs, profile = card.roofs(), card.profile
    calibrated = profile.calibration is not None
    points, clocks = _measured(roofs), over_clock(card)
    if output == "json":
        shares = ("intensity", "share_of_speed", "share_of_efficiency")
        document = {
            "gpu": profile.name,
            "title": profile.title,
            "calibrated": calibrated,
            "rooflines": {
                row.title: {name: getattr(row.machine, name) for name, *_ in _MACHINE}
                for row in roofs
            },
            "clocks": clocks,
            "programs": [
                asdict(one) | {name: getattr(one, name) for name in shares} for one in card.programs
            ],
            "measured": points,
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    summary = (
        (title, *(_times(factor, getattr(row.machine, name)) for row in roofs), unit)
        for name, title, unit, factor in _MACHINE
    )
    at_clocks = listing_of(clocks, {name: name for name in clocks[0]})
    parts = apart(
        [headed(profile.title)],
        [listing(("", *(f">{row.title}" for row in roofs), ""), summary)],
        ["over the clock of the SMs, constant power included:", at_clocks],
        [listing_of(card.programs, _PROGRAM)] if card.programs else [],
        [] if card.record is None else _beside(card.record, points),
        [] if calibrated else [uncalibrated(profile.name)],
    )
    return render(*parts)


def _times(factor: float, value: float | bool | None) -> float | bool | None:
    return factor * value if isinstance(value, float) else value


def _beside(record: Record, points: Sequence[JsonObject]) -> Parts:
    where = f"measured on {record.subject.name}"
    if not points:
        return [f"{where}: the record holds no point of the intensity sweep"]
    return [f"{where}, over predicted:", listing_of(points, _POINT)]


_MACHINE = (
    ("flops_s", "peak", "GFLOP/s", 1e-9),
    ("bytes_s", "bandwidth of memory", "GB/s", 1e-9),
    ("flop_j", "energy of a flop", "pJ", 1e12),
    ("byte_j", "energy of a byte from memory", "pJ", 1e12),
    ("constant_w", "constant power", "W", 1),
    ("power_limit_w", "power limit", "W", 1),
    ("best_flops_j", "best efficiency", "GFLOP/J", 1e-9),
    ("time_balance", "time balance", "flop/byte", 1),
    ("energy_balance", "energy balance", "flop/byte", 1),
    ("half_efficiency_intensity", "effective balance (half efficiency)", "flop/byte", 1),
    ("balance_gap", "balance gap", "", 1),
    ("race_to_halt", "race to halt", "", 1),
    ("most_power_w", "most power without a limit", "W", 1),
)
"""The figures of a machine, as JSON has them: what each is, its unit, a factor to it."""

_PROGRAM: Columns = {
    "program": "name",
    "type": "width",
    "flop/byte": "intensity",
    "roof GFLOP/s": lambda one: one.speed_ceiling_flops_s / 1e9,
    "roof GFLOP/J": lambda one: one.efficiency_ceiling_flops_j / 1e9,
    "ms": "time_s",
    "J": "energy_j",
    ">of speed": lambda one: percent(one.share_of_speed),
    ">of efficiency": lambda one: percent(one.share_of_efficiency),
}
"""The columns of programs; shares are of what the lines allow at full clock."""


def _over(measured: str, predicted: str) -> Getter:
    return lambda one: one[measured] and one[measured] / one[predicted]


_POINT: Columns = {
    "type": "width",
    "flop/byte": "intensity",
    "MHz": "sm_clock_mhz",
    "ms": "time_s",
    "time": _over("time_s", "predicted_s"),
    "energy": _over("energy_j", "predicted_j"),
    "W": "power_w",
    "power": _over("power_w", "predicted_w"),
}
"""The columns of points, over what is predicted of them."""
