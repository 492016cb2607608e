"""Which targets, objectives and models go together, and what is chosen where one is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.choose.options import SelectOptions
from eatss.report.selection import selection_table
from eatss.session.session import Session

KERNELS = data_directory("kernels")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({}, ("prediction", "energy")),
        ({"objective": "time"}, ("prediction", "time")),
        ({"objective": "paper"}, ("paper", "paper")),
        ({"model": "artifact"}, ("artifact", "paper")),
        ({"uniform": True}, ("paper", "paper")),
        ({"uniform": True, "objective": "paper"}, ("paper", "paper")),
        ({"target": "cuda"}, ("prediction", "energy")),
        ({"target": "cuda", "uniform": True}, ("paper", "paper")),
        ({"target": "cuda", "objective": "paper"}, ("paper", "paper")),
    ],
)
def test_what_is_left_out_follows_from_what_is_given(
    asked: dict[str, Any], meant: tuple[str, str]
) -> None:
    assert SelectOptions(**asked).resolved() == meant


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"model": "paper", "objective": "energy"}, "has an objective of its own"),
        ({"uniform": True, "objective": "energy"}, "belong to the paper's objective"),
        ({"model": "prediction", "objective": "paper"}, "has an objective of its own"),
    ],
)
def test_what_does_not_go_together_is_refused(asked: dict[str, Any], why: str) -> None:
    with pytest.raises(eatss.InputError, match=why) as caught:
        SelectOptions(**asked)
    (finding,) = caught.value.diagnostics
    assert finding.code == "EATSS-C012"
    assert finding.hint


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("target", "target is 'voodoo'"),
        ("objective", "there is no objective 'voodoo'"),
    ],
)
def test_a_word_that_is_none_of_them_is_refused(option: str, said: str) -> None:
    with pytest.raises(eatss.InputError, match=said):
        SelectOptions(**{option: "voodoo"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "objective",
    [
        "energy",
        "edp",
    ],
)
def test_what_is_least_is_least_in_what_was_asked_for(objective: str) -> None:
    def cost(selection: eatss.Selection) -> float:
        (kernel,) = selection.kernels
        found = kernel.predicted
        assert found is not None
        return {
            "energy": found.energy_j,
            "time": found.time_s,
            "edp": found.energy_j * found.time_s,
        }[objective]

    session = Session(KERNELS / "gemm.c", cut="ppcg")
    asked: Any = objective
    best = session.select("a100", SelectOptions(objective=asked))
    assert best.options.objective == objective
    others: tuple[Any, ...] = ("energy", "time", "edp")
    for other in others:
        there = session.select("a100", SelectOptions(objective=other))
        assert cost(best) <= cost(there) * 1.0001


def test_a_kept_default_says_so_and_hands_ppcg_nothing() -> None:
    selection = eatss.select(KERNELS / "2mm.c", gpu="a100")
    kept = replace(
        selection, kernels=tuple(replace(k, keeps_default=True) for k in selection.kernels)
    )
    assert kept.ppcg_arguments == ()
    assert "PPCG's default is kept" in selection_table(kept)
    assert kept.to_dict()["ppcg_arguments"] == []


@pytest.mark.parametrize(
    "card",
    [
        "xavier",
        "h200",
    ],
)
def test_no_card_is_expected_to_draw_more_than_its_limit(card: str) -> None:
    limit_w = eatss.load_profile(card).tdp_w
    assert limit_w is not None
    for kernel in eatss.select(KERNELS / "gemm.c", gpu=card).kernels:
        assert kernel.predicted is not None
        assert 0 < kernel.predicted.power_w <= limit_w * 1.000001


def test_a_bound_has_the_unit_of_what_is_least() -> None:
    options = SelectOptions(target="cuda", objective="edp", gap=0.9)
    (kernel,) = (found := Session(KERNELS / "mvt.c").select("h200", options)).kernels[:1]
    text = " ".join(str(selection_table(found)).split())
    assert f"lower bound, margins included: {kernel.bound} pJ s" in text
    almost = replace(found, kernels=(replace(kernel, bound=kernel.objective - 1),))
    assert f"margins included: {kernel.objective - 1} pJ s (" in selection_table(almost)
    assert "0.0% below" not in selection_table(almost)
