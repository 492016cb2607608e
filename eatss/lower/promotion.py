"""Reads staged in shared memory: which, where in the nest, and in what box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import islpy as isl

from eatss.frozen import frozen
from eatss.isl_names import coalesced, fixed_box
from eatss.kernel.nodes import Buffer, Layout
from eatss.lower.storage import Candidate, Place
from eatss.plan.rows import StagedReads, Tiling, padded_rows, row_dimensions
from eatss.plan.stage import Stage
from eatss.program import Constant
from eatss.scops import ElementType

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
            layout=Layout(
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
    footprints: Mapping[int, isl.Set],
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
