"""Constraints by name; constants in them that become parameters, and parameters numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import islpy as isl

from eatss.isl_names.read import DIV, IN, OUT, PARAM, SET, coefficients, integer, parameter_space


class Bound(NamedTuple):
    """A constraint by names: ``Σ inputs + Σ outputs + (parameters) + constant >= 0`` or ``= 0``.

    Output dimensions are called ``d0``, ``d1``, …; a set has inputs only.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    constant: int
    equality: bool


BasicPart: TypeAlias = isl.BasicSet | isl.BasicMap


def basic_parts(relation: isl.Set | isl.Map) -> tuple[BasicPart, ...]:
    """Return the basic sets or maps a set or map is the union of."""
    if isinstance(relation, isl.Set):
        return tuple(relation.get_basic_sets())
    return tuple(relation.get_basic_maps())


def bounds_of(part: BasicPart) -> tuple[Bound, ...]:
    """Return the constraints of a basic set or map; none if it needs integer division."""
    if part.dim(DIV):
        return ()
    return tuple(_bound(constraint, part) for constraint in part.get_constraints())


def _bound(constraint: isl.Constraint, part: BasicPart) -> Bound:
    is_set = isinstance(part, isl.BasicSet)
    inputs = coefficients(constraint, part, SET if is_set else IN)
    outputs = (
        (f"d{position}", integer(constraint.get_coefficient_val(OUT, position)))
        for position in range(0 if is_set else part.dim(OUT))
    )
    constant = integer(constraint.get_constant_val())
    kept = tuple(pair for pair in outputs if pair[1])
    return Bound(inputs, kept, constant, bool(constraint.is_equality()))


_Relation = TypeVar("_Relation", isl.Set, isl.Map)


def with_parameters(relation: _Relation, names: Sequence[str]) -> _Relation:
    """Add parameters called ``names`` that nothing depends on yet."""
    for name in names:
        position = relation.dim(PARAM)
        relation = relation.add_dims(PARAM, 1)
        relation = relation.set_dim_name(PARAM, position, name)
    return relation


def rebuild_with_sizes(
    relation: _Relation,
    names: Sequence[str],
    size_in: Callable[[Bound], tuple[str, int] | None],
) -> _Relation:
    """Replace constants by parameters, constraint by constraint.

    Args:
        relation: the set or map.
        names: the new parameters; all are added.
        size_in: for a constraint the parameter its constant stands for and that
            parameter's value, or ``None`` to leave it alone.

    Returns:
        A relation that equals ``relation`` once each parameter has its value. Parts that
        need integer division stay as they are.
    """
    relation = with_parameters(relation, names)
    rebuilt: _Relation | None = None
    for part in basic_parts(relation):
        piece = _rebuild_part(part, size_in)
        rebuilt = piece if rebuilt is None else rebuilt.union(piece)
    return relation if rebuilt is None else rebuilt


def _rebuild_part(part: Any, size_in: Callable[[Bound], tuple[str, int] | None]) -> Any:
    is_set = isinstance(part, isl.BasicSet)
    as_relation: Any = isl.Set.from_basic_set if is_set else isl.Map.from_basic_map
    if part.dim(DIV):
        return as_relation(part)
    fresh = type(part).universe(part.get_space())
    for constraint in part.get_constraints():
        bound = _bound(constraint, part)
        size = size_in(bound)
        if size is not None:
            name, value = size
            sign = 1 if bound.constant > 0 else -1
            position = part.get_space().find_dim_by_name(PARAM, name)
            constraint = constraint.set_constant_val(  # noqa: PLW2901
                isl.Val.int_from_si(part.get_ctx(), bound.constant - sign * value)
            ).set_coefficient_val(PARAM, position, isl.Val.int_from_si(part.get_ctx(), sign))
        fresh = fresh.add_constraint(constraint)
    return as_relation(fresh)


def fix_parameters(union: isl.UnionMap, values: Sequence[tuple[str, int]]) -> isl.UnionMap:
    """Give parameters their values and drop them."""
    if not values:
        return union
    fixed = isl.Set.universe(parameter_space(union.get_ctx(), [name for name, _ in values]))
    for position, (_, value) in enumerate(values):
        fixed = fixed.fix_val(PARAM, position, isl.Val(str(value), union.get_ctx()))
    union = union.intersect_params(fixed)
    for name, _ in values:
        position = union.find_dim_by_name(PARAM, name)
        union = union.project_out(PARAM, position, 1)
    return union


def at_values(points: isl.Set, values: Sequence[tuple[str, int]]) -> isl.Set:
    """Give parameters of a set their values and drop them; it need not have all of them."""
    for name, value in values:
        at = points.find_dim_by_name(PARAM, name)
        if at >= 0:
            value_of_isl = isl.Val(str(value), points.get_ctx())
            points = points.fix_val(PARAM, at, value_of_isl)
            points = points.project_out(PARAM, at, 1)
    return points


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
    n_dims, n_divs = part.dim(SET), part.dim(DIV)
    columns = [(SET, k, f"#{k}") for k in range(n_dims)]
    columns += [(DIV, k, f"#{n_dims + k}") for k in range(n_divs)]
    variables = tuple(name for _, _, name in columns)
    columns += [(PARAM, k, part.get_dim_name(PARAM, k) or f"p{k}") for k in range(part.dim(PARAM))]
    found = [_constraint(constraint, columns) for constraint in part.get_constraints()]
    inputs = [(IN if k is SET else k, p, n) for k, p, n in columns]
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
    constraints = part.get_constraints() if part.dim(DIV) else ()
    largest = (
        max(abs(integer(c.get_coefficient_val(DIV, position))) for c in constraints)
        for position in range(part.dim(DIV))
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
    columns = [(SET, position, name) for position, name in enumerate(names)]
    return tuple(_constraint(constraint, columns) for constraint in part.get_constraints())
