"""Polynomials in tile sizes: volumes, resource use and objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod


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
