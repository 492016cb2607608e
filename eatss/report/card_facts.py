"""A card in a few lines: its most important figures."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from eatss.gpu.profile import FIGURES_IN_WORDS, GpuProfile
from eatss.report.figures import NONE
from eatss.report.render import indented_table
from eatss.text import BYTES_OF_UNIT, bytes_text

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
        table.add_row(title.partition(" (")[0], _amount(getattr(profile, name), unit))
    table.add_row("coefficients measured", "yes" if profile.calibrated else "no")
    return [head, table]


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return NONE
    return bytes_text(int(value)) if unit in BYTES_OF_UNIT else f"{value:g} {unit}".strip()
