"""Variants of a program by turns, and the ratios that come of it."""

from __future__ import annotations

import json

import pytest

from eatss.measurement.api import compare
from tests.measurement.scripted_card import CardScript, Folders, ScriptedCard, measured

NOISE = 0.003


def windows_in_order(card: ScriptedCard) -> list[str]:
    return [label for what, label in card.log if what == "window"]


def test_variants_take_turns_in_alternating_order(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript())
    variants = [folders.variant(label, time_s=0.01) for label in "abc"]
    measured(variants, card=card)
    assert "".join(windows_in_order(card)) == "abccbaabc"


TRIALS = 60


def test_ratios_cover_the_truth_under_common_drift(folders: Folders) -> None:
    """A scatters by 0.2 %, B by 1 %, and both grow by 0.5 % a round."""
    labels = {"a": {"time_s": 0.01, "noise": 0.002}, "b": {"time_s": 0.02, "noise": 0.01}}
    variants = [folders.variant(label, drift=0.001, **script) for label, script in labels.items()]
    hits, widths = 0, list[float]()
    for seed in range(TRIALS):
        for variant in variants:
            assert variant.directory is not None
            file = variant.directory / "script.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"seed": seed}))
        found = measured(variants, check=False)
        slowdown = compare(tuple(found.values()), "a").row("b").speedup
        assert slowdown is not None
        assert slowdown.low is not None
        assert slowdown.high is not None
        hits += slowdown.low <= 0.5 <= slowdown.high
        widths.append((slowdown.high - slowdown.low) / slowdown.value)
    assert hits / TRIALS > 0.9
    assert sum(widths) / TRIALS < 0.012  # of the scatter, and not of the drift


def test_drift_that_hits_all_alike_leaves_ratios_alone(folders: Folders) -> None:
    variants = [
        folders.variant("a", time_s=0.02, drift=0.002),
        folders.variant("b", time_s=0.01, drift=0.002),
    ]
    found = measured(variants, least_windows=4, budget_s=12.0)
    speedup = compare(tuple(found.values()), "a").row("b").speedup
    assert speedup is not None
    assert speedup.value == pytest.approx(2.0, rel=0.003)
