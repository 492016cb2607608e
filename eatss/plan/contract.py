"""Products of a statement that a thread or a warp adds up, step by step: what a turn of it does.

    for (k_part = 0; k_part < 12; k_part += 6) for (k_step < 6) { … }  for (k_step = 12; …) { … }

Operands of a step are loaded while the one before is computed, where registers have room for both.
How many steps are unrolled a cache of instructions says: all of a turn, or parts that run one after
the other.

Which sums registers keep, and how many registers there are for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Protocol

from eatss.analysis.variant import (
    MATRIX_ROWS,
    VECTOR_BYTES,
    WORD_BYTES,
    ProductFacts,
    WarpInstruction,
    bank_cycles,
    best_padding,
)
from eatss.base.frozen import frozen
from eatss.plan.numbers import Flag, Number, chosen, least, most
from eatss.program.linear import Coefficients

FRAGMENT_PLACES = 32
"""Registers for the places of copies and loads of products: with fewer, compilers spill sums."""

STEPS_LOADED = 2
"""Steps of products whose fragments are in registers at a time where loads run a step ahead."""

OPERAND_REUSE = 2
"""Products for each operand of a step from which on loads of the next are under way meanwhile."""

MOST_IN_A_TURN = 2048
"""Products of a thread in one turn at most. On an H100 a gemm of 4000 floats takes 2.76 ms with 16
steps of 128 products, 2.84 with 32 and 2.90 with 64 (docs/design-findings.md)."""

MOST_UNROLLED = 1280
"""Instructions that are unrolled at most: of a product one, of a squared distance two."""

UNROLLED_A_THREAD = 8
"""Instructions that are unrolled at most for each thread of a block."""


@frozen
class Contract:
    """Products that warps add to the sums of a statement by an instruction.

    There are ``terms`` of them, each of two matrices. A thread has points along ``rows`` and
    ``columns``. Of narrow elements lanes load ``whole`` matrices.
    """

    instruction: WarpInstruction
    product: ProductFacts
    terms: int
    rows: Number
    columns: Number
    whole: bool = False

    @property
    def matrices(self) -> Number:
        """Matrices of sums that a warp has."""
        rows, columns = self.instruction.points
        return self.rows * self.columns / (rows * columns)

    @property
    def loads_of_sides(self) -> tuple[Number, Number]:
        """Elements that a lane loads of both factors for the steps of one instruction."""
        (rows, columns), (first, second) = self.instruction.points, self.instruction.elements
        return self.rows / rows * first, self.columns / columns * second

    @property
    def loads(self) -> Number:
        """Elements that a lane loads for the steps of one instruction."""
        first, second = self.loads_of_sides
        return first + second

    def requests(self, rows: bool, columns: bool) -> Number:
        """Return the loads for the steps of one instruction.

        Bytes of transposed tiles come by twos, and each word of them is put together; if a lane has
        no two columns for them, it loads byte by byte.

        Args:
            rows: whether tiles of the first factor lie transposed.
            columns: whether those of the second do.
        """
        own, (first, second) = self.instruction, self.loads_of_sides
        if not self.whole:
            return first + second
        each = own.factor_bytes / VECTOR_BYTES
        word = each + 1.0 / WORD_BYTES
        bytes_ = own.factor_bytes == 1
        twos = self.columns % (2 * own.points[1]) == 0
        first = first * (word if bytes_ and rows else each)
        return first + second * (chosen(twos, word, 1.0) if bytes_ and columns else each)

    @property
    def step_words(self) -> Number:
        """Registers for them."""
        return self.loads * self.instruction.factor_words

    @property
    def least_words(self) -> Number:
        """Registers for one factor of all rows, and the other one of a matrix at a time."""
        first, second = self.instruction.elements
        along = self.rows / self.instruction.points[0]
        return (along * first + second) * self.instruction.factor_words

    @property
    def part_words(self) -> float:
        """Registers for further parts of factors, of one matrix of each."""
        own = self.instruction
        return (own.parts - 1) * sum(own.elements) * own.factor_words


def reuses(products: Number, operands: Number) -> Flag:
    """Return where a step computes enough with what it loads for loads to be under way."""
    return (operands > 0) & (products >= OPERAND_REUSE * operands)


def words_of_two(words: Sequence[Number]) -> Number:
    """Return the registers for the operands of two products of a step that follow each other.

    Behind the last one comes the first one of the next step.
    """
    pairs = zip(words, (*words[1:], words[0]), strict=True)
    return reduce(most, [one + other for one, other in pairs])


def prefetch_words(sums: Number, operands: Number) -> Number:
    """Return the registers for sums, operands that are loaded ahead, and their places."""
    return sums + operands + FRAGMENT_PLACES


def prefetches(sums: Number, operands: Number, registers: Number) -> Flag:
    """Return where registers have room for sums, and operands that are loaded ahead."""
    return prefetch_words(sums, operands) <= registers


def interleaved_fragments(points: int, of_a_matrix: int, element_bytes: int) -> int:
    """Return how many matrices' columns take turns: up to as many as elements in 16 bytes.

    Those of narrow elements are loaded as whole matrices by all lanes together, whose columns
    follow each other; those of two matrices of bytes, which come by twos, take turns.

    Args:
        points: of a thread along columns.
        of_a_matrix: those in one matrix.
        element_bytes: of an element.
    """
    turns = VECTOR_BYTES // element_bytes if element_bytes >= WORD_BYTES else 2 // element_bytes
    while turns > 1 and points % (of_a_matrix * turns):
        turns //= 2
    return max(1, turns)


def runs_along(subscripts: Sequence[Coefficients], loop: str) -> bool:
    """Tell whether rows of a tile run along a loop: the columns of products, or their sum."""
    *others, last = subscripts
    return loop in dict(last) and not any(loop in dict(terms) for terms in others)


def fragment_padding(
    instruction: WarpInstruction,
    loops: tuple[str, str, str],
    turns: int,
    reads: Sequence[Sequence[Coefficients]],
    extents: Sequence[int],
    element_bytes: int,
    threads: int = 1,
) -> int:
    """Return the elements that rows of a tile are padded by, so that lanes meet few banks twice.

    Lane ``4 * row + step`` has that row, and that step, of the first matrix. Of the second it has
    the step and column ``row``, which is a point of the thread ``row // 2`` if each has two. Where
    the columns of matrices take turns a lane loads one of each at a time. Of narrow elements a warp
    loads matrices whose 8 rows are each 16 bytes.

    Args:
        instruction: what multiplies the matrices.
        loops: over rows and columns, and that of the sums.
        turns: how many matrices' columns take turns, 0 where points of a thread are as far apart as
            there are threads.
        reads: the subscripts of what is read, all of one factor of products.
        extents: of the tile.
        element_bytes: of an element.
        threads: along columns, where none take turns.
    """
    rows, columns, sum_loop = loops
    narrow, of_a_thread = element_bytes < WORD_BYTES, instruction.points[1]

    def column(row: int) -> int:
        return turns * row if turns else row // of_a_thread + threads * (row % of_a_thread)

    def lanes(one: Sequence[Coefficients]) -> list[dict[str, int]]:
        if narrow:
            down = (rows, columns) if runs_along(one, sum_loop) else (sum_loop,)
            return [dict.fromkeys(down, row) for row in range(MATRIX_ROWS)]
        return [
            {rows: row, columns: column(row), sum_loop: step * instruction.steps_beside}
            for row, step in product(*map(range, instruction.lanes))
        ]

    def width(one: Sequence[Coefficients]) -> int:
        if narrow:
            return VECTOR_BYTES // element_bytes
        of_columns = turns if runs_along(one, columns) else 1
        return max(1, of_columns, instruction.steps_beside * runs_along(one, sum_loop))

    loads = [([_place(one, lane, extents) for lane in lanes(one)], width(one)) for one in reads]

    def cycles(padding: int) -> int:
        long = extents[-1] + padding
        return sum(
            bank_cycles([(row * long + x) // own for row, x in places], own * element_bytes)
            for places, own in loads
        )

    return best_padding(cycles, extents[-1], element_bytes)


def _place(
    subscripts: Sequence[Coefficients], lane: Mapping[str, int], extents: Sequence[int]
) -> tuple[int, int]:
    """Return the row of a tile that a lane reads from, and the element of the row."""
    *outer, x = [sum(lane.get(name, 0) * factor for name, factor in one) for one in subscripts]
    row = 0
    for at, extent in zip(outer, extents[:-1], strict=True):
        row = row * extent + at
    return row, x


def unrolled(steps: Number, products: Number, threads: Number) -> Flag:
    """Return where a turn of steps with so many products of a thread each is unrolled.

    It is in parts if need be [:func:`steps_of_a_part`].
    """
    whole, two_parts = steps * products, 2 * STEPS_LOADED * products
    kept = _is_kept(whole, threads) | _is_kept(two_parts, threads)
    return (whole <= MOST_IN_A_TURN) & kept


def _is_kept(products: Number, threads: Number) -> Flag:
    """Return where a cache keeps instructions for so many products.

    Warps of one block use the same of it at nearly the same time, other blocks of the SM others:
    fewer where blocks have few threads.
    """
    return products <= most_unrolled(threads)


def most_unrolled(threads: Number) -> Number:
    """Return how many products of a thread are unrolled at most in blocks of so many threads."""
    return least(threads * UNROLLED_A_THREAD, MOST_UNROLLED)


def steps_of_a_part(steps: int, products: int, threads: int) -> int:
    """Return of how many steps parts are that run one after the other in a loop.

    Some steps are left behind the loop: two, or what else does not make a part. There are as few
    parts as a cache of instructions allows then.

    Args:
        steps: an even number.
        products: of a thread in each of them.
        threads: of the block.

    Returns:
        An even number; 0 where all steps are unrolled.
    """
    if _is_kept(steps * products, threads):
        return 0
    sizes = range(STEPS_LOADED, steps, STEPS_LOADED)
    parts = {size: (steps - STEPS_LOADED) // size for size in sizes}
    kept = [
        size
        for size, count in parts.items()
        if _is_kept((steps - (count - 1) * size) * products, threads)
    ]
    return min(kept, key=lambda size: (parts[size], -size), default=0)


MOST_POINTS = 128
"""Points of a thread that are unrolled, and of which registers keep what they add up."""

ROOM_BESIDE_SUMS = 72
"""Registers of a thread beside those of its sums, to which a compiler may be bound so that more
blocks run at a time. On an H100 products with 96 sums and 72 registers beside them took 0.70 to
1.08 times the time so, those with 64 sums and 64 registers 1.09 to 1.17 (``library-resident``)."""


class RegisterFile(Protocol):
    """What of a card decides how many registers a thread may have."""

    @property
    def registers_per_thread(self) -> int:
        """Those that an instruction can name."""

    @property
    def registers_per_block(self) -> int:
        """Those of all threads of a block."""


def registers_of_a_thread(card: RegisterFile, threads: Number) -> Number:
    """Return the registers that a thread of a block of so many may have."""
    return least(card.registers_per_block // threads, card.registers_per_thread)


def held_words(registers: Number) -> Number:
    """Return the words that points may keep of a thread's registers.

    A quarter is left for addresses and operands.
    """
    return registers * 3 // 4


def are_held(points: Number, words: Number, left: Number) -> Flag:
    """Return where registers keep what so many points of a thread add up.

    Args:
        points: of a thread.
        words: of all that they add up.
        left: of those that points may keep (:func:`held_words`).
    """
    return (points <= MOST_POINTS) & (words <= left)
