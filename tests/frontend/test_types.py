"""Types of parameters, values, members and halves."""

from __future__ import annotations

import islpy as isl
import pytest

from eatss.base.diagnostics import InputError
from eatss.frontend.parse import parse_file
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
from tests.frontend.reading import equal, only
from tests.refusals import refusing

# -- Types of scalars: `bool`, types narrower than `int`, unsigned numbers that do not wrap.


def function(arguments: str, body: str, before: str = "") -> str:
    return f"{before}void f({arguments}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"


def test_a_bool_is_a_parameter_of_two_values() -> None:
    loop = "for (int i = 0; i < n; i++) { if (flag) a[i] = 1; else a[i] = 2; }"
    scop = only(function("int n, bool flag, double a[n]", loop, before="#include <stdbool.h>\n"))
    assert equal(scop.context.params(), "[n, flag] -> { : 0 <= flag <= 1 }")
    assert equal(scop.statements[0].domain, "[n, flag] -> { S0[i] : 0 <= i < n and flag = 1 }")
    assert scop.parameter_declarations[1].element_type is ElementType.BOOL


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("char", -128, 127), ("unsigned char", 0, 255), ("int16_t", -32768, 32767)],
)
def test_a_parameter_of_a_narrow_type_has_its_values(kind: str, least: int, most: int) -> None:
    loop = "for (int i = 0; i < n; i++) { if (c == 'N') a[i] = 1; else a[i] = 2; }"
    text = function(f"int n, {kind} c, double a[n]", loop, before="#include <stdint.h>\n")
    assert equal(only(text).context.params(), f"[n, c] -> {{ : {least} <= c <= {most} }}")


@pytest.mark.parametrize(
    ("loop", "domain", "condition"),
    [
        ("unsigned i = 1; i + 1 < n; i++", "0 < i < n - 1", None),
        ("unsigned i = 0; n - i > 2; i += 2", "0 <= i < n - 2 and i mod 2 = 0", "n >= 0"),
        ("unsigned i = n - 1; i > 0; i--", "0 < i < n", "n >= 1"),
        ("unsigned i = k; i < n - k; i++", "k <= i < n - k", "n >= k"),
        ("unsigned i = 0; i < (unsigned) m; i++", "0 <= i < m", "m >= 0"),
    ],
)
def test_unsigned_numbers_do_not_wrap_at_the_sizes_that_are_stated(
    loop: str, domain: str, condition: str | None
) -> None:
    arguments = "unsigned n, unsigned k, int m, double *a"
    scop = only(function(arguments, f"for ({loop}) a[i] = 0;"))
    names = "[n, k, m]"
    facts = scop.context.params()
    (statement,) = scop.statements
    expected = isl.Set.read_from_str(
        facts.get_ctx(), f"{names} -> {{ S0[i] : {domain} }}"
    ).intersect_params(facts)
    assert statement.domain.intersect_params(facts).is_equal(expected)
    stated = isl.Set.read_from_str(facts.get_ctx(), f"{names} -> {{ : n >= 0 and k >= 0 }}")
    for one in scop.conditions:
        stated = stated.intersect(one.sizes)
    wanted = f"{names} -> {{ : n >= 0 and k >= 0 and {condition or 'n >= 0'} }}"
    assert equal(stated, wanted)


def test_what_wraps_at_usual_sizes_is_refused() -> None:
    for body in (
        "for (unsigned i = 0; i < n; i++) a[i - 1] = 0;",
        "for (unsigned i = 0; i < n; i++) for (unsigned j = 0; j < n; j++) a[i - j] = 0;",
    ):
        with refusing("EATSS-F036"):
            parse_file(function("unsigned n, double *a", body))


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("float _Complex a[9]", "type '_Complex float' of 'a' is outside the subset"),
        ("__bf16 a[9]", "type '__bf16' of 'a' is outside the subset"),
        ("long double a[9]", "type 'long double' of 'a' is outside the subset"),
        ("struct s a[9]", "type 'struct s' of 'a' is outside the subset"),
    ],
)
def test_a_type_that_is_refused_is_called_what_it_is(declared: str, said: str) -> None:
    text = function(
        f"int n, {declared}", "for (int i = 0; i < 9; i++) a[i] = a[i];",
        before="struct s { int x; };\n",
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        parse_file(text)
    found = [(one.code, one.message) for one in caught.value.diagnostics]
    assert ("EATSS-F040", said) in found


# -- Halves in C: each operation is one of floats, rounded to a half.


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
        ("x[i] = a[i] * b[i];", "f(h((f(r1) * f(r2))))"),
        ("x[i] += (float) a[i] * b[i];", "(r1 + (f(r2) * f(r3)))"),
        ("a[i] += b[i];", "h((f(r1) + f(r2)))"),
        ("a[i] += x[i];", "h((f(r1) + r2))"),
        ("a[i] *= d[i];", "h((d(r1) * r2))"),
        ("a[i]++;", "h((f(r1) + 1.0f))"),
        ("a[i] = b[i] + 0.5f16;", "h((f(r1) + 0.5f))"),
        ("a[i] = b[i] + (_Float16) 0.1f;", "h((f(r1) + f(h(0.1f))))"),
        ("a[i] = a[i] < b[i] ? a[i] : b[i];", "(f(r1) < f(r2)) ? r3 : r4"),
        ("q[i] += a[i];", "i(h((f(h(r1)) + f(r2))))"),
    ],
)
def test_an_operation_is_rounded_once(statement: str, value: str) -> None:
    (found,) = parse_file(HEAD + statement + TAIL).scops[0].statements
    assert text(found.value) == value
