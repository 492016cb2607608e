"""Hardware counters in words, and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from eatss.measurement.measurement import Counter, Measurement
from eatss.report.figures import bytes_amount, figure, with_prefix

_TITLES = {
    "dram__bytes_read.sum": "DRAM read",
    "dram__bytes_write.sum": "DRAM written",
    "lts__t_sectors_srcunit_tex_op_read.sum": "L2 sectors read by L1",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy",
    "smsp__inst_executed.sum": "warp instructions",
    "gpu__time_duration.sum": "time when counted",
}


def counter_words(name: str) -> str:
    """Return a counter's name in words; the name of anything else as it is."""
    return _TITLES.get(name, name)


def counters_table(measurements: Sequence[Measurement]) -> Table:
    """Return the counters of all kernels; a column a variant where there are several."""
    counted = [found for found in measurements if found.counters is not None]
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("kernel", header_style="dim", overflow="fold")
    table.add_column("counter", header_style="dim", no_wrap=True)
    for found in counted:
        table.add_column(
            found.variant if len(measurements) > 1 else "", header_style="dim", justify="right"
        )
    rows: dict[str, dict[str, list[str]]] = {}
    for number, found in enumerate(counted):
        for kernel in found.counters or ():
            own = rows.setdefault(kernel.kernel, {})
            cells = [("launches", str(kernel.launches))]
            cells += [(counter_words(c.name), amount(c)) for c in kernel.counters]
            for title, text in cells:
                own.setdefault(title, [""] * len(counted))[number] = text
    for name, own in rows.items():
        lead = name
        for title, texts in own.items():
            table.add_row(lead, title, *texts)
            lead = ""
    return table


def amount(counter: Counter) -> str:
    """Return a counter's value with its unit."""
    if counter.unit == "byte":
        return bytes_amount(counter.value)
    if counter.unit == "s":
        return f"{figure(counter.value * 1e3)} ms"
    if counter.unit == "%":
        return f"{figure(counter.value, 3)} %"
    return with_prefix(counter.value)
