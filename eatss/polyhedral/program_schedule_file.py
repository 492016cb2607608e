"""The schedules of all regions of a file as one text, and back, over sizes and over numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from eatss.diagnostics import InputError, InternalError, input_error
from eatss.polyhedral.collapsed_loops import has_collapsed_loops, with_collapsed_loops
from eatss.polyhedral.copied_operands import copied_places, with_copied_operands
from eatss.polyhedral.instantiate import instantiate_schedule
from eatss.polyhedral.program import ScheduledScop
from eatss.polyhedral.recomputed_producers import (
    recomputed_arrays,
    with_recomputed_producers,
)
from eatss.polyhedral.schedule import with_schedule
from eatss.polyhedral.schedule_file import load_schedule, save_schedule
from eatss.scops import Scop


def save_schedules(regions: Sequence[ScheduledScop]) -> str:
    """Return the schedules of regions as JSON text: one document, or a list of several."""
    texts = [save_schedule(region) for region in regions]
    if len(texts) == 1:
        return texts[0]
    documents = [json.loads(text) for text in texts]
    return json.dumps(documents, indent=2, ensure_ascii=False) + "\n"


def load_schedules(
    regions: Sequence[tuple[Scop, Scop]],
    text: str,
    values: Sequence[tuple[str, int]],
    *,
    max_operations: int | None = None,
) -> dict[int, tuple[ScheduledScop | None, ScheduledScop]]:
    """Schedule regions as a saved file says.

    Args:
        regions: each region over symbolic sizes and over the numbers of the source, in one isl
            context.
        text: what :func:`save_schedules` returned, perhaps edited.
        values: the symbolic sizes with their numbers.
        max_operations: bound on isl's work for one region.

    Returns:
        By number of the region, its schedule over symbolic sizes (``None`` where the file has one
        over numbers only) and the same schedule over numbers. Regions the file does not
        have are left out.

    Raises:
        InputError: ``EATSS-P010`` to ``EATSS-P016``, as for ``load_schedule``.
    """
    known = {symbolic.index: (symbolic, numeric) for symbolic, numeric in regions}
    loaded: dict[int, tuple[ScheduledScop | None, ScheduledScop]] = {}
    for number, document in enumerate(_documents(text)):
        index = document.get("region") if isinstance(document, dict) else None
        pair = known.get(index) if isinstance(index, int) else None
        if pair is None:
            pair = regions[min(number, len(regions) - 1)]  # which is not it: load_schedule says so
        symbolic, numeric = pair
        if symbolic.index in loaded:
            raise input_error(
                "EATSS-P011",
                f"the schedule file has region {symbolic.index} twice",
                hint="keep one schedule for each region",
            )
        one = json.dumps(document, ensure_ascii=False)
        loaded[symbolic.index] = _load(symbolic, numeric, one, values, max_operations)
    return loaded


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


def _load(
    symbolic: Scop,
    numeric: Scop,
    text: str,
    values: Sequence[tuple[str, int]],
    max_operations: int | None,
) -> tuple[ScheduledScop | None, ScheduledScop]:
    if symbolic is numeric:
        return None, load_schedule(numeric, text, max_operations=max_operations)
    try:
        scheduled = load_schedule(symbolic, text, max_operations=max_operations)
    except InputError as error:
        if error.code != "EATSS-P013":
            raise
        try:  # a schedule that was saved for the numbers alone
            return None, load_schedule(numeric, text, max_operations=max_operations)
        except InputError:
            raise error from None
    names = recomputed_arrays(scheduled.scop)
    if names and not recomputed_arrays(numeric):
        numeric = with_recomputed_producers(numeric, names) or numeric
    if has_collapsed_loops(scheduled.scop):
        numeric = with_collapsed_loops(numeric)
    numeric = with_copied_operands(numeric, copied_places(scheduled.scop))
    known = tuple(scheduled.scop.with_products(dict(values)).items())
    tree = instantiate_schedule(scheduled.schedule, numeric, known)
    try:
        return scheduled, with_schedule(numeric, tree, max_operations=max_operations)
    except InternalError as error:  # pragma: no cover - what holds for all sizes holds for these
        raise InputError(*error.diagnostics) from None
