"""What must hold of the sizes: accesses within arrays, indices within their type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Literal

import islpy as isl

from eatss.analysis.work import leaving_accesses
from eatss.base.diagnostics import input_error
from eatss.lower.arrays import TRUE, Arrays, condition_of, declared_shape
from eatss.lower.index_range import INT_MAX, Sizes
from eatss.polyhedral.isl_names import (
    PARAM,
    coalesced,
    integer,
)
from eatss.polyhedral.scop import Scop
from eatss.program import (
    Apply,
    Assumption,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    evaluate,
)


def assumptions_of(
    scop: Scop,
    arrays: Arrays,
    *,
    sizes: Sizes | None,
) -> tuple[Assumption, ...]:
    """Return what the entry of a region demands of its sizes.

    Args:
        scop: the region.
        arrays: its arrays.
        sizes: those for which indices hold, where they are 32 bits wide.

    Raises:
        InputError: ``EATSS-K006``: for no sizes the region stays within its arrays.
    """
    message = "the original would leave its arrays, or rows of them, otherwise"
    narrow = () if sizes is None else _narrow(scop, arrays, sizes)
    return (*_demands(_within_arrays(scop), message), *narrow)


def fixed_sizes(values: Mapping[str, int]) -> tuple[Assumption, ...]:
    """Return the demand that sizes are those of the source."""
    return tuple(
        Assumption(
            condition=equals(Name(name), value),
            message=f"this code is for {name} = {value} only",
        )
        for name, value in values.items()
    )


def given_sizes(scop: Scop) -> tuple[Assumption, ...]:
    """Return the demand that sizes have the values that the region was read with.

    Bounds that were simplified with them run something else, or nothing, at other sizes.
    """
    fixed = {name: _fixed_value(scop.context, name) for name in scop.parameters}
    return fixed_sizes({name: value for name, value in fixed.items() if value is not None})


def _fixed_value(context: isl.Set, name: str) -> int | None:
    at = context.find_dim_by_name(PARAM, name)
    if at < 0:
        return None  # nothing is known of it
    value = isl.Set.from_basic_set(context.affine_hull()).plain_get_val_if_fixed(PARAM, at)
    return integer(value) if value.is_int() else None


def implied_sizes(assumes: isl.Set | None) -> tuple[Assumption, ...]:
    """Return the demand that sizes are as the source implies, where the schedule relies on it."""
    if assumes is None:
        return ()
    message = "the code is for arrays that have elements and sums that have terms"
    return tuple(_demands(assumes, message))


def stated_conditions(scop: Scop) -> tuple[Assumption, ...]:
    """Return the demands under which the region is what was read."""
    space = scop.context.get_space()
    return tuple(
        demand
        for one in scop.conditions
        for demand in _demands(one.sizes.align_params(space), one.message)
    )


def _demands(sizes: isl.Set, message: str) -> Iterator[Assumption]:
    """Yield what holds together of sizes that lie in a set; nothing where all do."""
    match condition_of(sizes, isl.Set.universe(sizes.get_space())):
        case Apply(Operator.AND, operands):
            parts = operands
        case condition:
            parts = (condition,)
    yield from (Assumption(condition=part, message=message) for part in parts if part != TRUE)


def within(counts: Sequence[IntExpr], most: int) -> IntExpr | None:
    """Return the condition that a product is at most ``most``; ``None`` where it always is.

    No operand is larger than ``most``, so that 64 bits hold all of them. Counts below 1, of
    sizes for which nothing is done, count as 1.
    """
    conditions: list[IntExpr] = []
    known, product = 1, None
    for count in counts:
        if isinstance(count, Constant):
            known *= max(1, count.value)
            continue
        size: IntExpr = Apply(Operator.MAX, (count, Constant(1)))
        room: IntExpr = Constant(most // known)
        if product is not None:
            room = room // product
        conditions.append(size <= room)
        product = size if product is None else product * size
    if not conditions:
        return None if known <= most else Constant(0)
    return conditions[0] if len(conditions) == 1 else Apply(Operator.AND, tuple(conditions))


def _within_arrays(scop: Scop) -> isl.Set:
    """Return the sizes for which every access stays inside its array."""
    valid = isl.Set.universe(scop.context.get_space())
    for access, sizes in leaving_accesses(scop):
        valid = valid.subtract(sizes)
        if valid.is_empty():
            raise input_error(
                "EATSS-K006",
                f"'{access.text}' leaves the array '{access.array}'",
                span=access.span,
                hint="no code is generated for a program that does",
            )
    return coalesced(valid)


def _narrow(scop: Scop, arrays: Arrays, sizes: Sizes) -> list[Assumption]:
    power = sizes.largest.bit_length() - 1
    products = {one.name: " * ".join(map(str, one.factors)) for one in scop.products}
    found = [
        Assumption(
            condition=Name(name) <= sizes.largest,
            message=f"indices are 32 bits wide: {products.get(name, name)} must be at most "
            f"2^{power}",
        )
        for name in scop.parameters
    ]
    found += [
        Assumption(
            condition=Name(name) >= -sizes.largest,
            message=f"indices are 32 bits wide: {name} must be at least -2^{power}",
        )
        for name in sizes.bounded_below
    ]
    seen: list[IntExpr] = []
    for array in arrays.values():
        elements: IntExpr = Constant(1)
        for extent in array.declared:
            elements = elements * extent
        if len(array.declared) < 2 and isinstance(elements, Constant | Name):
            continue  # sizes have a bound of their own
        if elements in seen:
            continue
        seen.append(elements)
        found.append(
            Assumption(
                condition=elements <= INT_MAX,
                message=f"indices are 32 bits wide: {array.name} must have less than 2^31 elements",
            )
        )
    return found


def index_bits_of(scop: Scop, values: Mapping[str, int]) -> Literal[32, 64]:
    """Return the width of indices that the sizes of the source need for arrays."""
    for array in scop.arrays:
        shape = declared_shape(scop, array)
        try:
            elements = prod(evaluate(extent, values) for extent in shape)
        except KeyError:
            continue  # a parameter of the function: the entry checks it
        if elements > INT_MAX:
            return 64
    return 32
