"""A card of a user's own class is opened with what the class takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from eatss.measurement.card import open_card


@dataclass
class Plain:
    device: int | str
    compiler: str


@dataclass
class Told(Plain):
    nvcc: str | None = None


def of_any(**given: Any) -> dict[str, Any]:
    return given


@pytest.mark.parametrize(
    ("name", "told", "told_none"),
    [
        ("Plain", Plain(0, "nvcc"), Plain(0, "nvcc")),
        ("Told", Told(0, "nvcc", "/opt/nvcc"), Told(0, "nvcc")),
        (
            "of_any",
            {"device": 0, "compiler": "nvcc", "nvcc": "/opt/nvcc"},
            {"device": 0, "compiler": "nvcc"},
        ),
    ],
)
def test_only_a_class_of_that_keyword_is_told_the_compiler(
    name: str, told: object, told_none: object
) -> None:
    path = f"{__name__}:{name}"
    assert open_card(path, device=0, compiler="nvcc", nvcc="/opt/nvcc") == told
    assert open_card(path, device=0, compiler="nvcc") == told_none
