"""Where the user's cache is, and how large it may be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eatss.base.cache import DEFAULT_LIMIT_BYTES, default_cache
from eatss.base.diagnostics import InputError


def test_the_folder_is_the_users_for_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("platformdirs")
    monkeypatch.delenv("EATSS_CACHE_DIR", raising=False)
    monkeypatch.delenv("EATSS_CACHE_LIMIT", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache().folder == tmp_path / "eatss"
    assert default_cache().limit_bytes == DEFAULT_LIMIT_BYTES
    assert not (tmp_path / "eatss").exists()


def test_the_folder_and_the_limit_can_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EATSS_CACHE_DIR", str(tmp_path / "here"))
    assert default_cache().folder == tmp_path / "here"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EATSS_CACHE_DIR", "here")
    assert default_cache().folder == tmp_path / "here"


@pytest.mark.parametrize(
    ("text", "limit_bytes"),
    [
        ("", DEFAULT_LIMIT_BYTES),
        ("0", 0),
        ("1000", 1000),
        ("500M", 500 << 20),
        ("2g", 2 << 30),
        (" 3 KiB ", 3 << 10),
        ("1TB", 1 << 40),
    ],
)
def test_limits(monkeypatch: pytest.MonkeyPatch, text: str, limit_bytes: int) -> None:
    monkeypatch.setenv("EATSS_CACHE_LIMIT", text)
    assert default_cache().limit_bytes == limit_bytes


@pytest.mark.parametrize("text", ["-1", "much", "1.5G", "2X", "9" * 400])
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("EATSS_CACHE_LIMIT", text)
    with pytest.raises(InputError, match="EATSS_CACHE_LIMIT") as caught:
        default_cache()
    assert caught.value.diagnostics[0].code == "EATSS-C016"


def test_without_platformdirs_it_lasts_for_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EATSS_CACHE_DIR", raising=False)
    monkeypatch.delenv("EATSS_CACHE_LIMIT", raising=False)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    folder = default_cache().folder
    assert folder.is_dir()
    assert folder == default_cache().folder
    assert default_cache().problem() is None
