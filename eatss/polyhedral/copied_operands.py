"""Operands that are overwritten later are read from a copy: a false dependence less.

``for (i …) for (k > i …) B[i][j] += A[k][i] * B[k][j];`` reads rows of ``B`` before they are
written. So ``i`` has to run in order, only because values change their place. Read from a copy
that is made before everything else, the rows are independent of each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import islpy as isl

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen, their_names
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import (
    dependent_accesses,
    first_equal,
    flow_of,
    tag_accesses,
    tagging,
    with_accesses,
)
from eatss.polyhedral.expression import Array, Read
from eatss.polyhedral.isl_names import OUT, SET, map_between, universes, with_names
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scheduling import (
    carries_nothing,
    coincidence_dependences,
    local_dependences,
)
from eatss.polyhedral.scop import Access, AccessKind, Dependences, Place, Scop, Statement
from eatss.polyhedral.tree import bands, coincident


@dataclass(frozen=True, slots=True, eq=False)
class _EarlyRead:
    """A read all of whose values are from before the region.

    ``instances`` are the tagged instances of it.
    """

    place: Place
    array: Array
    instances: isl.UnionSet


def operands_to_copy(scheduled: ScheduledScop) -> frozenset[Place]:
    """Return the reads that are worth a copy: those that keep a loop from being parallel.

    A loop counts if it carries nothing but dependences from reads of values from before the region
    to later writes, and sums: a sum may become an inner loop. A copy moves every element once. That
    pays if there is more work than elements (more loops around the read than the array has
    dimensions), if the loop runs on the host, launch by launch, or if nothing is parallel.

    No second schedule is computed: whether isl makes more of the loops without these dependences
    is for :func:`frees_loops`.
    """
    scop, dependences = scheduled.scop, scheduled.dependences
    reads = {
        one: dependences.order.intersect_domain(one.instances).factor_domain()
        for one in _early_reads(scop, dependences.tagged_flow)
    }
    if all(later.is_empty() for later in reads.values()):
        return frozenset()
    rest = _without(scop, dependences, reads)
    loops = _loops(scheduled)
    found = set()
    every = bands(scheduled.schedule.get_root())
    serial = ((band, at) for band in every for at, own in enumerate(coincident(band)) if not own)
    for node, member in serial:
        if not carries_nothing(local_dependences(rest, node), node, member):
            continue
        keeping = [
            one
            for one, later in reads.items()
            if not carries_nothing(local_dependences(later, node), node, member)
        ]
        depth = node.get_schedule_depth()
        if all(_pays(scop, one, loops, depth) for one in keeping):
            found |= {one.place for one in keeping}
    return frozenset(found)


def with_copied_operands(scop: Scop, places: Collection[Place]) -> Scop:
    """Return a region in which some reads are from copies that are made before all else.

    The region itself where one of the reads may get a value that the region wrote.
    """
    if not places or not _are_early(scop, places):
        return scop
    arrays, statements = list(scop.arrays), list(scop.statements)
    copies: list[Statement] = []
    read = {place: scop.access(place) for place in sorted(places)}
    for array in scop.arrays:
        own = {place: access for place, access in read.items() if access.array == array.name}
        if not own:
            continue
        taken = scop.names.union(their_names(arrays), their_names(copies))
        copy = _copy_of(array, tuple(own.values()), taken)
        first, time = next(iter(own.values())), -1 - len(copies)
        arrays.append(copy)
        copies.append(copying(scop, array, copy, copy.extent, first.span, time, taken))
        from_copy = partial(_from_copy, copy=copy.name)
        statements = [with_accesses(one, own, from_copy) for one in statements]
    return replace(scop, arrays=tuple(arrays), statements=(*copies, *statements))


def copied_places(scop: Scop) -> frozenset[Place]:
    """Return the reads of a region that are from copies."""
    copies = {array.name for array in scop.arrays if array.copy_of}
    return frozenset(
        (one.name, first)
        for one in scop.statements
        for first in first_equal(one.accesses)
        if one.accesses[first].array in copies and not one.accesses[first].is_write
    )


def frees_loops(before: ScheduledScop, after: ScheduledScop, *, one_thread: bool = False) -> bool:
    """Tell whether changes make loops parallel, or keep them from the host, and cost none.

    ``one_thread`` says that loops may go to the host around what ran in one thread.
    """
    first, then = _loops(before), _loops(after)
    pairs = [(first[name], then[name]) for name in first if name in then]
    return all(
        now.parallel >= was.parallel and (now.host <= was.host or (one_thread and not was.parallel))
        for was, now in pairs
    ) and any(now != was for was, now in pairs)


@frozen
class _Loops:
    """How many loops around a statement are parallel, and how many run on the host."""

    parallel: int
    host: int


def _loops(scheduled: ScheduledScop) -> Mapping[str, _Loops]:
    """Return the loops around each statement; none around one that is in no kernel."""
    found = {one.name: _Loops(parallel=0, host=0) for one in scheduled.scop.statements}
    for name, kernel in scheduled.kernel_of.items():
        found[name] = _Loops(parallel=len(kernel.parallel_loops), host=len(kernel.host_loops))
    return found


def _without(scop: Scop, dependences: Dependences, reads: Collection[_EarlyRead]) -> isl.UnionMap:
    """Return what keeps loops from being parallel but some reads, and sums."""
    nothing = scop.no_relation
    order = dependences.order
    for one in reads:
        order = order.subtract_domain(one.instances)
    # forced dependences follow from these: reads come before later writes
    rest = coincidence_dependences(scop, replace(dependences, forced=nothing, order=order))
    for statement in scop.statements:
        write = statement.write.relation
        if any(_is_update(statement, access) for access in statement.reads):
            rest = rest.subtract(write.apply_range(write.reverse()))
    return rest


def _is_update(statement: Statement, access: Access) -> bool:
    """Tell whether a statement reads what it writes itself."""
    return access.relation.is_subset(statement.write.relation)


def _early_reads(scop: Scop, flow: isl.UnionMap) -> Iterator[_EarlyRead]:
    """Yield the reads of arrays whose values are all from before the region.

    What a statement adds to is none of them: it is read where it is written. ``flow`` is the tagged
    flow to the reads.
    """
    fed = flow.range()
    depth = scop.statements[0].schedule.dim(OUT) // 2
    for item in dependent_accesses(scop):
        access, statement = item.access, item.statement
        array = scop.array(access.array)
        if access.is_write or not array.n_dims or array.is_local:
            continue
        if array.n_dims > depth or _is_update(statement, access):
            continue  # vectors of time are too short for the loops of a copy, or it is an update
        instances = tagging(statement, f"__ref{item.number}").wrap().to_union_set()
        if fed.intersect(instances).is_empty():
            yield _EarlyRead(item.place, array, instances)


def _pays(scop: Scop, read: _EarlyRead, loops: Mapping[str, _Loops], depth: int) -> bool:
    """Tell whether a copy is less work than it saves where it frees a loop at a depth."""
    statement = scop.statement(read.place[0])
    own = loops[statement.name]
    more_work = len(statement.loops) > read.array.n_dims
    return more_work or depth < own.host or not own.parallel


def _are_early(scop: Scop, places: Collection[Place]) -> bool:
    """Tell whether no value that reads get was written by the region."""
    accesses = tag_accesses(scop)
    arrays = universes(scop.no_points, (scop.access(one).relation.range() for one in places))
    flow = flow_of(
        accesses.reads.intersect_range(arrays),
        accesses.schedule,
        must=accesses.writes.intersect_range(arrays),
    )
    early = {one.place for one in _early_reads(scop, flow.get_may_dependence())}
    return early.issuperset(places)


def _copy_of(array: Array, reads: Sequence[Access], taken: set[str]) -> Array:
    """Return the copy of what some accesses read of an array."""
    extent = reduce(isl.Set.union, (access.relation.range() for access in reads))
    name = free_name(f"{array.name}_before", taken)
    return Array(
        name=name,
        element_type=array.element_type,
        extent=array.extent.intersect(extent).coalesce().set_tuple_name(name),
        n_dims=array.n_dims,
        is_local=True,
        origin="local",
        source_name=name,
        copy_of=array.name,
    )


def copying(
    scop: Scop,
    of: Array,
    to: Array,
    points: isl.Set,
    span: SourceSpan,
    position: int,
    taken: set[str],
) -> Statement:
    """Return the statement that copies elements, at a textual position among all others.

    ``points`` are those of the array with more dimensions; the other one has the last of them.
    """
    name = free_name("S_copy", taken)
    loops = tuple(free_name(f"c{k}", taken) for k in range(points.dim(SET)))
    domain = with_names(points, SET, loops).set_tuple_name(name)
    time = [str(position), *(entry for loop in loops for entry in (loop, "0"))]
    time += ["0"] * (scop.statements[0].schedule.dim(OUT) - len(time))

    def access(kind: AccessKind, array: Array) -> Access:
        others = len(loops) - array.n_dims
        return Access(
            array=array.name,
            kind=kind,
            relation=domain.identity().project_out(OUT, 0, others).set_tuple_name(OUT, array.name),
            text=array.name + "".join(f"[{loop}]" for loop in loops[others:]),
            span=span,
        )

    write, read = access(AccessKind.WRITE, to), access(AccessKind.READ, of)
    return Statement(
        name=name,
        loops=loops,
        domain=domain,
        schedule=map_between(domain, (name, loops), ("", time)).intersect_domain(domain),
        accesses=(write, read),
        value=Read(1),
        text=f"{write.text} = {read.text};",
        span=span,
    )


def _from_copy(access: Access, copy: str) -> Access:
    relation = access.relation.set_tuple_name(OUT, copy)
    return replace(
        access, array=copy, relation=relation, text=copy + access.text[access.text.find("[") :]
    )
