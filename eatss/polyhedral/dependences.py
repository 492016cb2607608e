"""Dependences between statement instances, by isl dataflow.

The sets follow the live-range reordering of PPCG (Verdoolaege and Cohen, "Live-range
reordering", IMPACT 2016): a value and its uses form a live range; ranges of the same element
may change places as long as they do not overlap. Flow and *forced* dependences hold
always, *order* dependences only where one of the adjacent live ranges is not local
to a point of the schedule, so that private scalars do not serialise a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import islpy as isl

from eatss.polyhedral.accesses import NumberedAccess, Place, dependent_accesses, tagging
from eatss.polyhedral.isl_limits import at_most, ran_out
from eatss.polyhedral.isl_names import IN, OUT, coalesced, maps_of, universes
from eatss.polyhedral.original_schedule import original_schedule
from eatss.polyhedral.program import Dependences
from eatss.polyhedral.scops import Access, Scop

_STEP = 300_000
"""isl operations for one of the relations, at first exactly; fdtd-apml needs 220 000."""


@dataclass(frozen=True, slots=True)
class TaggedAccesses:
    """All accesses of a scop with the reference they come from.

    ``reads`` and ``writes`` map ``[S[i] -> __refN[]]`` to array elements; ``updates`` are
    the tagged instances that read what they write themselves; ``schedule`` is the original
    schedule of tagged instances.
    """

    reads: isl.UnionMap
    writes: isl.UnionMap
    updates: isl.UnionSet
    schedule: isl.Schedule


def tag_accesses(scop: Scop) -> TaggedAccesses:
    """Give every access that may take part in a dependence an identity of its own."""
    empty = scop.no_relation
    reads, writes = empty, empty
    updates = scop.no_points
    grouped = False
    for item in dependent_accesses(scop):
        statement, access = item.statement, item.access
        grouped |= item.tag != item.number
        made = tagged(item, f"__ref{item.tag}", access.relation)
        if access.is_write:
            writes = writes.union(made)
        else:
            reads = reads.union(made)
            if access.array == statement.write.array:
                own = access.relation.intersect(statement.write.relation).domain()
                tag = made.domain().unwrap().intersect_domain(own)
                updates = updates.union(tag.wrap())
    reads = coalesced(reads) if grouped else reads
    tagged_domain = reads.union(writes).domain().universe().unwrap()
    tagger = tagged_domain.domain_map_union_pw_multi_aff()
    return TaggedAccesses(
        reads=reads,
        writes=writes,
        updates=updates,
        schedule=original_schedule(scop).pullback_union_pw_multi_aff(tagger),
    )


def flow_by_read(scop: Scop, tagged_flow: isl.UnionMap) -> dict[Place, isl.UnionMap]:
    """Return from which instances each read has its values, by statement and position.

    Reads of arrays that nothing writes are left out, and those that repeat another of their
    statement. Of reads that share a tag each has what is written to its own elements.
    """
    empty = scop.no_relation
    by_tag: dict[tuple[str, str], isl.UnionMap] = {}
    for relation in maps_of(tagged_flow):
        sink = relation.range().unwrap()
        instance, tag = (sink.get_tuple_name(k) for k in (IN, OUT))
        plain = relation.to_union_map().factor_domain()
        by_tag[instance, tag] = by_tag.get((instance, tag), empty).union(plain)
    reads = [item for item in dependent_accesses(scop) if not item.access.is_write]
    sharing = Counter(item.tag for item in reads)
    found: dict[Place, isl.UnionMap] = {}
    for item in reads:
        flow = by_tag.get((item.statement.name, f"__ref{item.tag}"), empty)
        if sharing[item.tag] > 1:
            flow = flow.intersect(_to_elements_of(scop, item.access))
        found[item.place] = flow
    return found


def _to_elements_of(scop: Scop, read: Access) -> isl.UnionMap:
    """Return what runs from each write to the instances of a read of the same element."""
    found = scop.no_relation
    back = read.relation.reverse()
    for statement in scop.statements:
        if statement.write.array == read.array:
            found = found.union(statement.write.relation.apply_range(back))
    return found


def tagged(item: NumberedAccess, tag: str, elements: isl.Map) -> isl.UnionMap:
    """Return ``[S[i] -> tag[]] -> A[…]``."""
    relation = elements.intersect_domain(item.statement.domain)
    instances = tagging(item.statement, tag).range_product(relation)
    return instances.uncurry().to_union_map()


def flow_of(
    sink: isl.UnionMap,
    schedule: isl.Schedule,
    *,
    must: isl.UnionMap | None = None,
    may: isl.UnionMap | None = None,
    kill: isl.UnionMap | None = None,
) -> isl.UnionFlow:
    """Return where values come from: for each sink the last source before it."""
    info = isl.UnionAccessInfo.from_sink(sink)
    if kill is not None:
        info = info.set_kill(kill)
    if must is not None:
        info = info.set_must_source(must)
    if may is not None:
        info = info.set_may_source(may)
    return info.set_schedule(schedule).compute_flow()


def compute_dependences(scop: Scop) -> Dependences:
    """Compute the dependences of ``scop``.

    Args:
        scop: the region; its accesses must be exact and its writes unconditional on
            each point of the statement's domain.

    Returns:
        Relations between statement instances; ``tagged_flow`` and ``order`` between
        tagged instances ``[S[i] -> __refN[]]``, ``N`` counting accesses in source order.
    """
    accesses = tag_accesses(scop)
    flow = flow_of(accesses.reads, accesses.schedule, must=accesses.writes)
    tagged_flow = flow.get_may_dependence()
    false = _false(scop, accesses)
    anti = false.intersect_domain(accesses.reads.domain()).subtract_domain(accesses.updates)
    output = false.intersect_domain(accesses.writes.domain())
    return Dependences(
        flow=tagged_flow.factor_domain(),
        anti=coalesced(anti.factor_domain()),
        output=coalesced(output.factor_domain()),
        forced=_forced(scop, accesses, flow, output),
        tagged_flow=tagged_flow,
        order=_order(scop, accesses, tagged_flow),
    )


def _false(scop: Scop, accesses: TaggedAccesses) -> isl.UnionMap:
    """Return what runs from each access to the next write of its element, or to all later ones."""
    may = accesses.reads.union(accesses.writes)

    def to_next() -> isl.UnionMap:
        next_write = flow_of(
            accesses.writes, accesses.schedule, must=accesses.writes, may=accesses.reads
        )
        return next_write.get_may_dependence()

    return _exact_or(scop, to_next, lambda: _before(accesses, accesses.writes, may))


def _order(scop: Scop, accesses: TaggedAccesses, tagged_flow: isl.UnionMap) -> isl.UnionMap:
    """Return the order dependences: from the reads of a value to every later write.

    A value that is never read counts as its own last use; where it is too hard to tell, each does.
    """

    def exact() -> isl.UnionMap:
        unread = accesses.writes.subtract_domain(tagged_flow.domain())
        return _before(accesses, accesses.writes, accesses.reads.union(unread))

    uses = accesses.reads.union(accesses.writes)
    return _exact_or(scop, exact, lambda: _before(accesses, accesses.writes, uses))


def _before(accesses: TaggedAccesses, sink: isl.UnionMap, source: isl.UnionMap) -> isl.UnionMap:
    """Return what runs from each source to all sinks of its element after it."""
    return flow_of(sink, accesses.schedule, may=source).get_may_dependence()


def _forced(
    scop: Scop, accesses: TaggedAccesses, flow: isl.UnionFlow, output: isl.UnionMap
) -> isl.UnionMap:
    """Return what protects values from outside the region and the values it leaves.

    Reads of live-in values stay before every later write, and the last write of an element
    that lives on stays behind every earlier one. Values of arrays declared inside
    the region do not live on. That they do not come from outside either is only so in a
    correct program; a read of such an array before any write stays where it is too.

    Which writes are last, and which reads come first, may be many pieces. Where that is too hard,
    all writes of an element that lives on keep their order, or all reads of such arrays stay
    before later writes.
    """
    outside = (array.extent for array in scop.arrays if not array.is_local)
    visible = universes(scop.no_points, outside)
    live_in = flow.get_may_no_source()
    unknown = accesses.reads.intersect_range(live_in.range().universe())
    last = accesses.writes.intersect_range(visible)

    def exact_before_last() -> isl.UnionMap:
        return _before(accesses, last.subtract_domain(output.domain()), accesses.writes)

    before_last = _exact_or(scop, exact_before_last, lambda: _before(accesses, last, last))
    after_first = _exact_or(
        scop,
        lambda: _before(accesses, accesses.writes, live_in),
        lambda: _before(accesses, accesses.writes, unknown),
    )
    return before_last.union(after_first).factor_domain()


def _exact_or(
    scop: Scop, exact: Callable[[], isl.UnionMap], more: Callable[[], isl.UnionMap]
) -> isl.UnionMap:
    """Return a relation, or where isl takes long for it one that has it in it."""
    try:
        with at_most(scop.isl_context, _STEP):
            return exact()
    except isl.Error:
        if ran_out(scop):
            raise
    return more()
