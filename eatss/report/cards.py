"""What ``eatss profiles`` and ``eatss doctor`` print, and a card in a few lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from eatss.base.compilers import GENERATING
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.base.streams import page_width
from eatss.base.text import BYTES_OF_UNIT
from eatss.cards.document import profile_to_document
from eatss.cards.environment import LIGHT, Check
from eatss.cards.profile import FIGURES_IN_WORDS, GpuProfile
from eatss.report.render import RIGHT, Columns, Parts, headed, listing, listing_of, render, uncut

_WIDE = 100
"""Characters of a page that has room for the second half of the columns."""

_COLUMNS: Columns = {
    "!name": "name",
    "also": lambda one: ", ".join(one.aliases),
    "!SMs": "sm_count",
    "!>L2 MiB": lambda one: _amount(one.l2_bytes, "MiB"),
    "!>GB/s": lambda one: _amount(one.bandwidth_gb_s),
    "!>FP64 GF": lambda one: _amount(one.peak_fp64_gflops),
    "!>FP32 GF": lambda one: _amount(one.peak_fp32_gflops),
    "!>W": lambda one: _amount(one.tdp_w),
    "card": "title",
    "!>L1+shared KiB": lambda one: _amount(one.l1_shared_bytes, "KiB"),
}
"""Columns of the list of cards, those first that are there at little width, too."""

_NARROW = 8


def render_profiles(profiles: Sequence[GpuProfile], output: str) -> str:
    """Return the list of known cards as ``table`` or ``json``."""
    if output == "json":
        names = [
            {"name": one.name, "title": one.title, "aliases": list(one.aliases)} for one in profiles
        ]
        return json.dumps({"profiles": names}, indent=2) + "\n"
    columns = list(_COLUMNS.items())[: None if page_width() >= _WIDE else _NARROW]
    return render(listing_of(profiles, dict(columns)))


def render_profile(profile: GpuProfile, output: str) -> str:
    """Return one card's figures with their sources as ``table``, ``json`` or ``toml``."""
    if output == "json":
        return json.dumps(profile_to_document(profile), indent=2) + "\n"
    if output == "toml":
        from eatss.cards.write import profile_toml  # noqa: PLC0415 - the others need no tomlkit

        return profile_toml(profile)
    return render(*profile_parts(profile))


def profile_parts(profile: GpuProfile) -> Parts:
    """Return the figures of a card with their sources."""
    numbers = {source.key: n for n, source in enumerate(profile.bibliography, start=1)}
    sources, notes = dict(profile.sources), dict(profile.notes)
    rows: list[tuple[object, ...]] = []
    for field, (title, unit) in FIGURES_IN_WORDS.items():
        number = numbers.get(sources.get(field, ""))
        where = "" if number is None else f"[{number}]"
        note = Text(f"{where} {notes.get(field, '')}".strip(), style="dim")
        rows.append((title, _amount(getattr(profile, field), unit), unit, note))
    rows.append(("coefficients measured", profile.calibrated, "", ""))
    table = listing(("figure", ">value", "unit", "source"), rows)
    cited = [Text("sources", style="bold")]
    for source in profile.bibliography:
        cited.append(Text(f" [{numbers[source.key]}] {source.title}"))
        if source.url:
            cited.append(uncut(f"     {source.url}"))
    return [_head(profile), table, *cited]


def _head(profile: GpuProfile) -> Text:
    words = f"  {profile.architecture}, compute capability {profile.capability}"
    return headed(profile.title, words)


def _amount(value: float | None, unit: str = "") -> str:
    if value is None:
        return "?"
    scaled = value / BYTES_OF_UNIT.get(unit, 1)
    return f"{scaled:g}" if abs(scaled) < 1e5 else f"{scaled:.0f}"


@frozen
class Examination(Shown):
    """What ``eatss doctor`` found, a check for each part."""

    shown_by = "eatss.report.cards:checks_parts"

    checks: tuple[Check, ...]


_MARKS = {True: ("ok", "green"), False: ("missing", "bold red"), None: ("note", "yellow")}

_MEASURING = frozenset({"Python", "numpy", "click", "rich", "NVIDIA driver", "cards", "CuPy"})


def checks_parts(found: Examination) -> Iterator[RenderableType]:
    """Yield the checks of this machine, what to do about each, and which commands work here."""
    rows = ((Text(*_MARKS[check.ok]), check.name, check.found) for check in found.checks)
    yield listing(("!", "!", ""), rows, RIGHT)
    for (needed_for, remedy), alike in groupby(
        (check for check in found.checks if check.remedy),
        key=lambda check: (check.needed_for, check.remedy),
    ):
        text = Text(f"\n{', '.join(check.name for check in alike)}", style="bold")
        yield text.append(f", for {needed_for}: {remedy}", style="not bold")
    yield _verdict(found.checks)


def _verdict(checks: Sequence[Check]) -> Text:
    """Say which commands work here; measuring needs less than selecting, and a card."""
    broken = [check.name for check in checks if check.ok is False]
    light = any(check.name in GENERATING.values() and check.ok is None for check in checks)
    verdict = Text()
    if broken:
        what = LIGHT if light else "eatss select"
        verdict.append(f"\n{what} cannot run here without: {', '.join(broken)}", "bold red")
    elif light:
        verdict.append(f"\n{LIGHT} has all that it needs here; it does not select.", "bold green")
    else:
        verdict.append("\neatss select works here.", "bold green")
    lacking = [check.name for check in checks if check.name in _MEASURING and not check.ok]
    if lacking:
        verdict.append(f"\neatss measure cannot run here without: {', '.join(lacking)}", "yellow")
    elif any(check.name == "energy meter" and not check.ok for check in checks):
        verdict.append("\neatss measure works here, for time but not for energy.", "yellow")
    else:
        verdict.append("\neatss measure works here.", "bold green")
    return verdict
