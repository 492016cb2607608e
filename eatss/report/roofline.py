"""What ``eatss roofline`` prints: a card's balances, measured points and programs beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.characterize.energy_roofline import EnergyRoofline
from eatss.characterize.power_limited_roofline import Width
from eatss.characterize.result import Record, Result
from eatss.characterize.roofline_points import (
    RooflinePoint,
    capped_range,
    power_limited_roofline_of,
    roofline_of,
)
from eatss.frozen import frozen
from eatss.gpu.profile import GpuProfile
from eatss.report.card_plots import Roofs
from eatss.report.expectation import uncalibrated
from eatss.report.render import NONE, figure, indented_table, render


@frozen
class MeasuredPoint:
    """A point of the intensity sweep beside what the model says, the power limit heeded.

    Times are of one repeat. Predictions are those of
    :class:`~eatss.characterize.power_limited_roofline.PowerLimitedRoofline`.
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

    def machine(self, width: Width) -> EnergyRoofline:
        """Return the machine of a width.

        Raises:
            InputError: ``EATSS-B033``, the coefficients make none.
        """
        return roofline_of(self.profile, width)

    def results(self, width: Width) -> tuple[Result, ...]:
        """Return the points of the record's intensity group in a width."""
        found = () if self.record is None else self.record.of("intensity")
        return tuple(one for one in found if one.name.startswith(width))

    def roofs(self) -> tuple[Roofs, ...]:
        """Return what is to be drawn, a width a row."""
        return tuple(
            Roofs(
                title=width,
                machine=self.machine(width),
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


def measured_points(card: CardRoofline) -> tuple[MeasuredPoint, ...]:
    """Return the points of a record that do a flop, with what the model says of each."""
    found = []
    for width in card.widths:
        machine = power_limited_roofline_of(card.profile, width)
        for one in card.results(width):
            if not one.flops:
                continue
            intensity = one.flops / one.useful_bytes
            found.append(
                MeasuredPoint(
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
            )
    return tuple(found)


def render_roofline(card: CardRoofline, output: str) -> str:
    """Return a card's rooflines as ``table`` or ``json``."""
    if output == "json":
        return json.dumps(_document(card), indent=2, ensure_ascii=False) + "\n"
    head = Text(card.profile.title, style="bold")
    machines = {width: card.machine(width) for width in card.widths}
    parts: list[RenderableType] = [head, "", _summary(machines), ""]
    parts += [f"{width}: {_race(machine)}" for width, machine in machines.items()]
    if card.programs:
        parts += ["", _programs_table(card.programs)]
        if any(one.time_s is not None for one in card.programs):
            parts += [
                "shares are of the roofline and the arch line at full clock, for the least bytes "
                "that a program can move; lower clocks may exceed the arch line"
            ]
    if card.record is not None:
        points = measured_points(card)
        where = f"measured on {card.record.subject.name}"
        if points:
            parts += ["", f"{where}, over predicted:", _points_table(points)]
        else:
            parts += ["", f"{where}: the record holds no point of the intensity sweep"]
    if not card.calibrated:
        parts += ["", uncalibrated(card.profile.name)]
    return render(*parts)


def _summary(machines: dict[Width, EnergyRoofline]) -> Table:
    table = indented_table("", *machines, "", numbers=tuple(machines))
    for name, unit, value in _ROWS:
        table.add_row(name, *(value(machine) for machine in machines.values()), unit)
    return table


def _share_at_best(machine: EnergyRoofline) -> str:
    return figure(100 * (1 - machine.flop_efficiency), 3)


def _most_w(machine: EnergyRoofline) -> str:
    return figure(machine.power_bounds_w[1], 4)


def _cap(machine: EnergyRoofline) -> str:
    return NONE if machine.power_limit_w is None else f"{machine.power_limit_w:g}"


def _range(machine: EnergyRoofline) -> str:
    found = capped_range(machine)
    if found is None:
        return "nowhere"
    low, high = found
    if low == 0 and math.isinf(high):
        return "everywhere"
    if math.isinf(high):
        return f"from {figure(low, 3)}"
    return f"{figure(low, 3)} to {figure(high, 3)}" if low else f"to {figure(high, 3)}"


_ROWS = (
    ("peak", "GFLOP/s", lambda m: figure(1e-9 / m.flop_s, 5)),
    ("bandwidth of memory", "GB/s", lambda m: figure(1e-9 / m.byte_s, 4)),
    ("energy of a flop", "pJ", lambda m: figure(1e12 * m.flop_j, 4)),
    ("energy of a byte from memory", "pJ", lambda m: figure(1e12 * m.byte_j, 4)),
    ("best efficiency", "GFLOP/J", lambda m: figure(1e-9 / m.least_flop_j, 4)),
    ("time balance", "flop/byte", lambda m: figure(m.time_balance, 4)),
    ("energy balance", "flop/byte", lambda m: figure(m.energy_balance, 4)),
    (
        "effective balance (half efficiency)",
        "flop/byte",
        lambda m: figure(m.half_efficiency_intensity, 4),
    ),
    ("balance gap", "", lambda m: figure(m.balance_gap, 4)),
    ("effective balance gap", "", lambda m: figure(m.effective_balance_gap, 4)),
    ("race to halt", "", lambda m: "yes" if m.race_to_halt else "no"),
    ("constant power", "W", lambda m: figure(m.constant_w, 4)),
    ("constant power at best efficiency", "% of energy", _share_at_best),
    ("most power without a limit", "W", _most_w),
    ("power limit", "W", _cap),
    ("power limit is reached", "flop/byte", _range),
)


def _race(machine: EnergyRoofline) -> str:
    """Return what the balances mean for someone who tunes code."""
    balance = figure(machine.time_balance, 3)
    half = figure(machine.half_efficiency_intensity, 3)
    if machine.race_to_halt:
        return (
            f"race to halt pays: code that arithmetic bounds in time (from {balance} flop/byte) "
            "reaches at least half of the best efficiency."
        )
    return (
        f"race to halt does not pay everywhere: between {balance} and {half} flop/byte arithmetic "
        "bounds the time, yet bytes take most of the energy. There, move less."
    )


def _programs_table(programs: Sequence[RooflinePoint]) -> Table:
    measured = any(one.time_s is not None for one in programs)
    numbers = ["flop/byte", "roof GFLOP/s", "roof GFLOP/J"]
    if measured:
        numbers += ["GFLOP/s", "GFLOP/J", "of speed", "of efficiency"]
    names = ["program", "type", *numbers, *(["measured on"] if measured else [])]
    table = indented_table(*names, numbers=tuple(numbers))
    for one in programs:
        row = [
            one.name,
            one.width,
            figure(one.intensity),
            figure(one.speed_ceiling_flops_s / 1e9),
            figure(one.efficiency_ceiling_flops_j / 1e9),
        ]
        if measured:
            row += [
                _giga(one.speed_flops_s),
                _giga(one.efficiency_flops_j),
                _percent(one.share_of_speed),
                _percent(one.share_of_efficiency),
                one.card or NONE,
            ]
        table.add_row(*row)
    return table


def _points_table(points: Sequence[MeasuredPoint]) -> Table:
    numbers = ("flop/byte", "ms", "time", "mJ", "energy", "W", "power")
    table = indented_table("type", *numbers, "", numbers=numbers)
    for one in points:
        table.add_row(
            one.width,
            f"{one.intensity:g}",
            figure(1e3 * one.time_s),
            _ratio(one.time_s, one.predicted_s),
            figure(None if one.energy_j is None else 1e3 * one.energy_j),
            _ratio(one.energy_j, one.predicted_j),
            figure(one.power_w),
            _ratio(one.power_w, one.predicted_w),
            "power limit" if one.capped else "",
        )
    return table


def _ratio(measured: float | None, predicted: float) -> str:
    return NONE if measured is None else f"{measured / predicted:.3f}"


def _giga(value: float | None) -> str:
    return figure(None if value is None else value / 1e9)


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f} %"


def _document(card: CardRoofline) -> dict[str, Any]:
    return {
        "gpu": card.profile.name,
        "title": card.profile.title,
        "calibrated": card.calibrated,
        "rooflines": {width: _machine(card.machine(width)) for width in card.widths},
        "programs": [_placed(one) for one in card.programs],
        "measured": [asdict(one) for one in measured_points(card)],
    }


def _machine(machine: EnergyRoofline) -> dict[str, Any]:
    capped = capped_range(machine)
    return {
        "flops_s": 1 / machine.flop_s,
        "bytes_s": 1 / machine.byte_s,
        "flop_j": machine.flop_j,
        "byte_j": machine.byte_j,
        "constant_w": machine.constant_w,
        "power_limit_w": machine.power_limit_w,
        "best_flops_j": 1 / machine.least_flop_j,
        "time_balance": machine.time_balance,
        "energy_balance": machine.energy_balance,
        "half_efficiency_intensity": machine.half_efficiency_intensity,
        "balance_gap": machine.balance_gap,
        "effective_balance_gap": machine.effective_balance_gap,
        "race_to_halt": machine.race_to_halt,
        "constant_share": 1 - machine.flop_efficiency,
        "most_power_w": machine.power_bounds_w[1],
        # JSON has no infinity: no upper end is null
        "capped_from": None if capped is None else capped[0],
        "capped_to": None if capped is None or math.isinf(capped[1]) else capped[1],
    }


def _placed(one: RooflinePoint) -> dict[str, Any]:
    return asdict(one) | {
        "intensity": one.intensity,
        "share_of_speed": one.share_of_speed,
        "share_of_efficiency": one.share_of_efficiency,
    }
