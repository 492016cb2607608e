"""What ``eatss measure`` prints of hand-made measurements."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from eatss.measurement.measurement import (
    Counter,
    KernelCounters,
    LoadState,
    Measurement,
    Missing,
    measurement_from_dict,
)
from eatss.report.measurement import render_measurements
from eatss.report.render import bytes_amount, figure, milliseconds, ratio_text, seconds, with_prefix
from tests.report.measurements import failed, measured, method, ratio, window


def table(*measurements: Measurement) -> str:
    return render_measurements(measurements, "table")


def test_a_good_measurement_reads_at_a_glance() -> None:
    text = table(measured())
    head, card, names, values, *_ = text.splitlines()
    assert head == "gemm  selected  ok"
    assert card == "NVIDIA H200, driver 580.159, CUDA 13.0, double, NI=4000 NJ=4000 NK=4000"
    assert " ".join(names.split()) == "ms ± J ± W idle W GFLOP/s GFLOP/J windows"
    assert " ".join(values.split()) == "7.000 ±0.1% 4.800 ±0.6% 686 94.1 18286 26.7 5"


def test_the_method_the_meter_and_how_sure_stand_below() -> None:
    text = " ".join(table(measured()).split())
    assert "5 windows of 2.0 s or more; 20 or more values of the NVML energy counter" in text
    assert "interval narrow enough" in text
    assert "4.142 J without what the idle card draws" in text
    assert "NVML power samples: 1.2 % more" in text
    assert "1545–1980 MHz, 3201 MHz memory, 63 °C; held back: power cap" in text
    assert "nvrtc, launched by a CUDA graph; overwritten inputs restored between windows" in text
    assert "checked the original at NI=37 NJ=41 NK=43" in text


def test_a_window_shorter_than_asked_for_is_not_called_longer() -> None:
    short = replace(window(), duration_s=1.5)
    assert "1 window of 1.5 s or more" in table(measured(windows=(short,)))


def test_unknown_throttling_is_not_called_none() -> None:
    for dark in (None, LoadState()):
        text = table(measured(windows=(replace(window(), during=dark),)))
        assert "clocks   unknown whether anything held them back" in text
    calm = LoadState(samples=1, throttle=())
    text = table(measured(windows=(replace(window(), during=calm),)))
    assert "clocks   not held back" in text


def test_what_ended_by_the_budget_says_so() -> None:
    text = table(measured(method=method(ended="budget")))
    assert "the budget ended before the interval was narrow enough" in " ".join(text.split())


def test_an_unchecked_program_says_that_it_may_be_wrong() -> None:
    assert "nothing: results may be wrong" in table(measured(method=method(checked=())))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("rejected by the model", "kernel0 needs 2 MiB of shared memory"),
        ("compile error", "error: expected a ';'"),
        ("launch error", "too many resources requested for launch"),
        ("wrong result", "C[0][0] is 2, the original gives 1"),
        ("timeout", "a run took longer than 60 s"),
    ],
)
def test_a_failure_shows_status_and_reason_and_no_figures(status: str, reason: str) -> None:
    text = table(failed("selected", status, reason))
    assert text.splitlines()[0].endswith(status)
    assert f"{status}: {reason}" in text
    assert "GFLOP/s" not in text


def test_an_unstable_measurement_shows_its_figures_with_the_reason() -> None:
    text = table(measured(status="unstable", reason="energy is known to ±8 % only"))
    assert "unstable: energy is known to ±8 % only" in text
    assert "7.000" in text


def test_what_was_not_measured_is_a_dash_with_its_reason_and_never_a_zero() -> None:
    names = ("energy_j", "power_w", "gflops_per_joule")
    gaps = tuple(Missing(what=name, reason="no sensor answers") for name in names)
    nothing: dict[str, Any] = dict.fromkeys((*names, "energy_estimate", "net_energy_j"))
    text = table(measured(missing=gaps, **nothing))
    assert "energy_j, power_w, gflops_per_joule: no sensor answers" in text
    assert " ".join(text.splitlines()[3].split()) == "7.000 ±0.1% - - 94.1 18286 - 5"


def test_what_the_failure_explains_is_not_said_twice() -> None:
    found = failed("selected", "timeout", "too slow")
    found = replace(found, missing=(Missing(what="time_s", reason="too slow"),))
    assert table(found).count("too slow") == 1


def test_what_follows_from_another_gap_is_not_said_again() -> None:
    gaps = (
        Missing(what="energy_j", reason="no sensor answers"),
        Missing(what="gflops_per_joule", reason="energy_j is not known"),
    )
    text = table(measured(missing=gaps))
    assert "energy_j: no sensor answers" in text
    assert "is not known" not in text


def test_tile_sizes_are_shown_once_where_kernels_share_them() -> None:
    sizes = (("i", 32), ("j", 64))
    assert "tiles    i 32, j 64\n" in table(measured(tile_sizes=(("k0", sizes), ("k1", sizes))))
    text = table(measured(tile_sizes=(("k0", sizes), ("k1", ()))))
    assert "tiles    k0: i 32, j 64; k1: none\n" in text


def test_remarks_are_shown() -> None:
    assert "note     another process used the card" in table(
        measured(notes=("another process used the card",))
    )


def test_counters_are_named_for_people_with_units() -> None:
    counters = (
        Counter(name="dram__bytes_read.sum", value=512 * 2**20, unit="byte"),
        Counter(name="smsp__inst_executed.sum", value=5.2123e10, unit="inst"),
        Counter(name="gpu__time_duration.sum", value=7.1e-3, unit="s"),
        Counter(name="other.sum", value=12.0, unit=""),
    )
    kernel = KernelCounters(kernel="gemm_k0", launches=3, counters=counters)
    lines = [line.split() for line in table(measured(counters=(kernel,))).splitlines()]
    assert ["gemm_k0", "launches", "3"] in lines
    assert ["DRAM", "read", "512", "MiB"] in lines
    assert ["warp", "instructions", "52.12", "G"] in lines
    assert ["time", "when", "counted", "7.100", "ms"] in lines
    assert ["other.sum", "12"] in lines


def test_the_table_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = table(measured()).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split()[-1] == "5"


def test_json_holds_everything_and_can_be_read_back() -> None:
    found = [measured(), failed("32", "timeout", "too slow")]
    document = json.loads(render_measurements(found, "json"))
    assert [measurement_from_dict(one) for one in document["measurements"]] == found
    assert document["measurements"][1]["time_s"] is None


def test_csv_has_a_line_a_variant_and_leaves_out_what_is_not_known() -> None:
    text = render_measurements([measured(), failed("32", "timeout", "slow, too slow")], "csv")
    good, bad = csv.DictReader(StringIO(text))
    assert (good["variant"], good["status"], good["time_s"]) == ("selected", "ok", "0.007")
    assert float(good["energy_j_low"]) < float(good["energy_j"]) < float(good["energy_j_high"])
    assert (good["sizes"], good["windows"]) == ("NI=4000,NJ=4000,NK=4000", "5")
    assert good["tile_sizes"] == "kernel0:i=32,j=64,k=16"
    assert (bad["time_s"], bad["energy_j"], bad["reason"]) == ("", "", "slow, too slow")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.0012345, "0.001234"), (18285.7, "18286"), (1e9, "1000000000")],
)
def test_figures_have_four_digits_and_no_exponents(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_amounts_read_well() -> None:
    assert milliseconds(0.007) == "7.000"
    assert [bytes_amount(value) for value in (12, 2048, 3 * 2**40)] == [
        "12.0 B",
        "2.00 KiB",
        "3.00 TiB",
    ]
    assert [with_prefix(value) for value in (12, 5200, 5.2e6)] == ["12", "5.200 k", "5.200 M"]
    assert [seconds(value) for value in (0.5, 12.3, 200)] == ["0.50 s", "12 s", "3 min 20 s"]


def test_an_interval_has_as_many_digits_as_it_deserves() -> None:
    assert ratio_text(ratio(1.02, 0.02)) == "1.020 [1.000, 1.040]"
    assert ratio_text(ratio(2.0, 0.2)) == "2.00 [1.60, 2.40]"
    assert ratio_text(ratio(100.0, 0.001)) == "100.0 [99.9, 100.1]"
    assert ratio_text(ratio(1.0, 0.0)) == "1.000 [1.000, 1.000]"
    assert ratio_text(replace(ratio(1.5), low=None, high=None)) == "1.500"
    assert ratio_text(None) == "-"
