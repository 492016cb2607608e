"""Sums with factors taken out of sums inside of them: they come to the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.api import codegen
from eatss.choose.options import SelectOptions
from eatss.polyhedral.factored_sums import with_factored_sums
from eatss.polyhedral.parts import readers_of
from eatss.polyhedral.scop import Scop
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.examples import examples
from tests.polyhedral.executing import region_of
from tests.polyhedral.test_chunked_scans import values_of

ARRAYS = ", ".join(
    [
        *(f"double {one}[4][4]" for one in "ABCD"),
        "double s[1]",
        *(f"double {one}[4]" for one in "xyz"),
    ]
)


def region(loops: str) -> Scop:
    return region_of(loops, ARRAYS)


def nest(counters: str, body: str) -> str:
    return "".join(f"for (int {k} = 0; {k} < 4; {k}++) " for k in counters) + body


@pytest.mark.parametrize(
    ("loops", "most"),
    [
        (nest("bij", "y[b] += A[b][i] * B[i][j] * C[b][j];"), 3),
        (nest("ij", "for (int k = j; k >= 0; k--) s[0] += A[i][j] * B[j][k] * C[k][i];"), 3),
        (nest("iljk", "C[i][l] += A[i][j] * B[j][k] * x[l] * A[k][l];"), 3),
        (nest("ijk", "C[i][j] += x[i] * A[k][j] * (2 * k + 1);"), 2),
        (nest("i", f"{{ y[i] = 0; {nest('jk', 'y[i] += x[j] * A[i][j] * B[j][k];')} }}"), 2),
    ],
)
def test_factors_are_taken_out_of_sums(loops: str, most: int) -> None:
    before = region(loops)
    after = with_factored_sums(before)
    assert max(len(one.loops) for one in after.statements) == most
    assert len(after.statements) > len(before.statements)
    assert values_of(after) == values_of(before)
    assert with_factored_sums(after) is after


@pytest.mark.parametrize(
    "loops",
    [
        nest("irjk", "C[i][r] += A[i][j] * B[j][r] * A[k][r];").replace("A[i][j]", "A[i][j + k]"),
        nest("ijk", "C[i][j] += A[i][k] * x[k] * B[k][j];"),  # products of matrices as they are
        nest("ij", "y[i] += x[j] * A[i][j];"),
        nest("ij", "s[0] -= x[i] * A[i][j] * y[j];"),  # it waits for A
        nest("ijk", "y[i] += x[j] * A[i][k] + 1;"),
        nest("ijk", "y[i] = y[i] * x[j] * A[i][k];"),
        nest("ij", "for (int k = 0; k < j; k++) y[i] += x[j] * A[i][k] * y[3 - i];"),
        nest("i", f"{{ {nest('jk', 'y[i] += x[j] * A[i][j] * B[j][k];')} B[0][i] = y[i]; }}"),
    ],
)
def test_others_stay(loops: str) -> None:
    before = region(loops)
    assert with_factored_sums(before) is before


FACTORS = ("x[{0}]", "A[{0}][{1}]", "B[{0}][{1}]", "y[{0}]", "{0}", "C[{1}][{0}]")


@pytest.mark.parametrize(
    ("used", "are_whole"),
    [("x[i] + 1", True), ("x[i] * x[i]", True), ("x[i + 1] + x[i]", False), ("x[0] + x[i]", False)],
)
def test_all_reads_of_a_statement_are_to_get_whole_sums(used: str, are_whole: bool) -> None:
    sums = "x[i] = 0; for (int j = 0; j < 4; j++) x[i] += A[i][j];"
    scop = region(f"for (int i = 0; i < 3; i++) {{ {sums} y[i] = {used}; }}")
    assert (readers_of(scop, "x", scop.statement("S1")) is not None) == are_whole


@st.composite
def sums(draw: st.DrawFn) -> str:
    counters = draw(st.permutations("ijk"))
    at = st.sampled_from((*counters, "3 - i"))
    product = " * ".join(
        draw(st.sampled_from(FACTORS)).format(draw(at), draw(at))
        for _ in range(draw(st.integers(2, 4)))
    )
    target = draw(st.sampled_from(("s[0]", "z[i]", "D[i][j]")))
    inner = draw(st.sampled_from(("{k} = 0; {k} < 4; {k}++", "{k} = 3; {k} >= 0; {k}--")))
    cut = draw(st.sampled_from(("", "if ({0} <= {1}) ", "if ({0} + {1} < 5) ")))
    body = f"{cut.format(*counters[1:])}{target} {draw(st.sampled_from('+-'))}= {product};"
    body = f"{{ {body} {draw(st.sampled_from(('', 'x[0] = B[j][0];', 'B[1][j] = y[j];')))} }}"
    for at_depth, k in enumerate(reversed(counters)):
        body = f"for (int {inner.format(k=k)}) {{ {body} }}"
        if not at_depth:
            body += draw(st.sampled_from(("", " x[1] = y[2];")))
    return body


@settings(max_examples=examples(25), deadline=None)
@given(sums())
def test_drawn_sums_come_to_the_same(loops: str) -> None:
    before = region(loops)
    assert values_of(with_factored_sums(before)) == values_of(before)


SOURCE = """
#ifndef N
#define N 2048
#endif
#ifndef K
#define K 256
#endif
void f(float y[N], float x[N][K], float W[K][K], float z[N][K]) {
#pragma scop
    for (int b = 0; b < N; b++) {
        y[b] = 0;
        for (int i = 0; i < K; i++)
            for (int j = 0; j < K; j++)
                y[b] -= x[b][i] * W[i][j] * z[b][j];
    }
#pragma endscop
}
"""


HEAD, _, _ = SOURCE.partition("void")
TRACE = f"""{HEAD}
void f(float t[1], float x[N][K], float W[K][K], float z[K][N]) {{
#pragma scop
    t[0] = 0;
    for (int b = 0; b < N; b++)
        for (int i = 0; i < K; i++)
            for (int j = 0; j < K; j++)
                t[0] += x[b][i] * W[i][j] * z[j][b];
#pragma endscop
}}
"""


@pytest.mark.parametrize("text", [SOURCE, TRACE])
def test_sums_of_products_of_three_are_products_of_matrices(text: str, tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text(text, encoding="utf-8")
    strict = Session(text).select("h200", SelectOptions(target="cuda"), strict_fp=True)
    program = codegen(source, gpu="h200", output=tmp_path / "out")
    assert not strict.factored
    assert any("S1_all" in one.statements and one.shared_bytes for one in program.kernels)
    sizes = [{"N": n, "K": k} for n, k in ((0, 3), (3, 0), (1, 1), (33, 17))]
    found = verify(tmp_path / "out", device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", "")
