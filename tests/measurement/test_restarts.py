"""Every way to fail, through a real worker process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement import Measurement, MeasureOptions, Progress, Variant, measure_variants
from eatss.measurement.api import FRUITLESS_WORKERS
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


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("segv", "the measuring process was ended by signal SIGSEGV"),
        ("exit", "the measuring process ended with exit code 7"),
        ("bug", "eatss failed in 'window', please report it: ZeroDivisionError: division by zero"),
        ("lost", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_a_worker_that_dies_in_a_window_takes_one_variant_along(
    folders: Folders, how: str, reason: str
) -> None:
    variants = [
        folders.variant("good"),
        folders.variant("dies", fails_at="window", fails_by=how, fails_in_window=2),
    ]
    found = measured(variants)
    assert found["dies"].status == "launch error"
    assert reason in found["dies"].reason
    assert len(found["dies"].windows) == 1
    assert is_right(found["good"])
    begins = [window.begin_s for window in found["good"].windows]
    assert len(begins) == 3
    assert found["good"].method.checked == ("the original at N=37",)


def test_an_exception_of_the_worker_is_no_signal(folders: Folders) -> None:
    found = measured([folders.variant("bug", fails_at="load", fails_by="bug")])["bug"]
    assert found.reason == (
        "eatss failed in 'compile', please report it: ZeroDivisionError: division by zero"
    )


def test_a_worker_is_waited_for_before_it_is_ended(folders: Folders) -> None:
    """One that has told all and closed its output may take a while to end."""
    found = measured([folders.variant("slow", fails_at="window", fails_by="slow exit")])["slow"]
    assert found.reason == "the measuring process ended with exit code 7"


@pytest.mark.parametrize("again", [("power",), ()])
def test_another_meter_does_not_take_over_after_a_restart(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, again: tuple[str, ...]
) -> None:
    file = folders.card(meters=("counter",), meters_again=again)
    monkeypatch.setenv("SCRIPTED_CARD", str(file))
    variants = [
        folders.variant("good"),
        folders.variant("dies", fails_at="window", fails_by="exit", fails_in_window=2),
    ]
    good = measured(variants)["good"]
    assert good.method.meter == "scripted counter"
    energies = [window.energy_j for window in good.windows]
    assert energies[0] == pytest.approx(5.0, rel=0.01)
    assert set(energies[1:]) == {None}
    assert len(energies) == 3
    (gap,) = (note for note in good.notes if note.startswith("energy rests on"))
    assert "the meter of earlier windows, scripted counter, is gone" in gap


def test_a_fresh_worker_does_not_read_the_cold_card_again(folders: Folders) -> None:
    seen: list[str] = []
    variants = [
        folders.variant("dies", fails_at="check", fails_by="exit"),
        folders.variant("good"),
    ]

    def note(progress: Progress) -> None:
        if not seen or seen[-1] != progress.stage:
            seen.append(progress.stage)

    (_, good) = measure_variants(variants, MeasureOptions(), progress=note, card=PATH)
    assert is_right(good)
    assert seen.count("idle power") == 2
    assert seen.index("idle power") < seen.index("compile")
    assert good.idle_power_w == pytest.approx(100.0)
    assert good.idle_power_after_w == pytest.approx(100.0)


def test_windows_of_weeks_are_no_overflow(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_CARD", str(folders.card(meters=())))
    found = measured([folders.variant("a")], least_window_s=1e7)["a"]
    assert found.ok
    assert found.windows[0].duration_s > 1e7


def test_a_compiler_that_crashes_is_a_compile_error(folders: Folders) -> None:
    variants = [
        folders.variant("crashes", fails_at="load", fails_by="segv"),
        folders.variant("good"),
    ]
    found = measured(variants)
    assert found["crashes"].status == "compile error"
    assert "SIGSEGV" in found["crashes"].reason
    assert is_right(found["good"])


def test_a_vanished_device_is_reported_and_what_was_done_stays(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_CARD", str(folders.card(gone="once lost")))
    variants = [
        Variant(label="rejected", directory=None, rejection="no tile sizes fit"),
        folders.variant("first"),
        folders.variant("second", fails_at="window", fails_by="lost", fails_in_window=2),
    ]
    found = measured(variants)
    assert found["rejected"].status == "rejected by the model"
    assert found["second"].reason == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert found["first"].status == "launch error"
    assert found["first"].reason == "the card vanished: no CUDA-capable device is detected"
    assert len(found["first"].windows) == 1
    assert found["first"].device is not None


def test_what_a_vanished_card_told_before_is_kept(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_CARD", str(folders.card(gone="once lost")))
    lost: dict[str, Any] = {"fails_at": "window", "fails_by": "lost", "fails_in_window": 3}
    variants = [
        folders.variant("calm"),
        folders.variant("wild", noise=0.05),
        folders.variant("loses", **lost),
    ]
    found = measured(variants, least_windows=5)
    assert found["loses"].status == "launch error"
    calm, wild = found["calm"], found["wild"]
    assert (calm.status, wild.status) == ("ok", "unstable")
    assert calm.method.ended == wild.method.ended == "cut short"
    assert is_right(calm)
    assert calm.notes == (
        f"cut short after {len(calm.windows)} windows: "
        "the card vanished: no CUDA-capable device is detected",
    )


def test_a_card_that_kills_every_worker_is_given_up(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_CARD", str(folders.card(gone="crashes")))
    found = measured([folders.variant("a"), folders.variant("b")])
    assert FRUITLESS_WORKERS == 2
    for measurement in found.values():
        assert measurement.status == "launch error"
        assert measurement.reason == (
            "the card vanished: the measuring process ended with exit code 9"
        )


def test_a_machine_without_a_card_is_the_users_to_know(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_CARD", str(folders.card(gone="refuses")))
    with pytest.raises(InputError) as caught:
        measured([folders.variant("a")])
    assert caught.value.code == "EATSS-E999"
    assert caught.value.diagnostics[0].hint == "buy one"


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


def test_an_interrupt_before_anything_was_measured_is_an_interrupt(folders: Folders) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_variants([folders.variant("a")], MeasureOptions(), progress=interrupt, card=PATH)
