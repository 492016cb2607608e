"""The facts behind ``eatss doctor``: complete, and unbreakable."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import eatss.cards.environment as environment
from eatss.cards.driver import DriverFacts
from eatss.cards.environment import Check, card_checks, examine, requirements
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
OPTIONAL = {"cache", "C compiler", "nvcc", "ppcg", "NVIDIA driver", "NVML", "CuPy"}


GOOD = DriverFacts(
    pci_cards=1,
    kernel_driver="580.65.06",
    library="580.65.06",
    devices=("/dev/nvidia0",),
    nvml_code=0,
    nvml_cards=1,
    cuda_code=0,
    cuda_cards=1,
    cuda=(13, 0),
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


def test_what_the_suite_runs_with_is_in_order() -> None:
    checks = by_name()
    for name in NEEDED:
        assert checks[name].ok is True, checks[name]
        assert checks[name].remedy == ""
        assert checks[name].found


def test_each_package_that_everybody_needs_is_looked_at() -> None:
    needed = {one.name for one in requirements() if not one.extra}
    assert NEEDED - {"Python", "GPU profiles", "kernels"} == needed


def test_what_doctor_prints_has_its_schema() -> None:
    found = json.loads(printed(Examination(checks=examine()), "json"))
    assert {"name", "ok", "found", "needed_for", "remedy", "command"} <= set(found["checks"][0])


def test_at_80_columns_a_command_to_copy_has_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = DriverFacts(cuda=(12, 4), cuda_code=0, cuda_cards=1, devices=("/dev/nvidia0",))
    monkeypatch.setattr(environment, "installed_cupy", lambda: {"cupy-cuda13x": "14.0.1"})
    lines = printed(Examination(checks=card_checks(newer)), "table").splitlines()
    command = next(line for line in lines if "pip uninstall" in line)
    assert command.strip().startswith(
        "pip uninstall -y cupy-cuda13x && pip install 'eatss[cuda12]'"
    )
    assert len(command) < 80


def test_what_is_not_in_order_has_a_remedy() -> None:
    for check in examine():
        assert check.needed_for
        assert bool(check.remedy) == (check.ok is not True)


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("z3-solver", "z3"),
        ("islpy", "islpy"),
        ("libclang", "clang.cindex"),
        ("numpy", "numpy"),
        ("scipy", "scipy"),
        ("networkx", "networkx"),
        ("pydantic", "pydantic"),
        ("click", "click"),
        ("rich", "rich"),
    ],
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


def test_a_broken_light_install_is_told_from_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    light_install(monkeypatch, networkx=OSError("libx.so"))
    done = command("doctor")
    assert done.returncode == 1
    assert "eatss-measure cannot run here without: networkx" in done.stdout


def test_a_package_whose_own_need_is_missing_is_broken_not_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = ModuleNotFoundError("No module named 'attrs'", name="attrs")
    break_imports(monkeypatch, {"networkx": missing})
    check = by_name()["networkx"]
    assert check.ok is False
    assert "attrs" in check.found


def test_an_old_libclang_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    cindex = importlib.import_module("clang.cindex")

    class OldLibrary:
        def __getattr__(self, name: str) -> Any:
            if name == "clang_getCursorBinaryOperatorKind":
                raise AttributeError(name)
            return getattr(real, name)

    real = cindex.conf.lib
    monkeypatch.setattr(cindex.conf, "lib", OldLibrary(), raising=False)
    check = by_name()["libclang"]
    assert check.ok is False
    assert "clang_getCursorBinaryOperatorKind" in check.found


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
    assert checks["NVML"].ok is None
    assert "nvidia-ml-py is not installed" in checks["NVML"].found
    assert checks["NVML"].command == "pip install 'nvidia-ml-py>=12.560'"
    assert checks["CuPy"].ok is None
    assert checks["CuPy"].found == "broken: RuntimeError: CUDA path could not be detected"
    assert checks["CuPy"].command == "pip install --force-reinstall cupy-cuda13x"


def test_a_card_with_its_packages_is_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "installed_cupy", lambda: {"cupy-cuda13x": "14.0.1"})
    monkeypatch.setattr(environment, "_imported", lambda module, package: "13.580.65")
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    checks = card_checks(GOOD)
    assert [(check.name, check.ok) for check in checks] == [
        ("NVIDIA driver", True),
        ("cards", True),
        ("NVML", True),
        ("CuPy", True),
    ]
    assert checks[2].found == "nvidia-ml-py 13.580.65, lists 1 card"


@pytest.mark.parametrize(
    ("version", "code", "found"),
    [
        ("11.0", 0, "nvidia-ml-py 11.0, and eatss needs >=12.560"),
        ("13.580", None, "nvidia-ml-py 13.580, but not libnvidia-ml.so.1"),
        ("13.580", 4, "nvidia-ml-py 13.580; nvmlInit returns 4"),
    ],
)
def test_nvml_that_does_not_do_says_why(
    monkeypatch: pytest.MonkeyPatch, version: str, code: int | None, found: str
) -> None:
    monkeypatch.setattr(environment, "_imported", lambda module, package: version)
    facts = replace(GOOD, nvml_code=code)
    check = next(check for check in card_checks(facts) if check.name == "NVML")
    assert check.ok is None
    assert check.found.startswith(found)
    assert check.remedy


def test_a_library_without_nvml_is_a_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_imported", lambda module, package: "13.580")
    facts = replace(GOOD, nvml_code=None, nvml_lacks=("nvmlInit_v2",))
    check = next(check for check in card_checks(facts) if check.name == "NVML")
    assert check.found == (
        "nvidia-ml-py 13.580, but libnvidia-ml.so.1 is old or a stub: it has no nvmlInit_v2"
    )


def test_a_package_that_is_too_old_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = dict.fromkeys(("networkx",), "2.8")
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: versions.get(name) or real(name)
    )
    check = by_name()["networkx"]
    assert (check.ok, check.found) == (False, "2.8, and eatss needs >=3.2,<4")
    assert check.command == "pip install --force-reinstall 'networkx>=3.2,<4'"


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


def test_a_compiler_is_reported_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "gcc"
    tool.write_text("#!/bin/sh\necho 'gcc (Test) 99.1'\necho more\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: str(tool) if name == "gcc" else None)
    check = by_name()["C compiler"]
    assert (check.ok, check.found) == (True, f"{tool}: gcc (Test) 99.1")


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 3\n", "not a program"])
def test_a_command_that_does_not_work_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    tool = tmp_path / "ppcg"
    tool.write_text(script, encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(tool) if name == "ppcg" else None)
    check = by_name()["ppcg"]
    assert check.ok is None
    assert "status 3" in check.found or "broken" in check.found


def test_a_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*command: Any, **named: Any) -> Any:
        raise subprocess.TimeoutExpired(command, named["timeout"])

    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", hang)
    check = by_name()["ppcg"]
    assert check.ok is None
    assert "TimeoutExpired" in check.found


def test_lost_data_folders_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(name: str) -> Path:
        raise FileNotFoundError(f"eatss is installed without its folder {name}")

    monkeypatch.setattr("eatss.cards.load.data_directory", lost)
    monkeypatch.setattr("eatss.cards.environment.data_directory", lost)
    checks = by_name()
    for name, folder in (("GPU profiles", "gpu_profiles"), ("kernels", "kernels")):
        assert checks[name].ok is False
        assert checks[name].found == f"eatss is installed without its folder {folder}"
        assert "install eatss again" in checks[name].remedy


def test_an_old_python_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "MINIMUM_PYTHON", (99, 0))
    check = by_name()["Python"]
    assert check.ok is False
    assert "too old" in check.found
    assert "99.0" in check.remedy
