"""Registers of a thread, and the blocks of an SM that a compiler is bound to."""

from __future__ import annotations

import numpy as np
import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose import ModelOptions
from eatss.frontend.options import Reading
from eatss.session.session import Session
from eatss.session.steps import select_for

pytestmark = pytest.mark.usefixtures("analysed_once")

CARD = load_profile("h200")
SYMM = data_directory("kernels") / "symm.c"
SIZES = {"DATA_TYPE": "float", "NI": "1900", "NJ": "2600"}


def test_compilers_are_bound_to_as_many_blocks_as_sums_leave_registers_for() -> None:
    program = Session(SYMM, Reading(defines=SIZES)).symbolic.program
    (kernel,) = select_for(program, CARD, ModelOptions(target="cuda")).kernels
    assert kernel.predicted is not None
    threads = np.prod([count for _, count in kernel.block])
    points = np.prod([dict(kernel.tile_sizes)[name] for name, _ in kernel.block]) / threads
    blocks = kernel.predicted.resident_blocks
    assert kernel.resident == blocks > 1
    assert kernel.predicted.registers == points + 72
    assert CARD.registers_per_sm // (threads * blocks) >= points + 72
    text = eatss.codegen(SYMM, gpu="h200", defines=SIZES).text
    assert f"__launch_bounds__({threads}, {blocks})" in text


def test_sizes_of_the_user_leave_registers_to_compilers() -> None:
    made = eatss.codegen(
        SYMM,
        gpu="h200",
        defines=SIZES,
        tiles={"k": 64, "j": 128, "i": 8},
        block={"k": 8, "j": 16},
        stages=2,
    )
    assert "__launch_bounds__(128)" in made.text
