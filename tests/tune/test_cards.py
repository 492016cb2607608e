"""Cards are compared by their references, or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eatss.tune.cards import compare_cards, on_one_scale
from eatss.tune.population import population
from tests.synthetic_sweeps import CARDS, of_rows, row, sweep

FACTOR = st.floats(0.5, 2.0)


@settings(max_examples=50, deadline=None)
@given(FACTOR, FACTOR, st.integers(1, 4))
def test_a_planted_factor_is_recovered_and_taken_out(
    time: float, energy: float, count: int
) -> None:
    rows = [row(k, 1.0 + k, 2.0 + k, card=CARDS[0]) for k in range(6)]
    rows += [row(10 + k, time * (1 + k), energy * (2 + k), card=CARDS[1]) for k in range(5)]
    for k in range(count + 1):
        rows.append(row(90 + k, 3.0 + k, 4.0, card=CARDS[0], stage="reference", at_s=10 * k))
        rows.append(
            row(90 + k, time * (3 + k), energy * 4, card=CARDS[1], stage="reference", at_s=10 * k)
        )
    made = of_rows(rows, CARDS)
    cards = compare_cards(made)
    base, other = cards.cards
    assert (base.uuid, base.time_factor) == (CARDS[0], 1.0)
    assert other.time_factor == pytest.approx(time)
    assert other.energy_factor == pytest.approx(energy)
    assert other.time_range == pytest.approx((time, time))
    assert base.time_range is None
    scaled = {one.variant: one for one in on_one_scale(made, cards)}
    assert len(scaled) == 11
    for k in range(5):
        one = scaled[row(10 + k, None).variant]
        assert one.time_s == pytest.approx(1 + k)
        assert one.energy_j == pytest.approx(2 + k)
        assert population([one]).power_w[0] == pytest.approx((2 + k) / (1 + k))


def test_noise_of_references_leaves_the_factor_within_its_error() -> None:
    """24 references a card with 0.1 % noise each: 5 deviations of a mean's ratio are 0.15 %."""
    cards = compare_cards(sweep(cards=2, card_factor=1.04, drift=0.01, references=24, seed=5))
    factor = cards.cards[1].time_factor
    assert factor == pytest.approx(1.04, rel=0.0015)


def test_without_shared_references_other_cards_are_left_out() -> None:
    rows = [row(k, 1.0, card=CARDS[0]) for k in range(3)]
    rows += [row(9, 0.1, card=CARDS[1]), row(8, 1.0, card=CARDS[0], stage="reference")]
    made = of_rows(rows, CARDS)
    cards = compare_cards(made)
    assert [one.used for one in cards.cards] == [True, False]
    assert "not compared" in cards.note
    assert "1 rows" in cards.note or "1 row" in cards.note
    assert {one.card for one in on_one_scale(made, cards)} == {CARDS[0]}


def test_references_of_other_variants_do_not_compare_cards() -> None:
    rows = [row(1, 1.0, card=CARDS[0]), row(2, 1.0, card=CARDS[0]), row(3, 1.0, card=CARDS[1])]
    rows += [row(8, 1.0, card=CARDS[0], stage="reference")]
    rows += [row(9, 1.0, card=CARDS[1], stage="reference")]
    assert compare_cards(of_rows(rows, CARDS)).cards[1].time_factor is None


def test_drift_is_seen_from_references() -> None:
    rows = [row(1, 1.0)]
    rows += [row(2, 1.0 + 0.01 * k, at_s=600.0 * k, stage="reference") for k in range(7)]
    (card,) = compare_cards(of_rows(rows)).cards
    assert card.time_drift is not None
    assert card.time_drift.change == pytest.approx(0.06, abs=0.001)
    assert card.time_drift.error < 0.01
    assert card.energy_drift is None


def test_a_drifting_factor_does_not_pass_for_noise_free() -> None:
    (card,) = compare_cards(sweep(drift=0.02, references=20)).cards
    assert card.time_drift is not None
    assert card.time_drift.change == pytest.approx(0.02, abs=0.004)


def test_careful_rows_stand_before_first_ones_and_roles_stay() -> None:
    first = row(1, 1.0, 5.0, role="ours")
    careful = row(1, 1.1, 5.5, stage="careful")
    again = replace(first, at_s=99.0)
    made = of_rows([first, careful, again])
    (one,) = on_one_scale(made, compare_cards(made))
    assert one.time_s == 1.1
    assert one.role == "ours"


def test_a_variant_of_two_cards_is_that_of_the_base_and_a_failure_does_not_hide_it() -> None:
    rows = [row(1, 1.0), row(2, 2.0), row(3, None, status="timeout")]
    rows += [row(1, 9.0, card=CARDS[1]), row(3, 3.0, card=CARDS[1])]
    rows += 2 * [row(7, 5.0, stage="reference"), row(7, 5.0, card=CARDS[1], stage="reference")]
    made = of_rows(rows, CARDS)
    found = {dict(one.values)["x"]: one for one in on_one_scale(made, compare_cards(made))}
    assert found[1].time_s == 1.0
    assert found[3].time_s == 3.0


def test_an_empty_sweep_has_no_cards() -> None:
    made = of_rows([row(1, None, status="timeout")])
    assert compare_cards(made).base is None
    assert len(on_one_scale(made, compare_cards(made))) == 1


def test_rows_that_name_no_card_are_of_one() -> None:
    rows = [replace(row(k, 1.0 + k), card=None) for k in range(3)]
    made = of_rows(rows)
    cards = compare_cards(made)
    assert [one.uuid for one in cards.cards] == ["unknown"]
    assert len(on_one_scale(made, cards)) == 3


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 30))
def test_drift_is_the_line_that_scipy_fits(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    at = np.sort(random.uniform(0, 9000, count))
    times = np.exp(0.02 * at / 9000 + random.normal(0, 0.003, count))
    rows = [
        row(1, 1.0),
        *(
            row(2, float(t), at_s=float(a), stage="reference")
            for a, t in zip(at, times, strict=True)
        ),
    ]
    (card,) = compare_cards(of_rows(rows)).cards
    fit, span = stats.linregress(at, np.log(times)), np.ptp(at)
    assert card.time_drift is not None
    assert card.time_drift.change == pytest.approx(np.expm1(fit.slope * span))
    wide = stats.t.ppf(0.975, count - 2) * fit.stderr * span
    assert card.time_drift.error == pytest.approx(wide)


@pytest.mark.parametrize(("mine", "theirs"), [(1, 3), (3, 1), (1, 1)])
def test_a_card_with_one_reference_is_left_out(mine: int, theirs: int) -> None:
    rows = [row(1, 1.0), row(2, 1.0), row(3, 1.0, card=CARDS[1])]
    rows += mine * [row(9, 1.0, stage="reference")]
    rows += theirs * [row(9, 1.0, card=CARDS[1], stage="reference")]
    cards = compare_cards(of_rows(rows, CARDS))
    assert [one.used for one in cards.cards] == [True, False]
    assert cards.cards[1].time_range is None
    assert "left out" in cards.note


def test_the_factor_has_the_interval_of_two_samples_of_equal_variance() -> None:
    random = np.random.default_rng(3)
    a, b = random.lognormal(0, 0.01, 5), random.lognormal(0.1, 0.01, 8)
    rows = [row(1, 1.0), row(2, 1.0), row(3, 1.0, card=CARDS[1])]
    rows += [row(9, float(t), stage="reference") for t in a]
    rows += [row(9, float(t), card=CARDS[1], stage="reference") for t in b]
    other = compare_cards(of_rows(rows, CARDS)).cards[1]
    wanted = stats.ttest_ind(np.log(b), np.log(a)).confidence_interval(0.95)
    assert other.time_range == pytest.approx((np.exp(wanted.low), np.exp(wanted.high)))


def test_95_of_100_intervals_hold_the_factor() -> None:
    random, held = np.random.default_rng(8), 0
    rows = [row(1, 1.0), row(2, 1.0), row(3, 1.0, card=CARDS[1])]
    for _ in range(200):
        own = [
            row(k, scale * k * float(random.lognormal(0, 0.01)), card=card, stage="reference")
            for card, scale in zip(CARDS, (1.0, 1.05), strict=True)
            for k in (8, 9, 9)
        ]
        bounds = compare_cards(of_rows([*rows, *own], CARDS)).cards[1].time_range
        assert bounds is not None
        held += bounds[0] <= 1.05 <= bounds[1]
    assert abs(held - 190) <= 3 * np.sqrt(200 * 0.95 * 0.05)


def test_drift_comes_out_though_the_reference_changes_half_way() -> None:
    times = np.linspace(0, 3600, 12)
    rows = [row(1, 1.0)]
    rows += [
        row(8 if k < 6 else 9, (1.0 if k < 6 else 4.0) * 1.1 ** (at / 3600), at_s=float(at),
            stage="reference")
        for k, at in enumerate(times)
    ]  # fmt: skip
    (card,) = compare_cards(of_rows(rows)).cards
    assert card.time_drift is not None
    assert card.time_drift.change == pytest.approx(0.1)
    assert card.time_drift.error == pytest.approx(0, abs=1e-9)


def test_drift_of_references_measured_once_each_is_not_known() -> None:
    rows = [row(1, 1.0)]
    rows += [row(5 + k, 1.0 + k, at_s=600.0 * k, stage="reference") for k in range(5)]
    assert compare_cards(of_rows(rows)).cards[0].time_drift is None
