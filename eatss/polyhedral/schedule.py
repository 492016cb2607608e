"""A region in, its schedule and kernels out; constants become symbols where that is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import islpy as isl
from networkx.utils import UnionFind  # type: ignore[import-untyped]

from eatss.base.diagnostics import InputError, InternalError, input_error
from eatss.polyhedral.dependences import (
    bounded_work,
    compute_dependences,
    first_equal,
    ran_out,
    refuse_too_hard,
)
from eatss.polyhedral.isl_names import (
    Bound,
    affine_form,
    basic_parts,
    bounds_of,
    coalesced,
    fix_parameters,
    node_kind,
    output_affs,
    parameters_set,
    rebuild_with_sizes,
    with_parameters,
)
from eatss.polyhedral.kernel import Dependences, General, ScheduledScop
from eatss.polyhedral.kernels import build_kernels
from eatss.polyhedral.scheduling import (
    TRY_S,
    check_coverage,
    check_legality,
    compute_schedule,
    original_with_marks,
)
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.polyhedral.tree import (
    alone,
    branches,
    children,
    cut_tree,
    functions,
    marked_like,
    with_parts,
)

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

_Place = tuple[str, str]  # (statement, loop) or (array, dimension)


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A region with its numeric sizes as parameters, and the numbers they stand for."""

    scop: Scop
    values: tuple[tuple[str, int], ...]


def generalise(scop: Scop) -> Symbolic:
    """Replace the numeric sizes of ``scop`` by parameters."""
    sizes = _Sizes(scop)
    if not sizes.names:
        return Symbolic(scop=scop, values=())
    parameters = tuple(sizes.names)
    statements = tuple(_statement(s, sizes, parameters) for s in scop.statements)
    symbolic = replace(
        scop,
        parameters=scop.parameters + parameters,
        context=with_parameters(scop.context, parameters),
        statements=statements,
    )
    return Symbolic(scop=symbolic, values=tuple(sizes.names.items()))


class _Sizes:
    """Finds the sizes: classes of loops and array dimensions, and the constants in each."""

    def __init__(self, scop: Scop) -> None:
        self._classes = _classes(scop)
        self._clusters: dict[int, list[tuple[int, str]]] = {}
        self.names: dict[str, int] = {}
        taken = {*scop.parameters, *(array.name for array in scop.arrays)}
        fresh = (name for k in count() if (name := f"size{k}") not in taken)
        macros = [pair for pair in _macros_that_help_fusion(scop) if pair[0] not in taken]
        constants = self._constants(scop)
        spelled = {v: _spelled(v, macros) for values in constants.values() for v in values}
        for place in sorted(constants):
            self._clusters[place] = []
            for value in sorted(constants[place], reverse=True):
                if not self._near(place, value):
                    macro = spelled[value]
                    # the largest number of a macro leaves its bounds without an offset
                    size = max(v for v in spelled if v == value or (macro and spelled[v] == macro))
                    name = macro or next(fresh)
                    self.names[name] = size
                    self._clusters[place].append((size, name))

    def _constants(self, scop: Scop) -> dict[int, set[int]]:
        """Return the constants of the domains' constraints that are sizes, by class."""
        constants: dict[int, set[int]] = {}
        for statement in scop.statements:
            for bound in _bounds(statement.domain):
                place = self._class_of(statement, None, bound)
                if place is not None and _is_size(bound):
                    constants.setdefault(place, set()).add(abs(bound.constant))
        return constants

    def _class_of(self, statement: Statement, access: Access | None, bound: Bound) -> int | None:
        places = {self._classes.get((statement.name, dim)) for dim, _ in bound.inputs}
        if access is not None:
            places |= {self._classes.get((access.array, dim)) for dim, _ in bound.outputs}
        return next(iter(places)) if len(places) == 1 else None

    def _near(self, place: int, value: int) -> tuple[int, str] | None:
        for size, name in self._clusters.get(place, ()):
            if size == value or (value >= _LARGE and abs(size - value) <= _NEAR):
                return size, name
        return None

    def size_in(
        self, statement: Statement, access: Access | None, bound: Bound
    ) -> tuple[str, int] | None:
        """Return the size in the constant of a constraint, as parameter and value."""
        place = self._class_of(statement, access, bound)
        if place is None or not (_is_size(bound) or abs(bound.constant) >= _LARGE):
            return None
        found = self._near(place, abs(bound.constant))
        return None if found is None else (found[1], found[0])


def _macros_that_help_fusion(scop: Scop) -> tuple[tuple[str, int], ...]:
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


def _is_size(bound: Bound) -> bool:
    """Tell whether a constraint is ``loop <= constant`` or has a large constant."""
    upper = not bound.equality and not bound.outputs and bound.constant >= 1
    above = upper and len(bound.inputs) == 1 and bound.inputs[0][1] == -1
    return above or abs(bound.constant) >= _LARGE


def _bounds(domain: isl.Set) -> Iterator[Bound]:
    for part in basic_parts(domain):
        yield from bounds_of(part)


def _classes(scop: Scop) -> dict[_Place, int]:
    """Number the classes of loops and array dimensions that share their sizes."""
    tied = UnionFind()
    for statement in scop.statements:
        for loop in statement.loops:
            tied.union((statement.name, loop))
        _tie_shared_loops(tied, statement)
        for bound in _bounds(statement.domain):
            tied.union(*((statement.name, dim) for dim, _ in bound.inputs))
        for access in (statement.accesses[k] for k in sorted(set(first_equal(statement.accesses)))):
            for k, function in enumerate(output_affs(access.relation)):
                form = affine_form(function)
                for loop, _ in form.coefficients if form else ():
                    tied.union((access.array, f"d{k}"), (statement.name, loop))
    classes = sorted(tied.to_sets(), key=min)
    return {place: number for number, places in enumerate(classes) for place in places}


def _tie_shared_loops(tied: Any, statement: Statement) -> None:
    """Tie the loops of a statement to the textual loops they are, which others may share."""
    place = ""
    for function in output_affs(statement.schedule):
        form = affine_form(function)
        if form is not None and not form.coefficients:
            place += f".{form.constant}"
        elif form is not None:
            place += ".*"
            for loop, _ in form.coefficients:
                tied.union(("", place), (statement.name, loop))


def _statement(statement: Statement, sizes: _Sizes, parameters: tuple[str, ...]) -> Statement:
    domain = rebuild_with_sizes(
        statement.domain, parameters, lambda bound: sizes.size_in(statement, None, bound)
    )
    firsts = first_equal(statement.accesses)
    relations = {
        k: _relation(statement, statement.accesses[k], sizes, parameters, domain)
        for k in sorted(set(firsts))
    }
    accesses = tuple(
        replace(access, relation=relations[first])
        for access, first in zip(statement.accesses, firsts, strict=True)
    )
    schedule = with_parameters(statement.schedule, parameters)
    free = isl.Map.from_multi_aff(
        isl.PwMultiAff.from_map(schedule).gist(schedule.domain()).as_multi_aff()
    )
    return replace(
        statement,
        domain=domain,
        accesses=accesses,
        schedule=free.intersect_domain(domain),
        recomputed=tuple(
            replace(access, relation=_relation(statement, access, sizes, parameters, domain))
            for access in statement.recomputed
        ),
    )


def _relation(
    statement: Statement,
    access: Access,
    sizes: _Sizes,
    parameters: tuple[str, ...],
    domain: isl.Set,
) -> isl.Map:
    """Return the access of the generalised statement."""
    function = isl.PwMultiAff.from_map(access.relation).gist(statement.domain)
    relation = rebuild_with_sizes(
        isl.Map.from_pw_multi_aff(function),
        parameters,
        lambda bound: sizes.size_in(statement, access, bound),
    )
    return relation.intersect_domain(domain)


_Values = Sequence[tuple[str, int]]


def instantiate_dependences(dependences: Dependences, values: _Values) -> Dependences:
    """Give the parameters of ``dependences`` their values."""
    if not values:
        return dependences
    return dependences.each(lambda relation: coalesced(fix_parameters(relation, values)))


def instantiate_schedule(schedule: isl.Schedule, scop: Scop, values: _Values) -> isl.Schedule:
    """Give the parameters of ``schedule`` their values; ``scop`` is the region it is for."""
    if not values:
        return schedule
    target = isl.Schedule.from_domain(scop.domain).get_root().get_child(0)
    return _copy(schedule.get_root().get_child(0), target, values).get_schedule()


def _copy(source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values) -> isl.ScheduleNode:
    """Insert the subtree at ``source`` at the leaf ``target``; return the node inserted."""
    kind = node_kind(source)
    if kind == "leaf":
        return target
    if kind == "band":
        target = _copy_band(source, target, values)
        return _copy(source.get_child(0), target.get_child(0), values).parent()
    below = branches(source)
    filters = (child.filter_get_filter() for child in children(source))
    return with_parts(
        target,
        [fix_parameters(one.identity(), values).domain() for one in filters],
        lambda at, leaf: _copy(below[at], leaf, values),
        in_order=kind == "sequence",
    )


def _copy_band(
    source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values
) -> isl.ScheduleNode:
    fixed: isl.MultiUnionPwAff | None = None
    for function in functions(source):
        relation = isl.UnionMap.from_union_pw_aff(function)
        member = isl.UnionPwMultiAff.from_union_map(fix_parameters(relation, values))
        single = alone(member.get_union_pw_aff(0))
        fixed = single if fixed is None else fixed.flat_range_product(single)
    if fixed is None:
        return target
    return marked_like(target.insert_partial_schedule(fixed), source)


# -- schedule ----------------------------------------------------------------------------------
# ``Scop`` in, ``ScheduledScop`` out: the passes of this folder in their order.


_SMALL = 64
"""Sizes up to this may stay numbers where symbols are too hard."""

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
        patient: whether to try again with numbers for sizes where symbols are too hard, and to keep
            the order of the source where isl finds none.

    Returns:
        The region with its dependences, new schedule and kernels.

    Raises:
        InputError: ``EATSS-P001`` where isl has too much work, ``EATSS-P002``
            for what is known to be too hard.
        InternalError: ``EATSS-P901`` when a check between the passes fails.
    """
    refuse_too_hard(scop)
    with bounded_work(scop):
        symbolic = generalise(scop)
        if positive:
            symbolic = _with_signs(symbolic)
    small = symbolic.values and max(value for _, value in symbolic.values) <= _SMALL
    try:
        return _schedule(scop, symbolic, patient=patient, last=patient and not small)
    except InputError:  # small numbers are at times easier than any size
        if not patient or not small:
            raise
        return _schedule(scop, Symbolic(scop=scop, values=()), patient=True, last=True)


def _with_signs(symbolic: Symbolic) -> Symbolic:
    """Note in the context which of the numbers that became symbols are positive."""
    names = [name for name, value in symbolic.values if value > 0]
    if not names:
        return symbolic
    scop = symbolic.scop
    signs = parameters_set(scop.isl_context, names, " and ".join(f"{name} > 0" for name in names))
    return replace(symbolic, scop=replace(scop, context=scop.context.intersect(signs)))


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
    refuse_too_hard(scop)
    with bounded_work(scop):
        symbolic = generalise(scop)
        general = compute_dependences(symbolic.scop)
        dependences = instantiate_dependences(general, symbolic.values)
        assumes = _checked(scop, dependences, schedule)
        return _cut(
            scop, dependences, schedule, General(scop=symbolic.scop, dependences=general), assumes
        )


def cut_again(scheduled: ScheduledScop, schedule: isl.Schedule) -> ScheduledScop:
    """Cut a scheduled region by another schedule of it, after the usual checks.

    Raises:
        InternalError: ``EATSS-P901`` when a check fails.
    """
    check_legality(scheduled.scop, scheduled.dependences, schedule)
    found = _cut(
        scheduled.scop, scheduled.dependences, schedule, scheduled.general, scheduled.assumes
    )
    return replace(found, source_order=scheduled.source_order)


def launching_all(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a scheduled region of which nothing stays on the host: code of eatss launches all."""
    if not scheduled.host_statements:
        return scheduled
    pieces = cut_tree(scheduled.schedule).pieces
    kernels = build_kernels(scheduled.scop, scheduled.dependences, pieces)
    return replace(scheduled, kernels=kernels, host_statements=())


def _schedule(scop: Scop, symbolic: Symbolic, *, patient: bool, last: bool) -> ScheduledScop:
    """Schedule the generalised region and put the sizes back.

    Where no work is left for another order, or to check one, the ``last`` try keeps that of the
    source: the dependences are of that, and its loops are parallel where they carry none.
    """
    general: Dependences | None = None
    found: tuple[isl.Schedule, bool, bool] | None = None
    try:
        with bounded_work(scop):
            general = compute_dependences(symbolic.scop)
            found = _checked_schedule(symbolic.scop, general, patient=patient)
    except InputError:
        if general is None or not last:
            raise
    with bounded_work(scop):
        if found is None:
            found = original_with_marks(symbolic.scop, general), False, True
        general_schedule, assumed, source_order = found
        dependences = instantiate_dependences(general, symbolic.values)
        assumes = scop.context if assumed else None  # numbers that became symbols are as they are
        schedule = instantiate_schedule(general_schedule, scop, symbolic.values)
        cut = _cut(
            scop, dependences, schedule, General(scop=symbolic.scop, dependences=general), assumes
        )
        return replace(cut, source_order=source_order)


def _cut(
    scop: Scop,
    dependences: Dependences,
    schedule: isl.Schedule,
    general: General,
    assumes: isl.Set | None,
) -> ScheduledScop:
    """Cut a region into kernels by a schedule that was checked for sizes in ``assumes``."""
    if assumes is not None:
        dependences = dependences.within(assumes)
    cut = cut_tree(schedule)
    kernels = build_kernels(scop, dependences, cut.kernels)
    check_coverage(scop, schedule, kernels, cut.host_statements)
    return ScheduledScop(
        scop=scop,
        dependences=dependences,
        general=general,
        schedule=schedule,
        kernels=kernels,
        host_statements=cut.host_statements,
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
    try:
        schedule = compute_schedule(scop, dependences, seconds=TRY_S if patient else _IMPATIENT_S)
        if schedule is not None:
            return schedule, _checked(scop, dependences, schedule) is not None, False
    except InternalError:
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
    schedule = original_with_marks(scop, dependences)
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
    except InternalError:
        if scop.context.plain_is_universe():
            raise
        check_legality(scop, dependences.within(scop.context), schedule)
        return scop.context
    return None
