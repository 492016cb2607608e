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
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.measurement.measurement import Status
from eatss.tune.rows import Role, Row, Stage, Sweep
from eatss.tune.store import VERSION, Store
from tests.refusals import refusing
from tests.report.measurements import measured
from tests.tune.sweeps import OTHER_SPACE, SPACE, WIDER_SPACE, card, identity, refused, row, write


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
        sweep = Store.read(path)
    assert (sweep.identity, sweep.space) == (identity(), SPACE)
    assert sweep.rows == rows
    assert set(sweep.cards) == {card(host="node2"), card("GPU-1")}
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
        write(path, sweep)
        assert Store.read(path) == sweep


def test_what_is_no_number_and_no_text_is_kept_as_near_as_can_be(tmp_path: Path) -> None:
    with Store.create_or_resume(tmp_path / "2mm.db", identity(), SPACE) as store:
        store.add(row(time_s=math.nan, reason="in 'caf\udce9.cu'"))
        (found,) = store.rows()
    assert found.time_s is None
    assert found.reason == "in 'caf\\udce9.cu'"


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
    with refusing("EATSS-D010") as refusal:
        Store.create_or_resume(path, other, SPACE)
    assert [one.message for one in refusal.value.diagnostics[1:]] == [
        "source: there 5a5a5a5a5a5a, now bbbbbbbbbbbb",
        "defines and headers: there -DLARGE, now none",
        "sizes: there NI=1000, NJ=1200, now NI=5",
        "driver: there 580.159, now 575.1",
    ]
    Store.create_or_resume(path, identity(), SPACE).close()


def test_a_space_of_the_same_variables_takes_the_place(tmp_path: Path) -> None:
    path = tmp_path / "2mm.db"
    with Store.create_or_resume(path, identity(), SPACE) as store:
        store.add(row())
    with Store.create_or_resume(path, identity(), WIDER_SPACE) as store:
        assert store.rows() == (row(),)
    assert Store.read(path).space == WIDER_SPACE
    with refusing("EATSS-D010", r"tile_i, tile_j, now threads_j, tile_i"):
        Store.create_or_resume(path, identity(), OTHER_SPACE)
    assert Store.read(path).space == WIDER_SPACE


PROGRAM = Path(__file__).with_name("writing_processes.py")
KILLED = 50


class Writers:
    """Starts processes that write, one after the other."""

    def __init__(self, to: IO[str], said: IO[str]) -> None:
        self._to, self._said = to, said

    def start(self, path: Path | str) -> int:
        self._to.write(f"{path}\n")
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
    process = writers.start(f"+{path}")  # else readers wait for its disk
    counts = []
    for _ in range(8):
        writers.word("row")
        counts.append(len(found := Store.read(path).rows))
        assert found == tuple(row(number) for number in range(len(found)))
    os.kill(process, signal.SIGKILL)
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] <= len(writers.rest()) + 1 + counts[-1]


def store_of(path: Path, count: int = 3) -> Path:
    with Store.create_or_resume(path, identity(), SPACE) as store:
        for number in range(count):
            store.add(row(number))
    return path


def code_of(doing: Callable[[], object]) -> str:
    with pytest.raises(InputError) as refusal:
        doing()
    return refusal.value.code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing.db", "EATSS-D001"),
        ("folder", "EATSS-D002"),
        ("pipe", "EATSS-D002"),
        ("empty.db", "EATSS-D002"),
        ("other.db", "EATSS-D002"),
        ("newer.db", "EATSS-D002"),
    ],
)
def test_what_is_no_store_is_said_to_be_none(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty.db").write_bytes(b"")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE rows (id INTEGER)")
    with closing(sqlite3.connect(store_of(tmp_path / "newer.db"))) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    path = tmp_path / name
    assert code_of(lambda: Store.read(path)) == code
    if name not in ("missing.db", "empty.db"):  # of which a store is made
        before = path.read_bytes() if path.is_file() else b""
        assert code_of(lambda: Store.create_or_resume(path, identity(), SPACE)) == code
        assert not before or path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE rows SET point = '{' WHERE id = 2", "row 2"),
        ("UPDATE rows SET status = 'fine' WHERE id = 3", "row 3: status: 'fine' is none of"),
        ("UPDATE rows SET reason = CAST(x'6f6bff' AS TEXT)", "Could not decode"),
        ("UPDATE identity SET value = '5' WHERE field = 'card'", "its identity: card"),
        ("DROP TABLE space", "no such table"),
    ],
)
def test_what_was_edited_badly_is_named(tmp_path: Path, change: str, said: str) -> None:
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with refusing("EATSS-D002", said):
        Store.read(path)


@pytest.mark.parametrize("version", [1, 2])
def test_stores_of_before_are_read_and_gone_on_with(version: int, tmp_path: Path) -> None:
    """Those of version 2 had a log, and checksums; those of version 1 had none."""
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        if version == 2:
            connection.execute("ALTER TABLE rows ADD COLUMN checksum INTEGER")
        connection.execute(f"PRAGMA user_version = {version}")
    rows = tuple(row(number) for number in range(3))
    assert Store.read(path).rows == rows
    with Store.create_or_resume(path, identity(), SPACE) as store:
        store.add(row(99))
    assert Store.read(path).rows == (*rows, row(99))
    assert [path.name for path in tmp_path.iterdir()] == ["2mm.db"]


def test_a_full_store_is_told_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with Store.create_or_resume(tmp_path / "2mm.db", identity(), SPACE) as store:
        connection = store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        kept = 0
        with suppress(InputError):
            while True:
                store.add(row(kept))
                kept += 1
        assert kept > 0
        assert code_of(lambda: store.add(row(kept))) == "EATSS-D005"
        assert store.rows() == tuple(row(number) for number in range(kept))
        connection.execute("PRAGMA max_page_count = 1000000")
        store.add(row(kept))
        assert len(Store.read(store.path).rows) == kept + 1


def test_a_store_is_read_from_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    tmp_path.chmod(0o555)
    assert len(Store.read(path).rows) == 3
    assert code_of(lambda: Store.create_or_resume(path, identity(), SPACE)) == "EATSS-D005"
    tmp_path.chmod(0o755)


def test_whoever_writes_a_store_is_heeded_from_a_folder_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    monkeypatch.setattr("eatss.tune.store._WAITS_S", 0.01)
    path = store_of(tmp_path / "2mm.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        tmp_path.chmod(0o555)
        assert code_of(lambda: Store.read(path)) == "EATSS-D005"
        tmp_path.chmod(0o755)
