"""Basic sets as systems of linear constraints by name, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import islpy as isl

from eatss.isl_names.values import integer


class Constraint(NamedTuple):
    """``Σ coefficient * name + constant >= 0``, or ``= 0``; no coefficient is 0."""

    terms: tuple[tuple[str, int], ...]
    constant: int
    equality: bool


class ConstraintSystem(NamedTuple):
    """Constraints in ``variables`` and parameters.

    Variables are the dimensions of a set, then its integer divisions, which the others
    determine: each point of the set is one solution, for given parameters.
    """

    variables: tuple[str, ...]
    constraints: tuple[Constraint, ...]


_Column = tuple[isl.dim_type, int, str]


def constraint_system(part: isl.BasicSet) -> ConstraintSystem | None:
    """Return a basic set as constraints; variables are called ``#0``, ``#1``, ….

    ``None`` where isl knows no explicit form of an integer division.
    """
    n_dims, n_divs = part.dim(isl.dim_type.set), part.dim(isl.dim_type.div)
    columns = [(isl.dim_type.set, k, f"#{k}") for k in range(n_dims)]
    columns += [(isl.dim_type.div, k, f"#{n_dims + k}") for k in range(n_divs)]
    variables = tuple(name for _, _, name in columns)
    columns += [
        (isl.dim_type.param, k, part.get_dim_name(isl.dim_type.param, k) or f"p{k}")
        for k in range(part.dim(isl.dim_type.param))
    ]
    found = [_constraint(constraint, columns) for constraint in part.get_constraints()]
    inputs = [(isl.dim_type.in_ if k is isl.dim_type.set else k, p, n) for k, p, n in columns]
    for position in range(n_divs):
        try:
            division = part.get_div(position)
        except isl.Error:
            return None
        found += _division(division, inputs, f"#{n_dims + position}")
    return ConstraintSystem(variables, tuple(found))


def _constraint(constraint: isl.Constraint, columns: Sequence[_Column]) -> Constraint:
    terms = (
        (name, integer(constraint.get_coefficient_val(kind, position)))
        for kind, position, name in columns
    )
    return Constraint(
        tuple(term for term in terms if term[1]),
        integer(constraint.get_constant_val()),
        bool(constraint.is_equality()),
    )


def _division(division: isl.Aff, columns: Sequence[_Column], name: str) -> list[Constraint]:
    """Return what says that ``name`` is the value of ``division``, rounded down."""
    divisor = integer(division.get_denominator_val())
    scaled = division.scale_val(isl.Val(divisor, division.get_ctx()))
    terms = {
        column: integer(scaled.get_coefficient_val(kind, position))
        for kind, position, column in columns
    }
    constant = integer(scaled.get_constant_val())
    rest = {column: value for column, value in terms.items() if value}
    below = {column: -value for column, value in rest.items()}
    return [
        Constraint((*rest.items(), (name, -divisor)), constant, equality=False),
        Constraint((*below.items(), (name, divisor)), divisor - 1 - constant, equality=False),
    ]


def division_bits(points: isl.Set) -> int:
    """Return how many bits the coefficients of integer divisions have, in the hardest part.

    Of each division, explicit or not, the largest coefficient counts.
    """
    return max((_division_bits(part) for part in points.get_basic_sets()), default=0)


def _division_bits(part: isl.BasicSet) -> int:
    constraints = part.get_constraints() if part.dim(isl.dim_type.div) else ()
    largest = (
        max(abs(integer(c.get_coefficient_val(isl.dim_type.div, position))) for c in constraints)
        for position in range(part.dim(isl.dim_type.div))
        if constraints
    )
    return sum(value.bit_length() for value in largest)


def solutions(
    context: isl.Context, names: Sequence[str], constraints: Iterable[Constraint]
) -> isl.BasicSet:
    """Return the solutions of constraints; the dimensions of the set are ``names``, in order."""
    dims = {name: f"v{position}" for position, name in enumerate(names)}
    parts = []
    for constraint in constraints:
        terms = " + ".join(f"{value}{dims[name]}" for name, value in constraint.terms) or "0"
        parts.append(f"{terms} + {constraint.constant} {'=' if constraint.equality else '>='} 0")
    text = f"{{ [{', '.join(dims.values())}] : {' and '.join(parts) or 'true'} }}"
    return isl.BasicSet.read_from_str(context, text)


def constraints_on(part: isl.BasicSet, names: Sequence[str]) -> tuple[Constraint, ...]:
    """Return the constraints of a set without divisions whose dimensions are ``names``."""
    columns = [(isl.dim_type.set, position, name) for position, name in enumerate(names)]
    return tuple(_constraint(constraint, columns) for constraint in part.get_constraints())
