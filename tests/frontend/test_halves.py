"""Halves in C: each operation is one of floats, rounded to a half."""

from __future__ import annotations

import pytest

from eatss.base.diagnostics import InputError
from eatss.frontend import parse_source
from eatss.polyhedral.expression import (
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
)

HALF, FLOAT = ElementType.HALF, ElementType.FLOAT
HEAD = (
    "void f(int n, _Float16 a[100], _Float16 b[100], float x[100], double d[100], int q[100])\n"
    "{\n#pragma scop\nfor (int i = 0; i < n; i++) "
)
TAIL = "\n#pragma endscop\n}\n"


def text(value: Expression) -> str:
    """Return a value as C with all of its conversions, ``r1`` for the first access behind 0."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, Read):
        return f"r{value.access}"
    if isinstance(value, Cast):
        names = {HALF: "h", FLOAT: "f", ElementType.DOUBLE: "d", ElementType.INT32: "i"}
        return f"{names[value.element_type]}({text(value.operand)})"
    if isinstance(value, Unary):
        return f"{value.operator}{text(value.operand)}"
    if isinstance(value, Select):
        return f"{text(value.condition)} ? {text(value.if_true)} : {text(value.if_false)}"
    if isinstance(value, Binary):
        return f"({text(value.left)} {value.operator} {text(value.right)})"
    return f"{value.function}({', '.join(map(text, value.arguments))})"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("a[i] = b[i];", "r1"),
        ("a[i] = a[i] * b[i] + a[i];", "h((f(h((f(r1) * f(r2)))) + f(r3)))"),
        ("a[i] = -b[i];", "h(-f(r1))"),
        ("x[i] = a[i] * b[i];", "f(h((f(r1) * f(r2))))"),
        ("x[i] += (float) a[i] * b[i];", "(r1 + (f(r2) * f(r3)))"),
        ("a[i] += b[i];", "h((f(r1) + f(r2)))"),
        ("a[i] += x[i];", "h((f(r1) + r2))"),
        ("a[i] *= d[i];", "h((d(r1) * r2))"),
        ("a[i]++;", "h((f(r1) + 1.0f))"),
        ("a[i] = b[i] / 2;", "h((f(r1) / 2.0f))"),
        ("a[i] = b[i] + 0.5f16;", "h((f(r1) + 0.5f))"),
        ("a[i] = b[i] + (_Float16) 0.1f;", "h((f(r1) + f(h(0.1f))))"),
        ("a[i] = d[i];", "h(r1)"),
        ("a[i] = a[i] < b[i] ? a[i] : b[i];", "(f(r1) < f(r2)) ? r3 : r4"),
        ("q[i] = a[i];", "i(r1)"),
        ("q[i] += a[i];", "i(h((f(h(r1)) + f(r2))))"),
        ("q[i] += x[i];", "i((f(r1) + r2))"),
    ],
)
def test_an_operation_is_rounded_once(statement: str, value: str) -> None:
    (found,) = parse_source(HEAD + statement + TAIL).scops[0].statements
    assert text(found.value) == value


def test_elements_are_of_two_bytes() -> None:
    scop = parse_source(HEAD + "a[i] = b[i];" + TAIL).scops[0]
    assert scop.array("a").element_type is HALF
    assert HALF.size_bytes == 2
    assert HALF.is_floating


@pytest.mark.parametrize("name", ["__fp16", "__bf16", "long double"])
def test_other_narrow_and_wide_types_are_refused(name: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_source(HEAD.replace("_Float16 a", f"{name} a") + "a[i] = b[i];" + TAIL)
    (finding, *_) = raised.value.diagnostics
    assert finding.code == "EATSS-F040"
    assert finding.hint == "use float, double, _Float16 or an integer type"


def test_long_chains_of_halves_are_refused() -> None:
    with pytest.raises(InputError) as raised:
        parse_source(HEAD + "a[i] = b[i]" + " + b[i]" * 200 + ";" + TAIL)
    assert raised.value.diagnostics[0].message == "expression is nested too deeply"
