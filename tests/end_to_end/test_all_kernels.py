"""Every shipped kernel selects on a large, an older and a small card, ."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.api import select_analysed
from eatss.pipeline import AnalysedProgram
from eatss.resources import data_directory

FILES = sorted(data_directory("kernels").glob("*.c"))
CARDS = ("ga100", "xavier", "h200")


def test_all_31_kernels_are_there() -> None:
    assert len(FILES) == 31


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_kernel_selects_or_says_why_not(file: Path) -> None:
    for dtype in ("float", "double"):
        program = eatss.inspect(file, dtype=dtype)
        for card in CARDS:
            _check(program, card)


def _check(program: AnalysedProgram, card: str) -> None:
    selection = select_analysed(program, gpu=card)
    assert len(selection.kernels) == len(program.facts)
    assert selection.optimal == "proven"
    for kernel in selection.kernels:
        assert all(usage.used <= usage.available for usage in kernel.usage)
        assert kernel.threads_per_block <= 1024
        assert {name for name, _ in kernel.tile_sizes} == set(kernel.loops)
    assert eatss.Selection.from_dict(selection.to_dict()) == selection
