"""Factors that products share are multiplied once a sum; what is added to is loaded then.

Factors that are the same for several points are multiplied with each other first.

A sum that is added to another one goes on in its registers, if nothing else needs those.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.lower.kernel.nodes import Copy, Declare, Element, Extents, For, Kernel, Node
from eatss.lower.kernel.uses import accesses, every
from eatss.lower.transform.epilogues import with_factors_last
from eatss.program import Constant, Program, load_program
from eatss.verify import verify
from tests.examples import with_long

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


pytestmark = pytest.mark.usefixtures("analysed_once")

SYMMETRIC = """
#ifndef N
#define N 200
#endif
void product(double alpha, double beta, double C[N][N], double A[N][N], double B[N][N],
             double t[N][N], double u[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            t[i][j] = 0;
            for (int k = 0; k < i; k++) {
                C[k][j] += alpha * A[i][k] * B[i][j];
                t[i][j] += B[k][j] * A[i][k];
            }
            FINISH
        }
#pragma endscop
}
"""
TOGETHER = "C[i][j] = beta * C[i][j] + alpha * A[i][i] * B[i][j] + alpha * t[i][j];"
APART = {
    "other factors": "C[i][j] = beta * C[i][j] + beta * t[i][j];",
    "it is subtracted": "C[i][j] = beta * C[i][j] - alpha * t[i][j];",
    "it is needed twice": "C[i][j] = alpha * t[i][j] + beta * t[i][j];",
    "at fewer points": "if (j > 3) C[i][j] = beta * C[i][j] + alpha * t[i][j];",
}
SMALL: dict[str, Any] = {
    "tiles": {"i": 16, "j": 32, "k": 32},
    "block": (16, 8),
    "placements": {"A": "shared", "B": "shared"},
}


def made(tmp_path: Path, finish: str, **options: Any) -> Program:
    """Write a program and its code, and return that."""
    source = tmp_path / "product.c"
    source.write_text(SYMMETRIC.replace("FINISH", finish), encoding="utf-8")
    eatss.codegen(source, gpu="h200", output=tmp_path / "made", **SMALL, **options)
    return load_program(tmp_path / "made")


@pytest.mark.parametrize(
    "options",
    [
        {"instructions": ["mma_f64_16x8x4"], "stages": 2},
        pytest.param({"stages": 1}, marks=pytest.mark.long),
    ],
)
def test_one_set_of_registers_for_two_sums_is_right(
    options: dict[str, Any], tmp_path: Path
) -> None:
    program = made(tmp_path, TOGETHER, **options)
    assert len(program.kernels) == 1
    assert "sum_C_r" not in program.text
    found = verify(tmp_path / "made", device="cpu", sizes=[{"N": 37}, {"N": 64}])
    assert found.ok, found.message


@pytest.mark.long
@pytest.mark.parametrize("why", with_long(APART, ["other factors", "at fewer points"]))
def test_two_sets_where_the_other_sum_is_something_else_too(why: str, tmp_path: Path) -> None:
    assert "sum_C_r" in made(tmp_path, APART[why], stages=1).text
    sizes = [{"N": 37}, {"N": 70}]
    assert verify(tmp_path / "made", device="cpu", sizes=sizes).ok


@pytest.mark.long
def test_what_else_the_first_sum_is_needed_for_comes_before_the_second_goes_on(
    tmp_path: Path,
) -> None:
    made(tmp_path, f"{TOGETHER} u[i][j] = t[i][j];", stages=1)
    assert verify(tmp_path / "made", device="cpu", sizes=[{"N": 37}, {"N": 70}]).ok


def test_rounding_is_that_of_the_source_where_it_is_asked_for(tmp_path: Path) -> None:
    text = made(tmp_path, TOGETHER, strict_fp=True, stages=1).text
    assert "C_r[rj][rk] += alpha * sh.A" in text


@pytest.mark.long
def test_two_sums_beside_each_other_that_copy_ahead_name_their_tests_apart(tmp_path: Path) -> None:
    source = tmp_path / "product.c"
    text = SYMMETRIC.replace("k < i", "k < N").replace("C[k][j] += alpha * A[i][k] * B[i][j];", "")
    finish = """if (j <= i) C[i][j] = C[i][j] + alpha * t[i][j];
            for (int k = 0; k < N; k++) C[i][j] += alpha * A[k][i] * B[k][j];"""
    text = text.replace("N 200", "N 2000").replace("FINISH", finish)
    source.write_text(text, encoding="utf-8")
    program = eatss.codegen(source, gpu="h200", output=tmp_path / "made")
    assert program.text.count("const int plain") == 2  # each loop its own
    found = verify(tmp_path / "made", device="cpu", sizes=[{"N": 33}])
    assert found.ok, found.message
