"""The cache never returns what was not put, and loses nothing that is within its limit."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from eatss.base.cache import Cache, default_cache, key_of, versions

KEY = key_of("one")


class Colour(Enum):
    RED = "red"
    BLUE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    name: object
    size: object = 1


def test_what_looks_alike_has_another_key() -> None:
    alike: list[tuple[object, ...]] = [
        (1,), (1.0,), (True,), ("1",), (b"1",), ((1,),), (1, 1), (11,), ("1", ""), ("", "1"),
        ((), (1,)), ({"1": 1},), (frozenset({1}),), (0.0,), (-0.0,), (None,), ("null",),
        (Colour.BLUE,), (Path("1"),), (Noun(name=1),), (Noun(name=1, size=2),),
        (Noun(name=Noun(name="\ud800")),),
    ]  # fmt: skip
    assert len({key_of(*parts) for parts in alike}) == len(alike)


def test_a_list_is_a_tuple_and_the_order_of_a_mapping_does_not_count() -> None:
    assert key_of([1, [2]]) == key_of((1, (2,)))
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    with pytest.raises(TypeError, match="no part of a key"):
        key_of(len)


CHECK = """
import sys
from eatss.base.cache import versions, key_of, default_cache
found = versions()
default_cache()
heavy = {"islpy", "z3", "clang", "numpy", "networkx", "pydantic", "rich"} & set(sys.modules)
assert not heavy, heavy
print(key_of(found))
"""


def test_versions_are_the_same_in_every_process_and_import_nothing(tmp_path: Path) -> None:
    assert "none" not in dict(versions()).values()
    said = subprocess.run(
        [sys.executable, "-c", CHECK], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    assert said == [key_of(versions())]


def test_what_is_put_is_there_for_the_next_cache_on_the_folder(tmp_path: Path) -> None:
    Cache(tmp_path / "c").put("select", KEY, b"one")
    assert Cache(tmp_path / "c").get("select", KEY) == b"one"
    assert Cache(tmp_path / "c").get("codegen", KEY) is None
    Cache(tmp_path / "c").put("select", KEY, b"two")
    assert Cache(tmp_path / "c").get("select", KEY) == b"two"
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700


def test_a_damaged_entry_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("select", KEY, b"value")
    path = cache.file("select", KEY)
    good = path.read_bytes()
    for damaged in (b"", good[:-1], good[:30], good + b"x", good.replace(b"value", b"other")):
        path.write_bytes(damaged)
        assert cache.get("select", KEY) is None
    path.unlink()
    path.mkdir()
    assert cache.get("select", KEY) is None
    cache.put("select", KEY, b"value")
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def size_of(cache: Cache) -> int:
    return sum(path.stat().st_size for path in cache.files())


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 50_000)
    for number in range(60):
        cache.put("select", key_of(number), bytes([number]) * 900)
        os.utime(cache.file("select", key_of(number)), (1e9 + number, 1e9 + number))
        if number == 29:
            assert cache.get("select", key_of(3)) == bytes([3]) * 900  # used now
    left = {number for number in range(60) if cache.file("select", key_of(number)).exists()}
    oldest = min(left - {3})
    assert left == {3, *range(oldest, 60)}
    assert 0 < oldest < 59


def test_a_cache_that_cannot_be_used_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "c")
    cache.put("select", KEY, b"1")
    (tmp_path / "file").write_text("")
    off = [(Cache(tmp_path / "file" / "c"), "be made")]
    cache.folder.chmod(0o770)
    off.append((cache, "others can write"))
    for one, why in off:
        one.put("select", KEY, b"2")
        assert one.get("select", KEY) is None
        assert why in str(one.problem())
    cache.folder.chmod(0o755)
    assert cache.get("select", KEY) == b"1"
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache.problem() == "its folder belongs to another user"


def test_a_full_disk_is_no_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.put("select", KEY, b"2" * 10_000)
    monkeypatch.undo()
    assert cache.files() == []


WORKER = """
import random, sys
from pathlib import Path
from eatss.base.cache import Cache, key_of
folder, limit, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cache, draw = Cache(folder, limit), random.Random(seed)
value = lambda number: f"{number} ".encode() * (50 + number)
for _ in range(200):
    number = draw.randrange(100)
    found = cache.get("select", key_of(number))
    assert found in (None, value(number)), (number, found)
    if found is None or draw.random() < 0.2:
        cache.put("select", key_of(number), value(number))
"""


def test_processes_at_once_get_what_was_put_and_keep_the_limit(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), "15000", str(seed)])
        for seed in range(3)
    ]
    assert [one.wait(60) for one in started] == [0] * 3
    cache = Cache(tmp_path, 15_000)
    cache.put("select", KEY, b"last")
    assert 0 < size_of(cache) <= 15_000


def test_the_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EATSS_CACHE_DIR", "here")
    monkeypatch.chdir(tmp_path)
    assert default_cache() == Cache(tmp_path / "here")
    monkeypatch.delenv("EATSS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache().folder == tmp_path / "eatss"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache().folder == Path.home() / ".cache" / "eatss"
