"""A region scheduled for the numbers of its source, and the same schedule for any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import islpy as isl

from eatss.base.diagnostics import EatssError, InputError, InternalError, input_error
from eatss.base.frozen import frozen
from eatss.polyhedral.collapsed_loops import has_collapsed_loops
from eatss.polyhedral.copied_operands import copied_places, with_copied_operands
from eatss.polyhedral.ppcg_tree import Carrier, carried_over
from eatss.polyhedral.program import ScheduledScop
from eatss.polyhedral.recomputed_producers import recomputed_arrays
from eatss.polyhedral.schedule import launching_all, schedule_scop, with_schedule
from eatss.polyhedral.schedule_file import changed_as, load_schedule
from eatss.polyhedral.scops import Scop
from eatss.polyhedral.symbolic import instantiate_schedule
from eatss.polyhedral.tiled_sums import with_tiled_sums


@frozen
class SymbolicRegion:
    """One region, scheduled over its macro sizes and over their numbers.

    Where ``generic`` holds, both have the same kernels, host loops, loop names and parallel
    loops. Else ``scheduled`` is ``numeric_scheduled``: code made from it is for the sizes of
    the source alone.
    """

    scheduled: ScheduledScop
    numeric_scheduled: ScheduledScop
    generic: bool


def region_for_any_size(
    symbolic: Scop, numeric: ScheduledScop, max_operations: int | None
) -> SymbolicRegion:
    """Schedule a region for any size as it is for its numbers, where that can be.

    Args:
        symbolic: the region over its macro sizes, in the isl context of ``numeric``.
        numeric: the region over their numbers.
        max_operations: bound on isl's work, as for ``schedule_scop``.
    """
    scheduled = numeric
    if symbolic is not numeric.scop:
        found = _carried_over(symbolic, numeric, max_operations) or _scheduled_alike(
            symbolic, numeric, max_operations
        )
        if found is None:
            return SymbolicRegion(scheduled=numeric, numeric_scheduled=numeric, generic=False)
        scheduled = found
    return SymbolicRegion(scheduled=scheduled, numeric_scheduled=numeric, generic=True)


def loaded_regions(
    regions: Sequence[tuple[Scop, Scop]],
    text: str,
    values: Sequence[tuple[str, int]],
    max_operations: int | None,
) -> dict[int, SymbolicRegion]:
    """Schedule regions as a saved file says.

    Args:
        regions: each region over symbolic sizes and over the numbers of the source, in one isl
            context.
        text: what :func:`~eatss.polyhedral.schedule_file.save_schedules` returned, perhaps edited.
        values: the symbolic sizes with their numbers.
        max_operations: bound on isl's work for one region.

    Returns:
        The regions by number; those that the file does not have are left out. Where the file has a
        schedule over numbers only, the region is not generic.

    Raises:
        InputError: ``EATSS-P010`` to ``EATSS-P016``, as for ``load_schedule``.
    """
    known = {symbolic.index: (symbolic, numeric) for symbolic, numeric in regions}
    found: dict[int, SymbolicRegion] = {}
    for number, document in enumerate(_documents(text)):
        index = document.get("region") if isinstance(document, dict) else None
        pair = known.get(index) if isinstance(index, int) else None
        if pair is None:
            pair = regions[min(number, len(regions) - 1)]  # which is not it: load_schedule says so
        symbolic, numeric = pair
        if symbolic.index in found:
            raise input_error(
                "EATSS-P011",
                f"the schedule file has region {symbolic.index} twice",
                hint="keep one schedule for each region",
            )
        one = json.dumps(document, ensure_ascii=False)
        found[symbolic.index] = _loaded(symbolic, numeric, one, values, max_operations)
    return found


def _documents(text: str) -> list[Any]:
    try:
        found = json.loads(text)
        json.dumps(found)  # what is nested too deeply for that is no schedule either
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return [found]
    if not isinstance(found, list) or not found:
        raise input_error(
            "EATSS-P010", "the file is not a schedule of eatss", hint="load a file that eatss saved"
        )
    return found


def _loaded(
    symbolic: Scop,
    numeric: Scop,
    text: str,
    values: Sequence[tuple[str, int]],
    max_operations: int | None,
) -> SymbolicRegion:
    def over_numbers() -> SymbolicRegion:
        found = launching_all(load_schedule(numeric, text, max_operations=max_operations))
        return SymbolicRegion(scheduled=found, numeric_scheduled=found, generic=False)

    if symbolic is numeric:
        return over_numbers()
    try:
        scheduled = load_schedule(symbolic, text, max_operations=max_operations)
    except InputError as error:
        if error.code != "EATSS-P013":
            raise
        try:  # a schedule that was saved for the numbers alone
            return over_numbers()
        except InputError:
            raise error from None
    names = recomputed_arrays(scheduled.scop) or None
    numeric = changed_as(numeric, names, collapsed=has_collapsed_loops(scheduled.scop))
    numeric = with_copied_operands(numeric, copied_places(scheduled.scop))
    known = tuple(scheduled.scop.with_products(dict(values)).items())
    tree = instantiate_schedule(scheduled.schedule, numeric, known)
    try:
        found = launching_all(with_schedule(numeric, tree, max_operations=max_operations))
    except InternalError as error:  # pragma: no cover - what holds for all sizes holds for these
        raise InputError(*error.diagnostics) from None
    scheduled = launching_all(scheduled)
    generic = same_kernels(scheduled, found)
    return SymbolicRegion(
        scheduled=scheduled if generic else found, numeric_scheduled=found, generic=generic
    )


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


def _carried_over(
    symbolic: Scop, numeric: ScheduledScop, max_operations: int | None
) -> ScheduledScop | None:
    """Return the region under the schedule for its numbers, ``None`` where it is not for any size.

    isl's integer programs grow with a size that several loops share: two sweeps of a stencil in
    four dimensions took minutes.
    """
    same = symbolic.domain.universe().identity_union_pw_multi_aff()
    carrier = Carrier(domain=symbolic.domain, names=same)
    try:
        schedule = carried_over(numeric.schedule, carrier)
        scheduled = with_schedule(symbolic, schedule, max_operations=max_operations)
        scheduled = scheduled if numeric.host_statements else launching_all(scheduled)
    except (EatssError, isl.Error):
        return None
    return scheduled if same_kernels(scheduled, numeric) else None


def _scheduled_alike(
    symbolic: Scop, numeric: ScheduledScop, max_operations: int | None
) -> ScheduledScop | None:
    """Return the region scheduled anew, ``None`` where its kernels are others."""
    universe = isl.Set.universe(symbolic.context.get_space())
    contexts = [symbolic.context]
    if not symbolic.context.is_equal(universe):
        contexts.append(universe)  # facts may lead the scheduler elsewhere
    for context in contexts:
        try:
            assumed = replace(symbolic, context=context)
            scheduled = schedule_scop(assumed, max_operations=max_operations)
        except (EatssError, isl.Error):
            continue
        for found in (scheduled, with_tiled_sums(scheduled)):
            found = found if numeric.host_statements else launching_all(found)  # noqa: PLW2901
            if same_kernels(found, numeric):
                return replace(found, scop=symbolic)
    return None
