"""What ``eatss characterize`` and ``eatss roofline`` print: what was measured of a card, balances.

Columns of arithmetic and memory are those of MIPP, Tables I to IV.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import isnan, nan
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.frozen import frozen
from eatss.cards.document import calibration_to_document
from eatss.cards.profile import COEFFICIENTS, Calibration, GpuProfile
from eatss.measurement.characterize.arithmetic import peak_per_cycle
from eatss.measurement.characterize.benchmark import Record, Result, Width
from eatss.measurement.characterize.energy_roofline import EnergyRoofline
from eatss.measurement.characterize.fit import EnergyFit
from eatss.measurement.characterize.roofline_points import (
    RooflinePoint,
    capped_range,
    power_limited_roofline_of,
    roofline_of,
)
from eatss.report.card_plots import Roofs
from eatss.report.render import (
    NONE,
    apart,
    figure,
    headed,
    listing,
    milliseconds,
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
        factor, shown_unit = scaled(unit)
        low, value, high = (
            figure(number, factor=factor) for number in (one.low, one.value, one.high)
        )
        interval = "" if one.low == one.high else f"[{low}, {high}]"
        spread = NONE if one.spread is None else f"±{percent(one.spread, '.2f')}"
        rows.append((name, value, interval, shown_unit, spread, what))
    titles = ("coefficient", ">value", "95 % interval", "unit", ">between cards", "what")
    return listing(titles, rows)


def fit_table(fit: EnergyFit) -> list[RenderableType]:
    """Return how well the fit explains the energies, and the largest residuals."""
    worst = sorted(fit.residuals, key=lambda one: -abs(one.share))[:LARGEST]
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


@frozen
class MeasuredPoint:
    """A point of the intensity sweep beside what the model says, the power limit heeded.

    Times are of one repeat. Predictions are those of
    :class:`~eatss.measurement.characterize.roofline_points.PowerLimitedRoofline`.
    """

    width: Width
    intensity: float
    time_s: float
    predicted_s: float
    energy_j: float | None
    predicted_j: float
    power_w: float | None
    predicted_w: float
    capped: bool


@frozen
class CardRoofline:
    """Everything that ``eatss roofline`` shows of a card."""

    profile: GpuProfile
    widths: tuple[Width, ...]
    programs: tuple[RooflinePoint, ...] = ()
    record: Record | None = None

    @property
    def calibrated(self) -> bool:
        """Whether such a card was measured."""
        return self.profile.calibration is not None

    @property
    def machines(self) -> dict[str, EnergyRoofline]:
        """The machine of each width.

        Raises:
            InputError: ``EATSS-B030``, the coefficients make none.
        """
        return {width: roofline_of(self.profile, width) for width in self.widths}

    def results(self, width: Width) -> tuple[Result, ...]:
        """Return the points of the record's intensity group in a width."""
        found = () if self.record is None else self.record.of("intensity")
        return tuple(one for one in found if one.name.startswith(width))

    def roofs(self) -> tuple[Roofs, ...]:
        """Return what is to be drawn, a width a row."""
        return tuple(
            Roofs(
                title=width,
                machine=roofline_of(self.profile, width),
                lowered=power_limited_roofline_of(self.profile, width),
                results=self.results(width),
                programs=tuple(one for one in self.programs if one.width == width),
            )
            for width in self.widths
        )

    @property
    def title(self) -> str:
        """The card, and whether it is known."""
        return self.profile.title + ("" if self.calibrated else " (uncalibrated)")

    def measured_points(self) -> list[MeasuredPoint]:
        """Return the points of the record that do a flop, with what the model says of each."""
        found = []
        for width in self.widths:
            machine = power_limited_roofline_of(self.profile, width)
            for one in self.results(width):
                if one.flops:
                    intensity = one.flops / one.useful_bytes
                    point = MeasuredPoint(
                        width=width,
                        intensity=intensity,
                        time_s=one.time_s,
                        predicted_s=float(machine.time_s(one.flops, intensity)),
                        energy_j=one.energy_j,
                        predicted_j=float(machine.energy_j(one.flops, intensity)),
                        power_w=one.power_w,
                        predicted_w=float(machine.power_w(intensity)),
                        capped=one.capped,
                    )
                    found.append(point)
        return found


def render_roofline(card: CardRoofline, output: str) -> str:
    """Return a card's rooflines as ``table`` or ``json``."""
    if output == "json":
        return json.dumps(_document(card), indent=2, ensure_ascii=False) + "\n"
    machines, points = card.machines, card.measured_points()
    summary = listing(
        ("", *(f">{width}" for width in machines), ""),
        ((name, *map(of, machines.values()), unit) for name, unit, of in _ROWS),
    )
    measured: list[RenderableType] = []
    if card.record is not None:
        where = f"measured on {card.record.subject.name}"
        measured = [f"{where}: the record holds no point of the intensity sweep"]
        if points:
            measured = [f"{where}, over predicted:", _points_table(points)]
    programs: list[RenderableType] = [_programs_table(card)] if card.programs else []
    if any(one.time_s is not None for one in card.programs):
        programs.append(
            "shares are of the roofline and the arch line at full clock, for the least bytes "
            "that a program can move; lower clocks may exceed the arch line"
        )
    parts = apart(
        [headed(card.profile.title)],
        [summary],
        programs,
        measured,
        [] if card.calibrated else [uncalibrated(card.profile.name)],
    )
    return render(*parts)


def _range(machine: EnergyRoofline) -> str:
    found = capped_range(machine)
    if found is None:
        return "nowhere"
    low, high = found
    if math.isinf(high):
        return f"from {figure(low, 3)}" if low else "everywhere"
    return f"{figure(low, 3)} to {figure(high, 3)}" if low else f"to {figure(high, 3)}"


_ROWS: tuple[tuple[str, str, Callable[[EnergyRoofline], str]], ...] = (
    ("peak", "GFLOP/s", lambda m: figure(1e-9 / m.flop_s, 5)),
    ("bandwidth of memory", "GB/s", lambda m: figure(1e-9 / m.byte_s)),
    ("energy of a flop", "pJ", lambda m: figure(1e12 * m.flop_j)),
    ("energy of a byte from memory", "pJ", lambda m: figure(1e12 * m.byte_j)),
    ("best efficiency", "GFLOP/J", lambda m: figure(1e-9 / m.least_flop_j)),
    ("time balance", "flop/byte", lambda m: figure(m.time_balance)),
    ("energy balance", "flop/byte", lambda m: figure(m.energy_balance)),
    (
        "effective balance (half efficiency)",
        "flop/byte",
        lambda m: figure(m.half_efficiency_intensity),
    ),
    ("balance gap", "", lambda m: figure(m.balance_gap)),
    ("effective balance gap", "", lambda m: figure(m.effective_balance_gap)),
    ("race to halt", "", lambda m: "yes" if m.race_to_halt else "no"),
    ("constant power", "W", lambda m: figure(m.constant_w)),
    (
        "constant power at best efficiency",
        "% of energy",
        lambda m: figure(100 * (1 - m.flop_efficiency), 3),
    ),
    ("most power without a limit", "W", lambda m: figure(m.power_bounds_w[1])),
    ("power limit", "W", lambda m: NONE if m.power_limit_w is None else f"{m.power_limit_w:g}"),
    ("power limit is reached", "flop/byte", _range),
)
"""A row of the summary each: what it is, its unit, and its text."""


_PROGRAM: tuple[tuple[str, Callable[[RooflinePoint], str]], ...] = (
    ("program", lambda one: one.name),
    ("type", lambda one: one.width),
    (">flop/byte", lambda one: figure(one.intensity)),
    (">roof GFLOP/s", lambda one: figure(one.speed_ceiling_flops_s / 1e9)),
    (">roof GFLOP/J", lambda one: figure(one.efficiency_ceiling_flops_j / 1e9)),
    (">GFLOP/s", lambda one: figure(one.speed_flops_s, factor=1e-9)),
    (">GFLOP/J", lambda one: figure(one.efficiency_flops_j, factor=1e-9)),
    (">of speed", lambda one: percent(one.share_of_speed)),
    (">of efficiency", lambda one: percent(one.share_of_efficiency)),
    ("measured on", lambda one: one.card or NONE),
)
"""The columns of programs, the last five of those that were measured."""


def _programs_table(card: CardRoofline) -> Table:
    measured = any(one.time_s is not None for one in card.programs)
    columns = _PROGRAM if measured else _PROGRAM[:5]
    rows = ([of(one) for _, of in columns] for one in card.programs)
    return listing((title for title, _ in columns), rows)


def _points_table(points: list[MeasuredPoint]) -> Table:
    def ratio(measured: float | None, predicted: float) -> str:
        return NONE if measured is None else f"{measured / predicted:.3f}"

    titles = ("type", ">flop/byte", ">ms", ">time", ">mJ", ">energy", ">W", ">power", "")
    rows = (
        (
            one.width,
            f"{one.intensity:g}",
            milliseconds(one.time_s),
            ratio(one.time_s, one.predicted_s),
            milliseconds(one.energy_j),
            ratio(one.energy_j, one.predicted_j),
            figure(one.power_w),
            ratio(one.power_w, one.predicted_w),
            "power limit" if one.capped else "",
        )
        for one in points
    )
    return listing(titles, rows)


def _document(card: CardRoofline) -> dict[str, Any]:
    return {
        "gpu": card.profile.name,
        "title": card.profile.title,
        "calibrated": card.calibrated,
        "rooflines": {width: _machine(machine) for width, machine in card.machines.items()},
        "programs": [
            asdict(one)
            | {
                name: getattr(one, name)
                for name in ("intensity", "share_of_speed", "share_of_efficiency")
            }
            for one in card.programs
        ],
        "measured": [asdict(one) for one in card.measured_points()],
    }


def _machine(machine: EnergyRoofline) -> dict[str, Any]:
    low, high = capped_range(machine) or (None, None)

    def own(*names: str) -> dict[str, Any]:
        return {name: getattr(machine, name) for name in names}

    return {
        "flops_s": 1 / machine.flop_s,
        "bytes_s": 1 / machine.byte_s,
        **own("flop_j", "byte_j", "constant_w", "power_limit_w"),
        "best_flops_j": 1 / machine.least_flop_j,
        **own("time_balance", "energy_balance", "half_efficiency_intensity", "balance_gap"),
        **own("effective_balance_gap", "race_to_halt"),
        "constant_share": 1 - machine.flop_efficiency,
        "most_power_w": machine.power_bounds_w[1],
        "capped_from": low,
        # JSON has no infinity: no upper end is null
        "capped_to": None if high is None or math.isinf(high) else high,
    }
