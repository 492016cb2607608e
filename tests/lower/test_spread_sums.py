"""Sums spread over lanes and blocks are right, however many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.analysis.layout import SplitK
from eatss.base.shipped import data_directory
from tests.lower.spreading import spread_and_verified

TESTS = Path(__file__).parent.parent

SIZES = {
    "atax": [{"NX": 37, "NY": 70}, {"NX": 1, "NY": 300}],
    "forward_substitution": [{"NI": 1}, {"NI": 75}],
}


CASES = [
    ("atax", SplitK(lanes=32, tile=64, chunks=1), 4),
    ("atax", SplitK(lanes=32, tile=64, chunks=2), 128),  # the points go to 32 of them
    ("forward_substitution", SplitK(lanes=1, tile=7, chunks=3), 64),
    ("forward_substitution", SplitK(lanes=8, tile=24, chunks=5), 16),
]


@pytest.mark.parametrize(("name", "spread", "threads"), CASES)
def test_spread_sums_equal_the_original(
    name: str, spread: SplitK, threads: int, tmp_path: Path
) -> None:
    folder = TESTS if name == "forward_substitution" else data_directory("kernels")
    text = (folder / f"{name}.c").read_text(encoding="utf-8")
    program, found = spread_and_verified(
        text, tmp_path / "out", spread, *SIZES[name], threads=threads
    )
    assert (found.status, found.message) == ("ok", "")
    split = [code for code in program.kernels if code.reassociates]
    assert split
    for code in split:
        x, y, z = code.block
        assert x * y * z <= 1024
        if spread.lanes > 1:
            assert x == spread.lanes


def test_one_lane_and_one_block_spread_nothing(tmp_path: Path) -> None:
    text = (data_directory("kernels") / "atax.c").read_text(encoding="utf-8")
    nothing = SplitK(lanes=1, tile=64, chunks=1)
    program, found = spread_and_verified(text, tmp_path / "out", nothing, *SIZES["atax"])
    assert found.status == "ok"
    assert not any(code.reassociates for code in program.kernels)
