"""Durations as people write them: ``30s``, ``2m``, ``1.5 h``."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?")
_UNITS_S = {None: 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration_s(text: str) -> float | None:
    """Return the seconds of a duration, seconds where it names no unit; ``None``: it is none."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else float(found[1]) * _UNITS_S[found[2]]
