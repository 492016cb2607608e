"""A card's energy roofline from its coefficients, and programs placed under it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.cards import load_profile
from eatss.cards.match import CLOCK_SHARES
from eatss.measurement.characterize.arithmetic import peak_per_cycle
from eatss.measurement.characterize.benchmark import read_record
from eatss.measurement.characterize.roofline import (
    EnergyRoofline,
    PowerLimitedRoofline,
    power_limited_roofline_of,
    roofline_of,
    roofline_points_of,
)
from eatss.measurement.measurement import measurement_to_dict
from tests.refusals import refusing
from tests.report.measurements import measured

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "h200"
H200 = load_profile("h200")
GEMM = ROOT / "tests" / "measurement" / "programs" / "gemm"
INTENSITIES = np.geomspace(0.05, 1000, 61)

ENTIRE = 1e4
"""An exponent at which times overlap entirely."""

UNLIMITED = EnergyRoofline(flops_s=1e12, bytes_s=1e11, flop_j=1e-10, byte_j=5e-10, constant_w=50)


def test_peaks_of_the_h200_are_what_its_calibration_multiplies_to() -> None:
    coefficients = H200.calibration
    assert coefficients is not None
    machine = roofline_of(H200, "fp64")
    per_cycle = coefficients.value("fp64_per_cycle")
    clock_hz = 1e6 * (coefficients.value("clock_mhz") or 0)
    assert clock_hz == pytest.approx(1980e6, rel=1e-3)
    assert per_cycle is not None
    assert 1 / machine.flop_s == pytest.approx(per_cycle * 2 * 132 * clock_hz)
    assert 1e-9 / machine.byte_s == pytest.approx(coefficients.value("dram_read_gb_s"))
    assert machine.constant_w == coefficients.value("constant_w")
    assert machine.power_limit_w == H200.tdp_w


def test_a_profile_whose_coefficients_make_no_machine_is_refused() -> None:
    with refusing("EATSS-B030", "constant_w"):
        roofline_of(replace(H200, tdp_w=100.0), "fp64")


def test_lower_clocks_keep_to_the_limit_in_less_time_and_energy_than_a_full_clock() -> None:
    lowered = replace(power_limited_roofline_of(H200, "fp64"), overlap=ENTIRE)
    machine, limit_w = lowered.machine, lowered.machine.power_limit_w
    assert limit_w is not None
    power_w = lowered.power_w(INTENSITIES)
    held = lowered.clock(INTENSITIES) < 1
    assert held.any()
    assert (power_w <= limit_w * (1 + 1e-9)).all()
    assert power_w[held] == pytest.approx(limit_w)
    assert power_w[~held] == pytest.approx(machine.power_w(INTENSITIES[~held]))
    free_s = machine.time_s(1.0, INTENSITIES)
    dynamic_j = machine.energy_j(1.0, INTENSITIES) - machine.constant_w * free_s
    full_s = np.maximum(free_s, dynamic_j / (limit_w - machine.constant_w))
    full_j = dynamic_j + machine.constant_w * full_s
    assert (lowered.time_s(1.0, INTENSITIES) <= full_s * (1 + 1e-9)).all()
    assert (lowered.energy_j(1.0, INTENSITIES) <= full_j * (1 + 1e-9)).all()


@given(st.sampled_from(("h200", "v100")), st.sampled_from(CLOCK_SHARES), st.floats(0.01, 1000.0))
def test_a_card_that_is_held_to_a_clock_takes_what_a_power_limit_that_lowers_it_so_far_does(
    name: str, share: float, intensity: float
) -> None:
    """Of coefficients at a clock, and of the formula for lower clocks, comes the same."""
    card = replace(load_profile(name), tdp_w=None)
    free = power_limited_roofline_of(card, "fp64")
    at = np.array([intensity]), np.array([share])
    wanted_s, wanted_j = (float(one[0]) for one in free._at(*at))
    held = power_limited_roofline_of(replace(card, clock_share=share), "fp64")
    assert float(held.time_s(1.0, intensity)) == pytest.approx(wanted_s)
    assert float(held.energy_j(1.0, intensity)) == pytest.approx(wanted_j)
    limit_w = wanted_j / wanted_s
    limited = replace(free, machine=replace(free.machine, power_limit_w=limit_w))
    assert float(limited.energy_j(1.0, intensity)) == pytest.approx(wanted_j, rel=1e-5)


@given(st.floats(0.01, 1000.0), st.floats(1.0, 16.0), st.floats(1.0, 16.0))
def test_times_are_joined_between_the_longer_one_and_their_sum(
    intensity: float, overlap: float, more: float
) -> None:
    some = PowerLimitedRoofline(
        machine=UNLIMITED, memory_byte_j=0, voltage_floor=0.3, overlap=overlap
    )
    time_s = float(some.time_s(1.0, intensity))
    longer_s = float(UNLIMITED.time_s(1.0, intensity))
    sum_s = UNLIMITED.flop_s + UNLIMITED.byte_s / intensity
    assert longer_s * (1 - 1e-9) <= time_s <= sum_s * (1 + 1e-9)
    tighter = replace(some, overlap=overlap + more)
    assert float(tighter.time_s(1.0, intensity)) <= time_s * (1 + 1e-9)
    adding = replace(some, overlap=1.0)
    assert float(adding.time_s(1.0, intensity)) == pytest.approx(sum_s)


def test_a_program_stands_at_its_flops_over_its_least_bytes() -> None:
    (found,) = roofline_points_of(GEMM, H200)
    machine = roofline_of(H200, found.width)
    assert found.flops > 0
    assert found.intensity == found.flops / found.least_bytes
    assert found.speed_ceiling_flops_s == float(machine.speed_flops_s(found.intensity))
    assert found.efficiency_ceiling_flops_j == float(machine.efficiency_flops_j(found.intensity))
    assert (found.time_s, found.share_of_speed, found.share_of_efficiency) == (None, None, None)


def saved(tmp_path: Path, document: Any) -> Path:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_measurement_reaches_a_share_of_each_roof(tmp_path: Path) -> None:
    gemm = measured()
    assert gemm.flops
    assert gemm.time_s
    assert gemm.energy_j
    one = measurement_to_dict(gemm)
    for document in (one, {"measurements": [one]}):
        (found,) = roofline_points_of(saved(tmp_path, document), H200)
        speed = gemm.flops / gemm.time_s
        efficiency = gemm.flops / gemm.energy_j
        assert found.share_of_speed == pytest.approx(speed / found.speed_ceiling_flops_s)
        assert found.share_of_efficiency == pytest.approx(
            efficiency / found.efficiency_ceiling_flops_j
        )


def test_only_integer_additions_exceed_what_is_specified() -> None:
    record = read_record(RESULTS / "characterize-1.jsonl")
    above = []
    for one in record.of("arithmetic"):
        specified = peak_per_cycle(one.name, 90)
        if specified is None or not one.sm_clock_mhz:
            continue
        rate = one.operations / (one.time_s * one.sm_clock_mhz * 1e6 * record.subject.sm_count)
        if rate > 1.01 * specified:
            above.append(one.name)
    assert above == ["int32 add"]
