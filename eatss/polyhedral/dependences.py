"""Accesses as relations, the bound on isl's work, and the dependences of a region."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import TypeVar

import islpy as isl

from eatss.base.diagnostics import (
    Diagnostic,
    IllegalScheduleError,
    InputError,
    IslFailedError,
    NoSolutionError,
    SourceSpan,
    input_error,
)
from eatss.base.frozen import Numbers, frozen
from eatss.base.memo import remembered
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    affine_form,
    affine_text,
    coalesced,
    divisors,
    maps_of,
    outermost,
    output_affs,
    universes,
)
from eatss.polyhedral.scop import Access, Dependences, Place, Scop, Statement
from eatss.polyhedral.tree import original_schedule

_Found = TypeVar("_Found")

# -- accesses ----------------------------------------------------------------------------------
# The accesses that can take part in a dependence, each once.


@frozen
class NumberedAccess:
    """An access with its number among all accesses of the scop, in source order, and its place."""

    number: int
    statement: Statement
    access: Access
    place: Place


def tagging(statement: Statement, tag: str) -> isl.Map:
    """Return ``S[i] -> tag[]``, which tells apart by which access instances are meant."""
    name = isl.Set.read_from_str(statement.domain.get_ctx(), f"{{ {tag}[] }}")
    return isl.Map.from_domain_and_range(statement.domain, name)


def with_accesses(
    statement: Statement, places: Collection[Place], changed: Callable[[Access], Access]
) -> Statement:
    """Return a statement with a change made of the accesses at some places.

    A place stands for all accesses that are spelled alike, by the first of them.
    """
    firsts = first_equal(statement.accesses)
    own = [(statement.name, first) in places for first in firsts]
    if not any(own):
        return statement
    pairs = zip(statement.accesses, own, strict=True)
    accesses = tuple(changed(access) if is_own else access for access, is_own in pairs)
    return replace(statement, accesses=accesses)


def spelled(access: Access, relation: isl.Map, within: isl.Set | None = None) -> Access:
    """Return an access of other elements, by the outermost counters that are equal ``within``."""
    array, found = relation.get_tuple_name(OUT), output_affs(relation)
    if within is not None:
        found = tuple(outermost(one, within) for one in found)
    forms = [*map(affine_form, found)]
    text = array + "".join(f"[{affine_text(one)}]" for one in forms if one is not None)
    if None in forms and array == access.array:
        text = access.text
    return replace(access, array=array, relation=relation, text=text)


def dependent_accesses(scop: Scop) -> tuple[NumberedAccess, ...]:
    """Return the accesses to arrays that the region writes, without repetitions.

    Reads of an array that nothing writes depend on nothing, and a statement that reads
    one element twice depends on it once. Leaving both out keeps a sum of thousands
    of terms cheap.
    """
    written = scop.written_arrays
    found: list[NumberedAccess] = []
    number = 0
    for statement in scop.statements:
        firsts = first_equal(statement.accesses)
        for position, access in enumerate(statement.accesses):
            if access.array in written and firsts[position] == position:
                place = (statement.name, position)
                found.append(
                    NumberedAccess(number=number, statement=statement, access=access, place=place)
                )
            number += 1
    return tuple(found)


def first_equal(accesses: Sequence[Access]) -> Numbers:
    """Return, for each access, the position of the first one spelled alike with the same relation.

    Relations are compared as sets: isl simplifies them as they are used, so that two
    equal ones need not print alike.
    """
    seen: dict[tuple[bool, str, str], list[int]] = {}
    firsts = []
    for position, access in enumerate(accesses):
        alike = seen.setdefault((access.is_write, access.array, access.text), [])
        own = access.relation
        others = ((at, accesses[at].relation) for at in alike)
        equal = (at for at, one in others if one.plain_is_equal(own) or one.is_equal(own))
        first = next(equal, position)
        if first == position:
            alike.append(position)
        firsts.append(first)
    return tuple(firsts)


# -- isl limits --------------------------------------------------------------------------------
# A bound on isl's work, so that a hard region ends in an error and not in a hang.


MAX_OPERATIONS = 10_000_000
"""isl operations one region may take by default; PolyBench needs at most half."""

OPERATIONS_PER_ACCESS = 1000
"""What each access adds: long sums need isl operations in proportion to their length."""


_MOST_BITS = 40


def refuse_unfit(scop: Scop) -> None:
    """Refuse a region that does nothing, with what has no elements, or with too large divisions.

    isl makes one of several remainders, whose divisor and offset no number of C may hold.

    Raises:
        InputError: ``EATSS-P006`` no statements, ``EATSS-P007`` an array without elements,
            ``EATSS-P001`` too many or too large divisions; carries all findings.
    """
    if not scop.statements:
        raise input_error(
            "EATSS-P006",
            "the region does nothing: every loop is empty at these sizes",
            span=scop.span,
            hint="give sizes greater than zero with -D or --param",
        )
    used = scop.used_arrays
    empty = [a for a in scop.arrays if a.name in used and a.n_dims and a.extent.is_empty()]
    if empty:
        raise InputError(
            *(
                Diagnostic(
                    code="EATSS-P007",
                    message=f"the region uses elements of '{array.name}', which has none",
                    span=scop.span,
                    hint="declare the array with the size that it has",
                )
                for array in empty
            )
        )
    for statement in scop.statements:
        relations = {one.relation.wrap() for one in statement.accesses}
        found = [divisors(one) for one in (statement.domain, *relations)]
        if any(len(own) > 8 or prod(own).bit_length() > _MOST_BITS for own in found):
            raise input_error(
                "EATSS-P001",
                "too many or too large integer divisions and remainders",
                span=statement.span,
                hint=f"up to 8 are supported, whose divisors multiply to less than 2^{_MOST_BITS}",
            )


def default_operations(scop: Scop) -> int:
    """Return the bound on isl's work for a region ."""
    accesses = sum(len(statement.accesses) for statement in scop.statements)
    return MAX_OPERATIONS + OPERATIONS_PER_ACCESS * accesses


@contextmanager
def bounded_work(scop: Scop, operations: int | None = None) -> Iterator[None]:
    """Let isl spend at most so many basic operations on ``scop``.

    ``None`` stands for :func:`default_operations`.

    The bound counts from here and is lifted at the end. It is a count, not a time, so the
    outcome is the same on every machine.

    Raises:
        InputError: ``EATSS-P001`` when the operations run out.
    """
    context = scop.isl_context
    operations = operations or default_operations(scop)
    context.reset_operations()
    context.set_max_operations(operations)
    exhausted = False
    try:
        yield
    except isl.Error as error:
        exhausted = "operations exceeded" in str(error) or ran_out(scop)
        if not exhausted:
            raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()
    if exhausted:  # raised here so that it does not drag isl's error along
        raise input_error(
            "EATSS-P001",
            f"polyhedral analysis gave up after {operations} operations",
            span=scop.span,
            hint="mark a smaller region",
        )


@contextmanager
def at_most(context: isl.Context, operations: int) -> Iterator[None]:
    """Let isl spend at most ``operations`` on a step, and no more than the work around it has left.

    What the step spends counts for the work around it too. Where the step runs out, isl's error is
    raised; work goes on after it as long as ``ran_out`` says no.
    """
    around = context.get_max_operations()
    if around:
        context.set_max_operations(min(around, _spent(context, around) + operations))
    else:
        context.reset_operations()
        context.set_max_operations(operations)
    try:
        yield
    finally:
        context.set_max_operations(around)
        if not around:
            context.reset_operations()


def _spent(context: isl.Context, most: int) -> int:
    """Return how many operations count already; isl only tells whether a bound is exceeded."""
    least = 0
    while least < most:
        middle = (least + most) // 2
        context.set_max_operations(middle + 1)
        if _can_work(context):
            most = middle
        else:
            least = middle + 1
    return most


def _can_work(context: isl.Context) -> bool:
    try:
        isl.Set.read_from_str(context, "{ [i] : 0 <= i < 2 }").is_empty()
    except isl.Error:
        return False
    return True


def ran_out(scop: Scop) -> bool:
    """Tell whether the operations ran out, and not those of a step only.

    isl may report an error that follows from it; then even trivial work fails.
    """
    return not _can_work(scop.isl_context)


REFUSALS = (InputError, NoSolutionError, IllegalScheduleError, IslFailedError, isl.Error)
"""What tells that one of several ways is none; all other errors are faults, and are shown."""


def tried(
    scop: Scop,
    operations: int,
    step: Callable[[], _Found],
    failure: type[Exception] = isl.Error,
) -> _Found | None:
    """Return what a step finds, ``None`` where isl fails or it ends with ``failure``.

    The step may take ``operations``; isl's error is raised where those of the whole work ran out.
    """
    try:
        with at_most(scop.isl_context, operations):
            return step()
    except (isl.Error, failure):
        if ran_out(scop):
            raise
        return None


# -- source lines ------------------------------------------------------------------------------
# Findings of passes after the front end, with the lines of the source that they point at.


@contextmanager
def source_lines(what: str = "", span: SourceSpan | None = None) -> Iterator[None]:
    """Add the lines of the source to findings of later passes, and name what isl failed at.

    Raises:
        IslFailedError: ``EATSS-X002``.
    """
    try:
        yield
    except InputError as error:
        raise InputError(*map(with_source_line, error.diagnostics)) from None
    except isl.Error as error:
        message = f"isl failed {what}: {error}"
        raise IslFailedError(Diagnostic(code="EATSS-X002", message=message, span=span)) from error


def with_source_line(finding: Diagnostic) -> Diagnostic:
    """Add the text of the line that a finding points at."""
    if finding.span is None or finding.source_line is not None:
        return finding
    line = linecache.getline(finding.span.file, finding.span.line).rstrip("\r\n")
    return replace(finding, source_line=line or None)


# -- dependences -------------------------------------------------------------------------------
# Dependences between statement instances, by isl dataflow.
#
# The sets follow the live-range reordering of PPCG (Verdoolaege and Cohen, "Live-range
# reordering", IMPACT 2016): a value and its uses form a live range; ranges of the same element
# may change places as long as they do not overlap. Flow and *forced* dependences hold
# always, *order* dependences only where one of the adjacent live ranges is not local
# to a point of the schedule, so that private scalars do not serialise a loop.


_STEP = 300_000
"""isl operations for one of the relations, at first exactly; fdtd-apml needs 220 000."""


_MOST_PIECES = 8
"""Pieces of a statement of which isl finds the next write of elements in that time."""


@frozen
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
    for item in dependent_accesses(scop):
        statement, access = item.statement, item.access
        made = tagged(item, f"__ref{item.number}", access.relation)
        if access.is_write:
            writes = writes.union(made)
        else:
            reads = reads.union(made)
            if access.array == statement.write.array:
                own = access.relation.intersect(statement.write.relation).domain()
                tag = made.domain().unwrap().intersect_domain(own)
                updates = updates.union(tag.wrap())
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
    statement.
    """
    empty = scop.no_relation
    by_tag: dict[tuple[str, str], isl.UnionMap] = {}
    for relation in maps_of(tagged_flow):
        sink = relation.range().unwrap()
        instance, tag = (sink.get_tuple_name(k) for k in (IN, OUT))
        plain = relation.to_union_map().factor_domain()
        by_tag[instance, tag] = by_tag.get((instance, tag), empty).union(plain)
    return {
        item.place: by_tag.get((item.statement.name, f"__ref{item.number}"), empty)
        for item in dependent_accesses(scop)
        if not item.access.is_write
    }


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
    return without_tags(tagged_dependences(scop))


@remembered
def tagged_dependences(scop: Scop) -> Dependences:
    """Return :func:`compute_dependences`, all between tagged instances: by accesses."""
    accesses = tag_accesses(scop)
    flow = flow_of(accesses.reads, accesses.schedule, must=accesses.writes)
    tagged_flow = flow.get_may_dependence()
    false = _false(scop, accesses)
    output = false.intersect_domain(accesses.writes.domain())
    return Dependences(
        flow=tagged_flow,
        anti=false.intersect_domain(accesses.reads.domain()).subtract_domain(accesses.updates),
        output=output,
        forced=_forced(scop, accesses, flow, output),
        tagged_flow=tagged_flow,
        order=_order(scop, accesses, tagged_flow),
    )


def without_tags(found: Dependences) -> Dependences:
    """Return dependences between tagged instances as those of a region."""
    return replace(
        found,
        flow=found.flow.factor_domain(),
        anti=coalesced(found.anti.factor_domain()),
        output=coalesced(found.output.factor_domain()),
        forced=found.forced.factor_domain(),
    )


def _false(scop: Scop, accesses: TaggedAccesses) -> isl.UnionMap:
    """Return what runs from each access to the next write of its element, or to all later ones."""
    may = accesses.reads.union(accesses.writes)

    def to_next() -> isl.UnionMap:
        next_write = flow_of(
            accesses.writes, accesses.schedule, must=accesses.writes, may=accesses.reads
        )
        return next_write.get_may_dependence()

    pieces = Counter(one.piece_of for one in scop.statements if one.piece_of)
    if max(pieces.values(), default=0) > _MOST_PIECES:
        return _before(accesses, accesses.writes, may)
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
    return before_last.union(after_first)


def _exact_or(
    scop: Scop, exact: Callable[[], isl.UnionMap], more: Callable[[], isl.UnionMap]
) -> isl.UnionMap:
    """Return a relation, or where isl takes long for it one that has it in it."""
    found = tried(scop, _STEP, exact)
    return more() if found is None else found
