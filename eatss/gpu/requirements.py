"""Which versions of packages eatss needs: read from its own metadata, where they stand once."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement as Line
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

DISTRIBUTIONS = ("eatss", "eatss-measure")
"""What eatss is installed as; where both are, the first is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


def requirements(*distributions: str) -> tuple[Requirement, ...]:
    """Return what eatss, or the first of these that is installed, requires; nothing if none is."""
    for name in distributions or DISTRIBUTIONS:
        try:
            told = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        extras = told.get_all("Provides-Extra") or []
        return tuple(_requirement(line, extras) for line in told.get_all("Requires-Dist") or [])
    return ()


def requirement(name: str, among: tuple[Requirement, ...] | None = None) -> Requirement:
    """Return what is required of a package, any version if nothing is."""
    known = requirements() if among is None else among
    found = [one for one in known if one.name.lower() == name.lower()]
    return min(found, key=lambda one: one.extra) if found else Requirement(name=name, versions="")


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
