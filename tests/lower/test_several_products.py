"""Statements that add several products: warps compute each, as if each were a statement."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.analysis.layout import Candidates, WarpUse
from eatss.cards import load_profile
from eatss.cost.cuda_model import CudaModel
from eatss.lower.structures import structures_for
from eatss.session.session import Session
from tests.lower.test_products import computed
from tests.lower.test_shared_sums import MMA, checked

pytestmark = pytest.mark.usefixtures("analysed_once")

CARD = load_profile("h200")
SOURCE = """
#ifndef NI
#define NI 1000
#endif
#ifndef NJ
#define NJ 1200
#endif
#ifndef NK
#define NK 900
#endif
void products(double alpha, double C[NI][NJ], double D[NI][NJ], double A[NI][NK], double B[NK][NJ],
              double E[NI][NK], double F[NK][NJ])
{
#pragma scop
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++)
      for (int k = 0; k < NK; k++) {
        STATEMENT
      }
#pragma endscop
}
"""
IN_TILES: dict[str, Any] = {"tiles": {"i": 32, "j": 32, "k": 16}, "block": {"i": 16, "j": 8}}
SIZES = [
    {"NI": 41, "NJ": 38, "NK": 45},  # tiles at edges, whole but for zeros
    {"NI": 64, "NJ": 32, "NK": 48},
    {"NI": 5, "NJ": 3, "NK": 1},
    {"NI": 33, "NJ": 34, "NK": 0},
]
FORMS = {
    "subtracted": "C[i][j] -= A[i][k] * B[k][j] + alpha * E[i][k] * F[k][j];",
    "of complex numbers": """
        C[i][j] += A[i][k] * B[k][j] - E[i][k] * F[k][j];
        D[i][j] += A[i][k] * F[k][j] + E[i][k] * B[k][j];""",
}


def source_of(form: str) -> str:
    return SOURCE.replace("STATEMENT", form)


@pytest.mark.parametrize("name", ["subtracted", "of complex numbers"])
def test_each_product_is_right_at_all_sizes(name: str, tmp_path: Path) -> None:
    stages = Random(name).choice([1, 2, 3])
    source = source_of(FORMS[name])
    program = checked(source, tmp_path, SIZES, instructions=[MMA], stages=stages, **IN_TILES)
    statements = {"S0", "S1"} if "D[i][j]" in FORMS[name] else {"S0"}
    assert computed(program, MMA) == statements
    assert all(kernel.regroups for kernel in program.kernels)


@pytest.mark.parametrize(
    "statement",
    [
        "C[i][j] += A[i][k] * B[k][j] + E[i][k];",  # the second is no product of two matrices
        "C[i][j] += A[i][k] * B[k][j] + E[i][k] * F[i][j];",
        "C[i][j] += (A[i][k] * B[k][j] + 1) * F[k][j];",
        "C[i][j] = A[i][k] * B[k][j] - C[i][j];",
    ],
)
def test_what_adds_something_else_has_no_products(statement: str) -> None:
    source = source_of(statement).replace("F[NK][NJ]", "F[NK > NI ? NK : NI][NJ]")
    program = eatss.inspect(source, cut="eatss")
    found = structures_for(program, CARD)
    assert all(one.instruction is None for own in found.values() for one in own)


def expected_of(statements: str) -> tuple[float, float]:
    """Return time and energy that are expected of one layout in which warps multiply."""
    program = Session(source_of(statements)).symbolic.program
    (facts,) = program.facts
    structure = next(
        one
        for one in structures_for(program, CARD)[facts.name]
        if one.instruction is not None and one.shared_loop is None
    )

    layout = Candidates(
        structure=structure,
        tile_sizes=(("i", 128), ("j", 96), ("k", 16)),
        block=(("i", 32), ("j", 8)),
        staged={one: 1 for cut in structure.launches for one in cut.stageable},
        warps=WarpUse(instruction=MMA, stages=3),
    )
    found = CudaModel.of(facts, CARD).columns(layout.map(lambda one: np.array([one]))).total
    return float(found.time_s[0]), float(found.energy_j[0])


def test_they_are_expected_to_take_what_two_statements_take() -> None:
    apart = "C[i][j] += A[i][k] * B[k][j]; C[i][j] += E[i][k] * F[k][j];"
    one = expected_of("C[i][j] += A[i][k] * B[k][j];")
    together = expected_of("C[i][j] += A[i][k] * B[k][j] + E[i][k] * F[k][j];")
    assert together == pytest.approx(expected_of(apart), rel=0.005)
    assert together[0] > 1.8 * one[0]


def test_their_order_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    source = source_of(FORMS["subtracted"])
    program = checked(source, tmp_path, SIZES[:2], strict_fp=True, **IN_TILES)
    assert program.kernels[0].bit_exact
    assert "C_r[ri][rj] -= sh.A" in program.text
