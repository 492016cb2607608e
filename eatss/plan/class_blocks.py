"""What a launch does with a class of tiles of a factorisation: all steps of a block, one by one.

    A, L = tiles in shared memory
    R = what of A is a thread's own, in registers
    for (k < class size) { phase 0; phase 1; … }
    A = R;  what is in its tile = A

Elements that are written are registers of the thread that has their point along one dimension: of
panels that of the loop that blocks share, and no thread needs what another has. The diagonal is one
block, whose lanes have all points of a dimension; what other lanes have comes by shuffles. A phase
is one statement, computed where what it writes is. All loops are unrolled, so registers have names.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.targets import CUDA
from eatss.plan.numbers import Number, largest
from eatss.plan.stage import in_shared

Extents = tuple[int | None, ...]
"""Points along each loop or dimension.

``None`` for those of the loop that blocks share, 0 for the loop of which each block has one.
"""


@frozen
class Side:
    """Where a tile begins along a dimension: at ``block * factor + least``.

    It is ``length`` long, as wide as a block where that is ``None``: so far blocks are apart. It
    ends where the block of steps begins, at ``block * limit``, unless that is 0. One that is
    ``apart`` is the iteration of the loop that blocks are apart along.
    """

    factor: int
    least: int
    length: int | None
    limit: int = 0
    apart: bool = False

    def joined(self, other: Side) -> Side | None:
        """Return a side that both are in, ``None`` where they are not a fixed way apart."""
        if self == other:
            return self
        if self.apart or other.apart or self.factor != other.factor:
            return None
        if self.length is None or other.length is None:
            return None
        least = min(self.least, other.least)
        end = max(self.least + self.length, other.least + other.length)
        return Side(factor=self.factor, least=least, length=end - least)

    def is_before(self, other: Side) -> bool:
        """Whether it ends where another one begins, or in front of it, in any block."""
        if self.limit:
            return self.limit == other.factor and other.least >= 0
        known = self.factor == other.factor and self.length is not None
        known &= not (self.apart or other.apart)
        return known and self.least + (self.length or 0) <= other.least


@frozen
class ClassTile:
    """A part of an array that a block has in shared memory.

    One that is written is in registers meanwhile, of a thread for each place ``along`` a dimension.
    """

    array: str
    sides: tuple[Side, ...]
    element_bytes: int
    along: int | None = None

    @property
    def extents(self) -> Extents:
        """How long it is along each dimension."""
        return tuple(one.length for one in self.sides)

    def is_apart(self, other: ClassTile) -> bool:
        """Whether no element is in both, or none of those that are is written."""
        if self.array != other.array or (self.along is None and other.along is None):
            return True
        pairs = [*zip(self.sides, other.sides, strict=True)]
        if any(one.apart != its.apart for one, its in pairs):
            return False
        return any(one.is_before(its) or its.is_before(one) for one, its in pairs)

    @property
    def places(self) -> int:
        """The places along the dimension of which threads have registers; 0 of the shared loop."""
        return 0 if self.along is None else self.extents[self.along] or 0

    @property
    def kept(self) -> Numbers:
        """The extents of what a thread has: the other dimensions, and its places."""
        others = (one for at, one in enumerate(self.extents) if at != self.along)
        return (*(one or 1 for one in others), max(1, ceil(self.places / CUDA.lanes)))


@frozen
class ClassPhase:
    """What a step does in one go: a statement, by its kernel, over loops.

    Threads have the points of the ``own`` loop; one alone has that of a phase without. A
    whole block has so many ``instances`` for each. Of accesses, by number, some are ``passed``
    by other lanes. Quotients by ``divisors`` are a few fused steps where a block has all of its
    steps, and all of a block is done again with divisions where some of them are not exact.
    """

    kernel: str
    loops: Extents
    own: int | None
    passed: Numbers
    instances: int
    divisors: Numbers = ()

    @property
    def others(self) -> Numbers:
        """The points along the loops that each thread goes through."""
        return tuple(one for at, one in enumerate(self.loops) if at != self.own and one)


@frozen
class ClassPart:
    """Steps of a block, ``size`` of them, whose blocks share loop ``wide``.

    There are as many for each iteration of the loop that they are ``apart`` along. What they write
    and never read is ``stored`` at once: it has no place in shared memory.
    """

    size: int
    wide: str | None
    tiles: tuple[ClassTile, ...]
    phases: tuple[ClassPhase, ...]
    stored: tuple[ClassTile, ...] = ()
    apart: str | None = None

    @property
    def divides(self) -> bool:
        """Whether some phase has quotients."""
        return any(one.divisors for one in self.phases)

    @property
    def has_all_lanes(self) -> bool:
        """Whether each lane of a warp has as many places of a tile as the others."""
        return not any(one.places % CUDA.lanes for one in self.tiles)

    @property
    def points(self) -> int:
        """The most points that a thread has."""
        return max(one.kept[-1] for one in self.tiles)

    @property
    def words(self) -> int:
        """32-bit registers that elements take."""
        own = [one for one in self.tiles if one.along is not None]
        return sum(prod(one.kept) * ceil(one.element_bytes / 4) for one in own)

    def is_short(self, size: int) -> bool:
        """Whether registers have room for so many steps, and caches of instructions."""
        own = self._with_steps(size)
        often = sum(prod(one.others) for one in own.phases) * size * own.points
        return own.words <= _MOST_WORDS and often <= _MOST_INSTANCES

    def _with_steps(self, size: int) -> ClassPart:
        """Return it with loops and tiles for another number of steps."""

        def longer(length: int | None) -> int | None:
            if length is None or length < self.size:
                return length
            return length + size - self.size

        def moved(tile: ClassTile) -> ClassTile:
            sides = (replace(one, length=longer(one.length)) for one in tile.sides)
            return replace(tile, sides=tuple(sides))

        phases = (replace(one, loops=tuple(map(longer, one.loops))) for one in self.phases)
        return replace(self, tiles=tuple(map(moved, self.tiles)), phases=tuple(phases))


_MOST_WORDS = 200
"""Of 255 registers of a thread, those that elements may take."""

_MOST_INSTANCES = 5000
"""Statements in a text whose loops are unrolled."""


@frozen
class ClassRun:
    """Kernels that are one launch a block of steps: each part has blocks of its own."""

    parts: tuple[ClassPart, ...]

    @property
    def kernels(self) -> Names:
        """The kernels, in order."""
        return tuple(phase.kernel for part in self.parts for phase in part.phases)

    @property
    def size(self) -> int:
        """Steps of a block."""
        return self.parts[0].size

    @property
    def is_wide(self) -> bool:
        """Whether blocks share a loop."""
        return any(one.wide is not None for one in self.parts)


@frozen
class ClassProducts:
    """Kernels of a class of products that may be one launch: each has blocks of its own."""

    kernels: Names


def are_alike(one: KernelFacts, other: KernelFacts) -> bool:
    """Tell whether kernels differ in their arrays and ranges alone: sizes of one do for both."""

    def form(facts: KernelFacts) -> object:
        loops = [(loop.name, loop.parallel) for loop in facts.loops]
        return loops, [
            (
                statement.operations,
                statement.loops,
                [(use.reference, use.terms, use.reads, use.writes) for use in statement.accesses],
            )
            for statement in facts.work.statements
        ]

    return (one.element_bytes, form(one)) == (other.element_bytes, form(other))


def sizes(extents: Extents, width: Number) -> tuple[Number, ...]:
    """Return the points along each loop or dimension."""
    return tuple(width if one is None else one for one in extents)


def padding(tile: ClassTile) -> int:
    """Return the elements behind each row: rows are an odd number of elements apart."""
    return int(len(tile.extents) > 1)


def shared_bytes(run: ClassRun, block: ClassBlock) -> Number:
    """Return the bytes of shared memory of a block: what parts have lies where others' does."""

    def taken(tile: ClassTile) -> Number:
        *rows, row = sizes(tile.extents, block.width)
        return in_shared(prod(rows) * (row + padding(tile)) * tile.element_bytes)

    return largest(sum(map(taken, part.tiles)) for part in run.parts)


COPIED_IN_TURNS = 16
"""Elements that a thread has under way when it fills tiles."""

THREADS: Numbers = (32, 64, 128, 256)
"""Threads of a block that are compared; all fill tiles, each has at most one point of a panel."""

WIDTHS: Numbers = (16, 32, 64, 128)
"""Points of the shared loop that are compared."""
