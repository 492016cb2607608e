"""Shipped kernels select on a large and a small card, by prediction and by the paper's
objective."""

from __future__ import annotations

from typing import Literal

import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import ModelOptions
from eatss.session.steps import select_for

FILES = sorted(data_directory("kernels").glob("*.c"))
CARDS: tuple[tuple[Literal["float", "double"], tuple[str, ...], tuple[str, ...]], ...] = (
    ("float", ("xavier",), ("xavier",)),
    ("double", ("ga100",), ("h200",)),
)
"""For each type the cards that the published model selects for, and those of the prediction."""

FEW = ("jacobi-2d", "lu", "mttkrp", "seidel-2d")
"""A stencil, triangles, a product of more than two dimensions and skewed loops."""


def test_all_31_kernels_are_there() -> None:
    assert len(FILES) == 31


@pytest.mark.parametrize("name", FEW)
def test_kernels_select_or_say_why_not(name: str) -> None:
    file = data_directory("kernels") / f"{name}.c"
    for dtype, published, predicted in CARDS:
        program = eatss.inspect(file, dtype=dtype)
        for card in published:
            _check_published(program, card)
        for card in predicted:
            _check_predicted(program, card)


def _check_published(program: AnalysedProgram, card: str) -> None:
    selection = select_for(program, load_profile(card), ModelOptions(model="paper"))
    _check_outline(program, selection)
    assert selection.options.objective == "paper"
    assert selection.ppcg_options is None
    for kernel in selection.kernels:
        assert kernel.threads_per_block <= 1024
        assert kernel.predicted is None


def _check_predicted(program: AnalysedProgram, card: str) -> None:
    profile = load_profile(card)
    selection = select_for(program, profile, ModelOptions())
    _check_outline(program, selection)
    assert selection.ppcg_options is not None
    assert bool(selection.ppcg_arguments) == (not selection.keeps_default)
    for kernel in selection.kernels:
        found, default = kernel.predicted, kernel.default
        assert found is not None
        if kernel.tile_sizes:
            assert tuple(loop for loop, _ in kernel.tile_sizes) == kernel.loops
            assert {loop for loop, _ in kernel.block} <= set(kernel.parallel)
        if not kernel.keeps_default:
            assert kernel.threads_per_block <= profile.threads_per_block
        assert 1 <= found.threads <= profile.threads_per_block
        assert found.shared_bytes <= profile.shared_per_block_bytes
        assert found.shared_bytes <= selection.ppcg_options.max_shared_memory
        assert found.resident_blocks >= 1
        if kernel.keeps_default:
            assert found == default
            assert f"kernel[{kernel.index}]" not in selection.ppcg_sizes

    _check_totals(selection)


def _check_totals(selection: eatss.Selection) -> None:
    """The program is expected to take no more time and no more energy than PPCG's default."""
    pairs = [(kernel.predicted, kernel.default) for kernel in selection.kernels]
    known = [(found, usual) for found, usual in pairs if found is not None and usual is not None]
    if len(known) == len(pairs):
        assert sum(found.energy_j for found, _ in known) <= sum(u.energy_j for _, u in known)
        assert sum(found.time_s for found, _ in known) <= sum(u.time_s for _, u in known)


def _check_outline(program: AnalysedProgram, selection: eatss.Selection) -> None:
    assert [kernel.name for kernel in selection.kernels] == [f.name for f in program.facts]
    assert all(0 < one.bound <= one.objective for one in selection.kernels if one.boxes)
    for kernel in selection.kernels:
        assert all(usage.used <= usage.available for usage in kernel.usage)
        assert {name for name, _ in kernel.tile_sizes} == set(kernel.loops)
    assert eatss.Selection.from_dict(selection.to_dict()) == selection
