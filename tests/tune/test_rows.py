"""What is ranked, chosen, merged and pruned."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.base.targets import Order
from eatss.tune.rows import (
    Row,
    Sweep,
    Unwanted,
    best,
    chosen_rows,
    cost,
    moment_before,
    pruned,
    ranked,
    rows_of_variant,
    summary_of,
    with_counters,
)
from eatss.tune.store import Store, merged
from tests.tune.sweeps import OTHER_SPACE, SPACE, WIDER_SPACE, card, identity, refused, row

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)

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


def sweep_of(*rows: Row, space: str = SPACE, cards: tuple[str, ...] = ("GPU-0",)) -> Sweep:
    return Sweep(identity=identity(), space=space, cards=tuple(map(card, cards)), rows=rows)


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


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ((), [0, 1, 2, 3]),
        (("tile_i>=32",), [1, 2]),
        (("tile_i >= 32", "tile_i!=64"), [1]),
        (("tile_i = 16",), [0]),
        (("tile_i==row",), [3]),
        (("status=ok",), [0, 1, 3]),
        (("status=compile error",), [2]),
        (("registers<=64",), [0, 3]),
        (("time_s<0.01",), [0, 3]),
        (("gflops>1e3",), [0, 1, 3]),
        (("NI=1000",), [0, 1, 2, 3]),
        (("card!=GPU-0",), []),
        (("role=",), [0, 1, 2, 3]),
        (("tile_i<x",), [3]),
    ],
)
def test_rows_that_meet_conditions(conditions: tuple[str, ...], wanted: list[int]) -> None:
    rows = (
        row(16),
        row(32, time_s=0.02, metrics=(("registers", 128.0),)),
        refused(64),
        row("row"),
    )
    assert chosen_rows(sweep_of(*rows), conditions) == tuple(rows[place] for place in wanted)


@pytest.mark.parametrize("condition", ["tile_i", ">=3", "nothing=3", "tile_i ~ 3", ""])
def test_a_condition_that_is_none_is_refused(condition: str) -> None:
    with pytest.raises(InputError) as refusal:
        chosen_rows(sweep_of(row()), [condition])
    assert refusal.value.code == "EATSS-D013"


def test_a_variant_is_found_by_how_its_key_begins() -> None:
    rows = (row(1, variant="abc1"), row(2, variant="abd2"), row(1, variant="abc1", stage="careful"))
    assert rows_of_variant(sweep_of(*rows), "abc") == (rows[0], rows[2])
    for beginning in ("ab", "x", ""):
        with pytest.raises(InputError) as refusal:
            rows_of_variant(sweep_of(*rows), beginning)
        assert refusal.value.code == "EATSS-D013"


def test_cards_of_a_kind_go_into_one_store(tmp_path: Path) -> None:
    one = sweep_of(row(1), row(2, card=None))
    other = sweep_of(row(1, card="GPU-1"), row(2, card=None), space=WIDER_SPACE, cards=("GPU-1",))
    found = merged([("a.db", one), ("b.db", other), ("c.db", one)])
    assert found.rows == (row(1), row(2, card=None), row(1, card="GPU-1"))
    assert found.cards == (card(), card("GPU-1"))
    assert (found.space, found.identity) == (SPACE, identity())
    Store.write_new(tmp_path / "both.db", found)
    assert Store.read(tmp_path / "both.db") == found
    assert [path.name for path in tmp_path.iterdir()] == ["both.db"]


@settings(max_examples=40)
@given(some_rows(), some_rows())
def test_merging_again_adds_nothing(rows: tuple[Row, ...], others: tuple[Row, ...]) -> None:
    one, other = sweep_of(*rows), sweep_of(*others)
    both = merged([("a", one), ("b", other)])
    assert Counter(both.rows) == Counter(rows) | Counter(others)
    assert both.rows[: len(rows)] == rows
    assert merged([("c", both), ("a", one), ("b", other), ("c", both)]) == both


def test_sweeps_of_different_things_are_not_merged() -> None:
    other = replace(sweep_of(), identity=identity(dtype="float"))
    with pytest.raises(InputError, match=r"'a\.db' and 'b\.db'") as refusal:
        merged([("a.db", sweep_of()), ("b.db", other)])
    assert refusal.value.code == "EATSS-D010"
    assert [one.message for one in refusal.value.diagnostics[1:]] == [
        "dtype: a.db double, b.db float"
    ]
    with pytest.raises(InputError) as refusal:
        merged([("a.db", sweep_of()), ("b.db", sweep_of(space=OTHER_SPACE))])
    assert refusal.value.code == "EATSS-D010"


def test_nothing_is_written_where_something_is(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    path.write_text("mine")
    with pytest.raises(InputError) as refusal:
        Store.write_new(path, sweep_of(row()))
    assert refusal.value.code == "EATSS-D012"
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_log_that_was_left_behind_does_not_reach_a_new_store(tmp_path: Path) -> None:
    with Store.create_or_resume(tmp_path / "old.db", identity(), SPACE) as store:
        store.add(row(9))
        (tmp_path / "new.db-wal").write_bytes((tmp_path / "old.db-wal").read_bytes())
    Store.write_new(tmp_path / "new.db", sweep_of(row(1)))
    assert Store.read(tmp_path / "new.db").rows == (row(1),)


@settings(max_examples=40)
@given(
    some_rows(),
    st.booleans(),
    st.none() | st.integers(1, 3),
    st.none() | st.just(datetime(2026, 11, 20, tzinfo=UTC)),
)
def test_only_what_is_not_wanted_is_pruned(
    rows: tuple[Row, ...], failed: bool, keep_best: int | None, older_than: datetime | None
) -> None:
    unwanted = Unwanted(failed=failed, keep_best=keep_best, by="time", older_than=older_than)
    gone = pruned(rows, unwanted)
    assert sorted({*gone.failed, *gone.worse, *gone.old}) == list(gone.rows)
    latest = sweep_of(*rows).latest
    order = dict.fromkeys(one.variant for one in ranked(latest, "time") if one.measured)
    special = {one.variant for one in rows if one.role or one.stage == "reference"}
    for place, one in enumerate(rows):
        worse = (
            keep_best is not None
            and one.measured
            and one.variant not in [*order][:keep_best]
            and one.variant not in special
        )
        old = older_than is not None and one.created.startswith("2026-11-01")
        assert (place in gone.rows) == ((failed and not one.measured) or worse or old)


def test_pruned_rows_are_gone_and_their_room_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    rows = [row(at, time_s=1.0 + at, reason="x" * 5000) for at in range(40)]
    Store.write_new(path, sweep_of(refused(50), *rows))
    before = path.stat().st_size
    with Store.reopen(path) as store:
        gone = store.prune(Unwanted(failed=True, keep_best=3, by="time"))
    assert (gone.failed, gone.worse) == ((0,), tuple(range(4, 41)))
    assert Store.read(path).rows == tuple(rows[:3])
    assert path.stat().st_size < before / 5


@pytest.mark.parametrize(
    ("age", "wanted"),
    [
        ("30m", datetime(2026, 11, 23, 11, 30, tzinfo=UTC)),
        ("12h", datetime(2026, 11, 23, tzinfo=UTC)),
        ("3d", datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("1w", datetime(2026, 11, 16, 12, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
    ],
)
def test_ages_and_dates(age: str, wanted: datetime) -> None:
    assert moment_before(age, NOW) == wanted


@pytest.mark.parametrize("age", ["", "3", "3 years", "-3d", "2026-13-01", "999999999w"])
def test_what_is_no_age_is_refused(age: str) -> None:
    with pytest.raises(InputError) as refusal:
        moment_before(age, NOW)
    assert refusal.value.code == "EATSS-D013"


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


def test_counters_live_and_die_with_their_variant() -> None:
    rows = (
        row(1, energy_j=1.0),
        row(2, energy_j=2.0),
        row(1, stage="counters", time_s=None, energy_j=None),
        row(2, stage="counters", time_s=None, energy_j=None),
    )
    assert pruned(rows, Unwanted(failed=True)).rows == ()
    assert pruned(rows, Unwanted(keep_best=1)).worse == (1, 3)


def test_the_best_of_each_card_and_size_are_kept() -> None:
    rows = (
        row(1, energy_j=1.0),
        row(2, energy_j=2.0),
        row(3, energy_j=8.0, card="GPU-1"),
        row(4, energy_j=9.0, card="GPU-1"),
        row(5, energy_j=20.0, sizes=(("NI", 8),)),
    )
    assert pruned(rows, Unwanted(keep_best=1)).worse == (1, 3)


def test_time_axes_of_merged_sweeps_of_a_card_do_not_overlap() -> None:
    first = sweep_of(*(row(n, at_s=10.0 * n, created=f"2026-11-01T00:0{n}") for n in (1, 2)))
    later = sweep_of(*(row(n, at_s=10.0 * n, created=f"2026-11-02T00:0{n}") for n in (1, 2)))
    other = sweep_of(row(3, at_s=5.0, card="GPU-1", created="2026-11-03"))
    found = merged([("b", later), ("a", first), ("c", other)])
    assert [one.at_s for one in found.rows] == [30.0, 40.0, 10.0, 20.0, 5.0]
    assert merged([("all", found), ("b", later), ("a", first)]) == found


def test_a_copy_that_went_on_keeps_its_times() -> None:
    base = row(1, at_s=10.0, created="2026-11-01")
    on = replace(base, variant="x", at_s=20.0, created="2026-11-02")
    other = replace(base, variant="y", at_s=15.0, created="2026-11-03")
    copies = [("a", sweep_of(base)), ("b", sweep_of(base, on)), ("c", sweep_of(base, other))]
    assert [one.at_s for one in merged(copies).rows] == [10.0, 20.0, 25.0]


def test_the_best_of_a_summary_is_of_the_main_size() -> None:
    small = row(9, time_s=1e-6, energy_j=1e-6, sizes=(("NI", 8),))
    found = summary_of("x", sweep_of(small, row(1), row(2, energy_j=1.0, card="GPU-1")))
    assert found.best_energy is not None
    assert (found.best_energy.energy_j, found.best_energy.card) == (1.0, "GPU-1")


def test_counters_are_shown_with_their_variant() -> None:
    counters = row(1, stage="counters", time_s=None, metrics=(("dram_bytes", 9.0),))
    (found,) = with_counters((row(1, metrics=(("registers", 8.0),)), counters))
    assert found.metrics == (("registers", 8.0), ("dram_bytes", 9.0))
