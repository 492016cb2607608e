"""Expressions: what is allowed, where a mistake stands, and that values are those of Python."""

from __future__ import annotations

import math
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.tune.expressions import (
    FUNCTIONS,
    LARGEST,
    column_of,
    evaluate,
    parse_expression,
    which_hold,
)
from tests.refusals import refusing

Row = dict[str, Any]
Texts = st.SearchStrategy[str]

LARGE = [LARGEST, LARGEST - 1, 1 << 30, -(1 << 27), 94906266]
LEAF = st.one_of(
    st.sampled_from(["x", "y", "flag", "k0.z"]),
    st.integers(-9, 99).map(repr),
    st.sampled_from(LARGE).map(repr),
    st.sampled_from(["0.5", "0.1", "-2.75", "1e-3", "1e300", "3.0"]),
)
FORMS = (
    *(
        f"({{}} {symbol} {{}})"
        for symbol in ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!="]
    ),
    *("({} and {})", "({} or {})", "(not {})", "(-{})", "({} if {} else {})", "({} < {} != {})"),
    *("min({}, {}, {})", "max({}, {})", "ceil({})", "floor({})", "abs({})", "log2({})"),
    *("gcd({}, {})", "lcm({}, {})", "ceildiv({}, {})", "divides({}, {})"),
    *("({} in [{}, {}])", "({} not in ({},))", "({} ** 2)", "({} ** 5)"),
)


def grown(parts: Texts) -> Texts:
    """Return expressions with some others in them."""
    return st.sampled_from(FORMS).flatmap(
        lambda form: st.tuples(*repeat(parts, form.count("{}"))).map(lambda own: form.format(*own))
    )


def of_python(text: str, row: Row) -> Any:
    """Return what Python computes, ``None`` where that is nothing a space can hold."""
    try:
        found = eval(text.replace("k0.z", "z"), dict(FUNCTIONS), dict(row) | {"z": row["k0.z"]})
    except (ArithmeticError, TypeError, ValueError):
        return None
    is_held = abs(found) <= LARGEST if isinstance(found, int) else math.isfinite(abs(found))
    return found if is_held and not isinstance(found, complex) else None


ROWS = st.lists(
    st.fixed_dictionaries(
        {"x": st.integers(-5, 70), "y": st.integers(0, 4), "flag": st.booleans()}
        | {"k0.z": st.sampled_from([0.5, 1.0, -3.0])}
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=400, deadline=None)
@given(text=st.recursive(LEAF, grown, max_leaves=8), rows=ROWS)
def test_columns_and_single_values_are_those_of_python(text: str, rows: list[Row]) -> None:
    expression = parse_expression(text)
    wanted = [of_python(text, row) for row in rows]
    for row, value in zip(rows, wanted, strict=True):
        if value is None:
            with refusing("EATSS-S011"):
                evaluate(expression, row)
        else:
            assert evaluate(expression, row) == value
    columns = {name: column_of([row[name] for row in rows]) for name in rows[0]}
    if None in wanted:
        with pytest.raises(InputError):
            which_hold(expression, columns, len(rows))
    else:
        assert which_hold(expression, columns, len(rows)).tolist() == [*map(bool, wanted)]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("dim_m * * 2", "EATSS-S007", 9),
        ("(dim_m", "EATSS-S007", 1),
        ("__import__('os').system('true')", "EATSS-S007", 1),
        ("(lambda: 1)()", "EATSS-S007", 1),
        ("[x for x in [1]]", "EATSS-S007", 1),
        ("1 + dim_m[0]", "EATSS-S007", 5),
        ("f'{dim_m}'", "EATSS-S007", 1),
        ("dim_m | 1", "EATSS-S007", 1),
        ("~dim_m", "EATSS-S007", 1),
        ("(1).real", "EATSS-S007", 1),
        ("2 * mni(1, 2)", "EATSS-S007", 5),
        ("min(*dim_m, 2)", "EATSS-S007", 5),
        ("max(key=dim_m)", "EATSS-S007", 1),
        ("[1] * dim_m", "EATSS-S007", 1),
        ("dim_m in 'abc'", "EATSS-S007", 10),
        ("None", "EATSS-S007", 1),
        ("1 + 9007199254740993", "EATSS-S011", 1),
        ("10 ** 10 ** 10 > dim_m", "EATSS-S011", 1),
        ("9007199254740992 ** 2", "EATSS-S011", 1),
        ("min(1)", "EATSS-S011", 1),
        ("(-dim_m) ** 0.5", "EATSS-S011", 1),
        ("   'a' + dim_m", "EATSS-S011", 1),
        ("dim_m < 'a'", "EATSS-S011", 1),
        ("1 + dim_m // (dim_m - 8)", "EATSS-S011", 1),
        ("'a' * 1000000000000000", "EATSS-S011", 1),
        ("-" * 900 + "1", "EATSS-S007", 1),
        ("+" * 5000 + "1", "EATSS-S007", 1),
        ("", "EATSS-S007", 1),
    ],
)
def test_a_mistake_is_told_with_the_part_it_is_in(text: str, code: str, column: int) -> None:
    with refusing(code) as raised:
        evaluate(parse_expression(text), {"dim_m": 8})
    assert f", column {column})" in str(raised.value)


def test_a_condition_may_be_a_number_in_some_rows() -> None:
    columns = {"a": column_of([0, 2, 4])}
    found = which_hold(parse_expression("a != 0 and 6 % a"), columns, 3)
    assert found.tolist() == [False, False, True]
    with refusing("EATSS-S011", "a text is no condition"):
        which_hold(parse_expression("a != 0 and 'b'"), columns, 3)


def test_a_division_that_a_condition_guards_is_none_by_zero() -> None:
    columns = {"a": column_of([0, 2, 3])}
    guarded = parse_expression("a != 0 and 6 % a == 0")
    assert which_hold(guarded, columns, 3).tolist() == [False, True, True]
    with refusing("EATSS-S011", "division by zero at a = 0"):
        which_hold(parse_expression("6 % a == 0"), columns, 3)


def test_texts_and_values_of_several_kinds_are_compared() -> None:
    columns = {
        "layout": column_of(["row", "column"]),
        "split": column_of(["auto", 0.5]),
        "on": column_of([True, False]),
    }
    for text, wanted in (
        ("layout == 'row'", [True, False]),
        ("layout != 'row' or on", [True, True]),
        ("split == 'auto'", [True, False]),
        ("split in ['auto', 0.5]", [True, True]),
        ("('a' if on else layout) == 'a'", [True, False]),
    ):
        assert which_hold(parse_expression(text), columns, 2).tolist() == wanted
