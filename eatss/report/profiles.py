"""What ``eatss profiles`` prints, and a card in a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.streams import page_width
from eatss.base.text import BYTES_OF_UNIT, bytes_text
from eatss.cards.document import profile_to_document
from eatss.cards.load import profile_provider
from eatss.cards.profile import FIGURES_IN_WORDS, GpuProfile
from eatss.report.render import NONE, headed, listing, render, uncut

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
    known = [(profile, profile_provider(profile)) for profile in profiles]
    if output == "json":
        names = [
            {"name": p.name, "title": p.title, "aliases": list(p.aliases), "provider": provider}
            for p, provider in known
        ]
        return json.dumps({"profiles": names}, indent=2) + "\n"
    rows = [
        {
            "name": profile.name,
            "card": profile.title,
            "also": ", ".join(profile.aliases),
            "from": provider,
            "SMs": str(profile.sm_count),
            "L1+shared KiB": _amount(profile.l1_shared_bytes, "KiB"),
            "L2 MiB": _amount(profile.l2_bytes, "MiB"),
            "GB/s": _amount(profile.bandwidth_gb_s),
            "FP64 TF": _tera(profile.peak_fp64_gflops),
            "FP32 TF": _tera(profile.peak_fp32_gflops),
            "W": _amount(profile.tdp_w),
        }
        for profile, provider in known
    ]
    widths = {title: _least_width(title, rows) for title in (rows[0] if rows else ())}
    shown = _shown_columns(rows, widths)
    table = Table(box=None)
    for title in shown:
        if title == "name":
            table.add_column(title, header_style="dim", style="bold", no_wrap=True)
        elif title in _WORDS:
            table.add_column(title, header_style="dim", min_width=widths[title])
        else:
            table.add_column(title, header_style="dim", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[title] for title in shown))
    return render(table)


def _shown_columns(rows: Sequence[Mapping[str, str]], widths: Mapping[str, int]) -> list[str]:
    """Return the columns for which there is room without cutting a word; names always are."""
    if not rows:
        return ["name"]
    left = page_width() - 1
    wanted: set[str] = set()
    ours_alone = {row["from"] for row in rows} == {"eatss"}
    for title in (*_BY_NEED, "from") if ours_alone else ("name", "from", *_BY_NEED[1:]):
        if wanted and left < widths[title] + _GAP:
            break
        wanted.add(title)
        left -= widths[title] + _GAP
    return [title for title in widths if title in wanted]


def _least_width(title: str, rows: Sequence[Mapping[str, str]]) -> int:
    """Return the width at which a column cuts nothing: words may go on in the next line."""
    cells = [title, *(row[title] for row in rows)]
    if title in _WORDS:
        cells = [word for cell in cells for word in cell.split()]
    return max(_WORDS.get(title, 0), *map(len, cells))


def render_profile(profile: GpuProfile, output: str) -> str:
    """Return one card's figures with their sources as ``table``, ``json`` or ``toml``."""
    if output == "json":
        return json.dumps(profile_to_document(profile), indent=2) + "\n"
    if output == "toml":
        from eatss.cards.write import profile_toml  # noqa: PLC0415 - the others need no tomlkit

        return profile_toml(profile)
    numbers = {source.key: n for n, source in enumerate(profile.bibliography, start=1)}
    sources, notes = dict(profile.sources), dict(profile.notes)
    table = Table(box=None, show_header=False)
    table.add_column("figure")
    table.add_column("value", justify="right", style="bold")
    table.add_column("unit")
    table.add_column("source", style="dim", overflow="fold")
    for field, (title, unit) in FIGURES_IN_WORDS.items():
        number = numbers.get(sources.get(field, ""))
        where = "" if number is None else f"[{number}]"
        note = Text(f"{where} {notes.get(field, '')}".strip())
        table.add_row(title, _amount(getattr(profile, field), unit), unit, note)
    cited: list[Text] = [Text("sources", style="bold")]
    for source in profile.bibliography:
        cited.append(Text(f" [{numbers[source.key]}] {source.title}"))
        if source.url:
            cited.append(uncut(f"     {source.url}"))
    return render(_head(profile), table, *cited)


def _head(profile: GpuProfile) -> Text:
    major, minor = profile.compute_capability
    return headed(profile.title, f"  {profile.architecture}, compute capability {major}.{minor}")


def _amount(value: float | None, unit: str = "") -> str:
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
    rows = []
    for name in _SHOWN:
        (title, unit), value = FIGURES_IN_WORDS[name], getattr(profile, name)
        text = NONE if value is None else f"{value:g} {unit}".strip()
        if value is not None and unit in BYTES_OF_UNIT:
            text = bytes_text(int(value))
        rows.append((title.partition(" (")[0], text))
    rows.append(("coefficients measured", "yes" if profile.calibrated else "no"))
    return [_head(profile), listing((">", ">"), rows)]
