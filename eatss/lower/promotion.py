"""Reads staged in shared memory: which, where in the nest, and in what box.

Where steps of serial loops are whole, the edges of an array leave the same of a box in all of them:
the tile of ``C[i][j] += A[i][k] * B[k][j]`` at the last rows of ``A`` reads fewer of them than its
box has, in all of its steps alike. So where a step has all its ``k``, an element is read where
``i < N``, which no step changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import islpy as isl

from eatss.base.frozen import frozen
from eatss.lower.isl_text import condition_of
from eatss.lower.kernel.nodes import Buffer, Extents
from eatss.lower.schedule.mapping import Mapping
from eatss.lower.schedule.names import NameTable
from eatss.lower.storage import Candidate, Place
from eatss.plan.stage import Stage, StagedReads, Tiling, padded_rows, row_dimensions
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.isl_names import coalesced, fixed_box, involved_parameters, without_parameters
from eatss.program import Constant, IntExpr, Name

Part = TypeVar("Part")
"""What belongs to a dimension: its extent, a subscript."""


@frozen
class SharedTile:
    """A box of an array in shared memory.

    ``offsets`` are functions of the parameters, one a dimension; ``stage`` is its copy as planned.
    ``depth`` is how many serial loops stand around the copy. ``footprint`` are the elements that
    are read, over the parameters of that level. ``place`` is one that reads it, in the innermost
    serial loop ``sum_loop``.
    """

    name: str
    candidate: Candidate
    element_type: ElementType
    offsets: tuple[isl.PwAff, ...]
    stage: Stage
    depth: int
    footprint: isl.Set
    place: Place
    sum_loop: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents in elements."""
        return tuple(self.stage.extents)

    @property
    def row_at(self) -> int:
        """The dimension along which rows lie, mostly the last."""
        return self.stage.rows.index(True)

    @property
    def buffer(self) -> Buffer:
        """The array in shared memory."""
        return Buffer(
            name=self.name,
            space="shared",
            element_type=self.element_type,
            layout=Extents(
                tuple(map(Constant, self.in_box(self.sizes))),
                padding=self.stage.declared[self.row_at] - self.sizes[self.row_at],
            ),
        )

    @property
    def turned(self) -> bool:
        """Whether rows lie along another dimension than those of the array."""
        return bool(self.stage.transposed)

    def in_box(self, of_array: Sequence[Part]) -> tuple[Part, ...]:
        """Return what belongs to the dimensions of the array in the order of those of the box."""
        others = (*of_array[: self.row_at], *of_array[self.row_at + 1 :])
        return (*others, of_array[self.row_at])


def shared_tile(
    name: str,
    candidate: Candidate,
    element_type: ElementType,
    footprints: dict[int, isl.Set],
    most_bytes: int,
    tiling: Tiling,
    reads: StagedReads,
    place: Place,
    sum_loop: str,
    together: int = 1,
) -> SharedTile | str:
    """Place a candidate outside the loops that do not change it, or further in to make it fit.

    Args:
        name: the C name.
        candidate: what is to be staged.
        element_type: of its array.
        footprints: the elements read, by the number of serial loops around the copy.
        most_bytes: what is left of a block's shared memory.
        tiling: the loops of the kernel.
        reads: what is known of the candidate.
        place: one that reads it.
        sum_loop: the innermost serial loop around that.
        together: rows are to have a multiple of so many elements.

    Returns:
        The tile, or why there is none.
    """
    rows = row_dimensions(tiling, reads)
    row_at = rows.index(True)
    reason = "no box of constant size holds what a tile reads"
    for depth, footprint in footprints.items():
        box = fixed_box(coalesced(footprint))
        if box is None:
            continue
        sizes = tuple(size for _, size in box)
        rest = -sizes[row_at] % together
        wanted = padded_rows(tiling, reads, sizes)[row_at] - sizes[row_at]
        for padding in (wanted if together == 1 else rest + together, rest):
            declared = [size + padding * on for size, on in zip(sizes, rows, strict=True)]
            stage = Stage(
                extents=sizes,
                declared=declared,
                rows=rows,
                element_bytes=reads.element_bytes,
                threads=tiling.threads,
                aligned=reads.aligned,
            )
            if stage.shared_bytes <= most_bytes:
                return SharedTile(
                    name=name,
                    candidate=candidate,
                    element_type=element_type,
                    offsets=tuple(offset for offset, _ in box),
                    stage=stage,
                    depth=depth,
                    footprint=coalesced(footprint),
                    place=place,
                    sum_loop=sum_loop,
                )
        reason = (
            f"its tile of {' x '.join(map(str, sizes))} needs {stage.shared_bytes} bytes, "
            f"{most_bytes} are left"
        )
    return reason


@dataclass(frozen=True, slots=True)
class WholeSteps:
    """``where`` steps of serial loops are whole, elements of a box are read under a ``condition``.

    The ``footprint`` is what is read, ``box`` what there is of it; places are parameters.
    """

    where: IntExpr
    condition: IntExpr
    footprint: isl.Set
    box: isl.Set


def whole_steps(
    tile: SharedTile,
    at: Sequence[str],
    footprint: isl.Set,
    box: isl.Set,
    known: isl.Set,
    mapping: Mapping,
) -> WholeSteps | None:
    """Return where steps of serial loops are whole, and what of a box is read there.

    That is the same for all steps; tiles begin at multiples of their sizes.

    Args:
        tile: the box.
        at: the names of an element's place, a parameter for each dimension.
        footprint: the elements that are read.
        box: those that there are.
        known: what is known of sizes and origins.
        mapping: the loops of the block.

    Returns:
        ``None`` where no serial loop moves the box, or where no steps of one are whole.
    """
    origins = {one.origin for one in mapping.serial}
    moving = [
        name
        for name, offset in zip(at, tile.offsets, strict=True)
        if origins & {*involved_parameters(offset)}
    ]
    if not moving or mapping.split is not None:
        return None
    tiles = {one.origin: one.tile for one in mapping.spread}
    tiles |= {one.origin: one.tile for one in mapping.serial}
    for origin, size in tiles.items():
        begins = _set(known, f"{origin} mod {size} = 0", origin)
        known, box = known.intersect(begins), box.intersect(begins)
    edge = without_parameters(footprint, moving)
    missing = without_parameters(box.intersect(edge).subtract(footprint), at)
    where = coalesced(known.subtract(missing))
    if where.is_empty():
        return None
    condition = condition_of(edge, without_parameters(box, moving).intersect(where))
    return WholeSteps(condition_of(where, known), condition, footprint, box.intersect(where))


def in_vectors(
    steps: WholeSteps,
    name: str,
    begin: isl.PwAff,
    shape: Sequence[IntExpr],
    width: int,
    names: NameTable,
) -> bool:
    """Tell whether vectors that begin where one may are read as a whole or not at all.

    Args:
        steps: what is read.
        name: the place in a row of the array.
        begin: where the box begins in it.
        shape: the extents of the array. That rows are whole vectors is tested with its address.
        width: elements of a vector.
        names: names that are free.
    """
    end = names.inner().fresh("end")
    begins = steps.box.intersect(_set(steps.box, f"{name} mod {width} = 0", name))
    offset = begin.mod_val(isl.Val.int_from_si(begin.get_ctx(), width))
    begins = begins.intersect(offset.zero_set())  # tested in front of the copy
    row = shape[-1]
    if len(shape) > 1 and isinstance(row, Name):
        begins = begins.intersect(_set(begins, f"{row.name} mod {width} = 0", row.name))
    position = steps.footprint.find_dim_by_name(isl.dim_type.param, name)
    other = steps.footprint.set_dim_name(isl.dim_type.param, position, end)
    first = begins.intersect(steps.footprint)
    for behind in range(1, width):
        there = _set(begins, f"{end} = {name} + {behind}", name, end)
        later = without_parameters(other.intersect(there), (end,))
        if not begins.intersect(later).is_equal(first):
            return False
    return True


def _set(beside: isl.Set, text: str, *names: str) -> isl.Set:
    """Return the values of parameters of which something holds."""
    return isl.Set.read_from_str(beside.get_ctx(), f"[{', '.join(names)}] -> {{ : {text} }}")
