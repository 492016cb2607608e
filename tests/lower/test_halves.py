"""Programs with halves: what generated code computes, on its own and by tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import eatss
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification, verify

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
ON_WARPS = CodegenOptions(
    tile_sizes=(("", (("i", 16), ("j", 16), ("k", 32))),),
    block=(("", (8, 4)),),
    placements=(("A", "shared"), ("B", "shared")),
    instructions=(MMA,),
    stages=2,
)
ALONE = CodegenOptions(
    tile_sizes=(("", (("i", 16), ("j", 32), ("k", 8))),),
    block=(("", (16, 8)),),
    placements=(("A", "shared"), ("B", "shared")),
    stages=2,
)

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


def test_sums_of_products_are_those_of_floats(verify_text: Callable[..., Verification]) -> None:
    sizes = [{"n": 21, "m": 24, "p": 67}, {"n": 16, "m": 16, "p": 64}]
    found = verify_text(gemm(), ON_WARPS, sizes)
    assert (found.status, found.message) == ("ok", "")


def test_elements_of_boxes_are_converted_to_halves(
    verify_text: Callable[..., Verification],
) -> None:
    value = "(float) (_Float16) A[i][k] * (float) B[k][j]"
    found = verify_text(gemm(value, "double"), ALONE, [{"n": 17, "m": 33, "p": 9}])
    assert (found.status, found.message) == ("ok", "")


def test_all_operations_are_those_of_c_in_every_bit(
    verify_text: Callable[..., Verification],
) -> None:
    found = verify_text(OPERATIONS, CodegenOptions(), [{"n": 131}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


def test_sums_in_halves_stay_in_their_order(tmp_path: Path) -> None:
    program = eatss.codegen(SUMS, gpu="h200", output=tmp_path)
    assert not any(kernel.reassociates for kernel in program.kernels)
    found = verify(tmp_path, device="cpu", sizes=[{"n": 35}])
    assert (found.status, found.bit_equal) == ("ok", True)


def test_tensor_cores_multiply_halves_alone() -> None:
    source = gemm("alpha * A[i][k] * B[k][j]", "_Float16")
    selection = eatss.select(source, gpu="a100", target="cuda")
    assert selection.kernels[0].warps is not None
    program = eatss.codegen(source, gpu="a100", selection=selection)
    assert computed(program)


def test_they_do_not_where_the_order_of_sums_is_kept() -> None:
    assert not computed(eatss.codegen(gemm(), gpu="h200", strict_fp=True))


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


def test_a_macro_for_the_type_follows_arrays_of_halves() -> None:
    source = (
        "#ifndef DATA_TYPE\n#define DATA_TYPE double\n#endif\n"
        "void f(int n, DATA_TYPE s, DATA_TYPE x[n], DATA_TYPE y[n])\n{\n#pragma scop\n"
        "for (int i = 0; i < n; i++) y[i] += s * x[i];\n#pragma endscop\n}\n"
    )
    x = np.linspace(0, 1, 50).astype(np.float16)
    y = np.ones_like(x)
    eatss.jit(source)(s=0.1, x=x, y=y)
    assert (y == np.ones_like(x) + np.float16(0.1) * x).all()
