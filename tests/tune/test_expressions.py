"""Expressions: what is allowed, where a mistake stands, and that values are those of Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.tune.expressions import (
    LARGEST,
    column_of,
    evaluate,
    evaluate_one,
    parse_expression,
)
from tests.refusals import refusing

Row = dict[str, Any]


class Refused(Exception):  # noqa: N818
    """What an expression may not compute."""


@dataclass(frozen=True)
class Grown:
    """A random expression: its text, and what it does to a row, written in plain Python."""

    text: str
    of: Callable[[Row], Any]


def _checked(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Refused
    if isinstance(value, float) and not math.isfinite(value):
        raise Refused
    return value


def _divided(symbol: str) -> Callable[[Any, Any], Any]:
    function = {"/": operator.truediv, "//": operator.floordiv, "%": operator.mod}[symbol]

    def run(a: Any, b: Any) -> Any:
        if b == 0:
            raise Refused
        return function(a, b)

    return run


_PLAIN = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _binary(symbol: str, function: Callable[[Any, Any], Any], a: Grown, b: Grown) -> Grown:
    return Grown(
        f"({a.text} {symbol} {b.text})", lambda row: _checked(function(a.of(row), b.of(row)))
    )


def _power(a: Grown, exponent: int) -> Grown:
    def of(row: Row) -> Any:
        try:
            return _checked(a.of(row) ** exponent)
        except OverflowError:
            raise Refused from None

    return Grown(f"({a.text} ** {exponent})", of)


def _logic(symbol: str, a: Grown, b: Grown) -> Grown:
    if symbol == "and":
        return Grown(f"({a.text} and {b.text})", lambda row: a.of(row) and b.of(row))
    return Grown(f"({a.text} or {b.text})", lambda row: a.of(row) or b.of(row))


def _choice(a: Grown, test: Grown, b: Grown) -> Grown:
    text = f"({a.text} if {test.text} else {b.text})"
    return Grown(text, lambda row: a.of(row) if test.of(row) else b.of(row))


def _chain(a: Grown, first: str, b: Grown, second: str, c: Grown) -> Grown:
    def of(row: Row) -> Any:
        left, middle = a.of(row), b.of(row)
        return _COMPARE[first](left, middle) and _COMPARE[second](middle, c.of(row))

    return Grown(f"({a.text} {first} {b.text} {second} {c.text})", of)


def _called(name: str, function: Callable[..., Any], *parts: Grown) -> Grown:
    def of(row: Row) -> Any:
        return _checked(function(*(part.of(row) for part in parts)))

    return Grown(f"{name}({', '.join(part.text for part in parts)})", of)


def _ceildiv(a: int, b: int) -> int:
    if b == 0:
        raise Refused
    return -(-a // b)


def _divides(a: int, b: int) -> bool:
    if a == 0:
        raise Refused
    return b % a == 0


def _log2(a: float) -> float:
    if a <= 0:
        raise Refused
    return math.log2(a)


_REFERENCE: dict[str, Any] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "log2": math.log2,
    "ceildiv": lambda a, b: -(-a // b),
    "divides": lambda a, b: b % a == 0,
}


def _leaf(value: float) -> Grown:
    return Grown(f"({value!r})", lambda row: value)


def _name(name: str) -> Grown:
    return Grown(name, lambda row: row[name])


_LARGE = st.sampled_from([LARGEST, LARGEST - 1, 1 << 30, -(1 << 27), 94906266])
_WHOLE = st.one_of(
    st.sampled_from(["x", "y"]).map(_name), st.integers(-9, 99).map(_leaf), _LARGE.map(_leaf)
)
_FLOAT = st.sampled_from([0.5, 0.1, -2.75, 1e-3, 1e300, 3.0]).map(_leaf)


def _grown(depth: int) -> tuple[st.SearchStrategy[Grown], ...]:
    """Return random whole numbers, numbers and conditions of a depth."""
    if depth == 0:
        return _WHOLE, st.one_of(_FLOAT, _WHOLE), st.just(_name("flag"))
    whole, number, condition = _grown(depth - 1)
    plain, divided = st.sampled_from(list(_PLAIN)), st.sampled_from(["//", "%"])
    compare = st.sampled_from(list(_COMPARE))
    wholes = st.one_of(
        whole,
        st.builds(lambda s, a, b: _binary(s, _PLAIN[s], a, b), plain, whole, whole),
        st.builds(lambda s, a, b: _binary(s, _divided(s), a, b), divided, whole, whole),
        st.builds(_power, whole, st.integers(0, 5)),
        st.builds(_choice, whole, condition, whole),
        st.builds(lambda a, b: _logic("and", a, b), whole, whole),
        st.builds(lambda a: _called("ceil", math.ceil, a), number),
        st.builds(lambda a: _called("floor", math.floor, a), number),
        st.builds(lambda a: _called("abs", abs, a), whole),
        st.builds(lambda a, b, c: _called("min", min, a, b, c), whole, whole, whole),
        st.builds(lambda a, b: _called("gcd", math.gcd, a, b), whole, whole),
        st.builds(lambda a, b: _called("lcm", math.lcm, a, b), whole, whole),
        st.builds(lambda a, b: _called("ceildiv", _ceildiv, a, b), whole, whole),
    )
    numbers = st.one_of(
        number,
        wholes,
        st.builds(lambda s, a, b: _binary(s, _PLAIN[s], a, b), plain, number, number),
        st.builds(
            lambda s, a, b: _binary(s, _divided(s), a, b),
            st.sampled_from(["/", "//", "%"]),
            number,
            number,
        ),
        st.builds(_power, number, st.integers(0, 5)),
        st.builds(_choice, number, condition, number),
        st.builds(lambda a, b: _called("max", max, a, b), number, number),
        st.builds(lambda a: _called("log2", _log2, a), number),
    )
    conditions = st.one_of(
        condition,
        st.builds(lambda s, a, b: _binary(s, _COMPARE[s], a, b), compare, number, number),
        st.builds(_chain, number, compare, number, compare, number),
        st.builds(lambda a: Grown(f"(not {a.text})", lambda row: not a.of(row)), number),
        st.builds(_logic, st.sampled_from(["and", "or"]), condition, condition),
        st.builds(lambda a, b: _called("divides", _divides, a, b), whole, whole),
        st.builds(
            lambda a, b, c: Grown(
                f"({a.text} in [{b.text}, {c.text}])",
                lambda row: a.of(row) in [b.of(row), c.of(row)],
            ),
            whole,
            whole,
            whole,
        ),
    )
    return wholes, numbers, conditions


@settings(max_examples=150, deadline=None)
@given(
    grown=st.one_of(*_grown(3)),
    rows=st.lists(
        st.fixed_dictionaries(
            {"x": st.integers(-5, 70), "y": st.integers(0, 4), "flag": st.booleans()}
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_columns_and_single_values_are_those_of_python(grown: Grown, rows: list[Row]) -> None:
    expression = parse_expression(grown.text)
    wanted: list[Any] = []
    for row in rows:
        try:
            wanted.append(grown.of(row))
        except Refused:
            wanted.append(Refused)
            with refusing("EATSS-S011"):
                evaluate_one(expression, row)
        else:
            assert evaluate_one(expression, row) == wanted[-1]
            assert wanted[-1] == eval(grown.text, dict(_REFERENCE), dict(row))
    columns = {name: column_of([row[name] for row in rows]) for name in rows[0]}
    if Refused in wanted:
        with pytest.raises(InputError):
            evaluate(expression, columns, len(rows))
    else:
        found = np.broadcast_to(evaluate(expression, columns, len(rows)), (len(rows),))
        assert found.tolist() == wanted


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
        ("min(1)", "EATSS-S007", 1),
        ("min(*dim_m, 2)", "EATSS-S007", 1),
        ("None", "EATSS-S007", 1),
        ("1 + 9007199254740993", "EATSS-S011", 5),
        ("9007199254740992 ** 2", "EATSS-S011", 1),
        ("'é' == dimm", "EATSS-S007", 8),
        ("   'a' + dim_m", "EATSS-S011", 1),
        ("'a' * 1000000000000", "EATSS-S011", 1),
        ("dim_m < 'a'", "EATSS-S011", 1),
        ("1 + dim_m // (dim_m - 8)", "EATSS-S011", 5),
        ("dim_m ** 65", "EATSS-S011", 1),
        ("+" * 5000 + "1", "EATSS-S007", None),
        ("(" * 500 + "1" + ")" * 500, "EATSS-S007", None),
        ("1" * 6000, "EATSS-S007", None),
        ("", "EATSS-S007", None),
    ],
)
def test_a_mistake_is_told_with_the_part_it_is_in(text: str, code: str, column: int | None) -> None:
    with refusing(code) as raised:
        evaluate_one(parse_expression(text), {"dim_m": 8})
    assert column is None or f", column {column})" in str(raised.value)


def test_what_is_meant_is_offered() -> None:
    with pytest.raises(InputError) as raised:
        evaluate_one(parse_expression("2 * card.sm_cuont"), {"card.sm_count": 132, "x": 1})
    assert raised.value.diagnostics[0].hint == "did you mean card.sm_count?"


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
        ("'a' if on else layout", ["a", "column"]),
    ):
        assert evaluate(parse_expression(text), columns, 2).tolist() == wanted
