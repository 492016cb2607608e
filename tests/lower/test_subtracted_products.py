"""Products that are subtracted are sums of negated ones: the same in every bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.polyhedral.expression import (
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Unary,
    added_to,
)
from tests.lower.test_shared_sums import MMA, checked
from tests.lower.test_streamed_steps import product

TYPES = [ElementType.DOUBLE, ElementType.FLOAT, ElementType.INT32, ElementType.UINT32]
TARGET = 0


def minus(value: Expression) -> Expression:
    return Binary(operator="-", left=Read(access=TARGET), right=value)


def times(*parts: Expression) -> Expression:
    first, *others = parts
    for one in others:
        first = Binary(operator="*", left=first, right=one)
    return first


def added(value: Expression, types: Sequence[ElementType]) -> Expression | None:
    return added_to(value, lambda one: one == Read(access=TARGET), lambda access: types[access])


def value_of(value: Expression, numbers: Sequence[float]) -> float:
    if isinstance(value, Read):
        return numbers[value.access]
    if isinstance(value, Unary):
        return -value_of(value.operand, numbers)
    assert isinstance(value, Binary)
    left, right = value_of(value.left, numbers), value_of(value.right, numbers)
    return {"*": left * right, "-": left - right, "+": left + right}[value.operator]


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=5), st.booleans())
def test_what_is_added_is_what_was_subtracted_in_every_bit(
    numbers: list[float], turned: bool
) -> None:
    reads = [Read(access=at) for at in range(1, len(numbers))]
    subtracted = times(*reads)
    if turned:  # a * (b * c)
        subtracted = reads[-1]
        for one in reads[:-1]:
            subtracted = Binary(operator="*", left=one, right=subtracted)
    found = added(minus(subtracted), [ElementType.DOUBLE] * len(numbers))
    assert found is not None
    wanted = value_of(minus(subtracted), numbers)
    got = numbers[TARGET] + value_of(found, numbers)
    if math.isnan(wanted):
        assert math.isnan(got)
    else:
        assert (got, math.copysign(1.0, got)) == (wanted, math.copysign(1.0, wanted))


@pytest.mark.parametrize(
    ("factors", "found"),
    [
        ([Read(access=1), Read(access=1)], True),
        ([Read(access=2), Read(access=1)], True),  # an int times a float
        ([Read(access=1), Read(access=2)], False),
        ([Read(access=3)], False),  # its negation is another number
        ([Cast(element_type=ElementType.FLOAT, operand=Read(access=3))], True),
        ([Literal(text="2.0f", element_type=ElementType.FLOAT)], True),
    ],
)
def test_only_floating_point_numbers_are_negated(factors: list[Expression], found: bool) -> None:
    assert (added(minus(times(*factors)), TYPES) is not None) == found
    turned = Binary(operator="-", left=times(*factors), right=Read(access=TARGET))
    assert added(turned, TYPES) is None


IN_TILES: dict[str, Any] = {
    "tiles": {"i": 32, "j": 32, "k": 16},
    "block": {"i": 16, "j": 8},
    "placements": {"A": "shared", "B": "shared"},
}
SIZES = [
    {"NI": 41, "NJ": 38, "NK": 45},
    {"NI": 64, "NJ": 32, "NK": 48},
    {"NI": 5, "NJ": 3, "NK": 1},
]


@pytest.mark.parametrize("value", ["A[i][k] * B[k][j]"])
def test_tensor_cores_compute_them(value: str, tmp_path: Path) -> None:
    source = product(f"C[i][j] -= {value};").replace("DATA_TYPE", "double")
    program = checked(source, tmp_path, SIZES, instructions=[MMA], stages=3, **IN_TILES)
    (kernel,) = program.kernels
    assert f"{MMA}: computes S0" in kernel.notes
    signed = "alpha" if value.endswith("alpha") else "sh.B["
    assert f"= -{signed}" in program.text or f"+= -{signed}" in program.text
    assert ("alpha * sum_C_r" in program.text) == ("alpha" in value)  # once, behind the sum


@pytest.mark.parametrize("value", ["A[i][k] * B[k][j] * A[i][k]"])
def test_integers_are_subtracted_as_they_are(value: str, tmp_path: Path) -> None:
    source = product(f"C[i][j] -= {value};").replace("DATA_TYPE C", "double C")
    source = source.replace("DATA_TYPE", "unsigned int")
    program = checked(source, tmp_path, SIZES, **IN_TILES)
    assert " -= " in program.text.partition("__global__")[2]
