"""What sets, relations, functions and schedule nodes say, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import islpy as isl


def integer(value: isl.Val) -> int:
    """Return an integer of any size.

    Raises:
        isl.Error: the bound on isl's operations is reached; isl then prints numbers no more.
    """
    text = value.to_str()
    if text is None:
        raise isl.Error("isl printed no number: maximal number of operations exceeded")
    return int(text)


PARAM, DIV = isl.dim_type.param, isl.dim_type.div
SET, IN, OUT = isl.dim_type.set, isl.dim_type.in_, isl.dim_type.out
"""Kinds of dimensions."""

_ANY: TypeAlias = Any
"""A set, relation or function of isl, or a space: what has dimensions."""

_UNNAMED = {PARAM: "p"}


def name_at(piece: _ANY, kind: isl.dim_type, position: int) -> str:
    """Return the name of a dimension; unnamed ones are ``d0``, ``d1``, …, parameters ``p0``, …."""
    return piece.get_dim_name(kind, position) or f"{_UNNAMED.get(kind, 'd')}{position}"


def _names(piece: _ANY, kind: isl.dim_type, *, involved: bool = False) -> tuple[str, ...]:
    """Return the names of dimensions of one kind, in order; those that a function depends on."""
    return tuple(
        name_at(piece, kind, position)
        for position in range(piece.dim(kind))
        if not involved or piece.involves_dims(kind, position, 1)
    )


def dim_names(isl_set: isl.Set) -> tuple[str, ...]:
    """Return the names of the set dimensions, in order; unnamed ones are ``d0``, ``d1``, …."""
    return _names(isl_set, SET)


def parameter_names(isl_set: isl.Set) -> tuple[str, ...]:
    """Return the names of the parameters, in order."""
    return _names(isl_set, PARAM)


def involved_dims(function: isl.PwAff) -> tuple[str, ...]:
    """Return the names of the input dimensions a function depends on, in order."""
    return _names(function, IN, involved=True)


def involved_parameters(function: isl.PwAff) -> tuple[str, ...]:
    """Return the names of the parameters a function depends on, in order."""
    return _names(function, PARAM, involved=True)


_Piece = TypeVar("_Piece", isl.Set, isl.Map)


def alone(piece: _Piece, kind: isl.dim_type, position: int, count: int = 1) -> _Piece:
    """Project out the dimensions of one kind but for some that follow each other."""
    behind = position + count
    piece = piece.project_out(kind, behind, piece.dim(kind) - behind)
    return piece.project_out(kind, 0, position)


def coefficients(
    linear: isl.Aff | isl.Constraint, named: _ANY, kind: isl.dim_type
) -> tuple[tuple[str, int], ...]:
    """Return the non-zero coefficients of one kind of dimension, in order of the dimensions.

    Args:
        linear: what has them.
        named: what has their names.
        kind: of the dimensions.
    """
    pairs = (
        (name_at(named, kind, position), integer(linear.get_coefficient_val(kind, position)))
        for position in range(named.dim(kind))
    )
    return tuple(pair for pair in pairs if pair[1])


def output_affs(isl_map: isl.Map) -> tuple[isl.PwAff, ...]:
    """Return the output dimensions of a single-valued map, in order, as functions of its input.

    Constraints of the domain are dropped from the functions.
    """
    function = isl.PwMultiAff.from_map(isl_map).gist(isl_map.domain())
    return tuple(function.get_pw_aff(k) for k in range(function.dim(OUT)))


def constant_value(function: isl.PwAff) -> int | None:
    """Return the value of a function that is one integer constant, else ``None``."""
    if function.n_piece() != 1 or not function.is_cst():
        return None
    (_, aff), *_ = function.get_pieces()
    involves_parameters = aff.involves_dims(PARAM, 0, aff.dim(PARAM))
    if involves_parameters or aff.involves_locals():
        return None
    value = aff.get_constant_val()
    return integer(value) if value.is_int() else None


def with_names(piece: _ANY, kind: isl.dim_type, names: Iterable[str]) -> _ANY:
    """Name the dimensions of one kind, in order."""
    for position, name in enumerate(names):
        piece = piece.set_dim_name(kind, position, name)
    return piece


def parameter_space(context: isl.Context, names: Sequence[str]) -> isl.Space:
    """Return the space of parameters of these names, in this order."""
    space: isl.Space = with_names(isl.Space.params_alloc(context, len(names)), PARAM, names)
    return space


def maps_of(union: isl.UnionMap) -> tuple[isl.Map, ...]:
    """Return the maps of a union, sorted by the names of their tuples."""
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return tuple(sorted(found, key=lambda m: str(m.get_space())))


def involves_parameter(function: isl.PwAff, name: str) -> bool:
    """Return whether a function depends on a parameter."""
    at = function.find_dim_by_name(PARAM, name)
    return at >= 0 and function.involves_dims(PARAM, at, 1)


def parameter_is_bounded(params: isl.Set, name: str, *, above: bool) -> bool:
    """Return whether a parameter is bounded above (or below) for fixed other parameters."""
    at = params.find_dim_by_name(PARAM, name)
    if at < 0:
        return False
    line = isl.Set.from_params(params).move_dims(SET, 0, PARAM, at, 1)
    if above:
        return bool(line.dim_has_upper_bound(SET, 0))
    return bool(line.dim_has_lower_bound(SET, 0))


def only_dim(isl_set: isl.Set, name: str) -> isl.Set:
    """Return the one-dimensional set of values the dimension ``name`` takes."""
    return alone(isl_set, SET, dim_names(isl_set).index(name))


class AffineForm(NamedTuple):
    """An affine function: ``Σ coefficients · dim + Σ parameters · parameter + constant``."""

    coefficients: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, int], ...]
    constant: int


def affine_form(function: isl.PwAff) -> AffineForm | None:
    """Return a function as an affine form, ``None`` if it is piecewise or divides.

    The result holds wherever ``function`` is defined.
    """
    if function.n_piece() != 1:
        return None
    (_, aff), *_ = function.get_pieces()
    if aff.involves_locals() or not aff.get_denominator_val().is_one():
        return None
    return AffineForm(
        coefficients(aff, aff, IN),
        coefficients(aff, aff, PARAM),
        integer(aff.get_constant_val()),
    )


def sets_of(union: isl.UnionSet) -> list[isl.Set]:
    """Return the sets of a union, in isl's order."""
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return found


def set_names(union: isl.UnionSet) -> tuple[str, ...]:
    """Return the tuple names of a union, sorted."""
    return tuple(sorted(item.get_tuple_name() or "" for item in sets_of(union)))


def coupled_dims(points: isl.Set) -> tuple[int, ...]:
    """Return the positions of the dimensions whose values depend on those of others.

    A set is a product along a dimension where that dimension may take each of its values whatever
    the others are.
    """
    count = points.n_dim()
    found = []
    for at in range(count):
        others = points.eliminate(SET, at, 1)
        alone = points.eliminate(SET, 0, at)
        alone = alone.eliminate(SET, at + 1, count - at - 1)
        if not points.is_equal(others.intersect(alone)):
            found.append(at)
    return tuple(found)


def has_bounds(isl_set: isl.Set, name: str) -> bool:
    """Tell whether a dimension has a lower and an upper bound, possibly in parameters."""
    position = dim_names(isl_set).index(name)
    return bool(
        isl_set.dim_has_lower_bound(SET, position) and isl_set.dim_has_upper_bound(SET, position)
    )


def stride_of(isl_set: isl.Set, name: str) -> int:
    """Return the largest step all values of a dimension are known to keep."""
    return integer(isl_set.get_stride(dim_names(isl_set).index(name)))


def moving_dims(steps: isl.Map, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``names`` in which output and input of a map of one space ever differ."""
    moving = []
    for position in range(steps.dim(IN)):
        name = name_at(steps, IN, position)
        equal = steps.equate(IN, position, OUT, position)
        if name in names and not steps.is_subset(equal):
            moving.append(name)
    return tuple(moving)


def same_except(schedule: isl.Map, names: Sequence[str]) -> isl.Map:
    """Return the pairs of inputs that ``schedule`` sends to points differing in ``names`` only."""
    target = schedule.range().get_space()
    pairs = isl.Map.universe(target.map_from_set())
    for position in range(target.dim(SET)):
        if schedule.get_dim_name(OUT, position) not in names:
            pairs = pairs.equate(IN, position, OUT, position)
    return schedule.apply_range(pairs).apply_range(schedule.reverse())


def function_on(union: isl.UnionPwAff, domain: isl.Set) -> isl.PwAff:
    """Return the part of ``union`` that is a function of ``domain``'s space."""
    space = domain.get_space().from_domain().add_dims(OUT, 1)
    return union.extract_pw_aff(space)


def extremes(domain: isl.Set, functions: Sequence[isl.UnionPwAff]) -> tuple[int, int] | None:
    """Return the least and greatest value of a set's dimensions and of functions on it.

    ``None`` where one is not bounded. The set is not empty; functions that are not defined on it
    are left out.
    """
    found: list[isl.Val] = []
    for position in range(domain.dim(SET)):
        found += [domain.dim_min_val(position), domain.dim_max_val(position)]
    for function in functions:
        here = function_on(function, domain).intersect_domain(domain)
        if not here.domain().is_empty():
            # isl takes no quotients here, though they are whole where it knows what divides what
            found += [here.floor().min_val(), here.ceil().max_val()]
    if not all(value.is_int() for value in found):
        return None
    values = [integer(value) for value in found] or [0]
    return min(values), max(values)


def leading_dims_positive(domain: isl.Set, count: int) -> bool:
    """Tell whether the first dimensions of a set that is not empty are never negative."""
    return all(domain.dim_min_val(position).is_nonneg() for position in range(count))


def parameter_extremes(domain: isl.Set, name: str) -> tuple[int, int]:
    """Return the least and greatest value of a parameter for which a set is not empty.

    The set has dimensions and is not empty, and the parameter is bounded.
    """
    at = domain.find_dim_by_name(PARAM, name)
    line = domain.move_dims(SET, 0, PARAM, at, 1)
    return integer(line.dim_min_val(0)), integer(line.dim_max_val(0))


def least_difference(relation: isl.Map, source: int, sink: int) -> int | None:
    """Return the least ``output[sink] - input[source]`` over all pairs and parameters.

    ``None`` if it has no lower bound; 0 for an empty relation.
    """
    if relation.is_empty():
        return 0
    single = alone(relation.project_out_all_params(), IN, source)
    single = alone(single, OUT, sink)
    least = single.reset_tuple_id(IN).reset_tuple_id(OUT)
    value = least.deltas().dim_min_val(0)
    return integer(value) if value.is_int() else None


def node_kind(node: isl.ScheduleNode) -> str:
    """Return the type of a schedule node: ``band``, ``filter``, ``sequence``, ``leaf``, …."""
    return str(cast("isl.schedule_node_type", node.get_type()).name)


def divisors(isl_set: isl.Set) -> tuple[int, ...]:
    """Return the divisors of the integer divisions in the part of a set that has the most."""
    parts = [
        tuple(abs(integer(basic.get_div(k).get_denominator_val())) for k in range(basic.dim(DIV)))
        for basic in isl_set.compute_divs().get_basic_sets()
    ]
    return max(parts, key=lambda part: (len(part), part), default=())


def fixed_box(elements: isl.Set) -> tuple[tuple[isl.PwAff, int], ...] | None:
    """Return for each dimension an offset, a function of parameters, and a constant size.

    The box from the offsets, of these sizes, holds all elements; ``None`` if no affine offsets
    leave it constant sizes. Among several the smallest size is taken.
    """
    hull = elements.simple_hull().remove_divs()
    sides = []
    for position in range(hull.dim(SET)):
        line = alone(elements, SET, position)
        best: tuple[isl.PwAff, int] | None = None
        # of a diagonal, or of pieces that lie apart, only the line has bounds of its own
        apart = _lower_bounds(line.simple_hull().remove_divs(), 0)
        for bound in (*_lower_bounds(hull, position), *apart):
            reach = _reach_from(line, bound)
            if reach is not None and (best is None or reach[1] < best[1]):
                best = (bound.add_constant_val(reach[0]), reach[1])
        if best is None:
            return None
        sides.append(best)
    return tuple(sides)


def _lower_bounds(hull: isl.BasicSet, position: int) -> list[isl.PwAff]:
    found = []
    count = hull.dim(SET)
    for constraint in hull.get_constraints():
        coefficient = integer(constraint.get_coefficient_val(SET, position))
        apart = not any(
            constraint.involves_dims(SET, other, 1) for other in range(count) if other != position
        )
        one = coefficient == 1 or (constraint.is_equality() and coefficient == -1)
        if one and apart and not constraint.is_div_constraint():
            bound = constraint.get_bound(SET, position)
            if not bound.involves_locals():
                found.append(isl.PwAff.from_aff(bound).project_domain_on_params())
    return found


def _reach_from(line: isl.Set, bound: isl.PwAff) -> tuple[isl.Val, int] | None:
    """Return how far beyond ``bound`` a one-dimensional set begins, and how many values hold it.

    Parameters are variables in this: the maximum as a function of them is far harder to find.
    """
    space, count = line.get_space(), line.dim(PARAM)
    beyond = isl.PwAff.var_on_domain(isl.LocalSpace.from_space(space), SET, 0)
    aff = beyond.sub(bound.insert_domain(space)).as_aff()
    aff = aff.move_dims(IN, 1, PARAM, 0, count)
    points = line.move_dims(SET, 1, PARAM, 0, count)
    first, last = points.min_val(aff), points.max_val(aff)
    if not (first.is_int() and last.is_int()):
        return None
    return first, integer(last.sub(first)) + 1


def function_of_parameters(function: isl.PwAff) -> isl.PwAff:
    """Turn a function of named dimensions into one of parameters of these names."""
    names = dim_names(function.domain())
    parameters = parameter_space(function.get_ctx(), names)
    space = function.get_domain_space().align_params(parameters)
    outside = space.params().set_from_params()
    values = isl.MultiAff.zero(outside.map_from_domain_and_range(space))
    local = isl.LocalSpace.from_space(outside)
    for position, name in enumerate(names):
        at = outside.find_dim_by_name(PARAM, name)
        values = values.set_aff(position, isl.Aff.var_on_domain(local, PARAM, at))
    return function.pullback_multi_aff(values).project_domain_on_params()


def affine_bounds(params: isl.Set, name: str) -> tuple[list[tuple[isl.PwAff, int]], ...]:
    """Return lower and upper bounds of a parameter in the constraints around a set.

    Each is ``(function, divisor)``: the parameter is at least the function divided by the
    divisor, rounded up, or at most it, rounded down. All constraints that hold of the whole
    set and need no integer division are taken; there may be none.
    """
    hull = params.simple_hull().remove_divs().remove_redundancies()
    at = hull.get_space().find_dim_by_name(PARAM, name)
    found: tuple[list[tuple[isl.PwAff, int]], ...] = [], []
    for constraint in hull.get_constraints():
        aff = constraint.get_aff()
        if aff.involves_locals() or constraint.is_div_constraint():
            continue
        coefficient = integer(constraint.get_coefficient_val(PARAM, at))
        rest = isl.PwAff.from_aff(aff.set_coefficient_val(PARAM, at, isl.Val.zero(hull.get_ctx())))
        signed = rest.neg() if coefficient > 0 else rest
        for bounds, bounds_it in zip(found, (coefficient > 0, coefficient < 0), strict=True):
            if bounds_it or (coefficient and constraint.is_equality()):
                bounds.append((signed, abs(coefficient)))
    return found


def ast_node_kind(node: isl.AstNode) -> str:
    """Return the type of an AST node: ``for_``, ``if_``, ``block``, ``mark`` or ``user``."""
    return str(cast("isl.ast_node_type", node.get_type()).name)


def ast_expression_kind(expression: isl.AstExpr) -> str:
    """Return the type of an AST expression: ``op``, ``id`` or ``int``."""
    return str(cast("isl.ast_expr_type", expression.get_type()).name)


def ast_operator(expression: isl.AstExpr) -> str:
    """Return the operator of an AST expression that has one, as isl calls it."""
    return str(cast("isl.ast_expr_op_type", expression.get_op_type()).name)


def time_depth(schedule: isl.UnionMap) -> int:
    """Return the number of dimensions of the vectors a schedule maps to."""
    return max((m.dim(OUT) for m in maps_of(schedule)), default=0)


def padding(schedule: isl.UnionMap, first: int, depth: int) -> isl.UnionMap:
    """Return the map from the vectors of ``schedule`` to vectors of ``depth + 1`` dimensions.

    ``first`` goes in front, zeros behind.
    """
    own = time_depth(schedule)
    dims = [f"t{k}" for k in range(own)]
    padded = ", ".join([str(first), *dims, *("0" for _ in range(depth - own))])
    text = f"{{ [{', '.join(dims)}] -> [{padded}] }}"
    return isl.UnionMap.read_from_str(schedule.get_ctx(), text)


def points_at_a_sample(points: isl.Set) -> int | None:
    """Return how many points a set has at some values of its parameters, ``None`` for no end."""
    sample = points.params().sample_point()
    if sample.is_void():
        return 0
    there = points.intersect_params(isl.Set.from_point(sample))
    if not there.is_bounded():
        return None
    return integer(there.project_out(PARAM, 0, there.dim(PARAM)).count_val())


def points_of(isl_set: isl.Set) -> tuple[tuple[int, ...], ...]:
    """Return the points of a bounded set without parameters, sorted."""
    found: list[tuple[int, ...]] = []

    def note(point: isl.Point) -> None:
        values = (point.get_coordinate_val(SET, k) for k in range(isl_set.dim(SET)))
        found.append(tuple(integer(value) for value in values))

    isl_set.foreach_point(note)
    return tuple(sorted(found))
