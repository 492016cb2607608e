"""What is expected of tiles that a user names: what code has no room for, sums beside tiles."""

from __future__ import annotations

from typing import Any

from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.expectation import ProgramExpectation
from eatss.choose.options import SelectOptions
from eatss.lower.recipe import CodeRequest
from eatss.session.session import Session


def asked_of(name: str, **asked: Any) -> tuple[ProgramExpectation, tuple[str, ...]]:
    """Return what is expected of sizes for an H200, and the notes of their code."""
    profile = load_profile("h200")
    session = Session(data_directory("kernels") / f"{name}.c", code=True)
    selection = session.select(profile, SelectOptions(target="cuda"))
    session = session.of(selection)
    recipe = session.recipe(selection, profile, CodeRequest(**asked))
    found = session.expected(selection, recipe, profile)
    assert isinstance(found, ProgramExpectation)
    program = session.generate(recipe, profile, selection)
    return found, tuple(note for kernel in program.kernels for note in kernel.notes)


def test_what_code_has_no_room_for_is_not_staged_in_its_prediction() -> None:
    found, notes = asked_of(
        "matmul",
        tiles={"kernel0": {"i": 1, "j": 512, "k": 64}},
        block={"kernel0": {"j": 512, "i": 1}},
    )
    assert any(note.startswith("Ker[k][j] stays in L1: its tile of 64 x 512") for note in notes)
    (kernel,) = found.kernels
    assert kernel.shared == ("In",)
    assert kernel.predicted is not None
    assert kernel.predicted.shared_bytes == 8 * 64


def test_tiles_beside_sums_that_are_spread_are_predicted() -> None:
    def time_s(tile: int, **asked: Any) -> float:
        found, _ = asked_of(
            "mvt",
            tiles={"kernel0": {"i": 128, "j": 64}, "kernel1": {"i": 128, "j": tile}},
            block={"kernel0": {"i": 128}, "kernel1": {"i": 128}},
            **asked,
        )
        predicted = found.kernels[1].predicted
        assert predicted is not None
        return predicted.time_s

    staged = {"placements": {"y1": "shared"}}
    assert time_s(64, **staged) > time_s(64)
    # of 32 lanes two have a step of a tile of two: 3.2 and 0.6 ms were measured
    assert time_s(2) > 2 * time_s(64)
