"""Factors that products share are multiplied once a sum; what is added to is loaded then."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import eatss
from eatss.lower.kernel.nodes import Copy, Declare, Element, Extents, For, Kernel, Node
from eatss.lower.kernel.uses import accesses, every
from eatss.lower.transform.epilogues import with_factors_last
from eatss.program import Constant
from eatss.verify import verify

TILES = {"i": 32, "j": 32, "k": 16}


def body(source: str) -> str:
    """Return the text of the kernel of a program of products."""
    program = eatss.codegen(
        source,
        gpu="h200",
        tiles=TILES,
        block=(16, 8),
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_f64_16x8x16"],
    )
    return program.text.partition("__global__")[2].partition("#ifndef")[0]


def products(*statements: str, before: str = "") -> str:
    inside = "\n".join(statements)
    return f"""
#define N 4000
void f(double alpha, double beta, double gamma, double C[N][N], double A[N][N], double B[N][N])
{{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {{
            {before}
            for (int k = 0; k < N; k++) {{
                {inside}
            }}
        }}
#pragma endscop
}}
"""


def test_a_scalar_of_all_products_is_multiplied_behind_the_loop() -> None:
    text = body(products("C[i][j] += alpha * A[i][k] * B[k][j];", before="C[i][j] *= beta;"))
    loop, _, rest = text.partition("double C_r[")
    assert "eatss_mma_16x8x16(sum_C_r" in loop
    assert "alpha" not in loop.partition("EATSS_DYNAMIC_SHARED")[2].partition("EATSS_SHARED")[2]
    assert rest.index("*= beta") < rest.index("+= alpha * sum_C_r") < rest.rindex("= C_r")


@pytest.mark.long
def test_boxes_of_what_moves_behind_the_loop_are_filled_there() -> None:
    first = "C[i][j] = beta * C[i][j] + A[i][i] * B[i][j];"
    text = body(products("C[i][j] += alpha * A[i][k] * B[k][j];", before=first))
    loop, _, rest = text.partition("double C_r[")
    assert {*re.findall(r"sh\.\w+", loop)} == {"sh.A_1", "sh.B_1"}
    assert {*re.findall(r"sh\.\w+", rest)} == {"sh.A", "sh.B"}


@pytest.mark.long
def test_boxes_that_others_need_before_the_loop_keep_what_needs_them_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Kernel] = []

    def noted(kernel: Kernel, taken: set[str]) -> Kernel:
        seen.append(kernel)
        return with_factors_last(kernel, taken)

    monkeypatch.setattr("eatss.lower.transform.chain.with_factors_last", noted)
    body(products("C[i][j] += alpha * A[i][k] * B[k][j];", before="C[i][j] += B[i][j];"))
    kernel, *_ = seen
    assert with_factors_last(kernel, set()).body != kernel.body
    (box,) = (one for one in kernel.shared if one.name == "B")

    register = replace(box, name="one", space="register", layout=Extents(()))
    element = Element(buffer=box, subscripts=(Constant(0), Constant(0)))
    use = (Declare(buffer=register), Copy(target=Element(buffer=register), source=element))

    def fills(node: Node) -> bool:
        return any(box == one.buffer for own in every((node,)) for one in accesses(own)[0])

    def with_use(node: Node) -> tuple[Node, ...]:
        if not isinstance(node, For) or not any(map(fills, node.body)):
            return (node,)
        (last,) = (at for at, one in enumerate(node.body) if fills(one))
        return (replace(node, body=(*node.body[: last + 1], *use, *node.body[last + 1 :])),)

    used = replace(kernel, body=tuple(one for node in kernel.body for one in with_use(node)))
    assert with_factors_last(used, set()).body == used.body
    assert with_factors_last(replace(used, overlaid=()), set()).body != used.body


@pytest.mark.long
def test_factors_of_both_sides_and_several_of_them() -> None:
    text = body(products("C[i][j] += alpha * A[i][k] * gamma * B[k][j];"))
    assert "+= alpha * gamma * sum_C_r" in text


@pytest.mark.long
def test_what_products_do_not_share_stays() -> None:
    both = ("C[i][j] += alpha * A[i][k] * B[k][j];", "C[i][j] += gamma * B[i][k] * A[k][j];")
    text = body(products(*both))
    assert "sum_C_r" not in text
    assert "eatss_mma_16x8x16(C_r" in text


@pytest.mark.samples(1)
@pytest.mark.parametrize("factor", ["", "2.0 * "])
def test_sums_of_warps_begin_at_zero_where_they_would_begin_with_loaded_values(factor: str) -> None:
    text = body(products(f"C[i][j] += {factor}A[i][k] * B[k][j];"))
    loop, _, rest = text.partition("double C_r[")
    assert "eatss_mma_16x8x16(sum_C_r" in loop
    assert (
        rest.index("] = C[") < rest.index("C_r[s][s_1] += sum_C_r[s][s_1]") < rest.rindex("= C_r")
    )


@pytest.mark.long
def test_sums_that_begin_at_zero_are_the_own_ones() -> None:
    text = body(products("C[i][j] += A[i][k] * B[k][j];", before="C[i][j] = 0;"))
    assert "sum_C_r" not in text
    assert "eatss_mma_16x8x16(C_r" in text


def test_threads_that_compute_alone_begin_with_loaded_values() -> None:
    source = products("C[i][j] += A[i][k] * B[k][j];")
    plain = eatss.codegen(source, gpu="v100", tiles=TILES, block=(16, 8))
    assert "sum_C_r" not in plain.text
    assert plain.kernels[0].bit_exact


def test_tests_of_rows_stand_around_their_columns() -> None:
    source = products("C[i][j] += alpha * A[i][k] * B[k][j];", before="C[i][j] *= beta;")
    rest = body(source.replace("4000", "4001")).partition("double C_r[")[2]
    assert re.search(r"if \(i < 4001\) \{\s+#pragma unroll\s+for \(int rj", rest)


def test_threads_that_compute_alone_multiply_them_last_too() -> None:
    source = products("C[i][j] += alpha * A[i][k] * B[k][j];", before="C[i][j] *= beta;")
    plain = eatss.codegen(source, gpu="v100", tiles=TILES, block=(16, 8))
    assert "sum_C_r[ri][rj] += sh.A[" in plain.text
    assert "+= alpha * sum_C_r" in plain.text
    assert (plain.kernels[0].regroups, plain.kernels[0].bit_exact) == (True, False)


def test_rounding_of_the_source_is_kept_where_it_is_asked_for() -> None:
    source = products("C[i][j] += alpha * A[i][k] * B[k][j];")
    strict = eatss.codegen(source, gpu="h200", tiles=TILES, block=(16, 8), strict_fp=True)
    assert "sum_C_r" not in strict.text
    assert strict.kernels[0].bit_exact


def test_what_is_added_once_is_not_moved() -> None:
    source = """
    void f(double alpha, double beta, double C[64][64], double A[64][64])
    {
    #pragma scop
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 64; j++) {
                C[i][j] *= beta;
                C[i][j] += alpha * A[i][j];
            }
    #pragma endscop
    }
    """
    program = eatss.codegen(source, gpu="h200")
    assert "sum_C_r" not in program.text
    assert not program.kernels[0].regroups


LATER = """
void f(int NI, int NJ, int NK, double alpha, double C[NI][NJ], double U[NI][NJ], double A[NI][NK],
       double B[NK][NJ], double D[NI][NK])
{
#pragma scop
    for (int i = 0; i < NI; i++)
        for (int j = 0; j < NJ; j++) {
            STATEMENTS
        }
#pragma endscop
}
"""


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    "statements",
    [
        "C[i][j] += U[i][j]; U[i][j] = 0;"
        " for (int k = 0; k < NK; k++) C[i][j] += A[i][k] * B[k][j];",
        "C[i][j] += U[i][j]; U[i][j] = 0;"
        " for (int k = 0; k < NK; k++) C[i][j] += alpha * A[i][k] * B[k][j];",
        "for (int k = 0; k < NK; k++) C[i][j] += D[i][k] * C[i][j];"
        " for (int k = 0; k < NK; k++) C[i][j] += A[i][k] * B[k][j];",
        "for (int k = 0; k < NK; k++) C[i][j] += alpha * A[i][k] * C[i][j];",
    ],
)
def test_what_a_sum_begins_with_is_what_it_was_and_sums_that_read_themselves_stay(
    statements: str, tmp_path: Path
) -> None:
    source = LATER.replace("STATEMENTS", statements)
    tiles = {"i": 32, "j": 32, "k": 16}
    eatss.codegen(source, gpu="h200", tiles=tiles, block=(16, 8), output=tmp_path / "f")
    assert (
        verify(tmp_path / "f", device="cpu", sizes=[{"NI": 37, "NJ": 35, "NK": 17}]).status == "ok"
    )
