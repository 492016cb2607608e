"""A meter from outside eatss: one file, and an entry point or a call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from eatss.measurement.meters import METERS, ChosenMeters, choose_meters
from tests.forked_workers import python
from tests.measurement.scripted_card import Folders, ScriptedCard

ROOT = Path(__file__).parents[3]
CARD = f"{__name__}:ChoosingCard"

WATTS = """
import time
from eatss.measurement.meters import ChosenMeters, Sample, Trace

clock = time.perf_counter

class Socket:
    name = "wall socket"

    def start(self):
        self.begin_s = clock()

    def stop(self):
        times = [self.begin_s + k / 10 for k in range(int(10 * (clock() - self.begin_s)) + 1)]
        samples = tuple(Sample(time_s=time_s, value=250.0) for time_s in times)
        return Trace(meter=self.name, kind="power", samples=samples)

def open_watts(target):
    return ChosenMeters(meters=(Socket(),))
"""


class ChoosingCard(ScriptedCard):
    """A scripted card whose meters are those of the registry, on the card's clock."""

    def meters(self, choice: str) -> ChosenMeters:
        chosen = choose_meters(choice)
        watts: Any = sys.modules["watts"]
        watts.clock = self.now
        return chosen


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "watts.py").write_text(WATTS)
    return folder


@pytest.fixture
def watts(outside: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the meter."""
    monkeypatch.syspath_prepend(str(outside))
    monkeypatch.delitem(sys.modules, "watts", raising=False)
    yield import_module("watts")
    METERS.remove("watts:open_watts")
    sys.modules.pop("watts", None)


def test_a_meter_of_an_installed_package_is_an_option_of_the_command(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = outside / "watts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[eatss.meters]\nwatts = watts:open_watts\n")
    variant = Folders(tmp_path).variant("a")
    words: Sequence[str] = ("measure", str(variant.directory), "--card", CARD, "-f", "json")

    def metered(meter: str) -> subprocess.CompletedProcess[str]:
        command = python("-m", "eatss", *words, "--meter", meter)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (outside, ROOT))))
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    done = metered("watts")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)["measurements"]
    assert document["method"]["meter"] == "wall socket"
    done = metered("volts")
    assert done.returncode == 2
    assert "there is no energy meter 'volts' [EATSS-X005]" in done.stderr
    assert "jetson, none, watts\n" in done.stderr
