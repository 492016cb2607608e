"""Kernels parted where sums gain by it and order allows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from eatss.analysis.layout import SplitK
from eatss.base.diagnostics import InputError, InternalError
from eatss.base.frozen import their_names
from eatss.base.shipped import data_directory
from eatss.lower import planning
from eatss.lower import units as split_k
from eatss.lower.checks import check_launches
from eatss.lower.pieces import Piece, own_pieces
from eatss.lower.units import may_follow, restricted
from eatss.program import KernelCode, Program
from eatss.session.session import Session
from tests.examples import examples
from tests.lower.checking import checked
from tests.lower.spreading import spread_and_verified

FORWARD = Path(__file__).parent.parent / "forward_substitution.c"


MIRROR_FIRST = """
#ifndef N
#define N 300
#endif
#ifndef M
#define M 500
#endif
void f(double A[N][M], double C[N][N], double D[N][N]) {
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = i; j < N; j++) {
      C[j][i] = D[i][j];
      for (int k = 0; k < M; k++) C[i][j] += A[i][k] * A[j][k];
    }
#pragma endscop
}
"""
"""The other triangle is written before the sum, the diagonal by both."""


@contextmanager
def eager() -> Iterator[None]:
    """SplitK and part wherever it is legal, however short the loops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_k, "LEAST_TRIPS", 1)
        patch.setattr(planning, "LEAST_TRIPS", 1)
        yield


@cache
def covariance() -> Piece:
    """Return the piece of the sums of covariance."""
    scheduled = Session(data_directory("kernels") / "covariance.c").symbolic.regions[0].scheduled
    pieces, _ = own_pieces(scheduled)
    return next(p for p in pieces if "S5" in their_names(p.statements))


def kernel_of(program: Program, statement: str) -> KernelCode:
    return next(kernel for kernel in program.kernels if statement in kernel.statements)


def test_a_forward_substitution_equals_the_original_at_odd_sizes(tmp_path: Path) -> None:
    checked(FORWARD, tmp_path, [{"NI": size} for size in (0, 1, 2, 17, 67)], dtype="double")


# Kernels parted --------------------------------------------------------------------------


def test_what_comes_before_a_sum_is_parted_too(tmp_path: Path) -> None:
    program = checked(MIRROR_FIRST, tmp_path, [{"N": 37, "M": 29}])
    mirror, sums = kernel_of(program, "S0"), kernel_of(program, "S1")
    assert program.kernels.index(mirror) < program.kernels.index(sums)
    assert any(note.startswith("C: registers") for note in sums.notes)


def test_a_copy_may_not_run_before_the_sum_it_copies() -> None:
    piece = covariance()
    assert may_follow(piece, ["S5", "S6"], ["S7"])
    assert not may_follow(piece, ["S7"], ["S5", "S6"])
    assert not may_follow(piece, ["S5", "S7"], ["S6"])


def test_kernels_in_the_wrong_order_are_a_fault() -> None:
    piece = covariance()
    sums, mirror = restricted(piece, ["S5", "S6"]), restricted(piece, ["S7"])
    check_launches(piece, [sums, mirror])
    for launches, said in (([mirror, sums], "in the wrong order"), ([sums], "do not cover")):
        with pytest.raises(InternalError, match=said):
            check_launches(piece, launches)


# Random programs -------------------------------------------------------------------------


def row_sums(seed: int) -> str:
    """Return a program of sums over rows in place."""
    rng = random.Random(seed)
    low, high = rng.choice([("0", "i"), ("i + 1", "N"), ("0", "N"), ("i", "N"), ("0", "i + 1")])
    read = rng.choice(["B[k][j]", "B[i][k]", "B[k][i]", "C[k][j]", "B[j][k]"])
    before = rng.choice(["", "B[i][j] *= 2;", "C[j][i] = B[i][j];", "B[j][i] = C[i][j];"])
    after = rng.choice(["", "B[i][j] += C[i][j];", "C[i][j] = B[i][j];", "B[j][i] = B[i][j];"])
    sign, first = rng.choice("+-"), rng.choice(["0", "i"])
    return f"""
#ifndef N
#define N 70
#endif
void f(long A[N][N], long B[N][N], long C[N][N]) {{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = {first}; j < N; j++) {{
      {before}
      for (int k = {low}; k < {high}; k++) B[i][j] {sign}= A[k][i] * {read};
      {after}
    }}
#pragma endscop
}}
"""


@settings(
    max_examples=examples(2),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([1, 2, 19, 37]),
    lanes=st.sampled_from([1, 32]),
    chunks=st.sampled_from([1, 3, 16]),
)
def test_sums_in_place_equal_the_original(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, lanes: int, chunks: int
) -> None:
    text, folder = row_sums(seed), tmp_path_factory.mktemp("sums")
    try:
        with eager():
            spread = SplitK(lanes=lanes, tile=32, chunks=chunks)
            _, found = spread_and_verified(text, folder, spread, {"N": n})
    except InputError as error:
        if error.diagnostics[0].code != "EATSS-P001":
            raise
        reject()
    assert (found.status, found.message) == ("ok", ""), text
    assert all(result.worst_error == 0.0 for result in found.results), text
