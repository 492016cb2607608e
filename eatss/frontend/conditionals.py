"""Conditions that are evaluated again for each statement under them, and so must not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eatss.frontend.codes import Code
from eatss.frontend.delinearise import Delinearised
from eatss.frontend.reading import RawAccess, RawStatement
from eatss.frontend.report import Reporter
from eatss.frontend.tree import Node
from eatss.frontend.values import ValueAlgebra


@dataclass(frozen=True, slots=True)
class Conditional:
    """A condition below ``depth`` loops, and the numbers of the statements under it."""

    test: Node
    depth: int
    first: int
    last: int


def check_conditions(
    conditionals: Sequence[Conditional],
    statements: Sequence[RawStatement],
    arrays: Sequence[Delinearised],
    algebra: ValueAlgebra,
    reporter: Reporter,
) -> None:
    """Refuse a condition if a statement under it sets what it reads, and others come after."""
    by_variable = {array.variable: array for array in arrays}
    for one in conditionals:
        names = {id(part) for part in one.test.preorder()}
        for number in range(one.first, one.last):
            raw = statements[number]
            if number == one.last - 1 and len(raw.loops) == one.depth:
                continue
            write, *others = raw.accesses
            array = by_variable.get(write.variable)
            reads = [
                read
                for read in others
                if id(read.node) in names and read.variable is write.variable
            ]
            if array is not None and any(_meet(raw, write, read, array, algebra) for read in reads):
                reporter.error(
                    Code.DATA_DEPENDENT_CONDITION,
                    one.test,
                    f"condition {reporter.quoted(one.test)} depends on data that a statement under "
                    f"it sets ({reporter.quoted(raw.node)})",
                    "keep the condition in a variable of its own: int c = ...; if (c) ...",
                )
                break


def _meet(
    raw: RawStatement,
    write: RawAccess,
    read: RawAccess,
    array: Delinearised,
    algebra: ValueAlgebra,
) -> bool:
    """Return whether a statement ever writes the element that its condition reads."""
    meet = raw.domain
    for written, seen in zip(array.subscripts(write), array.subscripts(read), strict=True):
        meet = meet.intersect(algebra.equal(written, seen))
    return not meet.is_empty()
