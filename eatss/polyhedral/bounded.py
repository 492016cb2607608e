"""A bound on isl's work, so that a hard region ends in an error and not in a hang."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from eatss.diagnostics import Diagnostic, InputError
from eatss.scop import Scop

MAX_DEPTH = 16
"""Loops around one statement; isl's dataflow takes seconds there and far longer beyond."""


def refuse_deep_nests(scop: Scop) -> None:
    """Refuse statements inside more loops than isl's dataflow can take.

    isl does not count all the work a deep nest causes, so the bound on operations is no
    protection there.

    Raises:
        InputError: ``EATSS-P002``.
    """
    deep = [
        Diagnostic(
            code="EATSS-P002",
            message=f"{len(statement.loops)} loops around one statement; {MAX_DEPTH} are supported",
            span=statement.span,
            hint="begin the region inside the outer loops",
        )
        for statement in scop.statements
        if len(statement.loops) > MAX_DEPTH
    ]
    if deep:
        raise InputError(*deep)


@contextmanager
def bounded_work(scop: Scop, max_operations: int) -> Iterator[None]:
    """Let isl spend at most ``max_operations`` basic operations on ``scop``.

    The bound counts from here and is lifted at the end. It is a count, not a time, so the
    outcome is the same on every machine.

    Raises:
        InputError: ``EATSS-P001`` when the operations run out.
    """
    context = scop.isl_context
    context.reset_operations()
    context.set_max_operations(max_operations)
    exhausted = False
    try:
        yield
    except isl.Error as error:
        exhausted = ran_out(scop, error)
        if not exhausted:
            raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()
    if exhausted:  # raised here so that it does not drag isl's error along
        raise _gave_up(scop, max_operations)


def ran_out(scop: Scop, error: isl.Error) -> bool:
    """Tell whether ``error`` means that the operations ran out.

    isl may report another error that follows from it; then even trivial work fails.
    """
    if "operations exceeded" in str(error):
        return True
    try:
        isl.Set.read_from_str(scop.isl_context, "{ [i] : 0 <= i < 2 }").is_empty()
    except isl.Error:
        return True
    return False


def _gave_up(scop: Scop, max_operations: int) -> InputError:
    return InputError(
        Diagnostic(
            code="EATSS-P001",
            message=f"polyhedral analysis gave up after {max_operations} operations",
            span=scop.span,
            hint="mark a smaller region, or raise --max-operations",
        )
    )
