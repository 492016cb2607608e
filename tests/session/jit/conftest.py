"""CuPy without a card, and programs that tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eatss.base.cache import Cache
from tests.session.jit.fake_cupy import FakeCupy


@pytest.fixture(scope="session")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of libraries that stand for machine code, each compiled once."""
    return tmp_path_factory.mktemp("machine-code")


@pytest.fixture(scope="session")
def made_before(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """Return a cache that tests share, so that each program is generated once."""
    return Cache(tmp_path_factory.mktemp("made"))


@pytest.fixture
def cupy(machine_code: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    """Return what ``import cupy`` gives: CuPy without a card."""
    fake = FakeCupy(machine_code)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr("eatss.measurement.nvrtc.compile_text", fake.compile_text)
    yield fake
    assert not fake.captures
