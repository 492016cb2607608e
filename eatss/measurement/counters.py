"""Hardware counters of one run through Nsight Compute; clocks are left as they are.

The run happens in a process of its own, :mod:`eatss.measurement.profiled_run`. Launches beyond the
first ``LAUNCH_LIMIT`` are not counted: each is replayed several times, so thousands take hours.
What was left out stands in ``missing``; nothing is extrapolated.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from eatss.base.codec import encode
from eatss.base.diagnostics import input_error
from eatss.base.supervisor import run_bounded
from eatss.measurement.arguments import launches
from eatss.measurement.measurement import Counter, KernelCounters, Measurement, Missing
from eatss.measurement.options import MeasureOptions
from eatss.program import load_program
from eatss.program.expression import OwnSizes

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


class CountersError(Exception):
    """Counters cannot be read here: a sentence, and what to do about it."""


def kernel_counters(text: str, kernels: Sequence[str]) -> tuple[KernelCounters, ...]:
    """Return the counters of kernels, summed over their launches, in the order of ``kernels``.

    Occupancy is the mean over time. A counter that is not there for all launches is left out.

    Args:
        text: what ``ncu --csv --page raw`` printed, with lines of ncu and of the program around:
            a line of names, a line of units, a line a launch.
        kernels: names of the kernels that are counted.

    Raises:
        CountersError: there is no table.
    """
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
    if not rows or _KERNEL not in rows[0]:
        raise CountersError("no kernel was counted")
    units, *launched = rows
    found = []
    for kernel in kernels:
        # the name is printed with return type, arguments and template arguments
        own = [one for one in launched if kernel in re.split(r"[^\w]+", one[_KERNEL] or "")]
        counters = filter(None, (_counter(name, units, own) for name in METRICS))
        if own:
            found.append(KernelCounters(kernel=kernel, launches=len(own), counters=tuple(counters)))
    return tuple(found)


def _counter(
    name: str, units: Mapping[str, str], launches: Sequence[Mapping[str, str]]
) -> Counter | None:
    """Return a sum over launches, of occupancy the mean; ``None`` where a launch has no value."""
    values, times_ns = (
        np.array([_number(one.get(what)) for one in launches]) for what in (name, DURATION)
    )
    unit, value = units.get(name) or "", values.sum()
    if name == OCCUPANCY:
        value = values @ times_ns / times_ns.sum()
    elif name == DURATION:
        unit, value = "s", 1e-9 * value
    return Counter(name=name, value=float(value), unit=unit) if np.isfinite(value) else None


def _number(text: str | None) -> float:
    """Return a number with thousands separators, NaN for ``n/a``."""
    try:
        return float(re.sub("[,' ]", "", text or ""))
    except ValueError:
        return math.nan


LAUNCH_LIMIT = 200
"""Launches of one run that are counted at most."""

_USUAL = Path("/usr/local/cuda/bin/ncu")
_LONGEST_S = 600.0


def find_ncu() -> str:
    """Return the path of Nsight Compute: on the ``PATH``, else where the CUDA toolkit has it.

    Raises:
        InputError: ``EATSS-E050``: it is not there.
    """
    found = shutil.which("ncu") or shutil.which(_USUAL)
    if found is None:
        raise input_error(
            "EATSS-E050",
            "hardware counters need Nsight Compute, and there is no ncu",
            hint="install nsight-compute (it comes with the CUDA toolkit) and put ncu on the PATH, "
            "or measure without --counters",
        )
    return found


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
    total = sum(1 for _ in launches(program, sizes))
    try:
        text = _run(ncu_command(ncu, directory, options, sizes, kernels, limit))
        found = kernel_counters(text, kernels)
        counted = sum(kernel.launches for kernel in found)
        if counted != min(total, limit):
            raise CountersError(f"ncu counted {counted} launches of {total}; {_tail(text)}")
    except CountersError as error:
        return without(measurement, str(error))
    gaps = [
        Missing(what=f"{name} of {kernel.kernel}", reason="ncu gives no value for it on this card")
        for kernel in found
        for name in METRICS
        if name not in {counter.name for counter in kernel.counters}
    ]
    if total > counted:
        reason = f"only the first {counted} launches of the run were counted"
        gaps.insert(0, Missing(what="counters of later launches", reason=reason))
    return replace(measurement, counters=found, missing=(*measurement.missing, *gaps))


def without(measurement: Measurement, reason: str) -> Measurement:
    """Return a measurement that has no counters for a reason."""
    gap = Missing(what="counters", reason=reason)
    return replace(measurement, missing=(*measurement.missing, gap))


def ncu_command(
    ncu: str,
    directory: Path,
    options: MeasureOptions,
    sizes: OwnSizes,
    kernels: Sequence[str],
    limit: int,
) -> list[str]:
    """Return the command line that counts one run."""
    asked = (
        "--clock-control none --target-processes all --profile-from-start off "
        f"--kernel-name-base function --kernel-name regex:^({'|'.join(kernels)})$ "
        f"--launch-count {limit} --csv --page raw --print-units base "
        f"--metrics {','.join(METRICS)}"
    )
    run = (sys.executable, "-m", "eatss.measurement.profiled_run", str(directory))
    return [ncu, *asked.split(), *run, json.dumps(encode(replace(options, sizes=sizes)))]


def _run(command: Sequence[str]) -> str:
    """Return what ncu prints.

    Raises:
        CountersError: it fails.
    """
    try:
        code, text = run_bounded(command, ".", _LONGEST_S, "", {**os.environ, "LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        raise CountersError(
            f"ncu took longer than {_LONGEST_S:.0f} s; measure smaller sizes (--size) with counters"
        ) from None
    except OSError as error:
        raise CountersError(f"ncu does not start: {error.strerror or error}") from None
    if "ERR_NVGPUCTRPERM" in text:
        raise CountersError(
            "the driver lets only administrators read hardware counters (ERR_NVGPUCTRPERM); run "
            "as root, or have the administrator set the option NVreg_RestrictProfilingToAdmin"
            "Users=0 of the module nvidia (a container needs the capability SYS_ADMIN)"
        )
    if code:
        raise CountersError(f"ncu ended with exit code {code}: {_tail(text)}")
    return text


def _tail(text: str) -> str:
    """Return what ncu complains of, or its last words."""
    said = re.findall("^==(?:ERROR|WARNING)== .*", text, re.MULTILINE) or text.split()
    return f"ncu says: {' '.join(said[-40:])[-300:] or 'nothing'}"
