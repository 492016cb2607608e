"""Nodes of isl's schedule trees: what stands below one, and how bands and parts are put in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import islpy as isl

from eatss.polyhedral.isl_names import node_kind

PARTED = ("sequence", "set")
"""Nodes whose children are filters."""


def children(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return the nodes right below one."""
    return [node.get_child(at) for at in range(node.n_children())]


def branches(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return what stands below the filters of a sequence or set."""
    return [child.get_child(0) for child in children(node)]


def preorder(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    """Yield a node and all below it, parents first."""
    todo = [node]
    while todo:
        yield (one := todo.pop())
        todo += reversed(children(one))


def bands(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    """Yield the bands of a subtree, outer ones first."""
    return (one for one in preorder(node) if node_kind(one) == "band")


def alone(function: isl.UnionPwAff) -> isl.MultiUnionPwAff:
    """Return one function as a schedule."""
    return isl.MultiUnionPwAff.from_union_pw_aff(function)


def functions(band: isl.ScheduleNode) -> list[isl.UnionPwAff]:
    """Return the functions of the members of a band."""
    partial = band.band_get_partial_schedule()
    return [partial.get_at(at) for at in range(band.band_n_member())]


def coincident(band: isl.ScheduleNode) -> list[bool]:
    """Return which members of a band are marked parallel."""
    return [band.band_member_get_coincident(at) for at in range(band.band_n_member())]


def runs_forward(rules: isl.UnionMap, band: isl.ScheduleNode) -> bool:
    """Tell whether no member of a band takes a dependence backwards."""
    along = map(alone, functions(band))
    return all(rules.lex_gt_at_multi_union_pw_aff(one).is_empty() for one in along)


def marked(
    band: isl.ScheduleNode, *, permutable: bool, parallel: Iterable[bool]
) -> isl.ScheduleNode:
    """Return a band with other marks; members for which none is given keep theirs."""
    band = band.band_set_permutable(int(permutable))
    for at, mark in enumerate(parallel):
        band = band.band_member_set_coincident(at, int(mark))
    return band


def marked_like(band: isl.ScheduleNode, other: isl.ScheduleNode) -> isl.ScheduleNode:
    """Return a band with the marks of another one."""
    return marked(band, permutable=other.band_get_permutable(), parallel=coincident(other))


def with_parts(
    leaf: isl.ScheduleNode,
    filters: Sequence[isl.UnionSet],
    filled: Callable[[int, isl.ScheduleNode], isl.ScheduleNode],
    *,
    in_order: bool,
) -> isl.ScheduleNode:
    """Put a sequence or a set at a leaf; return the node there.

    Args:
        leaf: where it is put.
        filters: the instances of its parts.
        filled: returns the node that is put at the leaf of a part, by its number.
        in_order: whether it is a sequence.
    """
    chosen = isl.UnionSetList.alloc(leaf.get_ctx(), len(filters))
    for one in filters:
        chosen = chosen.add(one)
    node = leaf.insert_sequence(chosen) if in_order else leaf.insert_set(chosen)
    for at in range(len(filters)):
        node = filled(at, node.get_child(at).get_child(0)).parent().parent()
    return node
