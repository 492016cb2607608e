"""Columns of two matrices that a lane loads follow each other, and threads share out all points."""

from __future__ import annotations

import re
from itertools import product

import pytest

import eatss
from tests.examples import with_long

LANES = {"i": 8, "j": 4}


def product_of(a: str, b: str) -> str:
    """Return a program that multiplies two matrices, given how it reads them."""
    return f"""
#ifndef N
#define N 256
#endif
void product(double C[N][N], double A[N][N], double B[N][N])
{{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                C[i][j] += {a} * {b};
#pragma endscop
}}
"""


PLAIN = product_of("A[i][k]", "B[k][j]")
TRANSPOSED = product_of("A[k][i]", "B[j][k]")


def value_of(text: str, loop: str) -> str:
    """Return what a thread's value along a loop is, as Python."""
    found = set(re.findall(rf"const int {loop} = {loop}0 \+ ([^;]+);", text))
    (value,) = {one for one in found if f"r{loop}" in one}
    return str(value).replace("/", "//")


def points(value: str, loop: str, threads: int, count: int) -> list[dict[str, int]]:
    """Return the value along a loop for each thread and point, with their names."""
    lanes = LANES[loop]
    found = []
    for thread, point in product(range(threads), range(count)):
        names = {
            f"t{loop}": thread,
            f"lane_{loop}": thread % lanes,
            f"warp_{loop}": thread // lanes,
            f"r{loop}": point,
        }
        found.append({**names, "value": eval(value, {}, dict(names))})
    return found


def generated(source: str, block: tuple[int, int], *, gpu: str = "h200", columns: int = 64) -> str:
    program = eatss.codegen(
        source,
        gpu=gpu,
        tiles={"i": 64, "j": columns, "k": 16},
        block=block,
        instructions=["mma_f64_8x8x4" if gpu == "a100" else "mma_f64_16x8x4"],
    )
    return program.text


@pytest.mark.samples(1)
@pytest.mark.parametrize("gpu", ["a100", "h200"])
@pytest.mark.parametrize("block", with_long([(16, 8), (16, 16), (8, 8)], [(8, 8)]))
@pytest.mark.parametrize("source", [PLAIN, TRANSPOSED])
def test_threads_share_out_all_points(gpu: str, block: tuple[int, int], source: str) -> None:
    text = generated(source, block, gpu=gpu)
    assert "eatss_mma" in text
    for loop, threads in zip("ij", block, strict=True):
        found = points(value_of(text, loop), loop, threads, 64 // threads)
        assert sorted(one["value"] for one in found) == list(range(64))


@pytest.mark.samples(1)
@pytest.mark.parametrize("block", [(16, 8), (16, 16), (8, 8)])
def test_columns_of_two_matrices_follow_each_other(block: tuple[int, int]) -> None:
    found = points(value_of(generated(PLAIN, block), "j"), "j", block[1], 64 // block[1])
    columns = {}
    for one in found:
        pair, inside = divmod(one["rj"], 4)
        slot, turn = divmod(inside, 2)
        matrix = 2 * pair + turn
        columns[one["warp_j"], matrix, 2 * one["lane_j"] + slot] = one["value"]
    for (warp, matrix, column), value in columns.items():
        if matrix % 2 == 0:
            assert value % 2 == 0
            assert columns[warp, matrix + 1, column] == value + 1


@pytest.mark.samples(1)
@pytest.mark.parametrize(("columns", "turns"), [(128, 4), (64, 4), (32, 2), (16, 1)])
def test_of_floats_up_to_four_matrices_take_turns(columns: int, turns: int) -> None:
    program = eatss.codegen(
        PLAIN.replace("double", "float"),
        gpu="h200",
        tiles={"i": 64, "j": columns, "k": 16},
        block=(16, 8),
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_tf32_16x8x8"],
    )
    assert "eatss_mma_tf32_16x8x8(C_r" in program.text
    found = points(value_of(program.text, "j"), "j", 8, columns // 8)
    assert sorted(one["value"] for one in found) == list(range(columns))
    vector = 2 * turns
    for one in found:
        start = 8 * vector * (one["rj"] // vector) + vector * one["tj"]
        assert one["value"] == start + one["rj"] % vector


@pytest.mark.long
def test_where_rows_run_along_the_sum_columns_of_a_matrix_follow_each_other() -> None:
    assert value_of(generated(TRANSPOSED, (16, 8)), "j") == "2 * tj + 16 * (rj // 2) + rj % 2"
    assert value_of(generated(TRANSPOSED, (16, 8)), "i") == "ti + 16 * ri"
    assert value_of(generated(PLAIN, (16, 8)), "i") == "ti + 16 * ri"


@pytest.mark.long
def test_of_an_odd_number_of_matrices_none_take_turns() -> None:
    value = "2 * tj + 16 * (rj // 2) + rj % 2"
    assert value_of(generated(PLAIN, (16, 8), columns=48), "j") == value
