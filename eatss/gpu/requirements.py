"""Which versions of packages eatss needs: read from its own metadata, where they stand once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from itertools import zip_longest

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*\(?(?P<versions>[^;()]*)\)?\s*"
    r"(?:;.*?extra\s*==\s*[\"'](?P<extra>[^\"']+)[\"'])?"
)
_BOUND = re.compile(r"(>=|<=|==|<|>|!=|~=)\s*([0-9][0-9.]*)")


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
        own = _numbers(version)
        return not own or all(
            _holds(own, operator, _numbers(bound))
            for operator, bound in _BOUND.findall(self.versions)
        )


def requirements(distribution: str = "eatss") -> tuple[Requirement, ...]:
    """Return what a distribution requires; nothing where it is not installed but only found."""
    try:
        lines = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return ()
    return tuple(_requirement(line) for line in lines)


def requirement(name: str, among: tuple[Requirement, ...] | None = None) -> Requirement:
    """Return what is required of a package, any version if nothing is."""
    known = requirements() if among is None else among
    found = [one for one in known if one.name.lower() == name.lower()]
    return min(found, key=lambda one: one.extra) if found else Requirement(name=name, versions="")


def _requirement(line: str) -> Requirement:
    found = _REQUIREMENT.match(line)
    assert found is not None, line
    return Requirement(
        name=found["name"],
        versions=",".join(sorted(found["versions"].replace(" ", "").split(","), reverse=True)),
        extra=found["extra"] or "",
    )


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _holds(own: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    pairs = list(zip_longest(own, bound, fillvalue=0))
    left, right = [one for one, _ in pairs], [one for _, one in pairs]
    if operator == "~=":
        return left >= right and own[: len(bound) - 1] == bound[:-1]
    return {
        ">=": left >= right,
        "<=": left <= right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
    }[operator]
