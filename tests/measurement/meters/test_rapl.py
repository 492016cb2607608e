"""CPU packages through RAPL, from a tree as the kernel shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.measurement.energy_meter import EnergyMeter
from eatss.measurement.meters import rapl
from eatss.measurement.meters.rapl import (
    RaplPackage,
    RefusedPackage,
    package_title,
    rapl_packages,
)

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
    assert [package_title(one) for one in found] == [
        "CPU package 0", "CPU package 1", "CPU package 2 die 1",
    ]  # fmt: skip
    assert isinstance(found[0], RaplPackage)
    assert found[0].folder.name == "intel-rapl:0"


def readable(root: Path) -> RaplPackage:
    (package,) = rapl_packages(root)
    assert isinstance(package, RaplPackage)
    return package


def test_a_counter_that_begins_anew_goes_on(zone: Zone, tmp_path: Path) -> None:
    place = zone("intel-rapl:0", "package-0", 9_000_000, range_uj=10_000_000)
    with readable(tmp_path).counter() as read_j:
        told = [read_j()]
        for raw_uj in (1_000_000, 8_000_000, 500_000):
            (place / "energy_uj").write_text(str(raw_uj))
            told.append(read_j())
    assert told == [9, 11, 18, 20.5]


def refusals(root: Path) -> dict[str, tuple[str, str]]:
    """Return the packages that cannot be read: why, and what to do about it."""
    found = [one for one in rapl_packages(root) if isinstance(one, RefusedPackage)]
    return {one.name: (str(one.error), one.error.remedy) for one in found}


def test_what_may_not_be_read_is_told_with_what_to_ask_for(
    zone: Zone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone("intel-rapl:0", "package-0")

    def refuse(file: Path, _: int) -> int:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("eatss.measurement.meters.rapl.os.open", refuse)
    why, remedy = refusals(tmp_path)["package-0"]
    assert "energy_uj may be read by root only" in why
    assert "chmod a+r" in remedy


def test_a_block_that_keeps_the_interpreter_busy_is_known(
    zone: Zone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone("intel-rapl:0", "package-0")
    reading, begin_s = rapl._microjoules, time.perf_counter()

    def microjoules(descriptor: int, file: Path) -> int:  # gives the interpreter away, as it does
        drawn_uj = int(1e6 * 50 * (time.perf_counter() - begin_s))
        return reading(descriptor, file) + drawn_uj

    monkeypatch.setattr(rapl, "_microjoules", microjoules)
    with EnergyMeter(device=[], cpu=True, margin_s=0.05, root=tmp_path) as meter:
        until_s = time.perf_counter() + 0.4
        while time.perf_counter() < until_s:
            pass
    found = meter.result
    (package,) = found.cpus
    assert package.updates >= 8
    assert found.cpu_energy_j is not None, found.missing
    assert found.cpu_uncertainty_j is not None
    assert abs(found.cpu_energy_j - 50 * found.time_s) <= found.cpu_uncertainty_j
    assert found.cpu_uncertainty_j < 0.5 * found.cpu_energy_j
