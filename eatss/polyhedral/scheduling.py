"""isl's scheduler, and the check that a schedule keeps all dependences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import product

import islpy as isl

from eatss.base.diagnostics import Diagnostic, IllegalScheduleError, internal_error
from eatss.base.forked import ForkEndedError, Limits, run_forked
from eatss.polyhedral.dependences import at_most, dependent_accesses, tagging, tried
from eatss.polyhedral.isl_names import (
    OUT,
    among,
    coalesced,
    maps_of,
    node_kind,
    renaming,
    set_names,
)
from eatss.polyhedral.kernel import Kernel
from eatss.polyhedral.scop import Dependences, Scop
from eatss.polyhedral.tree import (
    alone,
    bands,
    coincident,
    follows,
    functions,
    is_tilable,
    original_schedule,
    runs_forward,
    with_band,
)

# -- scheduling --------------------------------------------------------------------------------
# A new schedule by isl's scheduler, with the constraints and options PPCG gives it.
#
# Flow and forced dependences are validity; order dependences are conditional validity, with
# the flow dependences as their condition; and a loop is parallel (coincident) only if it
# carries neither of the first nor an order dependence of an array, because an array, unlike
# a scalar, is not copied for each thread.


_FIRST_NUMBER = 17

_TRY = 20_000
"""isl operations of one try, and of each statement in it. PolyBench needs fewer; where numbers of
the scheduler's linear programs grow, isl takes up to 30 times as long for as many operations."""


_FIXED_RANGES = 500_000
"""isl operations for the constraints of the later tries: unions of many pieces."""

TRY_S = 0.8
"""Seconds of the processor of one try; nearly all successful ones take less than half of it."""


def compute_schedule(
    scop: Scop, dependences: Dependences, *, seconds: float = TRY_S
) -> isl.Schedule | None:
    """Compute a schedule of the whole region with outer parallelism and deep tilable bands.

    isl walks statements in the order of a hash of their names, so that names would decide
    which of several equally good schedules it finds. Statements are numbered for it, which
    makes equal regions get equal schedules; the first number is one whose order agrees
    with PPCG's on PolyBench.

    Args:
        scop: the region.
        dependences: its dependences.
        seconds: of the processor, for each try.

    Returns:
        A schedule tree whose bands carry ``permutable`` and ``coincident`` marks, ``None``
        where isl finds none in its bounds.
    """
    numbered = renaming(
        [(s.domain, f"S_{k}") for k, s in enumerate(scop.statements, start=_FIRST_NUMBER)]
    )
    renamed = isl.UnionMap.from_union_pw_multi_aff(numbered)
    # isl would shift a sum of a pass by the length of the one before, and share its loops
    apart = any(one.one_pass for one in scop.statements)
    with scheduler_options(scop.isl_context, max_constant_term=0 if apart else -1):
        schedule = _patiently(scop, dependences, renamed, seconds)
    return None if schedule is None else schedule.pullback_union_pw_multi_aff(numbered)


def _patiently(
    scop: Scop, dependences: Dependences, renamed: isl.UnionMap, seconds: float
) -> isl.Schedule | None:
    """Let isl schedule; where that is long, let it do with fewer freedoms.

    First live ranges of one element no longer change places: conditional validity is what makes the
    linear programs large (a schedule that took 30 seconds takes half a second, and stencils get
    the same one). Then isl no longer avoids coalescing loops, for which it looks at how
    short loops are: with short loops of constant length and dependences between all of their
    instances that did not end in ten minutes. Tries are bounded by operations, so that machines
    take the same steps, and beyond any usual time by time.

    Returns:
        ``None`` where all tries fail.
    """
    operations = try_operations(scop)
    own = schedule_constraints(scop, dependences).apply(renamed)
    schedule = forked_schedule(own, operations, seconds=seconds)
    if schedule is not None:
        return schedule
    kept = tried(scop, _FIXED_RANGES, lambda: fixed_ranges(scop, dependences).apply(renamed))
    if kept is None:
        return None
    for coalescing in (1, 0):
        scop.isl_context.set_schedule_treat_coalescing(coalescing)
        schedule = forked_schedule(kept, operations, seconds=seconds)
        if schedule is not None:
            return schedule
    return None


def forked_schedule(
    constraints: isl.ScheduleConstraints, operations: int, *, seconds: float
) -> isl.Schedule | None:
    """Let isl schedule in a process of its own; return ``None`` where it comes to no end.

    Where its operations run out it may crash, and where numbers grow large it takes long
    for each of them.
    """
    context = constraints.get_ctx()

    def text() -> str | None:
        try:
            with at_most(context, operations):
                return str(constraints.compute_schedule())
        except isl.Error:
            return None

    try:
        found = run_forked(text, Limits(seconds=seconds))
    except ForkEndedError:
        return None
    return None if found is None else isl.Schedule.read_from_str(context, found)


def schedule_constraints(scop: Scop, dependences: Dependences) -> isl.ScheduleConstraints:
    """Return what isl's scheduler has to respect and what it should aim for."""
    return (
        isl.ScheduleConstraints.on_domain(scop.domain)
        .set_context(scop.context)
        .set_conditional_validity(dependences.tagged_flow, dependences.order)
        .set_validity(dependences.validity.union(_parts_first(scop)))
        .set_coincidence(coincidence_dependences(scop, dependences))
        .set_proximity(_proximity(scop, dependences))
    )


def _proximity(scop: Scop, dependences: Dependences) -> isl.UnionMap:
    """Return the dependences whose ends are to stand near each other.

    That a scalar is written again is no reason: each thread has its own. Going by it, isl would
    lay a loop's end beside the next one's start (``512 i + j``). A statement that computes anew
    what another one stores reads what that one reads.
    """
    flow = dependences.flow.union(_recomputed_flow(scop))
    false = dependences.anti.union(dependences.output)
    scalars = _scalar_accesses(scop)
    if scalars.is_empty():
        return flow.union(false)
    by_scalar = dependences.order.intersect_domain(scalars).factor_domain()
    by_array = dependences.order.subtract_domain(scalars).factor_domain()
    return flow.union(false.subtract(by_scalar.subtract(by_array)))


def _parts_first(scop: Scop) -> isl.UnionMap:
    """Return what keeps the sums of one pass together: parts of all come before any is put to use.

    Where a value of a part is read, all values of that part are there.
    """
    found = scop.no_relation
    of_passes = [one for one in scop.statements if one.one_pass]
    for made, user in product(of_passes, of_passes):  # users read their own part's value first
        uses = made.write.array not in made.one_pass and user.write.array in user.one_pass
        if uses and made.one_pass == user.one_pass:
            here = user.reads[0].relation.set_tuple_name(OUT, made.write.array)
            found = found.union(made.write.relation.apply_range(here.reverse()))
    return found


def _recomputed_flow(scop: Scop) -> isl.UnionMap:
    """Return what runs from each instance that stores a value to those that compute it anew."""
    found = scop.no_relation
    for reader in scop.statements:
        for access in reader.recomputed:
            for writer in scop.statements:
                if writer.write.array == access.array:
                    to_readers = writer.write.relation.apply_range(access.relation.reverse())
                    found = found.union(to_readers)
    return found


def try_operations(scop: Scop) -> int:
    """Return how many operations isl has for one try at a schedule."""
    return _TRY * (1 + len(scop.statements))


def fixed_ranges(scop: Scop, dependences: Dependences) -> isl.ScheduleConstraints:
    """Return constraints under which live ranges of one element keep their order.

    They are stricter than those of ``schedule_constraints``, and far easier for isl.
    """
    everything = dependences.validity.union(dependences.anti).union(dependences.output)
    everything = coalesced(everything.union(_parts_first(scop)))
    return (
        isl.ScheduleConstraints.on_domain(scop.domain)
        .set_context(scop.context)
        .set_validity(everything)
        .set_coincidence(everything)
        .set_proximity(coalesced(dependences.validity))
    )


def coincidence_dependences(scop: Scop, dependences: Dependences) -> isl.UnionMap:
    """Return the dependences that no parallel loop may carry.

    Those between updates by a statement that is combined are none: each point has a part.
    """
    return dependences.once(lambda: _coincidence(scop, dependences), "coincidence", of=scop)


def _coincidence(scop: Scop, dependences: Dependences) -> isl.UnionMap:
    array_order = dependences.order.subtract_domain(_scalar_accesses(scop))
    found = dependences.validity.union(array_order.factor_domain())
    for one in scop.statements:
        if one.combined:
            each = one.domain.to_union_set().universe()
            found = found.subtract(isl.UnionMap.from_domain_and_range(each, each))
    return found


def local_dependences(coincidence: isl.UnionMap, node: isl.ScheduleNode) -> isl.UnionMap:
    """Return the dependences between instances that all loops around ``node`` run together."""
    domain = node.get_domain()
    local = among(coincidence, domain)
    if node.get_schedule_depth() == 0:
        return local
    return local.eq_at_multi_union_pw_aff(node.get_prefix_schedule_multi_union_pw_aff())


def carries_nothing(local: isl.UnionMap, node: isl.ScheduleNode, member: int) -> bool:
    """Tell whether a member of a band gives both ends of each dependence the same value."""
    function = node.band_get_partial_schedule().get_at(member)
    together = local.eq_at_multi_union_pw_aff(alone(function))
    return local.is_subset(together)


def original_with_marks(scop: Scop, dependences: Dependences) -> isl.Schedule:
    """Return the program's own schedule with its parallel loops marked, each a band of its own."""
    coincidence = coincidence_dependences(scop, dependences)
    root = original_schedule(scop).get_root()
    return _mark(root, coincidence).get_schedule()


def _mark(node: isl.ScheduleNode, coincidence: isl.UnionMap) -> isl.ScheduleNode:
    if node_kind(node) == "band":
        parallel = carries_nothing(local_dependences(coincidence, node), node, 0)
        node = node.band_member_set_coincident(0, int(parallel)).band_set_permutable(1)
    for position in range(node.n_children()):
        node = _mark(node.child(position), coincidence).parent()
    return node


def in_tilable_bands(scop: Scop, dependences: Dependences) -> isl.Schedule:
    """Return the program's own schedule, parallel loops and those below them in one band.

    That is where no loop of it takes a dependence backwards, so that it may be tiled; parallel ones
    take none, but for scalars that each point has one of.
    """
    own = original_with_marks(scop, dependences).get_root()
    return _tilable(own, dependences.needed).get_schedule()


def _tilable(node: isl.ScheduleNode, needed: isl.UnionMap) -> isl.ScheduleNode:
    for position in range(node.n_children()):
        node = _tilable(node.child(position), needed).parent()
    if not is_tilable(node) or node_kind(node.child(0)) != "band":
        return node
    below = node.child(0)
    loops, marks = functions(node) + functions(below), coincident(node) + coincident(below)
    joined = with_band(below.delete().parent().delete(), loops, marks)
    tilable = all(marks) or runs_forward(local_dependences(needed, node), joined)
    return joined if tilable else node


def _scalar_accesses(scop: Scop) -> isl.UnionSet:
    """Return the tagged instances that access a scalar."""
    scalars = {name for name in scop.written_arrays if not scop.array(name).n_dims}
    tagged = scop.no_points
    for item in dependent_accesses(scop) if scalars else ():
        if item.access.array in scalars:
            tagged = tagged.union(tagging(item.statement, f"__ref{item.number}").wrap())
    return tagged.universe()


_AS_PPCG = {
    "whole_component": 0,
    "maximize_band_depth": 1,
    "maximize_coincidence": 1,
    "outer_coincidence": 1,
    "treat_coalescing": 1,
}
"""Options of isl's scheduler as PPCG sets them for a GPU."""


@contextmanager
def scheduler_options(context: isl.Context, **more: int) -> Iterator[None]:
    """Set isl's scheduler options as PPCG does for a GPU, and ``more``, and put them back."""
    options = _AS_PPCG | more
    before = {name: getattr(context, f"get_schedule_{name}")() for name in options}

    def set_all(values: Mapping[str, int]) -> None:
        for name, value in values.items():
            getattr(context, f"set_schedule_{name}")(value)

    set_all(options)
    try:
        yield
    finally:
        set_all(before)


# -- checks ------------------------------------------------------------------------------------
# Checks between the passes; they always run, and a failure is a fault of eatss.
#
# A schedule is accepted only if isl proves on the whole region, for all sizes, that it runs every
# instance once, respects every dependence, keeps live ranges of one element apart and
# marks no loop parallel that carries a dependence.


def check_legality(scop: Scop, dependences: Dependences, schedule: isl.Schedule) -> None:
    """Check that ``schedule`` computes what the original order computes.

    Raises:
        IllegalScheduleError: ``EATSS-P901``: a dependence is violated, live ranges overlap, a
            parallel loop carries a dependence, or instances of a statement have one time.
        InternalError: ``EATSS-P901``: an instance is lost.
    """
    _require(
        schedule.get_domain().is_equal(scop.domain),
        scop,
        "the new schedule does not run every statement instance exactly once",
    )
    wrong = _wrong_order(scop, dependences, schedule)
    if wrong is not None:
        message = f"internal error: the new schedule {wrong}"
        raise IllegalScheduleError(Diagnostic(code="EATSS-P901", message=message, span=scop.span))


def _wrong_order(scop: Scop, dependences: Dependences, schedule: isl.Schedule) -> str | None:
    """Return what is wrong with the order of a schedule, ``None`` where isl proves it right."""
    relation = schedule.get_map().intersect_domain(scop.domain)
    if not all(part.is_injective() for part in maps_of(relation)):
        return "runs several statement instances at once"
    time = isl.MultiUnionPwAff.from_union_map(relation)
    if not follows(dependences.validity, time):
        return "violates a dependence"
    if live_ranges_overlap(dependences.order, dependences.tagged_flow, time):
        return "overwrites a value that is still needed"
    coincidence = coincidence_dependences(scop, dependences)
    if any(_carries(coincidence, node) for node in bands(schedule.get_root())):
        return "marks a loop parallel that carries a dependence"
    return None


def tagger_of(relation: isl.UnionMap) -> isl.UnionPwMultiAff:
    """Return the function from the tagged instances of a relation to instances."""
    tagged = relation.domain().union(relation.range())
    return tagged.universe().unwrap().domain_map_union_pw_multi_aff()


def live_ranges_overlap(order: isl.UnionMap, flow: isl.UnionMap, time: isl.MultiUnionPwAff) -> bool:
    """Tell whether values of one element that changed places overlap.

    Where a schedule puts a later write before an earlier use, the last use of the later value
    must also come before the earlier value is written.

    Args:
        order: order dependences, tagged by accesses.
        flow: flow dependences, tagged by accesses.
        time: the schedule, of instances without tags.
    """
    if follows(order.factor_domain(), time):
        return False
    tagged_time = time.pullback_union_pw_multi_aff(tagger_of(order.union(flow)))
    swapped = order.lex_ge_at_multi_union_pw_aff(tagged_time)
    ends = swapped.domain().union(swapped.range())
    unread = ends.subtract(flow.domain()).subtract(flow.range()).identity()
    ranges = flow.union(unread)
    pairs = ranges.apply_range(swapped).apply_range(ranges)
    return not pairs.lex_lt_at_multi_union_pw_aff(tagged_time).is_empty()


def _carries(coincidence: isl.UnionMap, node: isl.ScheduleNode) -> bool:
    """Tell whether a loop of a band that is marked parallel carries a dependence."""
    marked = [at for at, mark in enumerate(coincident(node)) if mark]
    if not marked:
        return False
    local = local_dependences(coincidence, node)
    return not all(carries_nothing(local, node, member) for member in marked)


def check_coverage(
    scop: Scop, schedule: isl.Schedule, kernels: Sequence[Kernel], host: Sequence[str]
) -> None:
    """Check that the kernels and the host run every statement instance, each in one place.

    Raises:
        InternalError: ``EATSS-P901``.
    """
    parts = [one.domain.to_union_set() for one in scop.statements if one.name in host]
    parts += [kernel.schedule.domain() for kernel in kernels]
    names = [*host, *(name for kernel in kernels for name in set_names(kernel.schedule.domain()))]
    covered = reduce(isl.UnionSet.union, parts, scop.no_points)
    everything = scop.domain
    _require(
        len(names) == len(set(names))
        and covered.is_equal(everything)
        and schedule.get_domain().is_equal(everything),
        scop,
        "the kernels do not cover every statement instance exactly once",
    )


def _require(condition: bool, scop: Scop, message: str) -> None:
    if not condition:
        raise internal_error("EATSS-P901", message, span=scop.span)
