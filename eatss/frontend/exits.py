"""The rounds of a loop that ``continue`` and ``break`` leave."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from eatss.frontend.polynomial import Poly
from eatss.frontend.values import ValueAlgebra
from eatss.isl_names import coalesced, renamed_parameter, without_parameter


@dataclass(slots=True, kw_only=True)
class Exits:
    """Where the body of one loop is left: ``left`` for the round, ``broken`` for the loop.

    ``sign`` is -1 where the counter runs down; ``guards`` is the number of conditions around the
    loop that are not affine.
    """

    counter: str
    sign: int
    guards: int
    left: isl.Set | None = None
    broken: isl.Set | None = None

    def add(self, domain: isl.Set, *, breaks: bool) -> None:
        """Add the points at which a ``break`` or a ``continue`` is met."""
        self.left = domain if self.left is None else self.left.union(domain)
        if breaks:
            self.broken = domain if self.broken is None else self.broken.union(domain)

    def before(self, domain: isl.Set, algebra: ValueAlgebra) -> isl.Set:
        """Return the part of a domain in rounds that no earlier ``break`` has kept from running."""
        if self.broken is None:
            return domain
        earlier = f"{self.counter}_earlier"
        gap = algebra.add(Poly.unknown(self.counter), Poly.unknown(earlier), -1)
        after = algebra.at_least(algebra.scale(gap, self.sign), Poly.constant(1))
        met = renamed_parameter(self.broken, self.counter, earlier).intersect(after)
        return coalesced(domain.subtract(without_parameter(met, earlier)))
