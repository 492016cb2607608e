"""The facts behind ``eatss doctor``: complete, and unbreakable."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import eatss.cards.environment as environment
from eatss.cards.environment import Check, examine
from eatss.report.cards import Examination
from eatss.report.render import printed

ROOT = Path(__file__).resolve().parents[2]

NEEDED = {
    "eatss",
    "Python",
    "z3-solver",
    "islpy",
    "libclang",
    "numpy",
    "scipy",
    "pydantic",
    "tomlkit",
    "click",
    "rich",
    "GPU profiles",
    "kernels",
}
OPTIONAL = {
    "cache", "C compiler", "nvcc", "ppcg", "NVIDIA driver", "cards", "nvidia-ml-py", "CuPy"
}  # fmt: skip


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
    assert set(by_name()) == NEEDED | OPTIONAL


def test_each_package_that_everybody_needs_is_looked_at() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.split(r"[^\w-]", one)[0] for one in project["dependencies"]}
    assert NEEDED - {"eatss", "Python", "GPU profiles", "kernels"} == required


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
    assert check.ok is False
    assert f"pip install --force-reinstall {environment.installed_as()}" in check.remedy

    break_imports(monkeypatch, {module: OSError("libx.so: cannot open shared object file")})
    check = by_name()[name]
    assert check.ok is False
    assert check.found == "broken: OSError: libx.so: cannot open shared object file"


def test_what_a_light_install_leaves_out_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    version = environment._version
    left_out = ("z3-solver", "islpy", "libclang")
    monkeypatch.setattr(environment, "installed_as", lambda: "eatss-measure")
    monkeypatch.setattr(
        environment, "_version", lambda name: "not installed" if name in left_out else version(name)
    )
    checks = by_name()
    for name in left_out:
        assert checks[name].ok is None
        assert checks[name].found == "not installed; eatss-measure does without"
    assert not any(check.ok is False for check in checks.values())
    text = printed(Examination(checks=tuple(checks.values())), "table")
    assert "eatss-measure has all that it needs here; it does not select." in text
    assert "z3-solver, islpy, libclang, for reading C, selecting" in text
    assert text.count("pip install eatss\n") == 1


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
