"""Arrays that each iteration overwrites get elements for each: programs leave the same values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.variant import PrivateArrays
from eatss.api import codegen, select
from eatss.polyhedral.isl_names import dim_names
from eatss.polyhedral.private_arrays import is_same, with_private_arrays
from eatss.polyhedral.scalars import live_ranges, with_elements
from eatss.polyhedral.scop import Scop
from eatss.verify.run import verify
from tests.examples import examples
from tests.polyhedral.executing import executed, region_of

ARGUMENTS = "double A[4][4][4], double C[4][4], double t[4], double u[4][4]"


def region(loops: str, inside: str = "") -> Scop:
    return region_of(loops, ARGUMENTS, inside=inside)


def own_loops(before: Scop) -> dict[str, str]:
    """Return the loops for whose iterations private arrays have elements."""
    after, known = with_private_arrays(before), {array.name for array in before.arrays}
    return {
        one.name: " ".join(name for name in dim_names(one.extent) if name in "rqs")
        for one in after.arrays
        if one.name not in known
    }


ROWS = "for (int r = 0; r < 4; r++) for (int q = 0; q < 4; q++) {"
PRODUCT = """for (int p = 0; p < 4; p++) { t[p] = 0;
    for (int s = 0; s < 4; s++) t[p] += A[r][q][s] * C[s][p]; }
  for (int p = 0; p < 4; p++) A[r][q][p] = t[p]; }"""

PRIVATE = {
    "a product of each row": (ROWS + PRODUCT, {"t_1": "r q"}),
    "one of two loops tells the element": (
        ROWS + PRODUCT.replace("t[p]", "u[q][p]"),
        {"u_1": "r"},
    ),
    "steps of time": (
        "for (int s = 0; s < 4; s++) for (int r = 0; r < 4; r++) {"
        "for (int p = 0; p < 4; p++) t[p] = C[r][3 - p];"
        "for (int p = 0; p < 4; p++) C[r][p] = t[p] + 1; }",
        {"t_1": "r"},
    ),
    "rows that are added up": (
        "for (int r = 0; r < 4; r++) { t[0] = C[r][0];"
        "for (int p = 1; p < 4; p++) t[p] = t[p - 1] * C[r][p];"
        "for (int p = 0; p < 4; p++) A[0][0][p] += t[p]; }",
        {"t_1": "r"},
    ),
    "the last iteration is another one for each element": (
        "for (int r = 0; r < 4; r++) { for (int p = 0; p <= r; p++) t[3 - p] = C[r][p];"
        "for (int p = 0; p <= r; p++) C[r][p] = t[3 - p] + t[3]; }",
        {"t_1": "r"},
    ),
    "what is there stays where no iteration writes": (
        "for (int r = 0; r < 4; r++) { for (int p = 1; p < 3; p++) t[p] = C[r][p];"
        "for (int p = 1; p < 3; p++) C[r][3 - p] = t[p]; } C[3][0] = t[0];",
        {"t_1": "r"},
    ),
    "two uses of one array": (
        ROWS + PRODUCT + ROWS + PRODUCT.replace("s][p", "p][s"),
        {"t_1": "r q", "t_2": "r q"},
    ),
}


@pytest.mark.parametrize("which", PRIVATE)
def test_each_iteration_has_elements_and_the_last_values_are_left(which: str) -> None:
    loops, expected = PRIVATE[which]
    before = region(loops)
    assert own_loops(before) == expected
    assert_same(before, with_private_arrays(before))


def assert_same(before: Scop, after: Scop) -> None:
    seen = {array.name for array in before.arrays if not before.is_dead_after(array)}
    wanted, found = (
        {at: value for at, value in executed(one).items() if at[0] in seen}
        for one in (before, after)
    )
    assert found == wanted


STAY = {
    "the first is from before": "for (int r = 0; r < 4; r++) {"
    "for (int p = 1; p < 4; p++) t[p] = C[r][p]; for (int p = 0; p < 4; p++) C[r][p] = t[p]; }",
    "some are of the row before": "for (int r = 0; r < 4; r++) {"
    "for (int p = r; p < 4; p++) t[p] = C[r][p]; for (int p = 0; p < 4; p++) C[r][p] = t[p]; }",
    "all are added to": "for (int r = 0; r < 4; r++) for (int p = 0; p < 4; p++)"
    "t[p] = t[p] * C[r][p] + 1;",
    "steps of time": "for (int r = 0; r < 4; r++) { for (int p = 0; p < 4; p++) t[p] = u[0][p];"
    "for (int p = 0; p < 4; p++) u[0][3 - p] = t[p]; }",
}


@pytest.mark.parametrize("which", STAY)
def test_values_that_iterations_hand_on_stay_where_they_are(which: str) -> None:
    before = region(STAY[which])
    assert with_private_arrays(before) is before


def test_an_array_that_nobody_sees_is_not_copied() -> None:
    before = region(ROWS.replace("{", "{ double v[4];") + PRODUCT.replace("t[p]", "v[p]"))
    after = with_private_arrays(before)
    assert after.array("v").n_dims == 3
    assert len(after.statements) == len(before.statements)
    assert_same(before, after)


def with_read(scop: Scop, name: str, element: str) -> Scop:
    """Return a region of which a statement reads another element of the array it reads first."""
    statement = scop.statement(name)
    array, loops = statement.reads[0].array, ", ".join(statement.loops)
    text = f"{{ {name}[{loops}] -> {array}[{element}] }}"
    relation = isl.Map.read_from_str(scop.isl_context, text).intersect_domain(statement.domain)
    read = replace(statement.reads[0], relation=relation)
    changed = replace(statement, accesses=(statement.write, read, *statement.accesses[2:]))
    own = tuple(changed if one is statement else one for one in scop.statements)
    return replace(scop, statements=own)


def test_values_of_another_iteration_or_none_at_the_end_are_found() -> None:
    before = region(PRIVATE["a product of each row"][0])
    after = with_private_arrays(before)
    assert is_same(before, after)
    assert not is_same(before, replace(after, statements=after.statements[:-1]))
    assert not is_same(before, with_read(after, "S_copy", "2, c1, c2"))
    assert not is_same(before, with_read(after, "S2", "0, q, p"))


def test_a_value_from_before_that_gets_lost_is_found() -> None:
    before = region(STAY["the first is from before"])
    (values,) = live_ranges(before, [before.array("t")])
    assert values.depth == 0
    assert not is_same(before, with_elements(before, [(values, (0,))])[0])


# -- Regions drawn.


STATEMENTS = (
    "t[p] = {x};",
    "t[p] += {x};",
    "t[3 - p] = {x};",
    "if (p) t[p] = t[p - 1] * {x};",
    "u[{k}][p] = {x};",
    "u[p][p] = {x};",
    "A[r][p][q] = {x};",
    "C[r][p] += {x};",
    "C[p][q] = {x};",
)
VALUES = ("A[r][q][p]", "t[p]", "t[0] + C[q][p]", "t[3 - p]", "u[{k}][p] + 1", "u[r][p]", "C[p][r]")
BOUNDS = (
    "int {k} = 0; {k} < 4; {k}++",
    "int {k} = 3; {k} >= 0; {k}--",
    "int {k} = 1; {k} < 3; {k}++",
)


@st.composite
def nests(draw: st.DrawFn) -> str:
    """Draw nests that fill rows, and use them."""

    def loop(counter: str) -> str:
        return f"for ({draw(st.sampled_from(BOUNDS)).format(k=counter)})"

    def row() -> str:
        value = draw(st.sampled_from(VALUES))
        text = draw(st.sampled_from(STATEMENTS)).replace("{x}", value)
        return f"{loop('p')} {text.format(k=draw(st.sampled_from('rq')))}"

    def rows() -> str:
        begun = draw(
            st.sampled_from(("", loop("p") + " t[p] = C[r][p];", loop("p") + " u[r][p] = q;"))
        )
        return begun + "\n".join(row() for _ in range(draw(st.integers(1, 4))))

    return "\n".join(
        f"{loop('r')} {loop('q')} {{ {rows()} }}" for _ in range(draw(st.integers(1, 2)))
    )


@settings(max_examples=examples(10), deadline=None)
@given(nests(), st.booleans())
def test_a_region_with_private_arrays_leaves_what_the_region_does(loops: str, local: bool) -> None:
    before = region(loops, "double t[4], u[4][4];" if local else "")
    for outer in (0, 1):
        assert_same(before, with_private_arrays(before, outer))


# -- Programs.


DOITGEN = f"""
#ifndef R
#define R 64
#endif
#ifndef Q
#define Q 48
#endif
#ifndef P
#define P 40
#endif
void f(double A[R][Q][P], double C[P][P], double t[P]) {{
#pragma scop
{ROWS.replace("r < 4", "r < R").replace("q < 4", "q < Q")}
{PRODUCT.replace("< 4", "< P")}
#pragma endscop
}}
"""


def test_doitgen_is_a_product_and_a_copy(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(DOITGEN, encoding="utf-8")
    selection = select(tmp_path / "f.c", gpu="h200", target="cuda")
    assert selection.private == (PrivateArrays(region=0),)
    assert [one.statements for one in selection.kernels] == [("S0", "S1", "S_copy"), ("S2",)]
    codegen(tmp_path / "f.c", gpu="h200", output=tmp_path / "out")
    sizes = [{"R": 3, "Q": 5, "P": 9}, {"R": 1, "Q": 1, "P": 1}, {"R": 2, "Q": 0, "P": 3}]
    found = verify(tmp_path / "out", device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", "")


def test_where_all_elements_are_too_many_outer_loops_stay(tmp_path: Path) -> None:
    text = DOITGEN.replace("define R 64", "define R 40000").replace("define Q 48", "define Q 4000")
    (tmp_path / "f.c").write_text(text, encoding="utf-8")
    selection = select(tmp_path / "f.c", gpu="h200", target="cuda")
    assert selection.private == (PrivateArrays(region=0, outer=1),)
