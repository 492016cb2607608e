"""How tiles lie in shared memory, and which points a thread has for that.

Elements that lie beside each other in shared memory are loaded together, 16 bytes at a time.

    sh.B[k][j], sh.B[k][j + 1], sh.B[k][j + 2], sh.B[k][j + 3]

The compiler makes one load of them where it can see that they begin at a multiple of 16 bytes. So
rows of tiles have such lengths, and a thread has neighbouring points along a loop instead of
points that are as far apart as there are threads.

Of ``A[i][k]``, which is multiplied by all of a thread's points along ``j``, the tile may be
transposed:

    sh.A[k][i], sh.A[k][i + 1], sh.A[k][i + 2], sh.A[k][i + 3]

In rows along ``k`` a vector is of four steps, and registers have those of all points. That is too
much where most of them hold sums. But transposed tiles are copied element by element.

Threads that fill rows of a tile, or pieces of them, copy as many elements each, neighbours next to
each other, and the loop over them is unrolled. Elsewhere each element is found by divisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from eatss.analysis.variant import VECTOR_BYTES, WORD_BYTES, interleaves
from eatss.base.frozen import frozen, frozen_part
from eatss.plan.numbers import (
    Flag,
    Number,
    all_of,
    any_of,
    chosen,
    common_divisor,
    least,
    no,
    nowhere,
)

BOX_ALIGNMENT = 8
"""Bytes to which a buffer in shared memory is rounded up."""

PIECE_BYTES = 32
"""What lanes that follow each other copy of a row of the array into a transposed tile: a sector."""

_ASYNCHRONOUS_BYTES = (4, 8, VECTOR_BYTES)
"""Bytes that ``cp.async`` copies at a time."""

_MOST_ROWS = 8
"""Rows that neighbouring threads may be in where each loads as much: banks have no more."""

_MOST_VECTORS = 4
"""Vectors of neighbouring points that a thread has."""

TRANSPOSED_MULTIPLE = 4
"""Elements of which rows of transposed tiles are an odd multiple. Those of a piece come into as
many rows, and lanes beside them into this many elements of each: so they fill all banks."""


@frozen
class LoopTile:
    """A loop that is cut into tiles of ``tile`` iterations, which ``threads`` share.

    A serial loop has one thread, and no points of its own.
    """

    name: str
    tile: Number
    threads: Number = 1
    points: Number = 1


@frozen
class Tiling:
    """The loops of a launch in tiles: those of the grid, that of ``x`` last, and serial ones.

    A thread adds up ``sum_words`` registers for each of its points, and may have so many
    ``registers``. Threads ``load_vectors`` where each adds up by itself and multiplies by itself;
    ``neighbours`` tells for each loop where a thread has neighbouring points along it.
    """

    mapped: tuple[LoopTile, ...]
    serial: Mapping[str | None, Number]
    threads: Number
    sum_words: Number = 0
    registers: Number = 0
    load_vectors: bool = True
    neighbours: Mapping[str | None, Flag] = field(default_factory=dict)

    @property
    def tiles(self) -> Mapping[str | None, Number]:
        """Iterations of a tile by loop."""
        return {**self.serial, **{loop.name: loop.tile for loop in self.mapped}}


@frozen
class StagedReads:
    """Reads of one array that may be staged in shared memory together; ``on`` tells where.

    ``along`` has for each dimension the loop that alone goes along it, by ones, where all of them
    read one element. ``moving`` are the loops that change what they read, ``across`` those that
    change a dimension other than that of rows. Of rows of the array ``copied`` elements may be
    copied at a time [:func:`copied_together`]. The last dimension is that of rows, together with
    the one before it where all ``record`` elements of it are read side by side [:func:`record_of`].
    """

    along: tuple[str | None, ...]
    moving: Collection[str]
    across: Collection[str]
    element_bytes: int
    copied: int
    on: Flag = True
    record: int = 1

    @property
    def asynchronous(self) -> Flag:
        """Whether copies need not pass through registers."""
        return is_asynchronous(self.copied * self.element_bytes)


def vector(element_bytes: int) -> int:
    """Return the elements of 16 bytes, which a thread can load from shared memory at a time."""
    return max(1, VECTOR_BYTES // element_bytes)


def element_words(element_bytes: int) -> int:
    """Return the registers of an element."""
    return max(1, element_bytes // WORD_BYTES)


def window_steps(tile: Number) -> Number:
    """Return the steps along rows of a tile that a thread has in registers at a time, or 1.

    Of rows of doubles in three arrays 16 take 100 registers.
    """
    return chosen(np.mod(tile, 16) == 0, 16, chosen(np.mod(tile, 8) == 0, 8, 1))


def in_shared(bytes_: Number) -> Number:
    """Return the bytes that a buffer takes in shared memory."""
    return np.ceil(bytes_ / BOX_ALIGNMENT) * BOX_ALIGNMENT


def is_asynchronous(copied_bytes: Number) -> Flag:
    """Return where so many bytes can be copied to shared memory without registers."""
    return any_of(copied_bytes == own for own in _ASYNCHRONOUS_BYTES)


def record_of(extents: Sequence[int | None], element_bytes: int) -> int:
    """Return the elements of the last dimension of an array where vectors hold whole ones, else 1.

    The two parts of complex numbers are such elements.
    """
    *outer, last = extents or (None,)
    whole = outer and last is not None and 1 < last <= vector(element_bytes)
    return last if whole and last is not None and vector(element_bytes) % last == 0 else 1


def row_length(sizes: Sequence[Any], record: int) -> Any:
    """Return the elements of a row: of the last dimension, or of the last two."""
    return sizes[-1] if record == 1 else sizes[-2] * record


def in_one_row(sizes: Sequence[Any], record: int) -> list[Any]:
    """Return sizes in which the dimensions of a row are one."""
    return [*sizes[: -1 if record == 1 else -2], row_length(sizes, record)]


def copied_together(extents: Sequence[int | None], element_bytes: int, record: int = 1) -> int:
    """Return the elements of a row of an array that a thread may copy at a time.

    Those are a vector where all rows may begin at multiples of one, else one.

    Args:
        extents: of the array, ``None`` where it is not known.
        element_bytes: of an element.
        record: elements of the last dimension that are one with that before it, or 1.
    """
    width, rows = vector(element_bytes), extents if record == 1 else extents[:-1]
    aligned = len(rows) <= 1 or rows[-1] is None or rows[-1] * record % width == 0
    return width if aligned else 1


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


def with_neighbours(
    of: Tiling,
    staged: Sequence[StagedReads],
    accesses: Sequence[tuple[int | None, Collection[str]]],
) -> Tiling:
    """Return a tiling that knows along which loops its threads have neighbouring points.

    They have where what moves along a loop lies in rows of shared memory or in registers, as far as
    serial loops run around it. Rows of a tile lie along one loop, and loops along x come first.

    Args:
        of: the loops.
        staged: what may be in shared memory.
        accesses: what statements access elsewhere than in registers: which of ``staged``, if any,
            and the loops that move it. Statements that no serial loop runs around, though one does
            around others, are left out.
    """
    if not of.load_vectors:
        return of
    found: dict[str | None, Flag] = {}
    crowded = _is_crowded(of, staged)
    taken: list[Flag] = [False] * len(staged)
    for loop in reversed(of.mapped):
        rows = [
            one.on
            & no(was)
            & _fits(loop, vector(one.element_bytes))
            & _may_lie(of, one, loop, crowded)
            for one, was in zip(staged, taken, strict=True)
        ]
        moved = [at for at, moving in accesses if loop.name in moving]
        fine = any_of(rows) & all_of(False if at is None else rows[at] for at in moved)
        taken = [was | (fine & own) for was, own in zip(taken, rows, strict=True)]
        found[loop.name] = fine
    return replace(of, neighbours=found)


def _fits(loop: LoopTile, width: int) -> Flag:
    """Return where points of a thread are whole vectors, and few enough."""
    whole = (loop.threads > 1) & (loop.tile == loop.threads * loop.points)
    several = (width > 1) & (loop.points % width == 0)
    return whole & several & (loop.points <= _MOST_VECTORS * width)


def _may_lie(of: Tiling, one: StagedReads, loop: LoopTile, crowded: Flag) -> Flag:
    """Return where rows of a tile may lie along a loop: those of the array do, or a serial one's.

    Of a transposed tile a thread needs an element for several points of another loop, and copies
    are of whole pieces.
    """
    *others, last = one.along
    if last == loop.name:
        return True
    if last not in of.serial or loop.name not in others:
        return False
    beside = {*one.moving} - {last, loop.name}
    tiles = of.tiles
    if not beside <= tiles.keys():
        return False
    pays = (loop is of.mapped[-1]) | (one.copied == 1) | crowded
    again = any_of(each.points > 1 for each in of.mapped if each.name not in one.moving)
    alone = all_of(tiles[name] == 1 for name in beside)
    fine = pays & again & alone
    if nowhere(fine):
        return False
    piece = PIECE_BYTES // one.element_bytes
    return fine & copied_in_pieces(loop.tile, tiles[last], of.threads, piece)


def _is_crowded(of: Tiling, staged: Sequence[StagedReads]) -> Flag:
    """Return where vectors of steps for all of a thread's points leave no registers to load ahead.

    Sums that take more than a third of the registers are too many; beside them the vectors of all
    that lies along serial loops have to fit.
    """
    held = of.sum_words * prod(loop.points for loop in of.mapped)
    loaded = sum(
        one.on * prod(loop.points for loop in of.mapped if loop.name in one.moving)
        for one in staged
        if one.along and one.along[-1] in of.serial
    )
    return (3 * held > of.registers) | (held + loaded * element_words(VECTOR_BYTES) > of.registers)


def row_dimensions(of: Tiling, one: StagedReads) -> tuple[Flag, ...]:
    """Return for each dimension of an array where rows of its tile lie along it.

    That is the dimension of neighbouring points, or the last. A tile is transposed where it is
    another than the last.
    """
    found: list[Flag] = []
    for loop in one.along[:-1]:
        found.append(no(any_of(found)) & of.neighbours.get(loop, False))
    return (*found, no(any_of(found)))


def in_rows(of: Tiling, one: StagedReads) -> Flag:
    """Return where reads are staged in rows along neighbouring points of a thread."""
    return one.on & any_of(of.neighbours.get(loop, False) for loop in one.along)


def step_vector(of: Tiling, one: StagedReads) -> Number:
    """Return the elements of a row that a thread loads at a time, where rows lie as in the array.

    Where lanes are in columns it is one record: many that read one column have a bank each then.
    """
    if not of.load_vectors or not of.mapped:
        return one.record
    last = of.mapped[-1]
    in_columns = (last.name in one.across) & (last.threads > _MOST_ROWS)
    return chosen(in_columns, one.record, vector(one.element_bytes))


def padded_rows(of: Tiling, one: StagedReads, sizes: Sequence[Number]) -> list[Number]:
    """Return the declared extents of a tile, a dimension of the array each.

    Rows are an odd multiple of the elements that a thread may load at a time, if they are a
    multiple at all, so that columns change banks. Copies into transposed tiles meet no bank twice
    by it.
    """
    *others, last = row_dimensions(of, one)
    record, outer = one.record, others if one.record == 1 else others[:-1]
    multiples = [*(TRANSPOSED_MULTIPLE for _ in outer), step_vector(of, one)]
    total = prod(sizes)
    found = []
    rows = in_one_row(sizes, record)
    for size, multiple, on in zip(rows, multiples, (*outer, last), strict=True):
        together = chosen(size % multiple == 0, multiple, record)
        padding = together * (size // together % 2 == 0) * (total > size)
        found.append(size + padding * on)
    return found if record == 1 else [*found[:-1], found[-1] // record, record]


def interleaved(
    of: Tiling, axes: Sequence[tuple[str, Number]], staged: Sequence[StagedReads]
) -> dict[tuple[str, str], Flag]:
    """Return for two loops where lanes are interleaved along them: vectors take fewer wavefronts.

    Threads have neighbouring points along both [:mod:`eatss.analysis.variant`].

    Args:
        of: the loops.
        axes: those with threads, with their number, the fastest first.
        staged: what may be in shared memory.
    """
    loads = [([name in one.moving for name, _ in axes], in_rows(of, one)) for one in staged]
    threads = [count for _, count in axes]
    found = {}
    for first, second in combinations(range(len(axes)), 2):
        pair = axes[first][0], axes[second][0]
        both = all_of((of.load_vectors, *(of.neighbours.get(name, False) for name in pair)))
        found[pair] = both & interleaves(threads, (first, second), loads)
    return found


LEAST_IN_A_ROW = 8
"""Elements of a row that neighbouring threads copy, if not all of it: of floats a sector."""

MOST_IN_PIECES = 24
"""Elements or vectors that a thread copies so at most, all of them unrolled. A step of gramschmidt
in doubles with 32 for each of 32 threads took 12 % more time than the layout before it."""


FEWEST_AHEAD = 2
"""Buffers of a tile that is filled ahead, at least. A copy has one turn to arrive then, and so is
not to start late in a turn."""


_LEAST_TRANSPOSED = 32


def are_many_transposed(elements: Number) -> Flag:
    """Return where tiles are transposed in registers though others are not transposed.

    One by one so many ``elements`` of a thread in a turn hold up its loads of operands: on an H200
    a product of 512 x 64 x 16 floats takes 0.246 ms and 0.141 J so, in vectors 0.227 and 0.129.
    """
    return elements >= _LEAST_TRANSPOSED


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


@frozen_part
class Stage:
    """The copy of a tile of an array into shared memory by the ``threads`` of a block.

    ``extents`` are those of the tile, ``declared`` those of its buffer, a dimension of the array
    each; ``rows`` tells along which its rows lie. Of rows of the array ``copied`` elements may be
    copied at a time.

    ``on`` tells where it is copied at all, ``touched`` are the extents of the part of the tile that
    loops reach. ``depth`` serial loops of the band stand around the copy, which is made in
    ``parts`` of the launch and has so many ``buffers`` in turn. ``in_front`` tells where it stands
    right in front of a loop that copies ahead, ``narrow`` that elements come one by one, through
    registers: rows of the array begin anywhere, and warps multiply.

    One that is ``private`` has what threads write, each its own rows. It is ``filled`` where
    something of it is read that the same iteration has not written, and copied back in the parts in
    ``stored_in``. Both wait for each other, so it has one buffer, unless tiles are ``apart``: no
    two have an element in common. What is ``stored``, of such extents, is copied by itself.
    ``record`` is that of :class:`StagedReads`.
    """

    extents: Sequence[Number]
    declared: Sequence[Number]
    rows: Sequence[Flag]
    element_bytes: int
    threads: Number
    copied: int
    on: Flag = True
    touched: Sequence[Number] = ()
    depth: int = 0
    parts: tuple[int, ...] = (0,)
    buffers: Number = 1
    in_front: Flag = False
    narrow: bool = False
    private: bool = False
    filled: bool = True
    stored_in: tuple[int, ...] = ()
    stored: Sequence[Number] = ()
    record: int = 1
    apart: bool = False

    @property
    def runs_ahead(self) -> bool:
        """Whether it may be filled while others are in use."""
        return not self.private or (self.filled and self.apart)

    @property
    def transposed(self) -> Flag:
        """Where rows lie along another dimension than those of the array."""
        return no(self.rows[-1])

    @property
    def shared_bytes(self) -> Number:
        """Bytes of the buffer."""
        return prod(self.declared) * self.element_bytes

    @cached_property
    def width(self) -> Number:
        """Elements of a row that a thread may copy at a time, where a tile begins at a vector."""
        width = self.copied
        if width == 1:
            return 1
        length, declared = (row_length(one, self.record) for one in (self.extents, self.declared))
        whole = (length % width == 0) & (declared % width == 0)
        records = self.extents if self.record == 1 else self.extents[:-1]
        rows = copied_in_rows(records, self.threads, width // self.record)
        return chosen(whole & self.rows[-1] & rows, width, 1)

    @property
    def asynchronous(self) -> Flag:
        """Where copies need not pass through registers: of words, or of whole vectors."""
        return is_asynchronous(self.width * self.element_bytes)

    @cached_property
    def in_pieces(self) -> Flag:
        """Where threads copy rows of the array piece by piece into a transposed tile."""
        return self._in_pieces(1)

    @cached_property
    def through_registers(self) -> Flag:
        """Where threads may load vectors of rows of the array for a transposed tile."""
        width = self.copied
        return (width > 1) & (self.extents[-1] % width == 0) & self._in_pieces(width)

    def _in_pieces(self, width: int) -> Flag:
        if nowhere(self.transposed):
            return False
        *others, columns = self.extents
        piece = PIECE_BYTES // self.element_bytes // width
        few = sum((size > 1) * 1 for size in others) <= 1
        pieces = copied_in_pieces(prod(others), columns // width, self.threads, piece)
        return self.transposed & few & pieces

    @cached_property
    def unrolled(self) -> Flag:
        """Where copies element by element are unrolled, and each thread copies as much."""
        sizes = self.stored or in_one_row(self.extents, self.record)
        return self.in_pieces | copied_in_rows(sizes, self.threads)


def first_with_room(stages: Iterable[Stage], left_bytes: float) -> Stage | None:
    """Return the first of the ways to have a tile for which so many bytes are enough.

    What has none stays in global memory, and what comes behind it takes the room.
    """
    return next((one for one in stages if np.all(one.shared_bytes <= left_bytes)), None)
