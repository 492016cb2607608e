"""C that tests call, arrays to call it with, and calls that have to be refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import eatss

KERNELS = Path(__file__).resolve().parents[3] / "kernels"

SCALED = """
void scaled(int n, double factor, double A[n], double B[n]) {
#pragma scop
    for (int i = 0; i < n; i++)
        B[i] = factor * A[i];
#pragma endscop
}
"""
"""One launch; the size is an argument."""

STEPS = """
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef COUNT
#define COUNT 6
#endif
void steps(int n, DATA_TYPE A[n + 1]) {
    DATA_TYPE next[n];
#pragma scop
    for (int t = 0; t < COUNT; t++) {
        for (int i = 0; i < n; i++)
            next[i] = A[i] + (DATA_TYPE)2 * A[i + 1];
        for (int i = 0; i < n; i++)
            A[i] = next[i];
    }
#pragma endscop
}
"""
"""Two launches a step, with a temporary array; no array determines ``COUNT``."""


def steps_of(before: npt.NDArray[Any], steps: int) -> npt.NDArray[Any]:
    """Return what ``STEPS`` makes of an array."""
    after = before.copy()
    for _ in range(steps):
        after[:-1] = after[:-1] + 2 * after[1:]
    return after


def random(*shape: int, dtype: npt.DTypeLike = np.float64, seed: int = 0) -> npt.NDArray[Any]:
    """Return numbers from 0 to 1, the same for the same shape and seed."""
    return np.random.default_rng((seed, *shape)).random(shape).astype(dtype)


def refused(code: str, call: Callable[[], object]) -> eatss.EatssError:
    with pytest.raises(eatss.InputError) as caught:
        call()
    assert caught.value.code == f"EATSS-{code}", str(caught.value)
    return caught.value
