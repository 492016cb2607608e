"""What must hold of every profile in ``gpu_profiles/``."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest

from eatss.cards import (
    FIGURES,
    GpuProfile,
    list_profiles,
    load_profile,
    profile_from_document,
    profile_to_document,
)

PROFILES = list_profiles()
KIB, MIB, GIB = 2**10, 2**20, 2**30

CUDA_GUIDE = {
    # capability: (L1 + shared KiB, threads/SM, blocks/SM, shared/SM KiB, shared/block opt-in KiB)
    (7, 0): (128, 2048, 32, 96, 96),
    (7, 2): (128, 2048, 32, 96, 96),
    (7, 5): (96, 1024, 16, 64, 64),
    (8, 0): (192, 2048, 32, 164, 163),
    (8, 6): (128, 1536, 16, 100, 99),
    (8, 7): (192, 1536, 16, 164, 163),
    (8, 9): (128, 1536, 24, 100, 99),
    (9, 0): (256, 2048, 32, 228, 227),
    (10, 0): (256, 2048, 32, 228, 227),
    (12, 0): (128, 1536, 24, 100, 99),
}
LANES = {
    # capability: FP64 and FP32 units of an SM; FP64 flops of its tensor cores a clock
    (7, 0): (32, 64, 0),
    (7, 2): (2, 64, 0),
    (7, 5): (2, 64, 0),
    (8, 0): (32, 64, 128),
    (8, 6): (2, 128, 0),
    (8, 7): (None, 128, None),
    (8, 9): (2, 128, 0),
    (9, 0): (64, 128, 256),
    (10, 0): (64, 128, 128),
    (12, 0): (2, 128, 0),
}

each_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)


def test_the_cards_that_users_ask_for_are_there() -> None:
    assert {profile.name for profile in PROFILES} == {
        "a10",
        "a100-40gb",
        "a100-80gb",
        "b200",
        "ga100",
        "h100-pcie",
        "h100-sxm",
        "h200",
        "l40s",
        "orin",
        "rtx3090",
        "rtx4090",
        "rtx5090",
        "t4",
        "v100",
        "xavier",
    }


def test_ga100_is_the_papers_table_1_and_3() -> None:
    card = load_profile("ga100")
    assert (card.threads_per_block, card.threads_per_warp) == (1024, 32)
    assert (card.registers_per_sm, card.registers_per_block) == (64 * KIB, 64 * KIB)
    assert card.registers_per_thread == 255
    assert (card.l1_shared_bytes, card.l2_bytes) == (192 * KIB, 40 * MIB)
    assert card.sm_count == 108
    assert (card.shared_per_block_bytes, card.shared_per_sm_bytes) == (48 * KIB, 164 * KIB)
    assert (card.memory_bytes, card.peak_fp64_gflops, card.tdp_w) == (40 * GIB, 9700, 250)


def test_xavier_is_the_papers_table_3() -> None:
    card = load_profile("xavier")
    assert card.sm_count == 8
    assert (card.l1_shared_bytes, card.l2_bytes) == (128 * KIB, 512 * KIB)
    assert (card.shared_per_block_bytes, card.shared_per_sm_bytes) == (48 * KIB, 96 * KIB)
    assert card.registers_per_block == 65536
    assert (card.memory_bytes, card.peak_fp64_gflops, card.tdp_w) == (32 * GIB, 44, 30)


def test_h200_is_what_the_driver_of_one_reports() -> None:
    card = load_profile("h200")
    assert (card.sm_count, card.boost_clock_mhz, card.l2_bytes) == (132, 1980, 60 * MIB)
    assert (card.memory_bytes, card.tdp_w) == (143771 * MIB, 700)


@each_profile
def test_every_figure_has_a_source_and_every_source_is_used(profile: GpuProfile) -> None:
    given = {field for field in FIGURES if getattr(profile, field) is not None}
    assert {field for field, _ in profile.sources} == given
    assert {key for _, key in profile.sources} == {source.key for source in profile.bibliography}
    assert all(source.title for source in profile.bibliography)
    assert all(source.url.startswith("https://") for source in profile.bibliography if source.url)


@each_profile
def test_a_figure_that_is_left_out_says_why(profile: GpuProfile) -> None:
    for field in FIGURES:
        if getattr(profile, field) is None:
            assert dict(profile.notes)[field]


@each_profile
def test_limits_are_those_of_the_compute_capability(profile: GpuProfile) -> None:
    l1, threads, blocks, shared, optin = CUDA_GUIDE[profile.compute_capability]
    assert profile.l1_shared_bytes == l1 * KIB
    assert profile.max_threads_per_sm == threads
    assert profile.max_blocks_per_sm == blocks
    assert profile.shared_per_sm_bytes == shared * KIB
    assert profile.shared_per_block_optin_bytes == optin * KIB
    assert profile.shared_per_block_bytes == 48 * KIB
    assert (profile.threads_per_block, profile.threads_per_warp) == (1024, 32)
    assert (profile.registers_per_sm, profile.registers_per_block) == (65536, 65536)
    assert profile.registers_per_thread == 255


def unit_of_last_digit(figure: float) -> Decimal:
    """Return the value of one unit in the last digit that was published (9700: 100)."""
    published = Decimal(repr(figure)).normalize()
    exponent = published.as_tuple().exponent
    assert isinstance(exponent, int)
    return Decimal(10) ** exponent


@each_profile
def test_peak_rates_are_sms_times_lanes_times_two_times_clock(profile: GpuProfile) -> None:
    """A published figure is rounded, up or down, so it is off by less than its last digit."""
    if profile.boost_clock_mhz is None:
        assert dict(profile.notes)["boost_clock_mhz"]
        return
    fp64, fp32, fp64_tensor = LANES[profile.compute_capability]
    for published, flops_per_clock in (
        (profile.peak_fp64_gflops, 2 * fp64 if fp64 else None),
        (profile.peak_fp32_gflops, 2 * fp32 if fp32 else None),
        (profile.peak_fp64_tensor_gflops, fp64_tensor),
    ):
        if published is None or flops_per_clock is None:
            continue
        computed = Decimal(profile.sm_count * flops_per_clock * profile.boost_clock_mhz) / 1000
        assert abs(Decimal(repr(published)) - computed) < unit_of_last_digit(published)


@each_profile
def test_a_card_without_fp64_tensor_cores_claims_no_rate_for_them(profile: GpuProfile) -> None:
    claims = profile.peak_fp64_tensor_gflops is not None
    assert claims == (profile.compute_capability in {(8, 0), (9, 0), (10, 0)})


@each_profile
def test_a_profile_survives_the_way_through_a_dictionary(profile: GpuProfile) -> None:
    document = profile_to_document(profile)
    assert document["schema_version"] == 1
    assert profile_from_document(document) == profile
    assert hash(profile_from_document(document)) == hash(profile)


def test_no_two_cards_share_a_name() -> None:
    names = [name for profile in PROFILES for name in (profile.name, *profile.aliases)]
    clashes = [pair for pair in itertools.combinations(names, 2) if pair[0] == pair[1]]
    assert clashes == []


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("a100", "a100-40gb"),
        ("h100", "h100-sxm"),
        ("jetson-agx-xavier", "xavier"),
        ("jetson-agx-orin", "orin"),
        ("RTX-4090", "rtx4090"),
        ("  GA100 ", "ga100"),
        ("H200", "h200"),
    ],
)
def test_a_card_is_found_by_alias_in_any_case(alias: str, name: str) -> None:
    assert load_profile(alias).name == name
