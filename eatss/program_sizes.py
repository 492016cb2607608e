"""Sizes that a prediction is for, in words: ``NI=NJ=NK=4000``, ``n=4096 assumed``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSize:
    """A size of a program by its name in the source; ``assumed`` where nothing says its value."""

    name: str
    value: int
    assumed: bool = False


def sizes_text(sizes: Sequence[ProgramSize]) -> str:
    """Return the sizes that a prediction is for, ``at T=20, n=4096 assumed, --param n=…``."""
    if not sizes:
        return "at the sizes in the source"
    given = [one for one in sizes if not one.assumed]
    assumed = [one for one in sizes if one.assumed]
    parts = _equations(given)
    if assumed:
        parts += [
            f"{' '.join(_equations(assumed))} assumed",
            " ".join(f"--param {one.name}=…" for one in assumed),
        ]
    return f"at {', '.join(parts)}"


def _equations(sizes: Sequence[ProgramSize]) -> list[str]:
    """Return sizes as texts, neighbours of one value together."""
    return [
        f"{'='.join(one.name for one in same)}={value}"
        for value, same in groupby(sizes, key=lambda one: one.value)
    ]
