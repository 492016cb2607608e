"""Blocks take equal shares of steps where a card would be idle otherwise, and as is predicted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose import KernelSelection
from eatss.choose.cuda import expected_of, structure_of
from eatss.choose.cuda_candidates import LEAST_IDLE, every_candidate
from eatss.frontend.options import Reading
from eatss.lower.structures import structures_for
from eatss.program import Constant, Launch, Program, evaluate
from eatss.session.session import Session
from tests.choose.cuda_kernels import structures

GEMM = data_directory("kernels") / "gemm.c"
H200 = load_profile("h200")


def defined(size: int, dtype: str) -> dict[str, str | int]:
    return {"DATA_TYPE": dtype, **dict.fromkeys(("NI", "NJ", "NK"), size)}


@cache
def selected(size: int, dtype: str) -> KernelSelection:
    found = eatss.select(GEMM, gpu="h200", target="cuda", defines=defined(size, dtype))
    return found.kernels[0]


@cache
def generated() -> Program:
    return eatss.codegen(GEMM, gpu="h200", defines=defined(1111, "float"))


def test_each_sm_has_a_block_where_tiles_leave_much_of_the_last_round_idle() -> None:
    kernel = selected(1111, "float")
    own = kernel.shared_sum
    assert own is not None
    assert (own.loop, own.blocks, own.streamed) == ("k", 132, True)
    assert kernel.streams == 132
    tiles = 1
    for loop in "ij":
        tiles *= -(-1111 // dict(kernel.tile_sizes)[loop])
    assert 1 - tiles / 132 / -(-tiles // 132) > LEAST_IDLE


def test_blocks_have_tiles_of_their_own_where_there_are_many() -> None:
    kernel = selected(4000, "double")
    assert kernel.shared_sum is None
    assert kernel.streams == 0


def test_what_is_selected_is_made() -> None:
    program, kernel = generated(), selected(1111, "float")
    (code,) = program.kernels
    assert "132 blocks take equal shares of the turns over k of all tiles" in code.notes
    assert dict(code.tile_sizes) == dict(kernel.tile_sizes)
    assert kernel.predicted is not None
    assert code.shared_bytes == kernel.predicted.shared_bytes
    steps: Any = program.entries[0].body
    while not isinstance(steps[0], Launch):
        steps = steps[0].body
    grid = [evaluate(one, dict.fromkeys(("NI", "NJ", "NK"), 1111)) for one in steps[0].grid]
    assert grid == [132, 1, 1]
    parts, arrived = program.entries[0].temporaries
    assert parts.shape[0] == Constant(2 * 132)
    assert arrived.zeroed


def test_the_structure_and_what_is_predicted_are_those_of_the_stream() -> None:
    reading = Reading(defines={name: str(text) for name, text in defined(1111, "float").items()})
    analysed = Session(GEMM, reading).symbolic.program
    (own,) = structures_for(analysed, H200).values()
    kernel = selected(1111, "float")
    structure = structure_of(own, kernel)
    assert structure is not None
    assert structure.stream_loop == "k"
    assert structure.shared_loop is None
    expected, alone = (
        expected_of(analysed.facts[0], own, H200, one)[0]
        for one in (kernel, replace(kernel, shared_sum=None))
    )
    assert kernel.predicted is not None
    assert expected is not None
    assert alone is not None
    assert expected.time_s == pytest.approx(kernel.predicted.time_s)
    assert expected.time_s < alone.time_s


@pytest.mark.parametrize(
    ("size", "dtype"), [(1111, "float"), pytest.param(1111, "double", marks=pytest.mark.long)]
)
def test_layouts_with_streams_have_boxes_and_an_idle_card_without(size: int, dtype: str) -> None:
    reading = Reading(defines={name: str(text) for name, text in defined(size, dtype).items()})
    analysed = Session(GEMM, reading).symbolic.program
    own = structures_for(analysed, H200)["kernel0"]
    streaming = [
        one for one in every_candidate(analysed.facts[0], own, H200) if np.any(one.streams)
    ]
    assert streaming
    for layouts in streaming:
        assert layouts.structure.stream_loop == "k"
        assert not layouts.structure.spreads
        assert (layouts.streams == 132).all()
        assert np.all(np.sum([*layouts.staged.values()], axis=0) > 0)
        tiles = np.prod([-(-size // layouts.tiles[loop]) for loop in "ij"], axis=0)
        assert np.all(tiles / 132 / -(-tiles // 132) < 1 - LEAST_IDLE)


def test_strict_order_leaves_nothing_to_share() -> None:
    assert any(one.stream_loop for one in structures("gemm")["kernel0"])
    analysed = Session(GEMM).symbolic.program
    (own,) = structures_for(analysed, H200, strict_fp=True).values()
    assert not any(one.stream_loop for one in own)
