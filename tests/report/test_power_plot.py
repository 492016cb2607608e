"""Power over time, drawn: a line a card."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import eatss
from eatss.measurement.energy_measurement import (
    CardEnergy,
    EnergyMeasurement,
)
from eatss.measurement.foreign import ProgramEnergy
from eatss.measurement.meters.meter import PowerSample
from eatss.report.plots import plot_program

TRACE = tuple(PowerSample(time_s=k / 10 - 0.2, power_w=300.0 + k) for k in range(13))


def card(name: str) -> CardEnergy:
    return CardEnergy(name=name, energy_j=1.0, uncertainty_j=0.1, power_w=1.0, trace=TRACE)


FOUND = EnergyMeasurement(
    time_s=1.0, energy_j=2.0, uncertainty_j=0.2, power_w=2.0,
    cards=(card("card 0"), card("card 1")),
)  # fmt: skip


def test_lines_are_named() -> None:
    ax = FOUND.plot(Figure().add_subplot())
    _, labels = ax.get_legend_handles_labels()
    assert labels == ["card 0", "card 1"]
    assert np.array_equal(ax.lines[0].get_ydata(), [sample.power_w for sample in TRACE])
    assert ax.get_ylabel() == "power in W"
    assert min(ax.get_yticks()) >= 0


def test_a_program_is_drawn_the_same_way_each_time(tmp_path: Path) -> None:
    program = ProgramEnergy(
        command=("true",), runs=1, exit_code=0, time_s=1.0, cards=(card("card 0"),)
    )
    for name in ("a.svg", "b.svg"):
        plot_program(program, tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first == (tmp_path / "b.svg").read_bytes()
    assert b"card 0" in first


def test_without_matplotlib_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "eatss.report.plots.find_spec",
        lambda name: None if name == "matplotlib" else found(name),
    )
    with pytest.raises(eatss.InputError, match=r"EATSS-E052(.|\n)*eatss\[plot\]"):
        FOUND.plot()
