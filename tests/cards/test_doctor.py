"""The facts behind ``eatss doctor``: complete, and unbreakable."""

from __future__ import annotations

import importlib
import importlib.metadata
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import eatss.cards.environment as environment
from eatss.cards.driver import DriverFacts, cards_verdict, driver_verdict, look
from eatss.cards.environment import (
    Check,
    Requirement,
    card_checks,
    cupy_verdict,
    examine,
    install_command,
    requirement,
    requirements,
)
from eatss.report.cards import Examination
from eatss.report.render import printed
from tests.end_to_end.in_process import eatss as command

NEEDED = {
    "Python",
    "z3-solver",
    "islpy",
    "libclang",
    "numpy",
    "scipy",
    "networkx",
    "packaging",
    "pydantic",
    "platformdirs",
    "tomlkit",
    "click",
    "rich",
    "GPU profiles",
    "kernels",
}
OPTIONAL = {"cache", "C compiler", "nvcc", "ppcg", "NVIDIA driver", "nvidia-ml-py", "CuPy"}


GOOD = DriverFacts(
    kernel_driver="580.65.06", devices=("/dev/nvidia0",), cuda_code=0, cuda_cards=1, cuda=(13, 0)
)


def by_name() -> dict[str, Check]:
    checks = examine()
    found = {check.name: check for check in checks}
    assert len(found) == len(checks)
    return found


def break_imports(monkeypatch: pytest.MonkeyPatch, errors: dict[str, Exception]) -> None:
    original = importlib.import_module

    def import_module(name: str, package: str | None = None) -> Any:
        if name in errors:
            raise errors[name]
        return original(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)


def test_every_part_is_looked_at() -> None:
    assert set(by_name()) - {"cards"} == NEEDED | OPTIONAL  # cards where there is a driver


def test_each_package_that_everybody_needs_is_looked_at() -> None:
    needed = {one.name for one in requirements() if not one.extra}
    assert NEEDED - {"Python", "GPU profiles", "kernels"} == needed


@pytest.mark.parametrize(
    ("name", "module"),
    [("z3-solver", "z3"), ("scipy", "scipy"), ("rich", "rich")],
)
def test_a_needed_package_that_is_missing_or_broken_is_reported(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    top = module.partition(".")[0]
    missing = ModuleNotFoundError(f"No module named {top!r}", name=top)
    break_imports(monkeypatch, {module: missing})
    check = by_name()[name]
    assert (check.ok, check.found) == (False, "not installed")
    assert "pip install" in check.command

    break_imports(monkeypatch, {module: OSError("libx.so: cannot open shared object file")})
    check = by_name()[name]
    assert check.ok is False
    assert check.found == "broken: OSError: libx.so: cannot open shared object file"


LEFT_OUT = {"z3": "z3-solver", "islpy": "islpy", "clang.cindex": "libclang"}


def light_install(monkeypatch: pytest.MonkeyPatch, **errors: Exception) -> None:
    """Have eatss installed as eatss-measure, without what that leaves out; more may be broken."""
    known = environment.requirements()
    monkeypatch.setattr(environment, "requirements", lambda: known)
    monkeypatch.setattr(environment, "installed_as", lambda: "eatss-measure")
    monkeypatch.setattr(environment, "installed_cupy", dict)
    left_out = {module: ModuleNotFoundError(name=module.partition(".")[0]) for module in LEFT_OUT}
    break_imports(monkeypatch, {**left_out, **errors})


def test_what_a_light_install_leaves_out_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    light_install(monkeypatch)
    checks = by_name()
    for name in LEFT_OUT.values():
        assert checks[name].ok is None
        assert checks[name].found == "not installed; eatss-measure does without"
        assert checks[name].command == "pip install eatss"
    assert not any(check.ok is False for check in checks.values())
    text = printed(Examination(checks=tuple(checks.values())), "table")
    assert "eatss-measure has all that it needs here; it does not select." in text
    assert "z3-solver, islpy, libclang, for reading C, selecting, generating" in text
    assert text.count("pip install eatss\n") == 1
    assert "pip install 'eatss-measure[cuda1" in text
    done = command("doctor")
    assert done.returncode == 0, done.stdout


def test_without_gpu_libraries_the_gpu_checks_are_optional_and_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_imports(
        monkeypatch,
        {
            "pynvml": ModuleNotFoundError("No module named 'pynvml'", name="pynvml"),
            "cupy": RuntimeError("CUDA path could not be detected"),
        },
    )
    monkeypatch.setattr(environment, "installed_cupy", lambda: {"cupy-cuda13x": "14.0.1"})
    checks = {check.name: check for check in card_checks(GOOD)}
    assert checks["NVIDIA driver"].ok is True
    assert checks["nvidia-ml-py"].ok is None
    assert checks["nvidia-ml-py"].found == "not installed"
    assert checks["nvidia-ml-py"].command.endswith("'nvidia-ml-py>=12.560'")
    assert checks["CuPy"].ok is None
    assert checks["CuPy"].found == "broken: RuntimeError: CUDA path could not be detected"
    assert checks["CuPy"].command == "pip install --force-reinstall cupy-cuda13x"


def test_without_any_command_on_the_path_the_tools_are_optional(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("eatss.base.compilers.USUAL", "/nowhere/nvcc")
    checks = by_name()
    for name, found in (
        ("C compiler", "cc or gcc or clang is not on the path"),
        ("nvcc", "there is no CUDA compiler 'nvcc'"),
        ("ppcg", "ppcg is not on the path"),
    ):
        assert (checks[name].ok, checks[name].found) == (None, found)


NAMED = (
    Requirement(name="cupy-cuda13x", versions=">=13.6,<15", extra="gpu"),
    Requirement(name="cupy-cuda13x", versions=">=13.6,<15", extra="all"),
)


def test_requirements_are_those_of_the_package_itself() -> None:
    found = {one.name: one for one in requirements()}
    assert found["numpy"] == Requirement(name="numpy", versions=">=1.26,<3")
    assert str(found["numpy"]) == "numpy>=1.26,<3"
    assert {one.extra for one in requirements() if one.name == "nvidia-ml-py"} == {
        "cuda12",
        "cuda13",
    }
    assert requirement("no-such-package").takes("0.1")


def test_cupy_of_the_driver_or_an_older_one_does() -> None:
    assert cupy_verdict({"cupy-cuda13x": "14.0.1"}, (13, 0), NAMED).good
    assert cupy_verdict({"cupy-cuda12x": "13.6.0"}, (13, 0), NAMED).good
    assert cupy_verdict({"cupy": "14.0.1"}, (12, 4), NAMED).good
    assert cupy_verdict({"cupy-cuda13x": "14.0.1"}, None, NAMED).good


def test_cupy_that_is_newer_than_the_driver_is_told_with_the_one_that_does() -> None:
    verdict = cupy_verdict({"cupy-cuda13x": "14.0.1"}, (12, 4), NAMED)
    assert verdict.found == (
        "cupy-cuda13x 14.0.1 is for CUDA 13, and the driver runs CUDA up to 12.4"
    )
    assert verdict.command == (
        "pip uninstall -y cupy-cuda13x && pip install 'cupy-cuda12x>=13.6,<15'"
    )


def test_two_packages_of_cupy_spoil_each_other() -> None:
    verdict = cupy_verdict({"cupy-cuda13x": "14.0", "cupy-cuda12x": "14.0"}, (13, 0), NAMED)
    assert not verdict.good
    assert verdict.command == (
        "pip uninstall -y cupy-cuda12x cupy-cuda13x && pip install 'eatss[gpu]'"
    )


def test_cupy_that_is_too_old_is_told_with_the_versions_that_do() -> None:
    verdict = cupy_verdict({"cupy-cuda12x": "12.0"}, (13, 0), NAMED)
    assert verdict.found == "cupy-cuda12x 12.0, and eatss needs >=13.6,<15"
    assert verdict.command == "pip install 'cupy-cuda12x>=13.6,<15'"


@pytest.mark.parametrize(
    ("cuda", "command"),
    [((13, 1), "eatss[gpu]"), (None, "eatss[gpu]"), ((12, 8), "cupy-cuda12x>=13.6,<15")],
)
def test_what_is_missing_is_installed_for_the_driver(
    cuda: tuple[int, int] | None, command: str
) -> None:
    verdict = cupy_verdict({}, cuda, NAMED)
    assert (verdict.good, verdict.found) == (False, "not installed")
    assert verdict.command == f"pip install '{command}'"
    assert install_command(cuda[0] if cuda else 13, NAMED) == verdict.command


HIDDEN = replace(GOOD, cuda_code=100, cuda_cards=0)


@pytest.mark.parametrize(
    ("facts", "found", "command"),
    [
        (DriverFacts(), "there is none", ""),
        (DriverFacts(container=True), "libcuda.so.1 in this container", "docker run --gpus all"),
        (DriverFacts(kernel_driver="570.1"), "is not found", "libnvidia-compute-570"),
        (replace(HIDDEN, cuda_code=803), "libraries are of another", "sudo reboot"),
        (replace(HIDDEN, closed=("/dev/nvidia0",)), "may not open /dev/nvidia0", "usermod"),
        (replace(HIDDEN, cuda_code=802), "links between the cards", "fabricmanager"),
        (replace(HIDDEN, cuda_code=34), "libcuda.so.1 is a stub", "LD_LIBRARY_PATH"),
    ],
)
def test_what_is_wrong_with_the_driver(facts: DriverFacts, found: str, command: str) -> None:
    verdict = driver_verdict(facts)
    assert not verdict.good
    assert found in verdict.found
    assert verdict.remedy
    assert command in verdict.command


@pytest.mark.parametrize(
    ("facts", "found", "command"),
    [
        (replace(HIDDEN, visible=""), "CUDA_VISIBLE_DEVICES is ''", "unset"),
        (replace(HIDDEN, cuda_code=999), "cuInit returns 999", "dmesg"),
        (replace(HIDDEN, devices=(), container=True), "lists none", "docker run --gpus all"),
    ],
)
def test_why_no_card_is_seen(facts: DriverFacts, found: str, command: str) -> None:
    assert driver_verdict(facts).good
    verdict = cards_verdict(facts)
    assert not verdict.good
    assert found in verdict.found
    assert command in verdict.command


def test_a_machine_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    def answers(value: int) -> Any:
        def function(place: Any = None) -> int:
            if hasattr(place, "_obj"):
                place._obj.value = value
            return 0

        return function

    library = ModuleType("libcuda")
    for name, value in (("cuInit", 0), ("cuDriverGetVersion", 12080), ("cuDeviceGetCount", 1)):
        setattr(library, name, answers(value))
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Build\n"
    )
    assert look(tmp_path, {"libcuda.so.1": library}.__getitem__) == DriverFacts(
        kernel_driver="580.65.06", cuda_code=0, cuda_cards=1, cuda=(12, 8), visible="0"
    )
    assert driver_verdict(GOOD).found == "580.65.06, runs CUDA up to 13.0"
    assert cards_verdict(GOOD).found == "CUDA sees 1 card"
