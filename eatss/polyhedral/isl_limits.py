"""A bound on isl's work, so that a hard region ends in an error and not in a hang."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import islpy as isl

from eatss.base.diagnostics import Diagnostic, InputError, input_error
from eatss.polyhedral.accesses import first_equal
from eatss.polyhedral.isl_names import divisors
from eatss.polyhedral.scops import Scop, Statement

MAX_DEPTH = 16
"""Loops around one statement; isl's dataflow takes seconds there and far longer beyond."""

MAX_DIVISIONS = 8
"""Integer divisions and remainders in one domain or subscript list."""

MAX_DIVISOR_BITS = 40
"""Size of the product of their divisors: isl's integer programs grow with it."""

MAX_STATEMENTS = 1000
"""Statements of one region."""


MAX_OPERATIONS = 5_000_000
"""isl operations one region may take by default; PolyBench needs at most half."""

OPERATIONS_PER_ACCESS = 1000
"""What each access adds: long sums need isl operations in proportion to their length."""


def refuse_too_hard(scop: Scop) -> None:
    """Refuse what isl cannot take in reasonable time.

    isl does not count all the work that deep nests and large divisors cause, so the bound on
    operations is no protection there.

    Raises:
        InputError: ``EATSS-P002`` (loops), ``EATSS-P003`` (divisions), ``EATSS-P004``
            (statements), ``EATSS-P006`` (none), ``EATSS-P007`` (an array without elements);
            carries all findings.
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
    if len(scop.statements) > MAX_STATEMENTS:
        raise input_error(
            "EATSS-P004",
            f"{len(scop.statements)} statements; {MAX_STATEMENTS} are supported",
            span=scop.span,
            hint="mark several smaller regions",
        )
    findings = [finding for s in scop.statements for finding in _too_hard(s)]
    if findings:
        raise InputError(*findings)


def _too_hard(statement: Statement) -> Iterator[Diagnostic]:
    if len(statement.loops) > MAX_DEPTH:
        yield Diagnostic(
            code="EATSS-P002",
            message=f"{len(statement.loops)} loops around one statement; {MAX_DEPTH} are supported",
            span=statement.span,
            hint="begin the region inside the outer loops",
        )
    firsts = first_equal(statement.accesses)
    relations = [statement.accesses[k].relation.wrap() for k in sorted(set(firsts))]
    found = [divisors(relation) for relation in (statement.domain, *relations)]
    if any(len(d) > MAX_DIVISIONS or prod(d).bit_length() > MAX_DIVISOR_BITS for d in found):
        yield Diagnostic(
            code="EATSS-P003",
            message="too many or too large integer divisions and remainders",
            span=statement.span,
            hint=f"up to {MAX_DIVISIONS} are supported, whose divisors multiply to "
            f"less than 2^{MAX_DIVISOR_BITS}",
        )


def default_operations(scop: Scop) -> int:
    """Return the bound on isl's work for a region where the user sets none."""
    accesses = sum(len(statement.accesses) for statement in scop.statements)
    return MAX_OPERATIONS + OPERATIONS_PER_ACCESS * accesses


@contextmanager
def bounded_work(scop: Scop, max_operations: int | None) -> Iterator[None]:
    """Let isl spend at most ``max_operations`` basic operations on ``scop``.

    ``None`` stands for :func:`default_operations`.

    The bound counts from here and is lifted at the end. It is a count, not a time, so the
    outcome is the same on every machine.

    Raises:
        InputError: ``EATSS-P001`` when the operations run out.
    """
    context = scop.isl_context
    if max_operations is None:
        max_operations = default_operations(scop)
    context.reset_operations()
    context.set_max_operations(max_operations)
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
            f"polyhedral analysis gave up after {max_operations} operations",
            span=scop.span,
            hint="mark a smaller region, or raise --max-operations",
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
