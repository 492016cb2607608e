"""The model's best candidates measured on a card of a script: who wins, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.base.cache import Cache
from eatss.base.codec import decode
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodeRequest, Recipe
from eatss.session.jit import tuning
from eatss.session.jit.programs import CodeJob
from eatss.session.jit.tuning import NotTunedError, Tuned, tuned
from tests.session.jit.fake_cupy import FakeCupy
from tests.session.jit.sources import KERNELS, random

CARDS = "tests.session.jit.scripted_candidates:"
SIZES = {"NI": 512, "NJ": 512, "NK": 512}
JOB = CodeJob(
    source=str(KERNELS / "matmul.c"),
    reading=Reading(),
    sizes=tuple(SIZES.items()),
    profile=load_profile("h200"),
    choosing=SelectOptions(target="cuda"),
    wanted=CodeRequest(),
)

Tune = Callable[..., Tuned]


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch) -> Tune:
    """Return ``tuned`` for a card of a script, where nothing has to be compiled."""
    monkeypatch.setattr(tuning, "_compile_ahead", lambda *given: None)

    def done(card: str, cache: Cache | None = None, job: CodeJob = JOB) -> Tuned:
        return tuned(job, SIZES, 0, "Scripted", 14.0, cache, card=CARDS + card)

    return done


def test_what_is_surely_better_wins(tune: Tune) -> None:
    winner = tune("OthersAreFaster")
    assert winner.label != "model"
    assert winner.measured >= 2
    assert winner.time_ratio == pytest.approx(0.5, rel=0.01)
    model = tune("OthersAreSlower")
    assert model.recipe != winner.recipe
    assert (model.label, model.time_ratio, model.energy_ratio) == ("model", 1, 1)


def test_where_nothing_can_be_measured_there_is_no_winner(tune: Tune, tmp_path: Path) -> None:
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

    def found(*given: Any) -> Tuned:
        asked.append(given)
        return Tuned(
            recipe=recipe, label="k-1", time_ratio=0.5, energy_ratio=0.5, measured=2, seconds=20
        )

    monkeypatch.setattr(tuning, "tuned", found)
    tuned_one = eatss.jit(KERNELS / "matmul.c", gpu="h200", cache=cache, tune="20s")
    for _ in range(2):
        want = arrays[0] + arrays[1] @ arrays[2]
        tuned_one(*map(cupy.array, arrays))
        np.testing.assert_allclose(arrays[0], want, rtol=1e-13)
    ((_, sizes, device, name, seconds, _),) = asked
    assert (sizes, device, name, seconds) == ({"NI": 9, "NJ": 9, "NK": 9}, 0, "Fake card", 20)
    on_card = [cupy.array(one) for one in arrays]
    assert tuned_one.program_for(*on_card).kernels == other.kernels
    assert plain.program_for(*on_card).kernels != other.kernels
    tuned_one(*(one.copy() for one in arrays))
    assert len(asked) == 1, "the CPU is not measured"


def test_who_asked_for_tuning_is_told_where_there_was_none(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> Tuned:
        raise NotTunedError("there is no meter")

    monkeypatch.setattr(tuning, "tuned", nothing)
    product = eatss.jit(KERNELS / "matmul.c", gpu="h200", tune="20s")
    arrays = [random(8, 8, seed=seed) for seed in range(3)]
    want = arrays[0] + arrays[1] @ arrays[2]
    with pytest.warns(RuntimeWarning, match="'matmul.c' was not tuned, .*: there is no meter"):
        product(*map(cupy.array, arrays))
    np.testing.assert_allclose(arrays[0], want, rtol=1e-13)
