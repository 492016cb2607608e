"""Polynomials with rational coefficients and their sums over ranges, exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, lcm
from typing import TypeAlias

from eatss.program.linear import Linear

Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Names with their exponents, sorted; no exponent is 0."""

_ONE: Monomial = ()


@dataclass(frozen=True, slots=True)
class RationalPolynomial:
    """A polynomial in names; no coefficient is 0."""

    coefficients: Mapping[Monomial, Fraction]

    @classmethod
    def constant(cls, value: Fraction | int) -> RationalPolynomial:
        """Return a constant."""
        return cls({_ONE: Fraction(value)} if value else {})

    @classmethod
    def of(cls, form: Linear) -> RationalPolynomial:
        """Return a linear form."""
        found: dict[Monomial, Fraction] = {
            ((name, 1),): Fraction(value) for name, value in form.terms.items()
        }
        return cls({**found, **cls.constant(form.constant).coefficients})

    @property
    def denominator(self) -> int:
        """The least number that makes all coefficients integral."""
        return lcm(*(value.denominator for value in self.coefficients.values()))

    def plus(self, other: RationalPolynomial, factor: Fraction | int = 1) -> RationalPolynomial:
        """Return ``self + factor * other``."""
        found = dict(self.coefficients)
        for monomial, value in other.coefficients.items():
            found[monomial] = found.get(monomial, Fraction(0)) + factor * value
        return RationalPolynomial({monomial: value for monomial, value in found.items() if value})

    def times(self, other: RationalPolynomial) -> RationalPolynomial:
        """Return the product."""
        found: dict[Monomial, Fraction] = {}
        for one, value in self.coefficients.items():
            for two, factor in other.coefficients.items():
                key = _multiplied(one, two)
                found[key] = found.get(key, Fraction(0)) + value * factor
        return RationalPolynomial({monomial: value for monomial, value in found.items() if value})

    def powers_of(self, name: str) -> Mapping[int, RationalPolynomial]:
        """Return what each power of ``name`` is multiplied by; powers that do not occur miss."""
        found: dict[int, dict[Monomial, Fraction]] = {}
        for monomial, value in self.coefficients.items():
            exponent = dict(monomial).get(name, 0)
            rest = tuple(factor for factor in monomial if factor[0] != name)
            found.setdefault(exponent, {})[rest] = value
        return {exponent: RationalPolynomial(part) for exponent, part in found.items()}

    def substituted(self, name: str, value: Linear) -> RationalPolynomial:
        """Replace ``name`` by a linear form."""
        parts = self.powers_of(name)
        if set(parts) <= {0}:
            return self
        result, power = RationalPolynomial({}), RationalPolynomial.constant(1)
        for exponent in range(max(parts) + 1):
            if exponent in parts:
                result = result.plus(parts[exponent].times(power))
            power = power.times(RationalPolynomial.of(value))
        return result

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


def _multiplied(one: Monomial, two: Monomial) -> Monomial:
    exponents = dict(one)
    for name, exponent in two:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted(exponents.items()))


@cache
def _power_sum(exponent: int) -> RationalPolynomial:
    """Return ``0^k + 1^k + … + n^k`` as a polynomial in ``n`` (Faulhaber); 0 at ``n = -1``."""
    # (n + 1)^(k + 1) is the sum of (x + 1)^(k + 1) - x^(k + 1) over 0 <= x <= n
    power = RationalPolynomial.constant(1)
    for _ in range(exponent + 1):
        power = power.times(RationalPolynomial.of(Linear({"n": 1}, 1)))
    for lower in range(exponent):
        power = power.plus(_power_sum(lower), -comb(exponent + 1, lower))
    return RationalPolynomial.constant(Fraction(1, exponent + 1)).times(power)
