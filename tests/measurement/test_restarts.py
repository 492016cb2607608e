"""Every way to fail, through a real worker process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from eatss.measurement.api import measure_variants
from eatss.measurement.job import Progress
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions, Variant
from tests.measurement.scripted_card import PATH, Folders

pytestmark = pytest.mark.usefixtures("heeded_signals")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    made = Folders(tmp_path)
    monkeypatch.setenv("SCRIPTED_CARD", str(made.card()))
    return made


def measured(variants: list[Variant], **options: Any) -> dict[str, Measurement]:
    found = measure_variants(variants, MeasureOptions(**options), card=PATH)
    return {measurement.variant: measurement for measurement in found}


def is_right(measurement: Measurement) -> bool:
    assert measurement.energy_j is not None
    return measurement.ok and abs(measurement.energy_j - 5.0) < 0.05


def test_failures_that_are_told_leave_the_others_alone(folders: Folders) -> None:
    variants = [
        folders.variant("typo", fails_at="load", fails_by="compile error"),
        folders.variant("large", fails_at="load", fails_by="launch error"),
        folders.variant("good"),
        folders.variant("wrong", fails_at="check", fails_by="wrong"),
        folders.variant("other", result=2.0),
        folders.variant("late", fails_at="window", fails_in_window=2),
        Variant(label="rejected", directory=None, rejection="no tile sizes fit"),
        folders.variant("wild", noise=0.2),
    ]
    found = measured(variants, budget_s=15.0)
    assert [(label, m.status) for label, m in found.items()] == [
        ("typo", "compile error"),
        ("large", "launch error"),
        ("good", "ok"),
        ("wrong", "wrong result"),
        ("other", "wrong result"),
        ("late", "launch error"),
        ("rejected", "rejected by the model"),
        ("wild", "unstable"),
    ]
    assert found["typo"].reason == "error: expected a ';'"
    assert found["large"].reason == "too many resources requested for launch"
    assert is_right(found["good"])
    late = found["late"]
    assert len(late.windows) == 1
    assert late.time_s is None
    assert late.method.ended == "failed"
    assert all(m.cost("time") == float("inf") for m in found.values() if m.time_s is None)


def test_a_hung_kernel_is_ended_by_its_timeout(folders: Folders) -> None:
    variants = [
        folders.variant("hangs", fails_at="first run", fails_by="hang"),
        folders.variant("good"),
    ]
    begin = time.monotonic()
    found = measured(variants, timeout_s=0.1)
    assert time.monotonic() - begin < 20
    assert found["hangs"].status == "timeout"
    assert found["hangs"].reason == "'first run' did not end within 0.1 s"
    assert is_right(found["good"])


def test_a_worker_that_dies_in_a_window_takes_one_variant_along(folders: Folders) -> None:
    variants = [
        folders.variant("good"),
        folders.variant("dies", fails_at="window", fails_by="segv", fails_in_window=2),
    ]
    found = measured(variants)
    assert found["dies"].status == "launch error"
    assert "the measuring process was ended by signal SIGSEGV" in found["dies"].reason
    assert len(found["dies"].windows) == 1
    assert is_right(found["good"])
    assert len(found["good"].windows) == 3
    assert found["good"].method.checked == ("the original at N=37",)


def test_net_energy_rests_on_the_cold_card_though_a_worker_dies(folders: Folders) -> None:
    def warm(progress: Progress) -> None:
        if progress.windows_done == 1:
            folders.card(idle_w=130.0)

    variants = [
        folders.variant("dies", fails_at="window", fails_by="segv", fails_in_window=2),
        folders.variant("good"),
    ]
    _, good = measure_variants(variants, MeasureOptions(), progress=warm, card=PATH)
    assert is_right(good)
    assert good.idle_power_w == pytest.approx(100.0)


def test_an_interrupt_keeps_what_is_done(folders: Folders) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.windows_done == 3:
            raise KeyboardInterrupt

    variants = [
        folders.variant("failed", fails_at="load"),
        folders.variant("a"),
        folders.variant("b"),
    ]
    found = measure_variants(variants, MeasureOptions(), progress=interrupt, card=PATH)
    assert [measurement.variant for measurement in found] == ["failed", "a", "b"]
    assert [measurement.method.ended for measurement in found] == [
        "failed",
        "interrupted",
        "interrupted",
    ]
    assert sum(len(measurement.windows) for measurement in found) == 3
    assert [len(one.windows) for one in found[1:]] == [1, 2]
    assert found[1].status == "unstable"
    assert found[1].reason == "time rests on one window, so nothing is known of its spread"
    assert found[2].status == "ok"
    assert found[2].time_s == pytest.approx(0.01)
