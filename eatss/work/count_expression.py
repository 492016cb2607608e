"""A number of points: polynomials in the parameters, each with the conditions it holds under."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import comb, lcm

from eatss.isl_names import Constraint
from eatss.polynomial import Monomial, Terms
from eatss.program import Apply, Constant, IntExpr, Name, Operator, floored, select, substitute
from eatss.program.linear import Linear


@dataclass(frozen=True, slots=True)
class RationalPolynomial(Terms[Fraction]):
    """A polynomial in names; no coefficient is 0."""

    @classmethod
    def of(cls, form: Linear) -> RationalPolynomial:
        """Return a linear form."""
        found: dict[Monomial, Fraction] = {
            (name,): Fraction(value) for name, value in form.terms.items()
        }
        return cls(found).plus(cls.constant(Fraction(form.constant)))

    @property
    def denominator(self) -> int:
        """The least number that makes all coefficients integral."""
        return lcm(*(value.denominator for value in self.terms.values()))

    def substituted(self, name: str, value: Linear) -> RationalPolynomial:
        """Replace ``name`` by a linear form."""
        return self.with_unknown(name, RationalPolynomial.of(value))

    def summed(self, name: str, lower: Linear, upper: Linear) -> RationalPolynomial:
        """Return the sum over the integers ``lower <= name <= upper``.

        It holds where ``lower <= upper + 1``: the sum over no integers is 0.
        """
        result = RationalPolynomial({})
        before = lower.plus(Linear({}, -1))
        for exponent, part in self.powers_of(name).items():
            to_upper = _power_sum(exponent).substituted("n", upper)
            to_lower = _power_sum(exponent).substituted("n", before)
            result = result.plus(part.times(to_upper.plus(to_lower, -1)))
        return result


@cache
def _power_sum(exponent: int) -> RationalPolynomial:
    """Return ``0^k + 1^k + … + n^k`` as a polynomial in ``n`` (Faulhaber); 0 at ``n = -1``."""
    # (n + 1)^(k + 1) is the sum of (x + 1)^(k + 1) - x^(k + 1) over 0 <= x <= n
    power = RationalPolynomial({("n",) * (exponent + 1): Fraction(1)})
    power = power.substituted("n", Linear({"n": 1}, 1))
    for lower in range(exponent):
        power = power.plus(_power_sum(lower), -comb(exponent + 1, lower))
    return RationalPolynomial({}).plus(power, Fraction(1, exponent + 1))


_MOST_RELAXED = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A polynomial in parameters and quotients of them; elsewhere it counts as 0."""

    conditions: frozenset[Constraint]
    polynomial: RationalPolynomial


@dataclass(frozen=True, slots=True)
class Atoms:
    """Quotients of parameters that are rounded down, by names that say which they are."""

    _definitions: dict[str, tuple[Constraint, Constraint]] = field(default_factory=dict)
    _expressions: dict[str, IntExpr] = field(default_factory=dict)

    def quotient(self, dividend: Linear, divisor: int) -> str:
        """Return the name of ``dividend / divisor``, rounded down."""
        terms = tuple(sorted(dividend.terms.items()))
        name = f"#{terms}+{dividend.constant}/{divisor}"
        if name not in self._definitions:
            below = tuple((other, -factor) for other, factor in terms)
            self._definitions[name] = (
                Constraint((*terms, (name, -divisor)), dividend.constant, equality=False),
                Constraint((*below, (name, divisor)), divisor - 1 - dividend.constant, False),
            )
            top = substitute(dividend.expression(), self._expressions)
            self._expressions[name] = floored(top, divisor)
        return name

    def definitions(self, names: Iterable[str]) -> tuple[Constraint, ...]:
        """Return what says of those of ``names`` that are quotients what they are."""
        found: dict[Constraint, None] = {}
        open_names = list(names)
        for name in open_names:
            for constraint in self._definitions.get(name, ()):
                if constraint not in found:
                    found[constraint] = None
                    open_names += [other for other, _ in constraint.terms if other != name]
        return tuple(found)

    def joined(self, other: Atoms) -> Atoms:
        """Return the quotients of both."""
        return Atoms(
            {**self._definitions, **other._definitions},
            {**self._expressions, **other._expressions},
        )

    def spelled(self, expression: IntExpr) -> IntExpr:
        """Replace names of quotients by the quotients."""
        return substitute(expression, self._expressions) if self._expressions else expression


@dataclass(frozen=True, slots=True)
class Count:
    """A sum of pieces, at most one for the same conditions."""

    pieces: Mapping[frozenset[Constraint], RationalPolynomial] = field(default_factory=dict)
    atoms: Atoms = field(default_factory=Atoms)

    @classmethod
    def of(cls, pieces: Iterable[Piece], atoms: Atoms) -> Count:
        """Return the sum of pieces."""
        found: dict[frozenset[Constraint], RationalPolynomial] = {}
        for piece in pieces:
            relaxed = _relaxed(piece)
            before = found.get(relaxed.conditions, RationalPolynomial({}))
            found[relaxed.conditions] = before.plus(relaxed.polynomial)
        return cls(found, atoms)

    def plus(self, other: Count, factor: int = 1) -> Count:
        """Return ``self + factor * other``."""
        found = dict(self.pieces)
        for conditions, polynomial in other.pieces.items():
            found[conditions] = found.get(conditions, RationalPolynomial({})).plus(
                polynomial, factor
            )
        return Count(found, self.atoms.joined(other.atoms))

    def expression(self) -> IntExpr:
        """Return the sum as an integer expression of the parameters."""
        parts = [
            self.atoms.spelled(_guarded(conditions, polynomial))
            for conditions, polynomial in sorted(self.pieces.items(), key=_order)
            if polynomial.terms
        ]
        return _applied(Operator.ADD, parts) if parts else Constant(0)


def _relaxed(piece: Piece) -> Piece:
    """Let bounds of single parameters go down towards 0 where the polynomial is 0 anyway.

    More pieces then have the same conditions: both ``N`` for ``N >= 1`` and ``N (N - 1)`` for
    ``N >= 2`` hold for ``N >= 0``.
    """
    conditions = set()
    for condition in piece.conditions:
        least = -condition.constant
        single = not condition.equality and len(condition.terms) == 1
        if single and condition.terms[0][1] == 1 and 0 < least <= _MOST_RELAXED:
            name = condition.terms[0][0]
            while least and not piece.polynomial.substituted(name, Linear({}, least - 1)).terms:
                least -= 1
            conditions.add(condition._replace(constant=-least))
        else:
            conditions.add(condition)
    return Piece(frozenset(conditions), piece.polynomial)


def _order(item: tuple[frozenset[Constraint], RationalPolynomial]) -> tuple[int, list[Constraint]]:
    return len(item[0]), sorted(item[0])


def _guarded(conditions: frozenset[Constraint], polynomial: RationalPolynomial) -> IntExpr:
    value = polynomial_expression(polynomial)
    if not conditions:
        return value
    test = _applied(Operator.AND, [_condition(condition) for condition in sorted(conditions)])
    return select(test, value, 0)


def _condition(condition: Constraint) -> IntExpr:
    """Return a constraint with what is subtracted on the other side."""
    left = Linear({n: c for n, c in condition.terms if c > 0}, max(condition.constant, 0))
    right = Linear({n: -c for n, c in condition.terms if c < 0}, max(-condition.constant, 0))
    operator = Operator.EQ if condition.equality else Operator.GE
    return Apply(operator, (left.expression(), right.expression()))


def polynomial_expression(polynomial: RationalPolynomial) -> IntExpr:
    """Return a polynomial whose values are integers as an integer expression."""
    denominator = polynomial.denominator
    added: list[IntExpr] = []
    subtracted: list[IntExpr] = []
    for monomial in sorted(polynomial.terms, key=_degree_first):
        factor = polynomial.terms[monomial] * denominator
        product = _product(abs(factor.numerator), monomial)
        (added if factor > 0 else subtracted).append(product)
    total = _applied(Operator.ADD, added) if added else Constant(0)
    if subtracted:
        total = Apply(Operator.SUB, (total, *subtracted))
    if denominator == 1:
        return total
    return floored(total, denominator)


def _degree_first(monomial: Monomial) -> tuple[int, list[tuple[str, int]]]:
    return -len(monomial), sorted(Counter(monomial).items())


def _product(factor: int, monomial: Monomial) -> IntExpr:
    names = list(map(Name, monomial))
    factors: list[IntExpr] = [*names] if factor == 1 and names else [Constant(factor), *names]
    return _applied(Operator.MUL, factors)


def _applied(operator: Operator, operands: list[IntExpr]) -> IntExpr:
    return operands[0] if len(operands) == 1 else Apply(operator, tuple(operands))
