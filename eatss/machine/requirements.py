"""Which versions of packages eatss needs: read from its own metadata, where they stand once."""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement as Line
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from eatss.frozen import frozen

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
            own = Version(version)
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
