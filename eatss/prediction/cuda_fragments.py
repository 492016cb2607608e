"""How rows of boxes are padded that lanes load fragments of small matrices from.

Lane ``4 * row + step`` has that row, and that step, of the first matrix. Of the second it has the
step and column ``row``, which is a point of the thread ``row // 2``: each has two neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eatss.analysis.banks import bank_cycles, best_padding
from eatss.analysis.structure import MATRICES_IN_TURN, ProductFacts, WarpInstruction
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet


def fragment_padding(
    of: CudaLaunch, members: Sequence[UniformSet], sizes: Sequence[Column]
) -> Column:
    """Return the elements that rows of a box are padded by.

    Args:
        of: the launch.
        members: the accesses that read the box, all of one factor of products.
        sizes: the extents of the box.
    """
    instruction, product = of.structure.instruction, of.cut.products[0]
    assert instruction is not None
    threads, points = of.shape.threads[product.columns], of.shape.points[product.columns]
    table = np.stack([*sizes, threads, points], axis=1).astype(np.int64)
    unique, back = np.unique(table, axis=0, return_inverse=True)
    width = members[0].access.element_bytes
    found = []
    in_rows = all(_in_rows(one, product.columns) for one in members)
    for *extents, along, several in unique.tolist():
        in_turn = in_rows and several % (MATRICES_IN_TURN * instruction.points[1]) == 0
        lanes = _lanes(instruction, product, along, in_turn=in_turn)

        def cycles(
            padding: int,
            extents: list[int] = extents,
            lanes: list[dict[str, int]] = lanes,
            together: int = MATRICES_IN_TURN if in_turn else 1,
        ) -> int:
            row = [*extents[:-1], extents[-1] + padding]
            places = (_places(one, row, lanes) for one in members)
            return sum(
                bank_cycles([place // together for place in own], width * together)
                for own in places
            )

        found.append(best_padding(cycles, extents[-1], width))
    return np.array(found, dtype=np.float64)[back.reshape(-1)]


def _in_rows(uniform: UniformSet, columns: str) -> bool:
    """Tell whether rows of a box run along the columns of products."""
    *others, (last, _) = uniform.access.subscripts
    return columns in dict(last) and not any(columns in dict(terms) for terms, _ in others)


def _lanes(
    instruction: WarpInstruction, product: ProductFacts, threads: int, *, in_turn: bool
) -> list[dict[str, int]]:
    """Return where each lane of a warp reads, by loop, with so many threads along columns.

    Where matrices are ``in_turn`` a lane loads a column of two at a time
    [:mod:`eatss.transform.matrices_in_turn`].
    """
    rows, steps = instruction.lanes
    _, points = instruction.points
    return [
        {
            product.rows: row,
            product.columns: (
                MATRICES_IN_TURN * row if in_turn else row // points + threads * (row % points)
            ),
            product.sum_loop: step,
        }
        for row in range(rows)
        for step in range(steps)
    ]


def _places(
    uniform: UniformSet, extents: Sequence[int], lanes: Sequence[Mapping[str, int]]
) -> list[int]:
    """Return the element of a box that each lane reads."""
    places = []
    for lane in lanes:
        place = 0
        for (terms, _), extent in zip(uniform.access.subscripts, extents, strict=True):
            place = place * extent + sum(lane.get(name, 0) * factor for name, factor in terms)
        places.append(place)
    return places
