"""What ``eatss profiles`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from eatss.gpu import GpuProfile, profile_provider, profile_to_document
from eatss.gpu.profile import FIGURES_IN_WORDS
from eatss.report.render import render

_BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def render_profiles(profiles: Sequence[GpuProfile], output: str) -> str:
    """Return the list of known cards as ``table`` or ``json``."""
    providers = [profile_provider(profile) for profile in profiles]
    if output == "json":
        names = [
            {"name": p.name, "title": p.title, "aliases": list(p.aliases), "provider": provider}
            for p, provider in zip(profiles, providers, strict=True)
        ]
        return json.dumps({"profiles": names}, indent=2) + "\n"
    table = Table(box=None)
    for title in ("name", "card", "also", "from"):
        table.add_column(title, header_style="dim")
    for title in ("SMs", "L1+shared KiB", "L2 MiB", "GB/s", "FP64 TF", "FP32 TF", "W"):
        table.add_column(title, justify="right", header_style="dim")
    for profile, provider in zip(profiles, providers, strict=True):
        table.add_row(
            Text(profile.name, style="bold"),
            profile.title,
            ", ".join(profile.aliases),
            provider,
            str(profile.sm_count),
            _amount(profile.l1_shared_bytes, "KiB"),
            _amount(profile.l2_bytes, "MiB"),
            _amount(profile.bandwidth_gb_s, ""),
            _tera(profile.peak_fp64_gflops),
            _tera(profile.peak_fp32_gflops),
            _amount(profile.tdp_w, ""),
        )
    return render(table)


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
    listing = Text()
    for source in profile.bibliography:
        url = f"  {source.url}" if source.url else ""
        listing.append(f" [{numbers[source.key]}] {source.title}{url}\n")
    return render(head, table, Text("sources", style="bold"), listing)


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "?"
    scaled = value / _BYTES.get(unit, 1)
    return f"{scaled:g}" if abs(scaled) < 1e5 else f"{scaled:.0f}"


def _tera(gflops: float | None) -> str:
    return "?" if gflops is None else f"{gflops / 1000:.3g}"
