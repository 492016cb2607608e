"""A profile written as TOML reads back as it is."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.cards import FIGURES, GpuProfile, list_profiles, load_profile, profile_from_document
from eatss.cards.profile import COEFFICIENTS, Calibration, Coefficient
from eatss.cards.write import profile_toml

each_profile = pytest.mark.parametrize("profile", list_profiles(), ids=lambda one: one.name)


@each_profile
def test_every_shipped_profile_reads_back_as_it_is(profile: GpuProfile, tmp_path: Path) -> None:
    path = tmp_path / f"{profile.name}.toml"
    path.write_text(profile_toml(profile), encoding="utf-8")
    assert load_profile(path) == profile


measured = st.floats(0, 1e12, allow_nan=False).map(float)
coefficients = st.builds(
    Coefficient, value=measured, low=measured, high=measured, spread=st.none() | measured
)
calibrations = st.builds(
    Calibration,
    cards=st.lists(st.sampled_from("abc"), unique=True).map(tuple),
    driver=st.just("580"),
    toolkit=st.just("13.0"),
    date=st.just("2026-11-23"),
    revision=st.just("r"),
    power_limit_w=measured,
    r_squared=st.floats(-1, 1),
    median_residual=measured,
    worst_residual=measured,
    benchmarks=st.integers(0, 10**6),
    coefficients=st.lists(st.sampled_from(list(COEFFICIENTS)), unique=True, max_size=3).flatmap(
        lambda names: st.tuples(
            *(st.tuples(st.just(n), coefficients) for n in sorted(names, key=[*COEFFICIENTS].index))
        )
    ),
)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 2**34),
    st.floats(1e-9, 1e6).filter(math.isfinite),
    st.none() | st.integers(1, 20000),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20),
    st.none() | calibrations,
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
