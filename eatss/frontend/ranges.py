"""Whether values lie in the range of their C type wherever C could have wrapped them."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from eatss.frontend.codes import Code
from eatss.frontend.not_affine import NotAffineError, Reason
from eatss.frontend.polynomial import Poly
from eatss.frontend.symbols import Variable
from eatss.frontend.tree import Node, NodeKind
from eatss.frontend.types import CType
from eatss.frontend.values import Value, ValueAlgebra
from eatss.isl_names import parameter_names, without_parameter


@dataclass(frozen=True, slots=True)
class RangeAssumption:
    """A value that was taken to fit its type without proof."""

    node: Node
    type: CType


class RangeProver:
    """Proves ranges; what it could not prove but takes for granted is in ``assumptions``.

    ``used_parameters`` is filled by the reader of expressions; the types of parameters
    bound their values.
    """

    def __init__(self, algebra: ValueAlgebra) -> None:
        self._algebra = algebra
        self.used_parameters: dict[str, Variable] = {}
        self.assumptions: list[RangeAssumption] = []

    def check(self, node: Node, value: Value, domain: isl.Set) -> None:
        """See that a value lies in the range of its type wherever C could have wrapped it."""
        ctype = node.type
        if not ctype.is_integer or ctype.bits <= 1:
            return
        if node.kind in (NodeKind.NAME, NodeKind.INT):
            return
        if ctype.signed and node.kind is not NodeKind.CAST:
            return
        if ctype.signed and _keeps_value(node):
            return
        known = domain.intersect(self.of_parameters(domain))
        if isinstance(value, Poly) and not value.is_linear and self._sums_up(value, known):
            return
        low = self.proven(known, self._algebra.at_least(value, Poly.constant(ctype.minimum)))
        if not low and not ctype.signed:
            raise NotAffineError(
                node,
                Reason.OWN,
                f"value of type '{ctype.spelling}' may be negative here, where C wraps it around",
                code=Code.UNSIGNED_WRAP,
                hint="use a signed type, or write it without subtraction (i + 1 < n)",
            )
        high = ctype.bits > 32 or self.proven(
            known, self._algebra.at_least(Poly.constant(ctype.maximum), value)
        )
        if low and high:
            return
        within = self._algebra.at_least(value, Poly.constant(ctype.minimum)).intersect(
            self._algebra.at_least(Poly.constant(ctype.maximum), value)
        )
        if self.always_leaves(known, within):
            raise NotAffineError(
                node,
                Reason.OWN,
                f"value does not fit type '{ctype.spelling}'",
                code=Code.NARROW_OVERFLOW if ctype.signed else Code.UNSIGNED_WRAP,
                hint="use a type that holds the value",
            )
        if ctype.bits < 32:
            raise NotAffineError(
                node,
                Reason.OWN,
                f"value may not fit type '{ctype.spelling}'",
                code=Code.NARROW_OVERFLOW,
                hint="use int or long",
            )
        self.assumptions.append(RangeAssumption(node, ctype))

    def _sums_up(self, value: Poly, known: isl.Set) -> bool:
        """Return whether a sum of products is plainly not negative (a linearised subscript)."""
        return all(c > 0 for c in value.terms.values()) and all(
            self.proven(known, self._algebra.at_least(Poly.unknown(name), Poly.constant(0)))
            for name in value.unknowns
        )

    def of_parameters(self, domain: isl.Set) -> isl.Set:
        """Return what the types of the parameters say about their values."""
        ranges = isl.Set.universe(domain.get_space())
        for name, variable in self.used_parameters.items():
            ctype = variable.shape.element
            unknown = Poly.unknown(name)
            low = self._algebra.at_least(unknown, Poly.constant(ctype.minimum))
            high = self._algebra.at_least(Poly.constant(ctype.maximum), unknown)
            ranges = ranges.intersect(low).intersect(high)
        return ranges

    def proven(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether ``holds`` covers ``domain``, given the types of the parameters."""
        known = domain.intersect(self.of_parameters(domain))
        return bool(known.subtract(holds).is_empty())

    def always_leaves(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether some point of ``domain`` lies outside ``holds`` wherever it has points.

        That is so for all values of the parameters alike, not only for extreme ones.
        """
        known = domain.intersect(self.of_parameters(domain))
        outside = known.subtract(holds)
        if outside.is_empty():
            return False
        for name in parameter_names(known):
            if name not in self.used_parameters:
                known = without_parameter(known, name)
                outside = without_parameter(outside, name)
        return bool(known.is_subset(outside))


def _keeps_value(cast: Node) -> bool:
    source = cast.children[0].type
    return (
        source.is_integer
        and source.minimum >= cast.type.minimum
        and source.maximum <= cast.type.maximum
    )
