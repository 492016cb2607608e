"""Constants of constraints that become parameters, and parameters that become numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import islpy as isl

from eatss.isl_names.values import integer


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
    if part.dim(isl.dim_type.div):
        return ()
    return tuple(_bound(constraint, part) for constraint in part.get_constraints())


def _bound(constraint: isl.Constraint, part: BasicPart) -> Bound:
    is_set = isinstance(part, isl.BasicSet)
    inner = isl.dim_type.set if is_set else isl.dim_type.in_
    inputs = []
    for position in range(part.dim(inner)):
        value = integer(constraint.get_coefficient_val(inner, position))
        if value:
            inputs.append((part.get_dim_name(inner, position) or f"d{position}", value))
    outputs = []
    for position in range(0 if is_set else part.dim(isl.dim_type.out)):
        value = integer(constraint.get_coefficient_val(isl.dim_type.out, position))
        if value:
            outputs.append((f"d{position}", value))
    constant = integer(constraint.get_constant_val())
    return Bound(tuple(inputs), tuple(outputs), constant, bool(constraint.is_equality()))


_Relation = TypeVar("_Relation", isl.Set, isl.Map)


def with_parameters(relation: _Relation, names: Sequence[str]) -> _Relation:
    """Add parameters called ``names`` that nothing depends on yet."""
    for name in names:
        position = relation.dim(isl.dim_type.param)
        relation = relation.add_dims(isl.dim_type.param, 1)
        relation = relation.set_dim_name(isl.dim_type.param, position, name)
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
    if part.dim(isl.dim_type.div):
        return as_relation(part)
    fresh = type(part).universe(part.get_space())
    for constraint in part.get_constraints():
        bound = _bound(constraint, part)
        size = size_in(bound)
        if size is not None:
            name, value = size
            sign = 1 if bound.constant > 0 else -1
            position = part.get_space().find_dim_by_name(isl.dim_type.param, name)
            constraint = constraint.set_constant_val(  # noqa: PLW2901
                isl.Val.int_from_si(part.get_ctx(), bound.constant - sign * value)
            ).set_coefficient_val(
                isl.dim_type.param, position, isl.Val.int_from_si(part.get_ctx(), sign)
            )
        fresh = fresh.add_constraint(constraint)
    return as_relation(fresh)


def fix_parameters(union: isl.UnionMap, values: Sequence[tuple[str, int]]) -> isl.UnionMap:
    """Give parameters their values and drop them."""
    if not values:
        return union
    space = isl.Space.params_alloc(union.get_ctx(), len(values))
    for position, (name, _) in enumerate(values):
        space = space.set_dim_name(isl.dim_type.param, position, name)
    fixed = isl.Set.universe(space)
    for position, (_, value) in enumerate(values):
        fixed = fixed.fix_val(isl.dim_type.param, position, isl.Val(str(value), union.get_ctx()))
    union = union.intersect_params(fixed)
    for name, _ in values:
        position = union.find_dim_by_name(isl.dim_type.param, name)
        union = union.project_out(isl.dim_type.param, position, 1)
    return union


def at_values(points: isl.Set, values: Sequence[tuple[str, int]]) -> isl.Set:
    """Give parameters of a set their values and drop them; it need not have all of them."""
    for name, value in values:
        at = points.find_dim_by_name(isl.dim_type.param, name)
        if at >= 0:
            value_of_isl = isl.Val(str(value), points.get_ctx())
            points = points.fix_val(isl.dim_type.param, at, value_of_isl)
            points = points.project_out(isl.dim_type.param, at, 1)
    return points
