"""How many examples a property test draws."""

from __future__ import annotations

import os

EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
"""New examples in every run, many of them, instead of the same few."""


def examples(count: int) -> int:
    """Return ``count``, or twenty times as many where a run explores."""
    return 20 * count if EXPLORING else count
