"""Tables and plots of a card's characterisation, of the recorded runs on an H200."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from eatss.cards import load_profile
from eatss.cards.profile import Calibration
from eatss.measurement.characterize.benchmark import Record, read_record
from eatss.measurement.characterize.fit import EnergyFit, calibrated
from eatss.measurement.characterize.roofline import (
    RooflinePoint,
    power_limited_roofline_of,
    roofline_of,
)
from eatss.report.card_plots import (
    Roofs,
    roofline_panel,
)
from eatss.report.characterization import (
    arithmetic_rows,
)
from eatss.report.plots import new_figure, save_figure
from tests.refusals import refusing

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


def test_the_committed_tables_are_what_the_benchmark_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    importlib.import_module("benchmarks.characterize").report(RESULTS)
    assert capsys.readouterr().out == (RESULTS / "characterize.txt").read_text(encoding="utf-8")


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "h200"
RECORD = read_record(RESULTS / "characterize-1.jsonl")
H200 = load_profile("h200")
MACHINE = roofline_of(H200, "fp64")
POINTS = tuple(one for one in RECORD.of("intensity") if one.name.startswith("fp64"))
PLACED = RooflinePoint(
    name="stencil",
    width="fp64",
    flops=8e9,
    least_bytes=2e9,
    speed_ceiling_flops_s=float(MACHINE.speed_flops_s(4.0)),
    efficiency_ceiling_flops_j=float(MACHINE.efficiency_flops_j(4.0)),
    time_s=1e-3,
    energy_j=0.5,
)
ROOFS = Roofs(
    title="fp64",
    machine=MACHINE,
    lowered=power_limited_roofline_of(H200, "fp64"),
    results=POINTS,
    programs=(PLACED,),
)


def line(axes: Axes, label: str) -> Line2D:
    (found,) = [one for one in axes.lines if str(one.get_label()).startswith(label)]
    return found


def data(axes: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    found = line(axes, label)
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def point(axes: Axes, label: str) -> tuple[float, float]:
    (x,), (y,) = data(axes, label)
    return float(x), float(y)


def test_the_roofline_is_that_of_the_machine_and_has_its_corner() -> None:
    axes = roofline_panel(ROOFS, "time")
    x, y = data(axes, "roofline (time)")
    assert y == pytest.approx(MACHINE.speed_flops_s(x) / 1e9)
    assert MACHINE.time_balance in x
    x, y = data(axes, "held to 700 W by lower clocks")
    assert (y <= MACHINE.speed_flops_s(x) / 1e9 * (1 + 1e-9)).all()
    assert axes.get_ylabel() == "speed in GFLOP/s"


def test_measured_points_stand_where_they_were_measured() -> None:
    with_flops = [one for one in POINTS if one.flops]
    intensities = [one.flops / one.useful_bytes for one in with_flops]
    for what, value in (
        ("time", [one.flops / one.time_s / 1e9 for one in with_flops]),
        ("energy", [one.flops / (one.energy_j or 0) / 1e9 for one in with_flops]),
        ("power", [one.power_w for one in with_flops]),
    ):
        x, y = data(roofline_panel(ROOFS, what), "measured")
        assert list(x) == pytest.approx(intensities)
        assert list(y) == pytest.approx(value)


def test_a_program_has_its_ceiling_and_what_it_reached() -> None:
    axes = roofline_panel(ROOFS, "time")
    assert point(axes, "stencil: ceiling") == (4.0, PLACED.speed_ceiling_flops_s / 1e9)
    assert point(axes, "stencil: measured") == (4.0, 8000.0)
    axes = roofline_panel(ROOFS, "energy")
    assert point(axes, "stencil: ceiling") == (4.0, PLACED.efficiency_ceiling_flops_j / 1e9)
    assert point(axes, "stencil: measured") == (4.0, 16.0)


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG")])
def test_a_figure_is_written_by_its_suffix_and_the_same_each_time(
    tmp_path: Path, suffix: str, begin: bytes
) -> None:
    written = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}{suffix}"
        figure = new_figure()
        roofline_panel(ROOFS, "power", axes=figure.subplots())
        save_figure(figure, path)
        written.append(path.read_bytes())
    assert written[0].startswith(begin)
    assert written[0] == written[1]


@pytest.mark.parametrize("name", ["plot.jpg", "nowhere/plot.png"])
def test_a_plot_that_cannot_be_written_says_so(tmp_path: Path, name: str) -> None:
    with refusing("EATSS-E053"):
        save_figure(new_figure(), tmp_path / name)
