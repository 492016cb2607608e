"""``eatss roofline``: a card in, its balances out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eatss.cards import load_profile
from eatss.measurement.characterize.roofline import WIDTHS, roofline_of
from eatss.report.render import figure
from tests.end_to_end.in_process import eatss


def roofline(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return eatss("roofline", *arguments)


def document(*arguments: str | Path) -> dict[str, Any]:
    done = roofline(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(text: str, name: str) -> list[str]:
    (found,) = [x.strip() for x in text.splitlines() if x.strip().startswith(f"{name}  ")]
    return found.removeprefix(name).split()


def test_the_table_has_the_balances_of_both_widths() -> None:
    done = roofline("h200")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b[" not in done.stdout
    assert "uncalibrated" not in done.stdout
    machines = [roofline_of(load_profile("h200"), width) for width in WIDTHS]
    for name, unit, values in (
        ("time balance", ["flop/byte"], [m.time_balance for m in machines]),
        ("energy balance", ["flop/byte"], [m.energy_balance for m in machines]),
        (
            "effective balance (half efficiency)",
            ["flop/byte"],
            [m.half_efficiency_intensity for m in machines],
        ),
        ("balance gap", [], [m.balance_gap for m in machines]),
        ("bandwidth of memory", ["GB/s"], [1e-9 / m.byte_s for m in machines]),
        ("constant power", ["W"], [m.constant_w for m in machines]),
    ):
        assert row(done.stdout, name) == [*(figure(v, 4) for v in values), *unit]
    assert row(done.stdout, "race to halt") == ["yes", "yes"]


def test_json_holds_what_the_machine_says_and_no_infinity() -> None:
    found = document("h200")
    assert found.keys() == {"gpu", "title", "calibrated", "rooflines", "clocks"}
    machine = roofline_of(load_profile("h200"), "fp64")
    one = found["rooflines"]["fp64"]
    assert one["time_balance"] == machine.time_balance
    assert one["race_to_halt"] is machine.race_to_halt


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG")])
def test_a_plot_is_written(tmp_path: Path, suffix: str, begin: bytes) -> None:
    plot = tmp_path / f"h200{suffix}"
    done = roofline("h200", "--dtype", "double", "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere.toml",), "EATSS-G002"),
        (("h200", "--plot", "plot.jpg"), "EATSS-E053"),
    ],
)
def test_a_mistake_has_a_code_and_no_traceback(arguments: tuple[str, ...], code: str) -> None:
    done = roofline(*arguments)
    assert done.returncode == 2
    assert code in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
