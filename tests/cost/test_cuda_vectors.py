"""Loads of vectors from shared memory take what the order of lanes makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eatss.analysis import banks
from eatss.cards import load_profile
from eatss.choose.cuda_candidates import candidates_of
from eatss.cost.card import card_of
from eatss.frontend.options import Reading
from eatss.lower.structures import structures_for
from eatss.plan.launch import launch_plan
from eatss.session.session import Session

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
        for one in candidates_of(facts, structures_for(program, card)[facts.name], card)
        if not one.structure.spreads and one.structure.shared_loop is None
    )
    (cut,) = plain.structure.launches
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
