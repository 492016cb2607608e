"""Pairs of sums in one pass: the same values, exactly, and mutants of parts are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.polyhedral.chunked_pairs import _Sums, pairs, with_chunked_pairs
from eatss.polyhedral.expression import (
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    preorder,
)
from eatss.polyhedral.parts import New
from eatss.polyhedral.scop import Access, Scop, Statement
from tests.examples import examples
from tests.polyhedral.executing import Element, exact_values, region_of


def region(body: str, kind: str = "float") -> Scop:
    arrays = ("m[3]", "v[3]", "X[3][2][14]", "Y[3][2][14]", "p[3]")
    arguments = ", ".join(f"{kind} {one}" for one in arrays)
    return region_of(body, arguments, "#include <math.h>\n")


def values_of(scop: Scop) -> dict[Element, Any]:
    """Return what a region leaves; exponentials are powers of 2, exact."""
    power = Fraction(2).__pow__
    calls = {"exp": power, "expf": power}
    return exact_values(scop, lambda one: Fraction(2 * (hash(one) % 11) - 11), calls)


MEAN = """for (int i = 0; i < 3; i++) {{
  m[i] = 0; for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) m[i] += X[i][k][j];
  m[i] = m[i] / 42; v[i] = 0;
  for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) v[i] += {term};
  v[i] /= 7; }}"""
EXPONENTIAL = """for (int i = 0; i < 3; i++) {{
  m[i] = X[i][0][0]; v[i] = 0;
  for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) {first};
  for (int k = 0; k < 2; k++) for (int j = {low}; j < {high}; j++) v[i] += {term}; }}"""
OTHER_NAMES = """for (int i = 0; i < 3; i++) {{ v[i] = 0; m[i] = 0; }}
for (int k = 0; k < 2; k++) for (int i = 0; i < 3; i++) for (int j = {low}; j < {high}; j++)
  m[i] += X[i][k][j] * Y[i][k][j];
for (int q = 0; q < 2; q++) for (int c = 0; c < 3; c++) for (int r = {low}; r < {high}; r++)
  v[c] += {term};"""
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
    (
        OTHER_NAMES,
        "",
        "(X[c][q][r] * Y[c][q][r] - m[c] / 28) * (X[c][q][r] * Y[c][q][r] - p[c])",
    ),
    (COLUMNS, "", "(X[j][0][i] - m[j]) * (X[j][0][i] - m[j])"),
)
BOUNDS = (("0", "14"), ("2", "13"), ("i", "14"), ("0", "i + 8"), ("4", "6"))


def pair(which: int, bounds: int) -> Scop:
    text, first, term = PAIRS[which]
    low, high = BOUNDS[bounds]
    if text in (OTHER_NAMES, COLUMNS) and "i" in low + high:
        low, high = low.replace("i", "1"), high.replace("i", "3")
    return region(text.format(low=low, high=high, first=first, term=term))


@given(
    st.integers(0, len(PAIRS) - 1),
    st.integers(0, len(BOUNDS) - 1),
    st.sampled_from([0, 1, 2, 3, 5, 7, 14, 20]),
)
@settings(max_examples=examples(12), deadline=None)
def test_one_pass_has_the_values_of_two(which: int, bounds: int, length: int) -> None:
    scop = pair(which, bounds)
    (found,) = pairs(scop)
    after = with_chunked_pairs(scop, {found.statement.name: length})
    assert after is not None
    assert values_of(after) == values_of(scop)


def test_parts_of_double_functions_keep_double_precision() -> None:
    value = "erf(X[i][0][j])"
    body = _two("", f"({value} - m[i]) * ({value} - m[i])").replace("X[i][0][j]", value, 1)
    scop = region(body, "double")
    (found,) = pairs(scop)
    after = with_chunked_pairs(scop, {found.statement.name: 4})
    assert after is not None
    made = (node for one in after.statements for node in preorder(one.value))
    assert not [n for n in made if isinstance(n, Cast) and n.element_type is ElementType.FLOAT]


def test_the_same_array_in_another_state_is_no_pair() -> None:
    between = "for (int i = 0; i < 3; i++) X[i][0][3] = 1;"
    scop = region(_two(between))
    (found,) = pairs(scop)
    assert with_chunked_pairs(scop, {found.statement.name: 4}) is None


@pytest.mark.parametrize(
    "term",
    [
        "(X[i][0][j] - m[i]) * X[i][0][j]",  # no two distances
        "(X[i][0][j] - m[i]) * (X[i][1][j] - m[i])",  # of terms of which nothing was summed
        "(X[i][0][j] - m[i]) * (X[i][0][j] - m[i]) * X[i][0][j]",
        "sqrtf(X[i][0][j] - m[i])",
        "expf(X[i][0][j] - m[i])",  # may be too large without a maximum
    ],
)
def test_other_sums_are_no_pairs(term: str) -> None:
    assert not [*pairs(region(_two("", term)))]


def _two(between: str, term: str = "(X[i][0][j] - m[i]) * (X[i][0][j] - m[i])") -> str:
    """Return a sum of rows of 14, and another one that needs it."""
    loops = "for (int i = 0; i < 3; i++) for (int j = 0; j < 14; j++)"
    return f"{loops} m[i] += X[i][0][j];\n{between}\n{loops} v[i] += {term};"


def test_a_partial_sum_that_is_read_forbids_parts() -> None:
    loop = "for (int j = 0; j < 14; j++)"
    first = f"for (int i = 0; i < 3; i++) {loop} {{ m[i] += X[i][0][j]; Y[i][0][j] = m[i]; }}"
    term = "(X[i][0][j] - m[i]) * (X[i][0][j] - m[i])"
    scop = region(f"{first}\nfor (int i = 0; i < 3; i++) {loop} v[i] += {term};")
    (found,) = pairs(scop)
    assert with_chunked_pairs(scop, {found.statement.name: 4}) is None


def _without_an_element(self: _Sums, own: Statement, name: str) -> isl.Map:
    loop = own.loops[self.at]
    return self.map(own, name, loop, f"1 <= {loop} < 4")


def _with_elements_twice(self: _Sums, own: Statement, name: str) -> isl.Map:
    loop = own.loops[self.at]
    return self.map(own, name, loop, f"0 <= {loop} <= 4")


def _begins_late(self: _Sums, own: Statement, name: str) -> isl.Map:
    later = isl.Map.read_from_str(
        own.domain.get_ctx(), f"{{ {own.name}[i, j] -> {own.name}[i, j + 1] }}"
    )
    return begins(self, own, name).apply_range(later)


def _of_the_next_part(self: _Sums, number: int, new: New) -> Access:
    access, array = element(self, number, new), self.arrays[number]
    after = isl.Map.read_from_str(
        access.relation.get_ctx(), f"{{ {array}[c, i] -> {array}[c + 1, i] }}"
    )
    moves = new.maps.domain().get_tuple_name() == new.own.name
    return replace(access, relation=access.relation.apply_range(after)) if moves else access


def _in_the_other_order(self: _Sums, new: New, place: int, _: int = 0) -> isl.Map:
    return time(self, new, 3 - place)


def _behind_their_use(self: _Sums, new: New, place: int, _: int = 0) -> isl.Map:
    return time(self, new, place + 40)


begins, element, time = _Sums.begins, _Sums.element, _Sums.time


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ((_Sums, "steps"), _without_an_element),
        ((_Sums, "steps"), _with_elements_twice),
        ((_Sums, "begins"), _begins_late),
        ((_Sums, "element"), _of_the_next_part),
        ((_Sums, "time"), _in_the_other_order),
        ((_Sums, "time"), _behind_their_use),
    ],
)
def test_wrong_parts_are_found(
    what: tuple[type, str], wrong: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scop = region(_two(""))
    (found,) = pairs(scop)
    assert with_chunked_pairs(scop, {found.statement.name: 4}) is not None
    monkeypatch.setattr(*what, wrong)
    assert with_chunked_pairs(scop, {found.statement.name: 4}) is None


def _one_more(self: _Sums, own: Statement, domain: isl.Set, kind: ElementType) -> Expression:
    one = Literal(text="1", element_type=kind)
    return Binary(operator="+", left=count(self, own, domain, kind), right=one)


def _without_means(self: _Sums, new: New, part: Expression, wide: ElementType) -> Expression:
    scaled(self, new, part, wide)
    return part


def _from_the_other_side(self: _Sums, new: New, *, shared: bool) -> dict[int, Expression]:
    return distances(self, new, shared=not shared)


count, scaled, distances = _Sums.count, _Sums._scaled, _Sums.distances


@pytest.mark.parametrize(
    ("what", "wrong", "which"),
    [
        ((_Sums, "count"), _one_more, 0),
        ((_Sums, "_scaled"), _without_means, 0),
        ((_Sums, "_scaled"), _without_means, 2),
        ((_Sums, "distances"), _from_the_other_side, 0),
    ],
)
def test_wrong_weights_have_other_values(
    what: tuple[type, str],
    wrong: Callable[..., object],
    which: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scop = pair(which, 0)
    (found,) = pairs(scop)
    monkeypatch.setattr(*what, wrong)
    after = with_chunked_pairs(scop, {found.statement.name: 4})
    assert after is None or values_of(after) != values_of(scop)
