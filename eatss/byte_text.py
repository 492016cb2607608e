"""Sizes of memory in words."""

from __future__ import annotations

from fractions import Fraction

BYTES_OF_UNIT = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
"""Bytes of each unit that sizes are told in, the smallest first."""


def bytes_text(size: int) -> str:
    """Return a size as people say it: ``48 KiB``, ``40 MiB``, ``100 bytes``."""
    scale, unit = 1, "bytes"
    for name, one in BYTES_OF_UNIT.items():
        if size >= one:
            scale, unit = one, name
    amount = Fraction(size, scale)
    if amount >= 1 << 20:
        return f"over a million {unit}"
    return f"{amount if amount.denominator == 1 else f'{float(amount):.4g}'} {unit}"
