"""What was recorded on an H200, read and evaluated again without a card."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eatss.measurement.measurement import Measurement

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "h200"


def recorded(name: str) -> tuple[Measurement, ...]:
    found: tuple[Measurement, ...] = benchmark("recorded").load(RESULTS / name)
    return found


def benchmark(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}")


def calibrations() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RESULTS / "calibration.json").read_text())
    return found


def test_the_meter_and_an_independent_log_agree_within_five_percent() -> None:
    for row in calibrations():
        assert row["energy_j"] == pytest.approx(row["smi_energy_j"], rel=0.05)


QUICK = ("atax", "gemm", "jacobi-2d", "mvt", "trmm")


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
