"""Polynomials in tile sizes behave as polynomials do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eatss.base.polynomial import Polynomial

LOOPS = ("i", "j", "k")
terms = st.lists(
    st.tuples(st.integers(-9, 9), st.lists(st.sampled_from(LOOPS), max_size=3)), max_size=5
)
polynomials = terms.map(Polynomial.of)
sizes = st.fixed_dictionaries({loop: st.integers(0, 50) for loop in LOOPS})


@given(polynomials, polynomials, sizes)
def test_evaluation_commutes_with_arithmetic(
    a: Polynomial, b: Polynomial, at: dict[str, int]
) -> None:
    assert (a + b).evaluate(at) == a.evaluate(at) + b.evaluate(at)
    assert (a - b).evaluate(at) == a.evaluate(at) - b.evaluate(at)
    assert (a * b).evaluate(at) == a.evaluate(at) * b.evaluate(at)


@given(polynomials, polynomials)
def test_equal_polynomials_have_one_normal_form(a: Polynomial, b: Polynomial) -> None:
    assert a + b == b + a
    assert a - a == Polynomial.constant(0)
    assert hash(a + b) == hash(b + a)


def test_a_polynomial_reads_as_mathematics() -> None:
    halo = Polynomial.of([(1, ["h", "w"]), (2, ["h"]), (-4, [])])
    assert str(halo) == "-4 + 2*T_h + T_h*T_w"
    assert str(Polynomial.constant(0)) == "0"
