"""Which meters are chosen, and what is said of those that do not work."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement.meters import MeterError, NvmlDevice, choose_meters

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml

ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
POWER = "nvmlDeviceGetPowerUsage"


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)


def names(fake: FakeNvml, choice: str, root: Path) -> list[str]:
    chosen = choose_meters(choice, nvml=NvmlDevice(module=fake), root=root)
    return [meter.name for meter in chosen.meters]


def test_the_counter_comes_first_and_power_checks_it(fake: FakeNvml, tmp_path: Path) -> None:
    assert names(fake, "auto", tmp_path) == ["NVML energy counter", "NVML power"]
    assert names(fake, "counter", tmp_path) == ["NVML energy counter", "NVML power"]
    assert names(fake, "power", tmp_path) == ["NVML power", "NVML energy counter"]


def test_without_a_counter_power_is_used_and_the_reason_said(
    fake: FakeNvml, tmp_path: Path
) -> None:
    fake.failing[ENERGY] = 3
    chosen = choose_meters("auto", nvml=NvmlDevice(module=fake), root=tmp_path)
    assert [meter.name for meter in chosen.meters] == ["NVML power"]
    assert chosen.missing[0].what == "energy by counter"
    assert "does not offer it" in chosen.missing[0].reason


def test_without_nvml_the_rails_of_a_jetson_are_used(fake: FakeNvml, tmp_path: Path) -> None:
    fake.failing |= {ENERGY: 3, POWER: 3}
    folder = tmp_path / "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    folder.mkdir(parents=True)
    (folder / "rail_name_0").write_text("GPU\n")
    (folder / "in_power0_input").write_text("9310\n")
    assert names(fake, "auto", tmp_path) == ["INA3221 rail GPU"]
    assert names(fake, "jetson", tmp_path) == ["INA3221 rail GPU"]


def test_where_nothing_works_every_reason_is_kept(fake: FakeNvml, tmp_path: Path) -> None:
    fake.failing |= {ENERGY: 4, POWER: 4}
    device = NvmlDevice(module=fake, root=tmp_path)
    chosen = choose_meters("auto", nvml=device, root=tmp_path)
    assert chosen.meters == ()
    assert [missing.what for missing in chosen.missing] == [
        "energy by counter",
        "energy by power",
        "energy by nvidia-smi",
        "energy by jetson",
    ]
    assert "does not permit" in chosen.missing[0].reason
    assert "administrator" in chosen.missing[0].reason


@pytest.mark.parametrize("choice", ["counter", "power", "nvidia-smi", "jetson"])
def test_a_meter_asked_for_that_does_not_work_is_an_error(
    fake: FakeNvml, tmp_path: Path, choice: str
) -> None:
    fake.failing |= {ENERGY: 3, POWER: 3}
    with pytest.raises(MeterError) as caught:
        choose_meters(choice, nvml=NvmlDevice(module=fake), root=tmp_path)
    assert caught.value.remedy


def test_the_energy_of_an_instance_cannot_be_told_apart(fake: FakeNvml, tmp_path: Path) -> None:
    fake.mig = [1, 1]
    chosen = choose_meters("auto", nvml=NvmlDevice(module=fake), root=tmp_path)
    assert chosen.meters == ()
    assert "MIG" in chosen.missing[0].reason
    for choice in ("counter", "nvidia-smi"):
        with pytest.raises(MeterError, match="MIG"):
            choose_meters(choice, nvml=NvmlDevice(module=fake), root=tmp_path)


def test_no_meter_is_a_choice_and_a_misspelt_one_is_not(fake: FakeNvml) -> None:
    assert choose_meters("none").meters == ()
    assert choose_meters("none").missing[0].reason == "no meter was asked for"
    with pytest.raises(InputError, match="no energy meter 'countre'") as caught:
        choose_meters("countre")
    assert caught.value.code == "EATSS-X005"
