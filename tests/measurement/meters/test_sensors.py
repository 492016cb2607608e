"""What ``eatss doctor`` says of energy sensors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eatss.base.diagnostics import input_error
from eatss.cards.environment import Check
from eatss.measurement.metering import SensorTrial, examine_sensors, steady_load
from eatss.measurement.meters import MeterError, NvmlDevice
from eatss.report.cards import Examination
from eatss.report.render import printed

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml

TRIAL = SensorTrial(idle_s=0.15, load_s=0.15, settle_s=0.03, load=time.sleep)


def no_cuda(_: int | str) -> str | None:
    raise input_error("EATSS-E021", "CuPy does not load", hint="pip install 'eatss[gpu]'")


def look(
    fake: FakeNvml, *, with_load: bool = False, trial: SensorTrial = TRIAL
) -> dict[str, Check]:
    found = examine_sensors(module=fake, with_load=with_load, trial=trial, find=no_cuda)
    assert all(bool(check.remedy) == (check.ok is not True) for check in found)
    assert all(check.ok is not False for check in found)
    return {check.name: check for check in found}


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_card_that_works_is_told_with_its_update_period(fake: FakeNvml) -> None:
    checks = look(fake)
    assert checks["energy meter"].found.startswith("NVML energy counter, NVML power")
    assert checks["other programs"].found == "none uses the card"
    assert checks["energy counter"].ok
    assert checks["energy counter"].found.startswith("moves every ")
    assert checks["counter against power"].remedy == "eatss doctor --sensors"
    assert fake.users == 0


def test_counter_and_power_that_agree_are_said_to(fake: FakeNvml) -> None:
    check = look(fake, with_load=True)["counter against power"]
    assert check.found.startswith(("ratio 0.9", "ratio 1.0"))
    assert "400 W integrated" in check.found


def test_counter_and_power_that_differ_are_worth_a_word(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fake, "nvmlDeviceGetPowerUsage", lambda _: 200_000 + int(fake.now() * 1e3) % 2
    )
    check = look(fake, with_load=True)["counter against power"]
    assert check.ok is None
    assert "the sensors differ" in check.remedy


def test_a_load_that_fails_is_a_reason(fake: FakeNvml) -> None:
    def fail(seconds: float) -> None:
        raise MeterError("no load can be made: CuPy is not installed", "pip install 'eatss[gpu]'")

    trial = SensorTrial(idle_s=0.02, load_s=0.01, settle_s=0.0, load=fail)
    check = look(fake, with_load=True, trial=trial)["counter against power"]
    assert (check.ok, check.remedy) == (None, "pip install 'eatss[gpu]'")


def test_other_programs_are_named(fake: FakeNvml) -> None:
    fake.processes = [SimpleNamespace(pid=os.getpid() + 1, usedGpuMemory=5 << 20)]
    check = look(fake)["other programs"]
    assert check.found == f"process {os.getpid() + 1} (5 MiB) uses the card"
    fake.processes *= 6
    assert "and 2 more use the card" in look(fake)["other programs"].found


def test_instances_are_named_as_the_reason(fake: FakeNvml) -> None:
    fake.mig = [1, 1]
    check = look(fake)["energy meter"]
    assert check.ok is None
    assert "MIG" in check.found


@pytest.mark.parametrize("code", [3, 4, 15])
def test_a_sensor_that_refuses_is_a_sentence_and_what_to_do(fake: FakeNvml, code: int) -> None:
    fake.failing["nvmlDeviceGetTotalEnergyConsumption"] = code
    checks = look(fake, with_load=True)
    assert checks["energy counter"].ok is None
    assert checks["energy counter"].found.startswith("energy counter: ")
    assert checks["counter against power"].ok is None


def test_a_counter_that_stands_still_is_reported(fake: FakeNvml) -> None:
    fake.period_s = 1e9
    assert look(fake)["energy counter"].found == "NVML energy counter did not move"


def test_without_a_driver_one_line_says_so(fake: FakeNvml) -> None:
    fake.failing["nvmlInit"] = 9
    checks = look(fake)
    assert list(checks) == ["energy meter"]
    assert "driver is not loaded" in checks["energy meter"].found


def test_a_card_is_counted_as_cuda_does_however_the_driver_lists_it(fake: FakeNvml) -> None:
    asked: list[str] = []
    find_card = fake.nvmlDeviceGetHandleByUUID

    def by_uuid(uuid: str) -> Any:
        asked.append(uuid)
        return find_card(uuid)

    fake.nvmlDeviceGetHandleByUUID = by_uuid  # type: ignore[method-assign]
    examine_sensors(0, module=fake, trial=TRIAL, find=lambda device: f"GPU-{1 - int(device)}")
    assert set(asked) == {"GPU-1"}


def test_a_card_that_cuda_does_not_have_is_not_looked_for_in_the_drivers_list(
    fake: FakeNvml,
) -> None:
    def find(device: int | str) -> str | None:
        raise input_error("EATSS-E023", f"there is no card {device}: CUDA sees 1", hint="see it")

    (check,) = examine_sensors(1, module=fake, trial=TRIAL, find=find)
    assert (check.name, check.found) == ("energy meter", "there is no card 1: CUDA sees 1")


def test_a_variable_that_renumbers_the_cards_is_pointed_out(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert "CUDA_VISIBLE_DEVICES is '1'" in look(fake)["numbers of cards"].found


class FakeCupy:
    """Two cards, in another order than the driver's."""

    float32 = "float32"

    def __init__(self) -> None:
        self.launched = 0
        self.chosen: list[int] = []
        uuids = {0: bytes(15) + b"\x01", 1: bytes(16)}
        self.cuda = SimpleNamespace(
            Device=self.device,
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 2,
                getDeviceProperties=lambda index: {"uuid": uuids[index]},
                deviceSynchronize=lambda: time.sleep(0.001),
            ),
        )
        generator = SimpleNamespace(random=lambda *_, **__: "values")
        self.random = SimpleNamespace(default_rng=lambda seed: generator)

    def device(self, index: int) -> Any:
        self.chosen.append(index)
        return open(os.devnull)  # noqa: PTH123  (any context manager)

    def ElementwiseKernel(self, *_: str) -> Any:
        def launch(*_: object) -> None:
            self.launched += 1

        return launch

    def empty_like(self, values: object) -> object:
        return values


def test_the_load_runs_on_the_card_of_the_uuid_for_as_long_as_asked() -> None:
    cupy = FakeCupy()
    run = steady_load(f"GPU-{'00000000-0000-0000-0000-000000000000'}", cupy=cupy)
    begin_s = time.perf_counter()
    run(0.03)
    assert time.perf_counter() - begin_s >= 0.03
    assert cupy.launched > 4
    assert set(cupy.chosen) == {1}


def test_a_card_that_cuda_does_not_see_is_said_to_be_hidden() -> None:
    with pytest.raises(MeterError, match="CUDA does not see the card GPU-x") as caught:
        steady_load("GPU-x", cupy=FakeCupy())
    assert "CUDA_VISIBLE_DEVICES" in caught.value.remedy


def test_a_broken_cupy_is_a_sentence() -> None:
    with pytest.raises(MeterError, match="no load can be made: AttributeError"):
        steady_load(None, cupy=SimpleNamespace())


def check(name: str, ok: bool | None) -> Check:
    return Check(name=name, ok=ok, found="", needed_for="", remedy="" if ok else "do")


def shown(*checks: Check) -> str:
    return printed(Examination(checks=checks), "table")


def test_the_verdict_tells_measuring_from_selecting() -> None:
    selects = shown(check("z3-solver", True), check("CuPy", None))
    assert "eatss select works here." in selects
    assert "eatss measure cannot run here without: CuPy" in selects
    measures = shown(check("z3-solver", False), check("CuPy", True), check("energy meter", True))
    assert "eatss select cannot run here without: z3-solver" in measures
    assert "eatss measure works here." in measures
    blind = shown(check("CuPy", True), check("energy meter", None))
    assert "for time but not for energy" in blind


HIDDEN = ("z3", "islpy", "clang", "networkx")


@pytest.mark.samples(1)
@pytest.mark.parametrize("hidden", [(*HIDDEN, "scipy"), ("numpy",)])
def test_doctor_runs_where_solver_and_compiler_are_missing(hidden: tuple[str, ...]) -> None:
    checks = doctor_without(
        hidden,
        """
sys.argv = ["eatss", "doctor", "--format", "json"]
from eatss.cli import main
main()
""",
    )
    package = {"z3": "z3-solver", "clang": "libclang"}
    for name in hidden:
        assert checks[package.get(name, name)]["ok"] is False
    assert ("energy meter" in checks) == ("numpy" not in hidden)


def test_the_checks_need_no_pydantic() -> None:
    # Releases of Typer that need pydantic themselves bring it, so the command line is left out.
    checks = doctor_without(
        (*HIDDEN, "pydantic"),
        """
from eatss.cards.environment import examine
from eatss.measurement.metering import examine_sensors
from eatss.report.cards import Examination
from eatss.report.render import printed
print(printed(Examination(checks=(*examine(), *examine_sensors())), "json"))
sys.exit(1)
""",
    )
    assert checks["pydantic"]["found"] == "not installed"
    assert checks["GPU profiles"]["found"] == "cannot be read without pydantic"
    assert "energy meter" in checks


def doctor_without(hidden: tuple[str, ...], script: str) -> dict[str, Any]:
    """Run a script in which modules cannot be imported; return the checks that it prints."""
    hide = f"import sys\nfor name in {hidden!r}:\n    sys.modules[name] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", hide + script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    return {entry["name"]: entry for entry in json.loads(done.stdout)["checks"]}


@pytest.mark.gpu
def test_the_sensors_of_a_real_card_agree_under_load() -> None:
    pytest.importorskip("cupy", reason="needs CuPy to load the card")
    checks = {check.name: check for check in examine_sensors(with_load=True)}
    assert checks["energy counter"].ok, checks["energy counter"].found
    assert checks["counter against power"].found.startswith("ratio ")
    with closing(NvmlDevice()) as device:
        assert device.power_w() > 0
