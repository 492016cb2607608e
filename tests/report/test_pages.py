"""What Jinja compiles of pages."""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from eatss.report import pages
from eatss.report.pages import _templates, lines_of


def test_compiled_pages_are_kept_where_python_keeps_what_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    folder = Path(cache_from_source(pages.__file__)).parent
    folder.mkdir(parents=True)
    _templates.cache_clear()
    names = {"it": {"file": "a.c", "functions": ["f"]}}
    first = lines_of("heading", names)
    (kept,) = folder.glob("*.cache")
    known = kept.read_bytes()
    _templates.cache_clear()
    assert lines_of("heading", names) == first
    kept.write_bytes(known[:-20])
    _templates.cache_clear()
    assert lines_of("heading", names) == first
    assert kept.read_bytes() == known
