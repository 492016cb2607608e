"""What works on this machine and what eatss runs with, for ``eatss doctor``.

Every check runs on its own and reports a missing or broken part instead of failing.
"""

from __future__ import annotations

import importlib
import platform
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

from eatss.base.cache import default_cache
from eatss.base.compilers import GENERATING, find_nvcc
from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.base.shipped import data_directory
from eatss.base.text import class_and_line
from eatss.cards.detect import detect
from eatss.cards.load import list_profiles, profile_directory
from eatss.version import __version__, package_revision

WHOLE, LIGHT = DISTRIBUTIONS = ("eatss", "eatss-measure")
"""What eatss is installed as; where both are, the first is used. The light one does not select."""

_ABSENT = "not installed"


def installed_as() -> str:
    """Return which of ``DISTRIBUTIONS`` is used here."""
    return next((name for name in DISTRIBUTIONS if _version(name) != _ABSENT), WHOLE)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _ABSENT


def _installation() -> str:
    """Return version and place of eatss, of a checkout with its commit."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "pyproject.toml").is_file():
        return f"{__version__}, in {checkout}"
    revision, _ = package_revision(checkout)
    return f"{__version__}, sources in {checkout}" + (f", commit {revision}" if revision else "")


@frozen
class Check:
    """One fact about this machine.

    ``ok`` is ``None`` where something optional is not there. ``found`` says what is there or what
    went wrong, ``remedy`` what to do, "" where all is well.
    """

    name: str
    ok: bool | None
    found: str
    needed_for: str
    remedy: str = ""


class NotThereError(Exception):
    """A part is missing or does not work; the text is the sentence to show."""


def examine(*, nvcc: str | None = None) -> tuple[Check, ...]:
    """Look at everything eatss uses and return one check a part, the needed parts first.

    Args:
        nvcc: the CUDA compiler to look at, by default that of this machine.
    """
    seen = detect()
    names, why = ", ".join(gpu.name for gpu in seen.gpus), "; ".join(seen.reasons) or "none"
    python = f"{platform.python_version()} on {platform.platform()} ({sys.executable})"
    looks: dict[str, Callable[[], str]] = {
        "eatss": _installation,
        "Python": lambda: python,
        "GPU profiles": lambda: f"{len(list_profiles())} in {profile_directory()}",
        "kernels": lambda: str(data_directory("kernels")),
        "cache": _cache,
        "C compiler": partial(_command, "cc", "gcc", "clang"),
        "nvcc": partial(_compiler, nvcc),
        "ppcg": partial(_command, "ppcg"),
        "NVIDIA driver": partial(_there, seen.driver_version, why),
        "cards": partial(_there, names, why),
    }
    text = Path(__file__).with_name("doctor.toml").read_text(encoding="utf-8")
    parts = tomllib.loads(text).items()
    return tuple(_check(name, looks.get(name), **part) for name, part in parts)


def _check(
    name: str,
    look: Callable[[], str] | None,
    *,
    needed_for: str,
    module: str = "",
    packages: Sequence[str] = (),
    optional: bool = False,
    remedy: str = "install eatss again: pip install --force-reinstall {installed_as}",
) -> Check:
    """Look at a part; a light install leaves out on purpose what only selecting needs."""
    if installed_as() == LIGHT and name in GENERATING.values():
        needed_for, remedy = "reading C, selecting", f"install the whole: pip install {WHOLE}"
        optional = True
    ok: bool | None = None if optional else False
    try:
        found, ok = look() if look else _package(packages or (name,), module), True
    except NotThereError as error:
        found = str(error)
    except EatssError as error:
        found = error.message
    except Exception as error:  # a broken installation raises anything
        found = f"broken: {class_and_line(error)}"
    remedy = "" if ok else remedy.format(installed_as=installed_as())
    return Check(name=name, ok=ok, found=found, needed_for=needed_for, remedy=remedy)


def _package(names: Sequence[str], module: str) -> str:
    version = next((found for name in names if (found := _version(name)) != _ABSENT), "")
    without = f"; {LIGHT} does without" * (
        installed_as() == LIGHT and names[0] in GENERATING.values()
    )
    _there(version, _ABSENT + without)
    loaded = importlib.import_module(module)
    if module == "clang.cindex":
        loaded.conf.lib  # noqa: B018 - is loaded on its first use
    return version


def _command(*names: str) -> str:
    path = next((path for name in names if (path := shutil.which(name))), None)
    return _there(path, f"{' or '.join(names)} is not on the path")


def _compiler(nvcc: str | None) -> str:
    found = find_nvcc(nvcc)
    return f"{found.path}: {found.version}"


def _cache() -> str:
    cache = default_cache()
    problem = cache.problem()
    return _there(None if problem else str(cache.folder), f"{cache.folder}: {problem}")


def _there(found: str | None, why: str) -> str:
    if not found:
        raise NotThereError(why)
    return found
