"""Two neighbouring dimensions in, one that counts the pairs of their values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import islpy as isl

from eatss.isl_names.read import affine_form

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
    rest = plain.project_out(isl.dim_type.set, first, 2).insert_dims(isl.dim_type.set, first, 2)
    pairs = _from_zero(rest, first, one).intersect(_from_zero(rest, first + 1, other))
    return (one, other) if plain.is_equal(rest.intersect(pairs)) else None


def _length(points: isl.Set, at: int) -> Length | None:
    after = points.dim(isl.dim_type.set) - at - 1
    line = points.project_out(isl.dim_type.set, at + 1, after)
    line = line.project_out(isl.dim_type.set, 0, at)
    if line.is_empty() or not line.dim_has_upper_bound(isl.dim_type.set, 0):
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
    names = [f"d{k}'" for k in range(points.dim(isl.dim_type.set))]  # which no C can name
    known = f"[{length}] -> " if isinstance(length, str) else ""
    text = f"{known}{{ [{', '.join(names)}] : 0 <= {names[at]} < {length} }}"
    return isl.Set.read_from_str(points.get_ctx(), text)


def collapsed_set(points: isl.Set, first: int, size: Length, names: Sequence[str]) -> isl.Set:
    """Return a set with one dimension of some size in the place of two, its dimensions named."""
    pairs = points.reset_tuple_id()
    found = _without(pairs, first)
    others = _without(pairs.drop_constraints_involving_dims(isl.dim_type.set, first, 2), first)
    if others.intersect_params(points.params()).is_equal(found):
        found = others  # that there are pairs at all is said by the new dimension
    found = found.insert_dims(isl.dim_type.set, first, 1)
    found = found.intersect(_from_zero(found, first, size)).set_tuple_name(points.get_tuple_name())
    for at, name in enumerate(names):
        found = found.set_dim_name(isl.dim_type.set, at, name)
    return found


def _without(pairs: isl.Set, first: int) -> isl.Set:
    return pairs.project_out(isl.dim_type.set, first, 2)


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
    loose = relation.drop_constraints_involving_dims(isl.dim_type.in_, first, 2)
    for at in places:
        loose = loose.drop_constraints_involving_dims(isl.dim_type.out, at, 2)
    found, wide = (_joined(one, first, places, domain) for one in (relation, loose))
    # that the two have values at all is said by the one
    return wide if wide.intersect_params(relation.params()).is_equal(found) else found


def _joined(relation: isl.Map, first: int, places: Sequence[int], domain: isl.Set) -> isl.Map:
    name = relation.get_tuple_name(isl.dim_type.out)
    found = relation.project_out(isl.dim_type.in_, first, 2)
    found = found.insert_dims(isl.dim_type.in_, first, 1)
    for at in sorted(places, reverse=True):
        found = found.project_out(isl.dim_type.out, at, 2).insert_dims(isl.dim_type.out, at, 1)
    found = found.set_tuple_name(isl.dim_type.in_, domain.get_tuple_name())
    found = found.set_tuple_name(isl.dim_type.out, name)
    for before, at in enumerate(sorted(places)):
        found = found.equate(isl.dim_type.in_, first, isl.dim_type.out, at - before)
    return found.intersect_domain(domain)


def row_numbers(points: isl.Set, pairs: Mapping[int, int]) -> isl.Map:
    """Return the relation from points to those with pairs of dimensions counted row by row.

    Args:
        points: a set.
        pairs: the first dimensions of pairs, with the lengths of the second.
    """
    name, n_dims = points.get_tuple_name(), points.dim(isl.dim_type.set)
    inputs = [f"i{k}" for k in range(n_dims)]
    outputs = [
        f"{pairs[k]} * i{k} + i{k + 1}" if k in pairs else f"i{k}"
        for k in range(n_dims)
        if k - 1 not in pairs
    ]
    text = f"{{ {name}[{', '.join(inputs)}] -> {name}[{', '.join(outputs)}] }}"
    return isl.Map.read_from_str(points.get_ctx(), text).intersect_domain(points)
