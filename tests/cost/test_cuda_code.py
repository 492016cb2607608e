"""Halves that are copied one by one: two boxes at most, and registers for what is on its way.

Loads of vectors from shared memory take what the order of lanes makes of them.

Registers of a thread, and the blocks of an SM that a compiler is bound to.

Shared memory is predicted as generated code has it: boxes of parts lie in the same place.

Which loops blocks of an SM are in at different times, and how much code of them there is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from eatss.analysis import variant as banks
from eatss.analysis.layout import Candidates, mapped_loops
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.cuda_candidates import candidates_of
from eatss.cost.card import card_of
from eatss.cost.computes import loops_apart
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.frontend.options import Reading
from eatss.lower.variants import kernel_variants_for
from eatss.plan import contract
from eatss.plan.launch import launch_plan
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from tests.choose.cuda_kernels import variants

SOURCE = """\
#define N {0}
void product(float C[N][N], _Float16 A[N][N], _Float16 B[N][N])
{{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += (float) A[i][k] * (float) B[k][j];
#pragma endscop
}}
"""
LANES = 32
VECTORS, ODD = 1152, 1151
"""A size of which rows are whole vectors, and one of which they begin anywhere."""


def predicted(size: int) -> tuple[Candidates, Demand]:
    """Return layouts of tensor cores, and what they ask for."""
    card = load_profile("h200")
    program = Session(SOURCE.format(size), Reading(), code=True).analysed
    (facts,) = program.facts
    (layouts,) = (
        one
        for one in candidates_of(facts, kernel_variants_for(program, card)[facts.name], card)
        if one.variant.instruction is not None and one.variant.shared_loop is None
    )
    found = CudaModel.of(facts, card).columns(layouts)
    ((demand, _),) = found.launches
    return layouts, demand


def row(layouts: Candidates, stages: int) -> int:
    """Return the layout of 128 x 128 x 32 products by 256 threads with so many boxes."""
    sizes = {"i": 128, "j": 128, "k": 32}
    own = np.logical_and.reduce([layouts.tiles[name] == one for name, one in sizes.items()])
    own &= (layouts.threads["i"] == 16) & (layouts.threads["j"] == 16)
    (at,) = np.flatnonzero(own & (layouts.pipeline_stages == stages))
    return int(at)


def test_odd_rows_have_two_boxes_at_most() -> None:
    assert set(predicted(VECTORS)[0].pipeline_stages.tolist()) == {1, 2, 3, 4}
    assert set(predicted(ODD)[0].pipeline_stages.tolist()) == {1, 2}


def test_eight_elements_of_a_lane_are_one_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A warp has 4 x 4 matrices of 16 x 8 sums: 4 of A, of 8 elements a lane, 4 of B, of 4."""
    layouts, demand = predicted(VECTORS)
    at = row(layouts, 2)
    assert demand.tensor16[at] * LANES == VECTORS**3
    elements = (VECTORS / 128) ** 2 * 8 * VECTORS / 16 * (4 * 8 + 4 * 4)
    monkeypatch.setattr(contract, "VECTOR_BYTES", 2)  # one half
    _, one_by_one = predicted(VECTORS)
    saved = one_by_one.instructions[at] - demand.instructions[at]
    assert saved == pytest.approx(elements * 7 / 8)
    assert demand.operand_bytes[at] == elements * LANES * 2


PRODUCT = """
#ifndef N
#define N 512
#endif
void f(float C[N][N], float A[N][N], float B[N][N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""


def test_loads_take_what_lanes_make_of_them(tmp_path: Path) -> None:
    """Two wavefronts where lanes are interleaved, along one axis or the other."""
    (tmp_path / "f.c").write_text(PRODUCT)
    program = Session(tmp_path / "f.c", Reading(), code=True).analysed
    (facts,) = program.facts
    card = load_profile("h200")
    plain = next(
        one
        for one in candidates_of(facts, kernel_variants_for(program, card)[facts.name], card)
        if not one.variant.spreads and one.variant.shared_loop is None
    )
    (cut,) = plain.variant.launches
    of = launch_plan(facts, cut, plain, card_of(card))
    ((pair, on),) = of.interleaved.items()
    assert pair == ("j", "i")
    rows = of.neighbours("i") & of.neighbours("j")
    assert not np.any(on & ~rows)
    threads = [count for _, count in of.axes]
    for use in of.uses:
        if not use.held:
            each = of.vector_wavefronts(use.access)
            assert np.all(each[on] == 2)
            assert np.all(np.isin(each, (2, 4)))
            moves = [name in use.access.moving for name, _ in of.axes]
            assert np.any(banks.vector_wavefronts(threads, moves)[on] > 2) == moves[0]


pytestmark = pytest.mark.usefixtures("analysed_once")


def test_a_launch_knows_in_which_parts_a_box_is_filled() -> None:
    (variant,) = (
        one
        for one in variants("symm")["kernel0"]
        if one.instruction is None and not one.spreads and one.shared_loop is None
    )
    (launch,) = variant.launches
    assert sorted({at for own in launch.copied_in for at in own}) == [1, 2, 3]


FETCH_CARD = load_profile("h200")


@cache
def with_type(kernel: str, dtype: str) -> SymbolicProgram:
    source = data_directory("kernels") / f"{kernel}.c"
    return Session(source, Reading(defines={"DATA_TYPE": dtype})).symbolic


def apart(
    kernel: str, steps: int, *, threads: tuple[int, int], dtype: str = "float", warps: bool = False
) -> tuple[float, float]:
    """Return the loops of the last launch of a kernel, for tiles of 128 × 128 points."""
    program = with_type(kernel, dtype).program
    facts = program.facts[-1]
    variant = next(
        one
        for one in kernel_variants_for(program, FETCH_CARD)[facts.name]
        if not one.spreads and (one.instruction is not None) == warps
    )
    mapped = [loop.name for loop in mapped_loops(facts)]

    candidate = Candidates(
        variant=variant,
        tile_sizes=tuple((one.name, 128 if one.name in mapped else steps) for one in facts.loops),
        block=tuple(zip(mapped, threads, strict=True)),
        staged={one: 1 for cut in variant.launches for one in cut.stageable},
        stages=2,
    ).map(lambda one: np.array([float(one)]))
    launch = launch_plan(facts, variant.launches[-1], candidate, card_of(FETCH_CARD))
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
