"""How the threads of a block walk a box of elements that they copy together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from eatss.analysis.structure import LEAST_IN_A_ROW, MOST_IN_PIECES, copied_in_pieces
from eatss.kernel.nodes import For, Node
from eatss.program import Apply, Constant, IntExpr, Name, Operator, multiplied, total
from eatss.schedule.names import NameTable


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLoop:
    """A loop over a thread's elements of a box; ``places`` are an element's indices in the box."""

    counter: str
    lower: IntExpr
    count: int
    step: int
    unrolled: bool
    places: tuple[IntExpr, ...]

    def around(self, body: tuple[Node, ...]) -> For:
        """Return the loop with a body."""
        return For(
            counter=self.counter,
            lower=self.lower,
            condition=Apply(Operator.LT, (Name(self.counter), Constant(self.count))),
            step=Constant(self.step),
            body=body,
            unroll="whole" if self.unrolled else None,
            narrow=True,
        )


def copy_loop(sizes: Sequence[int], threads: int, thread: str, names: NameTable) -> CopyLoop:
    """Return how a block copies a box, neighbouring threads neighbouring elements.

    Where the threads fill rows or pieces of them, nothing is divided in the loop: a thread stays in
    its column of a piece.

    Args:
        sizes: of the box, in elements.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
    """
    long = [k for k, size in enumerate(sizes) if size > 1]
    if len(long) == len(("rows", "columns")):
        found = _by_rows(sizes, long[0], long[1], threads, thread, names)
        if found is not None:
            return found
    return _by_number(sizes, threads, thread, names)


def wide_copy_loop(
    sizes: Sequence[int], threads: int, thread: str, names: NameTable, width: int
) -> CopyLoop | None:
    """Return how a block copies a box, each thread ``width`` elements of a row at a time.

    ``places`` are those of the first of them. ``None`` where threads do not fill rows or pieces of
    them.
    """
    long = [k for k, size in enumerate(sizes) if size > 1]
    if len(long) != len(("rows", "columns")) or long[1] != len(sizes) - 1:
        return None
    if sizes[-1] % width:
        return None
    return _by_rows(sizes, long[0], long[1], threads, thread, names, width)


def turned_copy_loop(
    sizes: Sequence[int],
    row_at: int,
    threads: int,
    thread: str,
    names: NameTable,
    piece: int,
) -> CopyLoop | None:
    """Return how a block copies a box whose rows lie along another dimension than the array's.

    Neighbouring threads copy a piece of a row of the array, those behind them one of the next row.
    ``None`` where threads do not fill such pieces.

    Args:
        sizes: of the box, in elements, by dimension of the array.
        row_at: the dimension along which rows of the box lie.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        piece: its elements.
    """
    rows, columns = sizes[row_at], sizes[-1]
    if rows * columns != prod(sizes) or not copied_in_pieces(rows, columns, threads, piece):
        return None
    lines, pieces = threads // piece, columns // piece
    number = Name(thread)
    inside = Apply(Operator.REMAINDER, (number, Constant(piece)))
    row: IntExpr = Apply(Operator.QUOTIENT, (number, Constant(piece)))
    turn = names.fresh("e")
    if rows % lines == 0:
        each = rows // lines
        count = each * pieces
        row = total(row, multiplied(Constant(lines), _remainder(Name(turn), each, count)))
        which = _quotient(Name(turn), each, count)
    else:
        count = pieces * rows // lines
        row = Apply(Operator.REMAINDER, (row, Constant(rows)))
        first = Apply(Operator.QUOTIENT, (number, Constant(piece * rows)))
        which = total(first, multiplied(Constant(lines // rows), _quotient(Name(turn), 1, count)))
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[row_at] = row
    places[-1] = total(inside, multiplied(Constant(piece), which))
    return CopyLoop(
        counter=turn,
        lower=Constant(0),
        count=count,
        step=1,
        unrolled=True,
        places=tuple(places),
    )


def _remainder(number: IntExpr, of: int, count: int) -> IntExpr:
    """Return the remainder of a number below ``count``."""
    if of == 1:
        return Constant(0)
    return number if count <= of else Apply(Operator.REMAINDER, (number, Constant(of)))


def _quotient(number: IntExpr, of: int, count: int) -> IntExpr:
    """Return the quotient of a number below ``count``."""
    if count <= of:
        return Constant(0)
    return number if of == 1 else Apply(Operator.QUOTIENT, (number, Constant(of)))


def _by_rows(
    sizes: Sequence[int],
    row_at: int,
    column_at: int,
    threads: int,
    thread: str,
    names: NameTable,
    width: int = 1,
) -> CopyLoop | None:
    """Return a walk in which neighbouring threads copy as much of a row as they fill evenly.

    That is all of it where rows have as many vectors as a power of two, and a third of it where
    they have three times as many.
    """
    rows, vectors = sizes[row_at], sizes[column_at] // width
    lanes = gcd(vectors, threads)
    lines = threads // lanes
    if rows % lines or not _pays(rows, vectors, lanes, threads, width):
        return None
    turn = names.fresh("e")
    each, pieces = rows // lines, vectors // lanes
    count = each * pieces
    number = Name(thread)
    column: IntExpr = Apply(Operator.REMAINDER, (number, Constant(lanes)))
    column = _plus(column, lanes, _quotient(Name(turn), each, count))
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[column_at] = column if width == 1 else multiplied(Constant(width), column)
    first: IntExpr = Apply(Operator.QUOTIENT, (number, Constant(lanes)))
    places[row_at] = _plus(first, lines, _remainder(Name(turn), each, count))
    return CopyLoop(
        counter=turn,
        lower=Constant(0),
        count=count,
        step=1,
        unrolled=True,
        places=tuple(places),
    )


def _pays(rows: int, vectors: int, lanes: int, threads: int, width: int) -> bool:
    """Tell whether threads that do not fill rows copy enough of one, and few pieces each."""
    few = rows * vectors <= MOST_IN_PIECES * threads
    return lanes == vectors or (lanes * width >= LEAST_IN_A_ROW and few)


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
            place = Apply(Operator.QUOTIENT, (element, Constant(inner)))
        if prod(sizes[position:]) != prod(sizes):
            place = Apply(Operator.REMAINDER, (place, Constant(sizes[position])))
        places.append(place)
    return tuple(places)
