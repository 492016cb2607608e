"""Sets, relations and functions made or reshaped by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import islpy as isl

from eatss.isl_names.read import (
    IN,
    OUT,
    PARAM,
    SET,
    affine_form,
    alone,
    maps_of,
    parameter_space,
    with_names,
)

_Parametric = TypeVar("_Parametric", isl.Set, isl.Map, isl.PwAff)


def big_value(context: isl.Context, value: int) -> isl.Val:
    """Return an integer of any size; ``isl.Val`` of a Python integer takes 64 bits only."""
    return isl.Val(str(value), context)


def linear_function(
    context: isl.Context, constant: int, terms: tuple[tuple[str, int], ...]
) -> isl.PwAff:
    """Return ``constant + Σ coefficient * name`` as a function of parameters of these names."""
    space = parameter_space(context, [name for name, _ in terms])
    aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    aff = aff.set_constant_val(big_value(context, constant))
    for position, (_, coefficient) in enumerate(terms):
        aff = aff.set_coefficient_val(PARAM, position, big_value(context, coefficient))
    return isl.PwAff.from_aff(aff)


def _moved(piece: Any, kind: isl.dim_type, names: Sequence[str]) -> Any:
    """Turn parameters, which need not be there, into the first dimensions of a kind."""
    for position, name in enumerate(names):
        piece = _with_parameter(piece, name)
        at = piece.find_dim_by_name(PARAM, name)
        piece = piece.move_dims(kind, position, PARAM, at, 1)
    return piece


def parameters_as_dims(params: isl.Set, names: tuple[str, ...], tuple_name: str) -> isl.Set:
    """Turn a set of parameter values into ``tuple_name[names]``, other parameters kept."""
    found: isl.Set = _moved(isl.Set.from_params(params), SET, names)
    return found.set_tuple_name(tuple_name)


def parameters_as_inputs(elements: isl.Set, names: tuple[str, ...], tuple_name: str) -> isl.Map:
    """Turn a parametric set into a map from ``tuple_name[names]`` to the set."""
    found: isl.Map = _moved(isl.Map.from_range(elements), IN, names)
    return found.set_tuple_name(IN, tuple_name)


def parameters_as_function_inputs(
    function: isl.PwAff, names: tuple[str, ...], tuple_name: str
) -> isl.PwAff:
    """Turn a function of parameters into a function of ``tuple_name[names]``."""
    found: isl.PwAff = _moved(function.from_range(), IN, names)
    return found.set_tuple_id(IN, _tuple_id(function.get_ctx(), tuple_name))


def tuple_of_functions(
    context: isl.Context, tuple_name: str | None, functions: tuple[isl.PwAff, ...]
) -> isl.Set:
    """Return the one element ``tuple_name[functions]`` as a set with parameters."""
    space = isl.Space.set_alloc(context, 0, len(functions))
    if tuple_name is not None:
        space = space.set_tuple_name(SET, tuple_name)
    functions_list = isl.PwAffList.alloc(context, len(functions))
    for function in functions:
        functions_list = functions_list.add(function)
        space = space.align_params(function.get_space().params())
    if not functions:
        return isl.Set.universe(space)
    return isl.Set.from_multi_pw_aff(isl.MultiPwAff.from_pw_aff_list(space, functions_list))


def without_parameter(params: isl.Set, name: str) -> isl.Set:
    """Project a parameter out."""
    at = params.find_dim_by_name(PARAM, name)
    return params if at < 0 else params.project_out(PARAM, at, 1)


def renamed_parameter(params: isl.Set, old: str, new: str) -> isl.Set:
    """Rename a parameter."""
    at = params.find_dim_by_name(PARAM, old)
    return params if at < 0 else params.set_dim_name(PARAM, at, new)


def renamed_parameter_of(relation: isl.Map, old: str, new: str) -> isl.Map:
    """Rename a parameter of a relation."""
    at = relation.find_dim_by_name(PARAM, old)
    if at < 0 or old == new:
        return relation
    return relation.set_dim_name(PARAM, at, new)


def box(
    context: isl.Context, tuple_name: str, bounds: tuple[tuple[bool, isl.PwAff | None], ...]
) -> isl.Set:
    """Return the set of ``tuple_name[d0, …]`` with the given bounds on every dimension.

    A bound is ``(from_zero, size)``: whether the dimension starts at 0, and its size or
    ``None`` where it has no upper end.
    """
    space = isl.Space.set_alloc(context, 0, len(bounds)).set_tuple_name(SET, tuple_name)
    for _, size in bounds:
        if size is not None:
            space = space.align_params(size.get_space().params())
    result = isl.Set.universe(space)
    local = isl.LocalSpace.from_space(space)
    for position, (from_zero, size) in enumerate(bounds):
        here = isl.PwAff.from_aff(isl.Aff.var_on_domain(local, SET, position))
        if from_zero:
            result = result.intersect(here.nonneg_set())
        if size is not None:
            limit = _on_set(size, len(bounds), tuple_name)
            result = result.intersect(here.lt_set(limit))
    named: isl.Set = with_names(result, SET, (f"d{k}" for k in range(len(bounds))))
    return named


def _on_set(function: isl.PwAff, n_dims: int, tuple_name: str) -> isl.PwAff:
    """Extend a function of parameters to a function of a set that ignores the dimensions."""
    result = function.from_range().add_dims(IN, n_dims)
    return result.set_tuple_id(IN, _tuple_id(function.get_ctx(), tuple_name))


def _tuple_id(context: isl.Context, tuple_name: str) -> isl.Id:
    """Return the id ``set_tuple_name`` gives; one made by ``isl.Id`` would not be equal to it."""
    space = isl.Space.set_alloc(context, 0, 0).set_tuple_name(SET, tuple_name)
    return space.get_tuple_id(SET)


def _with_parameter(piece: _Parametric, name: str) -> _Parametric:
    """Return ``piece`` with a parameter of this name, added if it is not there."""
    if piece.find_dim_by_name(PARAM, name) >= 0:
        return piece
    return piece.align_params(parameter_space(piece.get_ctx(), (name,)))


def named_map(
    domain: isl.Set, functions: Sequence[isl.PwAff], name: str, dims: Sequence[str]
) -> isl.Map:
    """Return ``domain -> name[dims…]`` whose output dimensions are ``functions`` of the domain."""
    target = isl.Set.read_from_str(domain.get_ctx(), f"{{ {name}[] }}")
    relation = isl.Map.from_domain_and_range(domain, target)
    for function in functions:
        relation = relation.flat_range_product(isl.Map.from_pw_aff(function))
    named: isl.Map = with_names(relation.set_tuple_name(OUT, name), OUT, dims)
    return named


def bind_leading_outputs(relation: isl.Map, names: Sequence[str]) -> isl.Map:
    """Turn the first output dimensions into parameters called ``names`` and drop them."""
    tuple_name = relation.get_tuple_name(OUT)
    for name in names:
        count = relation.dim(PARAM)
        relation = relation.add_dims(PARAM, 1)
        relation = relation.set_dim_name(PARAM, count, name)
        relation = relation.equate(PARAM, count, OUT, 0)
        relation = relation.project_out(OUT, 0, 1)
    return relation.set_tuple_name(OUT, tuple_name)


def drop_leading_outputs(relation: isl.Map, count: int) -> isl.Map:
    """Project out the first ``count`` output dimensions, keeping the tuple's name."""
    tuple_name = relation.get_tuple_name(OUT)
    relation = relation.project_out(OUT, 0, count)
    return relation.set_tuple_name(OUT, tuple_name)


def leading_dims(points: isl.Set, count: int) -> isl.Set:
    """Return the values of the first ``count`` dimensions."""
    rest = points.n_dim() - count
    return points.project_out(SET, count, rest)


def leading_outputs_of(relation: isl.Map, count: int) -> isl.Map:
    """Map the inputs of a relation to their first dimensions, under the name of its output.

    The old output has no dimensions.
    """
    name = relation.get_tuple_name(OUT)
    identity = isl.Set.universe(relation.domain().get_space()).identity()
    extra = identity.dim(OUT) - count
    return identity.project_out(OUT, count, extra).set_tuple_name(OUT, name)


def named_points(points: isl.Set, name: str, dims: Sequence[str]) -> isl.Set:
    """Return the same points in the space ``name[dims…]``."""
    named: isl.Set = with_names(points, SET, dims)
    return named.set_tuple_name(name)


def equal_leading_dims(relations: isl.UnionMap, count: int) -> isl.UnionMap:
    """Return the part of relations whose inputs and outputs share their first dimensions."""
    found = isl.UnionMap.empty(relations.get_space())
    for relation in maps_of(relations):
        same = relation
        for position in range(count):
            same = same.equate(IN, position, OUT, position)
        found = found.union(same)
    return found


def name_inputs(relation: isl.Map, names: Sequence[str]) -> isl.Map:
    """Name the input dimensions, in order."""
    named: isl.Map = with_names(relation, IN, names)
    return named


def unbounded_first_dim(domain: isl.Set) -> isl.Set:
    """Return a set whose first dimension takes every value from 0 on."""
    free = domain.eliminate(SET, 0, 1)
    return free.lower_bound_val(SET, 0, isl.Val.zero(domain.get_ctx()))


def renaming(pairs: Sequence[tuple[isl.Set, str]]) -> isl.UnionPwMultiAff:
    """Return the function that sends each point of each set to the same point of a new name."""
    union: isl.UnionPwMultiAff | None = None
    for domain, name in pairs:
        identity = isl.MultiAff.identity_on_domain_space(domain.get_space())
        part = isl.UnionPwMultiAff.from_multi_aff(identity.set_tuple_name(OUT, name))
        union = part if union is None else union.union_add(part)
    assert union is not None
    return union


_Coalescable = TypeVar("_Coalescable", isl.Set, isl.Map, isl.UnionMap, isl.PwAff)


def universes(found: isl.UnionSet, pieces: Iterable[isl.Set]) -> isl.UnionSet:
    """Return a union with all points of the spaces of some sets."""
    for piece in pieces:
        found = found.union(isl.Set.universe(piece.get_space()))
    return found


def coalesced(piece: _Coalescable) -> _Coalescable:
    """Return a set, relation or function in fewer pieces, or as it is where isl fails.

    Coalescing changes no meaning, and isl's is known to stumble over its own tableaus
    ("original tableau does not correspond to original basic map").
    """
    try:
        return piece.coalesce()
    except isl.Error:
        return piece


def bound_domain(domain: isl.Set, functions: Sequence[isl.PwAff], names: Sequence[str]) -> isl.Set:
    """Return ``domain`` with a parameter for each function, equal to its value."""
    relation = named_map(domain, functions, "bound", ()).intersect_domain(domain)
    return bind_leading_outputs(relation, names).domain()


def parameters_set(context: isl.Context, names: Sequence[str], condition: str) -> isl.Set:
    """Return the set of parameter values that keep ``condition``, in isl's notation."""
    return isl.Set.read_from_str(context, f"[{', '.join(names)}] -> {{ : {condition} }}")


def without_parameters(params: isl.Set, names: Sequence[str]) -> isl.Set:
    """Project parameters out."""
    for name in names:
        params = without_parameter(params, name)
    return params


def parameter_bound(params: isl.Set, name: str, *, upper: bool) -> isl.PwAff:
    """Return the least (or greatest) value of a parameter as a function of the others."""
    line = parameters_as_dims(params, (name,), "line")
    return line.dim_max(0) if upper else line.dim_min(0)


def parameter_as_output(domain: isl.Set, name: str) -> isl.Map:
    """Turn a parameter of a set into the one output dimension of a map from the set."""
    found: isl.Map = _moved(isl.Map.from_domain(domain), OUT, (name,))
    return found


def dims_as_parameters(elements: isl.Set, names: Sequence[str]) -> isl.Set:
    """Turn all dimensions of a set, in order, into parameters called ``names``."""
    for name in names:
        at = elements.dim(PARAM)
        elements = elements.move_dims(PARAM, at, SET, 0, 1)
        elements = elements.set_dim_name(PARAM, at, name)
    return elements.params()


def parameter_at_least(name: str, function: isl.PwAff) -> isl.Set:
    """Return the values of parameters where parameter ``name`` is at least a function of them."""
    return isl.PwAff.ge_set(*_aligned(name, function))


def parameter_at_most(name: str, function: isl.PwAff) -> isl.Set:
    """Return the values of parameters where parameter ``name`` is at most a function of them."""
    return isl.PwAff.le_set(*_aligned(name, function))


def scaled_at_least(name: str, factor: int, function: isl.PwAff) -> isl.Set:
    """Return the parameters where ``factor`` times a parameter is at least a function."""
    return isl.PwAff.ge_set(*_aligned(name, function, factor))


def scaled_at_most(name: str, factor: int, function: isl.PwAff) -> isl.Set:
    """Return the parameters where ``factor`` times a parameter is at most a function."""
    return isl.PwAff.le_set(*_aligned(name, function, factor))


def _aligned(name: str, function: isl.PwAff, factor: int = 1) -> tuple[isl.PwAff, isl.PwAff]:
    own = linear_function(function.get_ctx(), 0, ((name, factor),))
    space = function.get_space().params().align_params(own.get_space().params())
    return own.align_params(space), function.align_params(space)


Length: TypeAlias = int | str
"""How many values a dimension has: a number, or a parameter."""


def pair_length(points: isl.Set, first: int) -> tuple[Length, Length] | None:
    """Return the lengths of two neighbouring dimensions that have all pairs of values from 0 on.

    ``None`` where values depend on those of other dimensions, do not begin at 0, or are as many as
    neither a number nor a parameter says.
    """
    plain = points.reset_tuple_id()
    one, other = (_length(plain, at) for at in (first, first + 1))
    if one is None or other is None:
        return None
    rest = plain.project_out(SET, first, 2).insert_dims(SET, first, 2)
    pairs = _from_zero(rest, first, one).intersect(_from_zero(rest, first + 1, other))
    return (one, other) if plain.is_equal(rest.intersect(pairs)) else None


def _length(points: isl.Set, at: int) -> Length | None:
    line = alone(points, SET, at)
    if line.is_empty() or not line.dim_has_upper_bound(SET, 0):
        return None
    last = affine_form(line.dim_max(0))
    if last is None:
        return None
    if not last.parameters:
        return last.constant + 1
    (name, factor), *others = last.parameters
    return name if factor == 1 and not others and last.constant == -1 else None


def _from_zero(points: isl.Set, at: int, length: Length) -> isl.Set:
    """Return the points of a space one of whose dimensions counts from 0."""
    names = [f"d{k}'" for k in range(points.dim(SET))]  # which no C can name
    known = f"[{length}] -> " if isinstance(length, str) else ""
    text = f"{known}{{ [{', '.join(names)}] : 0 <= {names[at]} < {length} }}"
    return isl.Set.read_from_str(points.get_ctx(), text)


def collapsed_set(points: isl.Set, first: int, size: Length, names: Sequence[str]) -> isl.Set:
    """Return a set with one dimension of some size in the place of two, its dimensions named."""
    pairs = points.reset_tuple_id()
    found = _without(pairs, first)
    others = _without(pairs.drop_constraints_involving_dims(SET, first, 2), first)
    if others.intersect_params(points.params()).is_equal(found):
        found = others  # that there are pairs at all is said by the new dimension
    found = found.insert_dims(SET, first, 1)
    found = found.intersect(_from_zero(found, first, size)).set_tuple_name(points.get_tuple_name())
    named: isl.Set = with_names(found, SET, names)
    return named


def _without(pairs: isl.Set, first: int) -> isl.Set:
    return pairs.project_out(SET, first, 2)


def collapsed_relation(
    relation: isl.Map, first: int, places: Sequence[int], domain: isl.Set
) -> isl.Map:
    """Return a relation with one input for two, and one output wherever both of them stood.

    Args:
        relation: its outputs depend on the two inputs side by side only.
        first: the first of the inputs.
        places: where outputs are the first of them, the second behind it.
        domain: the inputs as they become.
    """
    loose = relation.drop_constraints_involving_dims(IN, first, 2)
    for at in places:
        loose = loose.drop_constraints_involving_dims(OUT, at, 2)
    found, wide = (_joined(one, first, places, domain) for one in (relation, loose))
    # that the two have values at all is said by the one
    return wide if wide.intersect_params(relation.params()).is_equal(found) else found


def _joined(relation: isl.Map, first: int, places: Sequence[int], domain: isl.Set) -> isl.Map:
    name = relation.get_tuple_name(OUT)
    found = relation.project_out(IN, first, 2)
    found = found.insert_dims(IN, first, 1)
    for at in sorted(places, reverse=True):
        found = found.project_out(OUT, at, 2).insert_dims(OUT, at, 1)
    found = found.set_tuple_name(IN, domain.get_tuple_name())
    found = found.set_tuple_name(OUT, name)
    for before, at in enumerate(sorted(places)):
        found = found.equate(IN, first, OUT, at - before)
    return found.intersect_domain(domain)


def row_numbers(points: isl.Set, pairs: Mapping[int, int]) -> isl.Map:
    """Return the relation from points to those with pairs of dimensions counted row by row.

    Args:
        points: a set.
        pairs: the first dimensions of pairs, with the lengths of the second.
    """
    name, n_dims = points.get_tuple_name(), points.dim(SET)
    inputs = [f"i{k}" for k in range(n_dims)]
    outputs = [
        f"{pairs[k]} * i{k} + i{k + 1}" if k in pairs else f"i{k}"
        for k in range(n_dims)
        if k - 1 not in pairs
    ]
    text = f"{{ {name}[{', '.join(inputs)}] -> {name}[{', '.join(outputs)}] }}"
    return isl.Map.read_from_str(points.get_ctx(), text).intersect_domain(points)
