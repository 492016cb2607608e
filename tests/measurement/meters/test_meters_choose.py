"""Which meters are chosen, and what is said of those that do not work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement.card import Gpus, checked_gpus, named_cards
from eatss.measurement.metering import examine_sensors
from eatss.measurement.meters import MeterError, NvmlDevice, background, choose_meters
from eatss.measurement.meters.background import ina3221_rails, jetson_meter

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml

ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
POWER = "nvmlDeviceGetPowerUsage"


@pytest.fixture(autouse=True)
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the drivers of I2C."""
    monkeypatch.setattr(background, "DRIVERS", tmp_path)
    return tmp_path


def names(fake: FakeNvml, choice: str) -> list[str]:
    chosen = choose_meters(choice, nvml=NvmlDevice(module=fake))
    return [meter.name for meter in chosen.meters]


def test_the_counter_comes_first_and_power_checks_it(fake: FakeNvml) -> None:
    assert names(fake, "auto") == ["NVML energy counter", "NVML power"]
    assert names(fake, "counter") == ["NVML energy counter", "NVML power"]
    assert names(fake, "power") == ["NVML power", "NVML energy counter"]


def test_without_a_counter_power_is_used_and_the_reason_said(fake: FakeNvml) -> None:
    fake.failing[ENERGY] = 3
    chosen = choose_meters("auto", nvml=NvmlDevice(module=fake))
    assert [meter.name for meter in chosen.meters] == ["NVML power"]
    assert chosen.missing[0].what == "energy by counter"


def test_without_nvml_the_rails_of_a_jetson_are_used(fake: FakeNvml, drivers: Path) -> None:
    fake.failing |= {ENERGY: 3, POWER: 3}
    folder = drivers / "ina3221x/1-0040/iio:device0"
    folder.mkdir(parents=True)
    (folder / "rail_name_0").write_text("GPU\n")
    (folder / "in_power0_input").write_text("9310\n")
    assert names(fake, "auto") == ["INA3221 rail GPU"]
    assert names(fake, "jetson") == ["INA3221 rail GPU"]


def test_the_energy_of_an_instance_cannot_be_told_apart(fake: FakeNvml) -> None:
    fake.mig = [1, 1]
    chosen = choose_meters("auto", nvml=NvmlDevice(module=fake))
    assert chosen.meters == ()
    assert "MIG" in chosen.missing[0].reason
    with pytest.raises(MeterError, match="MIG"):
        choose_meters("counter", nvml=NvmlDevice(module=fake))


def test_newer_kernels_tell_volts_and_amperes_of_several_rails(drivers: Path) -> None:
    folder = drivers / "ina3221/1-0040/hwmon/hwmon4"
    folder.mkdir(parents=True)
    for channel, name in enumerate(("VDD_GPU_SOC", "VDD_CPU_GPU_CV", "sum of shunts"), 1):
        (folder / f"in{channel}_label").write_text(f"{name}\n")
        (folder / f"in{channel}_input").write_text("5000\n")
    for channel in (1, 2):
        (folder / f"curr{channel}_input").write_text(f"{1000 * channel}\n")
    rails = ina3221_rails()
    assert [(rail.name, rail.power_w()) for rail in rails] == [
        ("VDD_GPU_SOC", 5.0), ("VDD_CPU_GPU_CV", 10.0),
    ]  # fmt: skip
    assert jetson_meter().name == "INA3221 rail VDD_GPU_SOC"


def test_doctor_says_which_meters_answer(fake: FakeNvml) -> None:
    meters = examine_sensors(module=fake)
    assert (meters.ok, meters.found) == (True, "NVML energy counter, NVML power")
    fake.failing["nvmlInit"] = 9
    meters = examine_sensors(module=fake)
    assert meters.ok is None
    assert "modprobe" in meters.remedy


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    told = ("GPU-3", "GPU-1", "GPU-2", "GPU-0")
    monkeypatch.setattr("eatss.measurement.card.cuda_order", lambda: told)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("gpus", "cards"),
    [
        (1, [("card 1", "GPU-1")]),
        ([1, 0], [("card 1", "GPU-1"), ("card 0", "GPU-3")]),
        ("GPU-2", [("card GPU-2", "GPU-2")]),
        ([0, 0, "GPU-3"], [("card GPU-3", "GPU-3")]),
        ([], []),
    ],
)
def test_cards_are_named_by_number_or_uuid(gpus: Gpus, cards: list[tuple[str, str]]) -> None:
    assert [(one.name, one.device) for one in named_cards(gpus)] == cards


def test_where_cuda_cannot_be_asked_numbers_are_the_drivers(fake: FakeNvml) -> None:
    found = named_cards("all", module=fake)
    assert [card.device for card in found] == [0, 1]


def test_what_names_no_card_is_refused() -> None:
    assert checked_gpus(["GPU-1", 3]) == ["GPU-1", 3]
    for wrong in (-1, True, "card", [0, "x"]):
        with pytest.raises(InputError, match="names no card"):
            checked_gpus(wrong)  # type: ignore[arg-type]
