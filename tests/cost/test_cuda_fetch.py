"""Which loops blocks of an SM are in at different times, and how much code of them there is."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from eatss.analysis.layout import Candidates
from eatss.analysis.mapping import mapped_loops
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cost.card import card_of
from eatss.cost.computes import loops_apart
from eatss.frontend.options import Reading
from eatss.lower.structures import structures_for
from eatss.plan.launch import launch_plan
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session

CARD = load_profile("h200")


@cache
def analysed(kernel: str, dtype: str) -> SymbolicProgram:
    source = data_directory("kernels") / f"{kernel}.c"
    return Session(source, Reading(defines={"DATA_TYPE": dtype})).symbolic


def apart(
    kernel: str, steps: int, *, threads: tuple[int, int], dtype: str = "float", warps: bool = False
) -> tuple[float, float]:
    """Return the loops of the last launch of a kernel, for tiles of 128 × 128 points."""
    program = analysed(kernel, dtype).program
    facts = program.facts[-1]
    structure = next(
        one
        for one in structures_for(program, CARD)[facts.name]
        if not one.spreads and one.host_loop is None and (one.instruction is not None) == warps
    )
    mapped = [loop.name for loop in mapped_loops(facts)]

    candidate = Candidates(
        structure=structure,
        tile_sizes=tuple((one.name, 128 if one.name in mapped else steps) for one in facts.loops),
        block=tuple(zip(mapped, threads, strict=True)),
        staged={one: 1 for cut in structure.launches for one in cut.stageable},
        stages=2,
    ).map(lambda one: np.array([float(one)]))
    launch = launch_plan(facts, structure.launches[-1], candidate, card_of(CARD))
    code, again = (np.ravel(one) for one in loops_apart(launch))
    return code[0], again[0]


@pytest.mark.parametrize(
    ("steps", "threads", "unrolled", "again"),
    [
        (8, (8, 16), 1024, 1.0),  # all 8 steps of 128 products
        (4, (8, 16), 512, 1.0),
        (16, (8, 16), 1024, 0.5),  # in parts, as far as blocks of 128 threads allow
        (16, (16, 16), 1024, 1.0),
        (8, (8, 8), 512, 1.0),  # too long: compilers unroll it
    ],
)
def test_rows_of_a_symmetric_matrix_have_two_loops(
    steps: int, threads: tuple[int, int], unrolled: int, again: float
) -> None:
    found = apart("symm", steps, threads=threads)
    assert found == (2 * 1.25 * unrolled, again)


@pytest.mark.parametrize("kernel", ["gemm", "syrk", "trmm", "covariance"])
def test_one_loop_is_not_apart(kernel: str) -> None:
    assert apart(kernel, 8, threads=(8, 16))[0] == 0


def test_products_of_warps_have_little_code() -> None:
    assert apart("symm", 8, threads=(8, 32), dtype="double", warps=True)[0] == 0
    assert apart("symm", 8, threads=(8, 32), dtype="double")[0] > 0
