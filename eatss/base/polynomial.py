"""Polynomials: in tile sizes, for volumes, resource use and objectives; and in any unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Generic, Self, TypeAlias, TypeVar

Monomial: TypeAlias = tuple[str, ...]
"""The unknowns of a product, sorted; a power has one several times."""

_Number = TypeVar("_Number", int, Fraction)


@dataclass(frozen=True, slots=True)
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
        for monomial, coefficient in self.terms.items():
            rest = tuple(one for one in monomial if one != name)
            term = type(self)({rest: coefficient})
            for _ in range(len(monomial) - len(rest)):
                term = term.times(value)
            result = result.plus(term)
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


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Term:
    """``coefficient`` times the product of the tile sizes of ``loops``."""

    loops: tuple[str, ...]
    coefficient: int


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial with integer coefficients whose variables are tile sizes ``T_loop``.

    Always in normal form: one term a monomial, no zero coefficients, sorted.
    Build it with :meth:`of`, :meth:`constant` or :meth:`product`.
    """

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: Iterable[tuple[int, Iterable[str]]]) -> Polynomial:
        """Build from ``(coefficient, loops)`` pairs, merging equal monomials."""
        merged: dict[tuple[str, ...], int] = {}
        for coefficient, loops in terms:
            key = tuple(sorted(loops))
            merged[key] = merged.get(key, 0) + coefficient
        return cls(tuple(Term(loops=k, coefficient=c) for k, c in sorted(merged.items()) if c != 0))

    @classmethod
    def constant(cls, value: int) -> Polynomial:
        """Build a constant."""
        return cls.of([(value, ())])

    @classmethod
    def product(cls, loops: Iterable[str]) -> Polynomial:
        """Build the product of the tile sizes of ``loops`` (1 for none)."""
        return cls.of([(1, loops)])

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial.of([(t.coefficient, t.loops) for t in self.terms + other.terms])

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * Polynomial.constant(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return Polynomial.of(
            [
                (a.coefficient * b.coefficient, a.loops + b.loops)
                for a in self.terms
                for b in other.terms
            ]
        )

    @property
    def loops(self) -> frozenset[str]:
        """Names of the loops that occur."""
        return frozenset(name for term in self.terms for name in term.loops)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Return the value at the given tile sizes; ``KeyError`` if one is missing."""
        return sum(t.coefficient * prod(sizes[name] for name in t.loops) for t in self.terms)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts = []
        for term in self.terms:
            factors = [f"T_{name}" for name in term.loops]
            if abs(term.coefficient) != 1 or not factors:
                factors.insert(0, str(abs(term.coefficient)))
            parts.append(("-" if term.coefficient < 0 else "") + "*".join(factors))
        return " + ".join(parts).replace("+ -", "- ")
