"""What a card's coefficients say of a program: its energy roofline, and where a program stands."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.cards.profile import GpuProfile
from eatss.cards.scaled import calibration_of
from eatss.measurement.assemble import CountedWork, count_work
from eatss.measurement.characterize.energy_roofline import EnergyRoofline
from eatss.measurement.characterize.power_limited_roofline import (
    PowerLimitedRoofline,
    Width,
    roofline_from_coefficients,
)
from eatss.measurement.launches import complete_sizes
from eatss.measurement.measurement import Measurement, measurement_from_dict
from eatss.program import load_program

WIDTH_OF_DTYPE: Mapping[str, Width] = {"float": "fp32", "double": "fp64"}

_MOST_BYTES = 64 << 20


def roofline_of(profile: GpuProfile, width: Width) -> EnergyRoofline:
    """Return the energy roofline of a card for multiply-adds of a width.

    A byte is one that is read from memory: its way through L2 and L1 is paid too. The power limit
    is the profile's ``tdp_w``. A card without a calibration gets scaled coefficients
    (:mod:`eatss.cards.scaled`), which are guesses.

    Raises:
        InputError: ``EATSS-B033``, the coefficients make no machine, as where a price is zero.
    """
    try:
        return roofline_from_coefficients(
            calibration_of(profile), width, profile.sm_count, profile.tdp_w
        )
    except ValueError as error:
        raise input_error(
            "EATSS-B033",
            f"the coefficients of '{profile.name}' make no roofline: {error}",
            hint="characterise the card again, or mend its profile",
        ) from None


def capped_range(machine: EnergyRoofline) -> tuple[float, float] | None:
    """Return the intensities in flop/byte between which a card would draw more than its limit.

    Power rises up to B_τ and falls beyond it [Choi and Vuduc, section 3, eq. (7)]. The first is 0
    where bytes alone draw too much, the second infinite where flops alone do. ``None``: the limit
    is not reached, or there is none.
    """
    limit_w = machine.power_limit_w
    if limit_w is None or machine.power_bounds_w[1] <= limit_w:
        return None
    left_w = limit_w - machine.constant_w
    byte_power_w = machine.byte_j / machine.byte_s
    low = machine.time_balance * (left_w - byte_power_w) / machine.flop_power_w
    beside_flops_w = left_w - machine.flop_power_w
    high = (
        machine.flop_power_w * machine.energy_balance / beside_flops_w
        if beside_flops_w > 0
        else math.inf
    )
    return max(0.0, low), high


def power_limited_roofline_of(profile: GpuProfile, width: Width) -> PowerLimitedRoofline:
    """Return :func:`roofline_of` with clocks that follow the power limit.

    Raises:
        InputError: ``EATSS-B033``, the coefficients make no machine.
    """
    return PowerLimitedRoofline.of(calibration_of(profile), roofline_of(profile, width))


@frozen
class RooflinePoint:
    """A program at its intensity under the roofs of a card.

    ``least_bytes`` is every element read once and every one written once, so the intensity is the
    highest that code without redundant traffic has. ``speed_ceiling_flops_s`` and
    ``efficiency_ceiling_flops_j`` are the roofline and the arch line there, without a power limit.
    ``time_s`` and ``energy_j`` are of a measured run on ``card``, ``None`` if nothing was measured.
    """

    name: str
    width: Width
    flops: float
    least_bytes: float
    speed_ceiling_flops_s: float
    efficiency_ceiling_flops_j: float
    time_s: float | None = None
    energy_j: float | None = None
    card: str | None = None

    @property
    def intensity(self) -> float:
        """Flops for each of the least bytes, in flop/byte."""
        return self.flops / self.least_bytes

    @property
    def speed_flops_s(self) -> float | None:
        """Flop per second that were reached."""
        return None if self.time_s is None else self.flops / self.time_s

    @property
    def efficiency_flops_j(self) -> float | None:
        """Flop per joule that were reached."""
        return None if self.energy_j is None else self.flops / self.energy_j

    @property
    def share_of_speed(self) -> float | None:
        """The share of the roof that was reached in time."""
        return _share(self.speed_flops_s, self.speed_ceiling_flops_s)

    @property
    def share_of_efficiency(self) -> float | None:
        """The share of the roof that was reached in energy."""
        return _share(self.efficiency_flops_j, self.efficiency_ceiling_flops_j)


def _share(reached: float | None, ceiling: float) -> float | None:
    return None if reached is None else reached / ceiling


def roofline_points_of(source: Path, profile: GpuProfile) -> tuple[RooflinePoint, ...]:
    """Place what a path holds: a folder of ``eatss codegen``, or what ``eatss measure`` wrote.

    A folder stands at the sizes that are its defaults.

    Raises:
        InputError: ``EATSS-B030`` a measurement has no time or no energy, ``EATSS-B031`` the path
            is neither, ``EATSS-B032`` its flops or bytes are not known. Codes of a damaged folder
            (``EATSS-V002``, ``V003``) or measurement (``EATSS-E070``, ``E071``) stay.
    """
    if source.is_dir():
        return (_placed_folder(source, profile),)
    return tuple(_placed_measurement(one, profile, source) for one in _measurements(source))


def _placed_folder(folder: Path, profile: GpuProfile) -> RooflinePoint:
    program = load_program(folder)
    work = count_work(program, complete_sizes(program, {}))
    return _placed(program.name, program.dtype, work, profile, folder)


def _placed_measurement(found: Measurement, profile: GpuProfile, source: Path) -> RooflinePoint:
    name = found.program
    if found.variant:
        name = found.variant if found.variant.startswith(name) else f"{name} {found.variant}"
    for what, value in (("time", found.time_s), ("energy", found.energy_j)):
        if not value:
            reasons = [one.reason for one in found.missing if one.what.startswith(what)]
            why = "; ".join(reasons) or found.reason or f"its status is {found.status}"
            raise input_error(
                "EATSS-B030",
                f"'{source}' has no {what} of '{name}': {why}",
                hint="measure it again where the meter works, or give the program's folder",
            )
    return replace(
        _placed(name, found.dtype, found, profile, source),
        time_s=found.time_s,
        energy_j=found.energy_j,
        card=None if found.device is None else found.device.name,
    )


def _placed(
    name: str, dtype: str, work: CountedWork | Measurement, profile: GpuProfile, source: Path
) -> RooflinePoint:
    width, flops, least_bytes = WIDTH_OF_DTYPE.get(dtype), work.flops, work.least_bytes
    if not flops or not least_bytes or width is None:
        reason = "; ".join(sorted({one.reason for one in work.missing}))
        if width is None:
            reason = f"it computes in {dtype}"
        elif flops == 0:
            reason = "it does no floating-point operation"
        raise input_error(
            "EATSS-B032",
            f"'{name}' in '{source}' has no intensity: {reason or 'nothing counts its work'}",
            hint="generate the program again; loops with sizes that are known are counted",
        )
    machine, intensity = roofline_of(profile, width), flops / least_bytes
    return RooflinePoint(
        name=name,
        width=width,
        flops=float(flops),
        least_bytes=float(least_bytes),
        speed_ceiling_flops_s=float(machine.speed_flops_s(intensity)),
        efficiency_ceiling_flops_j=float(machine.efficiency_flops_j(intensity)),
    )


def _measurements(path: Path) -> tuple[Measurement, ...]:
    listed: object = None
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        why = "its JSON is no object"
        if isinstance(document, Mapping):
            why = "its JSON holds no measurement"
            listed = document.get("measurements", [document] if "time_s" in document else None)
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError):
        why = "it is no JSON"
    if not isinstance(listed, list) or not listed:
        raise input_error(
            "EATSS-B031",
            f"'{path}' is neither a folder of a program nor a measurement: {why}",
            hint="make one with `eatss codegen FILE.c -o DIR` or `eatss measure DIR --format json`",
        )
    return tuple(map(measurement_from_dict, listed))
