"""Tables of what was measured of a card: arithmetic, memory, latencies, coefficients, the fit.

Columns are those of MIPP, Tables I to IV.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.characterize.arithmetic import peak_per_cycle
from eatss.characterize.fit import EnergyFit, Residual
from eatss.characterize.result import Record, Result
from eatss.frozen import frozen
from eatss.gpu.document import calibration_to_document
from eatss.gpu.profile import COEFFICIENTS, Calibration, Coefficient
from eatss.report.render import NONE, figure, indented_table, render

LARGEST = 10
"""Residuals that are listed."""


@frozen
class ArithmeticRow:
    """An instruction in the columns of MIPP, Tables I and II.

    Rates count instructions of threads on an SM in a cycle (an mma is 32): ``peak_per_cycle``
    by the CUDA C++ Programming Guide, ``per_cycle`` as measured. ``gross_pj`` is all that the card
    drew for one instruction of a thread, ``net_pj`` leaves out constant power; both hold the few
    other instructions of the loop. ``gflops_w`` is GFLOP/s per watt, ``mips_w`` is 10^6
    instructions per second and watt. ``None`` is what was not measured, or is not specified.
    """

    name: str
    peak_per_cycle: float | None
    per_cycle: float | None
    power_w: float | None
    most_power_w: float | None
    gross_pj: float | None
    net_pj: float | None
    gflops_w: float | None
    mips_w: float | None


@frozen
class MemoryRow:
    """Accesses to a memory in the columns of MIPP, Tables III and IV.

    ``per_cycle`` counts accesses of warps on the whole card, ``gb_s`` the bytes that they ask for.
    A transaction is a wavefront: 128 bytes of a line of L1, or a cycle of shared memory; for
    constant memory a load. ``net_pj_byte`` leaves out constant power.
    """

    name: str
    per_cycle: float | None
    gb_s: float
    power_w: float | None
    most_power_w: float | None
    nj_transaction: float | None
    gross_pj_byte: float | None
    net_pj_byte: float | None


def arithmetic_rows(record: Record, fit: EnergyFit) -> tuple[ArithmeticRow, ...]:
    """Return the instructions of a record, tensor cores' last."""
    return tuple(
        _arithmetic_row(one, record, fit)
        for one in (*record.of("arithmetic"), *record.of("tensor"))
    )


def _arithmetic_row(one: Result, record: Record, fit: EnergyFit) -> ArithmeticRow:
    lanes = 32 if one.group == "tensor" else 1  # an mma is counted once for a warp
    operations = one.operations * lanes
    cycles = _cycles(one)
    energy_j = one.energy_j
    return ArithmeticRow(
        name=one.name,
        peak_per_cycle=peak_per_cycle(one.name, record.subject.compute_capability),
        per_cycle=None if cycles is None else operations / cycles / record.subject.sm_count,
        power_w=one.power_w,
        most_power_w=one.most_power_w,
        gross_pj=None if energy_j is None else energy_j / operations * 1e12,
        net_pj=_net(one, fit, operations),
        gflops_w=one.flops / energy_j / 1e9 if energy_j and one.flops else None,
        mips_w=operations / energy_j / 1e6 if energy_j else None,
    )


def memory_rows(record: Record, fit: EnergyFit) -> tuple[MemoryRow, ...]:
    """Return the levels of memory of a record."""
    return tuple(_memory_row(one, fit) for one in record.of("memory"))


def _memory_row(one: Result, fit: EnergyFit) -> MemoryRow:
    cycles = _cycles(one)
    transactions = one.amount("l1_wavefronts") or one.amount("shared_wavefronts") or one.operations
    energy_j = one.energy_j
    return MemoryRow(
        name=one.name,
        per_cycle=None if cycles is None else one.operations / cycles,
        gb_s=one.useful_bytes / one.time_s / 1e9,
        power_w=one.power_w,
        most_power_w=one.most_power_w,
        nj_transaction=None if energy_j is None else energy_j / transactions * 1e9,
        gross_pj_byte=None if energy_j is None else energy_j / one.useful_bytes * 1e12,
        net_pj_byte=_net(one, fit, one.useful_bytes),
    )


def _cycles(one: Result) -> float | None:
    return None if not one.sm_clock_mhz else one.time_s * one.sm_clock_mhz * 1e6


def _net(one: Result, fit: EnergyFit, amount: float) -> float | None:
    """Return pJ beyond constant power for each of an amount."""
    if one.energy_j is None:
        return None
    return (one.energy_j - fit.constant_w.value * one.time_s) / amount * 1e12


def arithmetic_table(record: Record, fit: EnergyFit) -> Table:
    """Return the table of MIPP, Tables I and II: instructions of a thread."""
    columns = {
        "spec/cycle": ("peak_per_cycle", 3),
        "real/cycle": ("per_cycle", 4),
        "avg W": ("power_w", 4),
        "max W": ("most_power_w", 4),
        "gross pJ": ("gross_pj", 3),
        "net pJ": ("net_pj", 3),
        "GFLOP/s/W": ("gflops_w", 3),
        "MIPS/W": ("mips_w", 4),
    }
    return _table("instruction", columns, arithmetic_rows(record, fit))


def memory_table(record: Record, fit: EnergyFit) -> Table:
    """Return the table of MIPP, Tables III and IV: accesses of a warp."""
    columns = {
        "accesses/cycle": ("per_cycle", 4),
        "GB/s": ("gb_s", 4),
        "avg W": ("power_w", 4),
        "max W": ("most_power_w", 4),
        "nJ/transaction": ("nj_transaction", 3),
        "gross pJ/B": ("gross_pj_byte", 3),
        "net pJ/B": ("net_pj_byte", 3),
    }
    return _table("memory", columns, memory_rows(record, fit))


def _table(
    first: str,
    columns: Mapping[str, tuple[str, int]],
    rows: Sequence[ArithmeticRow] | Sequence[MemoryRow],
) -> Table:
    """Return a table of rows by name; a column is of a field, with so many digits."""
    table = indented_table(first, *columns, numbers=tuple(columns))
    for row in rows:
        cells = (figure(getattr(row, field), digits) for field, digits in columns.values())
        table.add_row(row.name, *cells)
    return table


def latency_table(record: Record, clock_mhz: float) -> Table:
    """Return what one thread waits for, in cycles and at a clock in ns, and what a launch takes."""
    table = indented_table("latency", "cycles", "ns", numbers=("cycles", "ns"))
    for one in record.of("latency"):
        waited_ns = None if one.cycles is None else one.cycles / clock_mhz * 1e3
        table.add_row(one.name.removesuffix(" latency"), figure(one.cycles), figure(waited_ns))
    for one in record.of("launch"):
        table.add_row(one.name, NONE, figure(one.time_s / one.operations * 1e9))
    return table


def coefficients_table(calibration: Calibration) -> Table:
    """Return coefficients with 95 % intervals and the spread between cards."""
    names = ("coefficient", "value", "95 % interval", "unit", "between cards", "what")
    table = indented_table(*names, numbers=("value", "between cards"))
    for name, one in calibration.coefficients:
        unit, what = COEFFICIENTS[name]
        value, interval = _shown(one, unit)
        spread = NONE if one.spread is None else f"±{100 * one.spread:.2f} %"
        table.add_row(name, value, interval, "µs" if unit == "s" else unit, spread, what)
    return table


def runs_table(runs: Mapping[str, Calibration]) -> Table:
    """Return the coefficients of several runs side by side, and how far they are apart.

    ``runs`` differ by the range over the mean between runs of one card, ``cards`` by that between
    the cards' means; ``-`` where there is only one.
    """
    apart = ("runs", "cards")
    table = indented_table("coefficient", *runs, "unit", *apart, numbers=(*runs, *apart))
    for name, (unit, _) in COEFFICIENTS.items():
        values = {label: one.value(name) for label, one in runs.items()}
        if all(value is None for value in values.values()):
            continue
        between_runs, between_cards = differences(name, tuple(runs.values()))
        factor, shown_unit = _factor(unit)
        table.add_row(
            name,
            *(figure(None if v is None else v * factor) for v in values.values()),
            shown_unit,
            _percent(between_runs),
            _percent(between_cards),
        )
    return table


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
    means = [math.fsum(values) / len(values) for values in cards.values()]
    return (
        max(repeated) if repeated else None,
        _range(means) if len(means) > 1 else None,
    )


def _range(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return (max(values) - min(values)) / mean if mean else 0.0


def fit_table(fit: EnergyFit) -> list[RenderableType]:
    """Return how well the fit explains the energies, and the largest residuals."""
    worst = largest_residuals(fit)
    lines = (
        f"R² {fit.r_squared:.5f} over {len(fit.residuals)} benchmarks; "
        f"median residual {100 * fit.median_residual:.2g} %, "
        f"worst {100 * max(abs(one.share) for one in fit.residuals):.2g} %"
    )
    numbers = ("measured mJ", "fitted mJ", "residual")
    table = indented_table("largest residuals", *numbers, numbers=numbers)
    for one in worst:
        table.add_row(
            one.name,
            figure(one.energy_j * 1e3),
            figure(one.fitted_j * 1e3),
            f"{100 * one.share:+.1f} %",
        )
    return [lines, table]


def largest_residuals(fit: EnergyFit, count: int = LARGEST) -> tuple[Residual, ...]:
    """Return the benchmarks that the fit misses by most, the worst first."""
    return tuple(sorted(fit.residuals, key=lambda one: -abs(one.share))[:count])


def _shown(one: Coefficient, unit: str) -> tuple[str, str]:
    factor, _ = _factor(unit)
    value = figure(one.value * factor)
    if one.low == one.high:
        return value, ""
    return value, f"[{figure(one.low * factor)}, {figure(one.high * factor)}]"


def _factor(unit: str) -> tuple[float, str]:
    """Return what seconds are multiplied with to be read as microseconds."""
    return (1e6, "µs") if unit == "s" else (1.0, unit)


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.2f} %"


def render_characterisation(
    record: Record, fit: EnergyFit, calibration: Calibration, output: str
) -> str:
    """Return the tables of a record and of the calibration it is part of, or the latter as JSON."""
    if output == "json":
        return json.dumps(calibration_to_document(calibration), indent=2) + "\n"
    parts: list[RenderableType] = [_head(record)]
    clock_mhz = calibration.value("clock_mhz") or fit.top_clock_mhz
    for table in (
        arithmetic_table(record, fit),
        memory_table(record, fit),
        latency_table(record, clock_mhz),
        coefficients_table(calibration),
    ):
        parts += ["", table]
    return render(*parts, "", *fit_table(fit))


def render_results(record: Record, results: Sequence[Result]) -> str:
    """Return a line for each result, for records that are no whole characterisation."""
    numbers = ("µs", "W", "GB/s", "GFLOP/s", "MHz", "cycles")
    table = indented_table("benchmark", *numbers, numbers=numbers)
    for one in results:
        table.add_row(
            one.name,
            figure(one.time_s * 1e6),
            figure(one.power_w),
            figure(one.useful_bytes / one.time_s / 1e9 if one.useful_bytes else None),
            figure(one.flops / one.time_s / 1e9 if one.flops else None),
            figure(one.sm_clock_mhz),
            figure(one.cycles),
        )
    return render(_head(record), "", table)


def _head(record: Record) -> Text:
    subject = record.subject
    head = Text(subject.name, style="bold cyan")
    software = f"driver {subject.driver}, {subject.toolkit}, {subject.created[:10]}"
    head.append(f"  {software}; energy by {subject.meter}", style="default")
    return head
