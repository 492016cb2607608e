"""The energy roofline against Choi and Vuduc's figures, and its formulas against each other.

Tables, figures, sections and equations are those of *A roofline model of energy*.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.measurement.characterize.roofline import EnergyRoofline

KECKLER = EnergyRoofline(flops_s=515e9, bytes_s=144e9, flop_j=25e-12, byte_j=360e-12)
"""Table 2: a Fermi GPU without constant power."""


CONSTANT_W = st.just(0.0) | st.floats(1.0, 300.0)
MACHINES = st.builds(
    EnergyRoofline,
    flops_s=st.floats(1e11, 1e14),
    bytes_s=st.floats(1e11, 1e13),
    flop_j=st.floats(1e-12, 300e-12),
    byte_j=st.floats(1e-11, 1e-9),
    constant_w=CONSTANT_W,
)
WORK = st.floats(1.0, 1e18)
OF_BALANCE = st.floats(0.01, 100.0)
"""An intensity over the time balance."""

CLOSE = 1e-9
"""Relative: what rounding may change."""


def test_table_2_has_balances_of_3_6_and_14_4() -> None:
    assert KECKLER.time_balance == pytest.approx(3.6, abs=0.05)
    assert KECKLER.energy_balance == pytest.approx(14.4)


def test_power_of_figure_2b_is_four_and_five_times_that_of_flops() -> None:
    assert KECKLER.balance_gap == pytest.approx(4.0, abs=0.05)
    few, most = KECKLER.power_w([1e-9, KECKLER.time_balance]) / KECKLER.flop_power_w
    assert few == pytest.approx(KECKLER.balance_gap)
    assert most == pytest.approx(1 + KECKLER.balance_gap)


def test_power_falls_below_the_lower_bound_of_equation_8_where_energy_balance_is_above() -> None:
    """Eq. (8) is not a bound for table 2: with many flops per byte flops' own power is less."""
    many = float(KECKLER.power_w(1e6))
    assert many < KECKLER.flop_power_w * KECKLER.balance_gap
    assert many == pytest.approx(KECKLER.flop_power_w, rel=1e-4)


@given(machine=MACHINES, work=WORK, of_balance=OF_BALANCE)
def test_energy_of_equation_5_is_that_of_equation_4(
    machine: EnergyRoofline, work: float, of_balance: float
) -> None:
    moved_bytes = work / (of_balance * machine.time_balance)
    time_s = max(work * machine.flop_s, moved_bytes * machine.byte_s)
    energy_j = work * machine.flop_j + moved_bytes * machine.byte_j + machine.constant_w * time_s
    intensity = work / moved_bytes
    assert float(machine.time_s(work, intensity)) == pytest.approx(time_s, rel=CLOSE)
    assert float(machine.energy_j(work, intensity)) == pytest.approx(energy_j, rel=CLOSE)


@given(machine=MACHINES, of_balance=st.floats(1e-6, 1e6))
def test_power_stays_below_its_bound(machine: EnergyRoofline, of_balance: float) -> None:
    power_w = float(machine.power_w(of_balance * machine.time_balance))
    assert power_w <= machine.most_power_w * (1 + CLOSE)


@given(machine=MACHINES)
def test_half_of_the_best_efficiency_is_reached_where_intensity_is_effective_balance(
    machine: EnergyRoofline,
) -> None:
    half = machine.half_efficiency_intensity
    assert machine.efficiency_flops_j(half) == pytest.approx(0.5 / machine.least_flop_j, rel=CLOSE)


@given(machine=MACHINES)
def test_racing_to_halt_is_right_where_half_is_reached_before_the_time_balance(
    machine: EnergyRoofline,
) -> None:
    at_balance = machine.efficiency_flops_j(machine.time_balance) * machine.least_flop_j
    gap = machine.half_efficiency_intensity / machine.time_balance
    if gap < 1 - CLOSE:
        assert machine.race_to_halt
        assert at_balance >= 0.5
    if gap > 1 + CLOSE:
        assert not machine.race_to_halt
        assert at_balance < 0.5
