"""Power over time, drawn: a line a card."""

from __future__ import annotations

from pathlib import Path

from eatss.measurement.energy_meter import (
    CardEnergy,
)
from eatss.measurement.foreign import ProgramEnergy
from eatss.measurement.meters.meter import PowerSample
from eatss.report.plots import plot_program

TRACE = tuple(PowerSample(time_s=k / 10 - 0.2, power_w=300.0 + k) for k in range(13))


def card(name: str) -> CardEnergy:
    return CardEnergy(name=name, energy_j=1.0, uncertainty_j=0.1, power_w=1.0, trace=TRACE)


def test_a_program_is_drawn_the_same_way_each_time(tmp_path: Path) -> None:
    program = ProgramEnergy(
        command=("true",), runs=1, exit_code=0, time_s=1.0, cards=(card("card 0"),)
    )
    for name in ("a.svg", "b.svg"):
        plot_program(program, tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first == (tmp_path / "b.svg").read_bytes()
    assert b"card 0" in first
