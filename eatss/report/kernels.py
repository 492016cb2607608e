"""What ``eatss kernels`` prints."""

from __future__ import annotations

from rich.text import Text

from eatss.codec import json_text
from eatss.report.render import indented_table, render
from eatss.shipped import MARK, ShippedKernels


def render_kernels(kernels: ShippedKernels, output: str) -> str:
    """Return the kernels that come with eatss as ``table`` or ``json``."""
    if output == "json":
        return json_text(kernels)
    table = indented_table("name", "what it computes", "sizes (-D)")
    for one in kernels.kernels:
        sizes = " ".join(f"{name}={value}" for name, value in one.sizes)
        table.add_row(Text(f"{MARK}{one.name}", style="bold", no_wrap=True), one.title, sizes)
    return render(table)
