"""How much a program has to do at the sizes it is measured at: operations and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eatss.measurement.measurement import Missing, OperationCount
from eatss.program import IntExpr, Program, Work, evaluate

NOT_FLOPS = ("compare",)
"""Kinds of operations that are listed but, as is usual, not counted as FLOP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedWork:
    """Operations and bytes of one run, the sums over all entries; ``missing`` says what is not
    known and why. ``flops`` leaves out :data:`NOT_FLOPS`.
    """  # noqa: D205

    operations: tuple[OperationCount, ...] | None
    flops: int | None
    least_bytes: int | None
    missing: tuple[Missing, ...]


def count_work(program: Program | None, sizes: Mapping[str, int]) -> CountedWork:
    """Return the work of one run of a program; of ``None``, one that could not be generated."""
    if program is None:
        return _unknown("nothing was generated")
    works = [entry.work for entry in program.entries]
    known = [work for work in works if work is not None]
    if len(known) < len(works) or not works:
        return _unknown("the launch plan does not count them; generate the program again")
    operations = _operations(known, sizes)
    least_bytes = _least_bytes(known, sizes)
    reason = "; ".join(note for work in known for note in work.notes)
    reason = reason or "the launch plan does not count them"
    missing = []
    if operations is None:
        missing = [Missing(what=what, reason=reason) for what in ("operations", "flops")]
    if least_bytes is None:
        missing.append(Missing(what="least_bytes", reason=reason))
    return CountedWork(
        operations=operations,
        flops=None if operations is None else _flops(operations),
        least_bytes=least_bytes,
        missing=tuple(missing),
    )


def _operations(
    works: Iterable[Work], sizes: Mapping[str, int]
) -> tuple[OperationCount, ...] | None:
    counts: dict[str, int] = {}
    for work in works:
        if work.operations is None:
            return None
        for operation in work.operations:
            count = evaluate(operation.count, sizes)
            counts[operation.kind] = counts.get(operation.kind, 0) + count
    return tuple(OperationCount(kind=kind, count=count) for kind, count in counts.items())


def _flops(operations: Iterable[OperationCount]) -> int:
    return sum(operation.count for operation in operations if operation.kind not in NOT_FLOPS)


def _least_bytes(works: Iterable[Work], sizes: Mapping[str, int]) -> int | None:
    total = 0
    for work in works:
        expressions: tuple[IntExpr | None, ...] = (work.read_bytes, work.written_bytes)
        for expression in expressions:
            if expression is None:
                return None
            total += evaluate(expression, sizes)
    return total


def _unknown(reason: str) -> CountedWork:
    return CountedWork(
        operations=None,
        flops=None,
        least_bytes=None,
        missing=tuple(
            Missing(what=what, reason=reason) for what in ("operations", "flops", "least_bytes")
        ),
    )
