"""What PPCG makes of a region before it schedules, and of a schedule after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby

import islpy as isl

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import Names, frozen, their_names
from eatss.polyhedral.dependences import dependent_accesses, flow_of, tagged
from eatss.polyhedral.expression import Array, Call
from eatss.polyhedral.expression import preorder as preorder_of_expression
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    among,
    constant_value,
    maps_of,
    node_kind,
    output_affs,
    parameter_names,
    renaming,
    set_names,
    sets_of,
    unbounded_first_dim,
    universes,
)
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.polyhedral.tree import (
    PARTED,
    branches,
    children,
    functions,
    has_tilable_band,
    is_tilable,
    marked_like,
    original_schedule,
    preorder,
    together,
    with_parts,
)

# -- ppcg region -------------------------------------------------------------------------------
# A region as PPCG sees it: its statements under PPCG's names, and none that is dead.


@frozen
class PpcgRegion:
    """A region under PPCG's names.

    ``names`` maps instances of ours to PPCG's; ``calls`` are the statements that call a function.
    """

    scop: Scop
    names: isl.UnionPwMultiAff
    calls: frozenset[str]


def ppcg_region(scop: Scop) -> PpcgRegion:
    """Return ``scop`` under PPCG's names; one that was not read from C is numbered in order."""
    named = [(s.ppcg_name or f"S_{k}", s) for k, s in enumerate(scop.statements)]
    return PpcgRegion(
        scop=replace(
            scop, statements=tuple(_renamed(statement, name) for name, statement in named)
        ),
        names=renaming([(s.domain, name) for name, s in named]),
        calls=frozenset(
            name
            for name, statement in named
            if any(isinstance(node, Call) for node in preorder_of_expression(statement.value))
        ),
    )


def restricted(scop: Scop, live: isl.UnionSet) -> Scop:
    """Return what PPCG schedules of a region: the instances ``live``.

    Variables that are dead after the region count as its own, as they do in PPCG.
    """
    arrays = tuple(
        replace(array, is_local=array.is_local or (array.ppcg_kills and array.origin == "local"))
        for array in scop.arrays
    )
    scop = replace(scop, arrays=arrays)
    kept = []
    for statement in scop.statements:
        domain = live.extract_set(statement.domain.get_space())
        if domain.is_equal(statement.domain):
            kept.append(statement)
        elif not domain.is_empty():
            accesses = tuple(
                replace(a, relation=a.relation.intersect_domain(domain)) for a in statement.accesses
            )
            time = statement.schedule.intersect_domain(domain)
            kept.append(replace(statement, domain=domain, schedule=time, accesses=accesses))
    return replace(scop, statements=tuple(kept))


def _renamed(statement: Statement, name: str) -> Statement:
    return replace(
        statement,
        name=name,
        domain=statement.domain.set_tuple_name(name),
        schedule=statement.schedule.set_tuple_name(IN, name),
        accesses=tuple(
            replace(one, relation=one.relation.set_tuple_name(IN, name))
            for one in statement.accesses
        ),
    )


# -- ppcg tree ---------------------------------------------------------------------------------
# Schedule trees carried over to other names of the same instances.


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
    members: Sequence[Names] = ()
    in_sequence: bool = False
    for_any_size: bool = False


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
        partial = partial.intersect_domain(at.get_domain())
        if carrier.for_any_size:
            new = map(partial.get_at, range(node.band_n_member()))
            domains = node.get_domain(), at.get_domain()
            partial = together(
                _with_end(*pair, *domains) for pair in zip(functions(node), new, strict=True)
            )
        at = at.insert_partial_schedule(partial)
        at = marked_like(at, node)
        return _copy(node.get_child(0), at.get_child(0), names, carrier).parent()
    if kind not in PARTED:
        raise UnknownNodeError(str(kind))
    return _copy_parts(node, at, names, carrier)


def _with_end(
    old: isl.UnionPwAff, new: isl.UnionPwAff, known: isl.UnionSet, domain: isl.UnionSet
) -> isl.UnionPwAff:
    """Return a loop of instances of any size in which those behind its last iteration stay there.

    Args:
        old: the loop.
        new: the same for any size.
        known: the instances of the former.
        domain: those of the latter.
    """
    values, any_size = _values(old, known), _values(new, domain)
    once = {name: own.dim_max_val(0) for name, own in values.items() if own.is_singleton()}
    moving = [name for name in values if name not in once]
    if not moving or {*values} != {*any_size}:
        return new
    reached = [reduce(isl.Set.union, map(own.__getitem__, moving)) for own in (values, any_size)]
    end, ends = reached[0].dim_max_val(0), reached[1].coalesce().dim_max(0)
    there = ends.gist(ends.domain())
    for part in (one.to_union_set() for one in sets_of(domain) if one.get_tuple_name() in once):
        by = once[set_names(part)[0]].sub(end)
        if by.is_zero() or by.is_one():
            own = isl.UnionPwAff.pw_aff_on_domain(part, there.add_constant_val(by))
            new = new.subtract_domain(part).union_add(own)
    return new


def _values(loop: isl.UnionPwAff, domain: isl.UnionSet) -> dict[str, isl.Set]:
    """Return the values that a loop takes in each statement."""
    relation = isl.UnionMap.from_union_pw_aff(loop).intersect_domain(domain)
    return {own.get_tuple_name(IN): own.range() for own in maps_of(relation)}


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
    parts = []
    for child in children(node):
        below = child.get_child(0)
        parts += _parts(below) if node_kind(below) in PARTED else [child]
    return parts


# -- ppcg constraints --------------------------------------------------------------------------
# The schedule constraints PPCG gives isl for a GPU, and the statements it groups first.
#
# What is computed, and from what, follows PPCG 0.09 (its ``ppcg.c``, ``gpu.c``, ``grouping.c``), so
# that isl is asked the same question: live ranges may be reordered; statements that run one
# directly after the other, each instance of the second needing the same one of the first, are
# scheduled as one; instances that nothing needs are left out.


@frozen
class PpcgDependences:
    """What PPCG derives from the accesses; ``live`` are the instances that are not dead code.

    ``flow`` and ``order`` connect tagged instances. ``false`` are all anti and output dependences,
    ``array_order`` the order dependences that no parallel loop may carry.
    """

    live: isl.UnionSet
    tagged_flow: isl.UnionMap
    order: isl.UnionMap
    forced: isl.UnionMap
    false: isl.UnionMap
    array_order: isl.UnionMap


@frozen
class Grouping:
    """Statements scheduled as one.

    ``contraction`` maps every instance to itself or to the instance of its group ``G_n``;
    ``members`` are the names in each group, in the order in which they run.
    """

    contraction: isl.UnionPwMultiAff
    members: tuple[tuple[str, Names], ...]


def ppcg_dependences(region: PpcgRegion) -> PpcgDependences:
    """Compute the dependences of a region as PPCG does."""
    scop = region.scop
    every = _tagged(scop)

    def relations(wanted: Callable[[Access], bool]) -> isl.UnionMap:
        own = (relation for access, relation in every if wanted(access))
        return reduce(isl.UnionMap.union, own, scop.no_relation)

    writes = relations(lambda access: access.is_write)
    reads = relations(lambda access: not access.is_write)
    plain_writes, plain_reads = writes.domain_factor_domain(), reads.domain_factor_domain()
    tagger = reads.union(writes).domain().universe().unwrap().domain_map_union_pw_multi_aff()
    plain = original_schedule(scop)
    schedule = plain.pullback_union_pw_multi_aff(tagger)

    live_out = _live_out(scop, plain_writes, plain)
    flow = flow_of(reads, schedule, kill=writes, may=writes)
    tagged_flow = flow.get_may_dependence()
    live_in = flow.get_may_no_source().domain_factor_domain()
    unread = writes.subtract_domain(tagged_flow.domain())
    order = flow_of(writes, schedule, may=reads.union(unread)).get_may_dependence()
    before_last = flow_of(live_out, plain, may=plain_writes).get_may_dependence()
    after_first = flow_of(plain_writes, plain, may=live_in).get_may_dependence()
    false = flow_of(
        plain_writes, plain, kill=plain_writes, may=plain_writes.union(plain_reads)
    ).get_may_dependence()
    live = _live(region, live_out, tagged_flow.factor_domain())
    private = _private(scop)
    shared = relations(lambda access: access.array not in private)
    return PpcgDependences(
        live=live,
        tagged_flow=tagged_flow.intersect_range(live.preimage_union_pw_multi_aff(tagger)),
        order=order,
        forced=before_last.union(after_first),
        false=false,
        array_order=order.intersect_domain(shared.universe().domain()).factor_domain(),
    )


def ppcg_constraints(region: PpcgRegion, found: PpcgDependences) -> isl.ScheduleConstraints:
    """Return what isl's scheduler has to respect and should aim for."""
    flow = found.tagged_flow.factor_domain()
    validity = flow.union(found.forced)
    return (
        isl.ScheduleConstraints.on_domain(found.live)
        .set_context(region.scop.context)
        .set_conditional_validity(found.tagged_flow, found.order)
        .set_validity(validity)
        .set_coincidence(validity.union(found.array_order))
        .set_proximity(flow.union(found.false))
    )


def ppcg_domain(region: PpcgRegion, live: isl.UnionSet, grouping: Grouping | None) -> isl.UnionSet:
    """Return the instances ``live`` in a set that isl goes through in the order it does in PPCG.

    That order is of a hash table, and decides in which order independent statements run. Where the
    hashes of names meet, it depends on the size of the table and on what was put into it before.
    So this does what PPCG does: puts all statements into a large table, the dead ones and those
    that set counters too, and from it those that live into a table of their number. Groups replace
    their members. At last isl puts the bounds that PPCG has for every parameter on a copy; where
    eatss has no bounds, isl would not copy.
    """
    scop = region.scop
    counts = [(s.name, s.domain.dim(SET)) for s in scop.statements]
    counts += scop.ppcg_steps
    counts.sort(key=lambda pair: int(pair[0].removeprefix("S_")))
    universes = "; ".join(
        f"{name}[{', '.join(f'c{k}' for k in range(count))}]" for name, count in counts
    )
    # isl puts the parts of a text into one table, in their order
    text = f"[{', '.join(parameter_names(live.params()))}] -> {{ {universes} }}"
    domain = isl.UnionSet.read_from_str(scop.isl_context, text).intersect(live)
    if grouping is not None:
        domain = domain.apply(isl.UnionMap.from_union_pw_multi_aff(grouping.contraction))
    if scop.parameters and scop.context.plain_is_universe():
        domain = domain.intersect(domain.universe())
    return domain


def on_domain(
    constraints: isl.ScheduleConstraints, domain: isl.UnionSet
) -> isl.ScheduleConstraints:
    """Return the same constraints on another object for the same domain."""
    return (
        isl.ScheduleConstraints.on_domain(domain)
        .set_context(constraints.get_context())
        .set_conditional_validity(
            constraints.get_conditional_validity_condition(),
            constraints.get_conditional_validity(),
        )
        .set_validity(constraints.get_validity())
        .set_coincidence(constraints.get_coincidence())
        .set_proximity(constraints.get_proximity())
    )


def _tagged(scop: Scop) -> list[tuple[Access, isl.UnionMap]]:
    """Return all accesses under PPCG's names, ``[S[i] -> ref[]] -> A[…]``; an update is one.

    PPCG takes it that no access leaves its array.
    """
    extents = {array.name: _extent(array) for array in scop.arrays}
    found: list[tuple[Access, isl.UnionMap]] = []
    numbers: dict[tuple[str, str, SourceSpan], int] = {}
    for item in dependent_accesses(scop):
        statement, access = item.statement, item.access
        number = numbers.setdefault((statement.name, access.array, access.span), item.number)
        elements = access.relation.intersect_range(extents[access.array])
        found.append((access, tagged(item, f"__pet_ref_{number}", elements)))
    return found


def _extent(array: Array) -> isl.Set:
    """Return the elements of an array as PPCG knows them.

    A parameter of a function is a pointer in C, whatever its first size says.
    """
    if array.n_dims and array.origin == "parameter":
        return unbounded_first_dim(array.extent)
    return array.extent


def _live_out(scop: Scop, writes: isl.UnionMap, schedule: isl.Schedule) -> isl.UnionMap:
    """Return the writes that no later one covers, but to arrays that are dead after the region."""
    seen = (array.extent for array in scop.arrays if not array.ppcg_kills)
    kept = universes(scop.no_points, seen)
    later = flow_of(writes, schedule, may=writes).get_full_may_dependence()
    return writes.subtract(later.range_factor_range()).intersect_range(kept)


def _live(region: PpcgRegion, live_out: isl.UnionMap, flow: isl.UnionMap) -> isl.UnionSet:
    """Return the instances that results need, as far as affine hulls can tell."""
    domain = region.scop.domain
    live = live_out.domain()
    for statement in region.scop.statements:
        if statement.name in region.calls:
            live = live.union(statement.domain)
    needs = flow.reverse()
    while True:
        extra = live.apply(needs)
        if extra.is_subset(live):
            return domain.intersect(live)
        live = live.union(extra).affine_hull().intersect(domain)


def _private(scop: Scop) -> frozenset[str]:
    """Return the arrays PPCG can copy for each thread: all subscripts lists start with a constant.

    That is what its test for accesses to one fixed element comes to.
    """
    moving = {
        access.array
        for access in (item.access for item in dependent_accesses(scop))
        if any(constant_value(f) is None for f in output_affs(access.relation)[:1])
    }
    return frozenset(array.name for array in scop.arrays if array.name not in moving)


# -- grouping ------------------------------------------------------------------------------


@frozen
class _Leaf:
    """Statements that run one directly after the other."""

    statements: tuple[Statement, ...]
    domain: isl.UnionSet
    prefix: isl.MultiUnionPwAff


def group_chains(
    region: PpcgRegion, found: PpcgDependences, constraints: isl.ScheduleConstraints
) -> tuple[isl.ScheduleConstraints, Grouping | None]:
    """Group statements as PPCG does, and return the constraints on the groups."""
    near = constraints.get_validity().intersect(constraints.get_proximity())
    live = restricted(region.scop, found.live)
    groups = [
        leaf
        for run in _runs(live, original_schedule(live).get_root())
        for leaf in _merged_nodes(run, near)
        if len(leaf.statements) > 1
    ]
    if not groups:
        return constraints, None
    validity = constraints.get_validity()
    contraction: isl.UnionPwMultiAff | None = None
    members = []
    for number, leaf in enumerate(groups):
        name = f"G_{number}"
        inside = among(validity, leaf.domain)
        part = _contraction(leaf, name)
        if leaf.prefix.dim(OUT):
            inside = validity.eq_at_multi_union_pw_aff(leaf.prefix)
        validity = validity.subtract(inside)
        contraction = part if contraction is None else part.union_add(contraction)
        members.append((name, their_names(leaf.statements)))
    assert contraction is not None
    grouped = {name for _, names in members for name in names}
    others = (one.domain for one in live.statements if one.name not in grouped)
    left = universes(region.scop.no_points, others)
    contraction = left.identity_union_pw_multi_aff().union_add(contraction)
    constraints = constraints.set_validity(validity)
    return constraints.apply(isl.UnionMap.from_union_pw_multi_aff(contraction)), Grouping(
        contraction=contraction, members=tuple(members)
    )


def _runs(scop: Scop, node: isl.ScheduleNode) -> Iterator[list[_Leaf]]:
    """Yield the runs of leaves that stand side by side in a sequence, outer ones first."""
    for one in preorder(node):
        below = branches(one) if node_kind(one) == "sequence" else []
        for is_leaf, run in groupby(below, lambda child: node_kind(child) == "leaf"):
            if is_leaf:
                yield [_leaf(scop, child) for child in run]


def _leaf(scop: Scop, node: isl.ScheduleNode) -> _Leaf:
    domain = node.get_domain()
    names = set_names(domain)
    return _Leaf(
        statements=tuple(s for s in scop.statements if s.name in names),
        domain=domain,
        prefix=node.get_prefix_schedule_multi_union_pw_aff(),
    )


def _merged_nodes(run: Sequence[_Leaf], near: isl.UnionMap) -> list[_Leaf]:
    """Merge neighbours from the last to the first, each merged one tried again."""
    leaves = list(run)
    k = len(leaves) - 2
    while k >= 0:
        if k + 1 < len(leaves) and _belong_together(leaves[k], leaves[k + 1], near):
            first, second = leaves[k], leaves[k + 1]
            leaves[k : k + 2] = [
                _Leaf(
                    statements=first.statements + second.statements,
                    domain=first.domain.union(second.domain),
                    prefix=first.prefix.union_add(second.prefix),
                )
            ]
        else:
            k -= 1
    return leaves


def _belong_together(first: _Leaf, second: _Leaf, near: isl.UnionMap) -> bool:
    """Tell whether some two statements need each other one to one within each round."""
    between = near.intersect_domain(first.domain).intersect_range(second.domain)
    prefix = first.prefix.union_add(second.prefix)
    for relation in maps_of(between):
        sources = first.domain.extract_set(relation.get_space().domain())
        sinks = second.domain.extract_set(relation.get_space().range())
        whole = sources.is_subset(relation.domain()) and sinks.is_subset(relation.range())
        if whole and relation.is_bijective():
            union = relation.to_union_map()
            if not prefix.dim(OUT):
                return True
            if union.is_subset(union.eq_at_multi_union_pw_aff(prefix)):
                return True
    return False


def _contraction(leaf: _Leaf, name: str) -> isl.UnionPwMultiAff:
    """Return the function from the members' instances to those of their group."""
    if not leaf.prefix.dim(OUT):
        space = leaf.prefix.get_space().set_tuple_name(SET, name)
        return isl.UnionPwMultiAff.multi_val_on_domain(leaf.domain, isl.MultiVal.zero(space))
    prefix = leaf.prefix.set_tuple_name(OUT, name)
    return isl.UnionPwMultiAff.from_multi_union_pw_aff(prefix)
