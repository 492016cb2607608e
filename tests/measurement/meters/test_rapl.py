"""CPU packages through RAPL, from a tree as the kernel shows it."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eatss.measurement.meters import MeterError, Sample
from eatss.measurement.meters.rapl import (
    LATE_S,
    RaplMeter,
    RaplPackage,
    follow_quick_counter,
    rapl_packages,
)

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import VirtualTime

RANGE_UJ = 262_143_328_850
Zone = Callable[..., Path]


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    """Makes a zone: ``zone("intel-rapl:0", "package-0", 5_000_000)``."""

    def make(folder: str, name: str, energy_uj: int | str = 0, range_uj: int = RANGE_UJ) -> Path:
        place = tmp_path / "sys/class/powercap" / folder
        place.mkdir(parents=True)
        (place / "name").write_text(f"{name}\n")
        (place / "energy_uj").write_text(f"{energy_uj}\n")
        (place / "max_energy_range_uj").write_text(f"{range_uj}\n")
        return place

    return make


def test_packages_are_found_each_once_and_parts_of_them_are_left_out(
    zone: Zone, tmp_path: Path
) -> None:
    for folder, name in (
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "core"),
        ("intel-rapl:0:1", "dram"),
        ("intel-rapl:10", "package-2-die-1"),
        ("intel-rapl:2", "psys"),
        ("intel-rapl-mmio:0", "package-0"),
    ):
        zone(folder, name)
    (tmp_path / "sys/class/powercap/intel-rapl").mkdir()
    found = rapl_packages(tmp_path)
    assert [one.title for one in found] == [
        "CPU package 0", "CPU package 1", "CPU package 2 die 1",
    ]  # fmt: skip
    assert found[0].folder.name == "intel-rapl:0"


def test_energy_is_in_joules(zone: Zone, tmp_path: Path) -> None:
    zone("intel-rapl:0", "package-0", 5_250_000)
    (package,) = rapl_packages(tmp_path)
    assert package.energy_j() == 5.25


def test_a_counter_that_begins_anew_goes_on(zone: Zone, tmp_path: Path) -> None:
    place = zone("intel-rapl:0", "package-0", 9_000_000, range_uj=10_000_000)
    (package,) = rapl_packages(tmp_path)
    told = [package.energy_j()]
    for raw_uj in (1_000_000, 8_000_000, 500_000):
        (place / "energy_uj").write_text(str(raw_uj))
        told.append(package.energy_j())
    assert told == [9, 11, 18, 20.5]


def test_without_rapl_there_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="shows no energy of CPUs") as caught:
        rapl_packages(tmp_path)
    assert "modprobe" in caught.value.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_for_root_only_is_told_with_what_to_ask_for(zone: Zone, tmp_path: Path) -> None:
    (zone("intel-rapl:0", "package-0") / "energy_uj").chmod(0)
    with pytest.raises(MeterError, match="by root only"):
        rapl_packages(tmp_path)


def test_what_may_not_be_read_is_told_with_what_to_ask_for(
    zone: Zone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone("intel-rapl:0", "package-0")
    read = Path.read_text

    def refuse(self: Path, encoding: str | None = None) -> str:
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read(self, encoding=encoding)

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(MeterError, match="by root only") as caught:
        rapl_packages(tmp_path)
    assert "chmod a+r" in caught.value.remedy


def test_one_damaged_package_does_not_hide_the_others(zone: Zone, tmp_path: Path) -> None:
    zone("intel-rapl:0", "package-0", "broken")
    with pytest.raises(MeterError, match="holds no number: 'broken'"):
        rapl_packages(tmp_path)
    zone("intel-rapl:1", "package-1")
    assert [one.name for one in rapl_packages(tmp_path)] == ["package-1"]


def test_a_quick_counter_is_sampled_where_it_has_moved(make_time: type[VirtualTime]) -> None:
    clock = make_time(end_s=1.0)
    samples: list[Sample] = []
    follow_quick_counter(
        lambda: round(50 * (clock.now() - clock.begin_s), 1), clock, samples.append, 0.01
    )
    assert len(samples) == pytest.approx(100, abs=2)
    assert all(a.value != b.value for a, b in pairwise(samples))


def test_a_reading_that_took_too_long_is_left_out(make_time: type[VirtualTime]) -> None:
    clock = make_time(end_s=0.5)
    slow = iter(range(1000))

    def read_j() -> float:
        value = 50 * (clock.now() - clock.begin_s)
        clock.sleep(0.005 if next(slow) % 3 == 0 else 0.0001)
        return value

    samples: list[Sample] = []
    follow_quick_counter(read_j, clock, samples.append, 0.01)
    assert len(samples) > 20
    for sample in samples:
        late_s = sample.time_s - clock.begin_s - sample.value / 50
        assert 0 <= late_s <= LATE_S - 0.001


def test_the_trace_says_how_late_it_may_be(zone: Zone) -> None:
    meter = RaplMeter(RaplPackage("package-0", zone("intel-rapl:0", "package-0", 7_000_000), 10.0))
    meter.start()
    while not meter._samples:
        pass
    trace = meter.stop()
    assert (trace.meter, trace.kind, trace.late_s) == ("RAPL", "energy", LATE_S)
    assert trace.samples[0].value == 7
