"""How much a sweep may take: variants, seconds of the sweep, joules of the card."""

from __future__ import annotations

import re
from math import isfinite
from typing import TypeVar

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.text import duration_s

_VARIANTS = re.compile(r"(\d+)\s*(?:variants?)?")
_ENERGY = re.compile(r"(\d+(?:\.\d+)?)\s*(k|M)?J")
_ENERGY_J = {None: 1.0, "k": 1e3, "M": 1e6}
_AMOUNTS = ("{} variants", "{:g} s", "{:g} J")
T = TypeVar("T")
_HINT = "write a number of variants, a time, an energy, or several: 300, 30m, 20kJ, 300,30m"


@frozen
class Budget:
    """What may be spent; ``None`` is without limit.

    Attributes:
        variants: How many may be measured.
        seconds: How long the sweep may last.
        joules: What the card may draw.
    """

    variants: int | None = None
    seconds: float | None = None
    joules: float | None = None

    def __post_init__(self) -> None:
        for limit, _ in self._limits(0, 0, 0):
            if not (limit > 0 and isfinite(limit)):
                raise input_error("EATSS-T004", f"a budget of {limit} is none", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``"300"``, ``"300 variants"``, ``"30m"``, ``"20kJ"``, or several with commas.

        Raises:
            InputError: ``EATSS-T004``, it is no budget, or limits one thing twice.
        """
        variants: int | None = None
        seconds = joules = None
        for part in text.split(","):
            one = part.strip()
            if found := _VARIANTS.fullmatch(one):
                variants = _once(variants, int(found[1]), text)
            elif found := _ENERGY.fullmatch(one):
                joules = _once(joules, float(found[1]) * _ENERGY_J[found[2]], text)
            elif (time_s := duration_s(one)) is not None:
                seconds = _once(seconds, time_s, text)
            else:
                raise input_error("EATSS-T004", f"{one!r} is no budget", hint=_HINT)
        return cls(variants=variants, seconds=seconds, joules=joules)

    def left(self, variants: int = 0, seconds: float = 0.0, joules: float = 0.0) -> Budget | None:
        """Return what is left when so much was spent; ``None`` where any of it is used up."""
        if any(used >= limit for limit, used in self._limits(variants, seconds, joules)):
            return None
        return Budget(
            variants=None if self.variants is None else self.variants - variants,
            seconds=None if self.seconds is None else self.seconds - seconds,
            joules=None if self.joules is None else self.joules - joules,
        )

    def over(self, variants: int = 0, seconds: float = 0.0, joules: float = 0.0) -> bool:
        """Return whether so much is more than it allows."""
        return any(used > limit for limit, used in self._limits(variants, seconds, joules))

    def share(self, variants: int = 0, seconds: float = 0.0, joules: float = 0.0) -> float:
        """Return how much of it is spent, from 0 to 1: of what is used up first."""
        spent = self._limits(variants, seconds, joules)
        return min(1.0, max((used / limit for limit, used in spent), default=0.0))

    def _limits(self, *spent: float) -> list[tuple[float, float]]:
        """Return each limit that there is, and what was spent of it."""
        limits = (self.variants, self.seconds, self.joules)
        pairs = zip(limits, spent, strict=True)
        return [(limit, used) for limit, used in pairs if limit is not None]

    def __str__(self) -> str:
        amounts = zip((self.variants, self.seconds, self.joules), _AMOUNTS, strict=True)
        parts = (text.format(limit) for limit, text in amounts if limit is not None)
        return ", ".join(parts) or "no limit"


def _once(before: T | None, now: T, text: str) -> T:
    if before is not None:
        raise input_error("EATSS-T004", f"the budget {text!r} limits one thing twice", hint=_HINT)
    return now
