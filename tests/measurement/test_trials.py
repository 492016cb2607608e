from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from eatss.measurement.api import measure_variants
from eatss.measurement.job import Progress
from eatss.measurement.measurement import Estimate
from tests.measurement.scripted_card import (
    CardScript,
    Folders,
    ScriptedCard,
    measured,
)
from tests.refusals import refusing

NOISE = 0.003


def within(found: float | None, truth: float, share: float) -> bool:
    return found is not None and abs(found - truth) <= share * truth


def covers(found: Estimate | None, truth: float) -> bool:
    if found is None or found.low is None or found.high is None:
        return False
    return found.low <= truth <= found.high


def test_time_energy_and_power_are_those_of_the_script(folders: Folders) -> None:
    found = measured([folders.variant("a", time_s=0.003, power_w=600.0, noise=NOISE)])["a"]
    assert found.status == "ok"
    assert found.method.ended == "interval"
    assert covers(found.time_estimate, 0.003)
    assert covers(found.energy_estimate, 1.8)
    assert within(found.power_w, 600.0, 0.01)


def test_windows_hold_enough_time_and_updates(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(period_s=0.25))
    found = measured([folders.variant("a", time_s=0.01)], card=card)["a"]
    assert all(window.duration_s >= 2.0 for window in found.windows)
    assert all(window.readings[0].updates >= 20 for window in found.windows)
    assert not found.notes


def test_what_is_far_from_the_target_after_its_budget_is_unstable(folders: Folders) -> None:
    found = measured([folders.variant("wild", noise=0.2)], budget_s=20.0)["wild"]
    assert found.status == "unstable"
    assert "windows time is known to ±" in found.reason
    assert found.time_s is not None
    assert found.cost("time") == found.time_s


def test_what_restoring_takes_is_subtracted(folders: Folders) -> None:
    variant = folders.variant(
        "a",
        time_s=0.004,
        power_w=500.0,
        noise=NOISE,
        overwrites=True,
        drifts_after=5,
        restore_s=0.001,
        restore_w=300.0,
    )
    found = measured([variant])["a"]
    assert found.method.restoring == "inside windows"
    assert found.time_s == pytest.approx(0.004, rel=0.01)
    assert covers(found.energy_estimate, 2.0)
    assert any("drift: C holds infinities" in note for note in found.notes)


def test_without_a_meter_time_is_still_measured(folders: Folders) -> None:
    found = measured([folders.variant("a")], meter="none")["a"]
    assert found.status == "ok"
    assert found.time_s == pytest.approx(0.01)
    assert found.energy_j is None
    assert found.method.meter is None
    reasons = {missing.what: missing.reason for missing in found.missing}
    assert reasons["energy_j"] == "no meter was asked for"
    assert reasons["idle_power_w"] == "no meter was asked for"
    assert reasons["gflops_per_joule"] == "energy_j is not known"


def test_a_meter_that_is_asked_for_and_is_not_there_is_refused(folders: Folders) -> None:
    with refusing("EATSS-E074"):
        measured([folders.variant("a")], meter="jetson")


def test_the_first_right_variant_is_the_reference_of_the_others(folders: Folders) -> None:
    variants = [
        folders.variant("first", fails_at="check", fails_by="wrong"),
        folders.variant("second"),
        folders.variant("third", result=2.0),
        folders.variant("fourth"),
    ]
    found = measured(variants)
    assert found["first"].status == "wrong result"
    assert found["third"].status == "wrong result"
    assert found["third"].reason == (
        "at full size the result differs from that of 'second': C[0] is 9 times off"
    )
    assert found["fourth"].method.checked == (
        "the original at N=37",
        "the result of 'second' at full size",
    )
    assert found["third"].cost("energy") == float("inf")


def test_progress_tells_what_runs_and_how_much_is_left(folders: Folders) -> None:
    seen: list[Progress] = []
    card = ScriptedCard(script=CardScript())
    measure_variants([folders.variant("a"), folders.variant("b")], progress=seen.append, card=card)
    stages = [stage for stage, _ in itertools.groupby(progress.stage for progress in seen)]
    assert stages[:6] == ["start", "idle power", "compile", "check", "first run", "compare"]
    assert next(p.window for p in seen if p.stage == "window") == 1
    assert seen[-1].variants_done == seen[-1].variants == 2
    assert seen[-1].windows_done == 6
    left = [progress.left_s for progress in seen]
    assert left[0] == 120.0
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0.0


@pytest.mark.parametrize("senseless", [{"target": "1%"}, {"budget_s": math.inf}, {"device": -1}])
def test_numbers_with_which_measuring_ends_never_or_means_nothing_are_refused(
    folders: Folders, senseless: dict[str, Any]
) -> None:
    with refusing("EATSS-E048", f"^error: {next(iter(senseless))} "):
        measured([folders.variant("a")], **senseless)
