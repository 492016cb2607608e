"""Rails of a Jetson: three generations of files and of text."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from eatss.measurement.meters import MeterError
from eatss.measurement.meters.background import (
    SubprocessMeter,
    gpu_rail,
    ina3221_rails,
    jetson_meter,
    tegrastats_meter,
    tegrastats_rails,
)

XAVIER = (
    "RAM 1903/15692MB (lfb 2951x4MB) SWAP 0/7846MB (cached 0MB) CPU [2%@1190,1%@1190,off,off]"
    " EMC_FREQ 0% GR3D_FREQ 99% AO@32.5C GPU@33C PMIC@100C GPU 9310/5295 CPU 467/467 SOC 934/934"
    " CV 0/0 VDDRQ 311/311 SYS5V 2247/2247"
)
ORIN = (
    "11-21-2026 16:20:51 RAM 2573/30536MB (lfb 6x4MB) CPU [0%@729,0%@729] GR3D_FREQ 0%"
    " cpu@47.3C tboard@37.3C VDD_GPU_SOC 2794mW/2790mW VDD_CPU_CV 399mW/401mW"
    " VIN_SYS_5V0 4532mW/4532mW"
)
ORIN_NANO = (
    "RAM 1000/7000MB GR3D_FREQ 0% VDD_IN 4532mW/4532mW VDD_CPU_GPU_CV 510mW/512mW"
    " VDD_SOC 1384mW/1384mW"
)
NANO = "RAM 900/3956MB IRAM 0/252kB(lfb 252kB) POM_5V_IN 2532/2698 POM_5V_GPU 81/12 POM_5V_CPU 4/5"
TX2 = "RAM 900/7854MB VDD_IN 3000/3100 VDD_CPU 400/410 VDD_GPU 152/160 VDD_SOC 500/500 VDD_WIFI 0/0"


@pytest.mark.parametrize(
    ("line", "rail", "power_w"),
    [
        (XAVIER, "GPU", 9.310),
        (ORIN, "VDD_GPU_SOC", 2.794),
        (ORIN_NANO, "VDD_CPU_GPU_CV", 0.510),
        (NANO, "POM_5V_GPU", 0.081),
        (TX2, "VDD_GPU", 0.152),
    ],
)
def test_every_generation_of_tegrastats_tells_the_gpus_rail(
    line: str, rail: str, power_w: float
) -> None:
    rails = tegrastats_rails(line)
    assert gpu_rail(tuple(rails)) == rail
    assert rails[rail] == pytest.approx(power_w)


@pytest.mark.parametrize("line", [XAVIER, ORIN, ORIN_NANO, NANO, TX2])
def test_memory_is_not_taken_for_power(line: str) -> None:
    assert not {"RAM", "SWAP", "IRAM"} & tegrastats_rails(line).keys()


def test_the_rail_that_feeds_least_besides_the_gpu_is_chosen() -> None:
    assert gpu_rail(("VDD_CPU_GPU_CV", "VDD_GPU_SOC", "GPU")) == "GPU"
    assert gpu_rail(("VDD_CPU_GPU_CV", "VDD_GPU_SOC")) == "VDD_GPU_SOC"
    assert gpu_rail(("VDD_CPU", "VDD_SOC")) is None


def old_kernel(root: Path) -> None:
    folder = root / "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    folder.mkdir(parents=True)
    for channel, (name, milliwatts) in enumerate((("GPU", 9310), ("CPU", 467), ("SOC", 934))):
        (folder / f"rail_name_{channel}").write_text(f"{name}\n")
        (folder / f"in_power{channel}_input").write_text(f"{milliwatts}\n")


def new_kernel(root: Path) -> Path:
    folder = root / "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3"
    folder.mkdir(parents=True)
    rails = (("VDD_GPU_SOC", 19000, 147), ("VDD_CPU_CV", 19000, 21), ("VIN_SYS_5V0", 5000, 900))
    for channel, (name, millivolts, milliamperes) in enumerate(rails, start=1):
        (folder / f"in{channel}_label").write_text(f"{name}\n")
        (folder / f"in{channel}_input").write_text(f"{millivolts}\n")
        (folder / f"curr{channel}_input").write_text(f"{milliamperes}\n")
    (folder / "in7_label").write_text("sum of shunt voltages\n")
    (folder / "in7_input").write_text("12\n")
    return folder


def test_the_files_of_an_old_kernel_are_read(tmp_path: Path) -> None:
    old_kernel(tmp_path)
    assert [rail.name for rail in ina3221_rails(tmp_path)] == ["GPU", "CPU", "SOC"]
    assert ina3221_rails(tmp_path)[0].power_w() == pytest.approx(9.31)
    assert jetson_meter(root=tmp_path).name == "INA3221 rail GPU"


def test_the_files_of_a_new_kernel_are_read(tmp_path: Path) -> None:
    new_kernel(tmp_path)
    rails = {rail.name: rail.power_w() for rail in ina3221_rails(tmp_path)}
    assert rails == pytest.approx({"VDD_GPU_SOC": 2.793, "VDD_CPU_CV": 0.399, "VIN_SYS_5V0": 4.5})


def test_a_monitor_that_is_listed_twice_is_read_once(tmp_path: Path) -> None:
    folder = new_kernel(tmp_path)
    (folder / "name").write_text("ina3221\n")
    by_class = tmp_path / "sys/class/hwmon"
    by_class.mkdir(parents=True)
    (by_class / "hwmon3").symlink_to(folder)
    assert len(ina3221_rails(tmp_path)) == 3


def test_a_rail_is_recorded_and_named(tmp_path: Path) -> None:
    new_kernel(tmp_path)
    meter = jetson_meter(root=tmp_path)
    meter.start()
    time.sleep(0.05)
    trace = meter.stop()
    assert trace.meter == "INA3221 rail VDD_GPU_SOC"
    assert trace.samples[0].value == pytest.approx(2.793)


def test_a_monitor_that_fails_is_reported(tmp_path: Path) -> None:
    folder = new_kernel(tmp_path)
    (folder / "curr1_input").write_text("broken")
    with pytest.raises(MeterError, match="power monitor of VDD_GPU_SOC fails"):
        jetson_meter(root=tmp_path)


def test_a_machine_that_is_no_jetson_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MeterError, match="no INA3221 power monitor and no tegrastats"):
        jetson_meter(root=tmp_path)


def tool(folder: Path, text: str) -> str:
    path = folder / "tegrastats"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_tegrastats_is_recorded_and_its_rail_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    tool(folder, f"while :; do echo '{ORIN}'; sleep 0.02; done")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    meter = jetson_meter(root=tmp_path)
    assert meter.name == "tegrastats rail VDD_GPU_SOC"
    meter.start()
    assert isinstance(meter, SubprocessMeter)
    deadline_s = time.perf_counter() + 5
    while len(meter._samples) < 2 and time.perf_counter() < deadline_s:
        time.sleep(0.01)
    trace = meter.stop()
    assert trace.meter == meter.name
    assert len(trace.samples) >= 2
    assert trace.samples[0].value == pytest.approx(2.794)


def test_tegrastats_without_a_gpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="ended by itself with status 3"):
        tegrastats_meter(tool(tmp_path, "exit 3"))
    with pytest.raises(MeterError, match="does not start"):
        tegrastats_meter(str(tmp_path / "nowhere"))
