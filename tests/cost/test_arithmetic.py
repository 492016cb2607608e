"""Arithmetic that points of a thread share, against values that are told apart one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.work import StatementFacts
from eatss.api import inspect
from eatss.base.shipped import data_directory
from eatss.cost.arithmetic import instructions_of, unrolled_instructions
from eatss.cost.constants import CodeConstants
from tests.examples import examples

CONSTANTS = CodeConstants()
COUNTERS = {"i": 5, "j": 4, "k": 3}


def statements_of(loops: str, arguments: str) -> tuple[StatementFacts, ...]:
    source = f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    return tuple(s for facts in inspect(source).facts for s in facts.work.statements)


def instructions(statement: StatementFacts, **points: int) -> float:
    columns = {name: np.array([float(count)]) for name, count in points.items()}
    return float(np.sum(unrolled_instructions(statement, CONSTANTS, columns)))


def test_the_factor_of_a_product_serves_all_points_along_the_other_loop() -> None:
    (gemm,) = inspect(data_directory("kernels") / "gemm.c").facts
    (product_,) = (s for s in gemm.work.statements if "k" in s.loops)
    assert product_.repeated == ((("i", "k"), (("multiply", 1),)),)
    assert instructions(product_, i=8, j=4) == pytest.approx(1 + 1 / 4)
    assert instructions(product_, i=4, j=8) == pytest.approx(1 + 1 / 8)
    assert instructions(product_, i=8) == instructions_of(product_, CONSTANTS) == 2


def test_what_the_region_writes_is_not_taken_to_be_the_same() -> None:
    (_, last) = statements_of(
        "for (int i = 0; i < 64; i++) { w[i] = 2 * x[i];\n"
        "for (int j = 0; j < 64; j++) A[i][j] = (w[i] * w[i]) * B[i][j]; }",
        "double A[64][64], double B[64][64], double w[64], double x[64]",
    )
    assert last.repeated == ()


@settings(max_examples=examples(12))
@given(
    subscripts=st.lists(
        st.sampled_from(["i", "j", "k", "ij", "ik", "jk", "ijk"]), min_size=2, max_size=5
    ),
    points=st.tuples(*[st.integers(1, 4)] * 3),
)
def test_products_are_counted_once_for_each_value(
    subscripts: list[str], points: tuple[int, int, int]
) -> None:
    extents = {name: "".join(f"[{COUNTERS[c]}]" for c in name) for name in subscripts}
    arrays = [f"double a{at}{extents[name]}" for at, name in enumerate(subscripts)]
    factors = [f"a{at}{''.join(f'[{c}]' for c in name)}" for at, name in enumerate(subscripts)]
    nest = "".join(f"for (int {c} = 0; {c} < {n}; {c}++) " for c, n in COUNTERS.items())
    (statement,) = statements_of(
        f"{nest}R[i][j][k] = {' * '.join(factors)};", ", ".join(["double R[5][4][3]", *arrays])
    )
    # each product of the chain, with the points of a thread at which its value differs
    values = set()
    for place in product(*map(range, points)):
        at = dict(zip(COUNTERS, place, strict=True))
        for length in range(2, len(subscripts) + 1):
            moving = sorted(set("".join(subscripts[:length])))
            values.add((length, tuple((c, at[c]) for c in moving)))
    own = dict(zip(COUNTERS, points, strict=True))
    every = points[0] * points[1] * points[2]
    assert instructions(statement, **own) * every == pytest.approx(len(values))
