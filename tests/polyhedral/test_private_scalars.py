"""Scalars of a region become arrays or are computed where they are read."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.api import codegen, inspect, select
from eatss.frontend.parse import parse_file
from eatss.polyhedral.scalars import expanded_arrays, with_expanded_scalars, with_private_scalars
from eatss.polyhedral.scop import Scop
from eatss.program import Program
from eatss.verify.run import verify
from tests.examples import examples
from tests.polyhedral.executing import executed

# -- Scalars of rows: programs that have them are cut as those that have arrays in their place.


ARGUMENTS = "int n, int m, float S[n][m], float O[n][m], float a[n], float b[n], float c[n]"

MAXIMUM = """
    float most = S[i][0];
    for (int j = 1; j < m; j++) most = fmaxf(most, S[i][j]);"""

LOCAL = {
    "softmax": f"""{MAXIMUM}
    float z = 0;
    for (int j = 0; j < m; j++) {{ O[i][j] = expf(S[i][j] - most); z = z + O[i][j]; }}
    for (int j = 0; j < m; j++) O[i][j] /= z;""",
    "softmax, stored last": f"""{MAXIMUM}
    float z = 0;
    for (int j = 0; j < m; j++) {{
      float e = expf(S[i][j] - most);
      z += e;
      O[i][j] = e;
    }}
    for (int j = 0; j < m; j++) O[i][j] /= z;""",
    "layer norm": """
    float mean = 0, var = 0;
    for (int j = 0; j < m; j++) mean += S[i][j];
    mean /= m;
    for (int j = 0; j < m; j++) { float d = S[i][j] - mean; var += d * d; }
    float r = 1 / sqrtf(var / m + 1e-5f);
    for (int j = 0; j < m; j++) O[i][j] = (S[i][j] - mean) * r;""",
}


def source(row: str, before: str = "", inside: str = "") -> str:
    """Return a function that does the same with each row."""
    return (
        f"#include <math.h>\nvoid f({ARGUMENTS}) {{\n{before}\n#pragma scop\n{inside}\n"
        f"for (int i = 0; i < n; i++) {{{row}\n}}\n#pragma endscop\n}}\n"
    )


def program(text: str, folder: Path) -> Program:
    """Return the program of a text, for an H200."""
    path = folder / "f.c"
    path.write_text(text + "\n")
    return codegen(path, gpu="h200", output=folder / "out")


def region(text: str) -> Scop:
    (scop,) = parse_file(text).scops
    return scop


@pytest.mark.parametrize("place", ["row", "region", "function"])
def test_it_does_not_matter_where_a_scalar_is_declared(place: str) -> None:
    row, declared = LOCAL["softmax"], "float most, z;"
    if place != "row":
        row = row.replace("float most", "most").replace("float z", "z")
    before, inside = declared * (place == "function"), declared * (place == "region")
    (private,) = with_private_scalars(region(source(row, before, inside)))
    assert sorted(expanded_arrays(region(source(row, before, inside)), private)) == ["most", "z"]


def test_a_scalar_that_is_read_after_the_region_stays() -> None:
    text = source(LOCAL["softmax"].replace("float z", "z"), before="float z;")
    text = text.replace("#pragma endscop", "#pragma endscop\na[0] = z;")
    (private,) = with_private_scalars(region(text))
    assert expanded_arrays(region(text), private) == ("most",)


def test_each_use_of_a_scalar_has_an_array_of_its_own() -> None:
    row = """
    float s = 0;
    for (int j = 0; j < m; j++) s += S[i][j];
    a[i] = s;
    s = 1;
    for (int j = 0; j < m; j++) s *= S[i][j];
    b[i] = s;"""
    before = region(source(row))
    (private,) = with_private_scalars(before)
    assert expanded_arrays(before, private) == ("s", "s_1")


@pytest.mark.parametrize(
    ("row", "statements"),
    [("softmax, stored last", 6), ("layer norm", 7)],
)
def test_a_value_of_one_iteration_is_stored_or_computed_where_it_is_read(
    row: str, statements: int
) -> None:
    before = region(source(LOCAL[row]))
    (private,) = with_private_scalars(before)
    assert len(private.statements) == statements
    assert {"e", "d"}.isdisjoint(expanded_arrays(before, private))


@pytest.mark.parametrize(
    "between", ["O[i][j] = 2;", "a[i] += O[i][j];"], ids=["overwritten", "read"]
)
def test_a_value_is_not_stored_early_where_that_is_seen(between: str) -> None:
    row = f"""
    float z = 0;
    for (int j = 0; j < m; j++) {{
      float e = expf(S[i][j]);
      {between}
      z += e;
      O[i][j] = e;
    }}
    b[i] = z;"""
    (first, _) = with_private_scalars(region(source(row)))
    assert [s.text for s in first.statements if s.write.array == "O"][-1] == "O[i][j] = e;"


ALL = "void f(int n, float s[1], float x[n], float y[n]) {{\n#pragma scop\n{}\n#pragma endscop\n}}"
LOSS = "for (int i = 0; i < n; i++) { float e = fabsf(x[i] - y[i]); s[0] += e < 1 ? e * e : e; }"


def test_a_sum_of_all_is_split_though_its_terms_are_in_a_scalar(tmp_path: Path) -> None:
    made = program(f"#include <math.h>\n{ALL.format(LOSS)}", tmp_path)
    assert max(prod(kernel.block) for kernel in made.kernels) >= 32
    assert verify(tmp_path / "out").ok


WAVE = """for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) {
    float h = A[i - 1][j - 1] + B[i][j];
    h = h > A[i - 1][j] ? h : A[i - 1][j];
    h = h > A[i][j - 1] ? h : A[i][j - 1];
    A[i][j] = h;
}"""


def test_a_scalar_that_is_set_again_keeps_no_wave_in_one_thread(tmp_path: Path) -> None:
    text = (
        f"void f(int n, float A[n][n], float B[n][n]) {{\n#pragma scop\n{WAVE}\n#pragma endscop\n}}"
    )
    made = program(text, tmp_path)
    assert min(prod(kernel.block) for kernel in made.kernels) >= 32
    assert verify(tmp_path / "out").ok


def test_all_values_of_a_scalar_expand_with_one_of_them() -> None:
    row = """
    float s = 0;
    for (int j = 0; j < m; j++) s += S[i][j];
    s /= m;
    a[i] = s * s;
    b[i] = s;"""
    before = region(source(row))
    (private,) = with_private_scalars(before)
    assert expanded_arrays(before, private) == ("s", "s_1")


def test_rows_are_what_the_original_computes(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(source(LOCAL["softmax"]))
    program = codegen(path, gpu="a100", output=tmp_path / "out")
    assert any("over j is split" in note for k in program.kernels for note in k.notes)
    sizes = [{"n": 5, "m": 70}, {"n": 1, "m": 1}, {"n": 3, "m": 0}]
    verification = verify(tmp_path / "out", device="cpu", sizes=sizes)
    assert verification.ok, verification.message


RECURSIVE = """void f(int n, int m, float X[n][m], float Y[n][m], float k) {
float last, out;
#pragma scop
for (int i = 0; i < n; i++) {
  last = 0; out = 0;
  for (int j = 0; j < m; j++) { Y[i][j] = k * last + out; last = X[i][j]; out = Y[i][j]; }
}
for (int j = 0; j < m; j++) {
  out = 0;
  for (int i = n - 1; i >= 0; i--) { Y[i][j] = k * out + X[i][j]; out = Y[i][j]; }
}
#pragma endscop
}
"""


def test_values_that_go_along_a_row_leave_rows_parallel() -> None:
    facts = inspect(RECURSIVE, cut="eatss").facts
    assert [fact.loops[0].parallel for fact in facts] == [True, True]


SOLVER = """void f(double A[64][64], double y[64]) {
double w;
#pragma scop
for (int i = 0; i < 64; i++) {
  for (int j = 0; j < i; j++) {
    w = A[i][j];
    for (int k = 0; k < j; k++) w -= A[i][k] * A[k][j];
    A[i][j] = w / A[j][j];
  }
  for (int j = i; j < 64; j++) {
    w = A[i][j];
    for (int k = 0; k < i; k++) w -= A[i][k] * A[k][j];
    A[i][j] = w;
  }
}
#pragma endscop
}
"""


def test_a_decomposition_that_adds_up_in_a_scalar_has_parallel_updates() -> None:
    facts = inspect(SOLVER, cut="eatss").facts
    assert sum(sum(loop.parallel for loop in fact.loops) == 2 for fact in facts) >= 2


PIXELS = """void f(float X[19][1024][1024], float Y[19][1024][1024]) {
#pragma scop
for (int y = 0; y < 1024; y++)
  for (int x = 0; x < 1024; x++) {
    float sum = 0;
    for (int c = 0; c < 19; c++) sum += X[c][y][x];
    for (int c = 0; c < 19; c++) Y[c][y][x] = X[c][y][x] / sum;
  }
#pragma endscop
}
"""


def test_pixels_enough_for_a_card_keep_their_scalars_in_one_kernel() -> None:
    """Two kernels would read ``X`` from memory twice."""
    (facts,) = inspect(PIXELS, cut="eatss").facts
    assert [loop.name for loop in facts.parallel_loops] == ["y_x"]
    rows = PIXELS.replace("[c][y][x]", "[y][x][c]").replace("[19][1024][1024]", "[1024][1024][19]")
    assert len(inspect(rows, cut="eatss").facts) == 2


# -- Sums in scalars of the region: expanded where values stay in an iteration, and only there.


SIZED = "double A[64][96], double B[96][80], double C[64][80]"


def product(m: str, n: str, k: str, a: str, b: str, c: str) -> str:
    """Return a product that adds up in a scalar."""
    return (
        f"for (int i = 0; i < {m}; i++) for (int j = 0; j < {n}; j++) {{ double acc = 0.0;\n"
        f"for (int l = 0; l < {k}; l++) acc += {a} * {b};\n{c} = acc; }}"
    )


PRODUCT = product("64", "80", "96", "A[i][l]", "B[l][j]", "C[i][j]"), SIZED


def product_source(loops: str, arguments: str) -> str:
    return f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def product_region(loops: str, arguments: str) -> Scop:
    (scop,) = parse_file(product_source(loops, arguments)).scops
    return scop


def test_a_sum_in_a_scalar_is_tiled_as_one_in_an_array() -> None:
    (facts,) = inspect(product_source(*PRODUCT), cut="eatss").facts
    assert [(loop.name, loop.parallel) for loop in facts.loops] == [
        ("i", True),
        ("j", True),
        ("l", False),
    ]
    program = codegen(product_source(*PRODUCT), gpu="a100")
    (kernel,) = program.kernels
    assert "acc" not in kernel.arguments
    assert any(note.startswith("acc: registers") for note in kernel.notes)
    assert not any(entry.temporaries for entry in program.entries)


def test_it_takes_the_layout_of_the_sum_in_the_array() -> None:
    loops = product("1536", "1920", "768", "A[i][l]", "B[l][j]", "C[i][j]")
    sized = "double A[1536][768], double B[768][1920], double C[1536][1920]"
    in_array = loops.replace("double acc = 0.0;", "C[i][j] = 0.0;").replace("acc +=", "C[i][j] +=")
    in_array = in_array.replace("C[i][j] = acc;", "")
    layouts = []
    for text in (loops, in_array):
        (kernel,) = select(product_source(text, sized), gpu="h200", target="cuda").kernels
        staged = {r.array for r in kernel.references if r.placement == "shared"}
        layouts.append((kernel.tile_sizes, kernel.block, staged))
    assert layouts[0] == layouts[1]


def test_two_sums_in_one_iteration_are_both_expanded() -> None:
    loops = (
        "for (int i = 0; i < 64; i++) { double p = 0, q = 1;\n"
        "for (int l = 0; l < 96; l++) { p += A[i][l]; q *= A[i][l] + p; }\n"
        "C[i][0] = p + q; }"
    )
    before = product_region(loops, SIZED)
    assert expanded_arrays(before, with_expanded_scalars(before)) == ("p", "q")


@pytest.mark.parametrize(
    "loops",
    [
        # a value goes from one iteration to the next
        "for (int i = 0; i < 64; i++) for (int j = 1; j < 80; j++) { C[i][j] = s;\n"
        "for (int l = 0; l < 96; l++) s += A[i][l]; }",
        # no loop is inside the iteration
        "for (int i = 0; i < 64; i++) { double t = A[i][0]; t += A[i][1]; C[i][0] = t; }",
        # the sum is over the iterations themselves
        "for (int i = 0; i < 64; i++) s += A[i][0];\nC[0][0] = s;",
        # counters are no subscripts
        "for (int i = -8; i < 56; i++) { double t = 0;\n"
        "for (int l = 0; l < 96; l++) t += A[i + 8][l];\nC[i + 8][0] = t; }",
    ],
)
def test_other_scalars_stay_as_they_are(loops: str) -> None:
    declared = "double s = 0;\n" if " s " in f" {loops} ".replace("s;", "s ;") else ""
    before = product_region(declared + loops, SIZED)
    assert with_expanded_scalars(before) is before


# -- Regions drawn: whatever is expanded or computed anew, arrays are left as they were.


STATEMENTS = (
    "s = A[i][j];",
    "s += A[i][{k}] * t;",
    "t = s + B[j][i];",
    "t = 2 * t;",
    "if ({k} > i) s = B[{k}][j];",
    "if (j < 2) t = A[j][i];",
    "B[i][j] = s;",
    "A[i][{k}] = t + s;",
    "B[{k}][i] += t;",
    "C[i] = t;",
    "s = C[i] + t;",
)
LOOPS = ("int i = 0; i < 4; i++", "int i = 3; i >= 0; i--", "int i = 1; i < 4; i += 2")


@st.composite
def scalar_loops(draw: st.DrawFn) -> str:
    """Draw nests whose statements hand on two scalars, before, in and after inner loops."""

    def statements(k: str) -> str:
        return "\n".join(draw(st.lists(st.sampled_from(STATEMENTS), max_size=3))).format(k=k)

    text = draw(st.sampled_from(["", "s = 1; t = 2;"]))
    for _ in range(draw(st.integers(1, 2))):
        rows = draw(st.sampled_from(LOOPS))
        inner = draw(st.sampled_from(["int k = 0; k < 4; k++", "int k = 0; k <= i; k++", ""]))
        body = f"{statements('j')} for ({inner}) {{ {statements('k')} }}" if inner else ""
        begun = draw(st.sampled_from(["", "s = 0;", "t = A[i][0];", "s = C[i]; t = 0;"]))
        text += (
            f"for ({rows}) {{ {begun} for (int j = 0; j < 4; j++) {{ {body} {statements('i')} }}"
        )
        text += draw(st.sampled_from(["}", "C[i] = s; }", "C[i] = s + t; }"]))
    return text


@settings(max_examples=examples(20), deadline=None)
@given(scalar_loops())
def test_a_region_without_its_scalars_leaves_what_the_region_does(loops: str) -> None:
    arguments = "double A[4][4], double B[4][4], double C[4]"
    text = f"void f({arguments}) {{ double s, t;\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    (scop,) = parse_file(text).scops
    want = {at: value for at, value in executed(scop).items() if at[0] in "ABC"}
    for private in (with_expanded_scalars(scop), *with_private_scalars(scop)):
        found = executed(private)
        assert {at: value for at, value in found.items() if at[0] in "ABC"} == want
