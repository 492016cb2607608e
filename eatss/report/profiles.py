"""What ``eatss profiles`` prints, and a card in a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.gpu.document import profile_to_document
from eatss.gpu.load import profile_provider
from eatss.gpu.profile import FIGURES_IN_WORDS, GpuProfile
from eatss.report.render import NONE, indented_table, render, uncut
from eatss.streams import page_width
from eatss.text import BYTES_OF_UNIT, bytes_text

_BY_NEED = (
    "name", "also", "SMs", "GB/s", "FP64 TF", "FP32 TF", "W", "L2 MiB", "card", "L1+shared KiB",
)  # fmt: skip
"""The columns of the list of cards, those first that are there at little width, too.

Who offers a card is of interest only where others than eatss do.
"""

_WORDS = {"card": 20, "also": 0, "from": 0}
"""Columns of words, which may take several lines, with the least width that is pleasant."""

_GAP = 2


def render_profiles(profiles: Sequence[GpuProfile], output: str) -> str:
    """Return the list of known cards as ``table`` or ``json``."""
    providers = [profile_provider(profile) for profile in profiles]
    if output == "json":
        names = [
            {"name": p.name, "title": p.title, "aliases": list(p.aliases), "provider": provider}
            for p, provider in zip(profiles, providers, strict=True)
        ]
        return json.dumps({"profiles": names}, indent=2) + "\n"
    rows = [
        _cells(profile, provider) for profile, provider in zip(profiles, providers, strict=True)
    ]
    shown = _shown_columns(rows, page_width())
    table = Table(box=None)
    for title in shown:
        cells = [row[title] for row in rows]
        if title == "name":
            table.add_column(title, header_style="dim", style="bold", no_wrap=True)
        elif title in _WORDS:
            table.add_column(title, header_style="dim", min_width=_least_width(title, cells))
        else:
            table.add_column(title, header_style="dim", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[title] for title in shown))
    return render(table)


def _cells(profile: GpuProfile, provider: str) -> dict[str, str]:
    """Return what the list says of a card, by the titles of its columns."""
    return {
        "name": profile.name,
        "card": profile.title,
        "also": ", ".join(profile.aliases),
        "from": provider,
        "SMs": str(profile.sm_count),
        "L1+shared KiB": _amount(profile.l1_shared_bytes, "KiB"),
        "L2 MiB": _amount(profile.l2_bytes, "MiB"),
        "GB/s": _amount(profile.bandwidth_gb_s, ""),
        "FP64 TF": _tera(profile.peak_fp64_gflops),
        "FP32 TF": _tera(profile.peak_fp32_gflops),
        "W": _amount(profile.tdp_w, ""),
    }


def _shown_columns(rows: Sequence[Mapping[str, str]], width: int) -> list[str]:
    """Return the columns for which there is room without cutting a word; names always are."""
    left = width - 1
    wanted = {"name"}
    ours_alone = {row["from"] for row in rows} == {"eatss"}
    for title in (*_BY_NEED, "from") if ours_alone else ("name", "from", *_BY_NEED[1:]):
        least = _least_width(title, [row[title] for row in rows]) + _GAP
        if title != "name" and left < least:
            break
        wanted.add(title)
        left -= least
    return [title for title in rows[0] if title in wanted] if rows else ["name"]


def _least_width(title: str, cells: Sequence[str]) -> int:
    """Return the width at which a column cuts nothing: words may go on in the next line."""
    if title not in _WORDS:
        return max(len(text) for text in (title, *cells))
    words = [word for cell in (title, *cells) for word in cell.split()]
    return max(_WORDS[title], *(len(word) for word in words))


def render_profile(profile: GpuProfile, output: str) -> str:
    """Return one card's figures with their sources as ``table``, ``json`` or ``toml``."""
    if output == "json":
        return json.dumps(profile_to_document(profile), indent=2) + "\n"
    if output == "toml":
        from eatss.gpu.write import profile_toml  # noqa: PLC0415 - the others need no tomlkit

        return profile_toml(profile)
    head = Text(profile.title, style="bold")
    major, minor = profile.compute_capability
    head.append(f"  {profile.architecture}, compute capability {major}.{minor}", style="not bold")
    numbers = {source.key: n for n, source in enumerate(profile.bibliography, start=1)}
    sources = dict(profile.sources)
    notes = dict(profile.notes)
    table = Table(box=None, show_header=False)
    table.add_column("figure")
    table.add_column("value", justify="right", style="bold")
    table.add_column("unit")
    table.add_column("source", style="dim", overflow="fold")
    for field, (title, unit) in FIGURES_IN_WORDS.items():
        value = getattr(profile, field)
        number = numbers.get(sources.get(field, ""))
        where = "" if number is None else f"[{number}]"
        note = notes.get(field, "")
        table.add_row(title, _amount(value, unit), unit, Text(f"{where} {note}".strip()))
    listing: list[Text] = []
    for source in profile.bibliography:
        listing.append(Text(f" [{numbers[source.key]}] {source.title}"))
        if source.url:
            listing.append(uncut(f"     {source.url}"))
    return render(head, table, Text("sources", style="bold"), *listing)


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "?"
    scaled = value / BYTES_OF_UNIT.get(unit, 1)
    return f"{scaled:g}" if abs(scaled) < 1e5 else f"{scaled:.0f}"


def _tera(gflops: float | None) -> str:
    return "?" if gflops is None else f"{gflops / 1000:.3g}"


_SHOWN = (
    "sm_count", "l1_shared_bytes", "l2_bytes", "memory_bytes", "bandwidth_gb_s",
    "peak_fp64_gflops", "peak_fp32_gflops", "tdp_w",
)  # fmt: skip
"""The most important figures."""


def profile_parts(profile: GpuProfile) -> list[RenderableType]:
    """Return the most important figures of a card; ``eatss profiles NAME`` has all of them."""
    major, minor = profile.compute_capability
    head = Text(profile.title, style="bold")
    head.append(f"  {profile.architecture}, compute capability {major}.{minor}", style="not bold")
    table = indented_table("", "", numbers=("",))
    for name in _SHOWN:
        title, unit = FIGURES_IN_WORDS[name]
        table.add_row(title.partition(" (")[0], _with_unit(getattr(profile, name), unit))
    table.add_row("coefficients measured", "yes" if profile.calibrated else "no")
    return [head, table]


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return NONE
    return bytes_text(int(value)) if unit in BYTES_OF_UNIT else f"{value:g} {unit}".strip()
