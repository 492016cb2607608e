"""Each block has a tile of its own, whatever the grid, and neighbours in time are near."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from eatss.analysis.structure import ROWS_TOGETHER
from eatss.lower.kernel.nodes import Kernel, Let
from eatss.lower.kernel.uses import taken_names
from eatss.lower.transform.block_order import in_groups_of_rows
from eatss.program import Name, evaluate

KERNEL = Kernel(
    name="k",
    threads=32,
    arguments=(),
    shared=(),
    static_shared_bytes=0,
    index_bits=32,
    body=(
        Let(name="column", value=Name("blockIdx.x")),
        Let(name="row", value=Name("blockIdx.y")),
    ),
)


def tiles(columns: int, rows: int) -> list[tuple[int, int]]:
    """Return the column and the row of each block, in the order in which blocks start."""
    body = in_groups_of_rows(KERNEL, taken_names(KERNEL)).body
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


@given(st.integers(ROWS_TOGETHER, 40), st.integers(1, 5))
def test_blocks_go_down_the_rows_of_a_group_first(columns: int, groups: int) -> None:
    order = tiles(columns, ROWS_TOGETHER * groups)
    assert order[:ROWS_TOGETHER] == [(0, row) for row in range(ROWS_TOGETHER)]
    assert order[ROWS_TOGETHER] == (1, 0)


def test_blocks_of_one_direction_stay() -> None:
    single = replace(KERNEL, body=KERNEL.body[:1])
    assert in_groups_of_rows(single, taken_names(single)) is single


def test_names_that_are_taken_stay_what_they_are() -> None:
    taken = replace(KERNEL, body=(*KERNEL.body, Let(name="more", value=Name("block"))))
    first, second, *rest = in_groups_of_rows(taken, taken_names(taken)).body
    assert isinstance(first, Let)
    assert isinstance(second, Let)
    assert first.name not in ("block", "more")
    assert rest[-1] == taken.body[-1]
