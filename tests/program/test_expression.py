"""Printed as C, an integer expression has the value that Python gives it."""

from __future__ import annotations

import operator as op
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    c_text,
    evaluate,
)

FUNCTIONS = """
#include <stdio.h>
static long eatss_floordiv(long a, long b) { return a / b - (a % b < 0 ? 1 : 0); }
static long eatss_mod(long a, long b) { return a % b + (a % b < 0 ? b : 0); }
static long eatss_min(long a, long b) { return a < b ? a : b; }
static long eatss_max(long a, long b) { return a > b ? a : b; }
"""
NAMES = ("N", "m", "t0")
LEAVES = st.one_of(st.integers(-50, 50).map(Constant), st.sampled_from(NAMES).map(Name))
SEVERAL = (Operator.ADD, Operator.SUB, Operator.MIN, Operator.MAX, Operator.AND, Operator.OR)
PAIRS = (
    Operator.MUL, Operator.EQ, Operator.LE, Operator.LT, Operator.GE, Operator.GT,
)  # fmt: skip
DIVISIONS = (Operator.FLOORDIV, Operator.MOD)
NATURAL_DIVISIONS = (Operator.QUOTIENT, Operator.REMAINDER)


def _not_negative(value: IntExpr) -> IntExpr:
    return Apply(Operator.MAX, (value, Constant(0)))


def _larger(inner: st.SearchStrategy[IntExpr]) -> st.SearchStrategy[IntExpr]:
    divisors = st.integers(1, 9).map(Constant)

    def apply(operators: tuple[Operator, ...], operands: st.SearchStrategy[tuple[IntExpr, ...]]):  # type: ignore[no-untyped-def]
        return st.builds(Apply, st.sampled_from(operators), operands)

    return st.one_of(
        apply(SEVERAL, st.lists(inner, min_size=2, max_size=4).map(tuple)),
        apply(PAIRS, st.tuples(inner, inner)),
        apply((Operator.SUB,), st.tuples(inner)),
        apply(DIVISIONS, st.tuples(inner, divisors)),
        apply(NATURAL_DIVISIONS, st.tuples(inner.map(_not_negative), divisors)),
        apply((Operator.SELECT,), st.tuples(inner, inner, inner)),
    )


EXPRESSIONS: st.SearchStrategy[IntExpr] = st.recursive(LEAVES, _larger, max_leaves=12)
VALUES = st.fixed_dictionaries({name: st.integers(-9, 40) for name in NAMES})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(expressions=st.lists(EXPRESSIONS, min_size=30, max_size=30), values=VALUES)
def test_c_text_compiled_by_gcc_has_the_value_of_evaluate(
    tmp_path: Path, expressions: list[IntExpr], values: dict[str, int]
) -> None:
    declared = "".join(f"    const long {name} = {value};\n" for name, value in values.items())
    printed = "".join(
        f'    printf("%ld\\n", (long)({c_text(expression)}));\n' for expression in expressions
    )
    source = tmp_path / "values.c"
    source.write_text(f"{FUNCTIONS}int main(void)\n{{\n{declared}{printed}    return 0;\n}}\n")
    program = tmp_path / "values"
    command = ["gcc", "-w", "-O0", "-fwrapv", "-Werror=parentheses", str(source), "-o"]
    subprocess.run([*command, str(program)], check=True, capture_output=True)
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    expected = [_wrapped(evaluate(expression, values)) for expression in expressions]
    assert [int(line) for line in done.stdout.split()] == expected


def _wrapped(value: int) -> int:
    """Return a value as a 64-bit integer keeps it; products of many factors pass it."""
    return (value + 2**63) % 2**64 - 2**63


RELATIONS = (op.lt, op.le, op.gt, op.ge)


@given(EXPRESSIONS, EXPRESSIONS, st.integers(-9, 9), st.integers(1, 9), VALUES)
def test_operators_of_python_say_what_they_say_of_numbers(
    one: IntExpr, other: IntExpr, number: int, divisor: int, values: dict[str, int]
) -> None:
    first, second = evaluate(one, values), evaluate(other, values)
    for apply in (op.add, op.sub, op.mul, *RELATIONS):
        assert evaluate(apply(one, other), values) == apply(first, second)
        assert evaluate(apply(one, number), values) == apply(first, number)
    for apply in (op.add, op.sub, op.mul):
        assert evaluate(apply(number, one), values) == apply(number, first)
    natural = _not_negative(one)
    for apply in (op.floordiv, op.mod):
        assert evaluate(apply(natural, divisor), values) == apply(max(first, 0), divisor)
