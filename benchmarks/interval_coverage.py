"""How often 95 % intervals hold the truth when measuring stops as soon as they are narrow.

    python benchmarks/interval_coverage.py [--trials 4000]

Simulates the stopping rule of ``eatss measure`` with its own statistics at the default target and
least windows: independent normal windows, at most as many as fit the default budget at 2.7 s each.
The last line is of ratios between two variants that drift alike, formed within rounds.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from eatss.measurement.assemble import mean_estimate, paired_ratio
from eatss.measurement.options import MeasureOptions

OPTIONS = MeasureOptions()
WINDOW_S = 2.7
MOST = int(OPTIONS.budget_s / WINDOW_S)
SCATTERS = (0.002, 0.005, 0.01, 0.02, 0.05)
RATIO_SCATTERS, DRIFT = (0.002, 0.01), 0.005


def windows_taken(values: npt.NDArray[np.float64]) -> int:
    """Return after how many windows a variant stops; ``values`` has a row a quantity."""
    for count in range(OPTIONS.least_windows, MOST):
        widths = [mean_estimate(list(row[:count])).relative for row in values]
        if all(width is not None and width <= OPTIONS.target for width in widths):
            return count
    return MOST


def holds(values: npt.NDArray[np.float64]) -> bool:
    """Tell whether the interval of a mean holds 1."""
    estimate = mean_estimate(list(values))
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= 1.0 <= estimate.high


def coverage(
    scatter: float, quantities: int, trials: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return how often the interval of the first quantity holds the truth, and the mean windows."""
    held, taken = 0, 0
    for _ in range(trials):
        values = rng.normal(1.0, scatter, (quantities, MOST))
        count = windows_taken(values)
        held += holds(values[0, :count])
        taken += count
    return held / trials, taken / trials


def ratio_coverage(trials: int, rng: np.random.Generator) -> float:
    """Return how often the interval of the ratio of two equal variants that drift holds 1."""
    held = 0
    for _ in range(trials):
        drift = 1.0 + DRIFT * np.arange(MOST)
        both = np.stack([drift * rng.normal(1.0, scatter, MOST) for scatter in RATIO_SCATTERS])
        count = max(windows_taken(both[:1]), windows_taken(both[1:]))
        ratio = paired_ratio(list(both[0, :count]), list(both[1, :count]))
        assert ratio.low is not None
        assert ratio.high is not None
        held += ratio.low <= 1.0 <= ratio.high
    return held / trials


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=4000)
    trials = parser.parse_args().trials
    rng = np.random.default_rng(0)
    print(
        f"{trials} trials, target {OPTIONS.target:.0%}, {OPTIONS.least_windows} to {MOST} windows"
    )
    print(
        f"{'scatter':>8} {'one quantity':>13} {'windows':>8} {'time and energy':>16} {'windows':>8}"
    )
    for scatter in SCATTERS:
        (one, few), (two, more) = (coverage(scatter, n, trials, rng) for n in (1, 2))
        print(f"{scatter:8.1%} {one:13.1%} {few:8.1f} {two:16.1%} {more:8.1f}")
    ratio = ratio_coverage(trials, rng)
    print(
        f"ratio of two variants (scatter {RATIO_SCATTERS[0]:.1%} and {RATIO_SCATTERS[1]:.1%}) that "
        f"both slow down by {DRIFT:.1%} a round: {ratio:.1%}"
    )


if __name__ == "__main__":
    main()
