"""What is ranked, found and summed up."""

from __future__ import annotations

import math
from collections import Counter
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from eatss.base.targets import Order
from eatss.tune.rows import (
    Row,
    Sweep,
    best,
    cost,
    ranked,
    summary_of,
    with_counters,
)
from tests.tune.sweeps import SPACE, card, identity, refused, row

TIMES = st.none() | st.sampled_from([0.001, 0.5, 2.0, 30.0])


@st.composite
def some_rows(draw: st.DrawFn) -> tuple[Row, ...]:
    return tuple(
        row(
            draw(st.integers(0, 3)),
            status=draw(st.sampled_from(["ok", "unstable", "timeout"])),
            time_s=draw(TIMES),
            energy_j=draw(TIMES),
            flops=draw(st.none() | st.just(10**9)),
            role=draw(st.sampled_from(["", "", "", "ours"])),
            stage=draw(st.sampled_from(["first", "first", "careful", "reference"])),
            card=draw(st.sampled_from(["GPU-0", "GPU-1"])),
            created=draw(st.sampled_from(["", "2026-11-01T00:00:00+00:00", "2026-11-22"])),
        )
        for _ in range(draw(st.integers(0, 7)))
    )


def sweep_of(*rows: Row) -> Sweep:
    return Sweep(identity=identity(), space=SPACE, cards=(card(),), rows=rows)


def test_each_order_has_its_best() -> None:
    quick = row(1, time_s=1.0, energy_j=9.0)
    frugal = row(2, time_s=4.0, energy_j=1.0)
    both = row(3, time_s=1.2, energy_j=2.0)
    many = row(4, time_s=9.0, energy_j=9.0, flops=128_000_000_000_000)
    rows = (many, quick, frugal, both, refused(5))
    chosen = {by: best(rows, by) for by in get_args(Order)}
    assert chosen == {"time": quick, "energy": frugal, "edp": both, "ppw": many}
    assert best((refused(), row(time_s=None)), "time") is None


@given(some_rows(), st.sampled_from(get_args(Order)))
def test_ranked_rows_are_all_in_order_failures_last(rows: tuple[Row, ...], by: Order) -> None:
    found = ranked(rows, by)
    costs = [cost(one, by) for one in found]
    assert Counter(found) == Counter(rows)
    assert costs == sorted(costs)
    assert all(math.isinf(cost(one, by)) for one in rows if one.status == "timeout")


def test_a_summary_has_what_was_spent_and_what_is_best() -> None:
    rows = (
        row(1, time_s=1.0, energy_j=5.0, card_j=100.0),
        row(2, time_s=2.0, energy_j=3.0, created="2026-11-21T13:00:00+00:00"),
        row(2, time_s=0.5, energy_j=4.0, stage="careful", card_j=50.0),
        refused(3),
    )
    found = summary_of("2mm.db", sweep_of(*rows))
    assert (found.rows, found.variants) == (4, 3)
    assert found.statuses == (("ok", 3), ("compile error", 1))
    assert found.best_time is not None
    assert found.best_energy is not None
    assert (found.best_time.values, found.best_time.time_s) == (rows[1].values, 0.5)
    assert (found.best_energy.values, found.best_energy.energy_j) == (rows[1].values, 4.0)
    assert (found.made_s, found.card_s, found.card_j) == (6.0, 10.0, 150.0)
    assert (found.first[:13], found.last[:13]) == ("2026-11-21T12", "2026-11-21T13")


def test_the_best_of_a_summary_is_of_the_main_size() -> None:
    small = row(9, time_s=1e-6, energy_j=1e-6, sizes=(("NI", 8),))
    found = summary_of("x", sweep_of(small, row(1), row(2, energy_j=1.0, card="GPU-1")))
    assert found.best_energy is not None
    assert (found.best_energy.energy_j, found.best_energy.card) == (1.0, "GPU-1")


def test_counters_are_shown_with_their_variant() -> None:
    counters = row(1, stage="counters", time_s=None, metrics=(("dram_bytes", 9.0),))
    (found,) = with_counters((row(1, metrics=(("registers", 8.0),)), counters))
    assert found.metrics == (("registers", 8.0), ("dram_bytes", 9.0))
