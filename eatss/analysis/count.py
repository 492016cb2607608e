"""Exact numbers of points of sets, as expressions of the parameters.

isl counts points only where it is built with barvinok, so they are summed here: one dimension
after the other, ``Σ p(x)`` over ``l <= x <= u`` as a polynomial in ``l`` and ``u`` (Faulhaber),
after the set is cut where another bound becomes the least or the greatest. What has to be rounded
down becomes a quotient of parameters, or, where dimensions occur in it, is told apart by
remainders; the result is a quasi-polynomial of Ehrhart's with its chambers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import cache
from math import comb, gcd, lcm, prod
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import Names, distinct, fixed, frozen
from eatss.base.polynomial import Monomial, Terms
from eatss.polyhedral.isl_names import (
    Constraint,
    coalesced,
    constraint_system,
    constraints_on,
    division_bits,
    rounded_down,
    solutions,
)
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    floored,
    names_in,
    select,
    substitute,
)
from eatss.program.linear import Linear


@fixed
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
    return power.scaled(Fraction(1, exponent + 1))


_MOST_RELAXED = 8


_Conditions: TypeAlias = frozenset[Constraint]
Piece: TypeAlias = tuple[_Conditions, RationalPolynomial]
"""Conditions, and a polynomial in parameters and quotients of them; elsewhere it counts as 0."""


@fixed
class Atoms:
    """Quotients of parameters that are rounded down, by names that say which they are."""

    _quotients: dict[str, tuple[Linear, int]] = field(default_factory=dict)

    def quotient(self, dividend: Linear, divisor: int) -> str:
        """Return the name of ``dividend / divisor``, rounded down."""
        name = f"#{tuple(sorted(dividend.terms.items()))}+{dividend.constant}/{divisor}"
        self._quotients[name] = dividend, divisor
        return name

    def definitions(self, names: Iterable[str]) -> tuple[Constraint, ...]:
        """Return what says of those of ``names`` that are quotients what they are."""
        found: dict[Constraint, None] = {}
        todo = list(names)
        for name in todo:
            if name in self._quotients:
                dividend, divisor = self._quotients[name]
                terms = tuple(sorted(dividend.terms.items()))
                found |= dict.fromkeys(rounded_down(terms, dividend.constant, divisor, name))
                todo += dividend.terms
        return tuple(found)

    def joined(self, other: Atoms) -> Atoms:
        """Return the quotients of both."""
        return Atoms({**self._quotients, **other._quotients})

    def spelled(self, expression: IntExpr) -> IntExpr:
        """Replace names of quotients by the quotients."""
        own = (name for name in {*names_in(expression)} if name in self._quotients)
        return substitute(expression, {name: self._spelled(*self._quotients[name]) for name in own})

    def _spelled(self, dividend: Linear, divisor: int) -> IntExpr:
        return floored(self.spelled(dividend.expression()), divisor)


@fixed
class Count:
    """A sum of pieces, at most one for the same conditions."""

    pieces: Mapping[_Conditions, RationalPolynomial] = field(default_factory=dict)
    atoms: Atoms = field(default_factory=Atoms)

    @classmethod
    def of(cls, pieces: Iterable[Piece], atoms: Atoms) -> Count:
        """Return the sum of pieces."""
        total = cls({}, atoms)
        for conditions, polynomial in pieces:
            total = total.plus(cls({_relaxed(conditions, polynomial): polynomial}))
        return total

    def plus(self, other: Count, factor: int = 1) -> Count:
        """Return ``self + factor * other``."""
        found, none = dict(self.pieces), RationalPolynomial({})
        for conditions, polynomial in other.pieces.items():
            found[conditions] = found.get(conditions, none).plus(polynomial, factor)
        return Count(found, self.atoms.joined(other.atoms))

    def expression(self) -> IntExpr:
        """Return the sum as an integer expression of the parameters."""
        parts = [
            self.atoms.spelled(_guarded(conditions, polynomial))
            for conditions, polynomial in sorted(self.pieces.items(), key=_order)
            if polynomial.terms
        ]
        return _applied(Operator.ADD, parts) if parts else Constant(0)


def _relaxed(conditions: _Conditions, polynomial: RationalPolynomial) -> _Conditions:
    """Let bounds of single parameters go down towards 0 where the polynomial is 0 anyway.

    More pieces then have the same conditions: both ``N`` for ``N >= 1`` and ``N (N - 1)`` for
    ``N >= 2`` hold for ``N >= 0``.
    """
    found = set()
    for condition in conditions:
        least = -condition.constant
        match condition.terms:
            case ((name, 1),) if not condition.equality and 0 < least <= _MOST_RELAXED:
                while least and not polynomial.substituted(name, Linear({}, least - 1)).terms:
                    least -= 1
        found.add(condition._replace(constant=-least))
    return frozenset(found)


def _order(item: Piece) -> tuple[int, list[Constraint]]:
    return len(item[0]), sorted(item[0])


def _guarded(conditions: _Conditions, polynomial: RationalPolynomial) -> IntExpr:
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
    for monomial in sorted(
        polynomial.terms, key=lambda one: (-len(one), sorted(Counter(one).items()))
    ):
        factor = polynomial.terms[monomial] * denominator
        product = _product(abs(factor.numerator), monomial)
        (added if factor > 0 else subtracted).append(product)
    total = _applied(Operator.ADD, added) if added else Constant(0)
    if subtracted:
        total = Apply(Operator.SUB, (total, *subtracted))
    if denominator == 1:
        return total
    return floored(total, denominator)


def _product(factor: int, monomial: Monomial) -> IntExpr:
    names = list(map(Name, monomial))
    factors: list[IntExpr] = [*names] if factor == 1 and names else [Constant(factor), *names]
    return _applied(Operator.MUL, factors)


def _applied(operator: Operator, operands: list[IntExpr]) -> IntExpr:
    return operands[0] if len(operands) == 1 else Apply(operator, tuple(operands))


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
    text = str(points)
    found = _COUNTED.get(text)
    if found is None:
        if len(_COUNTED) >= _MOST_COUNTED:
            _COUNTED.clear()
        found = _COUNTED[text] = _counted(points)
    return found


_COUNTED: dict[str, Count] = {}
"""What was counted before, by what isl prints of it: kernels of a program ask for equal sets."""

_MOST_COUNTED = 1 << 12


def _counted(points: isl.Set) -> Count:
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
        total.add(_Part(*system, RationalPolynomial.constant(Fraction(1))))
    return Count.of(total.pieces, total.atoms)


@fixed
class _Part:
    """``Σ polynomial`` over the ``variables`` that keep ``constraints``."""

    variables: Names
    constraints: tuple[Constraint, ...]
    polynomial: RationalPolynomial

    def replaced(self, name: str, value: Linear) -> _Part:
        """Replace a variable by a linear form."""
        constraints = []
        for constraint in self.constraints:
            factor, rest = _parted(constraint, name)
            if factor:
                form = rest.plus(value, factor)
                constraint = _constraint(form, equality=constraint.equality)  # noqa: PLW2901
            constraints.append(constraint)
        polynomial = self.polynomial.substituted(name, value)
        return replace(self, constraints=tuple(constraints), polynomial=polynomial)

    def without(self, name: str) -> _Part:
        """Drop a variable that nothing mentions any more."""
        return replace(self, variables=tuple(v for v in self.variables if v != name))


@frozen
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
                self.add(_Part(variables, distinct(inside), polynomial))

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
        known = self.atoms.definitions(_names(part.constraints, ()))
        if not known:
            return frozenset(part.constraints), part.polynomial
        names = _names((*part.constraints, *known), ())
        found = solutions(self._context, names, part.constraints)
        simple = found.gist(solutions(self._context, names, known))
        return frozenset(constraints_on(simple, names)), part.polynomial


def _names(constraints: Iterable[Constraint], first: Iterable[str]) -> Names:
    found = dict.fromkeys(first)
    for constraint in constraints:
        found.update(dict.fromkeys(name for name, _ in constraint.terms))
    return tuple(found)


def _parted(constraint: Constraint, name: str) -> tuple[int, Linear]:
    """Return the factor of a variable in a constraint, and the form of all the others."""
    terms = dict(constraint.terms)
    factor = terms.pop(name, 0)
    return factor, Linear(terms, constraint.constant)


def _constraint(form: Linear, *, equality: bool = False) -> Constraint:
    return Constraint(tuple(sorted(form.terms.items())), form.constant, equality)


def _solved(constraint: Constraint, variables: Sequence[str]) -> tuple[str, Linear] | None:
    """Return a variable and what it equals, where its coefficient is 1 or -1."""
    for name, factor in constraint.terms:
        if name in variables and abs(factor) == 1:
            return name, _parted(constraint, name)[1] * -factor
    return None


def _easiest(part: _Part) -> tuple[str, list[_Bound]]:
    """Return the variable whose sum falls into the fewest cases, with its bounds."""
    found: list[tuple[int, int, str, list[_Bound]]] = []
    for name in part.variables:
        bounds = list(_bounds(part.constraints, name))
        n_lower = sum(bound.is_lower for bound in bounds)
        if n_lower and n_lower < len(bounds):
            splits = prod(modulus for b in bounds for _, modulus in b.splits(part.variables))
            found.append((splits, n_lower * (len(bounds) - n_lower), name, bounds))
    if not found:  # others may bound a variable once they are summed
        raise UncountableError("it has no end")
    *_, name, bounds = min(found, key=lambda one: one[:2])
    return name, bounds


def _bounds(constraints: Iterable[Constraint], name: str) -> Iterator[_Bound]:
    for constraint in constraints:
        factor, rest = _parted(constraint, name)
        if not factor:
            continue
        for sign in (1, -1) if constraint.equality else (1,):
            # sign (factor name + rest) >= 0
            towards = -1 if sign * factor > 0 else 1
            dividend = rest * (sign * towards)
            yield _Bound(is_lower=sign * factor > 0, dividend=dividend, divisor=abs(factor))


def _first_of(forms: Sequence[Linear], sign: int) -> Iterator[tuple[Linear, list[Constraint]]]:
    """Yield each form with what says that it is the greatest (or for -1 the least) of all.

    Of equal ones the first counts.
    """
    for position, form in enumerate(forms):
        yield (
            form,
            [
                _constraint((form * sign).plus(rival, -sign).plus(Linear({}, -(other < position))))
                for other, rival in enumerate(forms)
                if other != position
            ],
        )
