"""Marks of tests that need a card and CuPy."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


def _why_not() -> str:
    try:
        cupy: Any = importlib.import_module("cupy")
        return "" if cupy.cuda.runtime.getDeviceCount() else "there is no card"
    except Exception as error:  # no CuPy, no driver, no card
        return f"needs a card: {error}"


NEEDS_CARD = [pytest.mark.gpu, pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "-")]
