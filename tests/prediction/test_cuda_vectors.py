"""Loads of vectors from shared memory take what the order of lanes makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eatss.frontend.options import Reading
from eatss.gpu import load_profile
from eatss.lower.structures import structures_for
from eatss.model.cuda_candidates import candidates_of
from eatss.prediction.card import card_of
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.cuda_boxes import vector_wavefronts
from eatss.prediction.cuda_constants import CudaConstants
from eatss.prediction.cuda_launch import launch_of
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
    of = launch_of(
        facts, cut, plain, card_of(card), CodeConstants(),
        CudaConstants(),
    )  # fmt: skip
    ((pair, on),) = of.interleaved.items()
    assert pair == ("j", "i")
    rows = of.neighbours("i") & of.neighbours("j")
    assert not np.any(on & ~rows)
    for uniform in of.all_uniform_sets:
        if not uniform.held:
            each = vector_wavefronts(of, uniform.access)
            assert np.all(each[on] == 2)
            assert np.all(np.isin(each, (2, 4)))
            along = uniform.access.strides
            natural = vector_wavefronts(replace(of, interleaved={}), uniform.access)
            assert np.any(natural[on] > 2) == ("j" in dict(along))
