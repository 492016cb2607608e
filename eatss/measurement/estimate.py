"""Means with confidence intervals, and ratios of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and its confidence interval, both in the unit of what was measured.

    ``count`` is the number of windows behind it. With one window there is no interval:
    ``low`` and ``high`` are ``None``.
    """

    mean: float
    low: float | None
    high: float | None
    count: int

    @property
    def relative(self) -> float | None:
        """Half the interval over the mean; ``None`` where there is no interval or no mean."""
        if self.low is None or self.high is None or self.mean == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of two means and its confidence interval, ``None`` where it has none."""

    value: float
    low: float | None
    high: float | None
