"""Tables of what was measured of a card: arithmetic, memory, latencies, coefficients, the fit.

Columns are those of MIPP, Tables I to IV.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import fsum, isnan, nan

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.cards.document import calibration_to_document
from eatss.cards.profile import COEFFICIENTS, Calibration
from eatss.measurement.characterize.arithmetic import peak_per_cycle
from eatss.measurement.characterize.fit import EnergyFit, Residual
from eatss.measurement.characterize.result import Record, Result
from eatss.report.render import NONE, apart, figure, headed, listing, milliseconds, percent, render

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
    rows: Rows = {}
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
    rows: Rows = {}
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
    return listing(
        (what, *(f">{title}" for title in titles)),
        (
            (
                name,
                *(_shown(value, 4 if title in _FOUR_DIGITS else 3) for title, value in row.items()),
            )
            for name, row in rows.items()
        ),
    )


def _shown(value: float, digits: int) -> str:
    return NONE if isnan(value) else figure(value, digits)


def latency_table(record: Record, clock_mhz: float) -> Table:
    """Return what one thread waits for, in cycles and at a clock in ns, and what a launch takes."""
    waits = (
        (
            one.name.removesuffix(" latency"),
            figure(one.cycles),
            figure(one.cycles and one.cycles / clock_mhz * 1e3),
        )
        for one in record.of("latency")
    )
    launches = (
        (one.name, NONE, figure(one.time_s / one.operations * 1e9)) for one in record.of("launch")
    )
    return listing(("latency", ">cycles", ">ns"), (*waits, *launches))


def coefficients_table(calibration: Calibration) -> Table:
    """Return coefficients with 95 % intervals and the spread between cards."""
    rows = []
    for name, one in calibration.coefficients:
        unit, what = COEFFICIENTS[name]
        factor, shown_unit = _factor(unit)
        low, value, high = (
            figure(number, factor=factor) for number in (one.low, one.value, one.high)
        )
        interval = "" if one.low == one.high else f"[{low}, {high}]"
        spread = NONE if one.spread is None else f"±{percent(one.spread, '.2f')}"
        rows.append((name, value, interval, shown_unit, spread, what))
    titles = ("coefficient", ">value", "95 % interval", "unit", ">between cards", "what")
    return listing(titles, rows)


def runs_table(runs: Mapping[str, Calibration]) -> Table:
    """Return the coefficients of several runs side by side, and how far they are apart.

    ``runs`` differ by the range over the mean between runs of one card, ``cards`` by that between
    the cards' means; ``-`` where there is only one.
    """
    rows = []
    for name, (unit, _) in COEFFICIENTS.items():
        values = [one.value(name) for one in runs.values()]
        if any(value is not None for value in values):
            factor, shown_unit = _factor(unit)
            between = differences(name, tuple(runs.values()))
            rows.append(
                (
                    name,
                    *(figure(value, factor=factor) for value in values),
                    shown_unit,
                    *(percent(share, ".2f") for share in between),
                )
            )
    titles = ("coefficient", *(f">{one}" for one in runs), "unit", ">runs", ">cards")
    return listing(titles, rows)


def differences(
    name: str, calibrations: Sequence[Calibration]
) -> tuple[float | None, float | None]:
    """Return how far a coefficient is apart between runs of one card and between cards.

    Shares of the mean: the range of runs of one card, the largest of any card; the range of the
    cards' means. ``None`` where there is only one run of each card, or one card.
    """
    cards: dict[tuple[str, ...], list[float]] = {}
    for one in calibrations:
        value = one.value(name)
        if value is not None:
            cards.setdefault(one.cards, []).append(value)
    repeated = [_range(values) for values in cards.values() if len(values) > 1]
    means = [fsum(values) / len(values) for values in cards.values()]
    return max(repeated, default=None), _range(means) if len(means) > 1 else None


def _range(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return (max(values) - min(values)) / mean if mean else 0.0


def fit_table(fit: EnergyFit) -> list[RenderableType]:
    """Return how well the fit explains the energies, and the largest residuals."""
    worst = largest_residuals(fit)
    lines = (
        f"R² {fit.r_squared:.5f} over {len(fit.residuals)} benchmarks; "
        f"median residual {percent(fit.median_residual, '.2g')}, "
        f"worst {percent(abs(worst[0].share), '.2g')}"
    )
    rows = (
        (
            one.name,
            milliseconds(one.energy_j),
            milliseconds(one.fitted_j),
            percent(one.share, "+.1f"),
        )
        for one in worst
    )
    titles = ("largest residuals", ">measured mJ", ">fitted mJ", ">residual")
    return [lines, listing(titles, rows)]


def largest_residuals(fit: EnergyFit, count: int = LARGEST) -> tuple[Residual, ...]:
    """Return the benchmarks that the fit misses by most, the worst first."""
    return tuple(sorted(fit.residuals, key=lambda one: -abs(one.share))[:count])


def _factor(unit: str) -> tuple[float, str]:
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


def render_results(record: Record, results: Sequence[Result]) -> str:
    """Return a line for each result, for records that are no whole characterisation."""
    rows = (
        (
            one.name,
            figure(one.time_s * 1e6),
            figure(one.power_w),
            figure(one.useful_bytes / one.time_s / 1e9 or None),
            figure(one.flops / one.time_s / 1e9 or None),
            figure(one.sm_clock_mhz),
            figure(one.cycles),
        )
        for one in results
    )
    titles = ("benchmark", ">µs", ">W", ">GB/s", ">GFLOP/s", ">MHz", ">cycles")
    return render(_head(record), "", listing(titles, rows))


def _head(record: Record) -> Text:
    subject = record.subject
    software = f"driver {subject.driver}, {subject.toolkit}, {subject.created[:10]}"
    about = f"  {software}; energy by {subject.meter}"
    return headed(subject.name, about, of_kernel=True)
