"""Means, differences and ratios of windows with Student's t intervals.

Windows are taken for independent and normal. As they are repeated until the interval is narrow,
which stops early where the spread happens to look small, a 95 % interval of one quantity covers
less than 95 % where windows scatter by more than half the target: 93 % at the target of 1 % and
windows that scatter by 1 %, 91 % at 2 %; where time and energy both have to be narrow, 94 % at
either (``benchmarks/interval_coverage.py``, 3 to 22 windows).

Quantiles of Student's t distribution, of whole degrees of freedom.

SciPy has them for any. Here it is done without, since a machine that measures may have only NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from eatss.measurement.measurement import Estimate, Ratio

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


def mean_estimate(values: Sequence[float], confidence: float) -> Estimate:
    """Return the mean of at least one value and its interval, which needs two."""
    mean = float(np.mean(values))
    count = len(values)
    if count < 2:
        return Estimate(mean=mean, low=None, high=None, count=count)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    half = two_sided_quantile(confidence, count - 1) * error
    return Estimate(mean=mean, low=mean - half, high=mean + half, count=count)


def difference_estimate(
    values: Sequence[float], subtracted: Sequence[float], confidence: float
) -> Estimate:
    """Return the mean of ``values`` less that of ``subtracted``.

    Both are measured apart, so the half-widths of their intervals are added in quadrature. Of
    few values this covers the truth a little more often than it says; the degrees of freedom
    of Welch and Satterthwaite cover it less often. ``count`` is that of ``values``.
    """
    own, other = mean_estimate(values, confidence), mean_estimate(subtracted, confidence)
    mean, halves = own.mean - other.mean, (_half_width(own), _half_width(other))
    if None in halves:
        return Estimate(mean=mean, low=None, high=None, count=own.count)
    half = math.hypot(*(half for half in halves if half is not None))
    return Estimate(mean=mean, low=mean - half, high=mean + half, count=own.count)


def energy_estimate(
    energies_j: Sequence[float], restoring_j: Sequence[float], confidence: float
) -> Estimate:
    """Return the mean energy of a run.

    Args:
        energies_j: one value a window, the mean of ``restoring_j`` already subtracted.
        restoring_j: what was subtracted, one value a window of restoring; empty if nothing was.
        confidence: of the interval.
    """
    if not restoring_j:
        return mean_estimate(energies_j, confidence)
    mean = float(np.mean(restoring_j))
    gross = [energy + mean for energy in energies_j]
    return difference_estimate(gross, restoring_j, confidence)


def paired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float
) -> Ratio:
    """Return the ratio of two variants from windows taken in the same rounds.

    The logarithm of the ratio of each round is one value; the interval is that of their mean. What
    drifts from round to round and hits both alike cancels.

    Args:
        numerators: times or energies, one a round, all positive.
        denominators: those of the other variant in the same rounds.
        confidence: of the interval, below 1.
    """
    logs = np.log(np.asarray(numerators)) - np.log(np.asarray(denominators))
    found = mean_estimate(logs.tolist(), confidence)
    if found.low is None or found.high is None:
        return Ratio(value=math.exp(found.mean), low=None, high=None)
    return Ratio(value=math.exp(found.mean), low=math.exp(found.low), high=math.exp(found.high))


def ratio_of_estimates(numerator: Estimate, denominator: Estimate) -> Ratio:
    """Return the ratio of two means that were not measured in pairs.

    To first order the relative variances add (the delta method), so the relative half-widths of
    intervals of the same confidence are added in quadrature.
    """
    value = numerator.mean / denominator.mean
    if numerator.relative is None or denominator.relative is None:
        return Ratio(value=value, low=None, high=None)
    half = value * math.hypot(numerator.relative, denominator.relative)
    return Ratio(value=value, low=value - half, high=value + half)


def inverse(ratio: Ratio, factor: float = 1.0) -> Ratio:
    """Return ``factor`` over a positive ratio."""
    ends = [None if end is None or end <= 0 else factor / end for end in (ratio.high, ratio.low)]
    return Ratio(value=factor / ratio.value, low=ends[0], high=ends[1])


def _half_width(estimate: Estimate) -> float | None:
    if estimate.low is None or estimate.high is None:
        return None
    return (estimate.high - estimate.low) / 2
