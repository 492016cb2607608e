from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from eatss.base.files import place_files, placed_files


def contents(number: int) -> dict[str, bytes]:
    """Return files of which each says which set it is of."""
    return dict.fromkeys(("a", "b", "c/d", "last"), b"%d" % number)


def whole(folder: Path) -> set[bytes]:
    """Read the files, each of which is there; the last one may be away, and is no other's then."""
    found = {(folder / name).read_bytes() for name in ("a", "b", "c/d")}
    with suppress(FileNotFoundError):
        found.add((folder / "last").read_bytes())
    return found


def test_sets_that_are_placed_at_once_do_not_mix(tmp_path: Path) -> None:
    for turn in range(8):
        folder = tmp_path / str(turn)
        with ThreadPoolExecutor(8) as pool:
            sets = [contents(number) for number in range(24)]
            list(pool.map(lambda one: place_files(folder, one, last="last"), sets))  # noqa: B023
        assert len(whole(folder)) == 1
        assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "c", "last"]


def test_a_file_that_cannot_be_placed_leaves_the_old_ones(tmp_path: Path) -> None:
    place_files(tmp_path / "out", contents(1))
    (tmp_path / "out" / "z").mkdir()
    with pytest.raises(IsADirectoryError):
        place_files(tmp_path / "out", {**contents(2), "z": b""})
    assert whole(tmp_path / "out") == {b"1"}


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="irectory"):
        place_files(tmp_path / "file", contents(1))
    assert (tmp_path / "file").read_text() == ""


class FailsError(Exception):
    """What follows fails."""


@pytest.mark.parametrize("before", [True, False])
def test_files_are_taken_back_where_what_follows_fails(before: bool, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    if before:
        place_files(out, contents(1))
        (out / "c" / "own").write_text("")
    with suppress(FailsError), placed_files(out, {**contents(2), "e/f": b""}, folders=["g"]):
        assert whole(out) == {b"2"}
        raise FailsError
    if before:
        assert whole(out) == {b"1"}
        assert sorted(path.name for path in out.rglob("*")) == ["a", "b", "c", "d", "last", "own"]
    else:
        assert list(tmp_path.iterdir()) == []


def test_what_others_put_into_a_new_folder_stays_where_it_is_taken_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with suppress(FailsError), placed_files(out, contents(1)):
        (out / "other").write_text("")
        raise FailsError
    assert [path.name for path in out.iterdir()] == ["other"]


def test_a_file_that_is_replaced_is_there_at_every_moment_but_the_last(tmp_path: Path) -> None:
    place_files(tmp_path / "out", contents(0))
    done = threading.Event()

    def replaces() -> None:
        for number in range(60):
            place_files(tmp_path / "out", contents(number), last="last")
        done.set()

    reads = 0
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(replaces)
        while not done.is_set() and not writer.done():
            whole(tmp_path / "out")
            reads += 1
        writer.result()
    assert reads > 0


REPLACES = """\
import sys
from pathlib import Path
from eatss.base.files import place_files
print(flush=True)
while True:
    place_files(Path(sys.argv[1]), dict.fromkeys(("a", "b", "c/d", "last"), b"1"), last="last")
"""


def test_a_process_that_is_killed_leaves_no_mixed_set_and_its_remains_go(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    place_files(out, contents(0))
    remains = 0
    for turn in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", REPLACES, str(out)], stdout=subprocess.PIPE
        ) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(random.Random(turn).uniform(0.0, 0.02))
            run.kill()
        assert whole(out) <= {b"0", b"1"}
        if (out / "last").exists():
            assert len(whole(out)) == 1
        remains += len(list(out.glob(".eatss-*")))
    assert remains > 0
    place_files(out, contents(2))
    assert sorted(path.name for path in out.iterdir()) == ["a", "b", "c", "last"]


def test_a_stage_that_is_filled_stays(tmp_path: Path) -> None:
    with placed_files(tmp_path, {"a": b"1"}):
        (stage,) = tmp_path.glob(".eatss-*")
        place_files(tmp_path / "inner" / "out", contents(1))
        assert stage.is_dir()
