"""Back from the generalised region to the one in the source: sizes become numbers again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import islpy as isl

from eatss.isl_names import coalesced, fix_parameters, node_kind
from eatss.polyhedral.program import Dependences
from eatss.scops import Scop

_Values = Sequence[tuple[str, int]]
_NODE = isl.schedule_node_type


def instantiate_dependences(dependences: Dependences, values: _Values) -> Dependences:
    """Give the parameters of ``dependences`` their values."""
    if not values:
        return dependences
    relations = {
        field.name: coalesced(fix_parameters(getattr(dependences, field.name), values))
        for field in fields(dependences)
    }
    return Dependences(**relations)


def instantiate_schedule(schedule: isl.Schedule, scop: Scop, values: _Values) -> isl.Schedule:
    """Give the parameters of ``schedule`` their values; ``scop`` is the region it is for."""
    if not values:
        return schedule
    target = isl.Schedule.from_domain(scop.domain).get_root().get_child(0)
    return _copy(schedule.get_root().get_child(0), target, values).get_schedule()


def _copy(source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values) -> isl.ScheduleNode:
    """Insert the subtree at ``source`` at the leaf ``target``; return the node inserted."""
    kind = node_kind(source)
    if kind == _NODE.leaf:
        return target
    if kind == _NODE.band:
        target = _copy_band(source, target, values)
        return _copy(source.get_child(0), target.get_child(0), values).parent()
    if kind == _NODE.filter:
        below = _copy(source.get_child(0), target.get_child(0), values)
        return below.parent()
    parts = isl.UnionSetList.alloc(target.get_ctx(), source.n_children())
    for position in range(source.n_children()):
        chosen = source.get_child(position).filter_get_filter()
        parts = parts.add(fix_parameters(chosen.identity(), values).domain())
    is_sequence = kind == _NODE.sequence
    target = target.insert_sequence(parts) if is_sequence else target.insert_set(parts)
    for position in range(source.n_children()):
        child = _copy(source.get_child(position), target.get_child(position), values)
        target = child.parent()
    return target


def _copy_band(
    source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values
) -> isl.ScheduleNode:
    partial = source.band_get_partial_schedule()
    count = source.band_n_member()
    fixed: isl.MultiUnionPwAff | None = None
    for position in range(count):
        relation = isl.UnionMap.from_union_pw_aff(partial.get_at(position))
        member = isl.UnionPwMultiAff.from_union_map(fix_parameters(relation, values))
        single = isl.MultiUnionPwAff.from_union_pw_aff(member.get_union_pw_aff(0))
        fixed = single if fixed is None else fixed.flat_range_product(single)
    if fixed is None:
        return target
    target = target.insert_partial_schedule(fixed)
    target = target.band_set_permutable(source.band_get_permutable())
    for position in range(count):
        coincident = source.band_member_get_coincident(position)
        target = target.band_member_set_coincident(position, coincident)
    return target
