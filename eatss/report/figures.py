"""Numbers with their uncertainty as people read them."""

from __future__ import annotations

import math

from eatss.measurement.estimate import Estimate, Ratio

MODULE_NOTE = "NVML's power is of the module: GPU, CPU and their memory, not of the GPU alone"

NONE = "-"
"""Stands for what has no value."""


def figure(value: float | None, digits: int = 4) -> str:
    """Return a number with so many significant digits and never an exponent; ``-`` for none."""
    if value is None:
        return NONE
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def scaled(value: float | None, factor: float, digits: int = 4) -> str:
    """Return ``value × factor`` as :func:`figure` does."""
    return figure(None if value is None else value * factor, digits)


def spread(estimate: Estimate | None) -> str:
    """Return half the interval as a percentage of the mean, ``±0.12%``; "" where there is none."""
    relative = None if estimate is None else estimate.relative
    return "" if relative is None else f"±{100 * relative:.2g}%"


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio and its interval, ``1.020 [1.001, 1.039]``."""
    if ratio is None:
        return NONE
    if ratio.low is None or ratio.high is None:
        return figure(ratio.value)
    digits = _digits(ratio.value, ratio.high - ratio.low)
    low, value, high = (f"{number:.{digits}f}" for number in (ratio.low, ratio.value, ratio.high))
    return f"{value} [{low}, {high}]"


def _digits(value: float, width: float) -> int:
    """Return the decimals that show an interval's width with two digits, within reason."""
    least = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 3
    if width <= 0:
        return least
    return max(0, min(least, 1 - math.floor(math.log10(width))))


def bytes_amount(value: float) -> str:
    """Return bytes in the binary unit that suits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{figure(value, 3)} {unit}"
        value /= 1024
    return f"{figure(value, 3)} TiB"


def with_prefix(value: float) -> str:
    """Return a count, with G, M or k behind it where it is large."""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{figure(value / scale)} {prefix}"
    return f"{value:g}"


def seconds(value: float) -> str:
    """Return a duration in words short enough for a line: ``12 s``, ``3 min 20 s``."""
    if value < 60:
        return f"{figure(value, 2) if value < 10 else round(value)} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"
