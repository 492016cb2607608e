"""Exact numbers of points of sets, as expressions of the parameters.

isl counts points only where it is built with barvinok, so they are summed here: one dimension
after the other, ``Σ p(x)`` over ``l <= x <= u`` as a polynomial in ``l`` and ``u`` (Faulhaber),
after the set is cut where another bound becomes the least or the greatest. What has to be rounded
down becomes a quotient of parameters, or, where dimensions occur in it, is told apart by
remainders; the result is a quasi-polynomial of Ehrhart's with its chambers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, prod

import islpy as isl

from eatss.isl_names import (
    Constraint,
    coalesced,
    constraint_system,
    constraints_on,
    division_bits,
    solutions,
)
from eatss.program import IntExpr
from eatss.program.linear import Linear
from eatss.work.count_expression import Atoms, Count, Piece, RationalPolynomial

MAX_CASES = 1000
"""Cases told apart for one set; about 0.3 ms each."""

MAX_REMAINDERS = 64
"""Remainders of one dimension told apart."""

MAX_DIVISION_BITS = 14
"""Size of divisors; isl does not count the work that making large ones explicit takes."""

MAX_PARTS = 200
"""Disjoint parts of one set."""


class UncountableError(Exception):
    """No closed form was found; the text says why, without a full stop."""


def count(points: isl.Set) -> IntExpr | None:
    """Return the number of points of a set as an expression of its parameters.

    It is exact for all integer values of the parameters; ``None`` where no closed form is found.
    """
    try:
        return count_points(points).expression()
    except UncountableError:
        return None


def count_points(points: isl.Set) -> Count:
    """Return the number of points of a set in a form that can be added up.

    Raises:
        UncountableError: no closed form is found.
    """
    if division_bits(points) > MAX_DIVISION_BITS:
        raise UncountableError("its integer divisions have too large divisors")
    points = coalesced(points.compute_divs())
    if points.n_basic_set() > 1:
        points = points.make_disjoint().compute_divs()
    if points.n_basic_set() > MAX_PARTS:
        raise UncountableError(f"it falls into more than {MAX_PARTS} parts")
    total = _Total(points.get_ctx())
    for part in points.get_basic_sets():
        system = constraint_system(part)
        if system is None:
            raise UncountableError("an integer division in it has no explicit form")
        total.add(
            _Part(system.variables, system.constraints, RationalPolynomial.constant(Fraction(1)))
        )
    return Count.of(total.pieces, total.atoms)


@dataclass(frozen=True, slots=True)
class _Part:
    """``Σ polynomial`` over the ``variables`` that keep ``constraints``."""

    variables: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    polynomial: RationalPolynomial

    def replaced(self, name: str, value: Linear) -> _Part:
        """Replace a variable by a linear form."""
        constraints = []
        for constraint in self.constraints:
            form = _form(constraint)
            factor = form.terms.get(name, 0)
            if factor:
                form = form.plus(Linear({name: factor}, 0), -1).plus(value, factor)
                constraints.append(_constraint(form, equality=constraint.equality))
            else:
                constraints.append(constraint)
        polynomial = self.polynomial.substituted(name, value)
        return replace(self, constraints=tuple(constraints), polynomial=polynomial)

    def without(self, name: str) -> _Part:
        """Drop a variable that nothing mentions any more."""
        return replace(self, variables=tuple(v for v in self.variables if v != name))


@dataclass(frozen=True, slots=True)
class _Bound:
    """A variable is at least or at most ``dividend / divisor``, rounded into the set."""

    is_lower: bool
    dividend: Linear
    divisor: int

    def splits(self, variables: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield variables whose remainder has to be known to round, with the divisor."""
        for name in variables:
            factor = self.dividend.terms.get(name, 0)
            if factor % self.divisor:
                yield name, self.divisor // gcd(self.divisor, factor)


class _Total:
    """Adds up parts; each ends as pieces over parameters alone."""

    def __init__(self, context: isl.Context) -> None:
        self._context = context
        self._cases = 0
        self.pieces: list[Piece] = []
        self.atoms = Atoms()

    def add(self, part: _Part) -> None:
        simple = self._simplified(part)
        if simple is None:
            return
        if not simple.variables:
            self.pieces.append(self._piece(simple))
            return
        for constraint in simple.constraints:
            solved = _solved(constraint, simple.variables) if constraint.equality else None
            if solved is not None:
                name, value = solved
                self.add(simple.replaced(name, value).without(name))
                return
        name, bounds = _easiest(simple)
        split = next((s for bound in bounds for s in bound.splits(simple.variables)), None)
        if split is None:
            self._sum(simple, name, bounds)
            return
        other, modulus = split
        if modulus > MAX_REMAINDERS:
            raise UncountableError(f"its size depends on remainders by {modulus}")
        for remainder in range(modulus):
            self.add(simple.replaced(other, Linear({other: modulus}, remainder)))

    def _simplified(self, part: _Part) -> _Part | None:
        """Return a part without redundant constraints, ``None`` where it is empty."""
        self._cases += 1
        if self._cases > MAX_CASES:
            raise UncountableError(f"its size falls into more than {MAX_CASES} cases")
        names = _names(part.constraints, part.variables)
        found = solutions(self._context, names, part.constraints)
        if found.is_empty():
            return None
        return replace(part, constraints=constraints_on(found.remove_redundancies(), names))

    def _sum(self, part: _Part, name: str, bounds: Sequence[_Bound]) -> None:
        """Sum over a variable, each pair of a greatest lower and a least upper bound apart."""
        ends: dict[bool, list[Linear]] = {True: [], False: []}
        for bound in bounds:
            end = self._rounded(bound, part.variables)
            if end not in ends[bound.is_lower]:
                ends[bound.is_lower].append(end)
        rest = [c for c in part.constraints if name not in dict(c.terms)]
        variables = tuple(v for v in part.variables if v != name)
        for lower, above in _first_of(ends[True], 1):
            for upper, below in _first_of(ends[False], -1):
                inside = [*rest, *above, *below, _constraint(upper.plus(lower, -1))]
                inside += self.atoms.definitions(_names(inside, ()))
                polynomial = part.polynomial.summed(name, lower, upper)
                self.add(_Part(variables, tuple(dict.fromkeys(inside)), polynomial))

    def _rounded(self, bound: _Bound, variables: Sequence[str]) -> Linear:
        """Return a bound as a linear form of variables, parameters and quotients of these."""
        sign = -1 if bound.is_lower else 1
        dividend = bound.dividend * sign
        whole = {n: c // bound.divisor for n, c in dividend.terms.items()}
        rest = {n: c % bound.divisor for n, c in dividend.terms.items() if c % bound.divisor}
        assert not rest.keys() & set(variables)
        form = Linear({n: c for n, c in whole.items() if c}, dividend.constant // bound.divisor)
        if rest:
            remainder = Linear(rest, dividend.constant % bound.divisor)
            form = form.plus(Linear({self.atoms.quotient(remainder, bound.divisor): 1}, 0))
        return form * sign

    def _piece(self, part: _Part) -> Piece:
        """Return a part without variables; its conditions do not say what quotients are."""
        names = _names(part.constraints, ())
        known = self.atoms.definitions(names)
        if not known:
            return Piece(frozenset(part.constraints), part.polynomial)
        names = _names((*part.constraints, *known), ())
        found = solutions(self._context, names, part.constraints)
        simple = found.gist(solutions(self._context, names, known))
        return Piece(frozenset(constraints_on(simple, names)), part.polynomial)


def _names(constraints: Iterable[Constraint], first: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(first)
    for constraint in constraints:
        found.update(dict.fromkeys(name for name, _ in constraint.terms))
    return tuple(found)


def _form(constraint: Constraint) -> Linear:
    return Linear(dict(constraint.terms), constraint.constant)


def _constraint(form: Linear, *, equality: bool = False) -> Constraint:
    return Constraint(tuple(sorted(form.terms.items())), form.constant, equality)


def _solved(constraint: Constraint, variables: Sequence[str]) -> tuple[str, Linear] | None:
    """Return a variable and what it equals, where its coefficient is 1 or -1."""
    for name, factor in constraint.terms:
        if name in variables and abs(factor) == 1:
            rest = _form(constraint).plus(Linear({name: factor}, 0), -1)
            return name, rest * -factor
    return None


def _easiest(part: _Part) -> tuple[str, list[_Bound]]:
    """Return the variable whose sum falls into the fewest cases, with its bounds."""
    best: tuple[tuple[int, int], str, list[_Bound]] | None = None
    for name in part.variables:
        bounds = list(_bounds(part.constraints, name))
        n_lower = sum(bound.is_lower for bound in bounds)
        if not n_lower or n_lower == len(bounds):
            continue  # other variables may bound it once they are summed; else it has no end
        splits = prod(modulus for b in bounds for _, modulus in b.splits(part.variables))
        cost = (splits, n_lower * (len(bounds) - n_lower))
        if best is None or cost < best[0]:
            best = (cost, name, bounds)
    if best is None:
        raise UncountableError("it has no end")
    return best[1], best[2]


def _bounds(constraints: Iterable[Constraint], name: str) -> Iterator[_Bound]:
    for constraint in constraints:
        factor = dict(constraint.terms).get(name, 0)
        if not factor:
            continue
        rest = _form(constraint).plus(Linear({name: factor}, 0), -1)
        for sign in (1, -1) if constraint.equality else (1,):
            # sign (factor name + rest) >= 0
            towards = -1 if sign * factor > 0 else 1
            dividend = rest * (sign * towards)
            yield _Bound(sign * factor > 0, dividend, abs(factor))


def _first_of(forms: Sequence[Linear], sign: int) -> Iterator[tuple[Linear, list[Constraint]]]:
    """Yield each form with what says that it is the greatest (or for -1 the least) of all.

    Of equal ones the first counts.
    """
    for position, form in enumerate(forms):
        conditions = []
        for other, rival in enumerate(forms):
            if other != position:
                apart = (form * sign).plus(rival, -sign)
                strictly = Linear({}, -1 if other < position else 0)
                conditions.append(_constraint(apart.plus(strictly)))
        yield form, conditions
