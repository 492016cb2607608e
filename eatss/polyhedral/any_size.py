"""A region scheduled for the numbers of its source, and the same schedule for any size."""

from __future__ import annotations

import islpy as isl

from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.ppcg import Carrier, carried_over
from eatss.polyhedral.schedule import launching_all, schedule_scop, with_schedule
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.tiled_sums import with_tiled_sums


@frozen
class SymbolicRegion:
    """One region, scheduled over its macro sizes.

    Where ``generic`` holds, it has the same kernels, host loops, loop names and parallel loops as
    over their numbers. Else ``scheduled`` is over the numbers: code made from it is for the sizes
    of the source alone.
    """

    scheduled: ScheduledScop
    generic: bool


def region_for_any_size(symbolic: Scop, numeric: ScheduledScop) -> SymbolicRegion:
    """Schedule a region for any size as it is for its numbers, where that can be.

    Args:
        symbolic: the region over its macro sizes, in the isl context of ``numeric``.
        numeric: the region over their numbers.
    """
    if symbolic is numeric.scop:
        return SymbolicRegion(scheduled=numeric, generic=True)
    general = numeric.general
    if general is not None and general.scop is symbolic:
        general = general if numeric.host_statements else launching_all(general)
        if same_kernels(general, numeric):
            return SymbolicRegion(scheduled=general, generic=True)
    found = _carried_over(symbolic, numeric) or _scheduled_alike(symbolic, numeric)
    return SymbolicRegion(scheduled=found or numeric, generic=found is not None)


def same_kernels(one: ScheduledScop, other: ScheduledScop) -> bool:
    """Tell whether two schedules of one region have the same kernels, up to sizes.

    Compared are the statements on the host and, kernel by kernel, statements, host loops,
    and the names, order and parallel marks of the loops.
    """
    return one.host_statements == other.host_statements and _outline(one) == _outline(other)


def _outline(scheduled: ScheduledScop) -> list[tuple[object, ...]]:
    return [
        (
            kernel.name,
            kernel.statements,
            kernel.host_loops,
            kernel.permutable,
            tuple((loop.name, loop.parallel) for loop in kernel.loops),
            tuple((loop.name, loop.parallel) for loop in kernel.inner_loops),
        )
        for kernel in scheduled.kernels
    ]


def _carried_over(symbolic: Scop, numeric: ScheduledScop) -> ScheduledScop | None:
    """Return the region under the schedule for its numbers, ``None`` where it is not for any size.

    isl's integer programs grow with a size that several loops share: two sweeps of a stencil in
    four dimensions took minutes.
    """
    same = symbolic.domain.universe().identity_union_pw_multi_aff()
    carrier = Carrier(domain=symbolic.domain, names=same, for_any_size=True)
    try:
        schedule = carried_over(numeric.schedule, carrier)
        scheduled = with_schedule(symbolic, schedule)
        scheduled = scheduled if numeric.host_statements else launching_all(scheduled)
    except (EatssError, isl.Error):
        return None
    return scheduled if same_kernels(scheduled, numeric) else None


def _scheduled_alike(symbolic: Scop, numeric: ScheduledScop) -> ScheduledScop | None:
    """Return the region scheduled anew, ``None`` where its kernels are others."""
    try:
        scheduled = schedule_scop(symbolic)
    except (EatssError, isl.Error):
        return None
    for found in (scheduled, with_tiled_sums(scheduled)):
        own = found if numeric.host_statements else launching_all(found)
        if same_kernels(own, numeric):
            return own
    return None
