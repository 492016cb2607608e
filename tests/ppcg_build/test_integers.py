from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.ppcg_build.host_code import NotUnderstoodError, integer
from eatss.program import evaluate
from eatss.program.tokens import tokens

NAMES = {"n": 37, "m": 5, "c0": 12}


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return texts of operators on texts, with brackets or without."""
    both = st.tuples(inner, inner)
    return st.one_of(
        both.flatmap(lambda pair: st.sampled_from([f"{pair[0]} {o} {pair[1]}" for o in "+-*"])),
        both.map(lambda pair: f"ppcg_min({pair[0]}, {pair[1]})"),
        both.map(lambda pair: f"ppcg_max({pair[0]}, {pair[1]})"),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: f"ppcg_fdiv_q({p[0]}, {p[1]})"),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: f"({p[0]}) / {p[1]}"),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: f"({p[0]}) % {p[1]}"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
    )


ATOMS = st.one_of(st.sampled_from(sorted(NAMES)), st.integers(0, 99).map(str))
ARITHMETIC = st.recursive(ATOMS, _combined, max_leaves=8)
PYTHON = {"ppcg_min": min, "ppcg_max": max, "ppcg_fdiv_q": lambda a, b: a // b}


def value(text: str) -> int:
    """Return what Python makes of a text; between these operators it binds as C does."""
    return int(eval(text.replace(" / ", " // "), dict(PYTHON), dict(NAMES)))


@given(ARITHMETIC)
def test_arithmetic_has_the_value_that_it_has_in_c(text: str) -> None:
    assert evaluate(integer(tokens(text)), NAMES) == value(text)


@given(ARITHMETIC, ARITHMETIC, ARITHMETIC, st.sampled_from(["<", "<=", ">", ">=", "=="]))
def test_conditions_choose(left: str, right: str, other: str, relation: str) -> None:
    text = f"{left} {relation} {right} && {other} >= 0 ? {left} : {other}"
    holds = eval(f"({value(left)} {relation} {value(right)})") and value(other) >= 0
    assert evaluate(integer(tokens(text)), NAMES) == (value(left) if holds else value(other))


def test_or_binds_less_than_and() -> None:
    assert evaluate(integer(tokens("n == 37 || m == 0 && c0 == 0")), NAMES) == 1


@pytest.mark.parametrize("text", ["", "n +", "(n", "n m", "f(n)", "A[n]", "1.5", "n ? m", "n++"])
def test_what_is_no_integer_expression_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstoodError, match=re.escape("is no integer expression")):
        integer(tokens(text))
