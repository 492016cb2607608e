"""Schedule trees carried over to other names of the same instances."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.base.frozen import frozen
from eatss.polyhedral.isl_names import node_kind, set_names, sets_of, universes
from eatss.polyhedral.nodes import (
    PARTED,
    branches,
    children,
    coincident,
    marked,
    marked_like,
    preorder,
    with_parts,
)
from eatss.polyhedral.tree import has_tilable_band, is_tilable


class UnknownNodeError(ValueError):
    """A tree has a node that no schedule of statements has."""


@frozen
class Carrier:
    """How a tree is carried over.

    ``domain`` are the instances of the new tree. ``names`` maps them to those of the old tree below
    its expansion nodes; ``members`` are the new names that share an old one, in their order.
    ``in_sequence`` says that a sequence has the parts of sequences and sets right within it: where
    some are independent, newer versions of isl make one set of them, which the isl of PPCG keeps in
    sequence.
    """

    domain: isl.UnionSet
    names: isl.UnionPwMultiAff
    members: Sequence[tuple[str, ...]] = ()
    in_sequence: bool = False


def carried_over(schedule: isl.Schedule, carrier: Carrier) -> isl.Schedule:
    """Return a tree of the instances ``carrier.domain``, in the order of ``schedule``.

    Expansion nodes, by which PPCG schedules a group of statements as one, dissolve: what stands
    above them is put in terms of the members.

    Raises:
        UnknownNodeError: a node is neither band, sequence, set, filter nor expansion.
    """
    top = schedule.get_root().get_child(0)
    above = _above(top, carrier.names)
    start = isl.Schedule.from_domain(carrier.domain).get_root().get_child(0)
    return _copy(top, start, above, carrier).get_schedule()


def _above(node: isl.ScheduleNode, names: isl.UnionPwMultiAff) -> isl.UnionPwMultiAff:
    """Return the function from new instances to those above all expansion nodes."""
    for expansion in expansions(node):
        composed = expansion.expansion_get_contraction().pullback_union_pw_multi_aff(names)
        names = composed.union_add(names.subtract_domain(composed.domain()))
    return names


def expansions(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return the expansion nodes of a subtree, at which groups become their members."""
    return [one for one in preorder(node) if node_kind(one) == "expansion"]


def _copy(
    node: isl.ScheduleNode, at: isl.ScheduleNode, names: isl.UnionPwMultiAff, carrier: Carrier
) -> isl.ScheduleNode:
    """Copy a subtree to the leaf ``at``; return the node there."""
    kind = node_kind(node)
    if kind == "leaf":
        return _split(at, carrier)
    if kind == "expansion":
        return _copy(node.get_child(0), at, carrier.names, carrier)
    if kind == "band":
        if node.band_n_member() == 0:
            return _copy(node.get_child(0), at, names, carrier)
        partial = node.band_get_partial_schedule().pullback_union_pw_multi_aff(names)
        at = at.insert_partial_schedule(partial.intersect_domain(at.get_domain()))
        at = marked_like(at, node)
        return _copy(node.get_child(0), at.get_child(0), names, carrier).parent()
    if kind not in PARTED:
        raise UnknownNodeError(str(kind))
    return _copy_parts(node, at, names, carrier)


def _copy_parts(
    node: isl.ScheduleNode, at: isl.ScheduleNode, names: isl.UnionPwMultiAff, carrier: Carrier
) -> isl.ScheduleNode:
    here = at.get_domain()
    parts = []
    in_order = node_kind(node) == "sequence"
    for child in _parts(node) if in_order and carrier.in_sequence else children(node):
        chosen = child.filter_get_filter().preimage_union_pw_multi_aff(names)
        if not chosen.intersect(here).is_empty():
            parts.append((chosen, child.get_child(0)))
    if len(parts) == 1:
        return _copy(parts[0][1], at, names, carrier)
    return with_parts(
        at,
        [chosen.intersect(here).gist(here) for chosen, _ in parts],
        lambda k, below: _copy(parts[k][1], below, names, carrier),
        in_order=in_order,
    )


def _split(at: isl.ScheduleNode, carrier: Carrier) -> isl.ScheduleNode:
    """Put new statements that share an old one into their order."""
    here = at.get_domain()
    present = set(set_names(here))
    shared = [[m for m in group if m in present] for group in carrier.members]
    depth = max((len(group) for group in shared), default=0)
    if depth < 2:
        return at
    rank = {name: k for group in shared for k, name in enumerate(group)}
    filters = [
        universes(
            isl.UnionSet.empty(here.get_space()),
            (part for part in sets_of(here) if rank.get(part.get_tuple_name(), 0) == k),
        )
        for k in range(depth)
    ]
    return with_parts(at, filters, lambda _, leaf: leaf, in_order=True)


def with_nests_merged(schedule: isl.Schedule) -> isl.Schedule:
    """Return a tree in which parallel loops that stand directly in each other are one band.

    Nothing is carried by any of them, so they may change places.
    """
    return _merged(schedule.get_root()).get_schedule()


def _merged(node: isl.ScheduleNode) -> isl.ScheduleNode:
    for k in range(node.n_children()):
        node = _merged(node.get_child(k)).parent()
    if not _is_parallel(node) or not _is_parallel(node.get_child(0)):
        return node
    outer = node.band_get_partial_schedule()
    inner = node.get_child(0).band_get_partial_schedule()
    node = node.get_child(0).delete().parent().delete()
    node = node.insert_partial_schedule(outer.flat_range_product(inner))
    return marked(node, permutable=True, parallel=[True] * node.band_n_member())


def _is_parallel(node: isl.ScheduleNode) -> bool:
    """Tell whether a node is a band of parallel loops only."""
    return is_tilable(node) and all(coincident(node))


def may_mix(node: isl.ScheduleNode) -> bool:
    """Tell whether the isl of PPCG may mix kernels that a tree has in sequence.

    It may where one of independent parts is a sequence itself; what runs inside a kernel does not
    matter.
    """
    if is_tilable(node) or not has_tilable_band(node):
        return False
    if node_kind(node) == "sequence":
        for below in branches(node):
            nested = node_kind(below) == "set" and has_tilable_band(below)
            if nested and any(node_kind(part) in PARTED for part in branches(below)):
                return True
    return any(map(may_mix, children(node)))


def _parts(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return the filters of a sequence, with those of sequences and sets in it instead of them."""
    parts: list[isl.ScheduleNode] = []
    for child in children(node):
        below = child.get_child(0)
        parts += _parts(below) if node_kind(below) in PARTED else [child]
    return parts
