"""Schedule trees carried over to other names of the same instances."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.frozen import frozen
from eatss.isl_names import node_kind, set_names
from eatss.polyhedral.tree import has_tilable_band, is_tilable

_NODE = isl.schedule_node_type


class UnknownNodeError(ValueError):
    """A tree has a node that no schedule of statements has."""


@frozen
class Carrier:
    """How a tree is carried over.

    ``domain`` are the instances of the new tree. ``names`` maps them to those of the old tree below
    its expansion nodes; ``members`` are the new names that share an old one, in their order.
    """

    domain: isl.UnionSet
    names: isl.UnionPwMultiAff
    members: Sequence[tuple[str, ...]]


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
    found = [node] if node_kind(node) == _NODE.expansion else []
    for k in range(node.n_children()):
        found += expansions(node.get_child(k))
    return found


def _copy(
    node: isl.ScheduleNode, at: isl.ScheduleNode, names: isl.UnionPwMultiAff, carrier: Carrier
) -> isl.ScheduleNode:
    """Copy a subtree to the leaf ``at``; return the node there."""
    kind = node_kind(node)
    if kind == _NODE.leaf:
        return _split(at, carrier)
    if kind == _NODE.expansion:
        return _copy(node.get_child(0), at, carrier.names, carrier)
    if kind == _NODE.band:
        if node.band_n_member() == 0:
            return _copy(node.get_child(0), at, names, carrier)
        partial = node.band_get_partial_schedule().pullback_union_pw_multi_aff(names)
        at = at.insert_partial_schedule(partial.intersect_domain(at.get_domain()))
        at = _with_marks(at, node)
        return _copy(node.get_child(0), at.get_child(0), names, carrier).parent()
    if kind not in (_NODE.sequence, _NODE.set):
        raise UnknownNodeError(str(kind))
    return _copy_parts(node, at, names, carrier)


def _copy_parts(
    node: isl.ScheduleNode, at: isl.ScheduleNode, names: isl.UnionPwMultiAff, carrier: Carrier
) -> isl.ScheduleNode:
    here = at.get_domain()
    parts = []
    for k in range(node.n_children()):
        child = node.get_child(k)
        chosen = child.filter_get_filter().preimage_union_pw_multi_aff(names)
        if not chosen.intersect(here).is_empty():
            parts.append((chosen, child.get_child(0)))
    if len(parts) == 1:
        return _copy(parts[0][1], at, names, carrier)
    filters = isl.UnionSetList.alloc(at.get_ctx(), len(parts))
    for chosen, _ in parts:
        filters = filters.add(chosen.intersect(here).gist(here))
    is_sequence = node_kind(node) == _NODE.sequence
    at = at.insert_sequence(filters) if is_sequence else at.insert_set(filters)
    for k, (_, child) in enumerate(parts):
        below = at.get_child(k).get_child(0)
        at = _copy(child, below, names, carrier).parent().parent()
    return at


def _split(at: isl.ScheduleNode, carrier: Carrier) -> isl.ScheduleNode:
    """Put new statements that share an old one into their order."""
    here = at.get_domain()
    present = set(set_names(here))
    shared = [[m for m in group if m in present] for group in carrier.members]
    depth = max((len(group) for group in shared), default=0)
    if depth < 2:
        return at
    rank = {name: k for group in shared for k, name in enumerate(group)}
    filters = isl.UnionSetList.alloc(at.get_ctx(), depth)
    for k in range(depth):
        chosen = isl.UnionSet.empty(here.get_space())

        def take(part: isl.Set, wanted: int = k) -> None:
            nonlocal chosen
            if rank.get(part.get_tuple_name(), 0) == wanted:
                chosen = chosen.union(isl.Set.universe(part.get_space()).to_union_set())

        here.foreach_set(take)
        filters = filters.add(chosen)
    return at.insert_sequence(filters)


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
    node = node.insert_partial_schedule(outer.flat_range_product(inner)).band_set_permutable(1)
    for k in range(node.band_n_member()):
        node = node.band_member_set_coincident(k, 1)
    return node


def _is_parallel(node: isl.ScheduleNode) -> bool:
    """Tell whether a node is a band of parallel loops only."""
    return is_tilable(node) and all(
        node.band_member_get_coincident(k) for k in range(node.band_n_member())
    )


def in_sequence(schedule: isl.Schedule) -> tuple[isl.Schedule, bool]:
    """Return a tree without sets or sequences directly within sequences, and whether it is certain.

    Where parts of a sequence are independent, newer versions of isl make one set of them. The isl
    of PPCG keeps them in sequence; it may mix them where one of them is a sequence itself.
    """
    top = schedule.get_root().get_child(0)
    start = isl.Schedule.from_domain(schedule.get_domain()).get_root().get_child(0)
    return _inline(top, start).get_schedule(), not _may_mix(top)


def _may_mix(node: isl.ScheduleNode) -> bool:
    """Tell whether kernels may change places; what runs inside a kernel does not matter."""
    if is_tilable(node) or not has_tilable_band(node):
        return False
    children = [node.get_child(k) for k in range(node.n_children())]
    if node_kind(node) == _NODE.sequence:
        for below in (child.get_child(0) for child in children):
            if node_kind(below) == _NODE.set and has_tilable_band(below):
                parts = (below.get_child(k).get_child(0) for k in range(below.n_children()))
                if any(node_kind(part) in (_NODE.sequence, _NODE.set) for part in parts):
                    return True
    return any(_may_mix(child) for child in children)


def _parts(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return the filters of a sequence, with those of sequences and sets in it instead of them."""
    parts: list[isl.ScheduleNode] = []
    for k in range(node.n_children()):
        below = node.get_child(k).get_child(0)
        nested = node_kind(below) in (_NODE.sequence, _NODE.set)
        parts += _parts(below) if nested else [node.get_child(k)]
    return parts


def _inline(node: isl.ScheduleNode, at: isl.ScheduleNode) -> isl.ScheduleNode:
    kind = node_kind(node)
    if kind == _NODE.leaf:
        return at
    if kind == _NODE.band:
        return _inline(node.get_child(0), _with_band(at, node).get_child(0)).parent()
    in_order = kind == _NODE.sequence
    parts = _parts(node) if in_order else [node.get_child(k) for k in range(node.n_children())]
    filters = isl.UnionSetList.alloc(at.get_ctx(), len(parts))
    for part in parts:
        filters = filters.add(part.filter_get_filter())
    at = at.insert_sequence(filters) if in_order else at.insert_set(filters)
    for k, part in enumerate(parts):
        at = _inline(part.get_child(0), at.get_child(k).get_child(0)).parent().parent()
    return at


def _with_band(at: isl.ScheduleNode, band: isl.ScheduleNode) -> isl.ScheduleNode:
    at = at.insert_partial_schedule(band.band_get_partial_schedule())
    return _with_marks(at, band)


def _with_marks(at: isl.ScheduleNode, band: isl.ScheduleNode) -> isl.ScheduleNode:
    at = at.band_set_permutable(int(band.band_get_permutable()))
    for k in range(band.band_n_member()):
        at = at.band_member_set_coincident(k, int(band.band_member_get_coincident(k)))
    return at
