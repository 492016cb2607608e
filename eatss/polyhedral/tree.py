"""The schedule tree cut into kernels, the way PPCG cuts it.

The outermost band of a branch that is permutable and starts with a parallel member becomes
a kernel. Branches without such a band next to branches that have one become kernels of
a single thread, except those that come before the first kernel of the region (or
stand beside kernels, unordered): they run on the host, as does a region without any
such band.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from eatss.isl_names import node_kind, set_names

_NODE = isl.schedule_node_type


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a band: a loop of the new schedule.

    ``band`` tells bands apart, so that loops of different branches stay different.
    """

    band: int
    position: int
    parallel: bool
    function: isl.UnionPwAff

    @property
    def key(self) -> tuple[int, int]:
        """The identity of the loop in the tree."""
        return self.band, self.position


@dataclass(frozen=True, slots=True)
class Leaf:
    """Statements at one leaf of a kernel, below the members ``inner``."""

    statements: tuple[str, ...]
    inner: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class KernelTree:
    """The part of the schedule tree that becomes one kernel."""

    host: tuple[Member, ...]
    band: tuple[Member, ...]
    permutable: bool
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class CutTree:
    """All kernels in launch order, and the statements that stay on the host."""

    kernels: tuple[KernelTree, ...]
    host_statements: tuple[str, ...]


def cut_tree(schedule: isl.Schedule) -> CutTree:
    """Cut ``schedule`` into kernels."""
    top = schedule.get_root().get_child(0)
    branches = [top]
    kind = node_kind(top)
    if kind in (_NODE.sequence, _NODE.set):
        branches = [top.get_child(k) for k in range(top.n_children())]
    tilable = [_has_tilable_band(branch) for branch in branches]
    kernels: list[KernelTree] = []
    host: list[str] = []
    for position, branch in enumerate(branches):
        on_host = not any(tilable[: position + 1]) or (kind == _NODE.set and not tilable[position])
        if on_host:
            inside = branch if branch.n_children() == 0 else branch.get_child(0)
            host.extend(set_names(inside.get_domain()))
        else:
            kernels.extend(_kernels(branch, ()))
    return CutTree(kernels=tuple(kernels), host_statements=tuple(sorted(host)))


def _is_tilable(node: isl.ScheduleNode) -> bool:
    return (
        node_kind(node) == _NODE.band
        and node.band_n_member() > 0
        and bool(node.band_get_permutable())
        and bool(node.band_member_get_coincident(0))
    )


def _has_tilable_band(node: isl.ScheduleNode) -> bool:
    return _is_tilable(node) or any(
        _has_tilable_band(node.get_child(k)) for k in range(node.n_children())
    )


def _kernels(node: isl.ScheduleNode, host: tuple[Member, ...]) -> Iterator[KernelTree]:
    """Yield the kernels of the subtree below the host loops ``host``."""
    if _is_tilable(node):
        yield KernelTree(
            host=host,
            band=members(node),
            permutable=True,
            leaves=tuple(_leaves(node.get_child(0), ())),
        )
        return
    if node_kind(node) != _NODE.filter and not _has_tilable_band(node):
        leaves = tuple(_leaves(node, ()))
        yield KernelTree(host=host, band=(), permutable=False, leaves=leaves)
        return
    below = host + members(node)
    for position in range(node.n_children()):
        yield from _kernels(node.get_child(position), below)


def _leaves(node: isl.ScheduleNode, inner: tuple[Member, ...]) -> Iterator[Leaf]:
    if node.n_children() == 0:
        yield Leaf(statements=set_names(node.get_domain()), inner=inner)
        return
    below = inner + members(node)
    for position in range(node.n_children()):
        yield from _leaves(node.get_child(position), below)


def members(node: isl.ScheduleNode) -> tuple[Member, ...]:
    """Return the members of a band node, outermost first; none for any other node."""
    if node_kind(node) != _NODE.band:
        return ()
    partial = node.band_get_partial_schedule()
    band = _identity(node)
    return tuple(
        Member(
            band=band,
            position=position,
            parallel=bool(node.band_member_get_coincident(position)),
            function=partial.get_at(position),
        )
        for position in range(node.band_n_member())
    )


def _identity(node: isl.ScheduleNode) -> int:
    """Return a number no other node of the tree has: its path from the root, in base 1000."""
    number = 1
    while node.has_parent():
        number = number * 1000 + node.get_child_position()
        node = node.parent()
    return number
