"""What ``eatss characterize`` and ``eatss roofline`` print: what was measured of a card, balances.

Columns of arithmetic and memory are those of MIPP, Tables I to IV.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import nan
from typing import NamedTuple

from eatss.base.codec import JsonObject
from eatss.base.frozen import frozen
from eatss.cards.document import calibration_to_document
from eatss.cards.match import CLOCK_SHARES, calibration_of
from eatss.cards.profile import Calibration, GpuProfile
from eatss.measurement.characterize.arithmetic import peak_per_cycle
from eatss.measurement.characterize.benchmark import Record, Result, Width
from eatss.measurement.characterize.fit import EnergyFit, Residual
from eatss.measurement.characterize.roofline import (
    RooflinePoint,
    power_limited_roofline_of,
    roofline_of,
)
from eatss.report.card_plots import Roofs
from eatss.report.pages import page
from eatss.report.render import render

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


def worst_residuals(fit: EnergyFit) -> list[Residual]:
    """Return the residuals, the largest first."""
    return sorted(fit.residuals, key=lambda one: -abs(one.share))


def render_characterisation(
    record: Record, fit: EnergyFit, calibration: Calibration, output: str
) -> str:
    """Return the tables of a record and of the calibration it is part of, or the latter as JSON."""
    if output == "json":
        return json.dumps(calibration_to_document(calibration), indent=2) + "\n"
    clock_mhz = calibration.value("clock_mhz") or fit.top_clock_mhz
    known = {"record": record, "fit": fit, "calibration": calibration, "clock_mhz": clock_mhz}
    return render(*page("characterisation", **known))


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
                row.title: {name: getattr(row.machine, name) for name in _MACHINE} for row in roofs
            },
            "clocks": clocks,
            "programs": [
                asdict(one) | {name: getattr(one, name) for name in shares} for one in card.programs
            ],
            "measured": points,
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return render(
        *page(
            "roofline",
            profile=profile,
            roofs=roofs,
            clocks=clocks,
            programs=card.programs,
            record=card.record,
            points=points,
        )
    )


_MACHINE = (
    "flops_s",
    "bytes_s",
    "flop_j",
    "byte_j",
    "constant_w",
    "power_limit_w",
    "best_flops_j",
    "time_balance",
    "energy_balance",
    "half_efficiency_intensity",
    "balance_gap",
    "race_to_halt",
    "most_power_w",
)
"""The figures of a machine, as JSON has them."""
