"""Whoever is killed while it writes to a store loses the row in flight, and nothing else."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

from eatss.base.diagnostics import InputError
from eatss.tune.store import Store
from tests.tune.store.sweeps import SPACE, identity, row

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
