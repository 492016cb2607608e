"""What accesses touch of arrays: boxes of elements, and their union in sectors of memory.

Memory moves sectors of 32 bytes. A box has the whole index range of a launch; of several accesses
the union is counted, so that halos count once and ``c[0][i][j]`` and ``c[1][i][j]`` are two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

SECTOR_BYTES = 32

_MOST_CELLS = 1 << 16
"""Cells that boxes are cut into; of what has more, the largest box counts."""

Values = tuple[int, int, int]
"""Values of a loop: the first one, the step, how many."""


@dataclass(frozen=True, slots=True)
class TouchedBox:
    """Sectors that one access touches in a launch.

    ``intervals`` are half open, the last one along a row, in sectors. Boxes of the same ``form``
    lie in the same space: what steps and pieces they have along each dimension. ``fill`` is the
    share of the box that is touched, ``row_sectors`` how many a row of the array has.
    """

    form: tuple[object, ...]
    intervals: tuple[tuple[int, int], ...]
    fill: float
    row_sectors: float

    @property
    def sectors(self) -> float:
        """How many sectors it has."""
        return prod(end - start for start, end in self.intervals) * self.fill * self.of_rows

    @property
    def of_rows(self) -> float:
        """The share of sectors that is left where rows share those at their ends."""
        start, end = self.intervals[-1]
        return min(1.0, self.row_sectors / max(1, end - start))


def touched_box(
    subscripts: Sequence[tuple[tuple[tuple[str, int], ...], int]],
    values: Mapping[str, Values],
    row_elements: int,
    element_bytes: int,
    launch: tuple[object, ...],
) -> TouchedBox:
    """Return the whole box of one access.

    Args:
        subscripts: for each dimension the coefficients of loops and the constant.
        values: of each loop in one launch, or over all where launches differ.
        row_elements: elements of a row of the array.
        element_bytes: width of an element.
        launch: what else the subscripts move by, from launch to launch.
    """
    form: list[object] = [launch]
    intervals: list[tuple[int, int]] = []
    for at, (terms, offset) in enumerate(subscripts):
        elements = max(1, SECTOR_BYTES // element_bytes) if at == len(subscripts) - 1 else 1
        own, found = _along(terms, offset, values, elements)
        form.append(own)
        intervals += found
    row = row_elements * element_bytes / SECTOR_BYTES
    return TouchedBox(tuple(form), tuple(intervals), 1.0, row)


def _along(
    terms: Iterable[tuple[str, int]], first: int, values: Mapping[str, Values], elements: int
) -> tuple[object, list[tuple[int, int]]]:
    """Return the form of one dimension and its intervals; ``elements`` of it are one piece.

    Steps that leave no piece between them out are one run. Others begin runs of their own.
    """
    steps = []
    for name, factor in terms:
        start, step, count = values[name]
        first += factor * start + min(0, factor * step * (count - 1))
        if count > 1:
            steps.append((abs(factor * step), count))
    apart, span = 0, 0
    runs: list[tuple[int, int]] = []
    for step, count in sorted(steps):
        apart = apart or step
        if step > span + max(elements, apart):
            runs.append((step, count))
            continue
        if apart > elements:
            apart = gcd(apart, step)
        span += step * (count - 1)
    if apart <= elements:  # no piece is left out
        interval = (first // elements, (first + span) // elements + 1)
        return tuple(runs), [(0, count) for _, count in runs] + [interval]
    inside, at = first % apart // elements, first // apart
    intervals = [(inside, inside + 1), *((0, count) for _, count in runs)]
    return (apart, *runs), [*intervals, (at, at + span // apart + 1)]


def touched_bytes(boxes: Iterable[TouchedBox]) -> float:
    """Return the bytes of the sectors in a union of boxes, at least.

    Of boxes in different spaces, which may overlap, the largest union counts.
    """
    alike: dict[tuple[object, ...], list[TouchedBox]] = {}
    for box in dict.fromkeys(boxes):
        alike.setdefault(box.form, []).append(box)
    return max((_sectors(own) for own in alike.values()), default=0.0) * SECTOR_BYTES


def _sectors(boxes: Sequence[TouchedBox]) -> float:
    """Return the sectors of the union of boxes of one form: cells between all their bounds."""
    if len(boxes) == 1:
        return boxes[0].sectors
    bounds = [
        sorted({end for interval in along for end in interval})
        for along in zip(*(box.intervals for box in boxes), strict=True)
    ]
    if prod(len(along) - 1 for along in bounds) > _MOST_CELLS:
        return max(box.sectors for box in boxes)
    filled = np.zeros([len(along) - 1 for along in bounds])
    for box in boxes:
        inside = tuple(
            slice(along.index(start), along.index(end))
            for along, (start, end) in zip(bounds, box.intervals, strict=True)
        )
        filled[inside] = np.maximum(filled[inside], box.fill)
    for at, along in enumerate(bounds):
        shape = [-1 if position == at else 1 for position in range(len(bounds))]
        filled = filled * np.diff(along).reshape(shape)
    return float(filled.sum()) * min(box.of_rows for box in boxes)
