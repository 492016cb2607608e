"""What L1 and shared memory do for the requests of generated code."""

from __future__ import annotations

import numpy as np

from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.plan.rows import vector
from eatss.prediction.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    box_wavefronts,
    lines,
    sectors,
    torn_sectors,
)
from eatss.prediction.cuda_boxes import box_sectors
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.cuda_resources import CodeResources
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet


def row_request(of: CudaLaunch, access: AccessFacts) -> tuple[Column, Column]:
    """Return what :func:`request` does where threads may have neighbouring points along x.

    Threads that follow each other have vectors that do.
    """
    cycles, found = request(of, access)
    rows = of.neighbours(of.cut.mapped[-1]) if of.cut.mapped else of.never
    if rows.any():
        apart = request(of, access, apart=vector(access.element_bytes))
        cycles, found = (
            np.where(rows, one, other) for one, other in zip(apart, (cycles, found), strict=True)
        )
    return cycles, found


def request(
    of: CudaLaunch, access: AccessFacts, unaligned: float = 0.0, apart: float = 1.0
) -> tuple[Column, Column]:
    """Return cycles of L1 and sectors of one request of a warp to global memory.

    L1 gives 128 bytes that differ in a cycle; each further line takes ``line_cycles``.
    ``unaligned`` is the share of requests whose rows of lanes begin inside a line. Neighbouring
    threads along x are ``apart`` by so many iterations.
    """
    strides = of.strides(access)
    strides = [strides[0] * apart, *strides[1:]] if strides else strides
    least = np.maximum(1.0, of.different_bytes(access) / LINE_BYTES)
    touched = lines(of.lanes, strides, access.element_bytes)
    if unaligned and of.lanes:
        touched = touched + unaligned * of.card.warp / of.lanes[0]
    cycles = least + of.constants.line_cycles * np.maximum(0.0, touched - least)
    return np.asarray(cycles), sectors(of.lanes, strides, access.element_bytes)


def torn_request(of: CudaLaunch, access: AccessFacts) -> Column:
    """Return the sectors that one store of a warp writes in part only."""
    return torn_sectors(of.lanes, of.strides(access), access.element_bytes)


def bank_request(setting: CodeResources, uniform: UniformSet) -> Column:
    """Return the cycles of one request to the box of a uniform set in shared memory."""
    of = setting.of
    if uniform.group is None or not of.staged(uniform.group).any():
        return of.ones
    access, sizes = uniform.access, setting.boxes[uniform.group].stage.declared
    axes = [name for name, _ in of.shape.axes]
    return box_wavefronts(of.lanes, axes, access, sizes, access.element_bytes)


def missing_bytes(
    setting: CodeResources, statement: StatementFacts, uniform: UniformSet, requests: Column
) -> Column:
    """Return the bytes that come from L2 for a uniform set that is not staged.

    At best every sector of what a block touches comes once. L1 has to hold what is touched until it
    is touched again: for neighbours and the next step the lines of a step, for the next sweep of a
    loop that does not move the set all that a sweep touches.

    Args:
        setting: the launch on a card.
        statement: one of its statements.
        uniform: accesses of the statement.
        requests: of all warps of the launch.
    """
    of, access = setting.of, uniform.access
    _, each = request(of, access)
    span = 0.0 if not uniform.spans else uniform.spans[-1] * access.element_bytes / SECTOR_BYTES
    rows = of.card.warp / of.lanes[0] if of.lanes else of.ones
    most = np.minimum(
        requests * each, requests / uniform.count * uniform.rows * (each + span * rows)
    )
    moving = dict(access.strides)
    sweeps, inside = of.ones, False
    for name in reversed(of.serial(statement)):
        inside = inside or name in moving
        if inside and name not in moving:
            sweeps = sweeps * of.block_trips(name)
    chunks = of.shape.chunks if of.cut.sum_loop in moving else of.ones
    once = of.active * of.share(statement) * box_sectors(of, uniform, whole=True)
    once = np.minimum(most, np.maximum(1.0, once / chunks))
    swept = np.minimum(most, once * sweeps)
    near = _kept(setting, setting.working_bytes)
    far = _kept(setting, box_sectors(of, uniform, whole=False) * SECTOR_BYTES)
    short = swept * near + most * (1.0 - near)
    return np.asarray((once * far * near + short * (1.0 - far * near)) * SECTOR_BYTES)


def _kept(setting: CodeResources, touched: Column) -> Column:
    """Return the share of bytes that every block touches that L1 has room for."""
    return np.clip(setting.l1_bytes / np.maximum(1.0, touched * setting.present), 0.0, 1.0)
