"""``Progress``: what a measurement does now and what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

StageName: TypeAlias = Literal[
    "start",
    "compile",
    "check",
    "first run",
    "compare",
    "try repeating",
    "idle power",
    "warm-up",
    "restoring",
    "window",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What runs now, and how much is done.

    ``variant`` is a label, "" where what runs is for all. ``window`` counts the windows of that
    variant from 1, 0 where no window runs. ``left_s`` estimates the seconds of measuring that are
    left at most: the budgets of variants that have not ended.
    """

    variant: str
    stage: StageName
    window: int
    variants_done: int
    variants: int
    windows_done: int
    left_s: float
