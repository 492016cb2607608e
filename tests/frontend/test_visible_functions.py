"""Calls of functions of the file that are one return are read as the value that they return."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eatss.base.diagnostics import Diagnostic
from eatss.polyhedral.expression import Binary, Cast, ElementType, Read, Select
from eatss.polyhedral.scop import Scop

Region = Callable[..., Scop]
Refused = Callable[..., tuple[Diagnostic, ...]]


def test_a_call_is_the_value_that_its_function_returns(region: Region) -> None:
    before = "static inline double sq(double x) { return x * x; }\n"
    value = region("for (i = 0; i < n; i++) A[i] = sq(p[i]);", before=before).statements[0].value
    assert isinstance(value, Binary)
    assert value.operator == "*"
    assert isinstance(value.left, Read)
    assert isinstance(value.right, Read)


def test_parameters_and_results_are_converted_as_c_converts_them(region: Region) -> None:
    before = (
        "static double narrow(float x) { return x; }\nfloat third(double x) { return x / 3; }\n"
    )
    first, second = region("A[0] = narrow(p[0]); A[1] = third(p[1]);", before=before).statements
    assert isinstance(first.value, Cast)
    assert first.value.element_type is ElementType.DOUBLE
    inner = first.value.operand
    assert isinstance(inner, Cast)
    assert inner.element_type is ElementType.FLOAT
    assert isinstance(second.value, Cast)
    assert isinstance(second.value.operand, Cast)
    assert second.value.operand.element_type is ElementType.FLOAT


def test_calls_in_calls_and_two_returns_are_values(region: Region) -> None:
    before = (
        "double sq(double x) { return x * x; }\n"
        "double big(double x, double y) { if (x > y) return sq(x); else return sq(y); }\n"
    )
    scop = region("for (i = 0; i < n; i++) A[i] = big(sq(p[i]), s);", before=before)
    assert isinstance(scop.statements[0].value, Select)


def test_an_index_that_a_function_computes_is_affine(region: Region) -> None:
    before = "int at(int i, int j, int n) { return i * n + j; }\n"
    scop = region(
        "for (i = 0; i < n; i++) for (j = 0; j < n; j++) p[at(j, i, n)] = B[0][i];", before=before
    )
    write = scop.statements[0].write
    assert scop.array("p").n_dims == 2
    assert "p[j, i]" in str(write.relation) or "o0 = j" in str(write.relation)
    assert write.text == "p[at(j, i, n)]"


def test_an_array_can_be_an_argument(region: Region) -> None:
    before = "double of(double m[100][100], int i, int j) { return m[i][j]; }\n"
    scop = region("for (i = 0; i < n; i++) A[i] = of(B, i, 0);", before=before)
    assert [access.text for access in scop.statements[0].accesses] == ["A[i]", "B[i][0]"]


def test_what_a_function_declares_is_put_in_its_place(region: Region) -> None:
    before = (
        "double mid(double *x, int at) {\n"
        "  double a = x[at - 1], b = a + x[1];\n  if (at > 3) return b;\n  return b / 2;\n}\n"
    )
    scop = region("for (i = 4; i < n; i++) A[i] = mid(&p[i + 1], 1);", before=before)
    _, first, second, *_ = scop.statements[0].accesses
    assert "[i] -> p[1 + i]" in str(first.relation).replace("S0", "")
    assert second.text == "p[i + 1 + 1]"


def test_a_call_without_effect_is_no_statement(region: Region) -> None:
    scop = region("nothing(); A[0] = 1;", before="int nothing(void) { return 0; }\n")
    assert len(scop.statements) == 1


def test_a_call_that_is_a_statement_stands_for_those_of_its_function(region: Region) -> None:
    before = (
        "void row(double *x, int from, int n) {\n"
        "  for (int i = from; i < n; i++) if (x[i] > 0) { x[i] = 1; x[0] += 1; }\n  return;\n}\n"
    )
    scop = region("for (i = 0; i < m; i++) row(p, i + 1, n); row(p, 1, m);", before=before)
    kept = [s.write.array for s in scop.statements if s.write.array.startswith("condition")]
    assert kept == ["condition", "condition_1"]
    assert [len(s.loops) for s in scop.statements] == [2, 2, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("before", "body"),
    [
        pytest.param("double next(double x) { return x++; }", "A[0] = next(p[0]);", id="an effect"),
        pytest.param(
            "double two(double x) { double y = x; y *= 2; return y; }", "A[0] = two(s);", id="more"
        ),
        pytest.param(
            "double sum(int n) { return n ? n + sum(n - 1) : 0; }", "A[0] = sum(3);", id="recursion"
        ),
        pytest.param(
            "double s; double own(void) { return s; }", "A[0] = own();", id="a hidden variable"
        ),
        pytest.param(
            "double rows(double m[][50]) { return m[1][0]; }", "A[0] = rows(B);", id="other rows"
        ),
        pytest.param("int zero(int x) { return 0; }", "A[0] = zero(i++);", id="effect of argument"),
        pytest.param(
            "double g(void); int zero(int x) { double y = g(); return 0; }", "zero(1);", id="unused"
        ),
        pytest.param(
            "void set(double *x, int n, double v) { for (int i = 0; i < n; i++) x[i] += v; }",
            "set(p, n, p[0]);",
            id="an argument that changes",
        ),
        pytest.param(
            "void half(double *x, int n) { n = n / 2; x[n] = 0; }", "half(p, n);", id="own argument"
        ),
        pytest.param("int zero(int x) { return 0; } int rand(void);", "zero(rand());", id="lost"),
    ],
)
def test_what_is_no_single_expression_is_refused(refused: Refused, before: str, body: str) -> None:
    first = refused(body, before=before + "\n")[0]
    assert first.code == "EATSS-F038"
    assert "stands for no single expression" in first.message


def test_calls_that_grow_without_end_are_refused(refused: Refused) -> None:
    before = "double sq(double x) { return x * x; }\n"
    calls = "sq(" * 30 + "s" + ")" * 30
    assert refused(f"A[0] = {calls};", before=before)[0].code == "EATSS-F009"
