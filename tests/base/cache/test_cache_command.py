"""``eatss cache`` shows what is kept and removes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eatss.base.cache import Cache, default_cache, key_of
from tests.end_to_end.in_process import eatss as command


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("EATSS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("EATSS_CACHE_LIMIT")
    found = default_cache()
    found.put("select", key_of(1), bytes(2000), about="gemm.c for a100")
    found.put("cubin", key_of(2), bytes(3000), about="gemm.cu by nvcc\x1b[2J for sm_90")
    return found


def test_ls_shows_what_is_kept(cache: Cache) -> None:
    said = command("cache", "ls")
    assert said.returncode == 0
    assert said.stdout.startswith(f"{cache.folder}\n")
    assert "gemm.c for a100" in said.stdout
    assert "\x1b" not in said.stdout  # what a file says cannot steer a terminal
    assert said.stdout.splitlines()[-1].startswith("2 entries, 5.")
    assert said.stdout.rstrip().endswith("limit 1 GiB")


def test_ls_prints_json(cache: Cache) -> None:
    said = json.loads(command("cache", "ls", "--format", "json").stdout)
    assert said["folder"] == str(cache.folder)
    assert said["problem"] is None
    assert {one["key"] for one in said["entries"]} == {key_of(1), key_of(2)}
    assert said["size_bytes"] == sum(one["size_bytes"] for one in said["entries"])


def test_clear_removes_a_kind_or_all(cache: Cache) -> None:
    assert command("cache", "clear", "--kind", "cubin").stdout.startswith("removed 1 entry, ")
    assert [one.kind for one in cache.entries()] == ["select"]
    assert command("cache", "clear").stdout.startswith("removed 1 entry, ")
    assert command("cache", "clear").stdout == f"removed 0 entries, 0 bytes from {cache.folder}\n"


def test_path_names_the_folder(cache: Cache) -> None:
    assert command("cache", "path").stdout == f"{cache.folder}\n"


def test_why_nothing_is_kept_is_said(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EATSS_CACHE_LIMIT", "0")
    assert "nothing is kept: its limit is 0 bytes" in command("cache", "ls").stdout
    doctor = json.loads(command("doctor", "--format", "json").stdout)["checks"]
    (found,) = (check for check in doctor if check["name"] == "cache")
    assert found["ok"] is None
    assert "its limit is 0 bytes" in found["found"]


def test_a_limit_that_is_none_is_told_as_a_mistake(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EATSS_CACHE_LIMIT", "much")
    said = command("cache", "ls")
    assert said.returncode == 2
    assert "EATSS-C016" in said.stderr
