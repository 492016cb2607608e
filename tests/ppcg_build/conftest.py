"""PPCGs for tests: a recorded one, real ones, and some that fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ppcg_build.recorded_ppcg import wrapper


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A PPCG that answers from recordings."""
    return wrapper(tmp_path / "recorded-ppcg")


@pytest.fixture
def real() -> str:
    """The PPCG of this machine."""
    named = os.environ.get("EATSS_PPCG") or shutil.which("ppcg")
    if named is None:
        pytest.skip("there is no PPCG: name one in EATSS_PPCG")
    return named


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """Make a PPCG of a shell script."""

    def made(body: str) -> Path:
        path = tmp_path / "scripted-ppcg"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return made
