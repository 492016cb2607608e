"""Numbers of points as expressions equal the numbers that isl lists."""

from __future__ import annotations

from itertools import product

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.count import UncountableError, count, count_points
from eatss.polyhedral.isl_names import at_values
from eatss.program import IntExpr, c_text, evaluate

NAMES = ("N", "M")
COUNTERS = ("i", "j", "k")


def listed(points: isl.Set, values: dict[str, int]) -> int:
    return int(at_values(points, (*values.items(),)).count_val().to_python())


def the_same(points: isl.Set, counted: IntExpr, choices: tuple[int, ...]) -> None:
    for numbers in product(choices, repeat=len(NAMES)):
        values = dict(zip(NAMES, numbers, strict=True))
        assert evaluate(counted, values) == listed(points, values), values


@st.composite
def sets(draw: st.DrawFn) -> str:
    """Draw a union of boxes, triangles and tilted nests, some in steps, over N and M."""
    depth = draw(st.integers(1, 3))
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        limits = []
        for level in range(depth):
            own, outer = COUNTERS[level], list(COUNTERS[:level])
            low = draw(st.sampled_from(["0", "1", "-2", *outer, *(f"{o} - 1" for o in outer)]))
            high = draw(
                st.sampled_from(["N", "M", "N - 2", "5", "N + M", *(f"{o} + 3" for o in outer)])
            )
            limits.append(f"{low} <= {own} < {high}")
            if draw(st.integers(0, 3)) == 0:
                modulus = draw(st.integers(2, 3))
                limits.append(f"({own} - ({low})) mod {modulus} = 0")
        if depth > 1 and draw(st.booleans()):
            relation = st.sampled_from(
                ["i + j < N", "2 * j <= i + 1", "i = j", "3 * i <= 2 * j + M"]
            )
            limits.append(draw(relation))
        parts.append(f"[{', '.join(COUNTERS[:depth])}] : {' and '.join(limits)}")
    return f"[N, M] -> {{ {'; '.join(parts)} }}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(text=sets())
def test_a_count_is_exact_for_all_parameters(text: str) -> None:
    points = isl.Set.read_from_str(isl.Context(), text)
    counted = count(points)
    assert counted is not None
    the_same(points, counted, (-3, 0, 1, 2, 3, 6, 11))


@st.composite
def images(draw: st.DrawFn) -> str:
    """Draw the elements that an access touches."""
    subscripts = []
    for _ in range(draw(st.integers(1, 2))):
        factors = [draw(st.integers(-1, 3)) for _ in range(2)]
        subscripts.append(f"{factors[0]} * i + {factors[1]} * j + {draw(st.integers(0, 2))}")
    equal = " and ".join(f"a{k} = {text}" for k, text in enumerate(subscripts))
    dims = ", ".join(f"a{k}" for k in range(len(subscripts)))
    return f"[N, M] -> {{ [{dims}] : exists i, j : 0 <= i < N and 0 <= j < M and {equal} }}"


@settings(max_examples=40, deadline=None, derandomize=True)
@given(text=images())
def test_distinct_elements_are_counted_once(text: str) -> None:
    points = isl.Set.read_from_str(isl.Context(), text)
    counted = count(points)
    assert counted is not None
    the_same(points, counted, (0, 1, 2, 5, 8))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ [i] : 0 <= i < 7 }", "7"),
        ("{ [i] : 0 <= i < 7 and i > 9 }", "0"),
        ("{ [] }", "1"),
        ("[N] -> { [i] : 0 <= i < N }", "(N >= 0 ? N : 0)"),
        ("[N] -> { [i, j] : 0 <= j < i < N }", "(N >= 0 ? eatss_floordiv(N * N - N, 2) : 0)"),
        ("[N] -> { [i] : 0 <= i < N and i mod 4 = 0 }",
         "(eatss_floordiv(N + 3, 4) >= 0 ? eatss_floordiv(N + 3, 4) : 0)"),
    ],
)  # fmt: skip
def test_a_simple_set_has_the_formula_of_the_textbook(text: str, expected: str) -> None:
    counted = count(isl.Set.read_from_str(isl.Context(), text))
    assert counted is not None
    assert c_text(counted) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{ [i] : i >= 0 }", "no end"),
        ("[N] -> { [a] : exists i, j : a = 10007 i + 1009 j and 0 <= i, j < N }", "remainders"),
        ("[N] -> { [i, j] : (i + j) mod 999983 = N and 0 <= i, j < N }", "divisors"),
    ],
)
def test_what_cannot_be_counted_says_why(text: str, reason: str) -> None:
    points = isl.Set.read_from_str(isl.Context(), text)
    assert count(points) is None
    with pytest.raises(UncountableError, match=reason):
        count_points(points)
