"""How the generator can cut a kernel into launches: its own description, which the model reads.

The generator (:mod:`eatss.lower.variants`) says which cuts are legal and what each launch keeps
in registers and may stage; the model chooses among them and chooses the sizes.

The last part is of banks of shared memory, by which the generator lays out lanes and the model
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeAlias, TypeVar

from eatss.base.frozen import Names, distinct, frozen
from eatss.base.targets import Fusion
from eatss.program.expression import Sizes

Numbers = TypeVar("Numbers", bound=Any)
"""A whole number, or a column of them: the generator asks for one, the model for thousands."""

WORD_BYTES = 4
"""What a register holds."""

VECTOR_BYTES = 16
"""What a thread can load from shared memory at a time."""

MATRIX_ROWS = 8
"""Rows of a matrix of halves that a warp loads as a whole, each a vector."""


SWIZZLED_ROWS = 8
"""Rows of tiles that blocks take column by column, where copies run ahead."""


MAX_STAGES = 8
"""The most boxes of shared memory in use at once."""


TensorFormat: TypeAlias = Literal["fp64", "tf32", "fp16", "int8"]
"""What tensor cores multiply."""


@frozen
class WarpInstruction:
    """An instruction by which a warp adds a product of two small matrices to a third.

    The matrices are ``rows`` × ``steps`` and ``steps`` × ``columns``. The ``lanes`` of the warp,
    along rows and columns, are a box; each has every so many points of the third one, and
    ``steps_beside`` steps that follow each other. The third matrix is of elements of
    ``element_bytes``, the others of ``factor_bytes``.

    Tensor cores multiply a ``format``, ``products`` times for each product of the instruction.
    Factors take ``conversions`` instructions each first, and are ``parts`` numbers then.
    """

    name: str
    rows: int
    columns: int
    steps: int
    lanes: tuple[int, int]
    steps_beside: int = 1
    element_bytes: int = 8
    factor_bytes: int = 8
    format: TensorFormat = "fp64"
    products: int = 1
    parts: int = 1
    conversions: int = 0

    @property
    def words(self) -> int:
        """Registers of an element of the third matrix."""
        return self.element_bytes // WORD_BYTES

    @property
    def factor_words(self) -> float:
        """Registers of an element of the others."""
        return self.factor_bytes / WORD_BYTES

    @property
    def multiply_adds(self) -> int:
        """Products that it adds."""
        return self.rows * self.columns * self.steps

    @property
    def points(self) -> tuple[int, int]:
        """Points of the third matrix that a lane has, along rows and columns."""
        return self.rows // self.lanes[0], self.columns // self.lanes[1]

    @property
    def elements(self) -> tuple[int, int]:
        """Elements of the first and of the second matrix that a lane holds."""
        lanes = self.lanes[0] * self.lanes[1]
        return self.rows * self.steps // lanes, self.columns * self.steps // lanes

    def fits(
        self,
        loops: Sequence[str],
        sums: Collection[str],
        tiles: Sizes,
        threads: Sizes,
    ) -> bool:
        """Tell whether warps can use it: their threads are boxes of lanes.

        Each thread has whole matrices' worth of points then, and a tile of a sum whole steps.

        Args:
            loops: that along rows and that along columns.
            sums: loops of sums, of which one will do.
            tiles: by loop of the band.
            threads: by mapped loop.
        """
        several = {name for name, count in threads.items() if count > 1}
        return (
            len(loops) == len(self.lanes)
            and several == {*loops}
            and any(tiles[name] % self.steps == 0 for name in sums)
            and all(
                threads[name] % lanes == 0 and tiles[name] % (threads[name] * points) == 0
                for name, lanes, points in zip(loops, self.lanes, self.points, strict=True)
            )
        )


@frozen
class RecomputedArray:
    """An array whose readers compute its elements anew; ``region`` is the number of its region."""

    region: int
    array: str


@frozen
class ClassSize:
    """A region whose loops are in blocks of ``size`` steps, by its number."""

    region: int
    size: int


@frozen
class PrivateArrays:
    """A region, by its number, whose arrays have elements for each iteration that overwrites them.

    Those of loops that ``outer`` others or more are around.
    """

    region: int
    outer: int = 0


@frozen
class ChunkedScan:
    """A recurrence that is cut into chunks of ``length`` steps, or sums of one pass by such parts.

    A ``length`` of 0 is that of rows.
    ``region`` is the number of its region, ``statement`` the name it has there.
    """

    region: int
    statement: str
    length: int


@frozen
class Rewrites:
    """How the regions of a program are changed before they are scheduled.

    Attributes:
        recomputed: Arrays whose elements kernels compute anew where they read them.
        factored: Numbers of the regions whose sums have factors taken out of sums inside of them.
        reverse: Numbers of the regions whose sums do not begin with what is computed last.
        private: Regions whose arrays have elements for each iteration that overwrites them.
        split: Numbers of the regions whose statements are cut where they meet what they read.
        classes: Regions whose loops are in blocks of steps, cut into classes of tiles.
        chunks: Recurrences that are cut into chunks, which run at once.
        fused: Which nests are one kernel: ``none``, ``users`` (those of which one uses what the
            other makes) or ``all`` (those that read the same array, too).
    """

    recomputed: tuple[RecomputedArray, ...] = ()
    factored: tuple[int, ...] = ()
    reverse: tuple[int, ...] = ()
    private: tuple[PrivateArrays, ...] = ()
    split: tuple[int, ...] = ()
    classes: tuple[ClassSize, ...] = ()
    chunks: tuple[ChunkedScan, ...] = ()
    fused: Fusion = "none"

    def rewriting(self) -> dict[str, Any]:
        """Return these fields, for another noun that has them."""
        return {one.name: getattr(self, one.name) for one in fields(Rewrites)}


@frozen
class ProductFacts:
    """Sums of products of a statement that an instruction of warps computes.

    A statement that adds several products has one for each of them.
    ``rows`` and ``columns`` are the mapped loops along which the first and the second factor move,
    ``sum_loop`` is the serial one of the sums. ``references`` are those of both, by index. The last
    turn ``ends_whole`` where zeros stand beside boxes: a factor is what is read, and no difference.
    """

    statement: str
    rows: str
    columns: str
    sum_loop: str
    references: tuple[int, ...]
    ends_whole: bool = True

    @property
    def loops(self) -> tuple[str, str, str]:
        """The loops over rows and columns, and that of the sums."""
        return self.rows, self.columns, self.sum_loop


@frozen
class RegisterTileFacts:
    """An array of which each point of a thread keeps an element in registers.

    ``references`` are indices into ``KernelFacts.references``. ``loads`` says that it is read from
    memory first; ``element_bytes`` is the width of an element. Of a reduction that several threads
    have parts of, ``what`` says what they come to (``"sum"``), and ``exchanges`` that cards have no
    atomic operation for it: blocks compare and exchange. One that is ``continued`` is added up in
    the registers of another. Nothing is ``stored`` of what only the launch sees. Points along loops
    ``across`` have parts of one element.
    """

    array: str
    references: tuple[int, ...]
    element_bytes: int
    loads: bool
    what: str = ""
    exchanges: bool = False
    continued: bool = False
    across: Names = ()
    stored: bool = True


@frozen
class PartFacts:
    """Statements of a launch that share serial loops of the band, which are cut into tiles."""

    statements: Names
    serial: Names


@frozen
class PrivateTileFacts:
    """A group of references of which threads write elements, each of its own rows.

    Its tiles are ``filled`` first, unless all that is read was written in the same iteration, and
    stored in the parts that are in ``stored_in``, by index. They are ``apart`` where no two have an
    element in common.
    """

    references: tuple[int, ...]
    filled: bool
    stored_in: tuple[int, ...]
    apart: bool = False


@frozen
class LaunchFacts:
    """One kernel of generated code, sizes aside.

    ``mapped`` are the loops that go to blocks and threads, in the order of threads: along ``x``
    last. ``stageable`` are groups of references, by index, that may be copied to shared memory
    together; ``copied_in`` says in which parts, by index, each of them is copied: in each that
    reads it. Boxes of one part lie where those of the others do. Groups that are ``private`` are
    written, too.
    ``sum_loop`` is the loop of the sums that are spread over lanes and chunks, ``outer_loop``
    another one of theirs that blocks may share; ``shared_loop`` is that of sums that blocks share
    and lanes do not. What ``scans`` stores each step of its sum; where it
    ``looks_back`` tiles of a row may be blocks. ``products`` are the statements
    that the variant's instruction computes. Tiles that a bound cuts, as in a triangle, run as full
    ones do for the statements that are ``whole_if_finite``, where no factor is infinite. Blocks may
    take equal shares of the turns of the ``stream_loop``. Parts with serial loops may be ``apart``:
    no block has two of them.
    """

    mapped: Names
    parts: tuple[PartFacts, ...]
    held: tuple[RegisterTileFacts, ...]
    stageable: tuple[tuple[int, ...], ...]
    copied_in: tuple[tuple[int, ...], ...]
    sum_loop: str | None = None
    outer_loop: str | None = None
    shared_loop: str | None = None
    scans: bool = False
    looks_back: bool = False
    products: tuple[ProductFacts, ...] = ()
    whole_if_finite: Names = ()
    stream_loop: str | None = None
    private: tuple[PrivateTileFacts, ...] = ()
    apart: bool = False

    @property
    def turns_loop(self) -> str | None:
        """The loop of sums at whose tiles blocks take turns."""
        return self.shared_loop or self.outer_loop

    @property
    def exchanges(self) -> bool:
        """Whether blocks that share a sum combine some element by comparing and exchanging."""
        return any(own.exchanges and not own.across for own in self.held)

    @property
    def statements(self) -> Names:
        """The statements of all parts."""
        return tuple(name for part in self.parts for name in part.statements)


@frozen
class KernelVariant:
    """One way to cut a kernel into launches.

    ``instruction`` is what warps compute products by. Sums ``in_order`` are added up in that of the
    source.
    """

    launches: tuple[LaunchFacts, ...]
    instruction: WarpInstruction | None = None
    in_order: bool = False

    @property
    def spreads(self) -> bool:
        """Whether sums are spread over lanes or chunks."""
        return any(one.sum_loop is not None for one in self.launches)

    @property
    def shared_loop(self) -> str | None:
        """The loop of whose tiles blocks share the sums."""
        return next((one.shared_loop for one in self.launches if one.shared_loop), None)

    @property
    def cut(self) -> tuple[bool, str | None, str | None]:
        """What tells it from the others: whether it spreads, its loop, its instruction."""
        name = None if self.instruction is None else self.instruction.name
        return self.spreads, self.shared_loop, name

    @property
    def stream_loop(self) -> str | None:
        """The loop of whose turns blocks may take equal shares."""
        return next((one.stream_loop for one in self.launches if one.stream_loop), None)

    @property
    def sum_kinds(self) -> Names:
        """What the sums are that several threads have parts of: ``"sum"``, ``"maximum"``."""
        kinds = (own.what for launch in self.launches for own in launch.held if own.what)
        return distinct(kinds)

    @property
    def products(self) -> tuple[ProductFacts, ...]:
        """What ``instruction`` computes, in all launches."""
        return tuple(one for launch in self.launches for one in launch.products)


# -- banks of shared memory ---------------------------------------------------------------------
#
# A warp loads vectors in two halves of 16 lanes. A half takes one wavefront where lanes ``l`` and
# ``l ^ 1`` want the same vector, for all ``l``, or lanes ``l`` and ``l ^ 2`` do; else it takes two
# [measured on an H100]. Threads are numbered along ``x`` first, so with 16 x 16 of them what moves
# along ``y`` alone takes 2 wavefronts, and what moves along ``x`` takes 4.
#
# Where lanes are interleaved, bits 0, 3 and 4 of a lane's number are its place along ``x``, and
# bits 1 and 2 that along ``y``. Then ``l`` and ``l ^ 1`` have the same place along ``y``, ``l``
# and ``l ^ 2`` along ``x``, and both kinds of vectors take 2.
#
# The generator lays out lanes by this, and the model counts by it.


COPIED_BYTES = 16
"""Bytes that a thread copies at a time where rows allow it."""

_BANK_BYTES = 4
_BANKS = 32

MOST_PADDING_BYTES = _BANKS * _BANK_BYTES
"""Rows are padded by less: banks repeat then."""


def bank_cycles(places: Sequence[int], element_bytes: int) -> int:
    """Return the cycles in which the lanes of a warp read elements, by their places in a buffer.

    As many lanes as the banks have room for are served at once; those that want different words
    of one bank wait for each other.
    """
    together = min(len(places), _BANKS * _BANK_BYTES // element_bytes)
    cycles = 0
    for first in range(0, len(places), together):
        asked: dict[int, int] = {}
        for place in set(places[first : first + together]):
            bank = place * element_bytes // _BANK_BYTES % _BANKS
            asked[bank] = asked.get(bank, 0) + 1
        cycles += max(asked.values())
    return cycles


def best_padding(cycles: Callable[[int], int], row: int, element_bytes: int) -> int:
    """Return the elements to pad rows by that take the fewest cycles, the fewest of several.

    Rows begin at multiples of 16 bytes, so that so many can be copied at a time.

    Args:
        cycles: of a padding.
        row: elements of a row.
        element_bytes: of an element.
    """
    together = max(1, COPIED_BYTES // element_bytes)
    paddings = range(-row % together, MOST_PADDING_BYTES // element_bytes, together)
    return min(paddings, key=lambda one: (cycles(one), one))


ALONG_X = 8
"""Lanes of a warp along ``x`` where they are interleaved."""

ALONG_Y = 4
"""Lanes of a warp along ``y`` where they are interleaved."""

_ONE_BY_ONE = 4
"""Wavefronts of a load whose halves take two each."""

_IN_PAIRS = 2
"""Wavefronts of a load whose halves take one each."""


def vector_wavefronts(threads: Sequence[Numbers], moves: Sequence[bool]) -> Numbers:
    """Return the wavefronts of one load of vectors where threads are numbered as they come.

    Args:
        threads: of a block along each axis, the fastest first.
        moves: for each axis whether what is loaded moves along it.
    """
    one: Any = True  # whether l and l ^ 1 have the same places along all that move
    two: Any = True
    before: Any = 1
    for count, moved in zip(threads, moves, strict=True):
        if moved:
            one = one & ((count == 1) | (before % 2 == 0))
            by_turns = (before == 1) & (count == 2)  # places 0, 1, 0, 1
            two = two & ((count == 1) | (before % 4 == 0) | by_turns)
        before = before * count
    found: Numbers = _ONE_BY_ONE - (_ONE_BY_ONE - _IN_PAIRS) * (one | two)
    return found


def interleaved_wavefronts(*, along_x: bool, along_y: bool) -> int:
    """Return the wavefronts of one load of vectors where lanes are interleaved.

    Args:
        along_x: whether what is loaded moves along the first of the two axes.
        along_y: whether it moves along the second.
    """
    return _ONE_BY_ONE if along_x and along_y else _IN_PAIRS


def interleaves(
    threads: Sequence[Numbers],
    along: tuple[int, int],
    loads: Sequence[tuple[Sequence[bool], Numbers | bool]],
) -> Numbers:
    """Return where lanes are interleaved along two axes: loads of vectors take fewer wavefronts.

    They are the two fastest axes that have several threads, and warps are whole boxes of them.

    Args:
        threads: of a block along each axis, the fastest first.
        along: which axes.
        loads: what is loaded in vectors: along which axes it moves, and where it is loaded so.
    """
    first, second = along
    fits = (threads[first] % ALONG_X == 0) & (threads[second] % ALONG_Y == 0)
    for at in range(second):
        if at != first:
            fits = fits & (threads[at] == 1)
    saved: Any = 0
    for moves, on in loads:
        after = interleaved_wavefronts(along_x=moves[first], along_y=moves[second])
        saved = saved + on * (vector_wavefronts(threads, moves) - after)
    found: Numbers = fits & (saved > 0)
    return found
