"""What measure and compare print and draw of hand-made measurements."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from eatss.measurement.api import compare
from eatss.measurement.measurement import (
    Counter,
    KernelCounters,
    LoadState,
    Measurement,
    Missing,
    comparison_from_dict,
    measurement_from_dict,
)
from eatss.report.measurement import render_comparison, render_measurements
from eatss.report.render import figure
from tests.report.measurements import (
    comparison,
    failed,
    failed_row,
    measured,
    method,
    row,
    window,
)


def table(*measurements: Measurement) -> str:
    return render_measurements(measurements, "table")


def test_a_good_measurement_reads_at_a_glance() -> None:
    text = table(measured())
    head, card, names, values, *_ = text.splitlines()
    assert head == "gemm  selected  ok"
    assert card == "NVIDIA H200, driver 580.159, CUDA 13.0, double, NI=4000 NJ=4000 NK=4000"
    assert " ".join(names.split()) == "ms ± J ± W GFLOP/s GFLOP/J windows idle W"
    assert " ".join(values.split()) == "7.000 ±0.1% 4.800 ±0.6% 685.7 18286 26.67 5 94.10"


def test_the_method_the_meter_and_how_sure_stand_below() -> None:
    text = " ".join(table(measured()).split())
    assert "5 windows of 2.0 s or more; 20 or more values of the NVML energy counter" in text
    assert "interval narrow enough" in text
    assert "4.142 J without what the idle card draws" in text
    assert "NVML power samples: 1.2 % more" in text
    assert "1545–1980 MHz, 3201 MHz memory, 63 °C; held back: power cap" in text
    assert "nvrtc, launched by a CUDA graph; overwritten inputs restored between windows" in text
    assert "checked the original at NI=37 NJ=41 NK=43" in text


def test_sensors_that_contradict_each_other_are_said_to() -> None:
    text = table(measured())
    assert "contradict" not in text
    first, other = window().readings
    strange = replace(other, power_w=0.7 * first.power_w)
    text = table(measured(windows=(replace(window(), readings=(first, strange)),)))
    assert "NVML power samples: 30.0 % less: they contradict each other" in " ".join(text.split())


def test_unknown_throttling_is_not_called_none() -> None:
    for dark in (None, LoadState()):
        text = table(measured(windows=(replace(window(), during=dark),)))
        assert "clocks   unknown whether anything held them back" in text
    calm = LoadState(samples=1, throttle=())
    text = table(measured(windows=(replace(window(), during=calm),)))
    assert "clocks   not held back" in text


def test_what_was_not_measured_is_a_dash_with_its_reason_and_never_a_zero() -> None:
    names = ("energy_j", "power_w", "gflops_per_joule")
    gaps = tuple(Missing(what=name, reason="no sensor answers") for name in names)
    nothing: dict[str, Any] = dict.fromkeys((*names, "energy_estimate", "net_energy_j"))
    text = table(measured(missing=gaps, **nothing))
    assert "energy_j, power_w, gflops_per_joule: no sensor answers" in text
    assert " ".join(text.splitlines()[3].split()) == "7.000 ±0.1% - - 18286 - 5 94.10"


def test_what_follows_from_another_gap_is_not_said_again() -> None:
    gaps = (
        Missing(what="energy_j", reason="no sensor answers"),
        Missing(what="gflops_per_joule", reason="energy_j is not known"),
    )
    text = table(measured(missing=gaps))
    assert "energy_j: no sensor answers" in text
    assert "is not known" not in text


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
    assert ["gemm_k0", "DRAM", "read", "512", "MiB"] in lines
    assert ["gemm_k0", "warp", "instructions", "52.12", "G"] in lines
    assert ["gemm_k0", "time", "when", "counted", "7.100", "ms"] in lines
    assert ["gemm_k0", "other.sum", "12"] in lines


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


SIDES = comparison(
    row("selected", 2.0, 0.5),
    row("32,64,16", 1.004, 1.02),
    failed_row("i=32,j=64"),
    failed_row("1024", "rejected by the model", "kernel0 needs 2 MiB of shared memory"),
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_fit_the_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = render_comparison(SIDES, "table").splitlines()
    assert max(map(len, lines)) <= width
    rows = [" ".join(line.split()) for line in lines]
    assert "selected ok 7.000 ±0.1% 4.800 ±0.6% 685.7 18286 26.67" in rows
    assert "selected 2.000 [1.980, 2.020] 0.500 [0.495, 0.505] 2.000 [1.980, 2.020]" in rows


def test_what_holds_for_all_is_said_once() -> None:
    text = render_comparison(SIDES, "table")
    assert text.count("the original at NI=37") == 1
    assert "all measured" in text


def test_variants_that_were_not_measured_alike_are_said_to_be() -> None:
    other = measured("32", method=method(data="small"))
    found = compare([measured(), other, failed("64", "timeout", "slow")], "selected")
    note = "'32' and 'selected' differ in their kind of data: small and none"
    assert found.notes == (note,)
    assert f"not alike: {note}" in render_comparison(found, "table")


def test_json_can_be_read_back() -> None:
    assert comparison_from_dict(json.loads(render_comparison(SIDES, "json"))) == SIDES


def test_a_window_without_a_reading_and_one_of_unknown_launches_are_told() -> None:
    found = measured()
    first, *others = found.windows
    windows = (replace(first, readings=()), *others)
    method = replace(found.method, launched_by=None, data="small", restoring="inside windows")
    text = render_measurements([replace(found, windows=windows, method=method)], "table")
    assert "values of the NVML energy counter in each" in text
    assert re.search(
        r"\n  method +data: small; overwritten inputs .*, their cost subtracted\n", text
    )
