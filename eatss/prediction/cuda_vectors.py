"""Loads of 16 bytes from rows of shared memory, where threads have neighbouring elements.

What :mod:`eatss.lower.vector_rows` decides, an entry a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from eatss.analysis import lanes
from eatss.analysis.structure import (
    MOST_ROWS,
    MOST_VECTORS,
    PIECE_BYTES,
    TURNED_TOGETHER,
    VECTOR_BYTES,
    copied_in_pieces,
    crowded,
    padded_row,
)
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.prediction.cuda_launch import CudaLaunch, Flags
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet

_WORD_BYTES = 4


def rows_of_vectors(
    of: CudaLaunch, members: Sequence[UniformSet], sizes: Sequence[Column]
) -> list[Column]:
    """Return the declared extents of a box, a dimension of the array each.

    Its rows are, where they are whole vectors, an odd number of them.
    """
    width, last = _width(of, members), len(sizes) - 1
    total = prod(sizes, start=of.ones)
    found = list(sizes)
    for at, on in enumerate(row_dimensions(of, members)):
        own = width if at == last else of.ones * TURNED_TOGETHER
        together = np.where(np.mod(sizes[at], own) == 0, own, 1.0)
        padded = padded_row(sizes[at], total / sizes[at], together)
        found[at] = np.where(on, padded, sizes[at])
    return found


def row_dimensions(of: CudaLaunch, members: Sequence[UniformSet]) -> list[Flags]:
    """Tell for each dimension of an array where rows of a box lie along it."""
    first = members[0].access.subscripts
    found = [np.zeros(len(of), dtype=bool) for _ in first]
    for name, on in of.rows.items():
        for at, (terms, _) in enumerate(first[:-1]):
            if dict(terms) == {name: 1}:
                found[at] = found[at] | on
    found[-1] = ~np.logical_or.reduce(found)
    return found


def turned(of: CudaLaunch, members: Sequence[UniformSet]) -> Flags:
    """Tell where rows of a box lie along another dimension than those of the array."""
    return np.asarray(~row_dimensions(of, members)[-1])


def with_rows(of: CudaLaunch) -> CudaLaunch:
    """Return a launch that knows along which loops its threads have neighbouring points.

    Lanes are interleaved where that helps.
    """
    of = replace(of, rows=_rows_along(of))
    interleaved = _interleaved(of)
    along = list(of.lanes)
    for pair, on in interleaved.items():
        counts = dict(zip(pair, (lanes.ALONG_X, lanes.ALONG_Y), strict=True))
        for at, (name, _) in enumerate(of.shape.axes):
            along[at] = np.where(on, counts.get(name, 1), along[at])
    return replace(of, interleaved=interleaved, lanes=along)


def _interleaved(of: CudaLaunch) -> dict[tuple[str, str], Flags]:
    """Return for two loops where lanes are interleaved along them, if anywhere."""
    names, threads = [name for name, _ in of.shape.axes], [count for _, count in of.shape.axes]
    loads = [
        (_moves(of, uniform.access), on)
        for uniform in of.all_uniform_sets
        if not uniform.held and (on := _in_rows(of, uniform)).any()
    ]
    found = {}
    for along in combinations(range(len(names)), 2):
        pair = names[along[0]], names[along[1]]
        rows = [of.rows.get(name, np.zeros(len(of), dtype=bool)) for name in pair]
        if loads and np.logical_and(*rows).any():
            found[pair] = np.logical_and(*rows) & lanes.interleaves(threads, along, loads)
    return found


def _moves(of: CudaLaunch, access: AccessFacts) -> list[bool]:
    """Tell for each axis whether an access moves along it."""
    moving = dict(access.strides)
    return [name in moving for name, _ in of.shape.axes]


def _in_rows(of: CudaLaunch, uniform: UniformSet) -> Flags:
    """Tell where a set is staged in rows along the neighbouring points of a thread."""
    found = np.zeros(len(of), dtype=bool)
    for name, on in of.rows.items():
        if any(dict(terms) == {name: 1} for terms, _ in uniform.access.subscripts):
            found = found | on
    return found & (of.staged(uniform.group) > 0)


def _rows_along(of: CudaLaunch) -> dict[str, Flags]:
    none = np.zeros(len(of), dtype=bool)
    found = dict.fromkeys(of.cut.mapped, none)
    if not _has_vectors(of):
        return found
    serial = {name for part in of.cut.parts if part.serial for name in part.statements}
    every = [
        uniform
        for name, own in of.uniform_sets.items()
        if not serial or name in serial
        for uniform in own
    ]
    taken: dict[int | None, Flags] = {}
    for name in reversed(of.cut.mapped):
        points, threads = of.shape.points[name], of.shape.threads[name]
        fine = (threads > 1) & (of.shape.tile[name] == threads * points)
        some = none
        moved = [
            uniform
            for uniform in every
            if not uniform.held and name in dict(uniform.access.strides)
        ]
        for uniform in moved:
            width = max(1, VECTOR_BYTES // uniform.access.element_bytes)
            whole = (width > 1) & (np.mod(points, width) == 0) & (points <= MOST_VECTORS * width)
            on = (of.staged(uniform.group) > 0) & whole & _may_have_rows(of, uniform, name)
            on = on & ~taken.get(uniform.group, none)
            fine, some = fine & on, some | on
        found[name] = fine & some
        for uniform in moved:
            taken[uniform.group] = taken.get(uniform.group, none) | found[name]
    return found


def _may_have_rows(of: CudaLaunch, uniform: UniformSet, name: str) -> Flags:
    """Tell where rows of a box may lie along a loop [``eatss.lower.vector_rows``]."""
    along = [dict(terms) for terms, _ in uniform.access.subscripts]
    if any(uniform.spans) or {name: 1} not in along:
        return np.zeros(len(of), dtype=bool)
    if along[-1] == {name: 1}:
        return np.ones(len(of), dtype=bool)
    last = next((one for one in of.serial_band if along[-1] == {one: 1}), None)
    moving = set(dict(uniform.access.strides))
    others = moving - {last, name}
    none = np.zeros(len(of), dtype=bool)
    if last is None or not others <= set(of.shape.tile):
        return none
    again = [of.shape.points[one] > 1 for one in of.cut.mapped if one not in moving]
    alone = [of.shape.tile[one] == 1 for one in others]
    piece = PIECE_BYTES // uniform.access.element_bytes
    tile = of.shape.tile
    copied = copied_in_pieces(tile[name], tile[last], of.shape.block_threads, piece)
    along_x = name == of.cut.mapped[-1]
    pays = ~none if along_x or not may_be_aligned(of, uniform.access) else _crowded(of)
    return np.asarray(
        np.logical_or.reduce([none, *again]) & np.logical_and.reduce([pays, copied, *alone])
    )


def may_be_aligned(of: CudaLaunch, access: AccessFacts) -> bool:
    """Tell whether rows of an array may all begin at multiples of 16 bytes."""
    width = max(1, VECTOR_BYTES // access.element_bytes)
    extents = next(one.extents for one in of.facts.work.arrays if one.name == access.array)
    return not extents or extents[-1] is None or extents[-1] % width == 0


def _crowded(of: CudaLaunch) -> Flags:
    """Tell where sums leave few registers [``eatss.analysis.structure``]."""
    words = sum(max(1, own.element_bytes // _WORD_BYTES) for own in of.cut.held)
    block = np.floor(of.card.registers_per_block / of.shape.block_threads)
    registers = np.minimum(of.card.registers_per_thread, block)
    points = of.zeros
    groups = {one.group: one for one in of.all_uniform_sets if not any(one.spans)}
    for group, own in groups.items():
        if any(dict(own.access.subscripts[-1][0]) == {name: 1} for name in of.serial_band):
            moving = dict(own.access.strides)
            named = (of.shape.points[name] for name in of.cut.mapped if name in moving)
            points = points + of.staged(group) * prod(named, start=of.ones)
    loaded = points * (VECTOR_BYTES // _WORD_BYTES)
    return np.asarray(crowded(words * of.points(), loaded, registers))


def vector_width(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> Column:
    """Return how many elements of a staged reference a thread loads at a time.

    Neighbours lie along a loop of its points or, unrolled, along the innermost serial one.
    """
    if not _has_vectors(of) or any(uniform.spans) or not uniform.access.subscripts:
        return of.ones
    width = max(1, VECTOR_BYTES // uniform.access.element_bytes)
    return np.where(_in_rows(of, uniform), width, steps_together(of, statement, uniform))


def steps_together(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> Column:
    """Return the steps of the innermost serial loop for which a thread loads a reference at once.

    It is staged then, and its rows lie along the loop.
    """
    serial = of.serial(statement)
    if not _has_vectors(of) or any(uniform.spans) or not uniform.access.subscripts or not serial:
        return of.ones
    if dict(uniform.access.subscripts[-1][0]) != {serial[-1]: 1}:
        return of.ones
    width = _width(of, [uniform])
    whole = np.mod(of.shape.tile.get(serial[-1], of.ones), width) == 0
    rows = (of.staged(uniform.group) > 0) & ~turned(of, [uniform])
    return np.where(whole & rows, width, 1.0)


def vector_wavefronts(of: CudaLaunch, access: AccessFacts) -> Column:
    """Return the wavefronts of one load of vectors [:mod:`eatss.analysis.lanes`].

    Vectors of lanes lie beside each other, or in rows that differ in their banks.
    """
    if not _has_vectors(of):
        return of.ones
    moves = _moves(of, access)
    threads = [count for _, count in of.shape.axes]
    found = of.ones * lanes.vector_wavefronts(threads, moves)
    for (first, second), on in of.interleaved.items():
        moving = dict(access.strides)
        together = lanes.interleaved_wavefronts(along_x=first in moving, along_y=second in moving)
        found = np.where(on, together, found)
    return found


def _has_vectors(of: CudaLaunch) -> bool:
    return of.structure.instruction is None and of.cut.sum_loop is None and bool(of.cut.mapped)


def _width(of: CudaLaunch, members: Sequence[UniformSet]) -> Column:
    """Return the elements of a vector, 1 where too many neighbouring threads are in other rows."""
    if not _has_vectors(of):
        return of.ones
    last = of.cut.mapped[-1]
    across = any(last in dict(terms) for one in members for terms, _ in one.access.subscripts[:-1])
    width = max(1, VECTOR_BYTES // members[0].access.element_bytes)
    return np.where(across & (of.shape.threads[last] > MOST_ROWS), 1.0, width)
