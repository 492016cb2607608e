"""Which versions of packages eatss needs: read from its own metadata, where they stand once.

Which package of CuPy does for a driver is said here: each is made for one CUDA.

What eatss runs with: the facts that a report of a fault needs.

What works on this machine: the facts behind ``eatss doctor``.

Every check runs on its own and reports a missing or broken part instead of failing.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement as Line
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion
from packaging.version import Version as Release

from eatss.base.cache import default_cache
from eatss.base.compilers import GENERATING, find_nvcc
from eatss.base.diagnostics import EatssError
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
    counted,
    driver_verdict,
    look,
    nvml_lacking,
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
            own = Release(version)
        except InvalidVersion:
            return True
        return SpecifierSet(self.versions).contains(own, prereleases=True)


def installed_as(*distributions: str) -> str | None:
    """Return which of ``DISTRIBUTIONS``, or of these, is used here; ``None``: none is installed."""
    return next((name for name in distributions or DISTRIBUTIONS if _is_installed(name)), None)


def requirements(*distributions: str) -> tuple[Requirement, ...]:
    """Return what eatss, or the first of these that is installed, requires; nothing if none is."""
    name = installed_as(*distributions)
    if name is None:
        return ()
    told = metadata.metadata(name)
    extras = told.get_all("Provides-Extra") or []
    return tuple(_requirement(line, extras) for line in told.get_all("Requires-Dist") or [])


def requirement(name: str, among: tuple[Requirement, ...] | None = None) -> Requirement:
    """Return what is required of a package, any version if nothing is."""
    known = requirements() if among is None else among
    found = [one for one in known if one.name.lower() == name.lower()]
    return min(found, key=lambda one: one.extra) if found else Requirement(name=name, versions="")


def _is_installed(name: str) -> bool:
    try:
        metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _requirement(text: str, extras: list[str]) -> Requirement:
    line = Line(text)
    marker = line.marker
    alone = marker is None or marker.evaluate({"extra": ""})
    asking = [] if alone or marker is None else [
        extra for extra in extras if marker.evaluate({"extra": extra})
    ]  # fmt: skip
    return Requirement(
        name=line.name,
        versions=",".join(sorted(map(str, line.specifier), reverse=True)),
        extra=asking[0] if asking else "",
    )


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
    versions = _versions(required)
    if not Requirement(name=name, versions=versions).takes(version):
        return bad(
            f"{name} {version}, and eatss needs {versions}",
            "install a version that does",
            f"pip install '{name}{versions}'",
        )
    return Verdict(good=True, found=f"{name} {version}")


def install_command(major: int, required: Sequence[Requirement], distribution: str = WHOLE) -> str:
    """Return what to type for the CuPy of a CUDA: the extra that has it, if there is one."""
    name = f"cupy-cuda{major}x"
    extras = sorted(one.extra for one in required if one.name == name and one.extra)
    chosen = [one for one in extras if one not in _DEVELOPING]
    if chosen:
        return f"pip install '{distribution}[{chosen[0]}]'"
    return f"pip install '{name}{_versions(required)}'"


def _versions(required: Sequence[Requirement]) -> str:
    return next((one.versions for one in required if one.name.startswith("cupy")), "")


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
        "nvcc": _nvcc_version(),
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


def _nvcc_version() -> str:
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


MINIMUM_PYTHON = (3, 11)
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


@frozen
class _Part:
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
    needed = tuple(_check(part) for part in (*_needed_parts(), *_optional_parts(nvcc)))
    return (*needed, *card_checks(look(visible=os.environ.get("CUDA_VISIBLE_DEVICES"))))


def card_checks(facts: DriverFacts) -> tuple[Check, ...]:
    """Return what there is of a driver, of cards and of the packages that reach them."""
    driver = driver_verdict(facts)
    cards = cards_verdict(facts) if driver.good else None
    return (
        _of_verdict("NVIDIA driver", "running on a card", driver),
        *((_of_verdict("cards", "running on a card", cards),) if cards is not None else ()),
        _of_verdict("NVML", "detecting GPUs, measuring energy", _nvml_package(facts)),
        _of_verdict("CuPy", "detecting GPUs, running kernels", _cupy_package(facts)),
    )


def _of_verdict(name: str, needed_for: str, verdict: Verdict) -> Check:
    return Check(
        name=name,
        ok=True if verdict.good else None,
        found=verdict.found,
        needed_for=needed_for,
        remedy=verdict.remedy,
        command=verdict.command,
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


def _needed_parts() -> tuple[_Part, ...]:
    return (
        _Part(
            name="Python",
            look=_python,
            needed_for="everything",
            remedy=f"install Python {'.'.join(map(str, MINIMUM_PYTHON))} or later",
        ),
        _generating("z3-solver", _z3, "solving for tile sizes"),
        _generating("islpy", _islpy, "dependences, schedules, footprints"),
        _generating("libclang", _libclang, "reading C"),
        _package("numpy", "enumerating candidates, measuring"),
        _package("scipy", "intervals, integrals"),
        _package("networkx", "the graph of statements"),
        _package("pydantic", "reading GPU profiles"),
        _package("packaging", "comparing versions"),
        _package("platformdirs", "the folder of the cache"),
        _package("tomlkit", "search spaces"),
        _package("click", "the command line"),
        _package("rich", "tables and colours"),
        *(
            _Part(
                name=name,
                look=look,
                needed_for=needed_for,
                remedy="install eatss again",
                command=f"pip install --force-reinstall {installed_as() or WHOLE}",
            )
            for name, look, needed_for in (
                ("GPU profiles", _profiles, "naming a GPU"),
                ("kernels", _kernels, "the kernels to try first"),
            )
        ),
    )


def _optional_parts(nvcc: str | None) -> tuple[_Part, ...]:
    return (
        _Part(
            name="cache",
            look=_cache,
            needed_for="not computing twice",
            remedy="mend its folder, or name another one in EATSS_CACHE_DIR",
            optional=True,
        ),
        _Part(
            name="C compiler",
            look=lambda: _command("cc", "gcc", "clang"),
            needed_for="eatss verify",
            remedy="install gcc and g++",
            command="sudo apt-get install gcc g++",
            optional=True,
        ),
        _Part(
            name="nvcc",
            look=lambda: _nvcc(nvcc),
            needed_for="eatss verify --device gpu",
            remedy="install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or "
            "name its compiler with --nvcc",
            optional=True,
        ),
        _Part(
            name="ppcg",
            look=lambda: _command("ppcg"),
            needed_for="eatss ppcg",
            remedy="build PPCG: https://repo.or.cz/ppcg.git",
            optional=True,
        ),
    )


def _package(name: str, needed_for: str, look: Callable[[], str] | None = None) -> _Part:
    wanted = requirement(name)

    def fitting() -> str:
        version = _imported(name) if look is None else look()
        if not wanted.takes(version):
            raise _NotThereError(f"{version}, and eatss needs {wanted.versions}")
        return version

    return _Part(
        name=name,
        look=fitting,
        needed_for=needed_for,
        remedy=f"install a version that does: {wanted.versions or 'any'}",
        command=f"pip install --force-reinstall '{wanted}'",
    )


def _generating(name: str, look: Callable[[], str], needed_for: str) -> _Part:
    """Return a package that selecting needs; a light install leaves it out on purpose."""
    assert name in GENERATING.values()
    if installed_as() != LIGHT:
        return _package(name, needed_for, look)

    def left_out() -> str:
        try:
            return look()
        except _NotThereError as error:
            raise _NotThereError(f"{error}; {LIGHT} does without") from None

    return _Part(
        name=name,
        look=left_out,
        needed_for="reading C, selecting, generating",
        remedy="install the whole",
        command=f"pip install {WHOLE}",
        optional=True,
    )


def _nvcc(named: str | None) -> str:
    found = find_nvcc(named)
    return f"{found.path}: {found.version}"


def _nvml_package(facts: DriverFacts) -> Verdict:
    """Return whether the package that asks NVML is there, loads and is permitted to ask."""
    wanted = requirement("nvidia-ml-py")
    install = f"pip install '{wanted}'"
    try:
        version = _imported("pynvml", "nvidia-ml-py")
    except _NotThereError:
        return bad("the package nvidia-ml-py is not installed", "install it", install)
    except Exception as error:  # a broken installation raises anything
        return bad(f"broken: {class_and_line(error)}", "install it again", install)
    found = f"nvidia-ml-py {version}"
    if not wanted.takes(version):
        return bad(f"{found}, and eatss needs {wanted.versions}", "install a newer one", install)
    if facts.nvml_code is None:
        lacking = nvml_lacking(facts) or "not libnvidia-ml.so.1, which the driver brings"
        return bad(f"{found}, but {lacking}", "see the NVIDIA driver above")
    if facts.nvml_code:
        returned = f"{found}; nvmlInit returns {facts.nvml_code}"
        return bad(returned, "see the NVIDIA driver above")
    return Verdict(good=True, found=f"{found}, lists {counted(facts.nvml_cards)}")


def _cupy_package(facts: DriverFacts) -> Verdict:
    """Return whether CuPy is there, loads and is for a CUDA that the driver runs."""
    used = installed_as() or WHOLE
    fits = cupy_verdict(installed_cupy(), facts.cuda, requirements(), used)
    if fits.good:
        try:
            importlib.import_module("cupy")
        except Exception as error:  # a broken installation raises anything
            again = f"pip install --force-reinstall {fits.found.split()[0]}"
            return bad(f"broken: {class_and_line(error)}", "install it again", again)
    return fits


def _python() -> str:
    if sys.version_info < MINIMUM_PYTHON:
        raise _NotThereError(f"{platform.python_version()}, which is too old")
    return f"{platform.python_version()} ({platform.python_implementation()}, {sys.platform})"


def _imported(module: str, distribution: str | None = None) -> str:
    """Import a module and return the version of its package."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0]:
            raise _NotThereError("not installed") from None
        raise
    try:
        return importlib.metadata.version(distribution or module)
    except importlib.metadata.PackageNotFoundError:
        return "importable, of unknown version"


def _z3() -> str:
    version = _imported("z3", "z3-solver")
    z3 = importlib.import_module("z3")
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    unknown = z3.Int("x", context)
    solver.add(unknown > 1, unknown < 3)
    if solver.check() != z3.sat or solver.model()[unknown].as_long() != 2:
        raise _NotThereError(f"{version}, which does not solve 1 < x < 3")
    return version


def _islpy() -> str:
    version = _imported("islpy")
    isl = importlib.import_module("islpy")
    square = isl.Set("{ [i, j] : 0 <= i, j < 3 }", context=isl.Context())
    if square.is_empty():
        raise _NotThereError(f"{version}, which takes a square for empty")
    return version


def _libclang() -> str:
    version = _imported("clang.cindex", "libclang")
    cindex = importlib.import_module("clang.cindex")
    unit = cindex.Index.create().parse("line.c", unsaved_files=[("line.c", "int x = 1 + 2;\n")])
    kinds = [cursor.kind.name for cursor in unit.cursor.walk_preorder()]
    if "BINARY_OPERATOR" not in kinds:
        raise _NotThereError(f"{version}, which does not parse `int x = 1 + 2;`")
    if not hasattr(cindex.conf.lib, "clang_getCursorBinaryOperatorKind"):
        raise _NotThereError(f"{version}, which lacks clang_getCursorBinaryOperatorKind")
    return version


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
    except FileNotFoundError as error:
        raise _NotThereError(str(error)) from None
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
