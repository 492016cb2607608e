from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from eatss.base.codec import decode, encode
from eatss.measurement.foreign import NotStartedError, ProgramEnergy, meter_program
from eatss.measurement.options import MeterOptions
from eatss.report.measurement import power_csv
from eatss.report.pages import printed
from tests.forked_workers import python
from tests.measurement.meters.conftest import FakeNvml
from tests.refusals import refusing

ROOT = Path(__file__).parents[3]


def sleeping(seconds: float) -> list[str]:
    """Return a program that takes some time."""
    return [sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"]


def test_energy_is_that_of_a_steady_card_over_the_run() -> None:
    found = meter_program(sleeping(0.3), margin_s=0.2, module=FakeNvml())
    (card,) = found.cards
    assert card.energy_j is not None
    assert card.uncertainty_j is not None
    assert abs(card.energy_j - 400 * found.time_s) <= card.uncertainty_j
    assert card.uncertainty_j < 0.2 * card.energy_j
    assert 0.3 <= found.time_s < 5
    assert (found.runs, found.exit_code) == (1, 0)
    assert card.idle_power_w == pytest.approx(400, abs=0.5)
    assert card.peak_power_w == 400.5


def test_the_trace_begins_before_the_program_and_ends_with_it() -> None:
    found = meter_program(sleeping(0.2), margin_s=0.2, module=FakeNvml())
    times = [sample.time_s for sample in found.cards[0].trace]
    assert times[0] == pytest.approx(-0.2, abs=0.1)
    assert 0 < times[-1] <= found.time_s
    assert all(a <= b for a, b in pairwise(times))
    lines = power_csv(found).splitlines()
    assert lines[0] == "device,time_s,power_w"
    assert len(lines) == len(times) + 1
    assert lines[1].startswith("GPU-0,-0.")


@pytest.mark.parametrize(
    ("words", "code"), [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill $$"], 143)]
)
def test_the_exit_code_is_as_of_a_shell(words: list[str], code: int) -> None:
    found = meter_program(words, margin_s=0.0, module=FakeNvml())
    assert found.exit_code == code


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    module = FakeNvml()
    for name, status in (("no-such-program", 127), (str(tmp_path), 126)):
        with pytest.raises(NotStartedError) as caught:
            meter_program([name], margin_s=0.0, module=module)
        assert (caught.value.code, caught.value.status) == ("EATSS-E091", status)
    assert module.users == 0


def test_no_card_is_an_error_before_the_program_runs(tmp_path: Path) -> None:
    module = FakeNvml()
    module.failing["nvmlInit"] = 12
    with refusing("EATSS-E074"):
        meter_program(["touch", str(tmp_path / "ran")], module=module)
    assert not (tmp_path / "ran").exists()
    with refusing("EATSS-E074"):
        meter_program(["true"], MeterOptions(devices=(5,)), module=FakeNvml())


def test_json_reads_back_but_for_traces() -> None:
    found = meter_program(["true"], margin_s=0.0, module=FakeNvml())
    plain = json.loads(printed(found, "json"))
    assert encode(decode(ProgramEnergy, plain)) == plain
    assert encode(found)["schema_version"] == 1


# -- the command ------------------------------------------------------------------------------


def asked(*words: str, cards: str = "CARDS") -> list[str]:
    """Return the words of ``eatss meter`` for Python."""
    nvml = f"tests.measurement.meters.steady_nvml:{cards}"
    return ["-m", "eatss", "meter", "--nvml", nvml, *words]


def line(*words: str) -> list[str]:
    """Return a command line of ``eatss meter``."""
    return [sys.executable, *asked(*words)]


def meter(*words: str, cards: str = "CARDS") -> subprocess.CompletedProcess[str]:
    """Run ``eatss meter``."""
    command = python(*asked(*words, cards=cards))
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )


def test_streams_and_exit_code_are_the_programs() -> None:
    done = meter("--", "sh", "-c", "cat; echo out; echo err >&2; exit 5")
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n")
    assert "exit code 5" in done.stderr
    assert done.returncode == 5


@pytest.mark.usefixtures("heeded_signals")
def test_signals_are_the_programs(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = (
        "import signal, sys, time\n"
        f"signal.signal({int(signal.SIGTERM)}, lambda *_: sys.exit(9))\n"
        f"open({str(ready)!r}, 'w').close()\n"
        "time.sleep(60)\n"
    )
    run = subprocess.Popen(
        line("--", sys.executable, "-S", "-c", script), cwd=ROOT, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not ready.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGTERM)
    _, said = run.communicate(timeout=30)
    assert run.returncode == 9
    assert b"exit code 9" in said
