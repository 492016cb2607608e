"""isl's sets and functions of parameters as integer expressions: arrays, conditions, tiles.

Arrays have C names, shapes and addresses; tiles of a loop have bounds, and sets say what is known
of sizes and origins inside them. :func:`isl_notation` is the way back, to prove what text says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias, TypeVar

import islpy as isl

from eatss.base.frozen import distinct, frozen, their_names
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import Buffer, Element, Extents
from eatss.lower.mapping import MappedLoop, SerialTile
from eatss.lower.pieces import NameTable
from eatss.plan.stage import copied_together
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import (
    affine_bounds,
    affine_form,
    ast_operator,
    big_value,
    coalesced,
    dim_names,
    dims_as_parameters,
    function_of_parameters,
    integer,
    node_kind,
    output_affs,
    parameter_at_least,
    parameter_at_most,
    parameter_between,
    parameter_bound,
    parameter_is_bounded,
    parameters_set,
    without_parameters,
)
from eatss.polyhedral.scop import Access, Scop
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    difference,
    floored,
    negated,
    substitute,
)
from eatss.program.expression import Environment, IntExprs
from eatss.program.linear import linear, strict

_OTHER_OPERATORS = {
    "fdiv_q": Operator.FLOORDIV,
    "pdiv_q": Operator.QUOTIENT,
    "div": Operator.QUOTIENT,
    "pdiv_r": Operator.REMAINDER,
    "zdiv_r": Operator.REMAINDER,
    "and_": Operator.AND,
    "and_then": Operator.AND,
    "or_": Operator.OR,
    "or_else": Operator.OR,
    "cond": Operator.SELECT,
}
"""Operators by the names that isl has for them, but for those that are called alike."""

TRUE = Constant(1)
FALSE = Constant(0)


def expression_of(expression: isl.AstExpr) -> IntExpr:
    """Return an isl AST expression as an integer expression."""
    kind = node_kind(expression)
    if kind == "int":
        return Constant(integer(expression.get_val()))
    if kind == "id":
        return Name(str(expression.get_id().get_name()))
    operator = ast_operator(expression)
    operands = tuple(
        expression_of(expression.get_op_arg(k)) for k in range(expression.get_op_n_arg())
    )
    if operator == "minus":
        return negated(operands[0])
    if operator == "sub":
        return difference(*operands)
    return _flat(_OTHER_OPERATORS.get(operator) or Operator[operator.upper()], operands)


def _flat(operator: Operator, operands: IntExprs) -> IntExpr:
    """Return ``a and b and c`` with one operator; likewise for ``or``, minimum and maximum."""
    if operator not in (Operator.AND, Operator.OR, Operator.MIN, Operator.MAX):
        return Apply(operator, operands)
    flat: list[IntExpr] = []
    for operand in operands:
        match operand:
            case Apply(nested, inner) if nested is operator:
                flat += inner
            case _:
                flat.append(operand)
    return Apply(operator, tuple(flat))


def condition_of(params: isl.Set, context: isl.Set) -> IntExpr:
    """Return the condition that parameters lie in ``params``, given that they lie in ``context``.

    Both are sets of parameters.
    """
    if params.is_empty():
        return FALSE
    if context.is_subset(params):
        return TRUE
    simple = coalesced(params.gist(context))
    build = isl.AstBuild.from_context(context.params() if context.is_params() else context)
    return expression_of(build.expr_from_set(simple))


def tests_of(params: isl.Set, context: isl.Set) -> IntExprs:
    """Return what is left to test of it, nothing where it holds; see :func:`condition_of`."""
    condition = condition_of(params, context)
    return () if condition == TRUE else (strict(condition),)


def ends_of(params: isl.Set, name: str) -> tuple[isl.PwAff, isl.PwAff]:
    """Return the least and the greatest value of a parameter, as functions of the others."""
    first, last = (parameter_bound(params, name, upper=upper) for upper in (False, True))
    return first.coalesce(), last.coalesce()


def value_of(function: isl.PwAff, context: isl.Set) -> IntExpr:
    """Return a function of parameters as an expression, given that they lie in ``context``."""
    simple = function.intersect_params(context).coalesce().gist_params(context)
    return expression_of(isl.AstBuild.from_context(context).expr_from_pw_aff(simple))


_RELATIONS = frozenset({Operator.EQ, Operator.LE, Operator.LT, Operator.GE, Operator.GT})


def isl_notation(expression: IntExpr) -> str:
    """Return an expression in isl's notation; sums are flat, for isl's parser nests badly."""
    form = linear(expression)
    if form is not None:
        text = str(form.constant)
        for name, coefficient in form.terms.items():
            text += f" {'+' if coefficient > 0 else '-'} {abs(coefficient)} {name}"
        return f"({text})" if form.terms else text
    assert isinstance(expression, Apply)
    if expression.operator in _RELATIONS and (case := _first_case(expression)) is not None:
        return _by_cases(expression, case)
    return _applied(expression.operator, [isl_notation(operand) for operand in expression.operands])


def _first_case(expression: IntExpr) -> Apply | None:
    """Return an expression that falls into cases inside another, none inside it."""
    if not isinstance(expression, Apply):
        return None
    found = next(filter(None, map(_first_case, expression.operands)), None)
    return found or (expression if expression.operator is Operator.SELECT else None)


def _by_cases(relation: Apply, case: Apply) -> str:
    """Return a relation with one value told by cases: isl's constraints have no ``?:``."""
    condition, yes, no = case.operands
    holds = isl_notation(condition)
    true, false = (isl_notation(_with(relation, case, value)) for value in (yes, no))
    return f"(({holds} and {true}) or (not {holds} and {false}))"


def _with(expression: IntExpr, old: Apply, new: IntExpr) -> IntExpr:
    if expression == old or not isinstance(expression, Apply):
        return new if expression == old else expression
    operands = tuple(_with(operand, old, new) for operand in expression.operands)
    return Apply(expression.operator, operands)


def _applied(operator: Operator, operands: Sequence[str]) -> str:
    match operator:
        case Operator.SUB if len(operands) == 1:
            return f"(-1 * {operands[0]})"
        case Operator.FLOORDIV | Operator.QUOTIENT:
            return f"floor({operands[0]} / {operands[1]})"
        case Operator.MOD | Operator.REMAINDER:
            return f"({operands[0]} mod {operands[1]})"
        case Operator.MIN | Operator.MAX:
            return reduce(lambda one, other: f"{operator}({one}, {other})", operands)
        case Operator.SELECT | Operator.XOR:
            raise ValueError(f"{operator} has no place in isl's constraints")
    sign = "=" if operator is Operator.EQ else operator
    return f"({f' {sign} '.join(operands)})"


@frozen
class DeviceArray:
    """An array in device memory: its C name, and its extents, outermost first.

    A scalar that the region only reads is passed by value; any other scalar is a cell of one
    element. ``declared`` are the extents in the source, where ``shape`` may count several
    dimensions as one.
    """

    array: Array
    name: str
    shape: IntExprs
    declared: IntExprs
    by_value: bool

    @property
    def buffer(self) -> Buffer:
        """What kernels see of it."""
        return Buffer(
            name=self.name,
            space="argument" if self.by_value else "global",
            element_type=self.array.element_type,
            layout=Extents(self.shape),
        )

    def element(self, subscripts: Sequence[IntExpr]) -> Element:
        """Return an element."""
        return self.buffer.at(*subscripts)

    def copied_together(self, record: int) -> int:
        """Return the elements of a row that a thread may copy at a time."""
        extents = [one.value if isinstance(one, Constant) else None for one in self.shape]
        return copied_together(extents, self.array.element_type.size_bytes, record)


Arrays: TypeAlias = Mapping[str, DeviceArray]
"""The arrays of a region, by name."""


def device_arrays(scop: Scop, names: NameTable) -> Arrays:
    """Return the arrays of a region by name, as generated text calls them.

    Args:
        scop: the region.
        names: what is taken; the names of the arrays are added.
    """
    return {
        array.name: DeviceArray(
            array=array,
            name=names.fresh(array.source_name if array.source_name.isidentifier() else array.name),
            shape=shape_of(scop, array),
            declared=declared_shape(scop, array),
            by_value=array.n_dims == 0 and array.name not in scop.written_arrays,
        )
        for array in scop.arrays
    }


def shape_of(scop: Scop, array: Array) -> IntExprs:
    """Return the extents of an array; where the source leaves one open, what the region uses."""
    taken = set(scop.parameters)
    names = tuple(free_name(f"d{k}", taken) for k in range(array.n_dims))
    bound = dims_as_parameters(array.extent, names)
    touched: isl.Set | None = None
    extents = []
    for name in names:
        others = [other for other in names if other != name]
        line = without_parameters(bound, others)
        if not parameter_is_bounded(line, name, above=True):
            touched = touched if touched is not None else _touched(scop, array, names)
            line = without_parameters(touched, others)
        highest = parameter_bound(line, name, upper=True)
        extents.append(value_of(highest, highest.params()) + 1)
    return tuple(extents)


def declared_shape(scop: Scop, array: Array) -> IntExprs:
    """Return the extents of an array in the source."""
    if array.declared is None:
        return shape_of(scop, array)
    n_dims = len(dim_names(array.declared))
    return shape_of(scop, replace(array, extent=array.declared, n_dims=n_dims, declared=None))


def _touched(scop: Scop, array: Array, names: Sequence[str]) -> isl.Set:
    return union_of(
        dims_as_parameters(access.relation.range(), names)
        for statement in scop.statements
        for access in statement.accesses
        if access.array == array.name
    )


def subscripts_of(access: Access, values: Environment) -> IntExprs:
    """Return the subscripts of an access where the statement's counters have ``values``."""
    return tuple(affine_text(function, values) for function in output_affs(access.relation))


def affine_text(function: isl.PwAff, values: Environment) -> IntExpr:
    """Return a function of a statement's counters as an expression of their ``values``."""
    form = affine_form(function)
    if form is None:
        return _general(function, values)
    result: IntExpr = Constant(0)
    terms = [(values[name], coefficient) for name, coefficient in form.coefficients]
    terms += [(Name(name), coefficient) for name, coefficient in form.parameters]
    for term, coefficient in sorted(terms, key=lambda pair: pair[1] < 0):
        if coefficient < 0:
            result = result - -coefficient * term if result != Constant(0) else coefficient * term
        else:
            product = coefficient * term
            result = product if result == Constant(0) else result + product
    return result + form.constant


def _general(function: isl.PwAff, values: Environment) -> IntExpr:
    names = dim_names(function.domain())
    free = function_of_parameters(function)
    build = isl.AstBuild.from_context(free.domain())
    return substitute(expression_of(build.expr_from_pw_aff(free)), {n: values[n] for n in names})


_MOST_CASES = 64


class TooManyCasesError(Exception):
    """The bounds of a loop are too many functions of the parameters for tiles to be worth it."""


@frozen
class TileRange:
    """The tiles of a loop: their origins run from ``first`` to ``last`` in steps of the tile.

    ``first`` is a multiple of the tile, ``last`` the loop's greatest value; ``count`` is the
    number of tiles. ``known`` are the parameters with the origin in that range.
    """

    first: IntExpr
    last: IntExpr
    count: IntExpr
    known: isl.Set


def tile_range(values: isl.Set, loop: MappedLoop | SerialTile, known: isl.Set) -> TileRange:
    """Return the tiles of a loop.

    Bounds are those of the convex set around ``values``: a few tiles too many are harmless, for
    what runs in a tile is exact.

    Args:
        values: what values the loop takes: a set of parameters, the loop one of them.
        loop: the loop.
        known: what is known of the other parameters.
    """
    lower, upper = affine_bounds(
        values.gist(known) if values.n_basic_set() == 1 else values, loop.name
    )
    if not lower or not upper:
        return _exact_range(values, loop, known)
    within = known
    firsts = []
    lasts = []
    for function, divisor in lower:
        first = _divided(value_of(function, known), divisor, up=True)
        firsts.append(first)
        if isinstance(first, Constant):
            least = _constant(function, first.value // loop.tile * loop.tile)
            within = within.intersect(parameter_at_least(loop.origin, least))
            continue
        # origin + tile > value, for the origin is the value rounded down
        least = function.sub(_constant(function, divisor * (loop.tile - 1)))
        within = within.intersect(parameter_at_least(loop.origin, least, divisor))
    for function, divisor in upper:
        within = within.intersect(parameter_at_most(loop.origin, function, divisor))
        lasts.append(_divided(value_of(function, known), divisor, up=False))
    start = _aligned(_joined(Operator.MAX, firsts), loop.tile)
    last = _joined(Operator.MIN, lasts)
    length = last + loop.tile - start
    form = linear(length)
    length = length if form is None or form.terms else Constant(form.constant)
    count = _divided(length, loop.tile, up=False)
    form = linear(start)
    if count == Constant(1) and form is not None and form.terms:
        names, text = (loop.origin, *form.terms), f"{loop.origin} = {isl_notation(start)}"
        within = within.intersect(parameters_set(known.get_ctx(), names, text))
    return TileRange(first=start, last=last, count=count, known=coalesced(within))


def _exact_range(values: isl.Set, loop: MappedLoop | SerialTile, known: isl.Set) -> TileRange:
    """Return the tiles of a loop from its exact bounds, which may fall into many cases.

    Raises:
        TooManyCasesError: They do; isl would take minutes to simplify them.
    """
    tile = big_value(values.get_ctx(), loop.tile)
    low = parameter_bound(values, loop.name, upper=False).coalesce()
    high = parameter_bound(values, loop.name, upper=True).coalesce()
    if low.n_piece() * high.n_piece() > _MOST_CASES:
        raise TooManyCasesError(f"the bounds of the loop {loop.name} fall into too many cases")
    start = low.scale_down_val(tile).floor().scale_val(tile)
    count = high.sub(start).add_constant_val(tile).scale_down_val(tile).floor()
    within = parameter_between(loop.origin, start, high)
    return TileRange(
        first=value_of(start, known),
        last=value_of(high, known),
        count=value_of(count, known),
        known=coalesced(known.intersect(within)),
    )


def _constant(function: isl.PwAff, value: int) -> isl.PwAff:
    zero = function.scale_val(isl.Val.zero(function.get_ctx()))
    return zero.add_constant_val(big_value(function.get_ctx(), value))


def _divided(value: IntExpr, divisor: int, *, up: bool) -> IntExpr:
    """Return ``value / divisor`` rounded up or down."""
    if divisor == 1:
        return value
    if up:
        value = value + (divisor - 1)
    if isinstance(value, Constant):
        return Constant(value.value // divisor)
    return floored(value, divisor)


def _aligned(value: IntExpr, tile: int) -> IntExpr:
    """Return the greatest multiple of ``tile`` that is at most ``value``."""
    if isinstance(value, Constant):
        return Constant(value.value // tile * tile)
    form = linear(value)
    if form is not None and all(n % tile == 0 for n in (form.constant, *form.terms.values())):
        return value
    return tile * _divided(value, tile, up=False)


def _joined(operator: Operator, values: Sequence[IntExpr]) -> IntExpr:
    once = distinct(values)
    return once[0] if len(once) == 1 else Apply(operator, once)


def full_tiles(
    instances: Sequence[isl.Set], loops: Sequence[MappedLoop | SerialTile], known: isl.Set
) -> isl.Set | None:
    """Return where every tile at the origins is full: the origins as parameters.

    A tile is full if each statement that moves along all of ``loops`` has an instance at each
    of its points. Some that are may be left out. ``None`` where no tile is.
    """
    names = their_names(loops)
    if not names:
        return None
    inside = [f"{o.origin} <= {o.name} < {o.origin} + {o.tile}" for o in loops]
    box = parameters_set(
        known.get_ctx(), [n for o in loops for n in (o.name, o.origin)], " and ".join(inside)
    )
    full = known
    for instance in instances:
        covered = coalesced(instance.params())
        # loops along which the statement does not move say nothing about the tile
        missing = without_parameters(box.subtract(covered), names)
        here, simpler = (coalesced(full.subtract(one)) for one in (missing, missing.remove_divs()))
        if not simpler.is_empty() and simpler.n_basic_set() < here.n_basic_set():
            full = simpler  # few full tiles fewer, whose points then are behind no condition
        elif not here.is_empty():
            full = here
        elif len(instances) == 1:
            return None
    if full.is_equal(known):
        return known
    return full


_Points = TypeVar("_Points", isl.Set, isl.Map, isl.UnionSet, isl.UnionMap)


def union_of(parts: Iterable[_Points]) -> _Points:
    """Return the union of one or more sets, or relations."""
    return reduce(lambda one, other: one.union(other), parts)
