"""Options of another kind than they take are told in a sentence, whoever is asked."""

from __future__ import annotations

from typing import Any

import pytest

import eatss
from eatss.base.diagnostics import InputError


@pytest.mark.parametrize("function", ["predict", "codegen"])
@pytest.mark.parametrize(
    "option",
    [
        {"tiles": [32, 32, 32]},
        {"tiles": (32, 32)},
        {"tiles": "32,32"},
        {"tiles": 32},
        {"block": "32"},
        {"block": 5},
        {"placements": ["A"]},
        {"share": [1]},
        {"stream": 5},
        {"parameters": [4000]},
        {"defines": "N=5"},
        {"defines": 5},
        {"include_dirs": "include"},
        {"include_dirs": 5},
    ],
    ids=str,
)
def test_another_kind_is_refused(function: str, option: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        getattr(eatss, function)("@gemm", gpu="h200", **option)
    (name,) = option
    assert refusal.value.code == "EATSS-C004"
    assert f"{name} is {option[name]!r}" in str(refusal.value)


def test_bytes_of_shared_memory_are_a_number() -> None:
    with pytest.raises(InputError, match="max_shared_memory is 'x'"):
        eatss.predict("@gemm", gpu="h200", max_shared_memory="x")  # type: ignore[arg-type]
