"""Values of integer expressions, and proofs that they fit their C types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import fixed
from eatss.base.polynomial import Terms
from eatss.frontend.declarations import Variable
from eatss.frontend.refusals import NotAffineError
from eatss.frontend.tree import Node
from eatss.polyhedral.isl_names import (
    big_value,
    coalesced,
    linear_function,
    parameter_names,
    parameters_set,
    without_parameters,
)
from eatss.polyhedral.scop import SizeCondition
from eatss.program.expression import OwnSizes

# -- values ------------------------------------------------------------------------------------
# Quasi-affine values: a polynomial while that suffices, a piecewise isl function when not.
#
# Counters and parameters are both isl parameters here; a statement's domain turns its
# counters into dimensions at the end.


@fixed
class Poly(Terms[int]):
    """A polynomial with integer coefficients; no zero coefficients are kept."""

    @classmethod
    def unknown(cls, name: str) -> Poly:
        """Build a single unknown."""
        return cls({(name,): 1})

    @property
    def constant_value(self) -> int | None:
        """The value if it is a constant."""
        return self.terms.get((), 0) if self.terms.keys() <= {()} else None

    @property
    def is_linear(self) -> bool:
        """Whether no product of unknowns occurs."""
        return all(len(monomial) <= 1 for monomial in self.terms)

    @property
    def unknowns(self) -> frozenset[str]:
        """The unknowns that occur."""
        return frozenset(name for monomial in self.terms for name in monomial)

    def beside(self, name: str) -> Poly:
        """Return what is multiplied by the unknown, on its own or in a product with others."""
        return self.powers_of(name).get(1, Poly({}))


Value: TypeAlias = Poly | isl.PwAff

Operand: TypeAlias = Value | int
"""What takes part in arithmetic: a number stands for the value that it is."""


class ValueAlgebra:
    """Arithmetic and comparisons of values in one isl context.

    What makes an isl function raises :class:`NotAffineError` where products of unknowns remain.
    """

    def __init__(self, context: isl.Context, known: OwnSizes) -> None:
        self.context = context
        self._known = known
        self.everywhere = isl.Set.universe(isl.Space.params_alloc(context, 0))

    def function(self, value: Operand) -> isl.PwAff:
        """Return the isl function of a value."""
        if isinstance(value, isl.PwAff):
            return value
        poly = Poly.constant(value) if isinstance(value, int) else self._with_known(value)
        if not poly.is_linear:
            raise NotAffineError(None, "product")
        terms = tuple((monomial[0], c) for monomial, c in poly.terms.items() if monomial)
        return linear_function(self.context, poly.terms.get((), 0), terms)

    def _with_known(self, poly: Poly) -> Poly:
        """Put in the parameters whose values the user gave, if there are products."""
        for name in () if poly.is_linear else self._known:
            poly = poly.with_unknown(name, Poly.constant(self._known[name]))
        return poly

    def add(self, left: Operand, right: Operand, factor: int = 1) -> Value:
        """Return ``left + factor * right``."""
        left, right = (Poly.constant(one) if isinstance(one, int) else one for one in (left, right))
        if isinstance(left, Poly) and isinstance(right, Poly):
            return left.plus(right, factor)
        return _in_few_pieces(self.function(left).add(self.function(self.scale(right, factor))))

    def scale(self, value: Value, factor: int) -> Value:
        """Return the value times a number."""
        if isinstance(value, Poly):
            return value.scaled(factor)
        return value.scale_val(big_value(self.context, factor))

    def constant_of(self, value: Operand) -> int | None:
        """Return the value if it is a number."""
        if isinstance(value, Poly):
            return self._with_known(value).constant_value
        return value if isinstance(value, int) else None

    def floor_divide(self, value: Value, divisor: int) -> isl.PwAff:
        """Return ``⌊value / divisor⌋`` for a positive divisor."""
        return self.function(value).scale_down_val(big_value(self.context, divisor)).floor()

    def modulo(self, value: Value, divisor: int) -> isl.PwAff:
        """Return ``value - divisor * ⌊value / divisor⌋``, which is never negative."""
        return self.function(value).mod_val(big_value(self.context, divisor))

    def at_least(self, left: Operand, right: Operand, margin: int = 0) -> isl.Set:
        """Return where ``left >= right + margin``."""
        gap = self.add(self.add(left, right, -1), margin, -1)
        return self.function(gap).nonneg_set()

    def within(self, least: Operand, value: Operand, most: Operand) -> isl.Set:
        """Return where ``least <= value <= most``."""
        return self.at_least(value, least).intersect(self.at_least(most, value))

    def equal(self, left: Operand, right: Operand) -> isl.Set:
        """Return where ``left == right``."""
        return self.function(self.add(left, right, -1)).zero_set()

    def extremum(self, left: Value, right: Value, *, is_max: bool) -> Value:
        """Return the smaller or the greater of two values."""
        numbers = self.constant_of(left), self.constant_of(right)
        if numbers[0] is not None and numbers[1] is not None:
            return Poly.constant((max if is_max else min)(numbers[0], numbers[1]))
        join = isl.PwAff.max if is_max else isl.PwAff.min
        return _in_few_pieces(join(self.function(left), self.function(right)))

    def choose(self, condition: isl.Set, if_true: Operand, if_false: Operand) -> isl.PwAff:
        """Return ``if_true`` within the condition and ``if_false`` outside."""
        yes = self.function(if_true).intersect_params(condition)
        no = self.function(if_false).intersect_params(condition.complement())
        return _in_few_pieces(yes.union_add(no))


def _in_few_pieces(function: isl.PwAff) -> isl.PwAff:
    return coalesced(function) if function.n_piece() > _FEW else function


_FEW = 4


def same(left: Value, right: Value) -> bool:
    """Return whether two values are plainly the same."""
    if isinstance(left, isl.PwAff) and isinstance(right, isl.PwAff):
        return left.plain_is_equal(right)
    return isinstance(left, Poly) and left == right


# -- ranges ------------------------------------------------------------------------------------
# Whether values lie in the range of their C type wherever C could have wrapped them.


_USUAL_SIZES = (61, 4099)
"""Sizes at which no condition on sizes may exclude a program: all alike, small and large."""


class RangeProver:
    """Proves ranges; of 32 bits and more values are taken to fit where some do.

    ``used_parameters`` is filled by the reader of expressions; the types of parameters
    bound their values. ``stated`` are the sizes for which all holds that was proven: what runs
    the code has to check it.
    """

    def __init__(self, algebra: ValueAlgebra) -> None:
        self._algebra = algebra
        self.used_parameters: dict[str, Variable] = {}
        self.stated: isl.Set | None = None
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
        algebra, ctype = self._algebra, node.type
        known = self._known(domain)
        if isinstance(value, Poly) and not value.is_linear and self.sums_up(value, known):
            return
        low, high = algebra.at_least(value, ctype.minimum), algebra.at_least(ctype.maximum, value)
        within = low.intersect(high)
        wrong = "wraps"
        if ctype.signed or self.proven_or_stated(known, low):
            if self.proven(known, low if ctype.bits > 32 else within):
                return
            wrong = "fits"
            if not self.always_leaves(known, within) and (
                ctype.bits >= 32 or self.proven_or_stated(known, within)
            ):
                return
        raise NotAffineError(node, wrong, type=ctype.spelling)

    def sums_up(self, value: Poly, known: isl.Set) -> bool:
        """Return whether a sum of products is plainly not negative (a linearised subscript)."""
        return all(c > 0 for c in value.terms.values()) and all(
            self.proven(known, self._algebra.at_least(Poly.unknown(name), 0))
            for name in value.unknowns
        )

    def _known(self, domain: isl.Set) -> isl.Set:
        return domain.intersect(self._ranges(domain))

    def _ranges(self, domain: isl.Set) -> isl.Set:
        """Return what the types of the parameters say about their values."""
        ranges = isl.Set.universe(domain.get_space())
        for name, variable in self.used_parameters.items():
            ctype = variable.shape.element
            fits = self._algebra.within(ctype.minimum, Poly.unknown(name), ctype.maximum)
            ranges = ranges.intersect(fits)
        return ranges if self.stated is None else ranges.intersect(self.stated)

    def proven(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether ``holds`` covers ``domain``, given the types of the parameters."""
        return self._known(domain).subtract(holds).is_empty()

    def proven_or_stated(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether ``holds`` covers ``domain``, if need be for sizes that are stated.

        A condition that excludes usual sizes is none that a program is meant to have.
        """
        ranges = self._ranges(domain)
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
        before = self.stated
        self.stated = sizes if before is None else coalesced(before.intersect(sizes))
        return True

    def conditions(self) -> tuple[SizeCondition, ...]:
        """Return on what sizes it depends that values are those of C."""
        message = "a number of the original would not fit its type otherwise"
        return () if self.stated is None else (SizeCondition(sizes=self.stated, message=message),)

    def _over_sizes(self, points: isl.Set) -> isl.Set:
        others = [name for name in parameter_names(points) if name not in self.used_parameters]
        return without_parameters(points, others)

    def always_leaves(self, domain: isl.Set, holds: isl.Set) -> bool:
        """Return whether some point of ``domain`` lies outside ``holds`` wherever it has points.

        That is so for all values of the parameters alike, not only for extreme ones.
        """
        known = self._known(domain)
        outside = known.subtract(holds)
        if outside.is_empty():
            return False
        return self._over_sizes(known).is_subset(self._over_sizes(outside))


def _may_leave(node: Node) -> bool:
    """Return whether C may have made another number of a value to fit its type."""
    ctype = node.type
    if not ctype.is_integer or ctype.bits <= 1 or node.kind in ("name", "int"):
        return False
    return not ctype.signed or (node.kind == "cast" and not ctype.holds(node.children[0].type))
