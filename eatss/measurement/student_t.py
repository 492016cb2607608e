"""Quantiles of Student's t distribution, of whole degrees of freedom.

SciPy has them for any. Here it is done without, since a machine that measures may have only NumPy.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

_HALVINGS = 60
"""Of an interval of π/2: the last is below the spacing of its numbers."""


@lru_cache
def two_sided_quantile(confidence: float, freedom: int) -> float:
    """Return the number that ``|t|`` stays below with the probability ``confidence``.

    The probability is a finite sum in sine and cosine of ``θ = atan(t / √freedom)``
    (Abramowitz and Stegun, 26.7.3 and 26.7.4), and grows with it.

    Args:
        confidence: from 0 to below 1.
        freedom: degrees of freedom, at least 1.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _probability(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _probability(angle: float, freedom: int) -> float:
    """Return the probability that ``|t|`` is below ``√freedom · tan(angle)``."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    steps = np.arange(1 + odd, freedom - 2 + odd, 2)  # each term is the one before × n/(n + 1) cos²
    factors = np.concatenate(([1.0], steps / (steps + 1) * cosine**2))
    total = float(np.cumprod(factors).sum())
    if not odd:
        return sine * total
    return 2 / math.pi * (angle + (sine * cosine * total if freedom > 1 else 0.0))
