"""What works on this machine, for ``eatss doctor``, and what eatss runs with, for fault reports.

Which versions of packages eatss needs is read from its own metadata, where they stand once. Which
package of CuPy does for a driver is said here: each is made for one CUDA. Every check runs on its
own and reports a missing or broken part instead of failing.
"""

from __future__ import annotations

import importlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement as Line
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion

from eatss.base.cache import default_cache
from eatss.base.compilers import GENERATING, find_nvcc
from eatss.base.diagnostics import EatssError, InternalError
from eatss.base.frozen import frozen
from eatss.base.shipped import data_directory
from eatss.base.text import class_and_line
from eatss.cards.detect import detect
from eatss.cards.driver import (
    DriverFacts,
    Verdict,
    Version,
    bad,
    cards_verdict,
    driver_verdict,
    look,
)
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

    def takes(self, version: str) -> bool:
        """Return whether a version is among those that do; what cannot be read does."""
        try:
            return SpecifierSet(self.versions).contains(version, prereleases=True)
        except InvalidVersion:
            return True


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


def requirement(name: str) -> Requirement:
    """Return what is required of a package, any version if nothing is."""
    found = [one for one in requirements() if one.name.lower() == name.lower()]
    return min(found, key=lambda one: one.extra, default=Requirement(name=name, versions=""))


_ABSENT = "not installed"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _ABSENT


NEWEST = 13
"""The CUDA whose CuPy is proposed where no driver says what it runs."""

_PACKAGE = re.compile(r"cupy(?:-cuda(\d+)x)?")
_DEVELOPING = frozenset(("all", "dev"))


def installed_cupy() -> dict[str, str]:
    """Return the packages of CuPy that are installed, with their versions."""
    found = {}
    for one in metadata.distributions():
        name = (one.metadata["Name"] or "").lower()
        if _PACKAGE.fullmatch(name):
            found[name] = one.version
    return found


def cupy_verdict(
    installed: Mapping[str, str],
    cuda: Version | None,
    required: Sequence[Requirement],
    distribution: str = WHOLE,
) -> Verdict:
    """Return whether what is installed does.

    Args:
        installed: packages of CuPy with their versions.
        cuda: the newest CUDA that the driver runs, ``None`` if there is no driver.
        required: what eatss requires, with the extras that have CuPy.
        distribution: what eatss is installed as, whose extras are named.
    """
    major = cuda[0] if cuda else NEWEST
    command = install_command(major, required, distribution)
    if not installed:
        remedy = "install it, on a machine with a card and its driver"
        if cuda is not None:
            remedy = f"install the one for CUDA {major}, which this driver runs"
        return bad("not installed", remedy, command)
    names = sorted(installed)
    if len(names) > 1:
        return bad(
            f"{' and '.join(names)} are both installed, and spoil each other",
            "keep one",
            f"pip uninstall -y {' '.join(names)} && {command}",
        )
    ((name, version),) = installed.items()
    made_for = _PACKAGE.fullmatch(name)
    if cuda is not None and made_for and int(made_for[1] or 0) > major:
        return bad(
            f"{name} {version} is for CUDA {made_for[1]}, and the driver runs CUDA up to "
            f"{major}.{cuda[1]}",
            f"take the CuPy for CUDA {major}, or update the driver",
            f"pip uninstall -y {name} && {command}",
        )
    wanted = Requirement(name=name, versions=_versions(required))
    if not wanted.takes(version):
        return bad(
            f"{name} {version}, and eatss needs {wanted.versions}",
            "install a version that does",
            f"pip install '{wanted}'",
        )
    return Verdict(good=True, found=f"{name} {version}")


def install_command(major: int, required: Sequence[Requirement], distribution: str = WHOLE) -> str:
    """Return what to type for the CuPy of a CUDA: the extra that has it, if there is one."""
    name = f"cupy-cuda{major}x"
    extras = sorted(one.extra for one in required if one.name == name)
    chosen = [one for one in extras if one not in _DEVELOPING]
    package = f"{distribution}[{chosen[0]}]" if chosen else f"{name}{_versions(required)}"
    return f"pip install '{package}'"


def _versions(required: Sequence[Requirement]) -> str:
    return next((one.versions for one in required if one.name.startswith("cupy")), "")


@frozen
class Fact:
    """A part and what is found of it."""

    name: str
    found: str


def installed_versions() -> tuple[Fact, ...]:
    """Return what a report needs: Python, platform, packages, driver, cards, installation."""
    facts = look()
    cupy = ", ".join(f"{name} {version}" for name, version in sorted(installed_cupy().items()))
    packages = (*(one.name for one in requirements() if not one.extra), "nvidia-ml-py")
    seen = detect()
    try:
        nvcc = _nvcc(None)
    except EatssError as error:
        nvcc = error.diagnostics[0].message
    found = {
        "installed": _installation(),
        "Python": f"{platform.python_version()} ({sys.executable})",
        "platform": f"{platform.platform()}{', in a container' if facts.container else ''}",
        **{name: _version(name) for name in packages},
        "CuPy": cupy or _ABSENT,
        "NVIDIA driver": driver_verdict(facts).found,
        "cards": ", ".join(gpu.name for gpu in seen.gpus) or f"none ({'; '.join(seen.reasons)})",
        "nvcc": nvcc,
    }
    return tuple(Fact(name=name, found=text) for name, text in found.items())


def _installation() -> str:
    """Return how eatss came here: a wheel, or a checkout and at which commit if that is known."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "pyproject.toml").is_file():
        return f"as a wheel in {checkout}"
    revision, _ = package_revision(checkout)
    changed = " with changes" * (revision or "").endswith("-dirty")
    commit = f", commit {revision[:12]}{changed}" if revision else ""
    return f"from the sources in {checkout}{commit}"


COMMAND_TIMEOUT_S = 10


@frozen
class Check:
    """One fact about this machine.

    ``ok`` is ``None`` where something optional is not there. ``found`` says what is
    there or what went wrong. ``remedy`` says what to do and ``command`` what to type, if that is
    one line; both are empty where all is well.
    """

    name: str
    ok: bool | None
    found: str
    needed_for: str
    remedy: str = ""
    command: str = ""


class _NotThereError(Exception):
    """A part is missing or does not work; the text is the sentence to show."""


class _Part(NamedTuple):
    """What to look at: ``look`` returns what it found or raises."""

    name: str
    look: Callable[[], str]
    needed_for: str
    remedy: str
    command: str = ""
    optional: bool = False


def examine(*, nvcc: str | None = None) -> tuple[Check, ...]:
    """Look at everything eatss uses and return one check a part, the needed parts first.

    Args:
        nvcc: the CUDA compiler to look at, by default that of this machine.
    """
    return (*map(_check, (*_needed_parts(), *_tools(nvcc))), *card_checks(look()))


def card_checks(facts: DriverFacts) -> tuple[Check, ...]:
    """Return what there is of a driver, of cards and of the packages that reach them."""
    driver = driver_verdict(facts)
    verdicts = [
        ("NVIDIA driver", "running on a card", driver),
        ("cards", "running on a card", cards_verdict(facts)),
        ("CuPy", "detecting GPUs, running kernels", _cupy_package(facts)),
    ]
    return (
        *(
            Check(
                name=name,
                ok=True if one.good else None,
                found=one.found,
                needed_for=needed_for,
                remedy=one.remedy,
                command=one.command,
            )
            for name, needed_for, one in verdicts
            if name != "cards" or driver.good
        ),
        _check(_package("nvidia-ml-py", "detecting GPUs, measuring energy", "pynvml", True)),
    )


def _check(part: _Part) -> Check:
    ok: bool | None = None if part.optional else False
    try:
        found = part.look()
        ok = True
    except _NotThereError as error:
        found = str(error)
    except EatssError as error:
        found = error.diagnostics[0].message
    except Exception as error:  # a broken installation raises anything
        found = f"broken: {class_and_line(error)}"
    remedy, command = ("", "") if ok else (part.remedy, part.command)
    return Check(
        name=part.name,
        ok=ok,
        found=found,
        needed_for=part.needed_for,
        remedy=remedy,
        command=command,
    )


_PACKAGES = (
    ("z3-solver", "z3", "solving for tile sizes"),
    ("islpy", "islpy", "dependences, schedules, footprints"),
    ("libclang", "clang.cindex", "reading C"),
    ("numpy", "numpy", "enumerating candidates, measuring"),
    ("scipy", "scipy", "intervals, integrals"),
    ("networkx", "networkx", "the graph of statements"),
    ("pydantic", "pydantic", "reading GPU profiles"),
    ("packaging", "packaging", "comparing versions"),
    ("platformdirs", "platformdirs", "the folder of the cache"),
    ("tomlkit", "tomlkit", "search spaces"),
    ("click", "click", "the command line"),
    ("rich", "rich", "tables and colours"),
)
"""What everybody needs: the package, its module, and what for."""


def _needed_parts() -> tuple[_Part, ...]:
    again = f"pip install --force-reinstall {installed_as()}"
    return (
        _Part("Python", _python, "everything", "install another Python"),
        *(_package(name, needed_for, module) for name, module, needed_for in _PACKAGES),
        _Part("GPU profiles", _profiles, "naming a GPU", "install eatss again", again),
        _Part("kernels", _kernels, "the kernels to try first", "install eatss again", again),
    )


def _tools(nvcc: str | None) -> tuple[_Part, ...]:
    toolkit = "https://developer.nvidia.com/cuda-downloads"
    rows: tuple[tuple[str, Callable[[], str], str, str, str], ...] = (
        ("cache", _cache, "not computing twice",
         "mend its folder, or name another one in EATSS_CACHE_DIR", ""),
        ("C compiler", partial(_command, "cc", "gcc", "clang"), "eatss verify",
         "install gcc and g++", "sudo apt-get install gcc g++"),
        ("nvcc", partial(_nvcc, nvcc), "eatss verify --device gpu",
         f"install the CUDA toolkit ({toolkit}), or name its compiler with --nvcc", ""),
        ("ppcg", partial(_command, "ppcg"), "eatss ppcg",
         "build PPCG: https://repo.or.cz/ppcg.git", ""),
    )  # fmt: skip
    return tuple(_Part(*row, optional=True) for row in rows)


def _package(name: str, needed_for: str, module: str, optional: bool = False) -> _Part:
    """Return a package; a light install leaves out on purpose what only selecting needs."""
    wanted = requirement(name)
    left_out = installed_as() == LIGHT and name in GENERATING.values()

    def fitting() -> str:
        loaded = importlib.import_module(module)
        if module == "clang.cindex":
            loaded.conf.lib  # noqa: B018 - is loaded on its first use
        version = _version(name)
        if not wanted.takes(version):
            raise _NotThereError(f"{version}, and eatss needs {wanted.versions}")
        return version

    def found() -> str:
        try:
            return fitting()
        except ModuleNotFoundError as error:
            if error.name != module.partition(".")[0]:
                raise
            raise _NotThereError(_ABSENT + f"; {LIGHT} does without" * left_out) from None

    if left_out:
        needed_for, remedy, command = (
            "reading C, selecting, generating", "install the whole", f"pip install {WHOLE}"
        )  # fmt: skip
    else:
        remedy = f"install a version that does: {wanted.versions or 'any'}"
        command = f"pip install --force-reinstall '{wanted}'"
    return _Part(name, found, needed_for, remedy, command, optional or left_out)


def _nvcc(named: str | None) -> str:
    found = find_nvcc(named)
    return f"{found.path}: {found.version}"


def _cupy_package(facts: DriverFacts) -> Verdict:
    """Return whether CuPy is there, loads and is for a CUDA that the driver runs."""
    fits = cupy_verdict(installed_cupy(), facts.cuda, requirements(), installed_as())
    if fits.good:
        try:
            importlib.import_module("cupy")
        except Exception as error:  # a broken installation raises anything
            again = f"pip install --force-reinstall {fits.found.split()[0]}"
            return bad(f"broken: {class_and_line(error)}", "install it again", again)
    return fits


def _python() -> str:
    return f"{platform.python_version()} ({platform.python_implementation()}, {sys.platform})"


def _profiles() -> str:
    folder = profile_directory()
    try:
        list_profiles()
    except ModuleNotFoundError as error:
        raise _NotThereError(f"cannot be read without {error.name}") from None
    return f"{len(list(folder.glob('*.toml')))} in {folder}"


def _kernels() -> str:
    try:
        folder = data_directory("kernels")
    except InternalError as error:
        raise _NotThereError(error.message) from None
    count = len(list(folder.glob("*.c")))
    if not count:
        raise _NotThereError(f"{folder} has no C file")
    return f"{count} in {folder}"


def _cache() -> str:
    cache = default_cache()
    problem = cache.problem()
    if problem is not None:
        raise _NotThereError(f"{cache.folder}: {problem}")
    return str(cache.folder)


def _command(*names: str) -> str:
    """Return path and version line of the first of ``names`` on the path."""
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        raise _NotThereError(f"{' or '.join(names)} is not on the path")
    answer = subprocess.run(  # noqa: S603  (a fixed list of names, no shell)
        [path, "--version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    if answer.returncode != 0:
        raise _NotThereError(f"{path} --version ends with status {answer.returncode}")
    lines = [line.strip() for line in (answer.stdout or answer.stderr).splitlines()]
    version = next((line for line in lines if line), "")
    return f"{path}: {version}" if version else path
