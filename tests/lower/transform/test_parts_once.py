"""Parts that stand in a value several times: which get a name, and that others stay."""

from __future__ import annotations

import re

import pytest

import eatss

SOURCE = """
void f(double A[64][64], float F[64][64], double B[64][64]) {{
    double T[64][64];
#pragma scop
    for (int i = 0; i < 64; i++) for (int j = 0; j < 63; j++) T[i][j] = {producer};
    for (int i = 0; i < 64; i++) for (int j = 1; j < 63; j++) B[i][j] = {reader};
#pragma endscop
}}
"""
DIFFERENCE = "A[i][j + 1] - A[i][j]"


def parts(producer: str, reader: str) -> list[str]:
    """Return the types of the parts that have a name in the code of whole tiles."""
    text = eatss.codegen(
        SOURCE.format(producer=producer, reader=reader), gpu="h200", recompute="all"
    ).text
    (kernel,) = text.split("__global__")[1:]
    (first, *_) = re.split(r"\n *B\[", kernel)
    return re.findall(r"(\w+) v\d+;", first)


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    ("producer", "reader", "named"),
    [
        (DIFFERENCE, "T[i][j] * T[i][j]", ["double"]),
        (DIFFERENCE, "T[i][j] > 0 ? T[i][j] : T[i][j - 1]", ["double"]),
        (f"({DIFFERENCE}) * ({DIFFERENCE})", "T[i][j] + T[i][j] * T[i][j]", ["double", "double"]),
        ("F[i][j] * F[i][j + 1]", "T[i][j] * T[i][j]", ["double"]),
        ("sqrt(A[i][j])", "T[i][j] * T[i][j]", ["double"]),
        (DIFFERENCE, "T[i][j] * T[i][j - 1]", []),  # neither stands there twice
        ("A[i][j] * i", "T[i][j] * T[i][j]", []),  # values of counters are found by their place
        ("A[i][j]", "T[i][j] * T[i][j]", []),  # an element has a name
    ],
)
def test_what_stands_there_several_times_has_a_name(
    producer: str, reader: str, named: list[str]
) -> None:
    assert parts(producer, reader) == named


def test_other_statements_are_printed_as_they_are_written() -> None:
    text = SOURCE.format(producer="0", reader=f"({DIFFERENCE}) * ({DIFFERENCE})")
    assert "v0" not in eatss.codegen(text, gpu="h200").text
