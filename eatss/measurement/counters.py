"""Hardware counters of one run through Nsight Compute; clocks are left as they are.

The run happens in a process of its own, :mod:`eatss.measurement.profiled_run`. Launches beyond the
first ``LAUNCH_LIMIT`` are not counted: each is replayed several times, so thousands take hours.
What was left out stands in ``missing``; nothing is extrapolated.
"""

from __future__ import annotations

import csv
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from eatss.codec import encode
from eatss.diagnostics import input_error
from eatss.frozen import frozen
from eatss.measurement.launches import launches
from eatss.measurement.measurement import Counter, KernelCounters, Measurement, Missing
from eatss.measurement.options import MeasureOptions
from eatss.program import load_program

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


@frozen
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


LAUNCH_LIMIT = 200
"""Launches of one run that are counted at most."""

_PLACES = (
    "/usr/local/cuda*/bin/ncu",
    "/opt/nvidia/nsight-compute/*/ncu",
    "/usr/local/NVIDIA-Nsight-Compute*/ncu",
)
_LONGEST_S = 600.0


class CountersError(Exception):
    """Counters cannot be read here: a sentence, and what to do about it."""


@frozen
class Counted:
    """Counters of the kernels of a run, and what was not counted."""

    kernels: tuple[KernelCounters, ...]
    missing: tuple[Missing, ...] = ()


def find_ncu(places: Sequence[str] = _PLACES) -> str:
    """Return the path of Nsight Compute: on the ``PATH``, else the newest of where it is installed.

    Raises:
        InputError: ``EATSS-E050``: it is not there.
    """
    on_path = shutil.which("ncu")
    if on_path is not None:
        return on_path
    found = sorted(path for place in places for path in glob.glob(place))  # noqa: PTH207 - absolute
    runnable = [path for path in found if os.access(path, os.X_OK)]
    if runnable:
        return runnable[-1]
    raise input_error(
        "EATSS-E050",
        "hardware counters need Nsight Compute, and there is no ncu",
        hint="install nsight-compute (it comes with the CUDA toolkit) and put ncu on the PATH, or "
        "measure without --counters",
    )


def with_counters(
    measurement: Measurement,
    directory: Path | None,
    options: MeasureOptions,
    *,
    ncu: str,
    limit: int = LAUNCH_LIMIT,
) -> Measurement:
    """Return a measurement with the counters of one run, or with the reason why there are none."""
    if directory is None or measurement.status not in ("ok", "unstable"):
        return without(measurement, f"the program was not counted: {measurement.status}")
    try:
        counted = count(directory, options, dict(measurement.sizes), ncu=ncu, limit=limit)
    except CountersError as error:
        return without(measurement, str(error))
    gaps = tuple(old for old in measurement.missing if old.what != "counters")
    return replace(measurement, counters=counted.kernels, missing=(*gaps, *counted.missing))


def without(measurement: Measurement, reason: str) -> Measurement:
    """Return a measurement that has no counters for a reason."""
    gap = Missing(what="counters", reason=reason)
    return replace(
        measurement,
        counters=None,
        missing=(*(old for old in measurement.missing if old.what != "counters"), gap),
    )


def count(
    directory: Path,
    options: MeasureOptions,
    sizes: dict[str, int],
    *,
    ncu: str,
    limit: int = LAUNCH_LIMIT,
) -> Counted:
    """Run a program once under Nsight Compute.

    Raises:
        CountersError: it cannot be run or counted here.
    """
    program = load_program(directory)
    kernels = [kernel.name for kernel in program.kernels]
    total = sum(1 for _ in islice(launches(program, sizes), limit + 1))
    command = ncu_command(ncu, directory, options, sizes, kernels, limit)
    text = _run(command)
    try:
        found = kernel_counters(text, kernels)
    except NcuTableError as error:
        raise CountersError(f"{error}; {_tail(text)}") from None
    counted = sum(kernel.launches for kernel in found)
    if counted != min(total, limit):
        raise CountersError(f"ncu counted {counted} launches of {total}; {_tail(text)}")
    return Counted(kernels=found, missing=tuple(_gaps(found, counted, total)))


def _gaps(kernels: Sequence[KernelCounters], counted: int, total: int) -> Iterator[Missing]:
    """Yield what is not among the counters of a run, and why."""
    if total > counted:
        yield Missing(
            what="counters of later launches",
            reason=f"only the first {counted} launches of the run were counted",
        )
    for kernel in kernels:
        known = {counter.name for counter in kernel.counters}
        for name in METRICS:
            if name not in known:
                yield Missing(
                    what=f"{name} of {kernel.kernel}",
                    reason="ncu gives no value for it on this card",
                )


def ncu_command(
    ncu: str,
    directory: Path,
    options: MeasureOptions,
    sizes: dict[str, int],
    kernels: Sequence[str],
    limit: int,
) -> list[str]:
    """Return the command line that counts one run."""
    return [
        ncu,
        *("--clock-control", "none"),
        *("--target-processes", "all"),
        *("--profile-from-start", "off"),
        *("--kernel-name-base", "function"),
        *("--kernel-name", f"regex:^({'|'.join(kernels)})$"),
        *("--launch-count", str(limit)),
        *("--csv", "--page", "raw", "--print-units", "base"),
        *("--metrics", ",".join(METRICS)),
        *(sys.executable, "-m", "eatss.measurement.profiled_run", str(directory)),
        json.dumps(encode(replace(options, sizes=sizes))),
    ]


def _run(command: Sequence[str]) -> str:
    """Return what ncu prints.

    Raises:
        CountersError: it fails.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - our own command line
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LONGEST_S,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise CountersError(
            f"ncu took longer than {_LONGEST_S:.0f} s; measure smaller sizes (--size) with counters"
        ) from None
    except OSError as error:
        raise CountersError(f"ncu does not start: {error.strerror or error}") from None
    text = f"{done.stdout}\n{done.stderr}"
    reason = _known_trouble(text)
    if reason:
        raise CountersError(reason)
    if done.returncode:
        raise CountersError(f"ncu ended with exit code {done.returncode}: {_tail(text)}")
    return done.stdout


def _known_trouble(text: str) -> str:
    """Return what is wrong and what to do, for what ncu is known to say; "" for the rest."""
    if "ERR_NVGPUCTRPERM" in text:
        return (
            "the driver lets only administrators read hardware counters (ERR_NVGPUCTRPERM); run "
            "as root, or have the administrator set the option NVreg_RestrictProfilingToAdmin"
            "Users=0 of the module nvidia (a container needs the capability SYS_ADMIN)"
        )
    if "driver resource was unavailable" in text:
        return (
            "another tool holds the hardware counters (a profiler, or DCGM); end it, or pause "
            "DCGM with: dcgmi profile --pause"
        )
    if "LibraryNotLoaded" in text or "InterceptorInjector" in text:
        return (
            "ncu cannot attach to programs on this machine (a sandbox or a container withholds "
            "what it needs); count on the host itself"
        )
    return ""


def _tail(text: str) -> str:
    """Return ncu's last lines in one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))] or lines
    return "ncu says: " + (" ".join(said[-3:])[:300] or "nothing")
