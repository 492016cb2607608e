"""What loads of 16 bytes from rows of shared memory take [:mod:`eatss.plan.rows`]."""

from __future__ import annotations

import numpy as np

from eatss.analysis import lanes
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.plan.rows import in_rows, row_dimensions, step_vector, vector
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet


def vector_width(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> Column:
    """Return how many elements of a staged reference a thread loads at a time.

    Neighbours lie along a loop of its points or, unrolled, along the innermost serial one.
    """
    if uniform.group is None:
        return of.ones
    rows = in_rows(of.tiling, of.staging[uniform.group])
    width = vector(uniform.access.element_bytes)
    return np.where(rows, width, steps_together(of, statement, uniform))


def steps_together(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> Column:
    """Return the steps of the innermost serial loop for which a thread loads a reference at once.

    It is staged then, and its rows lie along the loop.
    """
    serial = of.serial(statement)
    if uniform.group is None or not serial:
        return of.ones
    own = of.staging[uniform.group]
    if own.along[-1] != serial[-1]:
        return of.ones
    width = step_vector(of.tiling, own)
    whole = of.shape.tile.get(serial[-1], of.ones) % width == 0
    rows = own.on & row_dimensions(of.tiling, own)[-1]
    return np.where(whole & rows, width, 1.0)


def vector_wavefronts(of: CudaLaunch, access: AccessFacts) -> Column:
    """Return the wavefronts of one load of vectors [:mod:`eatss.analysis.lanes`].

    Vectors of lanes lie beside each other, or in rows that differ in their banks.
    """
    if not of.tiling.load_vectors:
        return of.ones
    moving = dict(access.strides)
    threads = [count for _, count in of.shape.axes]
    found = of.ones * lanes.vector_wavefronts(threads, [n in moving for n, _ in of.shape.axes])
    for (first, second), on in of.interleaved.items():
        together = lanes.interleaved_wavefronts(along_x=first in moving, along_y=second in moving)
        found = np.where(on, together, found)
    return found
