"""Loads of 16 bytes from rows of shared memory, where threads have neighbouring elements.

What :mod:`eatss.lower.vector_rows` decides, an entry a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eatss.analysis.structure import MOST_ROWS, MOST_VECTORS, VECTOR_BYTES, padded_row
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.prediction.access import LINE_BYTES
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet

Flags = npt.NDArray[np.bool_]


def rows_of_vectors(
    of: CudaLaunch, members: Sequence[UniformSet], sizes: Sequence[Column], rows: Column
) -> Column:
    """Return the declared length of rows of a box: where they are whole vectors, an odd number."""
    width = _width(of, members)
    together = np.where(np.mod(sizes[-1], width) == 0, width, 1.0)
    return np.asarray(padded_row(sizes[-1], rows, together))


def in_rows(of: CudaLaunch) -> Flags:
    """Tell where threads have neighbouring points along the last loop."""
    none = np.zeros(len(of), dtype=bool)
    if not _has_vectors(of):
        return none
    last = of.cut.mapped[-1]
    points, threads = of.shape.points[last], of.shape.threads[last]
    fine = (threads > 1) & (of.shape.tile[last] == threads * points)
    found = none
    for uniform in of.all_uniform_sets:
        if uniform.held or last not in dict(uniform.access.strides):
            continue
        width = _width(of, [uniform])
        along = dict(uniform.access.subscripts[-1][0]) == {last: 1} and not any(uniform.spans)
        whole = (width > 1) & (np.mod(points, width) == 0) & (points <= MOST_VECTORS * width)
        on = (of.staged(uniform.group) > 0) & whole if along else none
        fine = fine & on
        found = found | on
    return np.asarray(fine & found)


def vector_width(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> Column:
    """Return how many elements of a staged reference a thread loads at a time.

    Neighbours lie along the last loop or, unrolled, along the innermost serial one.
    """
    if not _has_vectors(of) or any(uniform.spans) or not uniform.access.subscripts:
        return of.ones
    width = _width(of, [uniform])
    terms = dict(uniform.access.subscripts[-1][0])
    if terms == {of.cut.mapped[-1]: 1}:
        return np.where(in_rows(of), width, 1.0)
    return steps_together(of, statement, uniform)


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
    return np.where(whole & (of.staged(uniform.group) > 0), width, 1.0)


def vector_wavefronts(of: CudaLaunch, access: AccessFacts, width: Column) -> Column:
    """Return the cycles of one load of vectors: 128 bytes that differ in each.

    Vectors that a thread has lie so far apart that its neighbours have those between.
    """
    if not _has_vectors(of):
        return of.ones
    return np.asarray(np.maximum(1.0, of.different_bytes(access) * width / LINE_BYTES))


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
