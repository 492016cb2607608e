"""Rows of the card and of the size with the most count."""

from __future__ import annotations

from dataclasses import replace

from eatss.tune.evaluation import cards_of, rows_of_one_card
from tests.synthetic_sweeps import CARDS, of_rows, row


def test_rows_of_other_cards_are_left_out_and_failures_before_any_stay() -> None:
    rows = [row(1, 1.0), row(2, 2.0), replace(row(3, None, status="timeout"), card=None)]
    rows += [row(1, 9.0, card=CARDS[1]), row(4, 3.0, card=CARDS[1])]
    made = of_rows(rows, CARDS)
    assert [(one.uuid, one.rows, one.used) for one in cards_of(made)] == [
        (CARDS[0], 2, True),
        (CARDS[1], 2, False),
    ]
    assert [(dict(one.values)["x"], one.time_s) for one in rows_of_one_card(made)] == [
        (1, 1.0),
        (2, 2.0),
        (3, None),
    ]


def test_careful_rows_stand_before_first_ones_and_roles_stay() -> None:
    made = of_rows([row(1, 1.0, 5.0, role="ours"), row(1, 1.1, 5.5, stage="careful")])
    (one,) = rows_of_one_card(made)
    assert (one.time_s, one.role) == (1.1, "ours")


def test_rows_that_name_no_card_are_of_one() -> None:
    made = of_rows([replace(row(k, 1.0 + k), card=None) for k in range(3)])
    assert [one.uuid for one in cards_of(made)] == ["unknown"]
    assert len(rows_of_one_card(made)) == 3


def test_a_sweep_without_a_time_has_no_cards() -> None:
    made = of_rows([row(1, None, status="timeout")])
    assert cards_of(made) == ()


def test_rows_of_other_sizes_are_left_out() -> None:
    large, small = (("N", 4000),), (("N", 100),)
    rows = [replace(row(k, 1.0 + k), sizes=small if k == 0 else large) for k in range(3)]
    assert [one.sizes for one in rows_of_one_card(of_rows(rows))] == [large, large]
