"""Factors that are the same for several points are multiplied with each other first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eatss
from eatss.program import Program
from eatss.verify import verify


def sums(value: str, folder: Path | None = None, *, strict: bool = False) -> Program:
    source = f"""
    #ifndef N
    #define N 4096
    #endif
    void f(float C[N][N], float A[N][N], float B[N][N], float v[N], float w[N], float s)
    {{
    #pragma scop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < N; k++)
                    C[i][j] += {value};
    #pragma endscop
    }}
    """
    return eatss.codegen(
        source,
        gpu="h200",
        output=folder,
        tiles={"i": 16, "j": 16, "k": 8},
        block={"i": 4, "j": 4},
        share={"k": 1},
        strict_fp=strict,
    )


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("A[i][k] * B[k][j] * v[j]", "A * (B * v)"),
        ("v[j] * A[i][k] * B[k][j]", "v * B * A"),
        ("A[i][k] * B[k][j] * w[i] * v[j]", "A * w * (B * v)"),
        ("A[i][k] * B[k][j] * w[k]", "A * B * w"),
    ],
)
def test_factors_of_the_same_points_stand_together(
    value: str, printed: str, tmp_path: Path
) -> None:
    program = sums(value, tmp_path)
    text = re.sub(r"(sh\.)?(\w+)(\[[^\[\]]*\])+", r"\2", program.text)
    assert re.findall(r"C_r \+= (.*);", text) == [printed] * text.count("C_r +=")
    (kernel,) = program.kernels
    assert kernel.regroups == (re.sub(r"\[.*?\]", "", value) != printed)
    found = verify(tmp_path, device="cpu", sizes=[{"N": 7}, {"N": 33}])
    assert (found.status, found.message) == ("ok", "")
    assert found.bit_equal != kernel.regroups


def test_what_is_no_plain_product_stays() -> None:
    for value in ("A[i][k] * (B[k][j] + v[j])", "A[i][k] * 2 * B[k][j] * v[j]"):
        assert not sums(value).kernels[0].regroups


def test_the_order_of_the_source_is_kept_where_it_is_asked_for() -> None:
    assert not sums("A[i][k] * B[k][j] * v[j]", strict=True).kernels[0].regroups
