"""``Scop`` in, ``ScheduledScop`` out: the passes of this folder in their order."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from eatss.base.diagnostics import InputError, InternalError, input_error
from eatss.polyhedral.checks import check_coverage, check_legality
from eatss.polyhedral.dependences import compute_dependences
from eatss.polyhedral.isl_limits import bounded_work, ran_out, refuse_too_hard
from eatss.polyhedral.isl_names import parameters_set
from eatss.polyhedral.kernels import build_kernels
from eatss.polyhedral.program import Dependences, General, ScheduledScop
from eatss.polyhedral.scheduling import (
    TRY_S,
    compute_schedule,
    original_with_marks,
)
from eatss.polyhedral.scops import Scop
from eatss.polyhedral.symbolic import (
    Symbolic,
    generalise,
    instantiate_dependences,
    instantiate_schedule,
)
from eatss.polyhedral.tree import cut_tree

_SMALL = 64
"""Sizes up to this may stay numbers where symbols are too hard."""

_IMPATIENT_S = 0.4
"""Seconds of the processor of a try at a schedule that the region can do without."""


def schedule_scop(
    scop: Scop,
    *,
    max_operations: int | None = None,
    positive: bool = False,
    patient: bool = True,
) -> ScheduledScop:
    """Schedule a region for a GPU and cut it into kernels.

    Args:
        scop: the region.
        max_operations: bound on isl's work; ``None`` for what a region of its size takes.
        positive: whether the scheduler may rely on numbers in the bounds of loops being positive.
        patient: whether to try again with numbers for sizes where symbols are too hard, and to keep
            the order of the source where isl finds none.

    Returns:
        The region with its dependences, new schedule and kernels.

    Raises:
        InputError: ``EATSS-P001`` when isl's work exceeds ``max_operations``, ``EATSS-P002``
            to ``EATSS-P004`` for what is known to be too hard.
        InternalError: ``EATSS-P9xx`` when a check between the passes fails.
    """
    refuse_too_hard(scop)
    with bounded_work(scop, max_operations):
        symbolic = generalise(scop)
        if positive:
            symbolic = _with_signs(symbolic)
    small = symbolic.values and max(value for _, value in symbolic.values) <= _SMALL
    try:
        return _schedule(
            scop, symbolic, max_operations, patient=patient, last=patient and not small
        )
    except InputError:  # small numbers are at times easier than any size
        if not patient or not small:
            raise
        return _schedule(
            scop, Symbolic(scop=scop, values=()), max_operations, patient=True, last=True
        )


def _with_signs(symbolic: Symbolic) -> Symbolic:
    """Note in the context which of the numbers that became symbols are positive."""
    names = [name for name, value in symbolic.values if value > 0]
    if not names:
        return symbolic
    scop = symbolic.scop
    signs = parameters_set(scop.isl_context, names, " and ".join(f"{name} > 0" for name in names))
    return replace(symbolic, scop=replace(scop, context=scop.context.intersect(signs)))


def with_schedule(
    scop: Scop, schedule: isl.Schedule, *, max_operations: int | None = None
) -> ScheduledScop:
    """Cut a region into kernels by a schedule that is at hand, after all the usual checks.

    Args:
        scop: the region.
        schedule: a schedule tree of its instances, in its isl context; bands, sequences, sets and
            filters only.
        max_operations: as for :func:`schedule_scop`.

    Raises:
        InputError: as for :func:`schedule_scop`.
        InternalError: ``EATSS-P901`` to ``EATSS-P905`` when a check fails.
    """
    refuse_too_hard(scop)
    with bounded_work(scop, max_operations):
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
        InternalError: ``EATSS-P901`` to ``EATSS-P905`` when a check fails.
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


def _schedule(
    scop: Scop, symbolic: Symbolic, max_operations: int | None, *, patient: bool, last: bool
) -> ScheduledScop:
    """Schedule the generalised region and put the sizes back.

    Where no work is left for another order, or to check one, the ``last`` try keeps that of the
    source: the dependences are of that, and its loops are parallel where they carry none.
    """
    general: Dependences | None = None
    found: tuple[isl.Schedule, bool, bool] | None = None
    try:
        with bounded_work(scop, max_operations):
            general = compute_dependences(symbolic.scop)
            found = _checked_schedule(symbolic.scop, general, patient=patient)
    except InputError:
        if general is None or not last:
            raise
    with bounded_work(scop, max_operations):
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
