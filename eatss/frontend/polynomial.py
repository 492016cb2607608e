"""Integer polynomials in named unknowns: how sums and products are kept before isl sees them."""

from __future__ import annotations

from dataclasses import dataclass

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial with integer coefficients; no zero coefficients are kept."""

    terms: dict[Monomial, int]

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms.items(), key=lambda term: -len(term[0])):
            factors = [str(abs(coefficient))] * (abs(coefficient) != 1 or not monomial)
            sign = (" - " if coefficient < 0 else " + ") if text else "-" * (coefficient < 0)
            text += sign + "*".join([*factors, *monomial])
        return text or "0"

    @classmethod
    def constant(cls, value: int) -> Poly:
        """Build a constant."""
        return cls({(): value} if value else {})

    @classmethod
    def unknown(cls, name: str) -> Poly:
        """Build a single unknown."""
        return cls({(name,): 1})

    def with_unknown(self, name: str, value: Poly) -> Poly:
        """Put a polynomial in the place of an unknown."""
        result = Poly({})
        for monomial, coefficient in self.terms.items():
            term = Poly.constant(coefficient)
            for one in monomial:
                term = term.times(value if one == name else Poly.unknown(one))
            result = result.plus(term)
        return result

    @property
    def constant_value(self) -> int | None:
        """The value if it is a constant."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    @property
    def is_linear(self) -> bool:
        """Whether no product of unknowns occurs."""
        return all(len(monomial) <= 1 for monomial in self.terms)

    @property
    def unknowns(self) -> frozenset[str]:
        """The unknowns that occur."""
        return frozenset(name for monomial in self.terms for name in monomial)

    def coefficient(self, name: str) -> int:
        """Return the coefficient of the unknown on its own."""
        return self.terms.get((name,), 0)

    def beside(self, name: str) -> Poly:
        """Return what is multiplied by the unknown, on its own or in a product with others."""
        found: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms.items():
            if name in monomial:
                at = monomial.index(name)
                found[monomial[:at] + monomial[at + 1 :]] = coefficient
        return Poly(found)

    def scaled(self, factor: int) -> Poly:
        """Return the polynomial times a number."""
        return Poly({m: c * factor for m, c in self.terms.items()} if factor else {})

    def plus(self, other: Poly, factor: int = 1) -> Poly:
        """Return ``self + factor * other``."""
        terms = dict(self.terms)
        accumulate(terms, other, factor)
        return Poly(terms)

    def times(self, other: Poly) -> Poly:
        """Return the product."""
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Poly({m: c for m, c in terms.items() if c})


def accumulate(terms: dict[Monomial, int], other: Poly, factor: int) -> None:
    """Add ``factor * other`` to ``terms`` in place; linear in ``other`` only."""
    for monomial, coefficient in other.terms.items():
        value = terms.get(monomial, 0) + factor * coefficient
        if value:
            terms[monomial] = value
        else:
            terms.pop(monomial, None)
