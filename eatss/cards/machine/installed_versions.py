"""What eatss runs with: the facts that a report of a fault needs."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from eatss.base.compilers import find_nvcc
from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.cards.detect import detect
from eatss.cards.machine.driver_access import driver_verdict, look
from eatss.cards.machine.requirements import installed_cupy, requirements
from eatss.version import package_revision

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
    package = Path(__file__).resolve().parents[2]
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file():
        revision, _ = package_revision(checkout)
        changed = " with changes" * (revision or "").endswith("-dirty")
        commit = f", commit {revision[:12]}{changed}" if revision else ""
        return f"from the sources in {checkout}{commit}"
    for one in metadata.distributions(name="eatss"):
        told = json.loads(one.read_text("direct_url.json") or "{}")
        commit = told.get("vcs_info", {}).get("commit_id", "")
        if told.get("url"):
            return f"from {told['url']}" + (f", commit {commit[:12]}" if commit else "")
    return f"as a wheel in {checkout}"
