"""What a launch does with a class of tiles of a factorisation: all steps of a block, one by one.

    A, L = tiles in shared memory
    for (k < class size) { phase 0; barrier; phase 1; barrier; … }
    A = what is in its tile

The diagonal is one block; of panels each block has some points of the loop that they share. A phase
is one statement: its fastest loop has the threads along ``x``, the one around it those along ``y``.
"""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.analysis.layout import ClassBlock
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.targets import CUDA
from eatss.plan.numbers import Number
from eatss.plan.stage import in_shared

Extents = tuple[int | None, ...]
"""Points along each loop or dimension; ``None`` for those of the loop that blocks share."""


@frozen
class ClassTile:
    """A part of an array that a block has in shared memory, ``stored`` when all steps are done."""

    array: str
    extents: Extents
    element_bytes: int
    stored: bool


@frozen
class ClassPhase:
    """What a step does in one go: a statement, by its kernel, over loops; ``fast`` numbers one."""

    kernel: str
    loops: Extents
    fast: int


@frozen
class ClassRun:
    """Kernels that are one launch a block of ``size`` steps, whose blocks share loop ``wide``."""

    kernels: Names
    size: int
    wide: str | None
    tiles: tuple[ClassTile, ...]
    phases: tuple[ClassPhase, ...]


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


def nest(phase: ClassPhase) -> Numbers:
    """Return the loops of a phase, outermost first: the fastest but for the one with threads."""
    beside = [at for at in range(len(phase.loops)) if at != phase.fast]
    return (*beside[:-1], phase.fast, *beside[-1:]) if phase.loops else ()


def threads_along(phase: ClassPhase, block: ClassBlock) -> tuple[Number, ...]:
    """Return the threads along each loop of a phase; thread 0 alone runs one without loops."""
    found: list[Number] = [1] * len(phase.loops)
    *others, last = nest(phase) or (0,)
    if others:
        found[phase.fast], found[last] = CUDA.lanes, block.threads // CUDA.lanes
    elif found:
        found[last] = block.threads
    return tuple(found)


def in_turns(phase: ClassPhase, block: ClassBlock) -> Number:
    """Return the points of an innermost loop that a thread computes before it stores any.

    No more than there are: tests of others would take as long.
    """
    last = nest(phase)[-1]
    along = sizes(phase.loops, block.width)[last] / threads_along(phase, block)[last]
    return np.minimum(_IN_TURNS, np.ceil(along))


_IN_TURNS = 8

COPIED_IN_TURNS = 16
"""Elements that a thread has under way when it fills tiles."""

THREADS: Numbers = (64, 128, 256, 512, 1024)
"""Threads of a block that are compared."""

WIDTHS: Numbers = (8, 16, 32, 64)
"""Points of the shared loop that are compared."""
