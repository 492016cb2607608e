"""What is known of the parameters at each level of a kernel: sizes, host loops, tiles, threads."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.base.frozen import frozen
from eatss.lower.isl_text import value_of
from eatss.lower.schedule.mapping import MappedLoop, SerialTile
from eatss.polyhedral.isl_names import (
    affine_bounds,
    coalesced,
    parameter_at_least,
    parameter_at_most,
    parameter_bound,
    parameters_set,
    without_parameters,
)
from eatss.program import Apply, Constant, IntExpr, Operator, floored

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
    firsts: list[IntExpr] = []
    lasts: list[IntExpr] = []
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
    count = _divided(last + loop.tile - start, loop.tile, up=False)
    return TileRange(first=start, last=last, count=count, known=coalesced(within))


def _exact_range(values: isl.Set, loop: MappedLoop | SerialTile, known: isl.Set) -> TileRange:
    """Return the tiles of a loop from its exact bounds, which may fall into many cases.

    Raises:
        TooManyCasesError: They do; isl would take minutes to simplify them.
    """
    tile = isl.Val.int_from_si(values.get_ctx(), loop.tile)
    low = parameter_bound(values, loop.name, upper=False).coalesce()
    high = parameter_bound(values, loop.name, upper=True).coalesce()
    if low.n_piece() * high.n_piece() > _MOST_CASES:
        raise TooManyCasesError(f"the bounds of the loop {loop.name} fall into too many cases")
    start = low.scale_down_val(tile).floor().scale_val(tile)
    count = high.sub(start).add_constant_val(tile).scale_down_val(tile).floor()
    within = parameter_at_least(loop.origin, start).intersect(parameter_at_most(loop.origin, high))
    return TileRange(
        first=value_of(start, known),
        last=value_of(high, known),
        count=value_of(count, known),
        known=coalesced(known.intersect(within)),
    )


def _constant(function: isl.PwAff, value: int) -> isl.PwAff:
    zero = function.scale_val(isl.Val.zero(function.get_ctx()))
    return zero.add_constant_val(isl.Val.int_from_si(function.get_ctx(), value))


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
    return tile * _divided(value, tile, up=False)


def _joined(operator: Operator, values: Sequence[IntExpr]) -> IntExpr:
    distinct = tuple(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else Apply(operator, distinct)


def full_tiles(
    instances: Sequence[isl.Set], loops: Sequence[MappedLoop | SerialTile], known: isl.Set
) -> isl.Set | None:
    """Return where every tile at the origins is full: the origins as parameters.

    A tile is full if each statement that moves along all of ``loops`` has an instance at each
    of its points. ``None`` where no tile is.
    """
    names = [loop.name for loop in loops]
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
        here = full.subtract(missing)
        if not here.is_empty():
            full = coalesced(here)
        elif len(instances) == 1:
            return None
    if full.is_equal(known):
        return known
    return full


def union_of(parts: Sequence[isl.Set]) -> isl.Set:
    """Return the union of one or more sets."""
    result = parts[0]
    for part in parts[1:]:
        result = result.union(part)
    return result
