"""Large ordinary programs give code, soon and in little memory, and the code is right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import eatss
from eatss.base.forked import REGION_S
from eatss.verify import verify
from tests.large_programs import PROGRAMS

BY_DEFAULT = {"box 49 in turns"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in BY_DEFAULT else pytest.mark.long) for n in PROGRAMS],
)
def test_a_large_program_gives_code(name: str, tmp_path: Path) -> None:
    before = os.times()
    program = eatss.codegen(PROGRAMS[name], gpu="h200", cache=False, output=tmp_path / "out")
    assert sum(os.times()[:4]) - sum(before[:4]) < REGION_S
    assert program.kernels
    if name not in BY_DEFAULT:
        assert verify(tmp_path / "out").ok
