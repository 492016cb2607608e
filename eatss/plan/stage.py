"""How the threads of a block copy a tile of an array into shared memory.

Where they fill rows or pieces of them, threads copy as many elements each, neighbours next to each
other, and all turns are unrolled. Elsewhere each element is found by divisions.
"""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis.structure import VECTOR_BYTES
from eatss.plan.numbers import Flag, Number, chosen, common_divisor

PIECE_BYTES = 32
"""What lanes that follow each other copy of a row of the array into a transposed tile: a sector."""

LEAST_IN_A_ROW = 8
"""Elements of a row that neighbouring threads copy, if not all of it: of floats a sector."""

MOST_IN_PIECES = 24
"""Elements or vectors that a thread copies so at most, all of them unrolled. A step of gramschmidt
in doubles with 32 for each of 32 threads took 12 % more time than the layout before it."""


def copied_in_rows(sizes: Sequence[Number], threads: Number, width: int = 1) -> Flag:
    """Return where threads copy rows of a tile, or as much of one as they fill evenly.

    That is all of it where rows have as many vectors as a power of two, and a third of it where
    they have three times as many. A tile has rows where two of its extents are over 1.

    Args:
        sizes: of the tile, in elements.
        threads: of the block.
        width: elements that a thread copies at a time.
    """
    long, rows, columns = 0, 1, 1
    for size in sizes:
        rows = chosen((size > 1) & (columns > 1), columns, rows)
        columns = chosen(size > 1, size, columns)
        long = long + (size > 1)
    vectors = columns // width
    lanes = common_divisor(vectors, threads)
    few = rows * vectors <= MOST_IN_PIECES * threads
    pays = (lanes == vectors) | ((lanes * width >= LEAST_IN_A_ROW) & few)
    return (long == 2) & (columns % width == 0) & pays & (rows * lanes % threads == 0)


def copied_in_vectors(sizes: Sequence[Number], row: Number, threads: Number, width: int) -> Flag:
    """Return where threads may copy several elements of a row at a time.

    Args:
        sizes: of the tile, in elements.
        row: elements from one row of the tile to the next.
        threads: of the block.
        width: elements that a thread copies at a time.
    """
    whole = (sizes[-1] % width == 0) & (row % width == 0) & (width > 1)
    return whole & copied_in_rows(sizes, threads, width)


def copied_in_pieces(rows: Number, columns: Number, threads: Number, piece: int) -> Flag:
    """Return where threads copy rows of an array piece by piece, each the same number of elements.

    Args:
        rows: rows of the array that a tile has.
        columns: elements of each.
        threads: of the block.
        piece: elements that follow each other.
    """
    whole = (columns % piece == 0) & (threads % piece == 0) & (rows * columns % threads == 0)
    return whole & ((rows * piece % threads == 0) | (threads % (rows * piece) == 0))


def copied_through_registers(
    rows: Number, columns: Number, threads: Number, element_bytes: int
) -> Flag:
    """Return where threads may load vectors of rows of an array for a transposed tile.

    Arguments are those of :func:`copied_in_pieces`.
    """
    width, piece = VECTOR_BYTES // element_bytes, PIECE_BYTES // element_bytes
    if width <= 1:
        return False
    whole = columns % width == 0
    return whole & copied_in_pieces(rows, columns // width, threads, piece // width)
