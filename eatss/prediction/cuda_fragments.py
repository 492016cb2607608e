"""How rows of boxes are padded that lanes load fragments of small matrices from.

Lane ``4 * row + step`` has that row, and that step, of the first matrix. Of the second it has the
step and column ``row``, which is a point of the thread ``row // 2``: each has two neighbours. With
some instructions a lane has two steps that follow each other. Of halves a warp loads matrices whose
8 rows are each 16 bytes of a row of a box [:mod:`eatss.transform.load_matrices`].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eatss.analysis.banks import bank_cycles, best_padding
from eatss.analysis.structure import (
    MATRIX_ROWS,
    VECTOR_BYTES,
    WORD_BYTES,
    ProductFacts,
    WarpInstruction,
)
from eatss.plan.contract import matrices_in_turn
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
    table = np.stack([*sizes, of.shape.points[product.columns]], axis=1).astype(np.int64)
    unique, back = np.unique(table, axis=0, return_inverse=True)
    width = members[0].access.element_bytes
    found = []
    beside = all(in_rows(one, product.columns) for one in members)
    for *extents, several in unique.tolist():
        turns = matrices_in_turn(int(several), instruction.points[1], width) if beside else 1
        lanes = _lanes(instruction, product, turns)
        vectors = [
            max(
                turns if in_rows(one, product.columns) else 1,
                instruction.steps_beside if in_rows(one, product.sum_loop) else 1,
            )
            for one in members
        ]

        def cycles(
            padding: int,
            extents: list[int] = extents,
            lanes: list[dict[str, int]] = lanes,
            vectors: list[int] = vectors,
        ) -> int:
            row = [*extents[:-1], extents[-1] + padding]
            if width < WORD_BYTES:
                return sum(_matrix_cycles(one, row, product) for one in members)
            return sum(
                bank_cycles([place // long for place in _places(one, row, lanes)], width * long)
                for one, long in zip(members, vectors, strict=True)
            )

        found.append(best_padding(cycles, extents[-1], width))
    return np.array(found, dtype=np.float64)[back.reshape(-1)]


def in_rows(uniform: UniformSet, loop: str) -> bool:
    """Tell whether rows of a box run along a loop: the columns of products, or their sum."""
    *others, (last, _) = uniform.access.subscripts
    return loop in dict(last) and not any(loop in dict(terms) for terms, _ in others)


def _lanes(instruction: WarpInstruction, product: ProductFacts, turns: int) -> list[dict[str, int]]:
    """Return where each lane of a warp reads, by loop.

    Where the columns of matrices take ``turns`` a lane loads one of each at a time, and else those
    of a matrix follow each other [:mod:`eatss.transform.point_groups`].
    """
    rows, steps = instruction.lanes
    return [
        {
            product.rows: row,
            product.columns: turns * row,
            product.sum_loop: step * instruction.steps_beside,
        }
        for row in range(rows)
        for step in range(steps)
    ]


def _matrix_cycles(uniform: UniformSet, extents: Sequence[int], product: ProductFacts) -> int:
    """Return the cycles in which a warp loads a matrix from a box."""
    turned = not in_rows(uniform, product.sum_loop)
    down = (product.sum_loop,) if turned else (product.rows, product.columns)
    lanes = [dict.fromkeys(down, row) for row in range(MATRIX_ROWS)]
    together = VECTOR_BYTES // uniform.access.element_bytes
    places = [place // together for place in _places(uniform, extents, lanes)]
    return bank_cycles(places, VECTOR_BYTES)


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
