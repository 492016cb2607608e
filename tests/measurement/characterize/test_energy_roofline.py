"""The energy roofline against Choi and Vuduc's figures, and its formulas against each other.

Tables, figures, sections and equations are those of *A roofline model of energy*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.measurement.characterize.energy_roofline import (
    EnergyRoofline,
    TradeOff,
    cache_byte_j,
    energy_j_of_levels,
    work_limit,
)

KECKLER = EnergyRoofline.from_rates(flops_s=515e9, bytes_s=144e9, flop_pj=25, byte_pj=360)
"""Table 2: a Fermi GPU without constant power."""

PLATFORMS = {
    ("GTX 580", "single"): EnergyRoofline.from_rates(
        flops_s=1581.06e9, bytes_s=192.4e9, flop_pj=99.7, byte_pj=513, constant_w=122
    ),
    ("GTX 580", "double"): EnergyRoofline.from_rates(
        flops_s=197.63e9, bytes_s=192.4e9, flop_pj=212, byte_pj=513, constant_w=122
    ),
    ("GTX 680", "single"): EnergyRoofline.from_rates(
        flops_s=3532.8e9, bytes_s=192.2e9, flop_pj=43.2, byte_pj=437.5, constant_w=66.37
    ),
    ("GTX 680", "double"): EnergyRoofline.from_rates(
        flops_s=147.2e9, bytes_s=192.2e9, flop_pj=262.9, byte_pj=437.5, constant_w=66.37
    ),
    ("i7-950", "single"): EnergyRoofline.from_rates(
        flops_s=106.56e9, bytes_s=25.6e9, flop_pj=371, byte_pj=795, constant_w=122
    ),
    ("i7-950", "double"): EnergyRoofline.from_rates(
        flops_s=53.28e9, bytes_s=25.6e9, flop_pj=670, byte_pj=795, constant_w=122
    ),
}
"""Peaks of table 3 with the energies of table 4."""

GPUS = ("GTX 580", "GTX 680")

CONSTANT_W = st.just(0.0) | st.floats(1.0, 300.0)
MACHINES = st.builds(
    EnergyRoofline.from_rates,
    flops_s=st.floats(1e11, 1e14),
    bytes_s=st.floats(1e11, 1e13),
    flop_pj=st.floats(1.0, 300.0),
    byte_pj=st.floats(10.0, 1000.0),
    constant_w=CONSTANT_W,
)
WORK = st.floats(1.0, 1e18)
OF_BALANCE = st.floats(0.01, 100.0)
"""An intensity over the time balance."""

FACTORS = st.floats(1.0, 20.0)
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


@pytest.mark.parametrize(
    ("gpu", "reached_flops_s", "said"), [("GTX 580", 1.4e12, 0.55), ("GTX 680", 3.0e12, 0.69)]
)
def test_flops_take_the_share_of_energy_that_the_paper_says_in_single_precision(
    gpu: str, reached_flops_s: float, said: float
) -> None:
    """5.5 does not say at what rate: its shares lie between those at peak and at the rate of 4.2.

    At peak they are 56.4 % and 69.7 %, at the rate reached 53.4 % and 66.2 %. In double precision
    they would be 25.6 % and 36.8 %.
    """
    at_peak = PLATFORMS[gpu, "single"]
    as_reached = replace(at_peak, flop_s=1 / reached_flops_s)
    assert as_reached.flop_efficiency < said < at_peak.flop_efficiency
    assert at_peak.flop_efficiency == pytest.approx(said, abs=0.015)
    assert PLATFORMS[gpu, "double"].flop_efficiency < 0.4


def test_power_falls_below_the_lower_bound_of_equation_8_where_energy_balance_is_above() -> None:
    """Eq. (8) is not a bound for table 2: with many flops per byte flops' own power is less."""
    many = float(KECKLER.power_w(1e6))
    assert many < KECKLER.flop_power_w * KECKLER.balance_gap
    assert many == pytest.approx(KECKLER.flop_power_w, rel=1e-4)
    assert KECKLER.power_bounds_w[0] == pytest.approx(KECKLER.flop_power_w)


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
def test_power_stays_within_its_bounds(machine: EnergyRoofline, of_balance: float) -> None:
    power_w = float(machine.power_w(of_balance * machine.time_balance))
    least_w, most_w = machine.power_bounds_w
    assert least_w * (1 - CLOSE) <= power_w <= most_w * (1 + CLOSE)


@given(machine=MACHINES)
def test_half_of_the_best_efficiency_is_reached_where_intensity_is_effective_balance(
    machine: EnergyRoofline,
) -> None:
    half = machine.half_efficiency_intensity
    assert machine.effective_energy_balance(half) == pytest.approx(half, rel=CLOSE)
    assert machine.efficiency_flops_j(half) == pytest.approx(0.5 / machine.least_flop_j, rel=CLOSE)


@given(machine=MACHINES)
def test_racing_to_halt_is_right_where_the_effective_gap_is_below_one(
    machine: EnergyRoofline,
) -> None:
    at_balance = machine.efficiency_flops_j(machine.time_balance) * machine.least_flop_j
    if machine.effective_balance_gap < 1 - CLOSE:
        assert machine.race_to_halt
        assert at_balance >= 0.5
    if machine.effective_balance_gap > 1 + CLOSE:
        assert not machine.race_to_halt
        assert at_balance < 0.5


@given(machine=MACHINES, work=WORK, of_balance=OF_BALANCE, headroom=st.floats(0.01, 1.5))
def test_a_power_limit_is_kept_and_changes_nothing_below_it(
    machine: EnergyRoofline, work: float, of_balance: float, headroom: float
) -> None:
    intensity = of_balance * machine.time_balance
    free_w = float(machine.power_w(intensity))
    limit_w = machine.constant_w + headroom * (free_w - machine.constant_w)
    capped = replace(machine, power_limit_w=limit_w)
    time_s = capped.capped_time_s(work, intensity)
    energy_j = capped.capped_energy_j(work, intensity)
    power_w = float(capped.capped_power_w(intensity))
    assert power_w <= limit_w
    assert power_w == pytest.approx(energy_j / time_s, rel=CLOSE)
    assert time_s >= machine.time_s(work, intensity)
    if free_w < limit_w * (1 - CLOSE):
        assert time_s == machine.time_s(work, intensity)
        assert energy_j == pytest.approx(machine.energy_j(work, intensity), rel=CLOSE)
        assert power_w == free_w
    if free_w > limit_w * (1 + CLOSE):
        assert power_w == limit_w
        assert time_s > machine.time_s(work, intensity)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"flop_s": 0.0}, "flop_s has to be positive"),
        ({"byte_s": -1.0}, "byte_s has to be positive"),
        ({"flop_j": math.nan}, "flop_j has to be positive"),
        ({"byte_j": math.inf}, "byte_j has to be positive and finite"),
        ({"constant_w": -1.0}, "constant_w has to be finite and at least 0"),
        ({"constant_w": math.nan}, "constant_w has to be finite and at least 0"),
        ({"power_limit_w": math.inf}, "power_limit_w has to be positive and finite"),
        ({"power_limit_w": 122.0}, "122.0 W is not above 122 W"),
    ],
)
def test_costs_that_cannot_be_are_refused(wrong: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(PLATFORMS["GTX 580", "single"], **wrong)


@pytest.mark.parametrize("intensity", [0.0, -1.0, math.nan, [1.0, 0.0]])
def test_an_intensity_that_is_not_positive_is_refused(intensity: float | list[float]) -> None:
    with pytest.raises(ValueError, match="intensity has to be positive"):
        KECKLER.power_w(intensity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """Picojoules of a byte of L1 (or shared memory) and of L2."""

    l1_pj: float
    l2_pj: float


TABLE_5 = {"GTX 680": Caches(l1_pj=51, l2_pj=195), "GTX 580": Caches(l1_pj=149, l2_pj=257)}


@pytest.mark.parametrize("gpu", GPUS)
def test_energy_of_a_cache_byte_is_found_again(gpu: str) -> None:
    """Eqs. (11) and (12) undo eq. (10), for the caches of table 5."""
    machine, caches = PLATFORMS[gpu, "single"], TABLE_5[gpu]
    flops, time_s = 1e10, 0.7
    memory_bytes, l2_bytes, l1_bytes = 2e9, 3e10, 4e11
    l2_j, l1_j = 1e-12 * caches.l2_pj, 1e-12 * caches.l1_pj

    def energy_j(moved: tuple[float, ...], joules: tuple[float, ...]) -> float:
        return energy_j_of_levels(
            flops=flops,
            flop_j=machine.flop_j,
            bytes_by_level=moved,
            joules_by_level=joules,
            constant_w=machine.constant_w,
            time_s=time_s,
        )

    def byte_j(
        total_j: float, cache_bytes: float, moved: tuple[float, ...], joules: tuple[float, ...]
    ) -> float:
        known_j = energy_j(moved, joules)
        return cache_byte_j(energy_j=total_j, known_j=known_j, cache_bytes=cache_bytes)

    in_l2_j = energy_j((memory_bytes, l2_bytes), (machine.byte_j, l2_j))
    found_l2_j = byte_j(in_l2_j, l2_bytes, (memory_bytes,), (machine.byte_j,))
    assert found_l2_j == pytest.approx(l2_j)
    in_l1_j = energy_j((memory_bytes, l2_bytes, l1_bytes), (machine.byte_j, l2_j, l1_j))
    found_l1_j = byte_j(in_l1_j, l1_bytes, (memory_bytes, l2_bytes), (machine.byte_j, found_l2_j))
    assert found_l1_j == pytest.approx(l1_j)
    assert byte_j(0.0, l2_bytes, (memory_bytes,), (machine.byte_j,)) < 0


@given(machine=MACHINES, of_balance=OF_BALANCE, f=FACTORS, m=FACTORS)
def test_speedup_and_greenup_compare_both_algorithms(
    machine: EnergyRoofline, of_balance: float, f: float, m: float
) -> None:
    """Eqs. (15), (16) and (26) against eqs. (3) and (5) at ``fW`` flops and intensity ``fmI``."""
    intensity = of_balance * machine.time_balance
    trade_off = TradeOff(work_factor=f, traffic_factor=m)
    speedup = machine.time_s(1e12, intensity) / machine.time_s(f * 1e12, f * m * intensity)
    greenup = machine.energy_j(1e12, intensity) / machine.energy_j(f * 1e12, f * m * intensity)
    assert trade_off.speedup(machine, intensity) == pytest.approx(speedup, rel=CLOSE)
    assert trade_off.greenup(machine, intensity) == pytest.approx(greenup, rel=CLOSE)


@given(machine=MACHINES, of_balance=st.floats(0.01, 10.0), m=st.floats(1.05, 20.0))
def test_energy_is_saved_exactly_below_the_work_limit(
    machine: EnergyRoofline, of_balance: float, m: float
) -> None:
    """Eq. (27): not only necessary but sufficient."""
    intensity = of_balance * machine.time_balance
    slack = float(work_limit(machine, intensity, m)) - 1
    assert slack > 0
    below = TradeOff(work_factor=1 + 0.99 * slack, traffic_factor=m)
    above = TradeOff(work_factor=1 + 1.01 * slack, traffic_factor=m)
    assert below.greenup(machine, intensity) > 1 > above.greenup(machine, intensity)
    assert below.saves_energy(machine, intensity)
    assert not above.saves_energy(machine, intensity)


@given(machine=MACHINES, of_balance=OF_BALANCE, f=FACTORS, m=FACTORS)
def test_the_work_limit_satisfies_equation_27(
    machine: EnergyRoofline, of_balance: float, f: float, m: float
) -> None:
    intensity = of_balance * machine.time_balance
    limit = float(work_limit(machine, intensity, m))
    old = machine.effective_energy_balance(intensity) / intensity
    new = machine.effective_energy_balance(limit * m * intensity) / (m * intensity)
    rounding = 8 * np.finfo(float).eps * float(old)  # of a difference of two numbers as large
    assert limit == pytest.approx(float(1 + old - new), rel=CLOSE, abs=rounding)
    assert limit <= work_limit(machine, intensity) * (1 + CLOSE)


@given(machine=MACHINES, of_balance=OF_BALANCE)
def test_without_traffic_the_work_limit_is_that_of_equations_28_and_29(
    machine: EnergyRoofline, of_balance: float
) -> None:
    intensity = of_balance * machine.time_balance
    eta, balance = machine.flop_efficiency, machine.energy_balance
    expected = 1 + eta * balance / intensity
    if of_balance < 1:
        expected = eta + (eta * balance + (1 - eta) * machine.time_balance) / intensity
    assert work_limit(machine, intensity) == pytest.approx(expected, rel=CLOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """A trade-off, and the baseline's intensity over the time balance."""

    trade_off: TradeOff
    of_balance: float


def trade(f: float, m: float, of_balance: float) -> Trade:
    return Trade(trade_off=TradeOff(work_factor=f, traffic_factor=m), of_balance=of_balance)


BELOW_ONE = st.floats(0.01, 0.999)
ABOVE_ONE = st.floats(1.001, 20.0)
TRADES = {
    1: st.builds(lambda f, m, below: trade(f, m, below / (f * m)), FACTORS, FACTORS, BELOW_ONE),
    2: st.builds(
        lambda f, x, above: trade(f, max(1.0, above / (f * x)), x), FACTORS, BELOW_ONE, ABOVE_ONE
    ),
    3: st.builds(trade, FACTORS, FACTORS, ABOVE_ONE),
}
"""Trade-offs of each case of 6.3."""


@pytest.mark.parametrize("case", [1, 2, 3])
@given(data=st.data(), machine=MACHINES)
def test_greenup_stays_within_its_bounds(
    case: int, data: st.DataObject, machine: EnergyRoofline
) -> None:
    drawn = data.draw(TRADES[case])
    intensity = drawn.of_balance * machine.time_balance
    assert drawn.trade_off.case(machine, intensity) == case
    greenup = float(drawn.trade_off.greenup(machine, intensity))
    lower, upper = map(float, drawn.trade_off.greenup_bounds(machine, intensity))
    assert lower * (1 - CLOSE) <= greenup <= upper * (1 + CLOSE)


@pytest.mark.parametrize("case", [1, 2, 3])
@given(data=st.data(), machine=MACHINES)
def test_bounds_without_constant_power_are_those_of_section_6(
    case: int, data: st.DataObject, machine: EnergyRoofline
) -> None:
    """Eqs. (18) to (23) as 6.4 lists them."""
    free = replace(machine, constant_w=0.0)
    drawn = data.draw(TRADES[case])
    f, m = drawn.trade_off.work_factor, drawn.trade_off.traffic_factor
    intensity = drawn.of_balance * free.time_balance
    of_bytes = free.energy_balance / intensity
    small = (1 + 1 / of_bytes) / (1 + free.time_balance / free.energy_balance)
    expected = {
        1: (small, (1 + of_bytes) / (1 + free.balance_gap)),
        2: (free.time_balance / (f * intensity) * small, m * small),
        3: ((1 + of_bytes) / (f + of_bytes), (1 + of_bytes) / (1 + of_bytes / m)),
    }
    lower, upper = drawn.trade_off.greenup_bounds(free, intensity)
    assert (float(lower), float(upper)) == pytest.approx(expected[case], rel=CLOSE)


@pytest.mark.parametrize("case", [2, 3])
@given(data=st.data(), machine=MACHINES)
def test_the_lower_bound_is_below_the_speedup_in_case_2_and_above_in_case_3(
    case: int, data: st.DataObject, machine: EnergyRoofline
) -> None:
    """A.6 leaves the first open; eq. (22) and A.7 state the second."""
    drawn = data.draw(TRADES[case])
    intensity = drawn.of_balance * machine.time_balance
    lower = float(drawn.trade_off.greenup_bounds(machine, intensity)[0])
    speedup = float(drawn.trade_off.speedup(machine, intensity))
    if case == 2:
        assert lower <= speedup * (1 + CLOSE)
    else:
        assert lower >= speedup * (1 - CLOSE)


def test_greenup_exceeds_the_upper_bound_that_the_appendix_prints_for_case_1() -> None:
    """A.5, for the GTX 580 in double precision at half of B_τ."""
    machine = PLATFORMS["GTX 580", "double"]
    intensity = machine.time_balance / 2
    trade_off = TradeOff(work_factor=1.0, traffic_factor=1.99)
    greenup = float(trade_off.greenup(machine, intensity))
    balance = float(machine.effective_energy_balance(intensity))
    printed = (1 + balance / intensity) / (1 + balance / machine.time_balance)
    assert trade_off.case(machine, intensity) == 1
    upper = float(trade_off.greenup_bounds(machine, intensity)[1])
    assert printed < greenup < upper
    assert (printed, greenup, upper) == pytest.approx((1.494, 1.833, 1.840), abs=5e-4)
