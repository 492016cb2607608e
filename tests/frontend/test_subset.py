"""What is read, and what it becomes; deep, long and wide input ends within seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator

import islpy as isl
import pytest

from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.lower.assumptions import assumptions_of
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    ElementType,
    Expression,
    Literal,
    Read,
)
from eatss.polyhedral.scop import Scop
from tests.frontend.reading import equal, only, refused, region, warnings_of
from tests.refusals import refusing

# -- What the subset takes, and the sets it gives.


DOMAINS = [
    # statements, domain of S0
    ("for (i = 0; i < n; i++) A[i] = 0;", "[n] -> { S0[i] : 0 <= i < n }"),
    ("for (int l = 1; l < n; l += 3) A[l] = 0;", "[n] -> { S0[l] : 0 < l < n and l mod 3 = 1 }"),
    ("for (i = 0; i < (n > m ? n : m); i++) A[i] = 0;",
     "[n, m] -> { S0[i] : 0 <= i and (i < n or i < m) }"),
    ("for (i = 0; i < n / 2; i++) A[i] = 0;", "[n] -> { S0[i] : i >= 0 and 2i + 2 <= n }"),
    ("for (short c = 0; c < 9; c++) A[c] = 0;", "{ S0[c] : 0 <= c < 9 }"),
    ("if (n % 2 == -1) A[0] = 0;", "[n] -> { S0[] : n < 0 and n mod 2 = 1 }"),
    ("for (i = 0; i < LIMIT; i++) A[i] = 0;", "{ S0[i] : 0 <= i < 42 }"),
    ("(void) n; ((void) 0); for (i = 0; i < n; i++) A[i] = 0;", "[n] -> { S0[i] : 0 <= i < n }"),
    ("for (i = 200u >> 6; i < (1 << 5); i++) A[i] = 0;", "{ S0[i] : 3 <= i < 32 }"),
]  # fmt: skip

BEFORE = """\
#include <math.h>
#include <stdlib.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define FLOORD(n, d) (((n) < 0) ? -((-(n) + (d) - 1) / (d)) : (n) / (d))
#define CEILD(n, d) (((n) < 0) ? -((-(n)) / (d)) : ((n) + (d) - 1) / (d))
static inline int min(int a, int b) { return a < b ? a : b; }
int floord(int, int), ceild(int, int);
static const int LIMIT = 42;
enum { ENUM = 7 };
static double T[6];
"""


@pytest.mark.parametrize(("body", "domain"), DOMAINS)
def test_domain(body: str, domain: str) -> None:
    assert equal(region(body, before=BEFORE).statements[0].domain, domain)


def test_a_compound_assignment_reads_its_target_first() -> None:
    statement = region("for (i = 1; i < n; i++) A[i] += A[i - 1] * s;").statements[0]
    assert [a.text for a in statement.accesses] == ["A[i]", "A[i]", "A[i - 1]", "s"]
    assert [a.is_write for a in statement.accesses] == [True, False, False, False]
    assert statement.accesses[0].span == statement.accesses[1].span
    assert equal(statement.reads[1].relation, "[n] -> { S0[i] -> A[i - 1] : 0 < i < n }")
    assert statement.text == "A[i] += A[i - 1] * s;"
    assert statement.value == Binary(
        operator="+",
        left=Read(access=1),
        right=Binary(operator="*", left=Read(access=2), right=Read(access=3)),
    )


def walk(expression: Expression) -> list[Expression]:
    found = [expression]
    for name in ("left", "right", "operand", "condition", "if_true", "if_false"):
        if hasattr(expression, name):
            found += walk(getattr(expression, name))
    for argument in getattr(expression, "arguments", ()):
        found += walk(argument)
    return found


def test_counters_in_values_are_affine_functions_of_the_domain() -> None:
    statement = region("for (i = 0; i < n; i++) A[i] = (i + n) / 2;").statements[0]
    (value,) = [e for e in walk(statement.value) if isinstance(e, AffineValue)]
    expected = "[n] -> { S0[i] -> [floor((i + n) / 2)] : 0 <= i < n }"
    relation = isl.Map.from_pw_aff(value.value).intersect_domain(statement.domain)
    assert relation.is_equal(isl.Map.read_from_str(relation.get_ctx(), expected))
    assert value.element_type is ElementType.INT32


def test_an_arm_of_an_affine_choice_is_read_where_it_is_taken() -> None:
    body = "for (i = 0; i < n; i++) A[i] = i > 0 ? (i + 1 < n ? p[i - 1] : B[i][i]) : B[0][n - 1];"
    relations = {a.text: a.relation for a in region(body).statements[0].reads}
    assert equal(relations["p[i - 1]"], "[n] -> { S0[i] -> p[i - 1] : 0 < i and i + 1 < n }")
    assert equal(relations["B[i][i]"], "[n] -> { S0[i] -> B[i, i] : 0 < i and i = n - 1 }")
    assert equal(relations["B[0][n - 1]"], "[n] -> { S0[i] -> B[0, n - 1] : i = 0 and n > 0 }")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("0.5", "0.5"),
        ("1e3", "1e3"),
        ("HALF", "0.5"),
        ("SUFFIX(2.5)", "2.5f"),
        ("PASS(.25)", "0.25"),
    ],
)
def test_literals_keep_their_value_with_macros_expanded(written: str, text: str) -> None:
    macros = "#define HALF 0.5\n#define SUFFIX(x) x##f\n#define PASS(x) x\n"
    value = region(f"s = {written};", before=macros).statements[0].value
    (literal,) = [e for e in walk(value) if isinstance(e, Literal)]
    assert float(literal.text.rstrip("f")) == float(text.rstrip("f"))
    assert literal.text.endswith("f") == text.endswith("f")


def test_local_variables_are_arrays_of_their_own() -> None:
    scop = region(
        "for (i = 0; i < n; i++) { double t = A[i]; double u[4]; u[1] = t;"
        " { float t = 2; A[i] = u[1] + t; } } t = 0;"
    )
    arrays = {a.name: a for a in scop.arrays}
    assert {name: a.is_local for name, a in arrays.items()} == {
        "t": True, "A": False, "u": True, "t_1": True, "t_2": False,
    }  # fmt: skip
    assert arrays["t_1"].element_type is ElementType.FLOAT
    assert arrays["u"].n_dims == 1


def test_names_that_isl_reserves_are_renamed() -> None:
    scop = only(
        "void f(int mod, double *exists) {\n#pragma scop\n"
        "for (int and = 0; and < mod; and++) exists[and] = 0;\n#pragma endscop\n}\n"
    )
    assert scop.parameters == ("mod_1",)
    assert scop.statements[0].loops == ("and_1",)
    assert isl.Set.read_from_str(scop.isl_context, str(scop.statements[0].domain)).is_equal(
        scop.statements[0].domain
    )


SHAPES = """\
typedef float real; typedef real row[20];
static short G[10][20];
void f(int n, int m, double a[n][m], double (*restrict b)[n + 1][m], row c[], real *d, row h[3],
       double (*whole)[4][5], unsigned char *out) {
  int v[n];
#pragma scop
  a[0][0] = b[0][0][0] + c[0][0] + d[0] + h[0][0] + G[0][0] + v[0] + (*whole)[1][2];
  *out = 1;
#pragma endscop
}
"""


EXTENTS = {
    ElementType.DOUBLE: (
        "[n, m] -> { a[x, y] : 0 <= x < n and 0 <= y < m }",
        "[n, m] -> { b[x, y, z] : 0 <= x and 0 <= y <= n and 0 <= z < m }",
        "{ whole[x, y, z] : 0 <= x and 0 <= y < 4 and 0 <= z < 5 }",
    ),
    ElementType.FLOAT: (
        "{ c[x, y] : 0 <= x and 0 <= y < 20 }",
        "{ d[x] : 0 <= x }",
        "{ h[x, y] : 0 <= x < 3 and 0 <= y < 20 }",
    ),
    ElementType.INT16: ("{ G[x, y] : 0 <= x < 10 and 0 <= y < 20 }",),
    ElementType.INT32: ("[n] -> { v[x] : 0 <= x < n }",),
    ElementType.UINT8: ("{ out[x] : 0 <= x }",),
}


def test_shapes_of_arrays() -> None:
    scop = only(SHAPES)
    for element, extents in EXTENTS.items():
        for extent in extents:
            array = scop.array(extent.partition("{ ")[2].partition("[")[0])
            assert array.element_type is element
            assert equal(array.extent, extent)
    # inner sizes of variable-length arrays are positive
    assert scop.parameters == ("n", "m")
    assert equal(scop.context, "[n, m] -> { : n > 0 and m > 0 }")


def test_a_size_that_is_a_product_bounds_nothing_unless_the_array_is_linearised() -> None:
    text = (
        "void f(int n, double A[2 * n * (n + 1)]) {\n#pragma scop\n"
        "for (int i = 0; i < n; i++) A[i] = 0;\n#pragma endscop\n}\n"
    )
    assert equal(only(text).array("A").extent, "[n] -> { A[i] : 0 <= i }")


# -- linearised arrays -----------------------------------------------------------------------

NEST = "for (i = 0; i < n; i++) for (j = 0; j < m; j++) "


@pytest.mark.parametrize(
    ("body", "relation"),
    [
        (NEST + "p[i * m + j] = 0;", "p[i, j]"),
        (NEST + "p[j + m * i] = 0;", "p[i, j]"),
        (NEST + "p[(i + 1) * m + m - 1 - j] = 0;", "p[i + 1, m - 1 - j]"),
        (NEST + "p[i * (m + 2) + j + 1] = 0;", "p[i, j + 1]"),
        (NEST + "for (k = 0; k < 5; k++) p[(i * m + j) * 5 + k] = 0;", "p[i, j, k]"),
        (NEST + "for (k = 0; k < n; k++) p[i * m * n + j * n + k] = 0;", "p[i, j, k]"),
        ("for (i = 0; i < n; i++) for (j = 0; j < 9; j++) p[i * 9 + j] = 0;", "p[i, j]"),
        ("for (i = 0; i < n; i++) for (j = 0; j < 10; j++) p[i * 9 + j] = 0;", "p[9i + j]"),
        ("for (i = 0; i < n; i++) p[2 * i + 1] = 0;", "p[2i + 1]"),
        ("for (i = 0; i < n; i++) for (j = 0; j < 9; j++) p[i * 9 + j] = p[i + j];", "p[9i + j]"),
    ],
)
def test_linearised_subscripts(body: str, relation: str) -> None:
    statement = region(body).statements[0]
    names = ", ".join(statement.loops)
    text = f"[n, m] -> {{ S0[{names}] -> {relation} }}"
    expected = isl.Map.read_from_str(statement.domain.get_ctx(), text)
    assert statement.write.relation.is_equal(expected.intersect_domain(statement.domain))


def test_a_linearised_array_with_a_known_size_has_its_outer_size() -> None:
    scop = only(
        "#define N 6\nstatic double A[N * N];\nvoid f(void) {\n#pragma scop\n"
        "for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) A[i * N + j] = 0;\n"
        "#pragma endscop\n}\n"
    )
    assert equal(scop.array("A").extent, "{ A[x, y] : 0 <= x < 6 and 0 <= y < 6 }")


def test_a_parameter_value_makes_a_product_affine() -> None:
    body = "for (i = 0; i < 4; i++) for (j = 0; j < 9; j++) p[i * n + j] = 0;"
    options = FrontendOptions(parameter_values=(("n", 8),))
    relation = region(body, options=options).statements[0].write.relation
    assert relation.intersect_params(
        isl.Set.read_from_str(relation.get_ctx(), "[n] -> { : n = 8 }")
    ).is_equal(relation)
    assert equal(relation, "[n] -> { S0[i, j] -> p[8i + j] : 0 <= i < 4 and 0 <= j < 9 and n = 8 }")


# -- warnings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("for (i = 0; i <= 100; i++) A[i] = 0;", "EATSS-F090"),
        ("for (i = 0; i < n; i++) A[i - 1] = 0;", "EATSS-F090"),
        ("if (3 < 2) A[0] = 1; A[1] = 0;", "EATSS-F093"),
    ],
)
def test_warnings(body: str, code: str) -> None:
    assert [w.code for w in warnings_of(body)] == [code]


def test_negative_subscripts_of_pointers_are_within_the_extent() -> None:
    scop = region("for (i = 0; i < n; i++) p[-i] = 0;")
    written = scop.statements[0].write.relation.range()
    assert written.is_subset(scop.array("p").extent)


def test_size_t_loops_over_linearised_arrays() -> None:
    scop = only(
        "#include <stddef.h>\nvoid f(size_t n, size_t m, double *A) {\n#pragma scop\n"
        "for (size_t i = 0; i < n; i++) for (size_t j = 0; j < m; j++) A[i * m + j] = 0;\n"
        "#pragma endscop\n}\n"
    )
    relation = "[n, m] -> { S0[i, j] -> A[i, j] : 0 <= i < n and 0 <= j < m }"
    assert equal(scop.statements[0].write.relation, relation)
    assert equal(scop.context, "[n, m] -> { : n >= 0 and m >= 0 }")


def test_a_statement_that_ends_in_a_macro_of_macros_keeps_its_end() -> None:
    source = """
#define PICK(a, b) b
#define N PICK(3, 100)
#define M N
void f(double a[100], double b[100]) {
#pragma scop
  for (int i = 0; i < M; i++) {
    a[i] = b[i] / N;
    b[i] = M;
    a[i] /= (double)N;
  }
#pragma endscop
}
"""
    (scop,) = parse_file(source).scops
    assert [s.text for s in scop.statements] == [
        "a[i] = b[i] / N;",
        "b[i] = M;",
        "a[i] /= (double)N;",
    ]
    for statement in scop.statements:
        line = source.splitlines()[statement.span.line - 1]
        span = line[statement.span.column - 1 : statement.span.end_column - 1]
        assert span == statement.text.rstrip(";")


# -- Arrays of one dimension whose rows have a length of their own: ``A[i + j * lda]``.


def demanded(scop: Scop) -> str:
    """Return what launchers demand of the sizes."""
    return " and ".join(str(one.condition) for one in assumptions_of(scop, {}, sizes=None))


def test_a_leading_dimension_is_taken_for_long_enough() -> None:
    body = "for (i = 0; i < n; i++) for (j = 0; j < m; j++) p[i + j * lda] = 0;"
    scop = region(body, before="int lda;\n")
    assert scop.array("p").n_dims == 2
    assert "lda" in demanded(scop)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("for (j = 0; j <= m; j++) p[i * m + j] = 0;", id="never"),
        pytest.param("for (j = 0; j < 2 * m; j++) p[i * m + j] = 0;", id="small sizes only"),
        pytest.param("for (j = 0; j < m; j++) p[i * lda + j] = p[i * ldb + j];", id="two"),
    ],
)
def test_rows_that_overlap_are_refused(body: str) -> None:
    found = refused("for (i = 0; i < n; i++) " + body, before="int lda, ldb;\n")
    assert {one.code for one in found} == {"EATSS-F036"}


# -- Deep, long and wide input ends within seconds, with a region or a finding.


LIMIT_S = 60.0
"""Processor time: that of a busy machine's other work does not count."""


def wrapped(body: str, before: str = "") -> str:
    head = "void f(int n, int m, double *A, double *B, double s) {\n#pragma scop\n"
    return f"{before}{head}{body}\n#pragma endscop\n}}\n"


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < LIMIT_S


def test_absurd_nesting_is_a_finding() -> None:
    others = "".join(f"else if (n == {k}) A[0] = 1;" for k in range(1, 800))
    with refusing("EATSS-F009"):
        parse_file(wrapped(f"if (n == 0) A[0] = 1;{others}"))
