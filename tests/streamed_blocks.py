"""What blocks of a streamed kernel do, by running what its code says of tiles and steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import eatss
from eatss.lower.kernel.nodes import Fixup, For, Kernel, Let, Node
from eatss.lower.kernel.uses import every
from eatss.program import Launch, Program, evaluate
from tests.lower.checking import with_kernels

SOURCE = """
#ifndef NI
#define NI 1111
#endif
#ifndef NJ
#define NJ 1111
#endif
#ifndef NK
#define NK 1111
#endif
void product(float C[NI][NJ], float A[NI][NK], float B[NK][NJ])
{
#pragma scop
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++)
      for (int k = 0; k < NK; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""
ROWS, COLUMNS, STEP = 8, 16, 4


@cache
def streamed_product(blocks: int) -> tuple[Program, Kernel]:
    """Return a product whose blocks take equal shares, and the kernel that it is printed from."""
    program, kernels = with_kernels(
        lambda: eatss.codegen(
            SOURCE, gpu="h200", stream={"k": blocks}, instructions=[], stages=1, cache=False,
            tiles={"i": ROWS, "j": COLUMNS, "k": STEP}, block={"i": 4, "j": 8},
        )
    )  # fmt: skip
    (kernel,) = kernels
    assert kernel.streamed is not None
    return program, kernel


def sizes_with(rows: int, columns: int, steps: int) -> dict[str, int]:
    """Return sizes with so many rows and columns of tiles, and steps of each; the last are cut."""
    return {
        "NI": max(1, ROWS * rows - 3), "NJ": max(1, COLUMNS * columns - 5),
        "NK": max(0, STEP * steps - 1),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a block does of a tile, whose first sums are at ``place``: steps from a first to a last.

    ``number``, ``own``, ``arrived`` and ``left`` are what it says where blocks put sums together:
    how many, which one it is, the counter, and where it leaves its part.
    """

    block: int
    tile: int
    whole: bool
    place: tuple[int, int]
    steps: range
    number: int
    own: int
    arrived: int
    left: int


def grid_of(blocks: int, sizes: Mapping[str, int]) -> int:
    """Return the number of blocks that are launched."""
    program, _ = streamed_product(blocks)
    steps = list(program.entries[0].body)
    while not isinstance(steps[0], Launch):
        steps = list(steps[0].body)
    return evaluate(steps[0].grid[0], sizes)


def turns_of(blocks: int, sizes: Mapping[str, int]) -> Iterator[Turn]:
    """Yield what all blocks do, block after block."""
    _, kernel = streamed_product(blocks)
    grid = grid_of(blocks, sizes)
    (loop,) = (one for one in kernel.body if isinstance(one, For))
    head = [one for one in kernel.body if isinstance(one, Let)]
    for block in range(grid):
        names = {
            **sizes, "blockIdx.x": block, "gridDim.x": grid, "threadIdx.x": 0, "threadIdx.y": 0,
        }  # fmt: skip
        _named(head, names)
        names[loop.counter] = evaluate(loop.lower, names)
        while evaluate(loop.condition, names):
            yield _turn(loop.body, dict(names), block)
            names[loop.counter] += evaluate(loop.step, names)


def _named(nodes: Sequence[Node], names: dict[str, int]) -> None:
    for node in nodes:
        if isinstance(node, Let):
            names[node.name] = evaluate(node.value, names)


def _turn(body: Sequence[Node], names: dict[str, int], block: int) -> Turn:
    _named(body, names)
    (inner,) = (one for one in every(body) if isinstance(one, For) and one.counter == "k0")
    (together,) = (one for one in body if isinstance(one, Fixup))
    names["k0"] = evaluate(inner.lower, names)
    first = last = names["k0"] // STEP
    assert names["k0"] % STEP == 0
    while evaluate(inner.condition, names):
        last += 1
        names["k0"] += evaluate(inner.step, names)
    (one,) = together.sums
    return Turn(
        block=block,
        tile=names["tile"],
        whole=names["turn"] < names["waves"],
        place=(names["i0"], names["j0"]),
        steps=range(first, last),
        number=evaluate(together.number, names),
        own=evaluate(together.own, names),
        arrived=evaluate(together.arrived.subscripts[0], names),
        left=evaluate(one.left.subscripts[0], names),
    )
