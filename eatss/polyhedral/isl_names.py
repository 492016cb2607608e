"""Sets, relations, functions and schedule nodes of isl, by the names of their dimensions.

The one place where isl dimensions are counted: everything else names them. namedisl does not do:
it wants names that are unique over parameters, inputs and outputs (a dependence ``S[i] -> S[i]``
has each twice), keeps no tuple names apart, and has no unions, schedules or syntax trees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import islpy as isl

from eatss.base.frozen import Names, Numbers
from eatss.program import c_text
from eatss.program.linear import Coefficients, Linear

PARAM, DIV = isl.dim_type.param, isl.dim_type.div
SET, IN, OUT = isl.dim_type.set, isl.dim_type.in_, isl.dim_type.out
"""Kinds of dimensions."""

_ANY: TypeAlias = Any
"""A set, relation or function of isl, or a space: what has dimensions."""

_Shaped = TypeVar("_Shaped")
_Piece = TypeVar("_Piece", isl.Set, isl.Map)
_Fixable = TypeVar("_Fixable", isl.Set, isl.Map, isl.UnionMap)
_Coalescable = TypeVar("_Coalescable", isl.Set, isl.Map, isl.UnionMap, isl.PwAff)

# -- what is said ------------------------------------------------------------------------------


def integer(value: isl.Val) -> int:
    """Return an integer of any size.

    Raises:
        isl.Error: the bound on isl's operations is reached; isl then prints numbers no more.
    """
    text = value.to_str()
    if text is None:
        raise isl.Error("isl printed no number: maximal number of operations exceeded")
    return int(text)


def _names(piece: _ANY, kind: isl.dim_type, *, involved: bool = False) -> Names:
    """Return the names of dimensions of one kind, in order; those that a function depends on.

    Unnamed ones are ``d0``, ``d1``, …, parameters ``p0``, ….
    """
    places = range(piece.dim(kind))
    return tuple(
        _name(piece, kind, at) for at in places if not involved or piece.involves_dims(kind, at, 1)
    )


def _name(piece: _ANY, kind: isl.dim_type, position: int) -> str:
    return piece.get_dim_name(kind, position) or f"{'p' if kind == PARAM else 'd'}{position}"


def dim_names(isl_set: isl.Set) -> Names:
    """Return the names of the set dimensions, in order; unnamed ones are ``d0``, ``d1``, …."""
    return _names(isl_set, SET)


def parameter_names(isl_set: isl.Set) -> Names:
    """Return the names of the parameters, in order."""
    return _names(isl_set, PARAM)


def involved_dims(function: isl.PwAff) -> Names:
    """Return the names of the input dimensions a function depends on, in order."""
    return _names(function, IN, involved=True)


def involved_parameters(function: isl.PwAff) -> Names:
    """Return the names of the parameters a function depends on, in order."""
    return _names(function, PARAM, involved=True)


def alone(piece: _Piece, kind: isl.dim_type, position: int) -> _Piece:
    """Project out the dimensions of one kind but for one."""
    behind = position + 1
    piece = piece.project_out(kind, behind, piece.dim(kind) - behind)
    return piece.project_out(kind, 0, position)


def coefficients(function: isl.Aff, kind: isl.dim_type) -> Coefficients:
    """Return the non-zero coefficients of one kind of dimension, in order of the dimensions."""
    own = (at for at in range(function.dim(kind)) if function.involves_dims(kind, at, 1))
    return _terms(function, [(kind, at, _name(function, kind, at)) for at in own])


def output_affs(isl_map: isl.Map) -> tuple[isl.PwAff, ...]:
    """Return the output dimensions of a single-valued map, in order, as functions of its input.

    Constraints of the domain are dropped from the functions.
    """
    function = isl.PwMultiAff.from_map(isl_map).gist(isl_map.domain())
    return tuple(function.get_pw_aff(k) for k in range(function.dim(OUT)))


def constant_value(function: isl.PwAff) -> int | None:
    """Return the value of a function that is one integer constant, else ``None``."""
    form = affine_form(function) if function.is_cst() else None
    return form.constant if form and not form.parameters else None


def with_names(piece: _Shaped, kind: isl.dim_type, names: Iterable[str]) -> _Shaped:
    """Name the dimensions of one kind, in order."""
    named: Any = piece
    for position, name in enumerate(names):
        named = named.set_dim_name(kind, position, name)
    return cast("_Shaped", named)


def parameter_space(context: isl.Context, names: Sequence[str]) -> isl.Space:
    """Return the space of parameters of these names, in this order."""
    return with_names(isl.Space.params_alloc(context, len(names)), PARAM, names)


def maps_of(union: isl.UnionMap) -> tuple[isl.Map, ...]:
    """Return the maps of a union, sorted by the names of their tuples."""
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return tuple(sorted(found, key=lambda m: str(m.get_space())))


def parameter_is_bounded(params: isl.Set, name: str, *, above: bool) -> bool:
    """Return whether a parameter is bounded above (or below) for fixed other parameters."""
    line = parameters_as_dims(params, (name,), "line")
    return line.dim_has_upper_bound(SET, 0) if above else line.dim_has_lower_bound(SET, 0)


def only_dim(isl_set: isl.Set, name: str) -> isl.Set:
    """Return the one-dimensional set of values the dimension ``name`` takes."""
    return alone(isl_set, SET, dim_names(isl_set).index(name))


class AffineForm(NamedTuple):
    """An affine function: ``Σ coefficients · dim + Σ parameters · parameter + constant``."""

    coefficients: Coefficients
    parameters: Coefficients
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
        coefficients(aff, IN),
        coefficients(aff, PARAM),
        integer(aff.get_constant_val()),
    )


def only_form(function: isl.PwAff) -> isl.Aff | None:
    """Return the affine function that a function is everywhere, if it is one."""
    pieces = function.coalesce().get_pieces()
    return pieces[0][1] if len(pieces) == 1 else None


def affine_text(form: AffineForm) -> str:
    """Return an affine function as C spells it: ``i + 1``, ``2 * i - j``, ``n - 1``."""
    return c_text(Linear(dict((*form.coefficients, *form.parameters)), form.constant).expression())


def counter_of(function: isl.PwAff, *, shifted: bool = False) -> str | None:
    """Return the dimension that a function is, up to a constant and parameters if ``shifted``."""
    form = affine_form(function)
    if form is None or len(form.coefficients) != 1:
        return None
    ((name, coefficient),) = form.coefficients
    is_alone = not form.parameters and not form.constant
    return name if coefficient == 1 and (shifted or is_alone) else None


def outermost(function: isl.PwAff, domain: isl.Set) -> isl.PwAff:
    """Return the outermost counter that a function is everywhere on a domain, or the function."""
    counters = isl.MultiAff.identity_on_domain_space(domain.get_space())
    for at in range(domain.n_dim()):
        counter = counters.get_at(at).to_pw_aff()
        if domain.is_subset(function.eq_set(counter)):
            return counter
    return function


def sets_of(union: isl.UnionSet) -> list[isl.Set]:
    """Return the sets of a union, in isl's order."""
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return found


def set_names(union: isl.UnionSet) -> Names:
    """Return the tuple names of a union, sorted."""
    return tuple(sorted(item.get_tuple_name() or "" for item in sets_of(union)))


def coupled_dims(points: isl.Set) -> Numbers:
    """Return the positions of the dimensions whose values depend on those of others.

    A set is a product along a dimension where that dimension may take each of its values whatever
    the others are.
    """
    count, found = points.n_dim(), []
    for at in range(count):
        line = points.eliminate(SET, 0, at).eliminate(SET, at + 1, count - at - 1)
        if not points.is_equal(points.eliminate(SET, at, 1).intersect(line)):
            found.append(at)
    return tuple(found)


def moving_dims(steps: isl.Map, names: Sequence[str]) -> Names:
    """Return those of ``names`` in which output and input of a map of one space ever differ."""
    return tuple(
        name
        for at, name in enumerate(_names(steps, IN))
        if name in names and not steps.is_subset(steps.equate(IN, at, OUT, at))
    )


def same_except(schedule: isl.Map, names: Sequence[str]) -> isl.Map:
    """Return the pairs of inputs that ``schedule`` sends to points differing in ``names`` only."""
    target = schedule.range().get_space()
    dims = range(target.dim(SET))
    others = (at for at in dims if schedule.get_dim_name(OUT, at) not in names)
    pairs = _equated(isl.Map.universe(target.map_from_set()), others)
    return schedule.apply_range(pairs).apply_range(schedule.reverse())


def function_on(union: isl.UnionPwAff, domain: isl.Set) -> isl.PwAff:
    """Return the part of ``union`` that is a function of ``domain``'s space."""
    space = domain.get_space().from_domain().add_dims(OUT, 1)
    return union.extract_pw_aff(space)


def extremes(domain: isl.Set, functions: Sequence[isl.UnionPwAff] = ()) -> tuple[int, int] | None:
    """Return the least and greatest value of a set's dimensions and of functions on it.

    ``None`` where one is not bounded. The set is not empty; functions that are not defined on it
    are left out.
    """
    found = []
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


def parameter_extremes(domain: isl.Set, name: str) -> tuple[int, int]:
    """Return the least and greatest value of a parameter for which a set is not empty.

    The set has dimensions and is not empty, and the parameter is bounded.
    """
    at = domain.find_dim_by_name(PARAM, name)
    line = domain.move_dims(SET, 0, PARAM, at, 1)
    return integer(line.dim_min_val(0)), integer(line.dim_max_val(0))


def node_kind(node: isl.ScheduleNode | isl.AstNode | isl.AstExpr) -> str:
    """Return the type of a node: ``band``, ``filter``, …; of an AST ``for_``, …; ``op``, …."""
    return str(cast("Any", node.get_type()).name)


def divisors(isl_set: isl.Set) -> Numbers:
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
        if line.is_singleton():  # a plane in turns, t % 2
            only = line.dim_min(0).gist(line.params()).floor()  # isl may leave a fraction, t / 2
            apart += [only] if only.isa_aff() else []
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
    return function.bind_domain(_tuple(function.get_domain_space(), dim_names(function.domain())))


def affine_bounds(params: isl.Set, name: str) -> tuple[list[tuple[isl.PwAff, int]], ...]:
    """Return lower and upper bounds of a parameter in the constraints around a set.

    Each is ``(function, divisor)``: the parameter is at least the function divided by the
    divisor, rounded up, or at most it, rounded down. All constraints that hold of the whole
    set and need no integer division are taken; there may be none.
    """
    hull = params.simple_hull().remove_divs().remove_redundancies()
    at = hull.get_space().find_dim_by_name(PARAM, name)
    lower: list[tuple[isl.PwAff, int]] = []
    upper: list[tuple[isl.PwAff, int]] = []
    for constraint in hull.get_constraints():
        aff = constraint.get_aff()
        coefficient = integer(constraint.get_coefficient_val(PARAM, at))
        if aff.involves_locals() or constraint.is_div_constraint() or not coefficient:
            continue
        rest = isl.PwAff.from_aff(aff.set_coefficient_val(PARAM, at, 0))
        bound = (rest.neg() if coefficient > 0 else rest, abs(coefficient))
        if coefficient > 0 or constraint.is_equality():
            lower.append(bound)
        if coefficient < 0 or constraint.is_equality():
            upper.append(bound)
    return lower, upper


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


def points_of(isl_set: isl.Set) -> tuple[Numbers, ...]:
    """Return the points of a bounded set without parameters, sorted."""
    found: list[Numbers] = []

    def note(point: isl.Point) -> None:
        values = (point.get_coordinate_val(SET, k) for k in range(isl_set.dim(SET)))
        found.append(tuple(integer(value) for value in values))

    isl_set.foreach_point(note)
    return tuple(sorted(found))


# -- constraints -------------------------------------------------------------------------------


def with_parameters(relation: _Piece, names: Sequence[str]) -> _Piece:
    """Add parameters called ``names`` that nothing depends on yet."""
    for name in names:
        position = relation.dim(PARAM)
        relation = relation.add_dims(PARAM, 1)
        relation = relation.set_dim_name(PARAM, position, name)
    return relation


def at_values(piece: _Fixable, values: Sequence[tuple[str, int]]) -> _Fixable:
    """Give parameters their values and drop them; those that are not there do not matter."""
    found: Any = piece
    for name, value in values:
        fixed = isl.Set.universe(parameter_space(found.get_ctx(), (name,)))
        value_of = big_value(found.get_ctx(), value)
        found = found.intersect_params(fixed.fix_val(PARAM, 0, value_of))
        found = found.project_out(PARAM, found.find_dim_by_name(PARAM, name), 1)
    return cast("_Fixable", found)


class Constraint(NamedTuple):
    """``Σ coefficient * name + constant >= 0``, or ``= 0``; no coefficient is 0."""

    terms: Coefficients
    constant: int
    equality: bool


_Column = tuple[isl.dim_type, int, str]


def constraint_system(
    part: isl.BasicSet,
) -> tuple[Names, tuple[Constraint, ...]] | None:
    """Return a basic set as variables, called ``#0``, ``#1``, …, and constraints in them.

    Variables are the dimensions of the set, then its integer divisions, which the others
    determine: each point of the set is one solution, for given parameters. ``None`` where isl knows
    no explicit form of an integer division.
    """
    n_dims, n_divs = part.dim(SET), part.dim(DIV)
    variables = tuple(f"#{position}" for position in range(n_dims + n_divs))
    columns = [(SET, k, name) for k, name in enumerate(variables[:n_dims])]
    columns += [(DIV, k, name) for k, name in enumerate(variables[n_dims:])]
    columns += [(PARAM, k, name) for k, name in enumerate(_names(part, PARAM))]
    found = [_constraint(constraint, columns) for constraint in part.get_constraints()]
    inputs = [(IN if kind is SET else kind, k, name) for kind, k, name in columns]
    for position, name in enumerate(variables[n_dims:]):
        try:
            division = part.get_div(position)
        except isl.Error:
            return None
        divisor = integer(division.get_denominator_val())
        scaled = division.scale_val(isl.Val(divisor, division.get_ctx()))
        constant = integer(scaled.get_constant_val())
        found += rounded_down(_terms(scaled, inputs), constant, divisor, name)
    return variables, tuple(found)


def rounded_down(terms: Coefficients, constant: int, divisor: int, name: str) -> list[Constraint]:
    """Return what says that ``name`` is ``(Σ terms + constant) / divisor``, rounded down."""
    below = tuple((other, -factor) for other, factor in terms)
    return [
        Constraint((*terms, (name, -divisor)), constant, equality=False),
        Constraint((*below, (name, divisor)), divisor - 1 - constant, equality=False),
    ]


def _terms(linear: isl.Aff | isl.Constraint, columns: Sequence[_Column]) -> Coefficients:
    pairs = (
        (name, integer(linear.get_coefficient_val(kind, position)))
        for kind, position, name in columns
    )
    return tuple(pair for pair in pairs if pair[1])


def _constraint(constraint: isl.Constraint, columns: Sequence[_Column]) -> Constraint:
    constant = integer(constraint.get_constant_val())
    return Constraint(_terms(constraint, columns), constant, constraint.is_equality())


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
    return tuple(_constraint(one, _columns(names)) for one in part.get_constraints())


def _columns(names: Iterable[str]) -> list[_Column]:
    return [(SET, position, name) for position, name in enumerate(names)]


def with_sizes(
    points: isl.Set,
    names: Sequence[str],
    dims: Sequence[str],
    size_in: Callable[[Constraint], tuple[str, int] | None],
) -> isl.Set:
    """Replace constants by parameters, constraint by constraint.

    Args:
        points: the set.
        names: the new parameters; all are added.
        dims: what its dimensions are called in constraints.
        size_in: for a constraint the parameter its constant stands for and that
            parameter's value, or ``None`` to leave it alone.

    Returns:
        A set that equals ``points`` once each parameter has its value. Parts that
        need integer division stay as they are.
    """
    points = with_parameters(points, names)
    rebuilt = isl.Set.empty(points.get_space())
    for part in points.get_basic_sets():
        fresh = part if part.dim(DIV) else isl.BasicSet.universe(part.get_space())
        for constraint in () if part.dim(DIV) else part.get_constraints():
            bound = _constraint(constraint, _columns(dims))
            if (size := size_in(bound)) is not None:
                name, value = size
                sign = 1 if bound.constant > 0 else -1
                position = part.get_space().find_dim_by_name(PARAM, name)
                constraint = constraint.set_constant_val(  # noqa: PLW2901
                    bound.constant - sign * value
                ).set_coefficient_val(PARAM, position, sign)
            fresh = fresh.add_constraint(constraint)
        rebuilt = rebuilt.union(fresh.to_set())
    return rebuilt


# -- made and reshaped -------------------------------------------------------------------------


def big_value(context: isl.Context, value: int) -> isl.Val:
    """Return an integer of any size; ``isl.Val`` of a Python integer takes 64 bits only."""
    return isl.Val(str(value), context)


def linear_function(context: isl.Context, constant: int, terms: Coefficients) -> isl.PwAff:
    """Return ``constant + Σ coefficient * name`` as a function of parameters of these names."""
    space = parameter_space(context, [name for name, _ in terms])
    aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    aff = aff.set_constant_val(big_value(context, constant))
    for position, (_, coefficient) in enumerate(terms):
        aff = aff.set_coefficient_val(PARAM, position, big_value(context, coefficient))
    return isl.PwAff.from_aff(aff)


def _tuple(space: isl.Space, names: Sequence[str]) -> isl.MultiId:
    """Return what binds the dimensions of a space to parameters of these names.

    Ids are those of parameters: one made by ``isl.Id`` would not be equal to them.
    """
    parameters = parameter_space(space.get_ctx(), names)
    ids = isl.IdList.alloc(space.get_ctx(), len(names))
    for position in range(len(names)):
        ids = ids.add(parameters.get_dim_id(PARAM, position))
    return space.multi_id(ids)


def _named_tuple(context: isl.Context, names: Sequence[str], tuple_name: str) -> isl.MultiId:
    space = isl.Space.set_alloc(context, 0, len(names)).set_tuple_name(SET, tuple_name)
    return _tuple(space, names)


def parameters_as_dims(params: isl.Set, names: Names, tuple_name: str) -> isl.Set:
    """Turn a set of parameter values into ``tuple_name[names]``, other parameters kept."""
    return params.unbind_params(_named_tuple(params.get_ctx(), names, tuple_name))


def parameters_as_inputs(elements: isl.Set, names: Names, tuple_name: str) -> isl.Map:
    """Turn a parametric set into a map from ``tuple_name[names]`` to the set."""
    named = _named_tuple(elements.get_ctx(), names, tuple_name)
    return elements.unbind_params_insert_domain(named)


def parameters_as_function_inputs(function: isl.PwAff, names: Names, tuple_name: str) -> isl.PwAff:
    """Turn a function of parameters into a function of ``tuple_name[names]``."""
    named = _named_tuple(function.get_ctx(), names, tuple_name)
    return isl.MultiPwAff.from_pw_aff(function).unbind_params_insert_domain(named).get_at(0)


def tuple_of_functions(
    context: isl.Context, tuple_name: str | None, functions: tuple[isl.PwAff, ...]
) -> isl.Set:
    """Return the one element ``tuple_name[functions]`` as a set with parameters."""
    nothing = isl.Set.universe(isl.Space.set_alloc(context, 0, 0))
    found = reduce(isl.Set.flat_product, map(isl.Set.from_pw_aff, functions), nothing)
    return found if tuple_name is None else found.set_tuple_name(tuple_name)


def renamed_parameter(piece: _Piece, old: str, new: str) -> _Piece:
    """Rename a parameter, if it is there."""
    at = piece.find_dim_by_name(PARAM, old)
    return piece if at < 0 else piece.set_dim_name(PARAM, at, new)


def box(
    context: isl.Context, tuple_name: str, bounds: tuple[tuple[bool, isl.PwAff | None], ...]
) -> isl.Set:
    """Return the set of ``tuple_name[d0, …]`` with the given bounds on every dimension.

    A bound is ``(from_zero, size)``: whether the dimension starts at 0, and its size or
    ``None`` where it has no upper end.
    """
    space = isl.Space.set_alloc(context, 0, len(bounds)).set_tuple_name(SET, tuple_name)
    result = isl.Set.universe(space)
    for position, (from_zero, size) in enumerate(bounds):
        here = isl.PwAff.var_on_domain(isl.LocalSpace.from_space(space), SET, position)
        if from_zero:
            result = result.intersect(here.nonneg_set())
        if size is not None:
            result = result.intersect(here.lt_set(size.insert_domain(space)))
    return with_names(result, SET, (f"d{k}" for k in range(len(bounds))))


def named_map(
    domain: isl.Set, functions: Sequence[isl.PwAff], name: str, dims: Sequence[str]
) -> isl.Map:
    """Return ``domain -> name[dims…]`` whose output dimensions are ``functions`` of the domain."""
    target = isl.Set.read_from_str(domain.get_ctx(), f"{{ {name}[] }}")
    relation = isl.Map.from_domain_and_range(domain, target)
    for function in functions:
        relation = relation.flat_range_product(isl.Map.from_pw_aff(function))
    return with_names(relation.set_tuple_name(OUT, name), OUT, dims)


def bind_leading_outputs(relation: isl.Map, names: Sequence[str]) -> isl.Map:
    """Turn the first output dimensions into parameters called ``names`` and drop them."""
    tuple_name = relation.get_tuple_name(OUT)
    for name in names:
        at = relation.dim(PARAM)
        relation = with_parameters(relation, (name,))
        relation = relation.equate(PARAM, at, OUT, 0).project_out(OUT, 0, 1)
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


def with_inputs_in_front(relation: isl.Map, positions: Collection[int]) -> isl.Map:
    """Map the inputs of a relation to some of their dimensions and its outputs, under its name."""
    inputs = isl.Set.universe(relation.domain().get_space()).identity()
    for position in reversed(range(inputs.dim(OUT))):
        if position not in positions:
            inputs = inputs.project_out(OUT, position, 1)
    name = relation.get_tuple_name(OUT)
    return inputs.flat_range_product(relation).set_tuple_name(OUT, name)


def equal_leading_dims(relations: isl.UnionMap, count: int) -> isl.UnionMap:
    """Return the part of relations whose inputs and outputs share their first dimensions."""
    found = isl.UnionMap.empty(relations.get_space())
    for relation in maps_of(relations):
        found = found.union(_equated(relation, range(count)))
    return found


def _equated(relation: isl.Map, positions: Iterable[int]) -> isl.Map:
    for position in positions:
        relation = relation.equate(IN, position, OUT, position)
    return relation


def unbounded_first_dim(domain: isl.Set) -> isl.Set:
    """Return a set whose first dimension takes every value from 0 on."""
    free = domain.eliminate(SET, 0, 1)
    return free.lower_bound_val(SET, 0, 0)


def renaming(pairs: Sequence[tuple[isl.Set, str]]) -> isl.UnionPwMultiAff:
    """Return the function that sends each point of each set to the same point of a new name."""
    parts = (
        isl.MultiAff.identity_on_domain_space(domain.get_space()).set_tuple_name(OUT, name)
        for domain, name in pairs
    )
    return reduce(isl.UnionPwMultiAff.union_add, map(isl.UnionPwMultiAff.from_multi_aff, parts))


def universes(found: isl.UnionSet, pieces: Iterable[isl.Set]) -> isl.UnionSet:
    """Return a union with all points of the spaces of some sets."""
    for piece in pieces:
        found = found.union(isl.Set.universe(piece.get_space()))
    return found


def among(relation: isl.UnionMap, instances: isl.UnionSet) -> isl.UnionMap:
    """Return what a relation has between some instances."""
    return relation.intersect_domain(instances).intersect_range(instances)


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


Tuple: TypeAlias = tuple[str, Sequence[str]]
"""A tuple in isl's notation: its name, and its entries."""


def tuple_text(name: str, entries: Iterable[str]) -> str:
    """Return a tuple as isl spells it: ``S[i, j + 1]``."""
    return f"{name}[{', '.join(entries)}]"


def map_between(like: isl.Set, one: Tuple, other: Tuple, condition: str = "true") -> isl.Map:
    """Return what maps a tuple to another, where a condition holds; parameters are those of a set.

    Args:
        like: the set.
        one: the names of the dimensions mapped.
        other: what they are mapped to, in isl's notation.
        condition: likewise.
    """
    head = tuple_text("", parameter_names(like))
    text = f"{head} -> {{ {tuple_text(*one)} -> {tuple_text(*other)} : {condition} }}"
    return isl.Map.read_from_str(like.get_ctx(), text)


def parameters_set(context: isl.Context, names: Sequence[str], condition: str) -> isl.Set:
    """Return the set of parameter values that keep ``condition``, in isl's notation."""
    return isl.Set.read_from_str(context, f"[{', '.join(names)}] -> {{ : {condition} }}")


def without_parameters(params: _Piece, names: Iterable[str]) -> _Piece:
    """Project parameters out."""
    for name in names:
        at = params.find_dim_by_name(PARAM, name)
        params = params if at < 0 else params.project_out(PARAM, at, 1)
    return params


def parameter_bound(params: isl.Set, name: str, *, upper: bool) -> isl.PwAff:
    """Return the least (or greatest) value of a parameter as a function of the others."""
    line = parameters_as_dims(params, (name,), "line")
    return line.dim_max(0) if upper else line.dim_min(0)


def parameter_as_output(domain: isl.Set, name: str) -> isl.Map:
    """Turn a parameter of a set into the one output dimension of a map from the set."""
    return parameters_as_inputs(domain, (name,), "value").reverse().reset_tuple_id(OUT)


def dims_as_parameters(elements: isl.Set, names: Sequence[str]) -> isl.Set:
    """Turn all dimensions of a set, in order, into parameters called ``names``."""
    return elements.bind(_tuple(elements.get_space(), names))


def box_between(
    elements: isl.Set, corners: Sequence[tuple[str, str]], least: Sequence[int]
) -> isl.Set:
    """Return all between two corners, in the space of a set.

    Args:
        elements: the set.
        corners: parameters that are the first and the last element along each dimension.
        least: how many elements there are along each dimension, at least.
    """
    names, dims = [*parameter_names(elements), *chain(*corners)], dim_names(elements)
    there = (
        f"{first} <= {dim} <= {last} and {last} - {first} >= {size - 1}"
        for dim, (first, last), size in zip(dims, corners, least, strict=True)
    )
    own = tuple_text(elements.get_tuple_name() or "", dims)
    text = f"{tuple_text('', names)} -> {{ {own} : {' and '.join(there)} }}"
    return isl.Set.read_from_str(elements.get_ctx(), text)


def parameter_at_least(name: str, function: isl.PwAff, factor: int = 1) -> isl.Set:
    """Return the parameters where ``factor`` times one of them is at least a function of them."""
    return _times(name, function, factor).ge_set(function)


def parameter_at_most(name: str, function: isl.PwAff, factor: int = 1) -> isl.Set:
    """Return the parameters where ``factor`` times one of them is at most a function of them."""
    return _times(name, function, factor).le_set(function)


def parameter_between(name: str, least: isl.PwAff, most: isl.PwAff) -> isl.Set:
    """Return the parameters of which one is between two functions of the others, or one of them."""
    return parameter_at_least(name, least).intersect(parameter_at_most(name, most))


def _times(name: str, function: isl.PwAff, factor: int) -> isl.PwAff:
    return linear_function(function.get_ctx(), 0, ((name, factor),))


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
    found = pairs.project_out(SET, first, 2)
    others = pairs.drop_constraints_involving_dims(SET, first, 2).project_out(SET, first, 2)
    if others.intersect_params(points.params()).is_equal(found):
        found = others  # that there are pairs at all is said by the new dimension
    found = found.insert_dims(SET, first, 1)
    found = found.intersect(_from_zero(found, first, size)).set_tuple_name(points.get_tuple_name())
    return with_names(found, SET, names)


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
    return map_between(points, (name, inputs), (name, outputs)).intersect_domain(points)
