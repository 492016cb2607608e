"""Calls of functions of the file that are one return are read as the value that they return."""

from __future__ import annotations

import pytest

from eatss.polyhedral.expression import Binary, Cast, ElementType, Read
from tests.frontend.reading import refused, region


def test_a_call_is_the_value_that_its_function_returns() -> None:
    before = "static inline double sq(double x) { return x * x; }\n"
    value = region("for (i = 0; i < n; i++) A[i] = sq(p[i]);", before=before).statements[0].value
    assert isinstance(value, Binary)
    assert value.operator == "*"
    assert isinstance(value.left, Read)
    assert isinstance(value.right, Read)


def test_parameters_and_results_are_converted_as_c_converts_them() -> None:
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


def test_an_index_that_a_function_computes_is_affine() -> None:
    before = "int at(int i, int j, int n) { return i * n + j; }\n"
    scop = region(
        "for (i = 0; i < n; i++) for (j = 0; j < n; j++) p[at(j, i, n)] = B[0][i];", before=before
    )
    write = scop.statements[0].write
    assert scop.array("p").n_dims == 2
    assert "p[j, i]" in str(write.relation) or "o0 = j" in str(write.relation)
    assert write.text == "p[at(j, i, n)]"


@pytest.mark.parametrize(
    ("before", "body"),
    [
        pytest.param("double next(double x) { return x++; }", "A[0] = next(p[0]);", id="an effect"),
        pytest.param(
            "double two(double x) { double y = x; y *= 2; return y; }", "A[0] = two(s);", id="more"
        ),
        pytest.param(
            "double s; double own(void) { return s; }", "A[0] = own();", id="a hidden variable"
        ),
        pytest.param("int zero(int x) { return 0; }", "A[0] = zero(i++);", id="effect of argument"),
        pytest.param(
            "int zero(int x) { return 0; } int rand(void);", "A[0] = zero(rand());", id="lost"
        ),
        pytest.param("double of(double *m) { return m[1]; }", "A[0] = of(p);", id="an array"),
        pytest.param("void set(void) {}", "set();", id="a statement"),
    ],
)
def test_what_is_no_single_expression_is_refused(before: str, body: str) -> None:
    first = refused(body, before=before + "\n")[0]
    assert first.code == "EATSS-F018"
    assert "stands for no single expression" in first.message


def test_calls_that_grow_without_end_are_refused() -> None:
    before = "double sum(int n) { return n ? n + sum(n - 1) : 0; }\n"
    assert refused("A[0] = sum(3);", before=before)[0].code == "EATSS-F009"
    before = "double more(double x) { return more(x) + 1; }\n"
    assert refused("A[0] = more(s);", before=before)[0].code == "EATSS-F009"
    before = "double sq(double x) { return x * x; }\n"
    calls = "sq(" * 30 + "s" + ")" * 30
    assert refused(f"A[0] = {calls};", before=before)[0].code == "EATSS-F009"
