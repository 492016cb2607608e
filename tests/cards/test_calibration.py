"""Profiles as TOML read back; calibrations in them, scaled to other cards, complete for all."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.cards import (
    FIGURES,
    GpuProfile,
    list_profiles,
    load_profile,
    profile_directory,
    profile_from_document,
    profile_to_document,
)
from eatss.cards.match import (
    FP32_PER_CYCLE,
    GENERATIONS,
    REFERENCE,
    calibration_of,
    scaled,
    voltage_share,
)
from eatss.cards.profile import COEFFICIENTS, Calibration, Coefficient
from eatss.cards.write import DIGITS, profile_toml, rounded

T4 = (profile_directory() / "t4.toml").read_text(encoding="utf-8")
SHIPPED = [pytest.param(profile, id=profile.name) for profile in list_profiles()]
PRICES = [name for name, (unit, _) in COEFFICIENTS.items() if unit in ("pJ", "pJ/B")]
POWERS = [name for name, (unit, _) in COEFFICIENTS.items() if unit == "W"]
MEMORY_PRICES = ("dram_read_byte_pj", "dram_write_byte_pj")
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_profile(text: str) -> Path:
        path = tmp_path / "card.toml"
        path.write_bytes(text.encode())
        return path

    return write_profile


def profile_text(profile: GpuProfile, measured: Calibration, text: str | None = None) -> str:
    return profile_toml(replace(profile, calibration=measured), text, rounded)


def calibration(**values: float) -> Calibration:
    return Calibration(
        coefficients=tuple(
            (name, Coefficient(value=values[name], low=values[name] / 2, high=values[name] * 2))
            for name in COEFFICIENTS
            if name in values
        ),
        cards=("0123", "abcd"),
        driver="580.1",
        toolkit="NVRTC 13.0.88",
        date="2026-11-22",
        revision="7ef29bf",
        power_limit_w=70.0,
        r_squared=0.9995,
        median_residual=0.01,
        worst_residual=0.1,
        benchmarks=103,
    )


SOME = calibration(constant_w=12.5, fp32_pj=400.0, dram_read_byte_pj=71.0, clock_mhz=1590.0)
COEFFICIENT = st.builds(
    Coefficient,
    value=st.floats(0, 1e9),
    low=st.floats(0, 1e9),
    high=st.floats(0, 1e9),
    spread=st.none() | st.floats(0, 1),
)
CALIBRATIONS = st.builds(
    Calibration,
    coefficients=st.sets(st.sampled_from(sorted(COEFFICIENTS))).flatmap(
        lambda names: st.tuples(
            *(st.tuples(st.just(name), COEFFICIENT) for name in COEFFICIENTS if name in names)
        )
    ),
    cards=st.lists(st.sampled_from(["0123", "4567", "89ab"])).map(tuple),
    driver=st.sampled_from(["580.1", "unknown", 'a "driver"', "\\ 1"]),
    toolkit=st.just("NVRTC 13.0.88"),
    date=st.just("2026-11-22"),
    revision=st.just("7ef29bf-dirty, 5b48e20"),
    power_limit_w=st.floats(0, 2000),
    r_squared=st.floats(-10, 1),
    median_residual=st.floats(0, 1),
    worst_residual=st.floats(0, 10),
    benchmarks=st.integers(0, 1000),
)


def near(found: Calibration, wanted: Calibration) -> None:
    """See that two calibrations are equal up to the digits that are written."""
    one, other = _plain(found), _plain(wanted)
    assert one.keys() == other.keys()
    for key, value in one.items():
        if isinstance(value, float):
            assert value == pytest.approx(other[key], rel=0.6 * 10.0 ** (1 - DIGITS)), key
        else:
            assert value == other[key], key


def _plain(one: Calibration) -> dict[str, Any]:
    found: dict[str, Any] = {
        key: getattr(one, key) for key in Calibration.__dataclass_fields__ if key != "coefficients"
    }
    for name, each in one.coefficients:
        for key in ("value", "low", "high", "spread"):
            found[f"{name}.{key}"] = getattr(each, key)
    return found


# profile to TOML and back


@given(CALIBRATIONS)
def test_a_new_text_reads_back_as_the_profile_with_its_calibration(
    tmp_path_factory: pytest.TempPathFactory, measured: Calibration
) -> None:
    profile = load_profile("t4")
    path = tmp_path_factory.mktemp("profile") / "card.toml"
    path.write_text(profile_text(profile, measured), encoding="utf-8")
    read = load_profile(path)
    assert replace(read, calibration=None) == profile
    assert read.calibration is not None
    near(read.calibration, measured)


def test_the_rest_of_a_text_stays_as_it_is_with_its_comments(write: Write) -> None:
    text = profile_text(load_profile("t4"), SOME, T4)
    assert text.startswith(T4.rstrip("\n"))
    assert text[len(T4) :].startswith("\n[calibration]\n")
    assert load_profile(write(text)) == replace(load_profile("t4"), calibration=SOME)


def test_an_old_calibration_is_replaced(write: Write) -> None:
    profile = load_profile("t4")
    old = profile_text(profile, SOME, T4)
    newer = replace(SOME, driver="590.2", coefficients=SOME.coefficients[:2])
    text = profile_text(profile, newer, old)
    assert text == profile_text(profile, newer, T4)
    assert text.count("[calibration]") == text.count("[calibration.coefficients]") == 1
    read = load_profile(write(text)).calibration
    assert read == newer
    assert profile_text(profile, newer, text) == text


@given(st.floats(1e-9, 1e12))
def test_a_figure_keeps_its_first_digits(value: float) -> None:
    found = rounded(value)
    assert found == pytest.approx(value, rel=0.5001 * 10.0 ** (1 - DIGITS))
    assert len(Decimal(repr(found)).normalize().as_tuple().digits) <= DIGITS
    assert rounded(found) == found


# plain types


@given(CALIBRATIONS)
def test_a_profile_survives_plain_types(measured: Calibration) -> None:
    profile = replace(load_profile("t4"), calibration=measured)
    plain = json.loads(json.dumps(profile_to_document(profile)))
    assert profile_from_document(plain) == profile


# what is refused

GOOD = profile_text(load_profile("t4"), SOME, T4)


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


FP32 = "fp32_pj = {value = 400.0, low = 200.0, high = 800.0}"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (FP32, FP32.replace("fp32_pj", "fp32_jp"), "fp32_jp: there is no such key"),
        (FP32, FP32.replace("low", "lowest"), "no 'low'"),
        ('driver = "580.1"', 'driver = "580.1"\nsize = 1', "calibration.size"),
        ("power_limit_w = 70.0\n", "", "no 'power_limit_w'"),
        (FP32, FP32.replace("400.0", "-400.0"), "none that was measured"),
        (FP32, FP32.replace("400.0", "nan"), "none that was measured"),
        (FP32, "fp32_pj = 400.0", "no object"),
        ("benchmarks = 103", "benchmarks = 103.5", "no int"),
        ('cards = ["0123", "abcd"]', 'cards = "0123"', "no list"),
    ],
)
def test_what_is_wrong_with_a_calibration_is_said_with_its_place(
    write: Write, old: str, new: str, words: str
) -> None:
    path = write(changed(old, new))
    with pytest.raises(InputError, match="EATSS-G005") as caught:
        load_profile(path)
    (found,) = caught.value.diagnostics
    assert words in found.message
    assert found.span is not None
    assert found.span.file == str(path)


# scaled to other cards


def uncalibrated(**figures: Any) -> GpuProfile:
    return replace(load_profile(REFERENCE), calibration=None, **figures)


def test_the_reference_scaled_to_itself_is_itself() -> None:
    reference = load_profile(REFERENCE)
    own = calibration_of(reference)
    found = scaled(reference)
    assert found.keys() == own.keys() == COEFFICIENTS.keys()
    for name in found:  # the clock is the specified one
        assert found[name] == pytest.approx(own[name], rel=1e-3 if name == "clock_mhz" else 1e-6)


@given(st.floats(10, 2000))
def test_no_figure_follows_the_power_limit(limit: float) -> None:
    assert scaled(uncalibrated(tdp_w=limit)) == scaled(uncalibrated(tdp_w=None))


def test_cards_with_one_chip_have_one_price() -> None:
    paper, sxm, larger = (
        scaled(load_profile(name)) for name in ("ga100", "a100-40gb", "a100-80gb")
    )
    for name in PRICES:
        assert paper[name] == sxm[name] == larger[name], name
    assert paper == sxm  # memory of the same bandwidth, another power limit


@given(st.sampled_from(sorted(GENERATIONS)), st.integers(300, 1980), st.floats(0.2, 1.0))
def test_prices_at_one_clock_are_those_of_the_process_whatever_the_highest_is(
    capability: tuple[int, int], clock: int, part: float
) -> None:
    """A card held to a part of its clock has the prices of one that has no higher clock."""
    whole = scaled(uncalibrated(compute_capability=capability, boost_clock_mhz=1980))
    card = scaled(uncalibrated(compute_capability=capability, boost_clock_mhz=clock))
    for name in PRICES:
        at = clock * part
        if name in MEMORY_PRICES:
            assert card[name] == whole[name]
            continue
        own = card[name] * voltage_share(part, card["voltage_floor"])
        assert own == pytest.approx(
            whole[name] * voltage_share(at / 1980, whole["voltage_floor"])
        ), name


@given(
    st.sampled_from(sorted(GENERATIONS)),
    st.integers(1, 500),
    st.floats(50, 20000),
    st.integers(300, 4000),
    st.floats(1, 2),
)
def test_more_of_a_card_takes_no_less(
    capability: tuple[int, int], sms: int, rate: float, clock: int, more: float
) -> None:
    """Power with SMs and bandwidth, prices with the clock, up to that of the reference."""
    figures: dict[str, Any] = {
        "compute_capability": capability,
        "sm_count": sms,
        "bandwidth_gb_s": rate,
    }
    less = scaled(uncalibrated(**figures, boost_clock_mhz=clock))
    for name, value in figures.items() - {"compute_capability": capability}.items():
        grown = scaled(uncalibrated(**{**figures, name: value * more}, boost_clock_mhz=clock))
        assert all(grown[power] >= less[power] for power in POWERS)
        assert all(grown[price] == less[price] for price in PRICES)
    faster = scaled(uncalibrated(**figures, boost_clock_mhz=clock * more))
    assert all(faster[price] >= less[price] for price in PRICES)
    assert clock < 1980 or all(faster[price] == less[price] for price in PRICES)


def test_a_smaller_process_takes_less_at_one_clock() -> None:
    of_process = {
        process: scaled(uncalibrated(compute_capability=capability))["fp32_pj"]
        for capability, (_, _, process, _) in GENERATIONS.items()
    }
    in_order = [of_process[name] for name in ("12 nm", "8 nm", "7 nm", "4 nm")]
    assert in_order == sorted(in_order, reverse=True)
    assert len(set(in_order)) == len(in_order)


@given(st.integers(1, 500), st.integers(300, 4000), st.floats(50, 20000))
def test_rates_follow_bandwidth_or_sms_and_clock(sms: int, clock: int, rate: float) -> None:
    reference = load_profile(REFERENCE)
    assert reference.boost_clock_mhz is not None
    own = calibration_of(reference)
    found = scaled(uncalibrated(sm_count=sms, boost_clock_mhz=clock, bandwidth_gb_s=rate))
    chip = sms * clock / reference.sm_count / reference.boost_clock_mhz
    for name in ("dram_read_gb_s", "dram_write_gb_s", "dram_copy_gb_s"):
        assert found[name] == pytest.approx(own[name] * rate / reference.bandwidth_gb_s)
    for name in ("l2_gb_s", "l1_gb_s"):
        assert found[name] == pytest.approx(own[name] * chip)
    assert found["clock_mhz"] == clock
    for name, (unit, _) in COEFFICIENTS.items():
        if unit in ("cycles", "s") or name == "overlap":
            assert found[name] == own[name]


def test_arithmetic_follows_the_peaks_and_what_no_source_tells_is_assumed() -> None:
    reached = calibration_of(load_profile(REFERENCE))  # of 128 and 64, at another clock
    share32, share64 = reached["fp32_per_cycle"] / 128, reached["fp64_per_cycle"] / 64
    profile = load_profile("v100")
    assert scaled(profile)["fp32_per_cycle"] == pytest.approx(64 * share32, rel=0.03)
    assert scaled(profile)["fp64_per_cycle"] == pytest.approx(32 * share64, rel=0.03)
    unknown = scaled(
        uncalibrated(peak_fp32_gflops=None, peak_fp64_gflops=None, tdp_w=None, boost_clock_mhz=None)
    )
    assert unknown["fp32_per_cycle"] == pytest.approx(FP32_PER_CYCLE * share32, rel=0.03)
    assert unknown["fp64_per_cycle"] == pytest.approx(FP32_PER_CYCLE / 32 * share64, rel=0.03)


# whose a coefficient is


def test_a_card_s_own_calibration_is_preferred() -> None:
    reference = load_profile(REFERENCE)
    assert reference.calibration is not None
    own = {name: one.value for name, one in reference.calibration.coefficients}
    assert dict(calibration_of(reference)) == own


def test_a_calibration_of_some_coefficients_is_completed_by_scaled_ones() -> None:
    profile = load_profile("t4")
    found = calibration_of(replace(profile, calibration=SOME))
    own = {name: one.value for name, one in SOME.coefficients}
    assert {name: found[name] for name in own} == own
    assert {name: found[name] for name in COEFFICIENTS if name not in own} == {
        name: value for name, value in scaled(profile).items() if name not in own
    }
    assert dict(calibration_of(profile)) == scaled(profile)


@pytest.mark.parametrize("profile", SHIPPED)
def test_every_shipped_card_has_every_coefficient(profile: GpuProfile) -> None:
    found = calibration_of(profile)
    assert found.keys() == COEFFICIENTS.keys()
    for name, value in found.items():
        assert math.isfinite(value), name
        assert value > 0 or (value == 0 and name in PRICES), name


@pytest.mark.parametrize("profile", SHIPPED)
def test_shipped_coefficients_lie_in_their_intervals(profile: GpuProfile) -> None:
    for name, one in profile.calibration.coefficients if profile.calibration else ():
        assert one.low <= one.value <= one.high, name


@pytest.mark.parametrize("profile", SHIPPED)
def test_every_shipped_profile_reads_back_as_it_is(profile: GpuProfile, tmp_path: Path) -> None:
    path = tmp_path / f"{profile.name}.toml"
    path.write_text(profile_toml(profile), encoding="utf-8")
    assert load_profile(path) == profile


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 2**34),
    st.floats(1e-9, 1e6).filter(math.isfinite),
    st.none() | st.integers(1, 20000),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20),
    st.none() | CALIBRATIONS,
)
def test_odd_figures_read_back_too(
    l2_bytes: int,
    bandwidth_gb_s: float,
    clock: int | None,
    title: str,
    calibration: Calibration | None,
) -> None:
    """Sizes that are whole in no unit, numbers of many digits, quotes in a title, no clock."""
    plain = load_profile("t4")
    sources = tuple(
        (name, plain.bibliography[0].key)
        for name in FIGURES
        if (clock if name == "base_clock_mhz" else getattr(plain, name)) is not None
    )
    odd = replace(
        plain,
        title=title,
        l2_bytes=max(1024, l2_bytes),
        bandwidth_gb_s=bandwidth_gb_s,
        base_clock_mhz=None if clock is None else min(clock, plain.boost_clock_mhz or clock),
        sources=sources,
        bibliography=plain.bibliography[:1],
        notes=(("l2_bytes", title),),
        calibration=calibration,
    )
    assert profile_from_document(tomllib.loads(profile_toml(odd))) == odd
