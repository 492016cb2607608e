"""Shared memory is predicted as generated code has it: boxes of parts lie in the same place."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from eatss.cards import load_profile
from eatss.choose.cuda_candidates import every_candidate
from eatss.cost.cuda_model import CudaModel
from tests.choose.cuda_kernels import analysed, generated, laid_out, selected, structures

FEW = 2
LESS = {"threads alone": 1.0, "warps": 0.96}
"""What code may have of the predicted bytes: of some rows that lanes load it pads less."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "layouts"),
    [
        ("symm", FEW),
        *(pytest.param(one, 16, marks=pytest.mark.long) for one in ("symm", "syr2k", "trmm")),
    ],
)
def test_shared_memory_is_that_of_generated_code(kernel: str, layouts: int) -> None:
    card, selection = load_profile("h200"), selected(kernel)
    facts = analysed(kernel).program.facts[-1]
    model, dice = CudaModel.of(facts, card), Random(3)
    offered = [
        own
        for own in every_candidate(facts, structures(kernel)[facts.name], card)
        if not own.structure.spreads and own.structure.shared_loop is None
    ]
    assert len(offered) == FEW  # threads alone, and warps
    overlaid = 0
    for number in range(layouts):
        own = offered[number % len(offered)]
        found = model.columns(own)
        staged = sum(own.staged.values()) >= FEW
        limit = card.shared_per_block_optin_bytes
        rows = np.flatnonzero(staged & found.fits & (found.shared_bytes <= limit))
        row = dice.choice(rows.tolist())
        kernels = list(selection.kernels)
        kernels[-1] = laid_out(kernels[-1], own, row)
        program = generated(kernel, replace(selection, kernels=tuple(kernels)))
        share = program.kernels[-1].shared_bytes / found.shared_bytes[row]
        assert LESS["warps" if own.structure.instruction else "threads alone"] <= share <= 1.0
        overlaid += "EATSS_OVERLAID" in program.text
    assert (overlaid > 0) == (kernel == "symm")


def test_a_launch_knows_in_which_parts_a_box_is_filled() -> None:
    (structure,) = (
        one
        for one in structures("symm")["kernel0"]
        if one.instruction is None and not one.spreads and one.shared_loop is None
    )
    (launch,) = structure.launches
    assert sorted({at for own in launch.copied_in for at in own}) == [1, 2, 3]
    assert launch.copies == tuple(map(len, launch.copied_in))
