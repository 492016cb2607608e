"""A store keeps what it is given, and tells in the user's terms what it cannot.

Whoever is killed while it writes to a store loses the row in flight, and nothing else.
"""

from __future__ import annotations

import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.measurement.measurement import Status
from eatss.tune.rows import Role, Row, Stage, Sweep, as_result
from eatss.tune.store import Store
from tests.report.measurements import measured
from tests.tune.sweeps import OTHER_SPACE, SPACE, WIDER_SPACE, card, identity, refused, row


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


PROGRAM = Path(__file__).with_name("writing_processes.py")
KILLED = 50


class Writers:
    """Starts processes that write, one after the other."""

    def __init__(self, to: IO[str], said: IO[str]) -> None:
        self._to, self._said = to, said

    def start(self, path: Path, manner: str = "") -> int:
        self._to.write(f"{path}\t{manner}\n")
        self._to.flush()
        return int(self.word("pid"))

    def word(self, kind: str) -> str:
        """Return the next word of a kind."""
        for line in self._said:
            found, _, word = line.strip().partition(" ")
            if found == kind:
                return word
            assert found != "gone"
        raise AssertionError(f"no {kind} was said")

    def rest(self) -> list[int]:
        """Return the rows that were kept until the process is gone."""
        lines = list(iter(lambda: self._said.readline().split(), ["gone"]))
        assert all(kind == "row" for kind, _ in lines), lines
        return [int(number) for _, number in lines]


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with subprocess.Popen(
        [sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        yield Writers(running.stdin, running.stdout)
        running.stdin.close()


def whole(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)])


def test_only_the_row_in_flight_is_lost(writers: Writers, tmp_path: Path) -> None:
    """Half of them are killed as they make a file, half some rows after they go on with one."""
    moments = random.Random(6)
    old, rows = tmp_path / "old.db", 0
    for turn in range(KILLED):
        path, before = (old, rows) if turn % 2 else (tmp_path / f"new-{turn}.db", 0)
        process = writers.start(path)
        first = moments.randrange(5) if path == old else 0
        kept = [int(writers.word("row")) for _ in range(first)]
        time.sleep(moments.uniform(0, 0.005 if path == old else 0.02))
        os.kill(process, signal.SIGKILL)
        kept += writers.rest()
        assert kept == list(range(before, before + len(kept)))
        with Store.create_or_resume(path, identity(), SPACE) as store:
            found = store.rows()
        assert before + len(kept) <= len(found) <= before + len(kept) + 1
        assert found == tuple(row(number) for number in range(len(found)))
        assert whole(path)
        rows = len(found) if path == old else rows
    assert rows > KILLED / 2


def test_who_reads_sees_a_whole_sweep_while_others_write(writers: Writers, tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    process = writers.start(path)
    counts = []
    for _ in range(8):
        writers.word("row")
        counts.append(len(found := Store.read(path).rows))
        assert found == tuple(row(number) for number in range(len(found)))
    os.kill(process, signal.SIGKILL)
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] <= len(writers.rest()) + 1 + counts[-1]


def test_a_second_process_is_told_who_writes(writers: Writers, tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    process = writers.start(path)
    writers.word("row")
    for name in (path, tmp_path / "link.db"):
        if name != path:
            name.symlink_to(path)
        with pytest.raises(InputError, match=rf"process {process} on \S+ since 20\d\d-") as refusal:
            Store.create_or_resume(name, identity(), SPACE)
        assert refusal.value.code == "EATSS-D005"
    os.kill(process, signal.SIGKILL)
    writers.rest()
    Store.create_or_resume(path, identity(), SPACE).close()


def test_a_process_that_outlives_a_killed_one_holds_nothing(
    writers: Writers, tmp_path: Path
) -> None:
    path = tmp_path / "2mm.db"
    process = writers.start(path, "leaves a child")
    child = int(writers.word("child"))
    try:
        writers.word("row")
        os.kill(process, signal.SIGKILL)
        writers.rest()
        os.kill(child, 0)  # it lives
        Store.create_or_resume(path, identity(), SPACE).close()
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    with Store.create_or_resume(path, identity(), SPACE) as store:
        with pytest.raises(InputError, match=f"process {os.getpid()}"):
            Store.create_or_resume(path, identity(), SPACE)
        Store.read(path)
        store.add(row())
    Store.create_or_resume(path, identity(), SPACE).close()
