"""Programs and cards that exist in a script only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.measurement.scripted_card import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)
