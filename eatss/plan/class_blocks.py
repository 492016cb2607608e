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

from math import ceil, prod

from eatss.analysis.layout import ClassBlock
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.targets import CUDA
from eatss.plan.numbers import Number
from eatss.plan.stage import in_shared

Extents = tuple[int | None, ...]
"""Points along each loop or dimension; ``None`` for those of the loop that blocks share."""


@frozen
class ClassTile:
    """A part of an array that a block has in shared memory.

    One that is written is in registers meanwhile, of a thread for each place ``along`` a dimension.
    """

    array: str
    extents: Extents
    element_bytes: int
    along: int | None

    @property
    def others(self) -> Numbers:
        """The extents of what a thread has at a place."""
        found = (one for at, one in enumerate(self.extents) if at != self.along)
        return tuple(one for one in found if one is not None)


@frozen
class ClassPhase:
    """What a step does in one go: a statement, by its kernel, over loops.

    Threads have the points of the ``own`` loop; one alone has that of a phase without. So many
    reads are ``passed`` by other lanes.
    """

    kernel: str
    loops: Extents
    own: int | None
    passed: int

    @property
    def turns(self) -> int:
        """Points of the other loops."""
        return prod(one for at, one in enumerate(self.loops) if at != self.own and one)


@frozen
class ClassRun:
    """Kernels that are one launch a block of ``size`` steps, whose blocks share loop ``wide``."""

    kernels: Names
    size: int
    wide: str | None
    tiles: tuple[ClassTile, ...]
    phases: tuple[ClassPhase, ...]

    def points(self, tile: ClassTile) -> int:
        """Return the places that a thread has along a dimension."""
        extent = None if tile.along is None else tile.extents[tile.along]
        return 1 if extent is None else ceil(extent / CUDA.lanes)

    @property
    def words(self) -> int:
        """32-bit registers that elements take."""
        return sum(
            prod(one.others) * self.points(one) * ceil(one.element_bytes / 4)
            for one in self.tiles
            if one.along is not None
        )

    @property
    def instances(self) -> int:
        """How often a statement is in the text when all loops are unrolled, at most."""
        points = max((self.points(one) for one in self.tiles), default=1)
        return self.size * points * sum(one.turns for one in self.phases)

    @property
    def is_short(self) -> bool:
        """Whether registers have room, and caches of instructions."""
        return self.words <= _MOST_WORDS and self.instances <= _MOST_INSTANCES


_MOST_WORDS = 160
"""Of 255 registers of a thread, those that elements may take."""

_MOST_INSTANCES = 5000
"""Statements in a text whose loops are unrolled."""


def sizes(extents: Extents, width: Number) -> tuple[Number, ...]:
    """Return the points along each loop or dimension."""
    return tuple(width if one is None else one for one in extents)


def padding(tile: ClassTile) -> int:
    """Return the elements behind each row: rows are an odd number of elements apart."""
    return int(len(tile.extents) > 1)


def shared_bytes(run: ClassRun, block: ClassBlock) -> Number:
    """Return the bytes of shared memory of a block."""
    each: list[Number] = []
    for tile in run.tiles:
        *rows, row = sizes(tile.extents, block.width)
        each.append(in_shared(prod(rows) * (row + padding(tile)) * tile.element_bytes))
    return sum(each)


COPIED_IN_TURNS = 16
"""Elements that a thread has under way when it fills tiles."""

THREADS: Numbers = (32, 64, 128, 256)
"""Threads of a block that are compared; all fill tiles, each has at most one point of a panel."""

WIDTHS: Numbers = (16, 32, 64, 128)
"""Points of the shared loop that are compared."""
