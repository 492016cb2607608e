"""What ``eatss characterize`` and ``eatss roofline`` print: what was measured of a card, balances.

Columns of arithmetic and memory are those of MIPP, Tables I to IV.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan
from typing import Any

from rich.table import Table
from rich.text import Text

from eatss.cards.document import calibration_to_document
from eatss.cards.match import CLOCK_SHARES, calibration_of
from eatss.cards.profile import COEFFICIENTS, Calibration, GpuProfile
from eatss.measurement.characterize.arithmetic import peak_per_cycle
from eatss.measurement.characterize.benchmark import Record, Result, Width
from eatss.measurement.characterize.fit import EnergyFit
from eatss.measurement.characterize.roofline import (
    EnergyRoofline,
    power_limited_roofline_of,
    roofline_of,
)
from eatss.report.card_plots import Roofs
from eatss.report.render import (
    NONE,
    Columns,
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
    rows = {}
    for one in (*record.of("arithmetic"), *record.of("tensor")):
        # an mma is counted once for a warp
        operations = one.operations * (32 if one.group == "tensor" else 1)
        energy_j = one.energy_j or nan
        rows[one.name] = {
            "spec/cycle": peak_per_cycle(one.name, record.subject.compute_capability) or nan,
            "real/cycle": operations / _cycles(one) / record.subject.sm_count,
            **_powers(one),
            "gross pJ": energy_j / operations * 1e12,
            "net pJ": _net_j(one, fit) / operations * 1e12,
            "GFLOP/s/W": (one.flops or nan) / energy_j / 1e9,
            "MIPS/W": operations / energy_j / 1e6,
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
        energy_j = one.energy_j or nan
        rows[one.name] = {
            "accesses/cycle": one.operations / _cycles(one),
            "GB/s": one.useful_bytes / one.time_s / 1e9,
            **_powers(one),
            "nJ/transaction": energy_j / (wavefronts or one.operations) * 1e9,
            "gross pJ/B": energy_j / one.useful_bytes * 1e12,
            "net pJ/B": _net_j(one, fit) / one.useful_bytes * 1e12,
        }
    return rows


def _cycles(one: Result) -> float:
    return one.time_s * (one.sm_clock_mhz or nan) * 1e6


def _powers(one: Result) -> dict[str, float]:
    return {"avg W": one.power_w or nan, "max W": one.most_power_w or nan}


def _net_j(one: Result, fit: EnergyFit) -> float:
    """Return the energy beyond constant power."""
    return (one.energy_j or nan) - fit.constant_w.value * one.time_s


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
    software = f"driver {subject.driver}, {subject.toolkit}, {subject.created[:10]}"
    about = f"  {software}; energy by {subject.meter}"
    return headed(subject.name, about, of_kernel=True)


def roofs_of(profile: GpuProfile, widths: Sequence[Width]) -> tuple[Roofs, ...]:
    """Return what is to be drawn of a card, a width a row.

    Raises:
        InputError: ``EATSS-B030``, the coefficients make none.
    """
    return tuple(
        Roofs(
            title=width,
            machine=roofline_of(profile, width),
            lowered=power_limited_roofline_of(profile, width),
        )
        for width in widths
    )


_FLOPS_ALONE, _BYTES_ALONE = 1e6, 1e-6
"""Intensities in flop/byte at which flops, or bytes, are nearly all that there is."""


def over_clock(profile: GpuProfile, widths: Sequence[Width]) -> list[dict[str, float]]:
    """Return what a flop and a byte take alone at lower clocks, constant power included.

    Clocks are in MHz, rates in 10^9 a second, energies in pJ.
    """
    rows = []
    for share in CLOCK_SHARES:
        held = replace(profile, clock_share=share)
        row = {"MHz": calibration_of(held)["clock_mhz"]}
        for width in widths:
            lowered = power_limited_roofline_of(held, width)
            row[f"{width} GFLOP/s"] = 1e-9 / float(lowered.time_s(1.0, _FLOPS_ALONE))
            row[f"{width} pJ/flop"] = 1e12 * float(lowered.energy_j(1.0, _FLOPS_ALONE))
            row["GB/s"] = 1e-9 / float(lowered.time_s(_BYTES_ALONE, _BYTES_ALONE))
            row["pJ/byte"] = 1e12 * float(lowered.energy_j(_BYTES_ALONE, _BYTES_ALONE))
        rows.append(row)
    return rows


def roofline_title(profile: GpuProfile) -> str:
    """Return the name of a card, and whether it is known."""
    return profile.title + ("" if profile.calibration is not None else " (uncalibrated)")


def render_roofline(profile: GpuProfile, roofs: Sequence[Roofs], output: str) -> str:
    """Return a card's rooflines as ``table`` or ``json``."""
    calibrated = profile.calibration is not None
    clocks = over_clock(profile, [row.title for row in roofs])
    if output == "json":
        document = {
            "gpu": profile.name,
            "title": profile.title,
            "calibrated": calibrated,
            "rooflines": {
                row.title: {name: getattr(row.machine, name) for name, *_ in _MACHINE}
                for row in roofs
            },
            "clocks": clocks,
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    machines = [row.machine for row in roofs]
    summary = listing(("", *(f">{row.title}" for row in roofs), ""), _summary(machines))
    parts = apart(
        [headed(profile.title)],
        [summary],
        [
            "over the clock of the SMs, constant power included:",
            listing_of(clocks, {name: name for name in clocks[0]}),
        ],
        [] if calibrated else [uncalibrated(profile.name)],
    )
    return render(*parts)


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


def _summary(machines: Sequence[EnergyRoofline]) -> Iterator[tuple[Any, ...]]:
    for name, title, unit, factor in _MACHINE:
        values = [getattr(one, name) for one in machines]
        yield (title, *(factor * one if isinstance(one, float) else one for one in values), unit)
