"""Halves that are copied one by one: two boxes at most, and registers for what is on its way."""

from __future__ import annotations

import numpy as np
import pytest

from eatss.analysis.layout import Candidates
from eatss.cards import load_profile
from eatss.choose.cuda_candidates import candidates_of
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.frontend.options import Reading
from eatss.lower.structures import structures_for
from eatss.plan import contract
from eatss.session.session import Session

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
        for one in candidates_of(facts, structures_for(program, card)[facts.name], card)
        if one.structure.instruction is not None and one.structure.shared_loop is None
    )
    found = CudaModel.of(facts, card).columns(layouts)
    ((demand, _),) = found.launches
    return layouts, demand


def row(layouts: Candidates, stages: int) -> int:
    """Return the layout of 128 x 128 x 32 products by 256 threads with so many boxes."""
    sizes = {"i": 128, "j": 128, "k": 32}
    own = np.logical_and.reduce([layouts.tiles[name] == one for name, one in sizes.items()])
    own &= (layouts.threads["i"] == 16) & (layouts.threads["j"] == 16)
    (at,) = np.flatnonzero(own & (layouts.boxes == stages))
    return int(at)


def test_odd_rows_have_two_boxes_at_most() -> None:
    assert set(predicted(VECTORS)[0].boxes.tolist()) == {1, 2, 3, 4}
    assert set(predicted(ODD)[0].boxes.tolist()) == {1, 2}


def test_what_is_on_its_way_has_registers() -> None:
    """Of 128 x 32 elements of each factor a thread of 256 copies 16, each in a register."""
    (whole, vectors), (odd, narrow) = predicted(VECTORS), predicted(ODD)
    assert narrow.registers[row(odd, 1)] == vectors.registers[row(whole, 1)]
    more = narrow.registers[row(odd, 2)] - vectors.registers[row(whole, 2)]
    assert more == 2 * 16


def test_two_boxes_of_odd_rows_save_waiting() -> None:
    layouts, demand = predicted(ODD)
    one, two = row(layouts, 1), row(layouts, 2)
    assert demand.shared_bytes[two] == 2 * demand.shared_bytes[one]
    assert demand.chain_cycles[two] < demand.chain_cycles[one] / 2
    assert demand.instructions[two] <= demand.instructions[one]


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
