"""One chain: what is found out about a source is found out once."""

from __future__ import annotations

from typing import Any

import pytest

from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodeRequest
from eatss.session import analysis
from eatss.session.session import Session

ATAX = data_directory("kernels") / "atax.c"
H200 = load_profile("h200")


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    calls: list[object] = []
    original = getattr(module, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return original(*arguments, **named)

    monkeypatch.setattr(module, name, noted)
    return calls


def test_a_source_is_analysed_once_for_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    analysed = counted(monkeypatch, analysis, "analyse")
    session = Session(ATAX, code=True)
    selection = session.select(H200, SelectOptions(target="cuda"))
    for tile in (None, {"i": 32}):
        recipe = session.recipe(selection, H200, CodeRequest(tiles=tile))
        assert session.generate(recipe, H200).kernels
    assert len(analysed) == 1


def test_reading_with_symbolic_sizes_reads_the_numbers_once() -> None:
    session = Session(ATAX, Reading(defines={"M": 200}))
    assert session.parsed_symbolic.numeric is session.parsed
