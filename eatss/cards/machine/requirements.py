"""Which versions of packages eatss needs: read from its own metadata, where they stand once.

Which package of CuPy does for a driver is said here: each is made for one CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import metadata

from packaging.requirements import Requirement as Line
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion
from packaging.version import Version as Release

from eatss.base.frozen import frozen
from eatss.cards.machine.driver_access import Verdict, Version, bad

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
