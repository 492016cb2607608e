"""The selection as JSON: the promised keys, the round trip, damaged documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from eatss.analysis.facts import KernelFacts
from eatss.base.diagnostics import InputError
from eatss.cards.profile import GpuProfile
from eatss.choose.options import ModelOptions
from eatss.choose.select import select_program
from eatss.choose.selection import SCHEMA_VERSION, Selection

MakeFacts = Callable[..., KernelFacts]

PROMISED_KERNEL_KEYS = {
    "name",
    "statements",
    "loops",
    "parallel",
    "cma_loop",
    "tile_sizes",
    "objective",
    "optimal",
    "split_factor",
    "warp_fraction",
    "solver_calls",
    "solve_time_s",
    "references",
    "usage",
}
PAPER = ModelOptions(model="paper", split=0.5, warp_fraction=0.5)


@pytest.fixture(scope="module")
def selection(ga100: GpuProfile, matmul: KernelFacts, nests: dict[str, MakeFacts]) -> Selection:
    kernels = [matmul, nests["heat"](), nests["conv"](500)]
    return select_program(
        kernels, ga100, ModelOptions(model="paper", split=0.5), file="all.c", functions=("f", "g")
    )


def test_matmul_has_the_promised_entries(ga100: GpuProfile, matmul: KernelFacts) -> None:
    document = select_program([matmul], ga100, PAPER, file="matmul.c").to_dict()
    assert document["schema_version"] == SCHEMA_VERSION
    assert document["gpu"] == "ga100"
    assert document["dtype"] == "double"
    assert document["ppcg_sizes"].startswith("{ kernel[0] -> tile[16, 384, 16]")
    (kernel,) = document["kernels"]
    assert set(kernel) >= PROMISED_KERNEL_KEYS
    assert kernel["tile_sizes"] == {"i": 16, "j": 384, "k": 16}
    assert list(kernel["tile_sizes"]) == ["i", "j", "k"]
    assert kernel["parallel"] == ["i", "j"]
    assert kernel["optimal"] == "proven"
    assert set(kernel["references"][0]) == {
        "array",
        "access",
        "statements",
        "memory",
        "placement",
        "cma",
        "temporal",
        "spatial",
    }
    assert kernel["references"][1]["memory"] == "shared"
    assert kernel["usage"]["l1"] == {
        "title": "L1 cache",
        "used": 98304,
        "available": 98304,
        "unit": "bytes",
        "binding": True,
    }


def test_a_selection_survives_json(selection: Selection) -> None:
    text = json.dumps(selection.to_dict(), allow_nan=False)
    back = Selection.from_dict(json.loads(text))
    assert back == selection
    assert hash(back) == hash(selection)
    assert back.to_dict() == selection.to_dict()


@pytest.mark.parametrize("document", [{}, {"schema_version": 99}, {"schema_version": "1"}])
def test_another_schema_is_the_users_mistake(document: Any) -> None:
    with pytest.raises(InputError) as caught:
        Selection.from_dict(document)
    assert caught.value.code == "EATSS-M010"
