"""The energy of moving data, for each iteration, as a function of threads, points and tiles.

Every weight stands here, with where it comes from. They order tiles; they do not predict joules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.model.enumerate import evaluate_columns
from eatss.model.register_families import Family, Nest

Array = npt.NDArray[np.int64]
Columns = dict[str, Array]

L2_PJ_BYTE = 195
"""A byte from L2 to an SM: GTX 680 [energy roofline, Table 5].

What comes from memory behind L2 is the same for every tile, so it has no part.
"""

SHARED_PJ_BYTE = 51
"""A byte from or to shared memory: GTX 680 [energy roofline, Table 5]."""

L1_PJ_BYTE = 130
"""A byte from L1. A GTX 580 takes 149 pJ, by the ratio of the cards' L2 113 on a GTX 680, for which
the paper has shared memory only [energy roofline, Table 5]. Between them 130 gives the ratio that
doitgen shows on an H200: 0.91 ms through L1, 0.59 ms staged, all else equal."""

INSTRUCTION_PJ = 187
"""Issue and overhead of one instruction of a thread [energy roofline, Sec. 5.1]."""

STAGE_INSTRUCTIONS = 4
"""To copy one element: two sums for the addresses, a load and a store; the copies are unrolled."""

BARRIER_INSTRUCTIONS = 60
"""Issue slots a thread loses at the two barriers of a staged tile: the stalls of ``bar`` that
gemm shows at 16 steps, 5 % of its time on an H200."""

STEP_INSTRUCTIONS = 10
"""Bounds, tests and branches of a tile of the serial loops."""

THREAD_INSTRUCTIONS = 40
"""Origins, tests and addresses of a thread: jacobi-2d takes 12 % longer with one point a thread
than with two, and 12 % longer with two than with four, on an H200."""

_SHARE = 16
_FINE_SHARE = 1 << 12
_MOST_SWEPT = 1 << 20  # beyond it what is done once a tile costs nothing

SECTOR_BYTES = 32
"""What L2 gives at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Many layouts of one nest, a row each.

    ``threads`` and ``points`` by mapped loop, ``tiles`` by loop of the band.
    """

    threads: Columns
    points: Columns
    tiles: Columns

    def __len__(self) -> int:
        """Return the number of layouts."""
        return len(next(iter(self.tiles.values())))

    def rows(self, keep: npt.NDArray[Any]) -> Shapes:
        """Return some of the layouts."""
        return Shapes(
            threads={name: column[keep] for name, column in self.threads.items()},
            points={name: column[keep] for name, column in self.points.items()},
            tiles={name: column[keep] for name, column in self.tiles.items()},
        )

    def product(self, columns: Mapping[str, Array]) -> Array:
        """Return the product of columns, 1 for none."""
        return np.asarray(prod(columns.values(), start=np.ones(len(self), dtype=np.int64)))


Term = tuple[Array, Array]
"""Numerator and denominator, a row each: pJ for one iteration."""


def energy_terms(nest: Nest, shapes: Shapes, staged: frozenset[int]) -> list[Term]:
    """Return the terms of the energy of each layout; ``staged`` are positions of families."""
    points = shapes.product(shapes.points)
    tile = shapes.product({loop.name: shapes.tiles[loop.name] for loop in nest.mapped})
    serial = shapes.product({loop.name: shapes.tiles[loop.name] for loop in nest.serial})
    held = serial * prod(extent for _, extent in nest.extents)
    swept = serial * min(prod(extent for _, extent in nest.swept), _MOST_SWEPT)
    idle, whole = idle_share(nest, shapes)
    issued, useful = (idle, whole) if nest.is_wide else (np.int64(1), 1)
    terms: list[Term] = []
    for at, family in enumerate(nest.families):
        walks = bool(family.loops & nest.steps)
        once = np.int64(1 if walks else nest.sweep)
        near = SHARED_PJ_BYTE if at in staged else L1_PJ_BYTE
        if not family.accumulator:
            reads = thread_reads(nest, family, shapes)
            terms.append((issued * reads * (nest.element_bytes * near), points * once * useful))
        if at in staged:
            copied = tile_bytes(nest, family, shapes, staged=True) * L2_PJ_BYTE
            stored = elements(nest, family, shapes, staged=True) * (
                STAGE_INSTRUCTIONS * INSTRUCTION_PJ + nest.element_bytes * SHARED_PJ_BYTE
            )
            terms.append((copied + stored, tile * swept))
        else:
            fetched = tile_bytes(nest, family, shapes, staged=False) * L2_PJ_BYTE
            terms.append((fetched, tile * (held if walks else once)))
    instructions = BARRIER_INSTRUCTIONS if staged else 0
    instructions += STEP_INSTRUCTIONS if nest.steps else 0
    terms.append((idle * (instructions * INSTRUCTION_PJ), points * swept * whole))
    terms.append((idle * (THREAD_INSTRUCTIONS * INSTRUCTION_PJ), points * (nest.sweep * whole)))
    return terms


def approximate(terms: list[Term]) -> npt.NDArray[np.float64]:
    """Return the energy in pJ for one iteration, rounded."""
    return np.asarray(sum(n / d for n, d in terms), dtype=np.float64)


def exact_energy(terms: list[Term], row: int) -> Fraction:
    """Return the energy of one layout in pJ for one iteration, exactly."""
    return sum((Fraction(int(n[row]), int(d[row])) for n, d in terms), Fraction())


def thread_reads(nest: Nest, family: Family, shapes: Shapes) -> Array:
    """Return the elements a thread reads at one step.

    Points along a loop with one thread are neighbours and share what they read of a halo; along
    others they are apart.
    """
    columns: Columns = {name: np.ones(len(shapes), dtype=np.int64) for name in nest.steps}
    apart = np.full(len(shapes), family.copies, dtype=np.int64)
    for name, threads in shapes.threads.items():
        together = threads == 1
        columns[name] = np.where(together, shapes.points[name], 1)
        if name in family.loops:
            apart = apart * np.where(together, 1, shapes.points[name])
    return _count(family, columns, len(shapes)) * apart


def elements(nest: Nest, family: Family, shapes: Shapes, *, staged: bool) -> Array:
    """Return the elements a tile touches; a staged one holds all iterations of inner loops."""
    return _count(family, _tile_columns(nest, shapes, staged=staged), len(shapes))


def tile_bytes(nest: Nest, family: Family, shapes: Shapes, *, staged: bool) -> Array:
    """Return the bytes a tile fetches, in whole sectors; a row with a halo starts anywhere."""
    columns = _tile_columns(nest, shapes, staged=staged)
    count = _count(family, columns, len(shapes))
    along = family.contiguous
    if along is None:
        return count * SECTOR_BYTES
    if along in dict(nest.extents):
        return count * nest.element_bytes  # lines stay in L1 while the loop walks along them
    rows = _rows(family, columns, along, count)
    halo = count != rows * columns[along]
    sectors = -(-columns[along] * nest.element_bytes // SECTOR_BYTES) + 2 * halo
    return np.asarray(rows * sectors * SECTOR_BYTES)


def staged_bytes(nest: Nest, family: Family, shapes: Shapes) -> Array:
    """Return the shared memory of one staged tile, each row longer by one element."""
    columns = _tile_columns(nest, shapes, staged=True)
    count = _count(family, columns, len(shapes))
    along = family.contiguous
    rows = np.zeros_like(count) if along is None else _rows(family, columns, along, count)
    return np.asarray((count + rows) * nest.element_bytes)


def idle_share(nest: Nest, shapes: Shapes) -> tuple[Array, int]:
    """Return how many points blocks cover for so many that there are, loops of known length.

    In 16ths a loop, rounded down: a few idle threads at the rim decide nothing. Of more than
    three loops, which are short, all together in 4096ths.
    """
    covered, whole = np.ones(len(shapes), dtype=np.int64), 1
    if nest.is_wide:
        covered, whole = covered * _FINE_SHARE, _FINE_SHARE
        for loop in nest.mapped:
            if loop.trip_count:
                tile = shapes.tiles[loop.name]
                covered = covered * (-(-loop.trip_count // tile) * tile) // loop.trip_count
        return covered, whole
    for loop in nest.mapped:
        if loop.trip_count:
            tile = shapes.tiles[loop.name]
            tiles = -(-loop.trip_count // tile)
            covered = covered * (tiles * tile * _SHARE // loop.trip_count)
            whole *= _SHARE
    return covered, whole


def _tile_columns(nest: Nest, shapes: Shapes, *, staged: bool) -> Columns:
    inner = nest.swept if staged else nest.extents
    full = {name: np.full(len(shapes), size, dtype=np.int64) for name, size in inner}
    return {**shapes.tiles, **full}


def _rows(family: Family, columns: Columns, along: str, count: Array) -> Array:
    longer = {**columns, along: columns[along] + 1}
    return np.asarray(np.maximum(1, _count(family, longer, len(count)) - count))


def _count(family: Family, columns: Columns, size: int) -> Array:
    values = evaluate_columns(family.elements, {**columns})
    return np.asarray(np.maximum(1, np.broadcast_to(values, (size,))))
