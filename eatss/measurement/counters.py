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
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from eatss.base.codec import encode
from eatss.base.diagnostics import input_error
from eatss.measurement.arguments import launches
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
    f"{letter}{unit}": (unit, scale)
    for unit in ("byte", "sector", "inst")
    for letter, scale in (("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
} | {
    f"{letter}{word}": ("s", scale)
    for word in ("second", "s")
    for letter, scale in (("", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9))
}
"""Units as different versions write them: the base unit, and how many of it one is."""


class NcuTableError(Exception):
    """What ncu printed is no table of counters; the text says what is wrong."""


_Values: TypeAlias = Mapping[str, tuple[float, str]]
"""Values of metrics with their units, of one launch."""


def kernel_counters(text: str, kernels: Sequence[str]) -> tuple[KernelCounters, ...]:
    """Return the counters of kernels, summed over their launches, in the order of ``kernels``.

    Occupancy is the mean over time. A counter that is not there for all launches is left out.

    Args:
        text: what ``ncu --csv --page raw`` printed, with lines of ncu and of the program around.
        kernels: names of the kernels that are counted.

    Raises:
        NcuTableError: there is no table, or it cannot be read.
    """
    launched: dict[str, list[_Values]] = {}
    for kernel, values in _launches(text):
        launched.setdefault(kernel, []).append(values)
    return tuple(
        KernelCounters(
            kernel=kernel,
            launches=len(launched[kernel]),
            counters=tuple(filter(None, (_counter(name, launched[kernel]) for name in METRICS))),
        )
        for kernel in kernels
        if kernel in launched
    )


def _launches(text: str) -> Iterator[tuple[str, _Values]]:
    """Yield the rows of the table: a line of names, a line of units, a line a launch."""
    lines = (line for line in text.splitlines() if line.startswith('"'))  # others are talk
    rows = iter(list(csv.reader(lines)))
    names = next((row for row in rows if _KERNEL in row), None)
    if names is None:
        raise NcuTableError("no kernel was counted")
    column, units = names.index(_KERNEL), [""] * len(names)
    for number, row in enumerate(row for row in rows if len(row) == len(names)):
        if row[column]:
            # the name without return type, arguments and template arguments
            bare = _BARE.match(row[column])
            yield row[column] if bare is None else bare[1], dict(_values(names, units, row))
        elif not number:
            units = row


def _values(
    names: Sequence[str], units: Sequence[str], row: Sequence[str]
) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield the metrics that have a number, with thousands separators; ``n/a`` is none."""
    for name, unit, text in zip(names, units, row, strict=True):
        if name in METRICS:
            base, scale = _SCALES.get(unit, (unit, 1.0))
            with suppress(ValueError):
                number = float(re.sub("[,' ]", "", text.strip()))
                if math.isfinite(number):
                    yield name, (number * scale, base)


def _counter(name: str, launches: Sequence[_Values]) -> Counter | None:
    """Return a sum over launches, of occupancy the mean; ``None`` where a launch has no value."""
    if any(name not in launch for launch in launches):
        return None
    values, unit = [launch[name][0] for launch in launches], launches[0][name][1]
    if name != OCCUPANCY:
        return Counter(name=name, value=math.fsum(values), unit=unit)
    weights = [launch[DURATION][0] for launch in launches if DURATION in launch]
    if len(weights) < len(values) or sum(weights) <= 0:
        return None
    weighted = sum(value * weight for value, weight in zip(values, weights, strict=True))
    return Counter(name=name, value=weighted / math.fsum(weights), unit=unit)


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
    program, sizes = load_program(directory), dict(measurement.sizes)
    kernels = [kernel.name for kernel in program.kernels]
    total = sum(1 for _ in islice(launches(program, sizes), limit + 1))
    try:
        text = _run(ncu_command(ncu, directory, options, sizes, kernels, limit))
        try:
            found = kernel_counters(text, kernels)
        except NcuTableError as error:
            raise CountersError(f"{error}; {_tail(text)}") from None
        counted = sum(kernel.launches for kernel in found)
        if counted != min(total, limit):
            raise CountersError(f"ncu counted {counted} launches of {total}; {_tail(text)}")
    except CountersError as error:
        return without(measurement, str(error))
    later = Missing(
        what="counters of later launches",
        reason=f"only the first {counted} launches of the run were counted",
    )
    gaps = (
        Missing(what=f"{name} of {kernel.kernel}", reason="ncu gives no value for it on this card")
        for kernel in found
        for name in METRICS
        if all(counter.name != name for counter in kernel.counters)
    )
    return _with(measurement, found, *([later] if total > counted else ()), *gaps)


def without(measurement: Measurement, reason: str) -> Measurement:
    """Return a measurement that has no counters for a reason."""
    return _with(measurement, None, Missing(what="counters", reason=reason))


def _with(
    measurement: Measurement, counters: tuple[KernelCounters, ...] | None, *gaps: Missing
) -> Measurement:
    others = (old for old in measurement.missing if old.what != "counters")
    return replace(measurement, counters=counters, missing=(*others, *gaps))


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
    try:
        done = subprocess.run(  # noqa: S603 - our own command line
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LONGEST_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise CountersError(
            f"ncu took longer than {_LONGEST_S:.0f} s; measure smaller sizes (--size) with counters"
        ) from None
    except OSError as error:
        raise CountersError(f"ncu does not start: {error.strerror or error}") from None
    text = f"{done.stdout}\n{done.stderr}"
    if "ERR_NVGPUCTRPERM" in text:
        raise CountersError(
            "the driver lets only administrators read hardware counters (ERR_NVGPUCTRPERM); run "
            "as root, or have the administrator set the option NVreg_RestrictProfilingToAdmin"
            "Users=0 of the module nvidia (a container needs the capability SYS_ADMIN)"
        )
    if done.returncode:
        raise CountersError(f"ncu ended with exit code {done.returncode}: {_tail(text)}")
    return done.stdout


def _tail(text: str) -> str:
    """Return ncu's last lines in one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))] or lines
    return "ncu says: " + (" ".join(said[-3:])[:300] or "nothing")
