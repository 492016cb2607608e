"""Code that a cache of instructions does not keep since blocks of an SM run different loops of it.

    for (i < k) … unrolled …        // one block of an SM is here
    for (i > k) … unrolled …        // another has arrived here

Blocks with other rows of a triangle end the first loop at other times. Each loop by itself fits the
cache, as far as the generator unrolls it; two of them may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eatss.analysis.structure import PartFacts
from eatss.analysis.work import StatementFacts
from eatss.plan.contract import most_unrolled, unrolled
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.cuda_products import is_product
from eatss.prediction.demand import Column

_INSTRUCTIONS_OF_A_PRODUCT = 1.25
"""Instructions of the code for each product that is unrolled, loads and copies among them. Counted
in machine code of symm and gemm for sm_90: 1270 to 1320 for 1024 products."""


@dataclass(frozen=True, slots=True)
class LoopsApart:
    """Loops that blocks of an SM are in at different times.

    ``code`` are the instructions of all of them, 0 where all blocks run the same one; ``again`` is
    the share of a warp's instructions that are fetched anew where a cache does not keep them.
    """

    code: Column
    again: Column


def loops_apart(of: CudaLaunch) -> LoopsApart:
    """Return the loops of a launch that its blocks end at different times."""
    found = [own for part in of.cut.parts if (own := _products(of, part))]
    if len(found) < len(("one", "another")):
        return LoopsApart(of.zeros, of.zeros)
    code, again = of.zeros, of.zeros
    for own in found:
        products, kept = _unrolled(of, own)
        code = code + _INSTRUCTIONS_OF_A_PRODUCT * kept
        again = np.maximum(again, kept / products)
    return LoopsApart(code, again)


def _products(of: CudaLaunch, part: PartFacts) -> list[StatementFacts]:
    """Return the statements of a part whose loop is longer or shorter in other blocks."""
    return [
        one
        for one in of.statements
        if one.name in part.statements
        and not is_product(of, one)
        and {*one.coupled} & {*of.cut.mapped}
        and {*one.coupled} & {*part.serial} & {*of.shape.tile}
    ]


def _unrolled(of: CudaLaunch, statements: Sequence[StatementFacts]) -> tuple[Column, Column]:
    """Return the products of a thread in a turn, and how many of them stand in the code.

    A turn that is not unrolled by the generator is by compilers, as far.
    """
    points = sum((of.points_of(one) for one in statements), start=of.zeros)
    tiles = [of.shape.tile[name] for name in of.serial(statements[0]) if name in of.shape.tile]
    steps = of.product(tiles)
    kept = np.minimum(steps * points, most_unrolled(of.shape.block_threads))
    in_parts = unrolled(steps, points, of.shape.block_threads)
    return np.where(in_parts, steps * points, kept), kept
