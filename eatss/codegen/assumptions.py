"""What must hold of the sizes: accesses within arrays, indices within their type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal

import islpy as isl

from eatss.codegen.arrays import DeviceArray, shape_of
from eatss.codegen.bounds import guard
from eatss.codegen.errors import input_error_at
from eatss.codegen.isl_text import TRUE, multiplied
from eatss.isl_names import coalesced
from eatss.program import Apply, Assumption, Constant, IntExpr, Name, Operator, evaluate
from eatss.scop import Scop

_INT_MAX = 2**31 - 1

_SIZE_MAX = 2**29
"""Sizes up to this leave 32-bit arithmetic on loops and tiles room to spare."""


def assumptions_of(
    scop: Scop, arrays: Mapping[str, DeviceArray], *, narrow: bool
) -> tuple[Assumption, ...]:
    """Return what the entry of a region demands of its sizes.

    Args:
        scop: the region.
        arrays: its arrays.
        narrow: whether indices are 32 bits wide.

    Raises:
        InputError: ``EATSS-K006``: for no sizes the region stays within its arrays.
    """
    found: list[Assumption] = []
    valid = _within_arrays(scop)
    condition = guard(valid, isl.Set.universe(valid.get_space()))
    if condition != TRUE:
        parts = (
            condition.operands
            if isinstance(condition, Apply) and condition.operator is Operator.AND
            else (condition,)
        )
        found += [
            Assumption(condition=part, message="the original would leave its arrays otherwise")
            for part in parts
        ]
    if narrow:
        found += _narrow(scop, arrays)
    return tuple(found)


def fixed_sizes(values: Mapping[str, int]) -> tuple[Assumption, ...]:
    """Return the demand that sizes are those of the source."""
    return tuple(
        Assumption(
            condition=Apply(Operator.EQ, (Name(name), Constant(value))),
            message=f"this code is for {name} = {value} only",
        )
        for name, value in values.items()
    )


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
            room = Apply(Operator.QUOTIENT, (room, product))
        conditions.append(Apply(Operator.LE, (size, room)))
        product = size if product is None else multiplied(product, size)
    if not conditions:
        return None if known <= most else Constant(0)
    return conditions[0] if len(conditions) == 1 else Apply(Operator.AND, tuple(conditions))


def launchable(kernel: str, condition: IntExpr) -> Assumption:
    """Return the demand that a grid has no more blocks than a card launches."""
    return Assumption(
        condition=condition, message=f"{kernel} would need more than 2^31 - 1 blocks along x"
    )


def _within_arrays(scop: Scop) -> isl.Set:
    """Return the sizes for which every access stays inside its array."""
    valid = isl.Set.universe(scop.context.get_space())
    for statement in scop.statements:
        for access in statement.accesses:
            extent = scop.array(access.array).extent
            outside = access.relation.subtract_range(extent)
            if outside.is_empty():
                continue
            valid = valid.subtract(outside.domain().params())
            if valid.is_empty():
                raise input_error_at(
                    "EATSS-K006",
                    f"'{access.text}' leaves the array '{access.array}'",
                    span=access.span,
                    hint="no code is generated for a program that does",
                )
    return coalesced(valid)


def _narrow(scop: Scop, arrays: Mapping[str, DeviceArray]) -> list[Assumption]:
    found = [
        Assumption(
            condition=Apply(Operator.LE, (Name(name), Constant(_SIZE_MAX))),
            message=f"indices are 32 bits wide: {name} must be at most 2^29",
        )
        for name in scop.parameters
    ]
    seen: list[IntExpr] = []
    for array in arrays.values():
        elements: IntExpr = Constant(1)
        for extent in array.shape:
            elements = multiplied(elements, extent)
        if len(array.shape) < 2 and isinstance(elements, Constant | Name):
            continue  # sizes have a bound of their own
        if elements in seen:
            continue
        seen.append(elements)
        found.append(
            Assumption(
                condition=Apply(Operator.LE, (elements, Constant(_INT_MAX))),
                message=f"indices are 32 bits wide: {array.name} must have less than 2^31 elements",
            )
        )
    return found


def index_bits_of(scop: Scop, values: Mapping[str, int]) -> Literal[32, 64]:
    """Return the width of indices that the sizes of the source need."""
    for array in scop.arrays:
        shape = shape_of(scop, array)
        try:
            elements = prod(evaluate(extent, values) for extent in shape)
        except KeyError:
            continue  # a parameter of the function: the entry checks it
        if elements > _INT_MAX:
            return 64
    if any(value > _SIZE_MAX for value in values.values()):
        return 64
    return 64 if _has_large_numbers(scop) else 32


def _has_large_numbers(scop: Scop) -> bool:
    """Tell whether counters or the new schedule's loops may pass 2^30 for sizes up to 2^29."""
    small = scop.context
    for name in scop.parameters:
        bounds = isl.Set.read_from_str(
            scop.isl_context, f"[{name}] -> {{ : {-_SIZE_MAX} <= {name} <= {_SIZE_MAX} }}"
        )
        small = small.intersect(bounds)
    for statement in scop.statements:
        domain = statement.domain.intersect_params(small)
        for position in range(len(statement.loops)):
            for bound in (domain.dim_max_val(position), domain.dim_min_val(position)):
                if not bound.is_int() or abs(int(bound.to_python())) > 2 * _SIZE_MAX:
                    if domain.is_empty():
                        continue
                    return True
    return False
