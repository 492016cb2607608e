"""What works on this machine and what eatss runs with, for ``eatss doctor``.

Every check runs on its own and reports a missing or broken part instead of failing.
"""

from __future__ import annotations

import importlib
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

from eatss.base.cache import default_cache
from eatss.base.compilers import GENERATING, find_nvcc
from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.base.shipped import data_directory
from eatss.base.text import class_and_line
from eatss.cards.detect import Detection, detect
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
    return (*_needed(), *_tools(nvcc), *_cards(detect()))


def _check(
    name: str, look: Callable[[], str], needed_for: str, remedy: str, *, optional: bool = False
) -> Check:
    """Look at a part: ``look`` returns what it found or raises."""
    ok: bool | None = None if optional else False
    try:
        found, ok = look(), True
    except NotThereError as error:
        found = str(error)
    except EatssError as error:
        found = error.diagnostics[0].message
    except Exception as error:  # a broken installation raises anything
        found = f"broken: {class_and_line(error)}"
    return Check(name=name, ok=ok, found=found, needed_for=needed_for, remedy="" if ok else remedy)


_PACKAGES = {
    "z3-solver": ("z3", "solving for tile sizes"),
    "islpy": ("islpy", "dependences, schedules, footprints"),
    "libclang": ("clang.cindex", "reading C"),
    "numpy": ("numpy", "enumerating candidates, measuring"),
    "scipy": ("scipy", "intervals, integrals"),
    "pydantic": ("pydantic", "schemas of documents"),
    "tomlkit": ("tomlkit", "search spaces"),
    "click": ("click", "the command line"),
    "rich": ("rich", "tables and colours"),
}
"""What everybody needs: the package, its module, and what for."""

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def _needed() -> Iterator[Check]:
    again = f"install eatss again: pip install --force-reinstall {installed_as()}"
    python = f"{platform.python_version()} on {platform.platform()} ({sys.executable})"
    yield _check("eatss", _installation, "everything", again)
    yield _check("Python", lambda: python, "everything", "")
    for name, (module, needed_for) in _PACKAGES.items():
        yield _package(name, module, needed_for)
    yield _check(
        "GPU profiles",
        lambda: f"{len(list_profiles())} in {profile_directory()}",
        "naming a GPU",
        again,
    )
    yield _check(
        "kernels", lambda: str(data_directory("kernels")), "the kernels to try first", again
    )


def _tools(nvcc: str | None) -> Iterator[Check]:
    def compiler() -> str:
        found = find_nvcc(nvcc)
        return f"{found.path}: {found.version}"

    def command(*names: str) -> Callable[[], str]:
        def look() -> str:
            path = next((path for name in names if (path := shutil.which(name))), None)
            return _there(path, f"{' or '.join(names)} is not on the path")

        return look

    for name, look, needed_for, remedy in (
        (
            "cache",
            _cache,
            "not computing twice",
            "mend its folder, or name another one in EATSS_CACHE_DIR",
        ),
        (
            "C compiler",
            command("cc", "gcc", "clang"),
            "eatss verify",
            "install gcc and g++: sudo apt-get install gcc g++",
        ),
        (
            "nvcc",
            compiler,
            "eatss verify --device gpu",
            "install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or name its "
            "compiler with --nvcc",
        ),
        ("ppcg", command("ppcg"), "eatss ppcg", "build PPCG: https://repo.or.cz/ppcg.git"),
    ):
        yield _check(name, look, needed_for, remedy, optional=True)


def _there(found: str | None, why: str) -> str:
    if not found:
        raise NotThereError(why)
    return found


def _cards(seen: Detection) -> Iterator[Check]:
    """Yield what there is of a driver, of cards and of the packages that reach them."""
    names, why = ", ".join(gpu.name for gpu in seen.gpus), "; ".join(seen.reasons) or "none"
    for name, found, remedy in (
        (
            "NVIDIA driver",
            seen.driver_version,
            "install NVIDIA's driver (https://www.nvidia.com/drivers); start a container with its "
            "card: docker run --gpus all …",
        ),
        (
            "cards",
            names,
            "see nvidia-smi -L, CUDA_VISIBLE_DEVICES, and dmesg | grep -iE 'nvrm|xid'",
        ),
    ):
        look = partial(_there, found, why)
        yield _check(name, look, "running on a card", remedy, optional=True)
    cupy = next((name for name in _CUPY if _version(name) != _ABSENT), "cupy")
    yield _package(cupy, "cupy", "detecting GPUs, running kernels", title="CuPy")
    yield _package("nvidia-ml-py", "pynvml", "detecting GPUs, measuring energy")


def _package(name: str, module: str, needed_for: str, title: str = "") -> Check:
    """Return a package; a light install leaves out on purpose what only selecting needs."""
    left_out = installed_as() == LIGHT and name in GENERATING.values()

    def look() -> str:
        version = _version(name)
        if version == _ABSENT:
            raise NotThereError(_ABSENT + f"; {LIGHT} does without" * left_out)
        loaded = importlib.import_module(module)
        if module == "clang.cindex":
            loaded.conf.lib  # noqa: B018 - is loaded on its first use
        return version

    remedy = f"install eatss again: pip install --force-reinstall {installed_as()}"
    optional = left_out or module in ("cupy", "pynvml")
    if left_out:
        needed_for, remedy = "reading C, selecting", f"install the whole: pip install {WHOLE}"
    elif optional:
        remedy = f"pip install --force-reinstall '{installed_as()}[cuda13]', or [cuda12]"
    return _check(title or name, look, needed_for, remedy, optional=optional)


def _cache() -> str:
    cache = default_cache()
    problem = cache.problem()
    if problem is not None:
        raise NotThereError(f"{cache.folder}: {problem}")
    return str(cache.folder)
