"""Hardware counters of one run through Nsight Compute; clocks are left as they are.

The run happens in a process of its own, :mod:`eatss.measurement.profiled_run`. Launches beyond the
first ``LAUNCH_LIMIT`` are not counted: each is replayed several times, so thousands take hours.
What was left out stands in ``missing``; nothing is extrapolated.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from eatss.diagnostics import input_error
from eatss.measurement.launches import launches
from eatss.measurement.measurement import KernelCounters, Measurement, Missing
from eatss.measurement.ncu_csv import METRICS, NcuTableError, kernel_counters
from eatss.measurement.options import MeasureOptions
from eatss.program import load_program

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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        *("--seed", str(options.seed)),
        *("--device", str(options.device)),
        *("--compiler", options.compiler),
        *(("--nvcc", options.nvcc) if options.nvcc else ()),
        *(f"--size={name}={value}" for name, value in sizes.items()),
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
