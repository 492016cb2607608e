"""Pairs of sums in one pass: the same values, exactly, and mutants of parts are found."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.frontend.parse import parse_source
from eatss.polyhedral.chunked_pairs import Parts, computes_the_same, pairs, with_chunked_pairs
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Call,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    operands,
)
from eatss.polyhedral.isl_names import points_of
from eatss.polyhedral.scop import Scop
from tests.examples import examples
from tests.polyhedral.executing import Element, instances

_BINARY: Mapping[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def region(body: str) -> Scop:
    arguments = "float m[3], float v[3], float X[3][2][14], float Y[3][2][14], float p[3]"
    text = f"#include <math.h>\nvoid f({arguments}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    (scop,) = parse_source(text).scops
    return scop


def values_of(scop: Scop) -> dict[Element, Any]:
    """Return what a region leaves in its callers' arrays; exponentials are powers of 2, exact."""
    memory: dict[Element, Any] = {}

    def first(element: Element) -> Any:
        return Fraction(2 * (hash(element) % 11) - 11)

    def value(node: Expression, touched: Mapping[int, Element], at: isl.Set) -> Any:
        if isinstance(node, Read):
            return memory.get(touched[node.access], first(touched[node.access]))
        if isinstance(node, AffineValue):
            found = isl.Map.from_pw_aff(node.value).intersect_domain(at)
            return points_of(found.range())[0][0]
        return combined(node, [value(one, touched, at) for one in operands(node)])

    for statement, at, touched in instances(scop):
        memory[touched[0]] = value(statement.value, touched, at)
    return {at: own for at, own in memory.items() if not scop.array(at[0]).is_local}


def combined(node: Expression, own: list[Any]) -> Any:
    match node:
        case Literal(text=text):
            number = eval(re.sub(r"(?<=\d)[fulL]+", "", text))
            return number if number != number or abs(number) > 1e300 else Fraction(str(number))
        case Unary():
            return -own[0]
        case Binary(operator=sign):
            return _BINARY[sign](*own)
        case Select():
            return own[1] if own[0] else own[2]
        case Call(function=name) if name.startswith("exp"):
            return Fraction(2) ** own[0]
        case Call(function=name):
            return (max if "max" in name else min)(one for one in own if one == one)
    return own[0]


MEAN = """for (int i = 0; i < 3; i++) {{
  m[i] = 0; for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) m[i] += X[i][k][j];
  m[i] = m[i] / 42; v[i] = 0;
  for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) v[i] += {term};
  v[i] /= 7; }}"""
EXPONENTIAL = """for (int i = 0; i < 3; i++) {{
  m[i] = X[i][0][0]; v[i] = 0;
  for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) {first};
  for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) v[i] += {term}; }}"""
COLUMNS = """for (int j = 0; j < 3; j++) {{ v[j] = 0; m[j] = 0; }}
for (int i = {low}; i < {high}; i++) for (int j = 0; j < 3; j++) m[j] += X[j][0][i];
for (int i = {low}; i < {high}; i++) for (int j = 0; j < 3; j++) v[j] += {term};"""
PAIRS = (
    (MEAN, "", "(X[i][k][j] - m[i]) * (X[i][k][j] - m[i])"),
    (MEAN, "", "2 * (X[i][k][j] - m[i]) * (m[i] - X[i][k][j]) / p[i]"),
    (EXPONENTIAL, "m[i] = fmaxf(m[i], X[i][k][j])", "expf(X[i][k][j] - m[i])"),
    (
        EXPONENTIAL,
        "m[i] = X[i][k][j] > m[i] ? X[i][k][j] : m[i]",
        "expf(X[i][k][j] - m[i]) * Y[i][k][j]",
    ),
    (EXPONENTIAL, "m[i] = fminf(m[i], X[i][k][j])", "3 * expf(m[i] - X[i][k][j])"),
    (
        EXPONENTIAL,
        "m[i] = fmaxf(m[i], 2 * X[i][k][j] - Y[0][k][j])",
        "expf(2 * X[i][k][j] - Y[0][k][j] - m[i]) / p[i]",
    ),
    (COLUMNS, "", "(X[j][0][i] - m[j]) * (X[j][0][i] - m[j])"),
)
BOUNDS = (("0", "14"), ("2", "13"), ("i", "14"), ("0", "i + 8"), ("4", "6"))


def pair(which: int, bounds: int) -> Scop:
    text, first, term = PAIRS[which]
    low, high = BOUNDS[bounds]
    if text is COLUMNS and "i" in low + high:
        low, high = low.replace("i", "1"), high.replace("i", "3")
    return region(text.format(low=low, high=high, first=first, term=term))


@given(
    st.integers(0, len(PAIRS) - 1),
    st.integers(0, len(BOUNDS) - 1),
    st.sampled_from([0, 1, 2, 3, 5, 7, 14, 20]),
)
@settings(max_examples=examples(30), deadline=None)
def test_one_pass_has_the_values_of_two(which: int, bounds: int, length: int) -> None:
    scop = pair(which, bounds)
    (found,) = pairs(scop)
    after = with_chunked_pairs(scop, {found.statement.name: length})
    assert after is not None
    assert values_of(after) == values_of(scop)
