"""What products by tensor cores must not take: short loops, counters, names, steps, other boxes."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

MMA = "eatss_mma_16x8x4("


def product(
    value: str,
    *,
    bounds: tuple[str, str, str] = ("N", "N", "N"),
    steps: tuple[str, str, str] = ("i++", "j++", "k++"),
    scalar: str = "alpha",
    names: tuple[str, str] = ("A", "B"),
) -> str:
    """Return a program that adds a value to ``C[i][j]``, over three loops."""
    (rows, columns, sums), (first, second) = bounds, names
    along_i, along_j, along_k = steps
    return f"""
#define N 1000
void f(double {scalar}, double x[N], double C[N][N], double {first}[N][N], double {second}[N][N])
{{
#pragma scop
    for (int i = 0; i < {rows}; {along_i})
        for (int j = 0; j < {columns}; {along_j})
            for (int k = 0; k < {sums}; {along_k})
                C[i][j] += {value};
#pragma endscop
}}
"""


def kernel_text(program: eatss.Program) -> str:
    return program.text.partition("__global__")[2].partition("#ifndef")[0]


def forced(source: str, **keywords: object) -> eatss.Program:
    """Return a program whose layout is one for tensor cores, whatever would be selected."""
    given = {"tiles": {"i": 64, "j": 64, "k": 16}, "block": (16, 8), **keywords}
    return eatss.codegen(
        source,
        gpu="h200",
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_f64_16x8x4"],
        **given,  # type: ignore[arg-type]
    )


def test_boxes_of_short_loops_have_a_place_for_all_that_is_read(tmp_path: Path) -> None:
    source = product("A[i][k] * B[k][j]", bounds=("70", "65", "15"))
    folder = tmp_path / "program"
    eatss.codegen(source, gpu="h200", output=folder)
    assert verify(folder, device="cpu").ok
    selected = eatss.select(source, gpu="h200", target="cuda").kernels[0]
    assert selected.warps is None or int("15") >= dict(selected.tile_sizes)["k"]


def test_rows_that_are_fewer_than_a_tile_are_left_to_plain_code() -> None:
    source = product("A[i][k] * B[k][j]", bounds=("20", "20", "32"))
    assert MMA not in kernel_text(forced(source))


@pytest.mark.parametrize("value", ["i * A[i][k] * B[k][j]", "N * A[i][k] * B[k][j]"])
def test_a_counter_is_no_factor_of_a_matrix(value: str) -> None:
    source = product(value.replace("N *", "(i + N) *"))
    assert eatss.select(source, gpu="h200", target="cuda").kernels[0].warps is None
    assert MMA not in kernel_text(forced(source))


@pytest.mark.parametrize(
    ("bounds", "steps"),
    [
        (("N", "N", "N"), ("i += 2", "j++", "k += 3")),
        (("100", "100 - i", "100 - i - j"), ("i++", "j++", "k++")),
    ],
)
def test_tiles_that_are_never_full_are_not_selected_for_tensor_cores(
    bounds: tuple[str, str, str], steps: tuple[str, str, str]
) -> None:
    source = product("A[i][k] * B[k][j]", bounds=bounds, steps=steps)
    assert eatss.select(source, gpu="h200", target="cuda").kernels[0].warps is None


@pytest.mark.parametrize("scalar", ["stage"])
def test_a_scalar_keeps_its_name(scalar: str) -> None:
    source = product(f"{scalar} * A[i][k] * B[k][j]", scalar=scalar)
    text = kernel_text(forced(source, stages=3))
    assert MMA in text
    assert f"int {scalar} =" not in text
    assert f"double {scalar}[" not in text


@pytest.mark.parametrize("array", ["wide_B"])
def test_an_array_keeps_its_name(array: str) -> None:
    source = product(f"{array}[i][k] * B[k][j]", names=(array, "B"))
    text = kernel_text(
        eatss.codegen(
            source,
            gpu="h200",
            tiles={"i": 64, "j": 64, "k": 16},
            block=(16, 8),
            placements={array: "shared", "B": "shared"},
            instructions=["mma_f64_16x8x4"],
            stages=3,
        )
    )
    assert MMA in text
    assert not any(f"{kind} {array} =" in text for kind in ("int", "bool", "const int"))
    assert f"double {array}[" not in text.partition("{")[2]


def test_boxes_beside_wide_copies_begin_where_these_may() -> None:
    """A box of one row and one more element would put the next one eight bytes off."""
    source = product("x[j] * A[i][k] * B[k][j]").replace(
        "C[i][j] +=", "C[i][j] += x[j + 1] * A[i][k] * B[k][j]; C[i][j] +="
    )
    source = source.replace("k++)", "k++) {").replace(
        "x[j] * A[i][k] * B[k][j];", "x[j] * A[i][k] * B[k][j]; }"
    )
    source = source.replace("j < N;", "j < N - 1;")
    placements = {"A": "shared", "B": "shared", "x": "shared"}
    program = eatss.codegen(
        source,
        gpu="h200",
        tiles={"i": 64, "j": 64, "k": 16},
        block=(16, 8),
        placements=placements,
        instructions=["mma_f64_16x8x4"],
        stages=2,
    )
    struct = program.text.partition("_shared {")[2].partition("};")[0]
    rows = [
        int(line.rpartition("[")[2].partition("]")[0])
        for line in struct.splitlines()
        if "[" in line
    ]
    assert len(rows) >= 2
    assert all(row % 2 == 0 for row in rows)
