"""Nsight Compute's table in, counters of every kernel out."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eatss.measurement.measurement import Counter, KernelCounters

DURATION = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"

METRICS = (
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    OCCUPANCY,
    "smsp__inst_executed.sum",
    DURATION,
)
"""What is asked for: memory traffic, L2 sectors read by L1, occupancy, instructions, time."""

_KERNEL = "Kernel Name"
_BARE = re.compile(r"\s*(?:\w+\s+)?(\w+)\s*(?:[<(]|$)")
_SCALES = {
    "byte": ("byte", 1.0),
    "Kbyte": ("byte", 1e3),
    "Mbyte": ("byte", 1e6),
    "Gbyte": ("byte", 1e9),
    "Tbyte": ("byte", 1e12),
    "nsecond": ("s", 1e-9),
    "usecond": ("s", 1e-6),
    "msecond": ("s", 1e-3),
    "second": ("s", 1.0),
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "Ksector": ("sector", 1e3),
    "Msector": ("sector", 1e6),
    "Gsector": ("sector", 1e9),
    "Kinst": ("inst", 1e3),
    "Minst": ("inst", 1e6),
    "Ginst": ("inst", 1e9),
}
"""Units as different versions write them: the base unit, and how many of it one is."""


class NcuTableError(Exception):
    """What ncu printed is no table of counters; the text says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    kernel: str
    values: Mapping[str, tuple[float, str]]


def kernel_counters(text: str, kernels: Sequence[str]) -> tuple[KernelCounters, ...]:
    """Return the counters of kernels, summed over their launches, in the order of ``kernels``.

    Occupancy is the mean over time. A counter that is not there for all launches is left out.

    Args:
        text: what ``ncu --csv --page raw`` printed, with lines of ncu and of the program around.
        kernels: names of the kernels that are counted.

    Raises:
        NcuTableError: there is no table, or it cannot be read.
    """
    found = _launches(text)
    counted = []
    for kernel in kernels:
        own = [launch for launch in found if launch.kernel == kernel]
        if own:
            counters = tuple(filter(None, (_counter(name, own) for name in METRICS)))
            counted.append(KernelCounters(kernel=kernel, launches=len(own), counters=counters))
    return tuple(counted)


def _launches(text: str) -> list[_Launch]:
    """Return the rows of the table: a line of names, a line of units, a line a launch."""
    lines = (line for line in text.splitlines() if line.startswith('"'))  # others are talk
    rows = list(csv.reader(lines))
    start = next((k for k, row in enumerate(rows) if _KERNEL in row), None)
    if start is None:
        raise NcuTableError("no kernel was counted")
    names = rows[start]
    table = [row for row in rows[start + 1 :] if len(row) == len(names)]
    if not table:
        return []
    column = names.index(_KERNEL)
    units = table[0] if not table[0][column] else [""] * len(names)
    return [
        _Launch(kernel=_bare(row[column]), values=dict(_values(names, units, row)))
        for row in table
        if row[column]
    ]


def _values(
    names: Sequence[str], units: Sequence[str], row: Sequence[str]
) -> list[tuple[str, tuple[float, str]]]:
    found = []
    for name, unit, text in zip(names, units, row, strict=True):
        if name not in METRICS:
            continue
        number = _number(text)
        if number is not None:
            base, scale = _SCALES.get(unit, (unit, 1.0))
            found.append((name, (number * scale, base)))
    return found


def _number(text: str) -> float | None:
    """Return a number with thousands separators; ``None`` for ``n/a`` and the like."""
    cleaned = text.strip().replace(",", "").replace("'", "").replace(" ", "")
    try:
        value = float(cleaned)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _bare(name: str) -> str:
    """Return the name of a kernel without return type, arguments and template arguments."""
    match = _BARE.match(name)
    return name if match is None else match[1]


def _counter(name: str, launches: Sequence[_Launch]) -> Counter | None:
    """Return a sum over launches, of occupancy the mean; ``None`` where a launch has no value."""
    values = [launch.values.get(name) for launch in launches]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    unit = known[0][1]
    if name != OCCUPANCY:
        return Counter(name=name, value=math.fsum(value for value, _ in known), unit=unit)
    times = [launch.values.get(DURATION) for launch in launches]
    weights = [time[0] for time in times if time is not None]
    if len(weights) < len(known) or sum(weights) <= 0:
        return None
    mean = sum(
        value * weight for (value, _), weight in zip(known, weights, strict=True)
    ) / math.fsum(weights)
    return Counter(name=name, value=mean, unit=unit)
