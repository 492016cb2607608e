"""The one place where isl dimensions are counted: everything else names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import islpy as isl

_Parametric = TypeVar("_Parametric", isl.Set, isl.Map, isl.PwAff)


def dim_names(isl_set: isl.Set) -> tuple[str, ...]:
    """Return the names of the set dimensions, in order; unnamed ones are ``d0``, ``d1``, …."""
    return tuple(
        isl_set.get_dim_name(isl.dim_type.set, position) or f"d{position}"
        for position in range(isl_set.dim(isl.dim_type.set))
    )


def parameter_names(isl_set: isl.Set) -> tuple[str, ...]:
    """Return the names of the parameters, in order."""
    return tuple(
        isl_set.get_dim_name(isl.dim_type.param, position) or f"p{position}"
        for position in range(isl_set.dim(isl.dim_type.param))
    )


def output_affs(isl_map: isl.Map) -> tuple[isl.PwAff, ...]:
    """Return the output dimensions of a single-valued map, in order, as functions of its input.

    Constraints of the domain are dropped from the functions.
    """
    function = isl.PwMultiAff.from_map(isl_map).gist(isl_map.domain())
    return tuple(function.get_pw_aff(k) for k in range(function.dim(isl.dim_type.out)))


def constant_value(function: isl.PwAff) -> int | None:
    """Return the value of a function that is one integer constant, else ``None``."""
    if function.n_piece() != 1 or not function.is_cst():
        return None
    (_, aff), *_ = function.get_pieces()
    involves_parameters = aff.involves_dims(isl.dim_type.param, 0, aff.dim(isl.dim_type.param))
    if involves_parameters or aff.involves_locals():
        return None
    value = aff.get_constant_val()
    return int(value.to_python()) if value.is_int() else None


def maps_of(union: isl.UnionMap) -> tuple[isl.Map, ...]:
    """Return the maps of a union, sorted by the names of their tuples."""
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return tuple(sorted(found, key=lambda m: str(m.get_space())))


def big_value(context: isl.Context, value: int) -> isl.Val:
    """Return an integer of any size; ``isl.Val`` of a Python integer takes 64 bits only."""
    return isl.Val(str(value), context)


def linear_function(
    context: isl.Context, constant: int, terms: tuple[tuple[str, int], ...]
) -> isl.PwAff:
    """Return ``constant + Σ coefficient * name`` as a function of parameters of these names."""
    space = isl.Space.params_alloc(context, len(terms))
    for position, (name, _) in enumerate(terms):
        space = space.set_dim_name(isl.dim_type.param, position, name)
    aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    aff = aff.set_constant_val(big_value(context, constant))
    for position, (_, coefficient) in enumerate(terms):
        aff = aff.set_coefficient_val(isl.dim_type.param, position, big_value(context, coefficient))
    return isl.PwAff.from_aff(aff)


def parameters_as_dims(params: isl.Set, names: tuple[str, ...], tuple_name: str) -> isl.Set:
    """Turn a set of parameter values into ``tuple_name[names]``, other parameters kept."""
    result = isl.Set.from_params(params)
    for position, name in enumerate(names):
        result = _with_parameter(result, name)
        at = result.find_dim_by_name(isl.dim_type.param, name)
        result = result.move_dims(isl.dim_type.set, position, isl.dim_type.param, at, 1)
    return result.set_tuple_name(tuple_name)


def parameters_as_inputs(elements: isl.Set, names: tuple[str, ...], tuple_name: str) -> isl.Map:
    """Turn a parametric set into a map from ``tuple_name[names]`` to the set."""
    result = isl.Map.from_range(elements)
    for position, name in enumerate(names):
        result = _with_parameter(result, name)
        at = result.find_dim_by_name(isl.dim_type.param, name)
        result = result.move_dims(isl.dim_type.in_, position, isl.dim_type.param, at, 1)
    return result.set_tuple_name(isl.dim_type.in_, tuple_name)


def parameters_as_function_inputs(
    function: isl.PwAff, names: tuple[str, ...], tuple_name: str
) -> isl.PwAff:
    """Turn a function of parameters into a function of ``tuple_name[names]``."""
    result = function.from_range()
    for position, name in enumerate(names):
        result = _with_parameter(result, name)
        at = result.find_dim_by_name(isl.dim_type.param, name)
        result = result.move_dims(isl.dim_type.in_, position, isl.dim_type.param, at, 1)
    return result.set_tuple_id(isl.dim_type.in_, _tuple_id(function.get_ctx(), tuple_name))


def tuple_of_functions(
    context: isl.Context, tuple_name: str | None, functions: tuple[isl.PwAff, ...]
) -> isl.Set:
    """Return the one element ``tuple_name[functions]`` as a set with parameters."""
    space = isl.Space.set_alloc(context, 0, len(functions))
    if tuple_name is not None:
        space = space.set_tuple_name(isl.dim_type.set, tuple_name)
    functions_list = isl.PwAffList.alloc(context, len(functions))
    for function in functions:
        functions_list = functions_list.add(function)
        space = space.align_params(function.get_space().params())
    if not functions:
        return isl.Set.universe(space)
    return isl.Set.from_multi_pw_aff(isl.MultiPwAff.from_pw_aff_list(space, functions_list))


def parameter_space(context: isl.Context, names: tuple[str, ...]) -> isl.Space:
    """Return the space of parameters of these names, in this order."""
    space = isl.Space.params_alloc(context, len(names))
    for position, name in enumerate(names):
        space = space.set_dim_name(isl.dim_type.param, position, name)
    return space


def without_parameter(params: isl.Set, name: str) -> isl.Set:
    """Project a parameter out."""
    at = params.find_dim_by_name(isl.dim_type.param, name)
    return params if at < 0 else params.project_out(isl.dim_type.param, at, 1)


def involves_parameter(function: isl.PwAff, name: str) -> bool:
    """Return whether a function depends on a parameter."""
    at = function.find_dim_by_name(isl.dim_type.param, name)
    return at >= 0 and function.involves_dims(isl.dim_type.param, at, 1)


def parameter_is_bounded(params: isl.Set, name: str, *, above: bool) -> bool:
    """Return whether a parameter is bounded above (or below) for fixed other parameters."""
    at = params.find_dim_by_name(isl.dim_type.param, name)
    if at < 0:
        return False
    line = isl.Set.from_params(params).move_dims(isl.dim_type.set, 0, isl.dim_type.param, at, 1)
    if above:
        return bool(line.dim_has_upper_bound(isl.dim_type.set, 0))
    return bool(line.dim_has_lower_bound(isl.dim_type.set, 0))


def renamed_parameter(params: isl.Set, old: str, new: str) -> isl.Set:
    """Rename a parameter."""
    at = params.find_dim_by_name(isl.dim_type.param, old)
    return params if at < 0 else params.set_dim_name(isl.dim_type.param, at, new)


def box(
    context: isl.Context, tuple_name: str, bounds: tuple[tuple[bool, isl.PwAff | None], ...]
) -> isl.Set:
    """Return the set of ``tuple_name[d0, …]`` with the given bounds on every dimension.

    A bound is ``(from_zero, size)``: whether the dimension starts at 0, and its size or
    ``None`` where it has no upper end.
    """
    space = isl.Space.set_alloc(context, 0, len(bounds)).set_tuple_name(
        isl.dim_type.set, tuple_name
    )
    for _, size in bounds:
        if size is not None:
            space = space.align_params(size.get_space().params())
    result = isl.Set.universe(space)
    local = isl.LocalSpace.from_space(space)
    for position, (from_zero, size) in enumerate(bounds):
        here = isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, position))
        if from_zero:
            result = result.intersect(here.nonneg_set())
        if size is not None:
            limit = _on_set(size, len(bounds), tuple_name)
            result = result.intersect(here.lt_set(limit))
    for position in range(len(bounds)):
        result = result.set_dim_name(isl.dim_type.set, position, f"d{position}")
    return result


def _on_set(function: isl.PwAff, n_dims: int, tuple_name: str) -> isl.PwAff:
    """Extend a function of parameters to a function of a set that ignores the dimensions."""
    result = function.from_range().add_dims(isl.dim_type.in_, n_dims)
    return result.set_tuple_id(isl.dim_type.in_, _tuple_id(function.get_ctx(), tuple_name))


def _tuple_id(context: isl.Context, tuple_name: str) -> isl.Id:
    """Return the id ``set_tuple_name`` gives; one made by ``isl.Id`` would not be equal to it."""
    space = isl.Space.set_alloc(context, 0, 0).set_tuple_name(isl.dim_type.set, tuple_name)
    return space.get_tuple_id(isl.dim_type.set)


def _with_parameter(piece: _Parametric, name: str) -> _Parametric:
    """Return ``piece`` with a parameter of this name, added if it is not there."""
    if piece.find_dim_by_name(isl.dim_type.param, name) >= 0:
        return piece
    space = isl.Space.params_alloc(piece.get_ctx(), 1).set_dim_name(isl.dim_type.param, 0, name)
    return piece.align_params(space)


def named_map(
    domain: isl.Set, functions: Sequence[isl.PwAff], name: str, dims: Sequence[str]
) -> isl.Map:
    """Return ``domain -> name[dims…]`` whose output dimensions are ``functions`` of the domain."""
    target = isl.Set.read_from_str(domain.get_ctx(), f"{{ {name}[] }}")
    relation = isl.Map.from_domain_and_range(domain, target)
    for function in functions:
        relation = relation.flat_range_product(isl.Map.from_pw_aff(function))
    relation = relation.set_tuple_name(isl.dim_type.out, name)
    for position, dim in enumerate(dims):
        relation = relation.set_dim_name(isl.dim_type.out, position, dim)
    return relation


def bind_leading_outputs(relation: isl.Map, names: Sequence[str]) -> isl.Map:
    """Turn the first output dimensions into parameters called ``names`` and drop them."""
    tuple_name = relation.get_tuple_name(isl.dim_type.out)
    for name in names:
        count = relation.dim(isl.dim_type.param)
        relation = relation.add_dims(isl.dim_type.param, 1)
        relation = relation.set_dim_name(isl.dim_type.param, count, name)
        relation = relation.equate(isl.dim_type.param, count, isl.dim_type.out, 0)
        relation = relation.project_out(isl.dim_type.out, 0, 1)
    return relation.set_tuple_name(isl.dim_type.out, tuple_name)


def drop_leading_outputs(relation: isl.Map, count: int) -> isl.Map:
    """Project out the first ``count`` output dimensions, keeping the tuple's name."""
    tuple_name = relation.get_tuple_name(isl.dim_type.out)
    relation = relation.project_out(isl.dim_type.out, 0, count)
    return relation.set_tuple_name(isl.dim_type.out, tuple_name)


def only_dim(isl_set: isl.Set, name: str) -> isl.Set:
    """Return the one-dimensional set of values the dimension ``name`` takes."""
    position = dim_names(isl_set).index(name)
    count = isl_set.dim(isl.dim_type.set)
    isl_set = isl_set.project_out(isl.dim_type.set, position + 1, count - position - 1)
    return isl_set.project_out(isl.dim_type.set, 0, position)


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
        _named_coefficients(aff, isl.dim_type.in_),
        _named_coefficients(aff, isl.dim_type.param),
        int(aff.get_constant_val().to_python()),
    )


def _named_coefficients(aff: isl.Aff, kind: isl.dim_type) -> tuple[tuple[str, int], ...]:
    """Return the non-zero coefficients of one kind of dimension, in order of the dimensions."""
    pairs = []
    for position in range(aff.dim(kind)):
        value = int(aff.get_coefficient_val(kind, position).to_python())
        if value:
            pairs.append((aff.get_dim_name(kind, position) or f"d{position}", value))
    return tuple(pairs)


def involved_dims(function: isl.PwAff) -> tuple[str, ...]:
    """Return the names of the input dimensions a function depends on, in order."""
    return tuple(
        function.get_dim_name(isl.dim_type.in_, position) or f"d{position}"
        for position in range(function.dim(isl.dim_type.in_))
        if function.involves_dims(isl.dim_type.in_, position, 1)
    )


def name_inputs(relation: isl.Map, names: Sequence[str]) -> isl.Map:
    """Name the input dimensions, in order."""
    for position, name in enumerate(names):
        relation = relation.set_dim_name(isl.dim_type.in_, position, name)
    return relation


def set_names(union: isl.UnionSet) -> tuple[str, ...]:
    """Return the tuple names of a union, sorted."""
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return tuple(sorted(item.get_tuple_name() or "" for item in found))


def has_bounds(isl_set: isl.Set, name: str) -> bool:
    """Tell whether a dimension has a lower and an upper bound, possibly in parameters."""
    position = dim_names(isl_set).index(name)
    return bool(
        isl_set.dim_has_lower_bound(isl.dim_type.set, position)
        and isl_set.dim_has_upper_bound(isl.dim_type.set, position)
    )


def stride_of(isl_set: isl.Set, name: str) -> int:
    """Return the largest step all values of a dimension are known to keep."""
    return int(isl_set.get_stride(dim_names(isl_set).index(name)).to_python())


def moving_dims(steps: isl.Map, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``names`` in which output and input of a map of one space ever differ."""
    moving = []
    for position in range(steps.dim(isl.dim_type.in_)):
        name = steps.get_dim_name(isl.dim_type.in_, position) or f"d{position}"
        equal = steps.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
        if name in names and not steps.is_subset(equal):
            moving.append(name)
    return tuple(moving)


def same_except(schedule: isl.Map, names: Sequence[str]) -> isl.Map:
    """Return the pairs of inputs that ``schedule`` sends to points differing in ``names`` only."""
    target = schedule.range().get_space()
    pairs = isl.Map.universe(target.map_from_set())
    for position in range(target.dim(isl.dim_type.set)):
        if schedule.get_dim_name(isl.dim_type.out, position) not in names:
            pairs = pairs.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    return schedule.apply_range(pairs).apply_range(schedule.reverse())


def function_on(union: isl.UnionPwAff, domain: isl.Set) -> isl.PwAff:
    """Return the part of ``union`` that is a function of ``domain``'s space."""
    space = domain.get_space().from_domain().add_dims(isl.dim_type.out, 1)
    return union.extract_pw_aff(space)


def involved_parameters(function: isl.PwAff) -> tuple[str, ...]:
    """Return the names of the parameters a function depends on, in order."""
    return tuple(
        function.get_dim_name(isl.dim_type.param, position) or f"p{position}"
        for position in range(function.dim(isl.dim_type.param))
        if function.involves_dims(isl.dim_type.param, position, 1)
    )


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
        value = int(constraint.get_coefficient_val(inner, position).to_python())
        if value:
            inputs.append((part.get_dim_name(inner, position) or f"d{position}", value))
    outputs = []
    for position in range(0 if is_set else part.dim(isl.dim_type.out)):
        value = int(constraint.get_coefficient_val(isl.dim_type.out, position).to_python())
        if value:
            outputs.append((f"d{position}", value))
    constant = int(constraint.get_constant_val().to_python())
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
    names = ", ".join(name for name, _ in values)
    equal = " and ".join(f"{name} = {value}" for name, value in values)
    union = union.intersect_params(
        isl.Set.read_from_str(union.get_ctx(), f"[{names}] -> {{ : {equal} }}")
    )
    for name, _ in values:
        position = union.find_dim_by_name(isl.dim_type.param, name)
        union = union.project_out(isl.dim_type.param, position, 1)
    return union


def renaming(pairs: Sequence[tuple[isl.Set, str]]) -> isl.UnionPwMultiAff:
    """Return the function that sends each point of each set to the same point of a new name."""
    union: isl.UnionPwMultiAff | None = None
    for domain, name in pairs:
        identity = isl.MultiAff.identity_on_domain_space(domain.get_space())
        part = isl.UnionPwMultiAff.from_multi_aff(identity.set_tuple_name(isl.dim_type.out, name))
        union = part if union is None else union.union_add(part)
    assert union is not None
    return union


def least_difference(relation: isl.Map, source: int, sink: int) -> int | None:
    """Return the least ``output[sink] - input[source]`` over all pairs and parameters.

    ``None`` if it has no lower bound; 0 for an empty relation.
    """
    if relation.is_empty():
        return 0
    single = relation.project_out_all_params()
    n_in, n_out = single.dim(isl.dim_type.in_), single.dim(isl.dim_type.out)
    single = single.project_out(isl.dim_type.in_, source + 1, n_in - source - 1)
    single = single.project_out(isl.dim_type.in_, 0, source)
    single = single.project_out(isl.dim_type.out, sink + 1, n_out - sink - 1)
    single = single.project_out(isl.dim_type.out, 0, sink)
    least = single.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
    value = least.deltas().dim_min_val(0)
    return int(value.to_python()) if value.is_int() else None


def node_kind(node: isl.ScheduleNode) -> isl.schedule_node_type:
    """Return the type of a schedule node."""
    return cast("isl.schedule_node_type", node.get_type())


_Coalescable = TypeVar("_Coalescable", isl.Set, isl.Map, isl.UnionMap, isl.PwAff)


def coalesced(piece: _Coalescable) -> _Coalescable:
    """Return a set, relation or function in fewer pieces, or as it is where isl fails.

    Coalescing changes no meaning, and isl's is known to stumble over its own tableaus
    ("original tableau does not correspond to original basic map").
    """
    try:
        return piece.coalesce()
    except isl.Error:
        return piece
