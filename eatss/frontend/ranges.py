"""Whether values lie in the range of their C type wherever C could have wrapped them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from eatss.frontend.refusals import NotAffineError
from eatss.frontend.symbols import Variable
from eatss.frontend.tree import Node
from eatss.frontend.types import CType
from eatss.frontend.values import Poly, Value, ValueAlgebra
from eatss.polyhedral.isl_names import (
    coalesced,
    parameter_names,
    parameters_set,
    without_parameters,
)

_FITS = "a number of the original would not fit its type otherwise"
_USUAL_SIZES = (61, 4099)
"""Sizes at which no condition on sizes may exclude a program: all alike, small and large."""


@dataclass(frozen=True, slots=True)
class RangeAssumption:
    """A value that was taken to fit its type without proof."""

    node: Node
    type: CType


class RangeProver:
    """Proves ranges; what it could not prove but takes for granted is in ``assumptions``.

    ``used_parameters`` is filled by the reader of expressions; the types of parameters
    bound their values. ``stated`` are the sizes for which all holds that was proven, by what would
    be the case for others: what runs the code has to check it.
    """

    def __init__(self, algebra: ValueAlgebra) -> None:
        self._algebra = algebra
        self.used_parameters: dict[str, Variable] = {}
        self.assumptions: list[RangeAssumption] = []
        self.stated: dict[str, isl.Set] = {}
        self._trusts = self._states = False

    @contextmanager
    def stating(self) -> Iterator[None]:
        """State conditions on sizes under which values fit, where nothing else would do."""
        before, self._states = self._states, True
        try:
            yield
        finally:
            self._states = before

    @contextmanager
    def trust(self) -> Iterator[None]:
        """Check nothing: what is read is not used before it was read again with checks."""
        self._trusts = True
        try:
            yield
        finally:
            self._trusts = False

    def check(self, node: Node, value: Value, domain: isl.Set) -> None:
        """See that a value lies in the range of its type wherever C could have wrapped it."""
        if self._trusts or not _may_leave(node):
            return
        ctype = node.type
        known = domain.intersect(self.of_parameters(domain))
        if isinstance(value, Poly) and not value.is_linear and self.sums_up(value, known):
            return
        above = self._algebra.at_least(value, ctype.minimum)
        if ctype.signed:
            low = self.proven(known, above)
        elif not (low := self.proven_or_stated(known, above)):
            raise NotAffineError(
                node,
                f"value of type '{ctype.spelling}' may be negative here, where C wraps it around",
                code="EATSS-F036",
                hint="use a signed type, or write it without subtraction (i + 1 < n)",
            )
        below = self._algebra.at_least(ctype.maximum, value)
        if not low or (ctype.bits <= 32 and not self.proven(known, below)):
            self._assume(node, known, above.intersect(below))

    def _assume(self, node: Node, known: isl.Set, within: isl.Set) -> None:
        """Take a value for one of its type where that is not excluded, and note it."""
        ctype = node.type
        if self.always_leaves(known, within):
            raise NotAffineError(
                node,
                f"value does not fit type '{ctype.spelling}'",
                code="EATSS-F037" if ctype.signed else "EATSS-F036",
                hint="use a type that holds the value",
            )
        if ctype.bits >= 32:
            self.assumptions.append(RangeAssumption(node, ctype))
        elif not self.proven_or_stated(known, within):
            raise NotAffineError(
                node,
                f"value may not fit type '{ctype.spelling}'",
                code="EATSS-F037",
                hint="use int or long",
            )

    def sums_up(self, value: Poly, known: isl.Set) -> bool:
        """Return whether a sum of products is plainly not negative (a linearised subscript)."""
        return all(c > 0 for c in value.terms.values()) and all(
            self.proven(known, self._algebra.at_least(Poly.unknown(name), 0))
            for name in value.unknowns
        )

    def of_parameters(self, domain: isl.Set) -> isl.Set:
        """Return what the types of the parameters say about their values."""
        ranges = isl.Set.universe(domain.get_space())
        for name, variable in self.used_parameters.items():
            ctype = variable.shape.element
            fits = self._algebra.within(ctype.minimum, Poly.unknown(name), ctype.maximum)
            ranges = ranges.intersect(fits)
        return reduce(isl.Set.intersect, self.stated.values(), ranges)

    def proven(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether ``holds`` covers ``domain``, given the types of the parameters."""
        known = domain.intersect(self.of_parameters(domain))
        return known.subtract(holds).is_empty()

    def proven_or_stated(self, domain: isl.Set, holds: isl.Set, otherwise: str = _FITS) -> bool:
        """Return whether ``holds`` covers ``domain``, if need be for sizes that are stated.

        A condition that excludes usual sizes is none that a program is meant to have.
        """
        ranges = self.of_parameters(domain)
        known = domain.intersect(ranges)
        outside = self._over_sizes(known.subtract(holds))
        if outside.is_empty():
            return True
        names = parameter_names(outside)
        allowed = self._over_sizes(known).subtract(outside)
        if not self._states or not names or allowed.is_empty():
            return False
        for size in _USUAL_SIZES:
            alike = " and ".join(f"{name} = {size}" for name in names)
            if not parameters_set(self._algebra.context, names, alike).is_disjoint(outside):
                return False
        sizes = self._over_sizes(outside.complement().gist(ranges))
        if otherwise in self.stated:
            sizes = coalesced(self.stated[otherwise].intersect(sizes))
        self.stated[otherwise] = sizes
        return True

    def _over_sizes(self, points: isl.Set) -> isl.Set:
        others = [name for name in parameter_names(points) if name not in self.used_parameters]
        return without_parameters(points, others)

    def always_leaves(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether some point of ``domain`` lies outside ``holds`` wherever it has points.

        That is so for all values of the parameters alike, not only for extreme ones.
        """
        known = domain.intersect(self.of_parameters(domain))
        outside = known.subtract(holds)
        if outside.is_empty():
            return False
        return self._over_sizes(known).is_subset(self._over_sizes(outside))


def _may_leave(node: Node) -> bool:
    """Return whether C may have made another number of a value to fit its type."""
    ctype = node.type
    if not ctype.is_integer or ctype.bits <= 1 or node.kind in ("name", "int"):
        return False
    return not ctype.signed or (node.kind == "cast" and not _keeps_value(node))


def _keeps_value(cast: Node) -> bool:
    source = cast.children[0].type
    return (
        source.is_integer
        and source.minimum >= cast.type.minimum
        and source.maximum <= cast.type.maximum
    )
