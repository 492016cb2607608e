"""Ranks with ties, choices, and means over programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.tune.population import population
from eatss.tune.standing import choices, geometric_means, standing
from tests.synthetic_sweeps import row


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(0, 29), st.booleans())
def test_a_rank_counts_what_is_better(values: list[int], which: int, high: bool) -> None:
    mine = values[which % len(values)]
    found = standing(np.array(values, dtype=float), float(mine), high_is_good=high)
    better = [one for one in values if (one > mine if high else one < mine)]
    equal = values.count(mine)
    assert found.rank == len(better) + 1
    assert found.count == len(values)
    worse = len(values) - len(better) - equal
    assert found.percentile == pytest.approx(100 * (worse + equal / 2) / len(values))
    best = max(values) if high else min(values)
    assert found.share_of_best == pytest.approx(mine / best if high else best / mine)


def test_what_was_not_measured_has_no_rank() -> None:
    assert standing(np.array([1.0, np.nan, 3.0]), 3.0).count == 2


def test_choices_of_a_small_sweep() -> None:
    rows = (
        row(1, 4.0, 4.0, role="default"),
        row(2, 2.0, 3.0),
        row(3, 1.0, 5.0),
        row(4, None, role="paper", status="launch error", reason="too much shared memory"),
        row(5, 1.5, 2.0, role="ours"),
    )
    found = {one.name: one for one in choices(population(rows), rows)}
    assert list(found) == ["median", "default", "paper", "ours", "fastest", "least energy"]
    variant = {name: one.figures and one.figures.variant for name, one in found.items()}
    assert variant["median"] == rows[1].variant  # of 4, the slower one in the middle
    assert variant["paper"] is None
    assert found["paper"].reason == "launch error: too much shared memory"
    assert variant["fastest"] == rows[2].variant
    assert variant["least energy"] == variant["ours"] == rows[4].variant
    ours = found["ours"]
    assert ours.by_performance is not None
    assert ours.by_performance.rank == 2
    assert ours.by_efficiency is not None
    assert ours.by_efficiency.rank == 1


def test_of_several_rows_of_a_role_the_one_of_least_energy_stands() -> None:
    rows = (row(1, 1.0, 9.0, role="ours"), row(2, 2.0, 3.0, role="ours"))
    (ours,) = (one for one in choices(population(rows), rows) if one.name == "ours")
    assert ours.figures is not None
    assert ours.figures.variant == rows[1].variant
    assert ours.rows == 2


def test_nothing_measured_gives_no_choices() -> None:
    rows = (row(1, None, status="timeout"),)
    assert choices(population(rows), rows) == ()


def test_means_are_geometric_and_over_programs_that_have_both() -> None:
    programs = [
        (row(1, 2.0, 8.0, role="default"), row(2, 1.0, 2.0, role="ours")),
        (row(1, 8.0, 2.0, role="default"), row(2, 1.0, 2.0, role="ours")),
        (row(1, 3.0, 1.0, role="default"), row(2, 2.0, 3.0)),
    ]
    found = geometric_means(choices(population(rows), rows) for rows in programs)
    (mean,) = (one for one in found if (one.choice, one.over) == ("ours", "default"))
    assert mean.sweeps == 2
    assert mean.speedup == pytest.approx(math.sqrt(2 * 8))
    assert mean.energy == pytest.approx(math.sqrt(2 / 8 * 2 / 2))
    assert mean.ppw == pytest.approx(2.0)
    assert not [one for one in found if one.choice == "paper"]
