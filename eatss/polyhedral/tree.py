"""Nodes of schedule trees, the order of the source, and the loops of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby

import islpy as isl

from eatss.base.frozen import Names, frozen
from eatss.polyhedral.isl_names import (
    SET,
    constant_value,
    node_kind,
    output_affs,
    set_names,
    sets_of,
)
from eatss.polyhedral.scop import Scop, Statement

# -- nodes -------------------------------------------------------------------------------------
# Nodes of isl's schedule trees: what stands below one, and how bands and parts are put in.


PARTED = ("sequence", "set")
"""Nodes whose children are filters."""


def children(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return the nodes right below one."""
    return [node.get_child(at) for at in range(node.n_children())]


def branches(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """Return what stands below the filters of a sequence or set."""
    return [child.get_child(0) for child in children(node)]


def parts_of(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    """Yield what runs one after another."""
    if node_kind(node) not in PARTED:
        yield node
        return
    for one in branches(node):
        yield from parts_of(one)


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


def follows(dependences: isl.UnionMap, time: isl.MultiUnionPwAff) -> bool:
    """Tell whether all that is needed runs earlier, by the times of instances.

    What lies between both ends is one small set. isl's own order of two instances is a relation of
    a piece for each of their times, which takes ten times as long.
    """
    times = isl.UnionMap.from_multi_union_pw_aff(time)
    return all(map(_is_later, sets_of(dependences.apply_domain(times).apply_range(times).deltas())))


def _is_later(distances: isl.Set) -> bool:
    for at in range(distances.dim(SET)):
        if distances.is_empty():
            return True
        if not distances.upper_bound_val(SET, at, -1).is_empty():
            return False
        distances = distances.fix_val(SET, at, 0)
    return bool(distances.is_empty())


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


def together(functions: Iterable[isl.UnionPwAff]) -> isl.MultiUnionPwAff:
    """Return functions as one schedule."""
    return reduce(isl.MultiUnionPwAff.flat_range_product, map(alone, functions))


def with_band(
    node: isl.ScheduleNode, loops: Iterable[isl.UnionPwAff], parallel: Iterable[bool]
) -> isl.ScheduleNode:
    """Put a band of loops that may be tiled at a leaf, or around a node; return it."""
    band = node.insert_partial_schedule(together(loops))
    return marked(band, permutable=True, parallel=parallel)


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


# -- tree --------------------------------------------------------------------------------------
# The schedule tree cut into kernels, the way PPCG cuts it.
#
# The outermost band of a branch that is permutable and starts with a parallel member becomes
# a kernel. Branches without such a band next to branches that have one become kernels of
# a single thread, except those that come before the first or after the last kernel of the
# region (or stand beside kernels, unordered): they run on the host, as does a region without
# any such band.


@frozen
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


@frozen
class Leaf:
    """Statements at one leaf of a kernel, below the members ``inner``."""

    statements: Names
    inner: tuple[Member, ...]


@frozen
class KernelTree:
    """The part of the schedule tree that becomes one kernel: the subtree at ``node``.

    ``on_host`` says that PPCG would leave it on the host.
    """

    host: tuple[Member, ...]
    band: tuple[Member, ...]
    permutable: bool
    leaves: tuple[Leaf, ...]
    node: isl.ScheduleNode
    on_host: bool = False

    @property
    def inner(self) -> tuple[Member, ...]:
        """The members below the band, each once, in order of first appearance."""
        return tuple({member.key: member for leaf in self.leaves for member in leaf.inner}.values())

    @property
    def statements(self) -> Names:
        """The statements at all leaves."""
        return tuple(name for leaf in self.leaves for name in leaf.statements)


def cut_tree(schedule: isl.Schedule) -> tuple[KernelTree, ...]:
    """Return the pieces of a schedule in their order: kernels, and what stays on the host."""
    top = schedule.get_root().get_child(0)
    if not has_tilable_band(top):
        return (_serial(top, (), on_host=True),)
    on_host = frozenset((*_outside(top, last=False), *_outside(top, last=True)))
    return tuple(_kernels(top, (), on_host))


def _outside(node: isl.ScheduleNode, *, last: bool) -> Iterator[int]:
    """Yield the identities of the branches before the first kernel, or after the last one.

    In a set every branch may come first or last. Branches of a sequence or set that stands directly
    in the first or last branch with kernels count too.
    """
    kind = node_kind(node)
    parts = children(node) if kind in PARTED else []
    for branch in reversed(parts) if last else parts:
        if not has_tilable_band(branch):
            yield identity(branch)
            continue
        yield from _outside(branch.get_child(0), last=last)
        if kind == "sequence":
            return


def is_tilable(node: isl.ScheduleNode) -> bool:
    """Tell whether a node is a band that PPCG maps to blocks and threads."""
    return (
        node_kind(node) == "band"
        and node.band_n_member() > 0
        and node.band_get_permutable()
        and node.band_member_get_coincident(0)
    )


def has_tilable_band(node: isl.ScheduleNode) -> bool:
    """Tell whether a subtree has such a band."""
    return any(map(is_tilable, preorder(node)))


def _kernels(
    node: isl.ScheduleNode, host: tuple[Member, ...], on_host: frozenset[int]
) -> Iterator[KernelTree]:
    """Yield the pieces of the subtree below the host loops ``host``."""
    if node_kind(node) == "filter" and identity(node) in on_host:
        yield _serial(node, host, on_host=True)
        return
    if is_tilable(node):
        yield KernelTree(
            host=host,
            band=members(node),
            permutable=True,
            leaves=tuple(_leaves(node.get_child(0), ())),
            node=node,
        )
        return
    if node_kind(node) != "filter" and not has_tilable_band(node):
        yield _serial(node, host)
        return
    below = host + members(node)
    for child in children(node):
        yield from _kernels(child, below, on_host)


def _serial(
    node: isl.ScheduleNode, host: tuple[Member, ...], *, on_host: bool = False
) -> KernelTree:
    leaves = tuple(_leaves(node, ()))
    return KernelTree(
        host=host, band=(), permutable=False, leaves=leaves, node=node, on_host=on_host
    )


def _leaves(node: isl.ScheduleNode, inner: tuple[Member, ...]) -> Iterator[Leaf]:
    if node.n_children() == 0:
        yield Leaf(statements=set_names(node.get_domain()), inner=inner)
        return
    below = inner + members(node)
    for child in children(node):
        yield from _leaves(child, below)


def members(node: isl.ScheduleNode) -> tuple[Member, ...]:
    """Return the members of a band node, outermost first; none for any other node."""
    if node_kind(node) != "band":
        return ()
    band = identity(node)
    marks = zip(coincident(node), functions(node), strict=True)
    return tuple(
        Member(band=band, position=position, parallel=parallel, function=function)
        for position, (parallel, function) in enumerate(marks)
    )


def identity(node: isl.ScheduleNode) -> int:
    """Return a number no other node of the tree has: its path from the root, in base 1000."""
    number = 1
    while node.has_parent():
        number = number * 1000 + node.get_child_position()
        node = node.parent()
    return number


# -- original schedule -------------------------------------------------------------------------
# The original order of execution as a schedule tree.


def original_schedule(scop: Scop) -> isl.Schedule:
    """Return the program's own schedule as a tree of bands and sequences.

    isl computes dataflow faster on a tree, and the leaves of its sequences show
    which statements run one directly after the other.
    """
    timed = [(statement, output_affs(statement.schedule)) for statement in scop.statements]
    return _subtree(timed, 0)


_Timed = tuple[Statement, tuple[isl.PwAff, ...]]


def _subtree(timed: Sequence[_Timed], level: int) -> isl.Schedule:
    """Return the tree of ``timed`` statements from time dimension ``level`` on."""
    if level == len(timed[0][1]):
        nothing = isl.UnionSet.empty(timed[0][0].domain.get_space())
        return isl.Schedule.from_domain(
            reduce(isl.UnionSet.union, (statement.domain for statement, _ in timed), nothing)
        )
    positions = [constant_value(affs[level]) for _, affs in timed]
    if None not in positions:
        order = sorted(zip(positions, timed, strict=True), key=lambda pair: pair[0] or 0)
        groups = groupby(order, key=lambda pair: pair[0])
        parts = [_subtree([one for _, one in group], level + 1) for _, group in groups]
        return reduce(isl.Schedule.sequence, parts)
    counter = isl.UnionPwAff.empty(timed[0][0].domain.get_space().params())
    for _, affs in timed:
        counter = counter.union_add(isl.UnionPwAff.from_pw_aff(affs[level]))
    return _subtree(timed, level + 1).insert_partial_schedule(alone(counter))
