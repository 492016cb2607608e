"""Several elements are copied at a time where rows begin at multiples of them, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.lower.pieces import NameTable
from eatss.lower.promotion import CopyLoop, copy_loop
from eatss.lower.recipe import CodegenOptions
from eatss.plan.stage import LEAST_IN_A_ROW, MOST_IN_PIECES, copied_in_rows
from eatss.program import Constant, Program, evaluate
from eatss.verify import verify

Generate = Callable[..., Program]

OPTIONS = CodegenOptions(
    tile_sizes=(("", (("i", 32), ("j", 32), ("k", 16))),),
    block=(("", (16, 8)),),
    instructions=("mma_f64_16x8x16",),
    stages=2,
)
EVEN = [{"NI": 64, "NJ": 64, "NK": 48}, {"NI": 70, "NJ": 38, "NK": 36}]
ODD = [{"NI": 64, "NJ": 65, "NK": 33}, {"NI": 37, "NJ": 66, "NK": 49}]

COUNTS = st.one_of(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 3, 5, 12, 24, 48]), st.integers(1, 70))
LENGTHS = st.one_of(
    st.sampled_from([2, 4, 8, 16, 64, 6, 7, 24, 40, 48, 96, 192]), st.integers(1, 130)
)
THREADS = st.one_of(st.sampled_from([32, 64, 96, 128, 192, 256]), st.integers(1, 96))


def taken_together(vectors: int, threads: int) -> int:
    """Return how many neighbouring threads can share rows of so many vectors evenly."""
    even = (one for one in range(1, vectors + 1) if vectors % one == 0 and threads % one == 0)
    return max(even)


def fills_rows(rows: int, columns: int, threads: int, width: int) -> bool:
    """Tell whether threads copy rows, or pieces of them that are long enough, all as many."""
    if rows == 1 or columns == 1 or columns % width:
        return False
    lanes = taken_together(columns // width, threads)
    few = rows * (columns // width) <= MOST_IN_PIECES * threads
    pieces = lanes * width in range(LEAST_IN_A_ROW, columns) and few
    return (lanes * width == columns or pieces) and rows * lanes % threads == 0


def copied(walk: CopyLoop, threads: int) -> list[list[tuple[int, ...]]]:
    """Return the places that each turn of each thread begins at."""
    found = []
    for thread in range(threads):
        first = evaluate(walk.lower, {"thread": thread})
        turns = range(first, walk.count, walk.step)
        known = [{"thread": thread, walk.counter: turn} for turn in turns]
        found.append([tuple(evaluate(one, names) for one in walk.places) for names in known])
    return found


@given(COUNTS, LENGTHS, THREADS, st.sampled_from([2, 4]))
def test_every_element_is_copied_once(rows: int, columns: int, threads: int, width: int) -> None:
    planned = copied_in_rows((rows, columns), threads, width)
    assert planned == fills_rows(rows, columns, threads, width)
    if not planned:
        return
    walk = copy_loop((rows, columns), threads, "thread", NameTable(), width)
    assert isinstance(walk.lower, Constant)
    assert walk.unrolled
    found = []
    for row, column in chain(*copied(walk, threads)):
        assert column % width == 0
        found += [(row, column + one) for one in range(width)]
    assert sorted(found) == list(product(range(rows), range(columns)))


@given(COUNTS, LENGTHS, THREADS, st.integers(0, 2), st.integers(0, 1))
def test_boxes_are_copied_once_element_by_element(
    rows: int, columns: int, threads: int, first: int, second: int
) -> None:
    sizes = (*[1] * first, rows, *[1] * second, columns)
    walk = copy_loop(sizes, threads, "thread", NameTable())
    assert walk.unrolled == fills_rows(rows, columns, threads, 1)
    assert sorted(chain(*copied(walk, threads))) == list(product(*map(range, sizes)))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), THREADS)
def test_boxes_of_any_dimensions_are_copied_once(sizes: list[int], threads: int) -> None:
    walk = copy_loop(sizes, threads, "thread", NameTable())
    assert sorted(chain(*copied(walk, threads))) == list(product(*map(range, sizes)))
    if sum(size > 1 for size in sizes) > 2:
        assert not walk.unrolled
        assert not copied_in_rows(sizes, threads, 2)


@given(
    st.sampled_from([2, 3, 4, 6, 8, 12, 20, 24, 40, 48]),
    st.sampled_from([32, 64, 96, 128, 192, 256]),
    st.integers(1, 3),
    st.sampled_from([1, 2, 4]),
)
def test_neighbouring_threads_copy_what_follows_in_a_row(
    vectors: int, threads: int, times: int, width: int
) -> None:
    lanes, columns = taken_together(vectors, threads), vectors * width
    rows = threads // lanes * times
    short = lanes < vectors and lanes * width < LEAST_IN_A_ROW
    planned = copied_in_rows((rows, columns), threads, width)
    assert planned != (short or rows == 1)
    if not planned:
        return
    walk = copy_loop((rows, columns), threads, "thread", NameTable(), width)
    assert walk.count == times * vectors // lanes
    assert lanes * width >= min(columns, LEAST_IN_A_ROW)
    found = copied(walk, threads)
    assert sorted(chain(*found)) == list(product(range(rows), range(0, columns, width)))
    for places in zip(*found, strict=True):  # those of a turn
        for at in range(0, threads, lanes):
            (row, column), *others = places[at : at + lanes]
            assert others == [(row, column + width * one) for one in range(1, lanes)]


def test_rows_of_boxes_are_whole_multiples(generate: Generate) -> None:
    text = generate("gemm", options=OPTIONS).text
    rows = re.findall(r"EATSS_TRACKED\(double\) [AB](?:\[\d+\])*\[(\d+)\];", text)
    assert len(rows) == 2
    assert all(int(row) % 2 == 0 for row in rows)


STAR = "A[i - 1][j] + A[i + 1][j] + A[i][j - 1] + A[i][j + 1]"
NEST = "for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++) "


def staged(loops: str, arguments: str, folder: Path) -> str:
    """Return the copy of ``A`` in a program that stages it, which does what C does."""
    text = f"#ifndef N\n#define N 600\n#endif\nvoid f({arguments}) {{\n#pragma scop\n{loops}\n"
    (folder / "f.c").write_text(text + "#pragma endscop\n}\n", encoding="utf-8")
    program = eatss.codegen(
        folder / "f.c", gpu="h200", output=folder / "out", placements={"A": "shared"}
    )
    names = {parameter.name for parameter in program.parameters}
    sizes = [dict.fromkeys(names, size) for size in (2, 3, 67)]
    found = verify(folder / "out", device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", "")
    return program.text.partition("__global__")[2].partition("__syncthreads")[0]


def test_the_box_of_a_star_is_loaded_as_a_whole(tmp_path: Path) -> None:
    copy = staged(NEST + f"B[i][j] = {STAR};", "double A[N][N], double B[N][N]", tmp_path)
    assert "if (j0 >= 1 && j0 + 33 <= N && i0 + 33 <= N && i0 >= 1)" in copy
    assert "||" not in copy  # beside the array, each element is tested for the array's own bounds
