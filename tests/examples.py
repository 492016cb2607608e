"""How many examples a property test draws, and which ones take long."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import Any

import pytest

EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
"""New examples in every run, many of them, instead of the same few."""


def examples(count: int) -> int:
    """Return ``count``, or twenty times as many where a run explores."""
    return 20 * count if EXPLORING else count


def with_long(values: Iterable[object], slow: Container[object]) -> list[Any]:
    """Return values to run a test with, those that are slow with ``pytest -m long`` only."""
    return [
        pytest.param(value, marks=[pytest.mark.long] if value in slow else []) for value in values
    ]


SLOW_KERNELS = frozenset(
    (
        "2mm",
        "3mm",
        "adi",
        "correlation",
        "covariance",
        "doitgen",
        "fdtd-apml",
        "gramschmidt",
        "heat-3d",
        "matmul",
        "symm",
        "syr2k",
    )
)
"""Kernels of the collection that take longest; smaller ones are as gemm, syrk, lu, atax, trmm."""
