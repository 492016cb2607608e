"""A card in a few lines: its most important figures."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from eatss.byte_text import bytes_text
from eatss.gpu.profile import GpuProfile
from eatss.report.figures import NONE
from eatss.report.render import indented_table


def profile_parts(profile: GpuProfile) -> list[RenderableType]:
    """Return the most important figures of a card; ``eatss profiles NAME`` has all of them."""
    major, minor = profile.compute_capability
    head = Text(profile.title, style="bold")
    head.append(f"  {profile.architecture}, compute capability {major}.{minor}", style="not bold")
    table = indented_table("", "", numbers=("",))
    for name, value in (
        ("streaming multiprocessors", str(profile.sm_count)),
        ("L1 and shared memory an SM", bytes_text(profile.l1_shared_bytes)),
        ("L2 cache", bytes_text(profile.l2_bytes)),
        ("memory", NONE if profile.memory_bytes is None else bytes_text(profile.memory_bytes)),
        ("memory bandwidth", f"{profile.bandwidth_gb_s:g} GB/s"),
        ("peak FP64", _gflops(profile.peak_fp64_gflops)),
        ("peak FP32", _gflops(profile.peak_fp32_gflops)),
        ("thermal design power", NONE if profile.tdp_w is None else f"{profile.tdp_w:g} W"),
        ("coefficients measured", "yes" if profile.calibrated else "no"),
    ):
        table.add_row(name, value)
    return [head, table]


def _gflops(value: float | None) -> str:
    return NONE if value is None else f"{value:g} GFLOP/s"
