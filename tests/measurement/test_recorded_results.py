"""What was recorded on an H200, read and evaluated again without a card."""

from __future__ import annotations

import importlib
import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from eatss.measurement.measurement import Measurement
from eatss.measurement.meters import Sample, Trace, read
from tests.measurement.replay import ReplayMeter

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "h200"


def recorded(name: str) -> tuple[Measurement, ...]:
    found: tuple[Measurement, ...] = benchmark("recorded").load(RESULTS / name)
    return found


def benchmark(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}")


def calibrations() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RESULTS / "calibration.json").read_text())
    return found


def logged(text: str) -> tuple[Sample, ...]:
    """Return what ``nvidia-smi`` wrote into a log: a time and a power a line."""
    rows = [line.split(", ") for line in text.splitlines()]
    clock = "%Y/%m/%d %H:%M:%S.%f"
    return tuple(
        Sample(time_s=datetime.strptime(when, clock).timestamp(), value=float(power.split()[0]))
        for when, power in rows
    )


def loaded(samples: tuple[Sample, ...]) -> tuple[float, float]:
    """Return when a load began and ended, by the power that was logged."""
    half = max(sample.value for sample in samples) / 2
    busy = [sample.time_s for sample in samples if sample.value > half]
    return busy[0], busy[-1]


@pytest.mark.parametrize("load", ["copy", "fma"])
def test_a_replayed_log_of_nvidia_smi_gives_the_energy_that_the_counter_gave(load: str) -> None:
    text = (RESULTS / f"{load}-calibration-nvidia-smi.csv").read_text()
    samples = logged(text)
    meter = ReplayMeter([Trace(meter="nvidia-smi", kind="power", samples=samples)])
    meter.start()
    reading = read(meter.stop(), *loaded(samples))
    assert not isinstance(reading, str)
    (row,) = (row for row in calibrations() if row["load"] == load)
    assert reading.power_w == pytest.approx(row["power_w"], rel=0.05)


def test_the_meter_and_an_independent_log_agree_within_five_percent() -> None:
    for row in calibrations():
        assert row["energy_j"] == pytest.approx(row["smi_energy_j"], rel=0.05)


@pytest.mark.parametrize(
    ("name", "draws"),
    [("h200", False), ("contractions", False)],
)
def test_the_report_of_a_benchmark_is_what_is_committed(
    name: str, draws: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = benchmark(name)
    module.report(RESULTS, *([tmp_path] if draws else []))
    assert bool(list(tmp_path.glob("*.png"))) == draws
    committed = RESULTS / f"{name.replace('_', '-')}.txt"
    assert capsys.readouterr().out == committed.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rows", "text"),
    [
        ("ppcg", "ppcg.jsonl", "ppcg.txt"),
        ("ppcg", "ppcg-2.jsonl", "ppcg-2.txt"),
        ("ppcg", "ppcg-3.jsonl", "ppcg-3.txt"),
        ("ppcg", "ppcg-4.jsonl", "ppcg-4.txt"),
        ("ppcg", "ppcg-5.jsonl", "ppcg-5.txt"),
        ("ppcg", "unseen-ppcg.jsonl", "unseen-ppcg.txt"),
        ("ppcg", "unseen-ppcg-2.jsonl", "unseen-ppcg-2.txt"),
        ("unseen", "unseen-cuda.json", "unseen-cuda.txt"),
        ("unseen", "unseen-cuda-2.json", "unseen-cuda-2.txt"),
    ],
)
def test_the_report_of_some_rows_is_what_is_committed(
    name: str, rows: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = RESULTS / rows
    benchmark(name).report([path] if name == "ppcg" else path)
    assert capsys.readouterr().out == (RESULTS / text).read_text(encoding="utf-8")


QUICK = ("atax", "gemm", "gramschmidt", "jacobi-2d", "lu", "mvt", "seidel-2d", "trmm")


def test_quick_selections_that_were_measured_are_as_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kernels of each kind; all of them with ``pytest -m long``."""
    module = benchmark("ppcg_current")
    for name in QUICK:
        shutil.copy(module.data_directory("kernels") / f"{name}.c", tmp_path)
    monkeypatch.setattr(module, "data_directory", lambda name: tmp_path)
    found = module.current.__wrapped__(RESULTS)  # what is cached is of all kernels
    assert len(found) == 2 * len(QUICK)
    committed = (RESULTS / "ppcg-current.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(maxsplit=4) for line in committed]
    for one in found:
        amounts = ["-" if value is None else f"{value:.3f}" for value in (one.time, one.energy)]
        run = one.run if one.state == "measured" else one.state
        assert [one.kernel, one.dtype, *amounts, run] in rows
        is_no_worse(one)


def is_no_worse(one: Any) -> None:
    assert one.energy is None or one.energy >= 1 / 1.03, one
    assert one.time is None or one.time >= 1 / 1.05, one


def test_every_recorded_measurement_says_how_it_was_made() -> None:
    for name in ("selected-and-default.json", "repeatability.json", "sectors-and-power.json"):
        for one in recorded(name):
            assert one.provenance.option_hash
            assert one.device is not None
            assert one.device.name == "NVIDIA H200"
            if one.energy_j is not None:
                assert one.method.meter == "NVML energy counter"
                assert one.windows
            for value, what in ((one.energy_j, "energy_j"), (one.time_s, "time_s")):
                assert value is None or value > 0, what
            if one.time_s is None:
                assert one.reason
