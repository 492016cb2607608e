"""How the threads of a block walk a box of elements that they copy together."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from eatss.base.frozen import frozen
from eatss.lower.kernel.nodes import For, Nodes
from eatss.lower.schedule.names import NameTable
from eatss.plan.stage import copied_in_rows
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
)


@frozen
class CopyLoop:
    """A loop over a thread's elements of a box; ``places`` are an element's indices in the box."""

    counter: str
    count: int
    places: tuple[IntExpr, ...]
    lower: IntExpr = Constant(0)
    step: int = 1
    unrolled: bool = True

    def around(self, body: Nodes) -> For:
        """Return the loop with a body."""
        return For(
            counter=self.counter,
            lower=self.lower,
            condition=Name(self.counter) < self.count,
            step=Constant(self.step),
            body=body,
            unroll="whole" if self.unrolled else None,
            narrow=True,
        )


def copy_loop(
    sizes: Sequence[int], threads: int, thread: str, names: NameTable, width: int = 1
) -> CopyLoop:
    """Return how a block copies a box, neighbouring threads what follows each other in a row.

    Where the threads fill rows or pieces of them, nothing is divided in the loop: a thread stays in
    its column of a piece.

    Args:
        sizes: of the box, in elements.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        width: elements of a row that a thread copies at a time; ``places`` are those of the first.
            Of more than one threads have to fill rows [:func:`eatss.plan.stage.copied_in_rows`].
    """
    if copied_in_rows(sizes, threads, width):
        return _by_rows(sizes, threads, thread, names, width)
    assert width == 1, "vectors are planned where threads fill rows"
    return _by_number(sizes, threads, thread, names)


def turned_copy_loop(
    sizes: Sequence[int],
    row_at: int,
    threads: int,
    thread: str,
    names: NameTable,
    piece: int,
) -> CopyLoop:
    """Return how a block copies a box whose rows lie along another dimension than the array's.

    Neighbouring threads copy a piece of a row of the array, those behind them one of the next row.
    They have to fill such pieces [:func:`eatss.plan.stage.copied_in_pieces`].

    Args:
        sizes: of the box, in elements, by dimension of the array.
        row_at: the dimension along which rows of the box lie.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        piece: its elements.
    """
    rows, columns = sizes[row_at], sizes[-1]
    lines, pieces = threads // piece, columns // piece
    number = Name(thread)
    inside = number % piece
    row: IntExpr = number // piece
    turn = names.fresh("e")
    if rows % lines == 0:
        each = rows // lines
        count = each * pieces
        row = row + lines * _remainder(Name(turn), each, count)
        which = _quotient(Name(turn), each, count)
    else:
        count = pieces * rows // lines
        row = row % rows
        first = number // (piece * rows)
        which = first + lines // rows * _quotient(Name(turn), 1, count)
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[row_at] = row
    places[-1] = inside + piece * which
    return CopyLoop(counter=turn, count=count, places=tuple(places))


def _remainder(number: IntExpr, of: int, count: int) -> IntExpr:
    """Return the remainder of a number below ``count``."""
    if of == 1:
        return Constant(0)
    return number if count <= of else number % of


def _quotient(number: IntExpr, of: int, count: int) -> IntExpr:
    """Return the quotient of a number below ``count``."""
    if count <= of:
        return Constant(0)
    return number if of == 1 else number // of


def _by_rows(
    sizes: Sequence[int], threads: int, thread: str, names: NameTable, width: int
) -> CopyLoop:
    row_at, column_at = (k for k, size in enumerate(sizes) if size > 1)
    rows, vectors = sizes[row_at], sizes[column_at] // width
    lanes = gcd(vectors, threads)
    lines = threads // lanes
    turn = names.fresh("e")
    each, pieces = rows // lines, vectors // lanes
    count = each * pieces
    number = Name(thread)
    column: IntExpr = number % lanes
    column = _plus(column, lanes, _quotient(Name(turn), each, count))
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[column_at] = column if width == 1 else width * column
    first: IntExpr = number // lanes
    places[row_at] = _plus(first, lines, _remainder(Name(turn), each, count))
    return CopyLoop(counter=turn, count=count, places=tuple(places))


def _plus(first: IntExpr, step: int, times: IntExpr) -> IntExpr:
    if times == Constant(0):
        return first
    return Apply(Operator.ADD, (first, Apply(Operator.MUL, (Constant(step), times))))


def _by_number(sizes: Sequence[int], threads: int, thread: str, names: NameTable) -> CopyLoop:
    element = names.fresh("e")
    return CopyLoop(
        counter=element,
        lower=Name(thread),
        count=prod(sizes),
        step=threads,
        unrolled=False,
        places=unravelled(Name(element), sizes),
    )


def unravelled(element: IntExpr, sizes: Sequence[int]) -> tuple[IntExpr, ...]:
    """Return the indices of the element with a number, in row-major order."""
    places: list[IntExpr] = []
    for position in range(len(sizes)):
        inner = prod(sizes[position + 1 :])
        if sizes[position] == 1:
            places.append(Constant(0))
            continue
        place: IntExpr = element
        if inner > 1:
            place = element // inner
        if prod(sizes[position:]) != prod(sizes):
            place = place % sizes[position]
        places.append(place)
    return tuple(places)
