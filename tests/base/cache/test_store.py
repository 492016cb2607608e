"""The cache never returns what was not put, and loses nothing that is within its limit."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.base.cache import HEADER_BYTES, Cache, about, key_of, packed, unpacked

KEY = key_of("one")
KINDS = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
KEYS = st.integers().map(key_of)
TEXTS = st.text(st.characters(), max_size=300)


@given(KINDS, KEYS, st.binary(max_size=2000), TEXTS)
def test_what_is_packed_is_unpacked(kind: str, key: str, data: bytes, text: str) -> None:
    file = packed(kind, key, data, text)
    assert unpacked(kind, key, file) == data
    assert about(file[:HEADER_BYTES]) == text[:200]


@given(KINDS, KEYS, st.binary(max_size=200), TEXTS, st.data())
def test_a_change_of_any_byte_is_no_entry(
    kind: str, key: str, data: bytes, text: str, draw: st.DataObject
) -> None:
    file = bytearray(packed(kind, key, data, text))
    file[draw.draw(st.integers(0, len(file) - 1))] ^= draw.draw(st.integers(1, 255))
    assert unpacked(kind, key, bytes(file)) is None
    about(bytes(file)[:HEADER_BYTES])


def test_no_part_of_an_entry_and_no_longer_file_is_one() -> None:
    file = packed("select", KEY, b"data\n" * 20, "gemm.c")
    for length in range(len(file)):
        assert unpacked("select", KEY, file[:length]) is None
        assert about(file[:length]) in {"", "gemm.c"}
    assert unpacked("select", KEY, file + b"\0") is None
    assert unpacked("select", KEY, file + file) is None


@given(KINDS, KINDS, KEYS, KEYS, st.binary(max_size=50))
def test_an_entry_under_another_name_is_none(
    kind: str, other_kind: str, key: str, other_key: str, data: bytes
) -> None:
    file = packed(kind, key, data, "")
    found = unpacked(other_kind, other_key, file)
    assert found == (data if (kind, key) == (other_kind, other_key) else None)


@given(st.binary(max_size=300))
def test_any_bytes_are_no_entry(file: bytes) -> None:
    assert unpacked("select", KEY, file) is None
    assert unpacked("select", KEY, b"eatss-cache 1 " + file) is None


def test_what_is_put_is_there_for_the_next_cache_on_the_folder(tmp_path: Path) -> None:
    Cache(tmp_path / "c").put("select", KEY, b"one", about="gemm.c for a100")
    assert Cache(tmp_path / "c").get("select", KEY) == b"one"
    assert Cache(tmp_path / "c").get("codegen", KEY) is None
    Cache(tmp_path / "c").put("select", KEY, b"two")
    assert Cache(tmp_path / "c").get("select", KEY) == b"two"
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700


DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda file: b"",
    lambda file: file[:-1],
    lambda file: file[:30],
    lambda file: file + b"x",
    lambda file: file.replace(b"cache 1", b"cache 2"),
    lambda file: file.replace(b"value", b"other"),
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_a_miss_and_gone(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"value")
    path = cache.file("select", KEY)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get("select", KEY) is None
    assert not path.exists()
    cache.put("select", KEY, b"value")
    assert cache.get("select", KEY) == b"value"


def test_a_link_a_pipe_and_a_folder_in_the_place_of_an_entry_are_misses(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    cache.put("select", KEY, b"value")
    path = cache.file("select", KEY)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get("select", KEY) is None
    assert (tmp_path / "elsewhere").exists()
    assert not path.is_symlink()
    os.mkfifo(path)
    assert cache.get("select", KEY) is None
    path.mkdir()
    assert cache.get("select", KEY) is None
    cache.put("select", KEY, b"value")
    assert cache.get("select", KEY) is None
    assert cache.entries() == ()


def test_an_entry_stays_where_this_process_has_no_room_to_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"value")

    def no_room(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", no_room)
    assert cache.get("select", KEY) is None
    monkeypatch.undo()
    assert cache.get("select", KEY) == b"value"


@pytest.mark.parametrize("name", ["../select", "", "Select", "a/b", "."])
def test_kinds_and_keys_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no kind and key"):
        Cache(tmp_path).file(name, KEY)
    with pytest.raises(ValueError, match="no kind and key"):
        Cache(tmp_path).put("select", name, b"")


def filled(cache: Cache, numbers: range, size: int = 900) -> None:
    """Put entries, each used a second later than the one before."""
    for number in numbers:
        cache.put("select", key_of(number), bytes([number % 256]) * size)
        path = cache.file("select", key_of(number))
        if path.exists():
            os.utime(path, (1e9 + number, 1e9 + number))


def size_of(cache: Cache) -> int:
    return sum(one.size_bytes for one in cache.entries())


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 50_000)
    filled(cache, range(30))
    assert cache.get("select", key_of(3)) == bytes([3]) * 900  # used now
    filled(cache, range(30, 60))
    left = {number for number in range(60) if cache.file("select", key_of(number)).exists()}
    oldest = min(left - {3})
    assert 3 in left
    assert left == {3, *range(oldest, 60)}
    assert 0 < oldest < 59


def test_the_limit_is_kept_after_every_put(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 20_000)
    for number in range(80):
        cache.put("select", key_of(number), os.urandom(number * 40))
        assert size_of(cache) <= 20_000
        assert cache.get("select", key_of(number)) is not None


def test_nothing_goes_while_all_fits(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 100_000)
    for _ in range(5):
        filled(cache, range(50))  # estimated far too large, as they are put again and again
    assert len(cache.entries()) == 50


def test_a_smaller_limit_makes_the_folder_small_and_a_larger_entry_stays_a_miss(
    tmp_path: Path,
) -> None:
    filled(Cache(tmp_path), range(40))
    Cache(tmp_path).put("select", KEY, bytes(30_000))
    assert Cache(tmp_path, 10_000).get("select", KEY) is None
    assert Cache(tmp_path).get("select", KEY) == bytes(30_000)
    small = Cache(tmp_path, 10_000)
    small.put("select", KEY, bytes(30_000))
    small.put("select", key_of("two"), b"2")
    assert size_of(small) <= 10_000
    assert small.get("select", key_of("two")) == b"2"


@pytest.mark.parametrize("damage", [b"", b"x" * 40, b"0" * 15])
def test_a_damaged_estimate_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(tmp_path, 20_000)
    filled(cache, range(10))
    (tmp_path / "size").write_bytes(damage)
    filled(cache, range(10, 60))
    assert size_of(cache) <= 20_000


def test_clear_counts_and_leaves_other_files_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1", about="gemm.c")
    cache.put("codegen", KEY, b"22")
    (tmp_path / "select" / "mine.txt").write_text("mine")
    (tmp_path / "Mine").mkdir()
    entries = cache.entries()
    assert {(one.kind, one.key, one.about) for one in entries} == {
        ("select", KEY, "gemm.c"),
        ("codegen", KEY, ""),
    }
    sizes = {one.kind: one.size_bytes for one in entries}
    assert cache.clear("select") == (1, sizes["select"])
    assert cache.get("codegen", KEY) == b"22"
    assert cache.clear() == (1, sizes["codegen"])
    assert cache.clear() == (0, 0)
    assert (tmp_path / "select" / "mine.txt").read_text() == "mine"


def test_unfinished_files_are_removed_when_they_are_old(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1")
    old, new = tmp_path / "select" / ".old.making", tmp_path / "select" / ".new.making"
    old.touch()
    new.touch()
    os.utime(old, (1e9, 1e9))
    cache.clear("codegen")
    assert not old.exists()
    assert new.exists()


def test_a_limit_of_0_turns_it_off(tmp_path: Path) -> None:
    Cache(tmp_path).put("select", KEY, b"1")
    off = Cache(tmp_path, 0)
    assert off.get("select", KEY) is None
    off.put("select", key_of(2), b"2")
    assert Cache(tmp_path).get("select", KEY) == b"1"
    assert Cache(tmp_path).get("select", key_of(2)) is None
    assert off.problem() == "its limit is 0 bytes"


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    cache.put("select", KEY, b"1")
    assert cache.problem() is None
    (tmp_path / "c").chmod(0o770)
    assert "others can write" in str(cache.problem())
    cache.put("select", key_of(2), b"2")
    assert cache.get("select", KEY) is None
    assert cache.entries() == ()
    assert cache.clear() == (0, 0)
    (tmp_path / "c").chmod(0o755)
    assert cache.get("select", KEY) == b"1"
    assert cache.get("select", key_of(2)) is None


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache.problem() == "its folder belongs to another user"
    assert cache.get("select", KEY) is None
    cache.put("select", key_of(2), b"2")
    monkeypatch.undo()
    assert [one.key for one in cache.entries()] == [KEY]


def test_a_file_in_the_place_of_the_folder_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        cache = Cache(folder)
        cache.put("select", KEY, b"1")
        assert cache.get("select", KEY) is None
        assert cache.entries() == ()
        assert cache.problem() is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder_is_no_error(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1")
    for folder in (tmp_path, tmp_path / "select"):
        folder.chmod(0o500)
    cache.put("select", key_of(2), b"2")
    assert cache.get("select", key_of(2)) is None
    assert "written" in str(cache.problem())
    for folder in (tmp_path, tmp_path / "select"):
        folder.chmod(0o700)


@pytest.mark.parametrize("call", ["replace", "mkdir", "open", "write"])
def test_a_full_disk_is_no_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "open":
        monkeypatch.setattr(os, "open", full)
    elif call == "write":
        monkeypatch.setattr("eatss.base.cache.packed", lambda *_: b"x" * (1 << 20))
        import resource  # noqa: PLC0415

        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    else:
        monkeypatch.setattr(Path, call, full)
    cache.put("select", key_of(2), b"2" * 10_000)
    monkeypatch.undo()
    if call == "write":
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [one.key for one in cache.entries()] == [KEY]
    assert not list(tmp_path.rglob("*.making"))


def value(number: int) -> bytes:
    return f"{number} ".encode() * (50 + number)


WORKER = """
import random, sys
from pathlib import Path
from eatss.base.cache import Cache, key_of
folder, limit, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cache, draw = Cache(folder, limit), random.Random(seed)
value = lambda number: f"{number} ".encode() * (50 + number)
for _ in range(300):
    number = draw.randrange(100)
    found = cache.get("select", key_of(number))
    assert found in (None, value(number)), (number, found)
    if found is None or draw.random() < 0.2:
        cache.put("select", key_of(number), value(number))
    if seed == 0 and draw.random() < float(sys.argv[4]):
        cache.clear()
cache.put("codegen", key_of(seed), value(seed))
"""


def processes(folder: Path, limit_bytes: int, clearing: float) -> None:
    """Let processes put and get at once; each of them checks what it gets."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), str(limit_bytes), str(seed), str(clearing)]
        )
        for seed in range(4)
    ]
    assert [one.wait(60) for one in started] == [0] * 4


def test_processes_at_once_lose_nothing_within_the_limit(tmp_path: Path) -> None:
    processes(tmp_path, 10_000_000, 0)
    cache = Cache(tmp_path)
    for seed in range(4):
        assert cache.get("codegen", key_of(seed)) == value(seed)
    kept = {one.key for one in cache.entries() if one.kind == "select"}
    assert kept <= {key_of(number) for number in range(100)}
    assert len(kept) == 100  # 1200 draws among 100


def test_processes_at_once_keep_the_limit(tmp_path: Path) -> None:
    processes(tmp_path, 15_000, 0.02)
    cache = Cache(tmp_path, 15_000)
    cache.put("select", key_of("last"), b"last")
    assert 0 < size_of(cache) <= 15_000
    assert not list(tmp_path.rglob("*.making"))


def test_threads_at_once_get_what_was_put(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 30_000)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for step in range(150):
                number = (seed * 37 + step * 11) % 60
                found = cache.get("select", key_of(number))
                if found not in {None, value(number)}:
                    wrong.append((number, found))
                cache.put("select", key_of(number), value(number))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    cache.put("select", key_of(0), value(0))
    assert size_of(cache) <= 30_000


KILLED = """
import sys
from pathlib import Path
from eatss.base.cache import Cache, key_of
cache, number = Cache(Path(sys.argv[1]), 40_000_000), 0
print("ready", flush=True)
while True:
    number = (number + 1) % 20
    cache.put("select", key_of(number), str(number).encode() * 500_000)
"""


def test_a_process_that_is_killed_leaves_no_damage(tmp_path: Path) -> None:
    for turn in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.013 * (turn + 1))
        writer.kill()
        writer.wait()
        writer.stdout.close()
    cache = Cache(tmp_path)
    entries = cache.entries()
    assert entries
    for number in range(20):
        there = cache.file("select", key_of(number)).exists()
        assert cache.get("select", key_of(number)) == (
            str(number).encode() * 500_000 if there else None
        )
    assert len(cache.entries()) == len(entries)  # none was damaged
    for path in tmp_path.rglob("*.making"):
        os.utime(path, (1e9, 1e9))
    cache.clear("codegen")
    assert not list(tmp_path.rglob("*.making"))


def test_a_folder_of_somebody_else_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "size").write_text("mine")
    (tmp_path / "select").mkdir()
    (tmp_path / "select" / ".notes.making").write_text("mine")
    os.utime(tmp_path / "select" / ".notes.making", (0, 0))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1")
    assert cache.get("select", KEY) is None
    assert cache.clear() == (0, 0)
    assert "other files than a cache of eatss" in str(cache.problem())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_cache_of_before_gets_its_mark(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"1")
    (tmp_path / ".eatss-cache").unlink()
    assert cache.get("select", KEY) == b"1"
    assert (tmp_path / ".eatss-cache").exists()


@pytest.mark.parametrize("name", ["select", "size", "lock", ".eatss-cache"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "cache"
    cache = Cache(folder, 3000)
    filled(cache, range(2))
    target = outside / "kept"
    target.mkdir(parents=True) if name == "select" else outside.mkdir()
    if name != "select":
        target.write_bytes(b"mine")
    place = folder / name
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    place.symlink_to(target)
    filled(cache, range(40))
    cache.clear()
    assert not list(target.iterdir()) if name == "select" else target.read_bytes() == b"mine"
