"""Barriers are put where threads meet: enough of them, and none that could go.

Each block has a tile of its own, whatever the grid, and neighbours in time are near.

Rows are padded so that lanes that load fragments meet as few banks twice as can be.

Columns of two matrices that a lane loads follow each other, and threads share out all points.
"""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.base.shipped import data_directory
from eatss.lower.kernel.barriers import barrier_faults, barriers_in, without_barrier
from eatss.lower.kernel.nodes import Kernel, Let
from eatss.lower.kernel.uses import taken_names
from eatss.lower.transform.chain import with_barriers
from eatss.lower.transform.point_groups import with_blocks_backwards, with_threadblock_swizzle
from eatss.program import Name, evaluate
from tests.lower.small_kernels import N, kernel, nodes


def texts(depth: int) -> st.SearchStrategy[str]:
    leaf = st.builds("{} {}".format, st.sampled_from(["fill", "use"]), st.sampled_from("STU"))
    inner = texts(depth - 1) if depth else leaf
    loops = st.builds("loop k {{ {} }}".format, inner)
    branches = st.builds("if n {{ {} }} else {{ {} }}".format, inner, inner)
    return st.lists(st.one_of(leaf, loops, branches) if depth else leaf, max_size=4).map(" ".join)


@given(texts(2))
def test_barriers_are_enough_and_none_can_go(text: str) -> None:
    body = nodes(text, n=N)
    found = with_barriers(body)
    assert barrier_faults(found) == ()
    for number in range(barriers_in(found)):
        assert barrier_faults(without_barrier(found, number))
    left = found
    while barriers_in(left):
        left = without_barrier(left, 0)
    assert left == body


KERNEL = kernel(
    Let(name="column", value=Name("blockIdx.x")), Let(name="row", value=Name("blockIdx.y"))
)


def tiles(columns: int, rows: int, own: Kernel | None = None) -> list[tuple[int, int]]:
    """Return the column and the row of each block, in the order in which blocks start."""
    body = (own or with_threadblock_swizzle(KERNEL, taken_names(KERNEL))).body
    found = []
    for y, x in product(range(rows), range(columns)):
        known = {"blockIdx.x": x, "blockIdx.y": y, "gridDim.x": columns, "gridDim.y": rows}
        for node in body:
            assert isinstance(node, Let)
            known[node.name] = evaluate(node.value, known)
        found.append((known["column"], known["row"]))
    return found


@given(st.integers(1, 40), st.integers(1, 40))
def test_every_tile_has_one_block(columns: int, rows: int) -> None:
    assert sorted(tiles(columns, rows)) == list(product(range(columns), range(rows)))


@given(st.integers(1, 40), st.integers(1, 40))
def test_blocks_backwards_take_tiles_in_the_opposite_order(columns: int, rows: int) -> None:
    for one in (KERNEL, with_threadblock_swizzle(KERNEL, taken_names(KERNEL))):
        back = with_blocks_backwards(one, taken_names(one))
        assert tiles(columns, rows, back) == tiles(columns, rows, one)[::-1]


def extents(text: str, array: str, kind: str = "double") -> tuple[int, ...]:
    (found,) = re.findall(rf"EATSS_TRACKED\({kind}\) {array}((?:\[\d+\])+);", text)
    return tuple(map(int, re.findall(r"\d+", found)))


def test_fragments_of_floats_are_read_without_conflicts() -> None:
    program = eatss.codegen(
        data_directory("kernels") / "gemm.c",
        gpu="h200",
        defines={"DATA_TYPE": "float"},
        tiles={"i": 128, "j": 128, "k": 16},
        block=(16, 8),
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_tf32_16x8x8"],
    )
    *_, row_a = extents(program.text, "A", "float")
    *_, row_b = extents(program.text, "B", "float")
    assert row_a % 4 == row_b % 4 == 0  # copies of 16 bytes
    lanes = [(row, quad) for row in range(8) for quad in range(4)]
    # two steps beside each other: eight bytes a lane, sixteen lanes at once
    for first in range(0, 32, 16):
        read = [row * row_a + 2 * quad for row, quad in lanes[first : first + 16]]
        assert len({(place + one) % 32 for place in read for one in range(2)}) == 32
    # columns of four matrices beside each other: sixteen bytes a lane, eight lanes at once
    for first in range(0, 32, 8):
        read = [2 * quad * row_b + 4 * row for row, quad in lanes[first : first + 8]]
        assert len({(place + one) % 32 for place in read for one in range(4)}) == 32
