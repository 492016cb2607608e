"""A region in, its schedule and kernels out; constants become symbols where that is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, count, product

import islpy as isl

from eatss.base.classes import Classes
from eatss.base.diagnostics import IllegalScheduleError, InputError, input_error
from eatss.base.frozen import frozen, their_names
from eatss.polyhedral.dependences import (
    bounded_work,
    compute_dependences,
    first_equal,
    ran_out,
    refuse_unfit,
)
from eatss.polyhedral.isl_names import (
    DIV,
    OUT,
    Constraint,
    affine_form,
    at_values,
    coalesced,
    constraints_on,
    node_kind,
    output_affs,
    parameters_set,
    with_parameters,
    with_sizes,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.kernels import build_kernels
from eatss.polyhedral.scheduling import (
    TRY_S,
    check_coverage,
    check_legality,
    compute_schedule,
    in_tilable_bands,
)
from eatss.polyhedral.scop import MOST_ORDER, Access, Dependences, Scop, Statement
from eatss.polyhedral.tree import (
    branches,
    children,
    cut_tree,
    marked_like,
    with_parts,
)
from eatss.program.expression import SizePairs

# -- symbolic ----------------------------------------------------------------------------------
# Sizes that are numbers in the source become parameters while the region is scheduled.
#
# With ``N`` a macro for 4000 the scheduler would see 4000 itself: its integer programs grow with
# such numbers (minutes instead of milliseconds), and it might exploit that two unrelated sizes are
# equal. What holds for every size holds for the one in the source, so the region is generalised,
# scheduled, and the sizes are put back.
#
# Which constants are one size follows from the source where one macro spells them all, else
# from the arrays: a loop and the dimensions it subscripts share their sizes, as do loops
# bounded by one another.


_LARGE = 16  # smaller constants are offsets (A[i - 1]) unless they bound a loop from above
_NEAR = 16  # constants this near to a size are that size and an offset (N - 2)


@frozen
class Symbolic:
    """A region with its numeric sizes as parameters, and the numbers they stand for."""

    scop: Scop
    values: SizePairs


def generalise(scop: Scop) -> Symbolic:
    """Replace the numeric sizes of ``scop`` by parameters.

    Not those of classes, nor of sums of one pass: by a parameter isl would shift a sum, as by the
    length of the one before, which it may not by a number.
    """
    sizes = _Sizes(scop)
    if scop.class_size or not sizes.names or any(one.one_pass for one in scop.statements):
        return Symbolic(scop=scop, values=())
    symbolic = replace(
        scop,
        parameters=(*scop.parameters, *sizes.names),
        context=with_parameters(scop.context, tuple(sizes.names)),
        statements=tuple(_statement(one, sizes) for one in scop.statements),
    )
    return Symbolic(scop=symbolic, values=tuple(sizes.names.items()))


def _places(statement: Statement, access: Access | None = None) -> list[str]:
    """Return the loops of a statement, and the dimensions of what it accesses, each by its owner.

    The owner comes first: places are numbered in the order of their names.
    """
    places = [f"{statement.name} {loop}" for loop in statement.loops]
    if access is not None:
        places += [f"{access.array} d{k}" for k in range(access.relation.dim(OUT))]
    return places


class _Sizes:
    """Finds the sizes: classes of loops and array dimensions, and the constants in each.

    ``names`` are the parameters with the numbers they stand for. Constants up to the stride
    of chunks may be offsets: they are no size that is only near, and larger ones are a size less
    an offset.
    """

    def __init__(self, scop: Scop) -> None:
        self._classes = _classes(scop)
        self._chunks = {one.name: one.chunk for one in scop.statements if one.chunk}
        self._digits = {one for statement in scop.statements for one in _digits(statement)}
        self._span = max(map(_stride, scop.statements), default=0)
        self._clusters: dict[int, list[tuple[str, int]]] = {}
        self.names: dict[str, int] = {}
        taken = {*scop.parameters, *their_names(scop.arrays)}
        fresh = (name for k in count() if (name := f"size{k}") not in taken)
        macros = [pair for pair in _macros_that_help_fusion(scop) if pair[0] not in taken]
        sizes = {
            (place, abs(bound.constant))
            for statement in scop.statements
            for bound in _bounds(statement)
            if self._is_size(bound) and (place := self._class_of(bound)) is not None
        }
        spelled = {value: _spelled(value, macros) for _, value in sizes}
        for place, value in sorted(sizes, key=lambda size: (size[0], -size[1])):
            if not self._near(place, value):
                macro = spelled[value]
                # the largest number of a macro leaves its bounds without an offset
                size = max(v for v in spelled if v == value or (macro and spelled[v] == macro))
                name = macro or next(fresh)
                self.names[name] = size
                self._clusters.setdefault(place, []).append((name, size))

    def _class_of(self, bound: Constraint) -> int | None:
        places = {self._classes.get(place) for place, _ in bound.terms}
        return places.pop() if len(places) == 1 else None

    def _near(self, place: int, value: int) -> tuple[str, int] | None:
        for name, size in self._clusters.get(place, ()):
            near = max(_NEAR, self._span) if value > self._span else 1
            if size == value or (value >= _LARGE and abs(size - value) <= near):
                return name, size
        return None

    def size_in(self, bound: Constraint) -> tuple[str, int] | None:
        """Return the size in the constant of a constraint, as parameter and value."""
        place = self._class_of(bound)
        return (
            None
            if place is None or not self._is_size(bound)
            else self._near(place, abs(bound.constant))
        )

    def _is_size(self, bound: Constraint) -> bool:
        """Tell whether the constant of a constraint is a size: no steps of a chunk, no digits."""
        lengths = {self._chunks.get(place.split(" ")[0]) for place, _ in bound.terms} - {None}
        return _is_size(bound) and not (
            len(bound.terms) == 1
            and (
                (bound.terms[0][0], bound.constant + 1) in self._digits
                or any(0 < one - bound.constant <= MOST_ORDER + 1 for one in lengths if one)
            )
        )


def _digits(statement: Statement) -> Iterator[tuple[str, int]]:
    """Yield the loops that are digits of a subscript, with their length: 2 of ``q`` in ``2*j+q``.

    For another number of them elements might be the same.
    """
    for access in statement.accesses:
        for form in filter(None, map(affine_form, output_affs(access.relation))):
            for (loop, by), (_, other) in product(form.coefficients, repeat=2):
                if abs(other) > abs(by):
                    yield f"{statement.name} {loop}", abs(other) // abs(by)


def _stride(statement: Statement) -> int:
    """Return how far neighbouring chunks of a recurrence are apart, 0 where there are none."""
    forms = map(affine_form, output_affs(statement.write.relation) if statement.chunk else ())
    return max((abs(by) for form in forms if form for _, by in form.coefficients), default=0)


def _macros_that_help_fusion(scop: Scop) -> SizePairs:
    """Return the macros worth knowing: all, unless every statement is in equally many loops.

    That two dimensions of an array are one size lets isl fuse a loop over one with a
    loop over the other, as between statements of different depth. Elsewhere it only makes the
    scheduler's integer programs harder (heat-3d: 0.06 s with a size for each dimension,
    0.8 s with one for all three).
    """
    depths = {len(statement.loops) for statement in scop.statements}
    return scop.size_macros if len(depths) > 1 else ()


def _spelled(value: int, macros: Sequence[tuple[str, int]]) -> str | None:
    """Return the macro that spells a constant, if there is one only with a number near it."""
    if value < _LARGE:
        return None
    near = [name for name, size in macros if 0 <= size - value <= _NEAR]
    return near[0] if len(near) == 1 else None


def _is_size(bound: Constraint) -> bool:
    """Tell whether a constraint is ``loop <= constant`` or has a large constant."""
    above = not bound.equality and bound.constant >= 1 and [c for _, c in bound.terms] == [-1]
    return above or abs(bound.constant) >= _LARGE


def _bounds(statement: Statement) -> Iterator[Constraint]:
    """Yield the constraints of a domain, parts that need integer division left out."""
    for part in statement.domain.get_basic_sets():
        if not part.dim(DIV):
            yield from constraints_on(part, _places(statement))


def _classes(scop: Scop) -> dict[str, int]:
    """Number the classes of loops and array dimensions that share their sizes."""
    tied = Classes[str]()
    for statement in scop.statements:
        _tie_shared_loops(tied, statement)
        for places in ([name for name, _ in bound.terms] for bound in _bounds(statement)):
            tied.join(*places)
        for access in (statement.accesses[k] for k in sorted(set(first_equal(statement.accesses)))):
            dims = _places(statement, access)[len(statement.loops) :]
            for dim, function in zip(dims, output_affs(access.relation), strict=True):
                form = affine_form(function)
                for loop, _ in form.coefficients if form else ():
                    tied.join(dim, f"{statement.name} {loop}")
    classes = sorted(tied.sets(), key=min)
    return {place: number for number, places in enumerate(classes) for place in places}


def _tie_shared_loops(tied: Classes[str], statement: Statement) -> None:
    """Tie the loops of a statement to the textual loops they are, which others may share."""
    place = " "
    for function in output_affs(statement.schedule):
        form = affine_form(function)
        if form is not None and not form.coefficients:
            place += f".{form.constant}"
        elif form is not None:
            place += ".*"
            for loop, _ in form.coefficients:
                tied.join(place, f"{statement.name} {loop}")


def _statement(statement: Statement, sizes: _Sizes) -> Statement:
    names = tuple(sizes.names)
    domain = with_sizes(statement.domain, names, _places(statement), sizes.size_in)

    def general(access: Access) -> Access:
        function = isl.PwMultiAff.from_map(access.relation).gist(statement.domain)
        pairs = isl.Map.from_pw_multi_aff(function).wrap()
        relation = with_sizes(pairs, names, _places(statement, access), sizes.size_in).unwrap()
        return replace(access, relation=relation.intersect_domain(domain))

    firsts = first_equal(statement.accesses)
    relations = {k: general(statement.accesses[k]).relation for k in sorted(set(firsts))}
    schedule = with_parameters(statement.schedule, names)
    free = isl.PwMultiAff.from_map(schedule).gist(schedule.domain()).as_multi_aff()
    return replace(
        statement,
        domain=domain,
        accesses=tuple(
            replace(access, relation=relations[first])
            for access, first in zip(statement.accesses, firsts, strict=True)
        ),
        schedule=isl.Map.from_multi_aff(free).intersect_domain(domain),
        recomputed=tuple(map(general, statement.recomputed)),
    )


_Values = Sequence[tuple[str, int]]


def instantiate_dependences(dependences: Dependences, values: _Values) -> Dependences:
    """Give the parameters of ``dependences`` their values."""
    if not values:
        return dependences
    return dependences.each(lambda relation: coalesced(at_values(relation, values)))


def instantiate_schedule(schedule: isl.Schedule, scop: Scop, values: _Values) -> isl.Schedule:
    """Give the parameters of ``schedule`` their values; ``scop`` is the region it is for."""
    if not values:
        return schedule
    target = isl.Schedule.from_domain(scop.domain).get_root().get_child(0)
    return copied_to(target, schedule.get_root().get_child(0), values).get_schedule()


def copied_to(
    target: isl.ScheduleNode, source: isl.ScheduleNode, values: _Values = ()
) -> isl.ScheduleNode:
    """Insert the subtree at ``source`` at the leaf ``target``; return the node inserted."""
    kind = node_kind(source)
    if kind == "leaf":
        return target
    if kind == "band":
        target = _copy_band(source, target, values)
        return copied_to(target.get_child(0), source.get_child(0), values).parent()
    below = branches(source)
    filters = (child.filter_get_filter() for child in children(source))
    return with_parts(
        target,
        [at_values(one.identity(), values).domain() for one in filters],
        lambda at, leaf: copied_to(leaf, below[at], values),
        in_order=kind == "sequence",
    )


def _copy_band(
    source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values
) -> isl.ScheduleNode:
    if not source.band_n_member():
        return target
    partial = isl.UnionMap.from_multi_union_pw_aff(source.band_get_partial_schedule())
    fixed = isl.MultiUnionPwAff.from_union_map(at_values(partial, values))
    return marked_like(target.insert_partial_schedule(fixed), source)


# -- schedule ----------------------------------------------------------------------------------
# ``Scop`` in, ``ScheduledScop`` out: the passes of this folder in their order.


_IMPATIENT_S = 0.4
"""Seconds of the processor of a try at a schedule that the region can do without."""


def schedule_scop(
    scop: Scop,
    *,
    positive: bool = False,
    patient: bool = True,
) -> ScheduledScop:
    """Schedule a region for a GPU and cut it into kernels.

    Args:
        scop: the region.
        positive: whether the scheduler may rely on numbers in the bounds of loops being positive.
        patient: whether to keep the order of the source where isl finds none in its bounds.

    Returns:
        The region with its dependences, new schedule and kernels.

    Raises:
        InputError: ``EATSS-P001`` where isl has too much work, or is known to have it.
        InternalError: ``EATSS-P901`` when a check between the passes fails.
    """
    refuse_unfit(scop)
    with bounded_work(scop):
        symbolic = generalise(scop)
        if positive:
            symbolic = _with_signs(symbolic)
    return _schedule(scop, symbolic, patient=patient)


def _with_signs(symbolic: Symbolic) -> Symbolic:
    """Note in the context which of the numbers that became symbols are positive."""
    names = [name for name, value in symbolic.values if value > 0]
    if not names:
        return symbolic
    scop = symbolic.scop
    signs = parameters_set(scop.isl_context, names, " and ".join(f"{name} > 0" for name in names))
    return replace(symbolic, scop=replace(scop, context=scop.context.intersect(signs)))


def schedule_as(general: Scop, scop: Scop, values: SizePairs) -> ScheduledScop:
    """Schedule a region in classes for any size, and cut it for some: its dependences are the same.

    Args:
        general: the region over its sizes.
        scop: the same over their numbers.
        values: of the sizes.

    Returns:
        The region over the numbers.

    Raises:
        InputError: as for :func:`schedule_scop`.
        InternalError: ``EATSS-P901`` when a check between the passes fails.
    """
    refuse_unfit(scop)
    found = _schedule(general, Symbolic(scop=general, values=()), patient=False)
    with bounded_work(scop):
        dependences = instantiate_dependences(found.dependences, values)
        schedule = instantiate_schedule(found.schedule, scop, values)
        return replace(_cut(scop, dependences, schedule, None), general=found)


def with_schedule(scop: Scop, schedule: isl.Schedule) -> ScheduledScop:
    """Cut a region into kernels by a schedule that is at hand, after all the usual checks.

    Args:
        scop: the region.
        schedule: a schedule tree of its instances, in its isl context; bands, sequences, sets and
            filters only.

    Raises:
        InputError: as for :func:`schedule_scop`.
        InternalError: ``EATSS-P901`` when a check fails.
    """
    refuse_unfit(scop)
    with bounded_work(scop):
        symbolic = generalise(scop)
        dependences = instantiate_dependences(compute_dependences(symbolic.scop), symbolic.values)
        assumes = _checked(scop, dependences, schedule)
        return _cut(scop, dependences, schedule, assumes)


def cut_again(
    scheduled: ScheduledScop, schedule: isl.Schedule, assumes: isl.Set | None = None
) -> ScheduledScop:
    """Cut a scheduled region by another schedule of it, after the usual checks.

    Args:
        scheduled: the region.
        schedule: of its instances.
        assumes: further sizes that it is right for, ``None`` for all.

    Raises:
        InternalError: ``EATSS-P901`` when a check fails.
    """
    known = [one for one in (scheduled.assumes, assumes) if one is not None]
    sizes = reduce(isl.Set.intersect, known) if known else None
    dependences = scheduled.dependences if sizes is None else scheduled.dependences.within(sizes)
    check_legality(scheduled.scop, dependences, schedule)
    found = _cut(scheduled.scop, scheduled.dependences, schedule, sizes)
    return replace(found, source_order=scheduled.source_order)


def launching_all(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a scheduled region of which nothing stays on the host: code of eatss launches all."""
    if not scheduled.host_statements:
        return scheduled
    pieces = cut_tree(scheduled.schedule)
    kernels = build_kernels(scheduled.scop, scheduled.dependences, pieces)
    return replace(scheduled, kernels=kernels, host_statements=())


def _schedule(scop: Scop, symbolic: Symbolic, *, patient: bool) -> ScheduledScop:
    """Schedule the generalised region and put the sizes back.

    Where no work is left for another order, or to check one, a ``patient`` try keeps that of the
    source: the dependences are of that, and its loops are parallel where they carry none.
    """
    general: Dependences | None = None
    found: tuple[isl.Schedule, bool, bool] | None = None
    try:
        with bounded_work(scop):
            general = symbolic.scop.dependences or compute_dependences(symbolic.scop)
            found = _checked_schedule(symbolic.scop, general, patient=patient)
    except InputError:
        if general is None or not patient:
            raise
    with bounded_work(scop):
        if found is None:
            found = in_tilable_bands(symbolic.scop, general), False, True
        general_schedule, assumed, source_order = found
        dependences = instantiate_dependences(general, symbolic.values)
        assumes = scop.context if assumed else None  # numbers that became symbols are as they are
        schedule = instantiate_schedule(general_schedule, scop, symbolic.values)
        cut = _cut(scop, dependences, schedule, assumes)
        return replace(cut, source_order=source_order)


def _cut(
    scop: Scop,
    dependences: Dependences,
    schedule: isl.Schedule,
    assumes: isl.Set | None,
) -> ScheduledScop:
    """Cut a region into kernels by a schedule that was checked for sizes in ``assumes``."""
    if assumes is not None:
        dependences = dependences.within(assumes)
    pieces = cut_tree(schedule)
    kernels = build_kernels(scop, dependences, [one for one in pieces if not one.on_host])
    host = tuple(sorted(chain(*(one.statements for one in pieces if one.on_host))))
    check_coverage(scop, schedule, kernels, host)
    return ScheduledScop(
        scop=scop,
        dependences=dependences,
        schedule=schedule,
        kernels=kernels,
        host_statements=host,
        assumes=assumes,
    )


def _checked_schedule(
    scop: Scop, dependences: Dependences, *, patient: bool
) -> tuple[isl.Schedule, bool, bool]:
    """Return isl's schedule, or the program's own order where isl finds none or a wrong one.

    isl's scheduler takes too long for some regions, now and then gives up ("unable to carry
    dependences"), or returns a schedule that breaks a validity dependence it was given; the last
    two were seen with statements that overwrite one element inside several loops. Every schedule
    is checked, the original too. The second result tells whether it is right only for the sizes
    that the source implies, the third whether it is the program's own order.
    """
    if scop.class_size:
        kept = in_tilable_bands(scop, dependences)
        check_legality(scop, dependences, kept)
        return kept, False, False
    try:
        schedule = compute_schedule(scop, dependences, seconds=TRY_S if patient else _IMPATIENT_S)
        if schedule is not None:
            return schedule, _checked(scop, dependences, schedule) is not None, False
    except IllegalScheduleError:
        pass
    except isl.Error:
        if ran_out(scop):
            raise
    if not patient:
        raise input_error(
            "EATSS-P001",
            "isl finds no schedule in the time it has",
            span=scop.span,
            hint="mark a smaller region",
        )
    schedule = in_tilable_bands(scop, dependences)
    check_legality(scop, dependences, schedule)
    return schedule, False, True


def _checked(scop: Scop, dependences: Dependences, schedule: isl.Schedule) -> isl.Set | None:
    """Check a schedule for all sizes; return those that the source implies if it needs them.

    isl is told what extents of arrays imply (``A[m][k]`` that ``k`` is positive), and may order
    statements by it.

    Raises:
        InternalError: as for :func:`check_legality`.
    """
    try:
        check_legality(scop, dependences, schedule)
    except IllegalScheduleError:
        if scop.context.plain_is_universe():
            raise
        check_legality(scop, dependences.within(scop.context), schedule)
        return scop.context
    return None
