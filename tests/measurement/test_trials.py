from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement import Progress, Variant, measure_variants, trials
from eatss.measurement.measurement import CardState
from eatss.measurement.metering import Metering
from eatss.measurement.meters.meter import Meter, MeterError
from eatss.measurement.options import MeasureOptions
from eatss.program import save_program
from tests.measurement.scripted_card import (
    CardScript,
    Folders,
    ScriptedCard,
    matmul,
    measured,
)

NOISE = 0.003


def within(found: float | None, truth: float, share: float) -> bool:
    return found is not None and abs(found - truth) <= share * truth


def test_time_energy_and_power_are_those_of_the_script(folders: Folders) -> None:
    found = measured([folders.variant("a", time_s=0.003, power_w=600.0, noise=NOISE)])["a"]
    assert found.status == "ok"
    assert found.method.ended == "interval"
    assert found.time_estimate is not None
    assert found.energy_estimate is not None
    assert found.time_estimate.low is not None
    assert found.time_estimate.high is not None
    assert found.time_estimate.low <= 0.003 <= found.time_estimate.high
    assert found.energy_estimate.low is not None
    assert found.energy_estimate.high is not None
    assert found.energy_estimate.low <= 1.8 <= found.energy_estimate.high
    assert within(found.power_w, 600.0, 0.01)


def test_the_power_of_a_card_that_wakes_up_is_left_out(folders: Folders) -> None:
    found = measured([folders.variant("a", power_w=600.0)])["a"]
    assert found.power_w == pytest.approx(600.0, rel=1e-3)
    assert [reading.power_w for window in found.windows for reading in window.readings] == (
        pytest.approx([600.0] * 6, rel=0.01)
    )


def test_net_energy_leaves_out_what_the_idle_card_draws(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(idle_w=90.0))
    found = measured([folders.variant("a", time_s=0.01, power_w=500.0)], card=card)["a"]
    assert found.idle_power_w == pytest.approx(90.0)
    assert found.energy_j == pytest.approx(5.0, rel=1e-3)
    assert found.net_energy_j == pytest.approx(4.1, rel=1e-3)


def test_windows_hold_enough_time_and_updates(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(period_s=0.25))
    found = measured([folders.variant("a", time_s=0.01)], card=card)["a"]
    assert all(window.duration_s >= 2.0 for window in found.windows)
    assert all(window.readings[0].updates >= 20 for window in found.windows)
    assert not found.notes


def test_windows_grow_with_the_period_of_the_sensor(folders: Folders) -> None:
    class Slowing(ScriptedCard):
        def state(self) -> CardState:
            self.script = replace(self.script, period_s=0.3)  # from the first window on
            return super().state()

    found = measured([folders.variant("a")], card=Slowing(script=CardScript()))["a"]
    assert all(window.readings[0].updates >= 20 for window in found.windows)
    assert all(window.duration_s > 6.0 for window in found.windows)


def test_a_sensor_that_is_too_slow_for_its_windows_is_remarked(folders: Folders) -> None:
    class Tiring(ScriptedCard):
        def state(self) -> CardState:
            self.script = replace(self.script, period_s=1.2 * self.script.period_s)
            return super().state()

    found = measured([folders.variant("a")], card=Tiring(script=CardScript()))["a"]
    assert found.energy_j == pytest.approx(5.0, rel=0.01)
    assert found.notes[0].startswith("window 1 is shorter than asked for: ")


def test_a_card_that_waits_in_a_window_is_remarked(folders: Folders) -> None:
    class Waiting(ScriptedCard):
        def wake(self, seconds: float) -> None:
            super().wake(0.1)

    found = measured([folders.variant("a")], card=Waiting(script=CardScript()))["a"]
    assert found.time_s == pytest.approx(0.01)
    assert found.notes[0].startswith("in window 1 the card waited 4.")


def test_the_budget_ends_what_stays_noisy(folders: Folders) -> None:
    noisy = folders.variant("noisy", noise=0.01)
    found = measured([noisy], budget_s=20.0, target=0.005)["noisy"]
    assert found.method.ended == "budget"
    assert found.status == "ok"
    assert sum(window.duration_s for window in found.windows) < 25.0


def test_what_is_far_from_the_target_after_its_budget_is_unstable(folders: Folders) -> None:
    found = measured([folders.variant("wild", noise=0.2)], budget_s=20.0)["wild"]
    assert found.status == "unstable"
    assert "windows time is known to ±" in found.reason
    assert found.time_s is not None
    assert found.cost("time") == found.time_s


def test_a_run_longer_than_a_window_is_one_window(folders: Folders) -> None:
    found = measured([folders.variant("long", time_s=5.0, power_w=450.0)])["long"]
    assert [window.runs for window in found.windows] == [1, 1, 1]
    assert found.time_s == pytest.approx(5.0)
    assert found.power_w == pytest.approx(450.0, rel=1e-3)


def test_repeating_that_does_not_drift_restores_between_windows(folders: Folders) -> None:
    found = measured([folders.variant("a", overwrites=True)])["a"]
    assert found.method.restoring == "between windows"
    assert not found.notes


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
    assert found.energy_estimate is not None
    assert found.energy_estimate.low is not None
    assert found.energy_estimate.high is not None
    assert found.energy_estimate.low <= 2.0 <= found.energy_estimate.high
    assert any("drift: C holds infinities" in note for note in found.notes)


def test_gflops_and_ppw_come_from_the_counted_work(folders: Folders) -> None:
    found = measured([folders.variant("a", time_s=0.01, power_w=500.0)], sizes={"N": 2000})["a"]
    assert found.sizes == (("N", 2000),)
    assert found.flops == 2 * 2000**3
    assert found.least_bytes == 32 * 2000**2
    assert found.gflops == pytest.approx(1600.0, rel=1e-3)
    assert found.gflops_per_joule == pytest.approx(3.2, rel=1e-3)
    assert found.provenance.text_hash is not None
    assert found.provenance.source_hash is not None
    unknown = {missing.what for missing in found.missing}
    assert unknown <= {"revision"}  # eatss may be installed, not run from a checkout


def test_a_program_of_integers_has_no_rate_rather_than_zero(folders: Folders) -> None:
    variant = folders.variant("a", time_s=0.01, power_w=500.0)
    (entry,) = matmul().entries
    assert entry.work is not None
    assert variant.directory is not None
    counted = replace(entry, work=replace(entry.work, operations=()))
    save_program(replace(matmul(), entries=(counted,)), variant.directory)
    found = measured([variant])["a"]
    assert found.flops == 0
    assert found.gflops is found.gflops_per_joule is None
    reasons = {missing.what: missing.reason for missing in found.missing}
    assert reasons["gflops"] == reasons["gflops_per_joule"] == "no operation is of floating point"


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


def test_a_card_without_sensors_says_so(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(meters=()))
    found = measured([folders.variant("a")], card=card)["a"]
    reasons = {missing.what: missing.reason for missing in found.missing}
    assert "no sensor of energy or power answers here" in reasons["energy_j"]


def test_a_meter_that_fails_midway_keeps_the_energy_of_earlier_windows(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(dead_meter_after=6, meters=("counter",)))
    found = measured([folders.variant("a", noise=NOISE)], card=card)["a"]
    assert found.status == "ok"
    known = [window for window in found.windows if window.energy_j is not None]
    assert 0 < len(known) < len(found.windows)
    assert found.energy_j == pytest.approx(5.0, rel=0.02)
    assert found.notes == (
        f"energy rests on {len(known)} of {len(found.windows)} windows: "
        "the sensor stopped answering (load the driver again)",
    )


def test_another_meter_does_not_take_the_place_of_one_that_failed(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(dead_meter_after=3))
    found = measured([folders.variant("a")], card=card)["a"]
    assert found.method.meter == "scripted counter"
    assert found.energy_j is None


def test_a_meter_asked_for_by_name_that_is_gone_later_leaves_time() -> None:
    class Gone(ScriptedCard):
        def meters(self, choice: str) -> tuple[Meter, ...]:
            raise MeterError("the counter does not answer")

    found = Metering(Gone(script=CardScript()), "counter", keep="scripted counter")
    assert found.primary == "scripted counter"
    assert not found.works
    assert found.failure == (
        "the meter of earlier windows, scripted counter, is gone: the counter does not answer"
    )


def test_a_sensor_that_never_moves_gives_no_energy(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(frozen_meter=True))
    found = measured([folders.variant("a")], card=card)["a"]
    assert found.time_s == pytest.approx(0.01)
    assert found.energy_j is None
    assert found.idle_power_w is None
    assert {missing.what for missing in found.missing} >= {"energy_j", "idle_power_w"}


def test_a_meter_that_is_asked_for_and_is_not_there_is_refused(folders: Folders) -> None:
    with pytest.raises(InputError) as caught:
        measured([folders.variant("a")], meter="jetson")
    assert caught.value.code == "EATSS-E074"


def test_an_idle_power_that_changed_is_remarked(folders: Folders) -> None:
    class Warming(ScriptedCard):
        def sleep(self, seconds: float) -> None:
            idle_w = 94.0 if self.now() < 1010 else 130.0
            self.timeline.spend(seconds, idle_w)

    found = measured([folders.variant("a")], card=Warming(script=CardScript()))["a"]
    assert found.idle_power_w == pytest.approx(94.0)
    assert found.idle_power_after_w == pytest.approx(130.0)
    assert found.net_energy_j == pytest.approx(5.0 - 0.94, rel=1e-3)
    assert found.notes == (
        "the idle card drew 94 W before the windows and 130 W after them; "
        "net energy rests on the first",
    )


def test_the_cold_card_is_read_before_anything_is_loaded(folders: Folders) -> None:
    seen: list[str] = []

    class Heating(ScriptedCard):
        def load(self, *given: Any) -> Any:
            seen.append(f"{self.now() - 1000:.1f}")
            self.script = replace(self.script, idle_w=140.0)
            return super().load(*given)

    found = measured([folders.variant("a")], card=Heating(script=CardScript()))["a"]
    assert seen == ["2.5"]
    assert found.idle_power_w == pytest.approx(100.0)
    assert found.idle_power_after_w == pytest.approx(140.0)


def test_clocks_and_reasons_are_those_of_the_load(folders: Folders) -> None:
    card = ScriptedCard(
        script=CardScript(load_clock_mhz=1545, load_throttle=("software power cap",))
    )
    found = measured([folders.variant("a")], card=card)["a"]
    for window in found.windows:
        assert window.before.throttle == window.after.throttle == ()
        assert window.during is not None
        assert window.during.samples >= 9
        assert window.during.sm_clock_lowest_mhz == window.during.sm_clock_highest_mhz == 1545
        assert window.during.throttle == ("software power cap",)


def test_other_processes_on_the_card_are_remarked_for_all(folders: Folders) -> None:
    class Busy(ScriptedCard):
        def other_processes(self) -> tuple[str, ...]:
            windows = sum(what == "window" for what, _ in self.log)
            return ("process 7 (300 MiB)",) if windows else ()

    found = measured([folders.variant("a"), folders.variant("b")], card=Busy(script=CardScript()))
    for one in found.values():
        assert one.notes == (
            "after the last window the card was also used by process 7 (300 MiB): "
            "what that draws is in it",
        )


def test_not_knowing_of_other_processes_is_remarked_once(folders: Folders) -> None:
    found = measured([folders.variant("a")], card=ScriptedCard(script=CardScript(others=None)))
    assert found["a"].notes == ("whether other processes used the card is not known",)


def test_energy_is_not_known_where_the_host_holds_up_restorings(folders: Folders) -> None:
    script: dict[str, Any] = {"overwrites": True, "drifts_after": 5, "restore_s": 0.001}
    found = measured([folders.variant("a", restore_w=300.0, host_s=0.001, **script)])["a"]
    assert found.time_s == pytest.approx(0.01)
    assert found.energy_j is None
    reasons = {missing.what: missing.reason for missing in found.missing}
    assert "account for 91." in reasons["energy_j"]
    assert "the card waited for this machine" in reasons["energy_j"]


def test_a_budget_without_an_interval_is_unstable(folders: Folders) -> None:
    card = ScriptedCard(script=CardScript(dead_meter_after=5, meters=("counter",)))
    found = measured([folders.variant("a")], card=card, budget_s=1.0)["a"]
    known = [window for window in found.windows if window.energy_j is not None]
    assert (len(known), len(found.windows)) == (1, 2)
    assert found.status == "unstable"
    assert found.reason == "energy rests on one window, so nothing is known of its spread"


def test_one_window_is_enough_for_who_asks_for_one(folders: Folders) -> None:
    found = measured([folders.variant("a")], budget_s=1.0, least_windows=1)["a"]
    assert len(found.windows) == 1
    assert found.status == "ok"
    assert found.time_estimate is not None
    assert found.time_estimate.low is None
    assert found.notes == ("one window, as asked for: there is no interval",)


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


def test_checks_that_run_ahead_are_told_of_in_turn(folders: Folders) -> None:
    variants = [
        folders.variant("first", checks_apart=True),
        folders.variant("second", checks_apart=True, fails_at="check", fails_by="wrong"),
        folders.variant("third", checks_apart=True),
    ]
    found = measured(variants)
    assert [found[name].status for name in ("first", "second", "third")] == [
        "ok",
        "wrong result",
        "ok",
    ]
    assert found["third"].method.checked == (
        "the original at N=37",
        "the result of 'first' at full size",
    )


def test_unchecked_variants_say_that_nothing_was_compared(folders: Folders) -> None:
    found = measured([folders.variant("a", fails_at="check", fails_by="wrong")], check=False)
    assert found["a"].status == "ok"
    assert found["a"].method.checked == ()


def test_a_variant_that_was_rejected_is_reported_as_such(folders: Folders) -> None:
    rejected = Variant(label="no", directory=None, rejection="it needs 300 KiB of shared memory")
    found = measured([folders.variant("a"), rejected])
    assert found["no"].status == "rejected by the model"
    assert found["no"].reason == "it needs 300 KiB of shared memory"
    assert found["no"].program == "matmul"
    assert {missing.what for missing in found["no"].missing} >= {"time_s", "flops", "text_hash"}


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


@pytest.mark.parametrize(("window_s", "pace_s"), [(2.0, 0.1), (0.4, 0.05), (0.05, 0.02)])
def test_a_quick_pass_learns_its_pace_quickly(window_s: float, pace_s: float) -> None:
    assert trials.pace_s(MeasureOptions(least_window_s=window_s)) == pytest.approx(pace_s)
