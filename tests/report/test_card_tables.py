"""Tables of a card's characterisation, of the recorded runs on an H200."""

from __future__ import annotations

import importlib
from math import isnan
from pathlib import Path

import pytest

from eatss.cards.profile import COEFFICIENTS, Calibration
from eatss.measurement.characterize.fit import EnergyFit, calibrated
from eatss.measurement.characterize.result import Record, read_record
from eatss.report.characterization import (
    arithmetic_rows,
    coefficients_table,
    differences,
    fit_table,
    largest_residuals,
    latency_table,
    memory_rows,
    rows_table,
    runs_table,
)
from eatss.report.render import render

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "h200"
RECORDS = tuple(read_record(RESULTS / f"characterize-{n}.jsonl") for n in (1, 2, 3))


@pytest.fixture(scope="module")
def fitted() -> list[tuple[Calibration, EnergyFit]]:
    return [calibrated(record) for record in RECORDS]


@pytest.fixture(scope="module")
def fit(fitted: list[tuple[Calibration, EnergyFit]]) -> EnergyFit:
    return fitted[0][1]


def first() -> Record:
    return RECORDS[0]


def test_a_row_of_arithmetic_is_its_result_over_instructions_of_threads(fit: EnergyFit) -> None:
    rows = arithmetic_rows(first(), fit)
    result, row = first().named("fp64 add"), rows["fp64 add"]
    assert result is not None
    assert result.energy_j is not None
    assert row["gross pJ"] == pytest.approx(result.energy_j / result.operations * 1e12)
    constant_j = fit.constant_w.value * result.time_s
    assert row["net pJ"] == pytest.approx((result.energy_j - constant_j) / result.operations * 1e12)
    assert row["spec/cycle"] == 64
    assert row["real/cycle"] == pytest.approx(64, rel=0.01)
    assert row["GFLOP/s/W"] == pytest.approx(result.flops / result.energy_j / 1e9)


def test_net_energy_of_an_addition_is_the_fitted_price(fit: EnergyFit) -> None:
    rows = arithmetic_rows(first(), fit)
    prices = dict(fit.prices)
    for name, feature in (("fp32 add", "fp32_add"), ("fp64 add", "fp64_add")):
        assert rows[name]["net pJ"] == pytest.approx(prices[feature].value * 1e12 / 32, rel=0.05)


def test_gross_is_above_net_and_integers_have_no_gflops(fit: EnergyFit) -> None:
    for name, row in arithmetic_rows(first(), fit).items():
        assert row["gross pJ"] > row["net pJ"] > 0
        assert isnan(row["GFLOP/s/W"]) == name.startswith("int")


def test_memory_gets_cheaper_towards_the_registers(fit: EnergyFit) -> None:
    rows = memory_rows(first(), fit)
    way = [rows[name]["net pJ/B"] for name in ("DRAM read", "L2 read", "L1 read")]
    assert way == sorted(way, reverse=True)
    dram = rows["DRAM read"]
    result = first().named("DRAM read")
    assert result is not None
    assert result.energy_j is not None
    assert dram["nJ/transaction"] == pytest.approx(
        result.energy_j / (result.useful_bytes / 128) * 1e9, rel=1e-6
    )


def test_what_was_not_measured_is_a_dash(fit: EnergyFit) -> None:
    text = render(rows_table("instruction", arithmetic_rows(first(), fit)))
    division = next(line for line in text.splitlines() if line.split()[:2] == ["fp32", "div"])
    assert division.split()[2] == "-"
    launch = next(x for x in render(latency_table(first(), 1980.0)).splitlines() if "launch" in x)
    assert launch.split()[-2] == "-"


@pytest.mark.parametrize("width", [100, 120])
def test_tables_carry_units_and_fit_a_file(
    width: int,
    fit: EnergyFit,
    fitted: list[tuple[Calibration, EnergyFit]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    runs = {f"run {n}": one for n, (one, _) in enumerate(fitted, start=1)}
    text = render(
        rows_table("instruction", arithmetic_rows(first(), fit)),
        rows_table("memory", memory_rows(first(), fit)),
        latency_table(first(), 1980.0),
        coefficients_table(fitted[0][0]),
        runs_table(runs),
        *fit_table(fit),
    )
    for words in ("net pJ", "GFLOP/s/W", "nJ/transaction", "pJ/B", "cycles", "µs", "mJ", "R² 0.99"):
        assert words in text
    assert max(map(len, text.splitlines())) <= width


def test_latencies_in_ns_are_cycles_at_the_clock() -> None:
    text = render(latency_table(first(), 2000.0))
    cycles, ns = next(x for x in text.splitlines() if "L2 load" in x).split()[-2:]
    assert float(ns) == pytest.approx(float(cycles) / 2, rel=1e-3)


def test_every_coefficient_has_a_row(fitted: list[tuple[Calibration, EnergyFit]]) -> None:
    text = render(runs_table({"one": fitted[0][0], "two": fitted[1][0]}))
    assert [name for name in COEFFICIENTS if name not in text] == []


def test_differences_tell_runs_of_one_card_from_cards(
    fitted: list[tuple[Calibration, EnergyFit]],
) -> None:
    b, c, a = (one for one, _ in fitted)
    x, y, z = (one.value("constant_w") or 0 for one in (a, b, c))
    runs, cards = differences("constant_w", (a, b, c))
    assert runs == pytest.approx(abs(y - z) / ((y + z) / 2))
    mean = (y + z) / 2
    assert cards == pytest.approx(abs(x - mean) / ((x + mean) / 2))
    assert differences("constant_w", (a,)) == (None, None)
    assert differences("constant_w", (b, c))[1] is None


def test_the_ten_largest_residuals_come_first_and_in_order(fit: EnergyFit) -> None:
    shares = [abs(one.share) for one in largest_residuals(fit)]
    assert len(shares) == 10
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == max(abs(one.share) for one in fit.residuals)


def test_the_committed_tables_are_what_the_benchmark_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    importlib.import_module("benchmarks.characterize").report(RESULTS)
    assert capsys.readouterr().out == (RESULTS / "characterize.txt").read_text(encoding="utf-8")
