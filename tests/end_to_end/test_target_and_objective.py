"""Which targets, objectives and models go together, and what is chosen where one is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.choose.options import SelectOptions, resolve_model
from eatss.report.selection import selection_table
from eatss.session.session import Session

KERNELS = data_directory("kernels")
NOTHING: dict[str, Any] = {"target": "ppcg", "objective": None, "model": None, "published": False}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({}, ("prediction", "energy")),
        ({"objective": "time"}, ("prediction", "time")),
        ({"objective": "edp"}, ("prediction", "edp")),
        ({"objective": "paper"}, ("paper", "paper")),
        ({"model": "paper"}, ("paper", "paper")),
        ({"model": "eatss"}, ("eatss", "paper")),
        ({"model": "eatss", "objective": "paper"}, ("eatss", "paper")),
        ({"published": True}, ("eatss", "paper")),
        ({"published": True, "objective": "paper"}, ("paper", "paper")),
        ({"published": True, "model": "paper"}, ("paper", "paper")),
        ({"target": "cuda"}, ("prediction", "energy")),
        ({"target": "cuda", "objective": "energy"}, ("prediction", "energy")),
        ({"target": "cuda", "objective": "time"}, ("prediction", "time")),
        ({"target": "cuda", "objective": "edp"}, ("prediction", "edp")),
        ({"target": "cuda", "model": "prediction"}, ("prediction", "energy")),
        ({"target": "cuda", "published": True}, ("eatss", "paper")),
        ({"target": "cuda", "model": "eatss"}, ("eatss", "paper")),
        ({"target": "cuda", "objective": "paper"}, ("paper", "paper")),
    ],
)
def test_what_is_left_out_follows_from_what_is_given(
    asked: dict[str, Any], meant: tuple[str, str]
) -> None:
    assert resolve_model(**{**NOTHING, **asked}) == meant


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"model": "paper", "objective": "energy"}, "has an objective of its own"),
        ({"model": "eatss", "objective": "time"}, "has an objective of its own"),
        ({"published": True, "objective": "energy"}, "belong to the paper's objective"),
        ({"published": True, "objective": "edp"}, "belong to the paper's objective"),
        ({"model": "prediction", "objective": "paper"}, "has an objective of its own"),
        ({"target": "cuda", "published": True, "objective": "time"}, "belong to the paper's"),
    ],
)
def test_what_does_not_go_together_is_refused(asked: dict[str, Any], why: str) -> None:
    with pytest.raises(eatss.InputError, match=why) as caught:
        resolve_model(**{**NOTHING, **asked})
    (finding,) = caught.value.diagnostics
    assert finding.code == "EATSS-C012"
    assert finding.hint


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("target", "target is 'voodoo'"),
        ("objective", "there is no objective 'voodoo'"),
        ("model", "model is 'voodoo'"),
    ],
)
def test_a_word_that_is_none_of_them_is_refused(option: str, said: str) -> None:
    with pytest.raises(eatss.InputError, match=said):
        resolve_model(**{**NOTHING, option: "voodoo"})


@pytest.mark.parametrize("name", ["2mm", "jacobi-2d", "correlation"])
def test_a_predicted_selection_survives_json(name: str) -> None:
    selection = eatss.select(KERNELS / f"{name}.c", gpu="a100")
    again = eatss.Selection.from_dict(json.loads(json.dumps(selection.to_dict())))
    assert again == selection
    assert again.to_dict() == selection.to_dict()
    assert again.ppcg_arguments == selection.ppcg_arguments
    assert again.keeps_default == selection.keeps_default


def test_a_selection_for_generated_code_has_no_arguments_of_ppcg() -> None:
    selection = eatss.select(KERNELS / "gemm.c", gpu="h200", target="cuda")
    for name in ("ppcg_arguments", "ppcg_sizes"):
        with pytest.raises(eatss.InputError, match="target cuda") as caught:
            getattr(selection, name)
        assert caught.value.code == "EATSS-C013"
    document = selection.to_dict()
    assert document["ppcg_sizes"] is document["ppcg_arguments"] is None
    assert document["ppcg_max_shared_memory"] is None
    assert eatss.Selection.from_dict(document) == selection


@pytest.mark.parametrize("objective", ["energy", "time", "edp"])
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


@pytest.mark.long
def test_the_target_cuda_selects_what_codegen_selects(tmp_path: Path) -> None:
    selection = eatss.select(KERNELS / "gemm.c", gpu="h200", target="cuda")
    program = eatss.codegen(KERNELS / "gemm.c", gpu="h200")
    given = eatss.codegen(KERNELS / "gemm.c", gpu="h200", selection=selection)
    assert dict(program.kernels[0].tile_sizes) == dict(selection.kernels[0].tile_sizes)
    assert program == given


def test_a_kept_default_says_so_and_hands_ppcg_nothing() -> None:
    selection = eatss.select(KERNELS / "2mm.c", gpu="a100")
    kept = replace(
        selection, kernels=tuple(replace(k, keeps_default=True) for k in selection.kernels)
    )
    assert kept.ppcg_arguments == ()
    assert "PPCG's default is kept" in selection_table(kept)
    assert kept.to_dict()["ppcg_arguments"] == []


@pytest.mark.parametrize("card", ["xavier", "t4", "a100", "h200"])
def test_no_card_is_expected_to_draw_more_than_its_limit(card: str) -> None:
    limit_w = eatss.load_profile(card).tdp_w
    assert limit_w is not None
    for kernel in eatss.select(KERNELS / "gemm.c", gpu=card).kernels:
        assert kernel.predicted is not None
        assert 0 < kernel.predicted.power_w <= limit_w * 1.000001
