"""What works on this machine, for ``eatss doctor``, and what eatss runs with, for fault reports.

Which versions of packages eatss needs is read from its own metadata, where they stand once. Every
check runs on its own and reports a missing or broken part instead of failing.
"""

from __future__ import annotations

import importlib
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement as Line
from packaging.specifiers import SpecifierSet

from eatss.base.cache import default_cache
from eatss.base.compilers import GENERATING, find_nvcc
from eatss.base.diagnostics import EatssError
from eatss.base.frozen import frozen
from eatss.base.shipped import data_directory
from eatss.base.text import class_and_line
from eatss.cards.detect import Detection, detect
from eatss.cards.load import list_profiles, profile_directory
from eatss.version import package_revision

WHOLE, LIGHT = DISTRIBUTIONS = ("eatss", "eatss-measure")
"""What eatss is installed as; where both are, the first is used. The light one does not select."""


@frozen
class Requirement:
    """A package, its versions as in ``>=1.26,<3``, and the extra that has it, "" for none."""

    name: str
    versions: str
    extra: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.versions}"


def installed_as() -> str:
    """Return which of ``DISTRIBUTIONS`` is used here."""
    return next((name for name in DISTRIBUTIONS if _version(name) != _ABSENT), WHOLE)


def requirements() -> tuple[Requirement, ...]:
    """Return what eatss requires; nothing if it is not installed."""
    if _version(installed_as()) == _ABSENT:
        return ()
    told = metadata.metadata(installed_as())
    extras = ["", *(told.get_all("Provides-Extra") or [])]
    found = []
    for text in told.get_all("Requires-Dist") or []:
        line = Line(text)
        asking = (e for e in extras if line.marker is None or line.marker.evaluate({"extra": e}))
        versions = ",".join(sorted(map(str, line.specifier), reverse=True))
        found.append(Requirement(name=line.name, versions=versions, extra=next(asking, "none")))
    return tuple(found)


_ABSENT = "not installed"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _ABSENT


@frozen
class Fact:
    """A part and what is found of it."""

    name: str
    found: str


def installed_versions() -> tuple[Fact, ...]:
    """Return what a report needs: Python, platform, packages, driver, cards, installation."""
    seen = detect()
    packages = [one.name for one in requirements() if not one.extra]
    packages += [name for name in (*_CUPY, "nvidia-ml-py") if _version(name) != _ABSENT]
    found = {
        "installed": _installation(),
        "Python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        **{name: _version(name) for name in packages},
        "NVIDIA driver": seen.driver_version or "none",
        "cards": ", ".join(gpu.name for gpu in seen.gpus) or f"none ({'; '.join(seen.reasons)})",
        "nvcc": _check(_nvcc(None)).found,
    }
    return tuple(Fact(name=name, found=text) for name, text in found.items())


def _installation() -> str:
    """Return how eatss came here: a wheel, or a checkout and at which commit if that is known."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "pyproject.toml").is_file():
        return f"as a wheel in {checkout}"
    revision, _ = package_revision(checkout)
    return f"from the sources in {checkout}" + (f", commit {revision}" if revision else "")


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


@frozen
class Part:
    """What to look at: ``look`` returns what it found or raises."""

    name: str
    look: Callable[[], str]
    needed_for: str
    remedy: str
    optional: bool = False


def examine(*, nvcc: str | None = None) -> tuple[Check, ...]:
    """Look at everything eatss uses and return one check a part, the needed parts first.

    Args:
        nvcc: the CUDA compiler to look at, by default that of this machine.
    """
    return tuple(map(_check, (*_needed_parts(), *_tools(nvcc), *_card_parts(detect()))))


def _check(part: Part) -> Check:
    ok: bool | None = None if part.optional else False
    try:
        found, ok = part.look(), True
    except NotThereError as error:
        found = str(error)
    except EatssError as error:
        found = error.diagnostics[0].message
    except Exception as error:  # a broken installation raises anything
        found = f"broken: {class_and_line(error)}"
    return Check(
        name=part.name,
        ok=ok,
        found=found,
        needed_for=part.needed_for,
        remedy="" if ok else part.remedy,
    )


_PACKAGES = (
    ("z3-solver", "z3", "solving for tile sizes"),
    ("islpy", "islpy", "dependences, schedules, footprints"),
    ("libclang", "clang.cindex", "reading C"),
    ("numpy", "numpy", "enumerating candidates, measuring"),
    ("scipy", "scipy", "intervals, integrals"),
    ("networkx", "networkx", "the graph of statements"),
    ("pydantic", "pydantic", "schemas of documents"),
    ("packaging", "packaging", "comparing versions"),
    ("tomlkit", "tomlkit", "search spaces"),
    ("click", "click", "the command line"),
    ("rich", "rich", "tables and colours"),
)
"""What everybody needs: the package, its module, and what for."""

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def _needed_parts() -> Iterator[Part]:
    again = f"install eatss again: pip install --force-reinstall {installed_as()}"
    yield Part(name="Python", look=platform.python_version, needed_for="everything", remedy="")
    for name, module, needed_for in _PACKAGES:
        yield _package(name, module, needed_for)
    yield Part(
        name="GPU profiles",
        look=lambda: f"{len(list_profiles())} in {profile_directory()}",
        needed_for="naming a GPU",
        remedy=again,
    )
    yield Part(
        name="kernels",
        look=lambda: str(data_directory("kernels")),
        needed_for="the kernels to try first",
        remedy=again,
    )


def _tools(nvcc: str | None) -> Iterator[Part]:
    yield Part(
        name="cache",
        look=_cache,
        needed_for="not computing twice",
        remedy="mend its folder, or name another one in EATSS_CACHE_DIR",
        optional=True,
    )
    yield Part(
        name="C compiler",
        look=lambda: _command("cc", "gcc", "clang"),
        needed_for="eatss verify",
        remedy="install gcc and g++: sudo apt-get install gcc g++",
        optional=True,
    )
    yield _nvcc(nvcc)
    yield Part(
        name="ppcg",
        look=lambda: _command("ppcg"),
        needed_for="eatss ppcg",
        remedy="build PPCG: https://repo.or.cz/ppcg.git",
        optional=True,
    )


def _nvcc(named: str | None) -> Part:
    def look() -> str:
        found = find_nvcc(named)
        return f"{found.path}: {found.version}"

    return Part(
        name="nvcc",
        look=look,
        needed_for="eatss verify --device gpu",
        remedy="install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or name "
        "its compiler with --nvcc",
        optional=True,
    )


def _card_parts(seen: Detection) -> Iterator[Part]:
    """Yield what there is of a driver, of cards and of the packages that reach them."""

    def told(found: str | None) -> Callable[[], str]:
        def look() -> str:
            if not found:
                raise NotThereError("; ".join(seen.reasons) or "none")
            return found

        return look

    running = "running on a card"
    yield Part(
        name="NVIDIA driver",
        look=told(seen.driver_version),
        needed_for=running,
        remedy="install NVIDIA's driver (https://www.nvidia.com/drivers); start a container with "
        "its card: docker run --gpus all …",
        optional=True,
    )
    yield Part(
        name="cards",
        look=told(", ".join(gpu.name for gpu in seen.gpus)),
        needed_for=running,
        remedy="see nvidia-smi -L, CUDA_VISIBLE_DEVICES, and dmesg | grep -iE 'nvrm|xid'",
        optional=True,
    )
    cupy = next((name for name in _CUPY if _version(name) != _ABSENT), "cupy")
    yield _package(cupy, "cupy", "detecting GPUs, running kernels", title="CuPy")
    yield _package("nvidia-ml-py", "pynvml", "detecting GPUs, measuring energy")


def _package(name: str, module: str, needed_for: str, title: str = "") -> Part:
    """Return a package; a light install leaves out on purpose what only selecting needs."""
    wanted = [one for one in requirements() if one.name == name]
    versions = min(wanted, key=lambda one: one.extra).versions if wanted else ""
    left_out = installed_as() == LIGHT and name in GENERATING.values()

    def look() -> str:
        version = _version(name)
        if version == _ABSENT:
            raise NotThereError(_ABSENT + f"; {LIGHT} does without" * left_out)
        loaded = importlib.import_module(module)
        if module == "clang.cindex":
            loaded.conf.lib  # noqa: B018 - is loaded on its first use
        if not SpecifierSet(versions).contains(version, prereleases=True):
            raise NotThereError(f"{version}, and eatss needs {versions}")
        return version

    remedy = f"install one that does: pip install --force-reinstall '{name}{versions}'"
    if left_out:
        needed_for, remedy = "reading C, selecting", f"install the whole: pip install {WHOLE}"
    elif title and not wanted:
        remedy = f"install it: pip install '{installed_as()}[cuda13]', or [cuda12]"
    return Part(
        name=title or name,
        look=look,
        needed_for=needed_for,
        remedy=remedy,
        optional=left_out or module in ("cupy", "pynvml"),
    )


def _cache() -> str:
    cache = default_cache()
    problem = cache.problem()
    if problem is not None:
        raise NotThereError(f"{cache.folder}: {problem}")
    return str(cache.folder)


def _command(*names: str) -> str:
    """Return the path of the first of ``names`` on the path."""
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        raise NotThereError(f"{' or '.join(names)} is not on the path")
    return path
