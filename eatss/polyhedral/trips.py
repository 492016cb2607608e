"""Exact numbers of values a loop takes."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.isl_names import (
    coalesced,
    constant_value,
    dim_names,
    has_bounds,
    integer,
    only_dim,
    stride_of,
)

_ENUMERATED = 1 << 16  # a longer range with irregular holes is not counted one by one


def trip_count(domains: Sequence[isl.Set], loop: str, context: isl.Set) -> int | None:
    """Count the values ``loop`` takes over all ``domains``.

    Args:
        domains: sets of kernel points; each has a dimension called ``loop``.
        loop: the dimension counted.
        context: what is known of the parameters.

    Returns:
        The number of values; ``None`` where it depends on a parameter.
    """
    parts = [only_dim(domain.intersect_params(context), loop) for domain in domains]
    values = parts[0].reset_tuple_id()
    for part in parts[1:]:
        values = values.union(part.reset_tuple_id())
    values = coalesced(values)
    if values.is_empty():
        return 0
    (name,) = dim_names(values)
    if not has_bounds(values, name):
        return None
    known = values.params()
    reach = coalesced(values.dim_max(0).sub(values.dim_min(0)).gist_params(known))
    span = constant_value(reach)
    if span is None:
        return None
    return _count(values, name, span)


def _count(values: isl.Set, name: str, span: int) -> int | None:
    """Count the values of a range of ``span + 1`` that may have holes."""
    every = _interval(values)
    if every.is_subset(values):
        return span + 1
    stride = stride_of(values, name)
    if stride > 1 and _progression(values, every, stride).is_subset(values):
        return span // stride + 1
    if span > _ENUMERATED or not values.params().is_singleton():
        return None
    return integer(values.project_out_all_params().count_val())


def _interval(values: isl.Set) -> isl.Set:
    """Return all integers between the smallest and the largest value."""
    context = values.get_ctx()
    from_lowest = isl.Map.read_from_str(context, "{ [a] -> [x] : x >= a }")
    to_highest = isl.Map.read_from_str(context, "{ [a] -> [x] : x <= a }")
    interval: isl.Set = (
        values.lexmin().apply(from_lowest).intersect(values.lexmax().apply(to_highest))
    )
    return interval


def _progression(values: isl.Set, every: isl.Set, stride: int) -> isl.Set:
    """Return the values from the smallest on in steps of ``stride``."""
    step = isl.Map.read_from_str(
        values.get_ctx(), f"{{ [a] -> [x] : x >= a and (x - a) mod {stride} = 0 }}"
    )
    walk: isl.Set = values.lexmin().apply(step).intersect(every)
    return walk
