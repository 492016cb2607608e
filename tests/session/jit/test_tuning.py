"""The model's best candidates measured on a card of a script: who wins, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.base.cache import Cache
from eatss.base.codec import decode
from eatss.cards import load_profile
from eatss.lower.recipe import Recipe
from eatss.session.jit import tuning
from eatss.session.jit.programs import Maker
from eatss.session.jit.tuning import NotTunedError, tuned
from tests.session.jit.fake_cupy import FakeCupy
from tests.session.jit.sources import KERNELS, random

CARDS = "tests.session.jit.scripted_candidates:"
SIZES = {"NI": 512, "NJ": 512, "NK": 512}
MAKER = Maker(
    name="matmul",
    source=str(KERNELS / "matmul.c"),
    sizes=tuple(SIZES.items()),
    profile=load_profile("h200"),
)


@pytest.fixture(autouse=True)
def _two_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two candidates, whatever time there is: it runs while they are generated."""
    monkeypatch.setattr(tuning, "LEAST_S", 1000.0)


def tune(card: str, cache: Cache | None = None) -> Recipe:
    """Return the winner on a card of a script."""
    maker = replace(MAKER, cache=cache)
    return tuned(maker, SIZES, 0, "Scripted", 90.0, card=CARDS + card)


def test_what_is_surely_better_wins_and_is_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    winner = tune("OthersAreFaster", cache)
    assert tune("OthersAreSlower") != winner
    assert tune("Forbidden", cache) == winner


def test_where_nothing_can_be_measured_there_is_no_winner(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    with pytest.raises(NotTunedError, match="no candidate ran"):
        tune("NothingRuns", cache)
    assert not list(cache.folder.glob("tuned/*"))


def test_a_callable_runs_the_winner(
    cupy: FakeCupy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    asked: list[Any] = []
    plain = eatss.jit(KERNELS / "matmul.c", gpu="h200", cache=cache)
    arrays = [random(9, 9, seed=seed) for seed in range(3)]
    other = eatss.codegen(
        KERNELS / "matmul.c", gpu="h200", tiles={"i": 16, "j": 32, "k": 16}, cache=cache
    )
    recipe: Recipe = decode(Recipe, other.recipe)

    def found(*given: Any) -> Recipe:
        asked.append(given)
        return recipe

    monkeypatch.setattr(tuning, "tuned", found)
    tuned_one = eatss.jit(KERNELS / "matmul.c", gpu="h200", cache=cache, tune="20s")
    for _ in range(2):
        want = arrays[0] + arrays[1] @ arrays[2]
        tuned_one(*map(cupy.array, arrays))
        np.testing.assert_allclose(arrays[0], want, rtol=1e-13)
    ((_, sizes, device, name, seconds),) = asked
    assert (sizes, device, seconds) == ({"NI": 9, "NJ": 9, "NK": 9}, 0, 20)
    assert "Fake card" in name
    on_card = [cupy.array(one) for one in arrays]
    assert tuned_one.program_for(*on_card).kernels == other.kernels
    assert plain.program_for(*on_card).kernels != other.kernels
    tuned_one(*(one.copy() for one in arrays))
    assert len(asked) == 1, "the CPU is not measured"


def test_who_asked_for_tuning_is_told_where_there_was_none(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> Recipe:
        raise NotTunedError("there is no meter")

    monkeypatch.setattr(tuning, "tuned", nothing)
    product = eatss.jit(KERNELS / "matmul.c", gpu="h200", tune="20s")
    arrays = [random(8, 8, seed=seed) for seed in range(3)]
    want = arrays[0] + arrays[1] @ arrays[2]
    with pytest.warns(RuntimeWarning, match="'matmul.c' was not tuned, .*: there is no meter"):
        product(*map(cupy.array, arrays))
    np.testing.assert_allclose(arrays[0], want, rtol=1e-13)
