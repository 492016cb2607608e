"""Large ordinary programs give code soon; the benchmark ``large_programs`` tries many of them."""

from __future__ import annotations

import os

import eatss
from benchmarks.large_programs import PROGRAMS
from eatss.base.forked import REGION_S


def test_a_stencil_of_49_points_on_two_buffers_gives_code_soon() -> None:
    before = os.times()
    program = eatss.codegen(PROGRAMS["box 49 in turns"], gpu="h200", cache=False)
    assert sum(os.times()[:4]) - sum(before[:4]) < REGION_S
    assert program.kernels
