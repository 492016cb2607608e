"""Products of bytes and halves: what tensor cores multiply, how fragments are loaded, odd rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.cards import load_profile
from eatss.program import Program
from tests.lower.checking import checked

pytestmark = pytest.mark.usefixtures("analysed_once")

MMA = "mma_f16_16x8x16"

GEMM = """\
void gemm(int n, int m, int p, float alpha, float C[n][m], TYPE A[n][p], TYPE B[p][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < p; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
PRODUCT = "(float) A[i][k] * (float) B[k][j]"
ALONE: dict[str, Any] = {
    "tiles": {"i": 16, "j": 32, "k": 8}, "block": (16, 8), "stages": 2,
    "placements": {"A": "shared", "B": "shared"},
}  # fmt: skip
ON_WARPS = {
    **ALONE, "tiles": {"i": 16, "j": 16, "k": 32}, "block": (8, 4), "instructions": [MMA],
}  # fmt: skip

OPERATIONS = """\
void f(int n, _Float16 s, _Float16 x[n], _Float16 y[n], float f[n], double d[n], int q[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    _Float16 t = x[i] * y[i] + s;
    y[i] -= t / (x[i] + 1);
    x[i] = x[i] < y[i] ? t : (_Float16) 0.1f;
    x[i] += f[i];
    f[i] = d[i] > 0.5 ? x[i] * y[i] : y[i];
    d[i] = -x[i] * d[i];
    y[i] += d[i];
    y[i]++;
    q[i] = y[i] * 100;
    y[i] = y[i] && x[i] ? q[i] : x[i];
    q[i] += x[i];
  }
#pragma endscop
}
"""

SUMS = """\
void f(int n, _Float16 A[n][n], _Float16 x[n], _Float16 y[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    y[i] = 0;
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
  }
#pragma endscop
}
"""


def gemm(value: str = PRODUCT, element: str = "_Float16") -> str:
    return GEMM.replace("VALUE", value).replace("TYPE", element)


def computed(program: Program) -> bool:
    """Tell whether tensor cores compute a sum."""
    return any(f"{MMA}: computes S0" in kernel.notes for kernel in program.kernels)


@pytest.mark.parametrize(
    ("text", "how", "sizes"),
    [
        (gemm(), ON_WARPS, [{"n": 21, "m": 24, "p": 67}, {"n": 16, "m": 16, "p": 64}]),
        # elements of boxes are converted to halves
        (
            gemm("(float) (_Float16) A[i][k] * (float) B[k][j]", "double"),
            ALONE,
            [{"n": 17, "m": 33, "p": 9}],
        ),
        (OPERATIONS, {"bit_equal": True}, [{"n": 131}]),
    ],
)
def test_operations_are_those_of_c(
    text: str, how: dict[str, Any], sizes: list[dict[str, int]], tmp_path: Path
) -> None:
    checked(text, tmp_path, sizes, **how)


def test_sums_in_halves_stay_in_their_order(tmp_path: Path) -> None:
    program = checked(SUMS, tmp_path, [{"n": 35}], bit_equal=True)
    assert not any(kernel.reassociates for kernel in program.kernels)


def test_tensor_cores_multiply_halves_alone() -> None:
    source = gemm("alpha * A[i][k] * B[k][j]", "_Float16")
    selection = eatss.select(source, gpu="a100", target="cuda")
    assert selection.kernels[0].warps is not None
    program = eatss.codegen(source, gpu="a100", selection=selection)
    assert computed(program)


def test_arrays_of_numpy_are_computed_with() -> None:
    call = eatss.jit(gemm())
    draw = np.random.default_rng(0)
    a, b = (draw.random(shape).astype(np.float16) for shape in ((20, 30), (30, 10)))
    c = np.zeros((20, 10), np.float32)
    call(alpha=1.0, A=a, B=b, C=c)
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5)
    with pytest.raises(eatss.InputError) as raised:
        call(alpha=1.0, A=a.astype(np.float32), B=b, C=c)
    assert raised.value.code == "EATSS-J004"


SOURCE = """\
#include <stdint.h>
void product(int n, int m, int p, SUM C[n][m], FIRST A[ROWS], SECOND B[COLUMNS])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < p; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
A = {"rows": ("A[i][k]", "n][p"), "turned": ("A[k][i]", "p][n")}
B = {"rows": ("B[k][j]", "p][m"), "turned": ("B[j][k]", "m][p")}
NAMES = {"int8_t": "s8", "uint8_t": "u8", "signed char": "s8", "unsigned char": "u8", "char": "s8"}


def source(
    first: str = "rows", second: str = "rows", types: tuple[str, str] = ("int8_t", "int8_t"),
    sums: str = "int", value: str = "",
) -> str:  # fmt: skip
    """Return a product of two factors, as they lie."""
    changes = {
        "VALUE": value or f"{A[first][0]} * {B[second][0]}",
        "ROWS": A[first][1], "COLUMNS": B[second][1], "SUM": sums,
        "FIRST": types[0], "SECOND": types[1],
    }  # fmt: skip
    text = SOURCE
    for name, own in changes.items():
        text = text.replace(name, own)
    return text


def options(instruction: str = "mma_s8_s8_16x8x32", steps: int = 64) -> Any:
    """Return how two by two warps multiply tiles of 32 rows and columns."""
    return {
        "tiles": {"i": 32, "j": 32, "k": steps},
        "block": (8, 8),
        "placements": {"A": "shared", "B": "shared"},
        "instructions": [instruction],
        "stages": 2,
    }


def instructions_of(program: Program) -> list[str]:
    """Return the instructions of tensor cores that compute the sum."""
    notes = (one for kernel in program.kernels for one in kernel.notes)
    return [one.split(":")[0] for one in notes if one.startswith("mma_") and ": computes S0" in one]


def loads_in(program: Program) -> dict[str, str]:
    """Return how fragments are loaded, by array."""
    found = re.findall(r" eatss_load_(\w+)\(fragment.*&sh\.(\w)", program.text)
    return {array: how for how, array in found}


@pytest.mark.parametrize(("first", "second"), [("rows", "rows"), ("turned", "turned")])
def test_boxes_of_bytes_are_read_as_they_lie(first: str, second: str, tmp_path: Path) -> None:
    sizes = [{"n": 32, "m": 32, "p": 192}, {"n": 33, "m": 7, "p": 71}]
    program = checked(source(first, second), tmp_path, sizes, bit_equal=True, **options())
    assert instructions_of(program) == ["mma_s8_s8_16x8x32"]
    ways = {"A": "matrices" if first == "rows" else "turned_bytes"}
    ways |= {"B": "matrices" if second == "turned" else "turned_bytes"}
    assert loads_in(program) == ways


def test_sums_of_all_values_are_right_and_wrap() -> None:
    types = ("unsigned char", "int8_t")
    call = eatss.jit(source(types=types, sums="unsigned"))
    draw = np.random.default_rng(0)
    a, b = (
        draw.integers(*limits, shape, kind, endpoint=True)
        for own, shape in zip(types, ((40, 70), (70, 24)), strict=True)
        for kind in [np.uint8 if own[0] == "u" else np.int8]
        for limits in [(np.iinfo(kind).min, np.iinfo(kind).max)]
    )
    c = np.full((40, 24), 2**32 - 5, np.uint32)
    call(A=a, B=b, C=c)
    exact = a.astype(np.int64) @ b.astype(np.int64) - 5
    assert (c == exact % 2**32).all()


@pytest.mark.parametrize(("types", "fits"), [(("int8_t", "int8_t"), True), (("int", "int"), False)])
def test_tensor_cores_multiply_bytes_into_words(types: tuple[str, str], fits: bool) -> None:
    warps = eatss.select(source(types=types), gpu="a100", target="cuda").kernels[0].warps
    wanted = f"mma_{NAMES.get(types[0])}_{NAMES.get(types[1])}_16x8x32" if fits else None
    assert (warps and warps.instruction) == wanted


def test_cards_without_them_have_plain_operations_that_take_their_time() -> None:
    (kernel,) = eatss.select(source(), gpu="t4", target="cuda").kernels
    assert kernel.warps is None
    card = load_profile("t4")
    assert kernel.predicted is not None
    assert card.boost_clock_mhz is not None
    assert kernel.predicted.time_s >= 4096**3 / (64 * card.sm_count * 1e6 * card.boost_clock_mhz)


def test_boxes_of_halves_are_read_as_they_lie(tmp_path: Path) -> None:
    value = f"(float) {A['turned'][0]} * (float) {B['rows'][0]}"
    text = source("turned", "rows", ("_Float16", "_Float16"), "float", value)
    sizes = [{"n": 64, "m": 64, "p": 64}, {"n": 33, "m": 47, "p": 71}]
    program = checked(text, tmp_path, sizes, **options(MMA, 32))
    assert set(re.findall(r" eatss_load_(\w*)matrices\(fragment.*, &sh", program.text)) == {
        "turned_"
    }
    assert not re.search(r"= sh\.[AB]", program.text)


LINES_SOURCE = """\
#define N {0}
#define M {1}
#define P {2}
void product(float C[N][M], _Float16 A[N][P], _Float16 B[P][M])
{{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++)
      for (int k = 0; k < P; k++)
        C[i][j] += (float) A[i][k] * (float) B[k][j];
#pragma endscop
}}
"""


def lines_in(program: eatss.Program) -> set[str]:
    """Return the arrays whose elements come through registers."""
    return set(re.findall(r"eatss_half (\w+)_line\[\d+\];", program.text))


def test_products_of_odd_sizes_are_right(tmp_path: Path) -> None:
    program = checked(LINES_SOURCE.format(71, 33, 135), tmp_path, **options(MMA, 32))
    assert lines_in(program) == {"A", "B"}
    assert re.search(r"sh.A\[\(stage == 0 \? 1 : stage - 1\)\].* = A_line\[e\];", program.text)
    assert "eatss_wait_for_copies" not in program.text
