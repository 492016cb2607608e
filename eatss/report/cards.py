"""What ``eatss profiles`` and ``eatss doctor`` print."""

from __future__ import annotations

import json
from collections.abc import Sequence

from eatss.base.compilers import GENERATING
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.base.streams import page_width
from eatss.base.text import BYTES_OF_UNIT
from eatss.cards.document import profile_to_document
from eatss.cards.environment import LIGHT, Check
from eatss.cards.profile import GpuProfile
from eatss.report.pages import page, parts_of
from eatss.report.render import render

_WIDE = 100
"""Characters of a page that has room for the second half of the columns."""

MEASURING = ("Python", "numpy", "click", "rich", "jinja2", "NVIDIA driver", "cards", "CuPy")
"""Checks of what ``eatss measure`` needs."""


def render_profiles(profiles: Sequence[GpuProfile], output: str) -> str:
    """Return the list of known cards as ``table`` or ``json``."""
    if output == "json":
        names = [
            {"name": one.name, "title": one.title, "aliases": list(one.aliases)} for one in profiles
        ]
        return json.dumps({"profiles": names}, indent=2) + "\n"
    return render(*page("profiles", profiles=profiles, wide=page_width() >= _WIDE))


def render_profile(profile: GpuProfile, output: str) -> str:
    """Return one card's figures with their sources as ``table``, ``json`` or ``toml``."""
    if output == "json":
        return json.dumps(profile_to_document(profile), indent=2) + "\n"
    if output == "toml":
        from eatss.cards.write import profile_toml  # noqa: PLC0415 - the others need no tomlkit

        return profile_toml(profile)
    return render(*parts_of(profile))


def amount(value: float | None, unit: str = "") -> str:
    """Return a figure of a card in a unit, ``?`` where no source gives it."""
    if value is None:
        return "?"
    scaled = value / BYTES_OF_UNIT.get(unit, 1)
    return f"{scaled:g}" if abs(scaled) < 1e5 else f"{scaled:.0f}"


@frozen
class Examination(Shown):
    """What ``eatss doctor`` found, a check for each part."""

    shown_by = "checks"

    checks: tuple[Check, ...]

    @property
    def purpose(self) -> str:
        """What this install is for: it measures only where what selects is not there."""
        missing = {check.name for check in self.checks if check.ok is None}
        return "eatss select" if missing.isdisjoint(GENERATING.values()) else LIGHT
