"""Which sums of products warps compute, and what they must not take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.analysis.variant import KernelVariant
from eatss.cards import load_profile
from eatss.lower.variants import kernel_variants_for
from eatss.program import Program
from tests.lower.checking import checked
from tests.lower.test_stream_k import MMA

pytestmark = pytest.mark.usefixtures("analysed_once")

H200 = load_profile("h200")


def computed(program: Program, instruction: str) -> set[str]:
    """Return the statements that an instruction computes, read from the notes."""
    notes = [note for kernel in program.kernels for note in kernel.notes]
    found = [re.fullmatch(f"{instruction}: computes (.*)", note) for note in notes]
    return {name for one in found if one is not None for name in one[1].split(", ")}


BATCHED = """
#define N 512
void f(double C[N][N][N], double A0[N][N][N], double A1[N][N][N])
{
#pragma scop
  for (int b = 0; b < N; b++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++)
        for (int k = 0; k < N; k++)
          C[b][i][j] -= A1[k][i][b] * A0[k][j][b];
#pragma endscop
}
"""


def used(source: str, rows: str, columns: str, loops: list[str]) -> bool:
    """Tell whether warps compute a source's product at sizes that fit, everything staged."""
    names = set(re.findall(r"double (A\d)\[", source))
    program = eatss.codegen(
        source,
        gpu="h200",
        tiles={**dict.fromkeys(loops, 1), rows: 32, columns: 32, "k": 16},
        block={rows: 16, columns: 8},
        placements=dict.fromkeys(names, "shared"),
        instructions=[MMA],
    )
    return bool(computed(program, MMA))


def products_offered(variants: Sequence[KernelVariant]) -> list[KernelVariant]:
    """Return the structures with an instruction; where blocks share sums, it computes as much."""
    found = [one for one in variants if one.instruction is not None]
    alone = [one for one in found if one.shared_loop is None]
    for one in found:
        assert one.instruction in [own.instruction for own in alone]
        assert one.products in [own.products for own in alone]
    return alone


def test_contractions_are_offered_just_where_the_generator_finds_products() -> None:
    inspected = eatss.inspect(BATCHED, cut="eatss")
    (facts,) = inspected.facts
    loops = [loop.name for loop in facts.parallel_loops]
    offered = products_offered(kernel_variants_for(inspected, H200)[facts.name])
    possible = [pair for pair in list(combinations(loops, 2)) if used(BATCHED, *pair, loops)]
    assert [(one.rows, one.columns) for own in offered for one in own.products] == possible[-1:]


def offered(source: str, gpu: str, *, strict_fp: bool = False) -> list[KernelVariant]:
    program = eatss.inspect(source, cut="eatss")
    found = kernel_variants_for(program, load_profile(gpu), strict_fp=strict_fp)
    return [one for own in found.values() for one in products_offered(own)]


def test_products_are_offered_for_doubles_on_cards_with_tensor_cores_for_them() -> None:
    source = ELSEWHERE.format(statement="C[j][i] += A[i][k] * B[k][j] * d[k];")
    for gpu, name in (("h200", MMA), ("a100", "mma_f64_8x8x4")):
        (one,) = offered(source, gpu)
        assert one.instruction is not None
        assert one.instruction.name == name
    assert not offered(source, "v100")
    assert not offered(source, "t4")
    assert not offered(source, "h200", strict_fp=True)
    assert not offered(source.replace("double", "float"), "h200")


ELSEWHERE = """
#define N 512
void f(double C[N][N], double A[N][N], double B[N][N], double d[N]) {{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        {statement}
#pragma endscop
}}
"""


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("C[i][j] += A[i][k] * B[k][j];", True),
        ("C[i][j] += d[k] * A[i][k] * B[k][j];", True),
        ("C[i][j] -= A[i][k] * B[k][j];", True),  # the sum of negated products
        ("C[i][j] = A[i][k] * B[k][j] - C[i][j];", False),  # the sign changes from step to step
        ("C[i][j] += A[i][k] + B[k][j];", False),  # a sum
        ("C[i][j] += A[i][k] * B[i][j];", False),  # a factor moves along both
        ("C[i][j] += A[i][k] * B[k][j] + A[i][k];", False),  # the second is no product
    ],
)
def test_only_sums_of_products_are_offered(statement: str, found: bool) -> None:
    assert bool(offered(ELSEWHERE.format(statement=statement), "h200")) == found


OTHERS_MMA = "eatss_mma_16x8x4("


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


FORCED: dict[str, Any] = {
    "tiles": {"i": 64, "j": 64, "k": 16}, "block": (16, 8), "instructions": [MMA],
}  # fmt: skip
"""A layout for tensor cores, whatever would be selected."""


def test_boxes_of_short_loops_have_a_place_for_all_that_is_read(tmp_path: Path) -> None:
    source = product("A[i][k] * B[k][j]", bounds=("70", "65", "15"))
    checked(source, tmp_path)
    selected = eatss.select(source, gpu="h200", target="cuda").kernels[0]
    assert selected.warps is None or int("15") >= dict(selected.tile_sizes)["k"]


def test_a_counter_is_no_factor_of_a_matrix() -> None:
    source = product("(i + N) * A[i][k] * B[k][j]")
    assert eatss.select(source, gpu="h200", target="cuda").kernels[0].warps is None
    staged = {"A": "shared", "B": "shared"}
    found = eatss.codegen(source, gpu="h200", placements=staged, **FORCED)
    assert OTHERS_MMA not in kernel_text(found)


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


def test_an_array_keeps_its_name() -> None:
    array = "wide_B"
    source = product(f"{array}[i][k] * B[k][j]", names=(array, "B"))
    staged = {array: "shared", "B": "shared"}
    text = kernel_text(eatss.codegen(source, gpu="h200", placements=staged, stages=3, **FORCED))
    assert OTHERS_MMA in text
    assert not any(f"{kind} {array} =" in text for kind in ("int", "bool", "const int"))
    assert f"double {array}[" not in text.partition("{")[2]


SOURCE = """
#ifndef NI
#define NI 1000
#endif
#ifndef NJ
#define NJ 1200
#endif
#ifndef NK
#define NK 900
#endif
void products(double alpha, double C[NI][NJ], double D[NI][NJ], double A[NI][NK], double B[NK][NJ],
              double E[NI][NK], double F[NK][NJ])
{
#pragma scop
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++)
      for (int k = 0; k < NK; k++) {
        STATEMENT
      }
#pragma endscop
}
"""
IN_TILES: dict[str, Any] = {"tiles": {"i": 32, "j": 32, "k": 16}, "block": {"i": 16, "j": 8}}
SIZES = [
    {"NI": 41, "NJ": 38, "NK": 45},  # tiles at edges, whole but for zeros
    {"NI": 64, "NJ": 32, "NK": 48},
    {"NI": 5, "NJ": 3, "NK": 1},
    {"NI": 33, "NJ": 34, "NK": 0},
]
COMPLEX = """
        C[i][j] += A[i][k] * B[k][j] - E[i][k] * F[k][j];
        D[i][j] += A[i][k] * F[k][j] + E[i][k] * B[k][j];"""


def test_products_of_complex_numbers_are_right_at_all_sizes(tmp_path: Path) -> None:
    source = SOURCE.replace("STATEMENT", COMPLEX)
    program = checked(source, tmp_path, SIZES, instructions=[MMA], stages=2, **IN_TILES)
    assert computed(program, MMA) == {"S0", "S1"}
    assert all(kernel.regroups for kernel in program.kernels)
