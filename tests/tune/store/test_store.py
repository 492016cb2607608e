"""A store keeps what it is given, and tells in the user's terms what it cannot."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.measurement.measurement import Status
from eatss.tune.rows import Role, Row, Stage, Sweep, as_result
from eatss.tune.store import Store
from tests.report.measurements import measured
from tests.tune.store.sweeps import OTHER_SPACE, SPACE, WIDER_SPACE, card, identity, refused, row


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    rows = (row(), refused(32, 64), row(32, 16, measurement=measured()), row("a", True))
    path = tmp_path / "2mm.db"
    with Store.create_or_resume(path, identity(), SPACE) as store:
        store.add_card(card())
        store.add_card(card("GPU-1"))
        store.add_card(card(host="node2"))
        for one in rows:
            store.add(one)
        assert store.rows() == rows
        assert store.cards() == (card(host="node2"), card("GPU-1"))
        sweep = Store.read(path)
    assert (sweep.identity, sweep.space) == (identity(), SPACE)
    assert sweep.rows == rows
    assert sweep.cards == (card(host="node2"), card("GPU-1"))
    assert Store.read(path) == sweep
    assert [one.measurement for one in Store.read(path, measurements=False).rows] == [None] * 4


NUMBERS = st.none() | st.floats(allow_nan=False)


@settings(max_examples=40)
@given(
    st.lists(
        st.builds(
            Row,
            variant=st.text("0123456789abcdef", min_size=16, max_size=16),
            values=st.lists(
                st.tuples(st.text(), st.booleans() | st.integers() | st.floats(-9, 9) | st.text()),
                unique_by=lambda pair: pair[0],
            ).map(tuple),
            status=st.sampled_from(get_args(Status)),
            role=st.sampled_from(get_args(Role)),
            stage=st.sampled_from(get_args(Stage)),
            card=st.none() | st.text(),
            reason=st.text(),
            sizes=st.just((("N", 1 << 70),)),
            time_s=NUMBERS,
            energy_j=NUMBERS,
            flops=st.none() | st.integers(0, (1 << 63) - 1),
            metrics=st.just(()) | st.tuples(st.tuples(st.text(), st.floats(allow_nan=False))),
            at_s=st.floats(0, 1e9),
            measurement=st.none() | st.just(measured()),
        ),
        max_size=5,
    )
)
def test_every_row_comes_back_as_it_was(rows: list[Row]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "2mm.db"
        sweep = Sweep(identity=identity(), space=SPACE, cards=(), rows=tuple(rows))
        Store.write_new(path, sweep)
        results = replace(sweep, rows=tuple(map(as_result, rows)))
        assert Store.read(path) == results


def test_what_is_no_number_and_no_text_is_kept_as_near_as_can_be(tmp_path: Path) -> None:
    with Store.create_or_resume(tmp_path / "2mm.db", identity(), SPACE) as store:
        store.add(row(time_s=math.nan, reason="in 'caf\udce9.cu'", power_w=math.inf))
        (found,) = store.rows()
    assert (found.time_s, found.power_w) == (None, None)
    assert found.reason == "in 'caf\\udce9.cu'; no result: power_w is inf"


def test_a_store_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    for count in range(3):
        with Store.create_or_resume(path, identity(), SPACE) as store:
            assert len(store.rows()) == count
            store.add(row(count))
    assert [path.name for path in tmp_path.iterdir()] == ["2mm.db"], "nothing is left beside it"


def test_a_store_of_something_else_is_refused_by_field(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    Store.create_or_resume(path, identity(), SPACE).close()
    other = identity(driver="575.1", source_hash="b" * 64, sizes=(("NI", 5),), defines=())
    with pytest.raises(InputError) as refusal:
        Store.create_or_resume(path, other, SPACE)
    assert refusal.value.code == "EATSS-D010"
    assert [one.message for one in refusal.value.diagnostics[1:]] == [
        "source: there 5a5a5a5a5a5a, now bbbbbbbbbbbb",
        "defines and headers: there -DLARGE, now none",
        "sizes: there NI=1000, NJ=1200, now NI=5",
        "driver: there 580.159, now 575.1",
    ]
    Store.create_or_resume(path, identity(), SPACE).close()  # the lock is free again


def test_a_space_of_the_same_variables_takes_the_place(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    with Store.create_or_resume(path, identity(), SPACE) as store:
        store.add(row())
    with Store.create_or_resume(path, identity(), WIDER_SPACE) as store:
        assert store.space == WIDER_SPACE
        assert store.rows() == (row(),)
    assert Store.read(path).space == WIDER_SPACE
    with pytest.raises(InputError, match=r"tile_i, tile_j, now threads_j, tile_i") as refusal:
        Store.create_or_resume(path, identity(), OTHER_SPACE)
    assert refusal.value.code == "EATSS-D010"
    assert Store.read(path).space == WIDER_SPACE
