"""What eatss runs with: the facts that a report of a fault needs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from eatss.compilers import find_nvcc
from eatss.diagnostics import EatssError
from eatss.frozen import frozen
from eatss.gpu.detect import detect
from eatss.machine.driver_access import driver_verdict, look
from eatss.machine.requirements import installed_cupy, requirements

_ABSENT = "not installed"


@frozen
class Fact:
    """A part and what is found of it."""

    name: str
    found: str


def installed_versions() -> tuple[Fact, ...]:
    """Return what a report needs: Python, platform, packages, driver, cards, installation."""
    facts = look(visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
    cupy = ", ".join(f"{name} {version}" for name, version in sorted(installed_cupy().items()))
    found = {
        "installed": _installation(),
        "Python": f"{platform.python_version()} ({sys.executable})",
        "platform": f"{platform.platform()}{', in a container' if facts.container else ''}",
        **{name: _version(name) for name in _packages()},
        "CuPy": cupy or _ABSENT,
        "NVIDIA driver": driver_verdict(facts).found,
        "cards": _cards(),
        "nvcc": _nvcc(),
    }
    return tuple(Fact(name=name, found=text) for name, text in found.items())


def _packages() -> tuple[str, ...]:
    """Return the packages that everybody needs, and the one that asks for cards."""
    return (*(one.name for one in requirements() if not one.extra), "nvidia-ml-py")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _ABSENT


def _cards() -> str:
    found = detect()
    names = [gpu.name for gpu in found.gpus]
    return ", ".join(names) or f"none ({'; '.join(found.reasons)})"


def _nvcc() -> str:
    try:
        found = find_nvcc()
    except EatssError as error:
        return error.diagnostics[0].message
    return f"{found.version} ({found.path})"


def _installation() -> str:
    """Return how eatss came here: a wheel, a checkout, and at which commit if that is known."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file():
        commit = _commit(checkout)
        return f"from the sources in {checkout}" + (f", commit {commit}" if commit else "")
    for one in metadata.distributions(name="eatss"):
        told = json.loads(one.read_text("direct_url.json") or "{}")
        commit = told.get("vcs_info", {}).get("commit_id", "")
        if told.get("url"):
            return f"from {told['url']}" + (f", commit {commit[:12]}" if commit else "")
    return f"as a wheel in {checkout}"


def _commit(folder: Path) -> str:
    """Return the commit of a checkout, with a word where files differ from it."""
    if not (folder / ".git").exists():
        return ""
    said = []
    for words in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "-uno")):
        try:
            done = subprocess.run(  # noqa: S603
                ["git", "-C", str(folder), *words],  # noqa: S607
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        said.append(done.stdout.strip())
    return said[0] + (" with changes" if said[1] else "")
