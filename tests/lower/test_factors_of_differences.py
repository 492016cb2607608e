"""Factors that are differences: zeros beside boxes make no zero of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.cards import load_profile
from eatss.lower.structures import structures_for
from tests.lower.test_products import computed
from tests.lower.test_shared_sums import MMA, checked

pytestmark = pytest.mark.usefixtures("analysed_once")

CARD = load_profile("h200")
SCATTER = """
#ifndef NI
#define NI 1000
#endif
#ifndef NK
#define NK 1100
#endif
void scatter(DATA_TYPE S[NI][NI], DATA_TYPE X[NK][NI], DATA_TYPE m[NI])
{
#pragma scop
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NI; j++)
      for (int k = 0; k < NK; k++)
        S[i][j] += VALUE;
#pragma endscop
}
"""
CENTRED = "(X[k][i] - m[i]) * (X[k][j] - m[j])"
IN_TILES: dict[str, Any] = {"tiles": {"i": 32, "j": 32, "k": 16}, "block": {"i": 16, "j": 8}}
SIZES = [
    {"NI": 41, "NK": 45},  # tiles that all bounds cut
    {"NI": 64, "NK": 32},
    {"NI": 5, "NK": 1},
    {"NI": 38, "NK": 0},
]


def source_of(value: str, dtype: str) -> str:
    return SCATTER.replace("VALUE", value).replace("DATA_TYPE", dtype)


@pytest.mark.parametrize(("dtype", "instructions"), [("double", [MMA])])
def test_products_of_them_are_right(dtype: str, instructions: list[str], tmp_path: Path) -> None:
    source = source_of(CENTRED.replace("2.0", "2.0" if dtype == "double" else "2.0f"), dtype)
    options = {"instructions": instructions, "stages": 1}
    program = checked(source, tmp_path, SIZES, **options, **IN_TILES)
    assert computed(program, MMA) == ({"S0"} if instructions else set())


def test_the_prediction_knows_the_last_turn() -> None:
    for value, whole in ((CENTRED, False), ("(X[k][i] - m[i]) * X[k][j]", True)):
        program = eatss.inspect(source_of(value, "double"), cut="eatss")
        (found,) = structures_for(program, CARD).values()
        products = [own for one in found for own in one.products]
        assert products
        assert all(own.ends_whole == whole for own in products)


def test_what_is_selected_is_generated() -> None:
    """Boxes that are filled once for a tile leave no turns that blocks could share."""
    source = source_of(CENTRED, "float")
    defines = {"NI": 1750, "NK": 2350}
    selection = eatss.select(source, gpu="h200", target="cuda", defines=defines)
    program = eatss.codegen(source, gpu="h200", defines=defines, selection=selection)
    for chosen, made in zip(selection.kernels, program.kernels, strict=True):
        streamed = chosen.shared_sum is not None and chosen.shared_sum.streamed
        assert any("take equal shares" in note for note in made.notes) == streamed
        assert not any("cannot take equal shares" in note for note in made.notes)
