"""What tiles and blocks of generated code touch of arrays: boxes, sectors and vectors of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from eatss.analysis import banks
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.plan.contract import fragment_padding, matrices_in_turn, runs_along
from eatss.plan.rows import in_rows, padded_rows, row_dimensions, step_vector, vector
from eatss.plan.stage import Stage, buffers
from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet


@dataclass(frozen=True, slots=True)
class GroupBox:
    """What a tile touches of a stageable group, an entry a candidate.

    ``sizes`` are its extents, a dimension each, ``stage`` is the copy of whole tiles. ``depth`` is
    how many of the serial loops of the band stand around the copy.
    """

    sizes: list[Column]
    stage: Stage
    depth: int


def group_boxes(of: CudaLaunch) -> list[GroupBox]:
    """Return the box of each stageable group."""
    boxes = []
    for at, reads in enumerate(of.staging):
        members = of.readers(at)
        whole = _union(of, [box_of(of, one, declared=True) for one in members])
        stage = Stage(
            extents=whole,
            declared=_padded(of, at, members, whole),
            rows=row_dimensions(of.tiling, reads),
            element_bytes=reads.element_bytes,
            threads=of.shape.block_threads,
            aligned=reads.aligned,
        )
        boxes.append(
            GroupBox(
                sizes=_union(of, [box_of(of, one, whole=False) for one in members]),
                stage=stage,
                depth=max(
                    (p + 1 for p, n in enumerate(of.serial_band) if n in reads.moving), default=0
                ),
            )
        )
    return boxes


def shared_bytes(of: CudaLaunch, boxes: Sequence[GroupBox]) -> Column:
    """Return the shared memory of a block, in bytes: what the part needs that needs most."""
    stages = stages_of(of, boxes)
    most = of.zeros
    for part in range(len(of.cut.parts)):
        total = of.zeros
        for at, box in enumerate(boxes):
            own = box.stage.shared_bytes * stages[at]
            total = total + of.staged(at) * of.cut.copied_in[at].count(part) * own
        most = np.maximum(most, total)
    return most


def stages_of(of: CudaLaunch, boxes: Sequence[GroupBox]) -> list[Column]:
    """Return the boxes in use at once of each group: one of what no innermost loop fills anew."""
    innermost = _innermost(of, boxes)
    asynchronous = any(one.asynchronous for one in of.staging)
    ahead = np.where(innermost > 0, buffers(of.layout.boxes, asynchronous=asynchronous), 1.0)
    return [np.where(box.depth == innermost, ahead, 1.0) for box in boxes]


def in_front(of: CudaLaunch, boxes: Sequence[GroupBox]) -> list[Column]:
    """Return 1 for groups that are copied right in front of a loop that copies ahead.

    Nothing waits for them: they are there when the first of that loop's copies are.
    """
    innermost = _innermost(of, boxes)
    ahead = of.layout.boxes > 1
    return [
        np.where((box.depth > 0) & (box.depth == innermost - 1) & ahead, 1.0, 0.0) for box in boxes
    ]


def _innermost(of: CudaLaunch, boxes: Sequence[GroupBox]) -> Column:
    depths = [of.staged(at) * box.depth for at, box in enumerate(boxes)]
    return np.asarray(np.maximum.reduce([of.zeros, *depths]))


def is_narrow(of: CudaLaunch, group: int) -> bool:
    """Tell whether elements of a stageable group are copied one by one, through registers.

    Rows of their array begin anywhere. Where warps multiply they are loaded a turn ahead.
    """
    return of.structure.instruction is not None and not of.staging[group].asynchronous


def line_words(of: CudaLaunch) -> Column:
    """Return the registers of a thread for such elements on their way: each has one."""
    words = of.zeros
    for group in range(len(of.staging)):
        if is_narrow(of, group):
            sizes = prod(_union(of, [box_of(of, one, declared=True) for one in of.readers(group)]))
            words = words + of.staged(group) * np.ceil(sizes / of.shape.block_threads)
    return np.asarray(words * (of.layout.boxes > 1))


def extent(of: CudaLaunch, name: str, *, whole: bool = False, declared: bool = False) -> Column:
    """Return the iterations of a loop that a tile holds, or ``whole``: all that a block runs.

    What is ``declared`` is for whole tiles, however short the loop.
    """
    if declared and name in of.shape.tile:
        return of.shape.tile[name]
    if name in of.cut.mapped:
        return np.minimum(of.shape.tile[name], of.trips[name])
    if name == of.structure.host_loop:
        return of.ones
    if not whole and name in of.shape.tile:
        return np.minimum(of.shape.tile[name], of.trips[name])
    return of.block_trips(name)


def box_of(
    of: CudaLaunch, uniform: UniformSet, *, whole: bool = False, declared: bool = False
) -> list[Column]:
    """Return the extents, a dimension each, of what a tile touches through a uniform set."""
    sizes = []
    for (terms, _), span in zip(uniform.access.subscripts, uniform.spans, strict=True):
        size = of.ones * (1.0 + span)
        for name, factor in terms:
            size = size + abs(factor) * (extent(of, name, whole=whole, declared=declared) - 1)
        sizes.append(size)
    return sizes


def box_sectors(of: CudaLaunch, uniform: UniformSet, *, whole: bool) -> Column:
    """Return the sectors of what a tile, or all of a block, touches through a uniform set."""
    sizes = box_of(of, uniform, whole=whole)
    if not sizes:
        return of.ones
    width = uniform.access.element_bytes
    last = np.ceil(sizes[-1] * width / SECTOR_BYTES)
    along = {name for name, _ in uniform.access.subscripts[-1][0]}
    if whole and of.cut.sum_loop in along:  # chunks of it go to blocks
        run = np.minimum(of.shape.tile[of.cut.sum_loop], sizes[-1])
        run = np.where(of.shape.chunks > 1, run, sizes[-1])
        last = np.ceil(run * width / SECTOR_BYTES) * sizes[-1] / run
    if uniform.spans[-1]:  # a halo begins in a sector of its own
        last = last + 1.0
    return of.product(sizes[:-1]) * last


def step_lines(of: CudaLaunch, statement: StatementFacts, uniform: UniformSet) -> Column:
    """Return the lines that all threads of a block touch through a uniform set in one step.

    With serial loops a step is all points of the threads at one iteration, else one point.
    """
    moving = dict(uniform.access.strides)
    lines = of.ones * uniform.rows
    serial = of.serial(statement)
    for name in of.cut.mapped:
        step = abs(moving.get(name, 0)) * uniform.access.element_bytes
        if step == 0:
            continue
        along = extent(of, name) if serial else of.shape.threads[name]
        lines = lines * (along if step >= LINE_BYTES else np.ceil(along * step / LINE_BYTES))
    if of.cut.sum_loop in moving:
        step = abs(moving[of.cut.sum_loop]) * uniform.access.element_bytes
        lines = lines * np.ceil(of.shape.lanes * min(step, LINE_BYTES) / LINE_BYTES)
    return np.asarray(lines)


def working_bytes(of: CudaLaunch) -> Column:
    """Return what a block touches through L1 in a step of its innermost loops, in bytes."""
    most = of.zeros
    for statement in of.statements:
        total = of.zeros
        for uniform in of.uniform_sets[statement.name]:
            if not uniform.held and uniform.reads:
                touched = step_lines(of, statement, uniform) * LINE_BYTES
                total = total + touched * (1.0 - of.staged(uniform.group))
        most = np.maximum(most, total)
    return most


def _union(of: CudaLaunch, boxes: Sequence[list[Column]]) -> list[Column]:
    """Return the extents of a box that holds boxes of the same references."""
    if not boxes:
        return [of.ones]
    return [np.maximum.reduce(extents) for extents in zip(*boxes, strict=True)]


def _padded(
    of: CudaLaunch, group: int, members: Sequence[UniformSet], sizes: list[Column]
) -> list[Column]:
    """Return the extents of a box as declared."""
    own = {uniform.access.reference for uniform in members}
    instruction = of.structure.instruction
    if instruction is None or not any(own & {*one.references} for one in of.cut.products):
        return padded_rows(of.tiling, of.staging[group], sizes)
    loops, reads = of.cut.products[0].loops, [one.access.terms for one in members]
    table = np.stack([*sizes, of.shape.points[loops[1]]], axis=1).astype(np.int64)
    unique, back = np.unique(table, axis=0, return_inverse=True)
    width = of.staging[group].element_bytes
    beside, of_a_matrix = all(runs_along(one, loops[1]) for one in reads), instruction.points[1]
    paddings = []
    for *extents, points in unique.tolist():
        turns = matrices_in_turn(points, of_a_matrix, width) if beside else 1
        paddings.append(fragment_padding(instruction, loops, turns, reads, extents, width))
    return [*sizes[:-1], sizes[-1] + np.array(paddings, dtype=np.float64)[back.reshape(-1)]]


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
    """Return the wavefronts of one load of vectors [:mod:`eatss.analysis.banks`].

    Vectors of lanes lie beside each other, or in rows that differ in their banks.
    """
    if not of.tiling.load_vectors:
        return of.ones
    moving = dict(access.strides)
    threads = [count for _, count in of.shape.axes]
    found = of.ones * banks.vector_wavefronts(threads, [n in moving for n, _ in of.shape.axes])
    for (first, second), on in of.interleaved.items():
        together = banks.interleaved_wavefronts(along_x=first in moving, along_y=second in moving)
        found = np.where(on, together, found)
    return found
