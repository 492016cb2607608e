"""``eatss roofline``: a card in, its balances and the roofs over a program out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eatss.cards import load_profile
from eatss.measurement.characterize.roofline import WIDTHS, roofline_of
from eatss.measurement.measurement import measurement_to_dict
from eatss.report.render import figure
from tests.end_to_end.in_process import eatss
from tests.report.measurements import measured

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benchmarks" / "results" / "h200" / "characterize-1.jsonl"
GEMM = ROOT / "tests" / "measurement" / "programs" / "gemm"


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
    assert found.keys() == {
        "gpu", "title", "calibrated", "rooflines", "clocks", "programs", "measured",
    }  # fmt: skip
    machine = roofline_of(load_profile("h200"), "fp64")
    one = found["rooflines"]["fp64"]
    assert one["time_balance"] == machine.time_balance
    assert one["race_to_halt"] is machine.race_to_halt
    assert (found["programs"], found["measured"]) == ([], [])


def test_a_record_is_set_beside_the_model() -> None:
    done = roofline("h200", "--record", RECORD)
    assert done.returncode == 0, done.stderr
    assert "measured on NVIDIA H200, over predicted:" in done.stdout
    points = document("h200", "--record", RECORD)["measured"]
    assert len(points) == 24
    for one in points:
        # the card that the record is of draws more than the mean of two
        assert one["time_s"] == pytest.approx(one["predicted_s"], rel=0.10)
        assert one["energy_j"] == pytest.approx(one["predicted_j"], rel=0.11)
        assert one["power_w"] == pytest.approx(one["predicted_w"], rel=0.08)


def test_a_folder_and_a_measurement_of_one_program_have_one_ceiling(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    gemm = measured(flops=192_016_000_000, least_bytes=512_000_000)
    path.write_text(json.dumps({"measurements": [measurement_to_dict(gemm)]}), encoding="utf-8")
    done = roofline("h200", "--program", GEMM, "--program", path)
    assert done.returncode == 0, done.stderr
    assert "of efficiency" in done.stdout
    folder, run = document("h200", "--program", GEMM, "--program", path)["programs"]
    assert folder["intensity"] == run["intensity"]
    assert folder["speed_ceiling_flops_s"] == run["speed_ceiling_flops_s"]
    assert folder["share_of_speed"] is None
    assert gemm.flops
    assert gemm.time_s
    speed = gemm.flops / gemm.time_s
    assert run["share_of_speed"] == pytest.approx(speed / run["speed_ceiling_flops_s"])
    assert f"{100 * run['share_of_efficiency']:.1f} %" in done.stdout


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG")])
def test_a_plot_is_written(tmp_path: Path, suffix: str, begin: bytes) -> None:
    plot = tmp_path / f"h200{suffix}"
    arguments = ("--dtype", "double", "--record", RECORD, "--program", GEMM, "--plot", plot)
    done = roofline("h200", *arguments)
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("h200", "--program", "nowhere"), "EATSS-B030"),
        (("h200", "--record", "nowhere"), "EATSS-B001"),
        (("h200", "--plot", "plot.jpg"), "EATSS-E053"),
    ],
)
def test_a_mistake_has_a_code_and_no_traceback(arguments: tuple[str, ...], code: str) -> None:
    done = roofline(*arguments)
    assert done.returncode == 2
    assert code in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
