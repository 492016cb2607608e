"""How the threads of a block copy a tile of an array into shared memory.

Where they fill rows or pieces of them, threads copy as many elements each, neighbours next to each
other, and all turns are unrolled. Elsewhere each element is found by divisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from eatss.base.frozen import frozen
from eatss.plan.numbers import Flag, Number, chosen, common_divisor, least, no, nowhere
from eatss.plan.rows import PIECE_BYTES, copied_in_pieces, vector

LEAST_IN_A_ROW = 8
"""Elements of a row that neighbouring threads copy, if not all of it: of floats a sector."""

MOST_IN_PIECES = 24
"""Elements or vectors that a thread copies so at most, all of them unrolled. A step of gramschmidt
in doubles with 32 for each of 32 threads took 12 % more time than the layout before it."""


FEWEST_AHEAD = 2
"""Buffers of a tile that is filled ahead, at least. A copy has one turn to arrive then, and so is
not to start late in a turn."""


def buffers(wanted: Number, *, asynchronous: bool) -> Number:
    """Return the buffers of a tile that is filled ahead: through registers no more than two."""
    return wanted if asynchronous else least(wanted, FEWEST_AHEAD)


def is_ahead(depth: Number, deepest: Number) -> Flag:
    """Return where a tile is filled some turns ahead: by the innermost loop that fills any.

    Args:
        depth: how many serial loops stand around the copy.
        deepest: the most that stand around one.
    """
    return (depth > 0) & (depth == deepest)


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


@frozen
class Stage:
    """The copy of a tile of an array into shared memory by the ``threads`` of a block.

    ``extents`` are those of the tile, ``declared`` those of its buffer, a dimension of the array
    each; ``rows`` tells along which its rows lie. ``aligned`` says that rows of the array may all
    begin at multiples of 16 bytes.

    ``on`` tells where it is copied at all, ``touched`` are the extents of the part of the tile that
    loops reach. ``depth`` serial loops of the band stand around the copy, which is made in
    ``parts`` of the launch and has so many ``buffers`` in turn. ``in_front`` tells where it stands
    right in front of a loop that copies ahead, ``narrow`` that elements come one by one, through
    registers: rows of the array begin anywhere, and warps multiply.
    """

    extents: Sequence[Number]
    declared: Sequence[Number]
    rows: Sequence[Flag]
    element_bytes: int
    threads: Number
    aligned: bool
    on: Flag = True
    touched: Sequence[Number] = ()
    depth: int = 0
    parts: tuple[int, ...] = (0,)
    buffers: Number = 1
    in_front: Flag = False
    narrow: bool = False

    @property
    def transposed(self) -> Flag:
        """Where rows lie along another dimension than those of the array."""
        return no(self.rows[-1])

    @property
    def shared_bytes(self) -> Number:
        """Bytes of the buffer."""
        return prod(self.declared) * self.element_bytes

    @property
    def width(self) -> Number:
        """Elements of a row that a thread may copy at a time, where a tile begins at a vector."""
        width = vector(self.element_bytes)
        if width == 1 or not self.aligned:
            return 1
        whole = (self.extents[-1] % width == 0) & (self.declared[-1] % width == 0)
        rows = self.rows[-1] & copied_in_rows(self.extents, self.threads, width)
        return chosen(whole & rows, width, 1)

    @property
    def in_pieces(self) -> Flag:
        """Where threads copy rows of the array piece by piece into a transposed tile."""
        return self._in_pieces(1)

    @property
    def through_registers(self) -> Flag:
        """Where threads may load vectors of rows of the array for a transposed tile."""
        width = vector(self.element_bytes)
        whole = self.aligned & (width > 1) & (self.extents[-1] % width == 0)
        return whole & self._in_pieces(width)

    def _in_pieces(self, width: int) -> Flag:
        if nowhere(self.transposed):
            return False
        *others, columns = self.extents
        piece = PIECE_BYTES // self.element_bytes // width
        few = sum((size > 1) * 1 for size in others) <= 1
        pieces = copied_in_pieces(prod(others), columns // width, self.threads, piece)
        return self.transposed & few & pieces

    @property
    def unrolled(self) -> Flag:
        """Where copies element by element are unrolled, and each thread copies as much."""
        return self.in_pieces | copied_in_rows(self.extents, self.threads)
