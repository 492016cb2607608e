"""What is ranked, found and summed up."""

from __future__ import annotations

import math
from collections import Counter
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from eatss.base.targets import ObjectiveName
from eatss.tune.rows import (
    Row,
    Sweep,
    cost,
    ranked,
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
    rows = (quick, frugal, both, refused(5))
    chosen = {by: ranked(rows, by)[0] for by in get_args(ObjectiveName)}
    assert chosen == {"time": quick, "energy": frugal, "edp": both}


@given(some_rows(), st.sampled_from(get_args(ObjectiveName)))
def test_ranked_rows_are_all_in_order_failures_last(
    rows: tuple[Row, ...], by: ObjectiveName
) -> None:
    found = ranked(rows, by)
    costs = [cost(one, by) for one in found]
    assert Counter(found) == Counter(rows)
    assert costs == sorted(costs)
    assert all(math.isinf(cost(one, by)) for one in rows if one.status == "timeout")


def test_counters_are_shown_with_their_variant() -> None:
    counters = row(1, stage="counters", time_s=None, metrics=(("dram_bytes", 9.0),))
    (found,) = with_counters((row(1, metrics=(("registers", 8.0),)), counters))
    assert found.metrics == (("registers", 8.0), ("dram_bytes", 9.0))
