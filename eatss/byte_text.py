"""Sizes of memory in words."""

from __future__ import annotations

from fractions import Fraction


def bytes_text(size: int) -> str:
    """Return a size as people say it: ``48 KiB``, ``40 MiB``, ``100 bytes``."""
    scale, unit = 1, "bytes"
    for power, name in enumerate(("KiB", "MiB", "GiB", "TiB"), start=1):
        if size >= 1 << 10 * power:
            scale, unit = 1 << 10 * power, name
    amount = Fraction(size, scale)
    if amount >= 1 << 20:
        return f"over a million {unit}"
    return f"{amount if amount.denominator == 1 else f'{float(amount):.4g}'} {unit}"
