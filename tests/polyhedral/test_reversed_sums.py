"""Sums that begin with what is computed last: from their end they come to the same."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.variant import Rewrites
from eatss.api import codegen, select
from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.lower.recipe import CodeRequest
from eatss.polyhedral.reversed_sums import with_reversed_sums
from eatss.polyhedral.scop import Scop
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.examples import examples
from tests.polyhedral.executing import region_of
from tests.polyhedral.test_chunked_scans import values_of

BACK = """for (int i = {n} - 1; i >= 0; i--) {{
    x[i] = y[i];
    for (int j = i + 1; j < {n}; j++) x[i] -= A[i][j] * x[j];
    x[i] = x[i] {by} A[i][i];
}}"""
SOURCE = f"""
#ifndef N
#define N 300
#endif
void f(double A[N][N], double x[N], double y[N]) {{
#pragma scop
{BACK.format(n="N", by="/")}
#pragma endscop
}}
"""


def region(loops: str) -> Scop:
    return region_of(loops, "double A[5][5], double x[5], double y[5]")


def in_reverse(scop: Scop) -> list[str]:
    return [one.name for one in scop.statements if one.reordered]


@pytest.mark.parametrize(
    "loops",
    [
        BACK.format(n=5, by="*"),
        # what is computed first is last in memory, and in the sum
        "for (int i = 0; i < 5; i++) for (int j = i - 1; j >= 0; j--) x[i] += A[j][i] * x[j];",
        "for (int i = 0; i < 5; i++) for (int j = 1; j <= i; j++) x[i] += A[j][i] * x[i - j];",
    ],
)
def test_a_sum_from_its_end_comes_to_the_same(loops: str) -> None:
    before = region(loops)
    after = with_reversed_sums(before)
    assert len(in_reverse(after)) == 1
    assert values_of(after) == values_of(before)
    assert with_reversed_sums(after).statements == after.statements


@pytest.mark.parametrize(
    "loops",
    [
        "for (int i = 0; i < 5; i++) for (int j = 0; j < i; j++) x[i] -= A[i][j] * x[j];",
        "for (int i = 0; i < 5; i++) for (int j = 0; j < 5; j++) x[i] += A[i][j] * y[4 - j];",
        "for (int i = 4; i >= 0; i--) for (int j = i + 1; j < 5; j++)"
        "{ x[i] -= A[i][j] * x[j]; y[j] = x[i]; }",  # a value between is seen
        "for (int i = 4; i >= 0; i--) for (int j = i + 1; j < 5; j++)"
        "x[i] = x[i] * A[i][j] + x[j];",  # no sum
        "for (int j = 0; j < 5; j++) x[0] += A[0][j] * x[4 - j];",  # a term is the sum
        "x[0] += A[0][0] * x[1];",  # in no loop
    ],
)
def test_others_keep_their_order(loops: str) -> None:
    before = region(loops)
    assert with_reversed_sums(before) is before


STATEMENTS = (
    "x[i] -= A[i][j] * x[{e}];",
    "x[i] = fmax(x[i], A[j][i] + x[{e}]);",
    "y[i] += x[{e}] * A[i][j];",
    "A[i][0] += A[{e}][1] * x[j];",
    "x[0] += A[i][j] * x[{e}];",
    "A[i][j] += A[{e}][j] * y[{e}];",
)
ELEMENTS = ("j", "4 - j", "i", "(i > j ? i - j : 0)")
LOOPS = ("int {k} = 0; {k} < 5; {k}++", "int {k} = 4; {k} >= 0; {k}--")
INNER = (
    *LOOPS,
    "int {k} = i + 1; {k} < 5; {k}++",
    "int {k} = 0; {k} < i; {k}++",
    "int {k} = i - 1; {k} >= 0; {k}--",
)


@st.composite
def sums(draw: st.DrawFn) -> str:
    def inner() -> str:
        loop = draw(st.sampled_from(INNER)).format(k="j")
        own = draw(st.sampled_from(STATEMENTS)).format(e=draw(st.sampled_from(ELEMENTS[:3])))
        return f"for ({loop}) {own}"

    end = draw(st.sampled_from(("", "x[i] = x[i] * 3;", "y[i] = x[i];", "A[i][1] = x[i];")))
    body = " ".join(inner() for _ in range(draw(st.integers(1, 2))))
    return f"for ({draw(st.sampled_from(LOOPS)).format(k='i')}) {{ {body} {end} }}"


@settings(max_examples=examples(20), deadline=None)
@given(sums())
def test_drawn_sums_come_to_the_same(loops: str) -> None:
    before = region(loops)
    assert values_of(with_reversed_sums(before)) == values_of(before)


@pytest.mark.filterwarnings("error")  # EATSS-A010 is of the sum as it is written
def test_a_backward_solve_is_no_single_thread(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(SOURCE, encoding="utf-8")
    selection = select(tmp_path / "f.c", gpu="h200", target="cuda")
    assert selection.reverse == (0,)
    assert [one.region for one in selection.classes] == [0]
    program = codegen(tmp_path / "f.c", gpu="h200", output=tmp_path / "out")
    assert all(prod(one.block) > 1 for one in program.kernels)
    found = verify(tmp_path / "out", device="cpu", sizes=[{"N": size} for size in (0, 1, 2, 33)])
    assert (found.status, found.message) == ("ok", "")


def test_a_backward_solve_of_many_right_hand_sides_is_in_classes() -> None:
    """Backwards alone, its sums would cost more."""
    text = """void f(int n, int m, double U[n][n], double B[n][m]) {
#pragma scop
    for (int i = n - 1; i >= 0; i--)
        for (int j = 0; j < m; j++) {
            for (int k = i + 1; k < n; k++) B[i][j] -= U[i][k] * B[k][j];
            B[i][j] /= U[i][i];
        }
#pragma endscop
}
"""
    found = select(text, gpu="h200", target="cuda")
    assert found.reverse == (0,)
    assert [one.region for one in found.classes] == [0]


def test_accesses_not_seconds_say_how_many_ways_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, expected in ((8, ()), (9, (0,))):
        monkeypatch.setattr("eatss.session.session._MOST_ACCESSES", most)
        assert Session(SOURCE).select("h200", SelectOptions(target="cuda")).reverse == expected


def test_with_strict_fp_no_sum_runs_from_its_end() -> None:
    cuda = SelectOptions(target="cuda")
    assert not Session(SOURCE).select("h200", cuda, strict_fp=True).reverse
    session = Session(SOURCE, code=True, rewrites=Rewrites(reverse=(0,)))
    selection = session.select("h200", cuda)
    recipe = session.recipe(selection, load_profile("h200"), CodeRequest(strict_fp=True))
    with pytest.raises(InputError, match="EATSS-K019"):
        session.generate(recipe, load_profile("h200"))
