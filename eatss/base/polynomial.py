"""Polynomials: in tile sizes, for volumes, resource use and objectives; and in any unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import prod
from typing import Generic, Self, TypeAlias, TypeVar

from eatss.base.frozen import fixed

Monomial: TypeAlias = tuple[str, ...]
"""The unknowns of a product, sorted; a power has one several times."""

_Number = TypeVar("_Number", int, Fraction)


@fixed
class Terms(Generic[_Number]):
    """Monomials with their coefficients; none of these is 0."""

    terms: dict[Monomial, _Number]

    @classmethod
    def constant(cls, value: _Number) -> Self:
        """Build a constant."""
        return cls({(): value} if value else {})

    def plus(self, other: Self, factor: _Number | int = 1) -> Self:
        """Return ``self + factor * other``."""
        terms = dict(self.terms)
        accumulate(terms, other, factor)
        return type(self)(terms)

    def times(self, other: Self) -> Self:
        """Return the product."""
        terms: dict[Monomial, _Number] = {}
        for left, one in self.terms.items():
            for right, two in other.terms.items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + one * two
        return type(self)({m: c for m, c in terms.items() if c})

    def scaled(self, factor: _Number | int) -> Self:
        """Return the polynomial times a number."""
        return type(self)({}).plus(self, factor)

    def powers_of(self, name: str) -> dict[int, Self]:
        """Return what each power of an unknown is multiplied by; powers that do not occur miss."""
        found: dict[int, dict[Monomial, _Number]] = {}
        for monomial, coefficient in self.terms.items():
            rest = tuple(one for one in monomial if one != name)
            found.setdefault(monomial.count(name), {})[rest] = coefficient
        return {exponent: type(self)(terms) for exponent, terms in found.items()}

    def with_unknown(self, name: str, value: Self) -> Self:
        """Put a polynomial in the place of an unknown."""
        result = type(self)({})
        for power, rest in self.powers_of(name).items():
            for _ in range(power):
                rest = rest.times(value)  # noqa: PLW2901 - a power at a time
            result = result.plus(rest)
        return result


def accumulate(
    terms: dict[Monomial, _Number], other: Terms[_Number], factor: _Number | int
) -> None:
    """Add ``factor * other`` to ``terms`` in place; linear in ``other`` only."""
    for monomial, coefficient in other.terms.items():
        value = terms.get(monomial, 0) + factor * coefficient
        if value:
            terms[monomial] = value
        else:
            terms.pop(monomial, None)


@fixed
class Polynomial(Terms[int]):
    """A polynomial with integer coefficients whose unknowns are tile sizes ``T_loop``."""

    @classmethod
    def of(cls, terms: Iterable[tuple[int, Iterable[str]]]) -> Polynomial:
        """Build from ``(coefficient, loops)`` pairs, merging equal monomials."""
        merged: dict[Monomial, int] = {}
        for coefficient, loops in terms:
            key = tuple(sorted(loops))
            merged[key] = merged.get(key, 0) + coefficient
        return cls({monomial: c for monomial, c in sorted(merged.items()) if c})

    @classmethod
    def product(cls, loops: Iterable[str]) -> Polynomial:
        """Build the product of the tile sizes of ``loops`` (1 for none)."""
        return cls.of([(1, loops)])

    def __add__(self, other: Polynomial) -> Polynomial:
        return self.plus(other)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self.plus(other, -1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return self.times(other)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def loops(self) -> frozenset[str]:
        """Names of the loops that occur."""
        return frozenset(name for monomial in self.terms for name in monomial)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Return the value at the given tile sizes; ``KeyError`` if one is missing."""
        terms = sorted(self.terms.items())
        return sum(c * prod(sizes[name] for name in monomial) for monomial, c in terms)

    def __str__(self) -> str:
        parts = []
        for monomial, coefficient in sorted(self.terms.items()):
            factors = [f"T_{name}" for name in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            parts.append(("-" if coefficient < 0 else "") + "*".join(factors))
        return " + ".join(parts).replace("+ -", "- ") or "0"
