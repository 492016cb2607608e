"""Prints how long `eatss.select` takes, step by step, for every kernel.

    python benchmarks/select_latency.py [--gpu h200] [--repeat 5]

Columns are medians over warm repeats in one process, in milliseconds. ``ppcg`` and ``cuda`` are
whole selections for these targets, by the energy objective. The steps after them are those of
``--model paper`` at split 0.5 and warp fraction 0.5 (0.125 where 0.5 has no solution); ``grid`` is
its total with split and fraction chosen automatically. Below stand the whole command line for gemm
as a fresh process, and its peak memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from eatss.analysis.analyse import analyse
from eatss.analysis.facts import KernelFacts
from eatss.api import select
from eatss.base.diagnostics import NoSolutionError
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose.options import ModelOptions
from eatss.choose.select import select_program
from eatss.frontend.parse import parse_file
from eatss.polyhedral.schedule import schedule_scop

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds of each step for one kernel file."""

    kernel: str
    ppcg_s: float
    cuda_s: float
    frontend_s: float
    polyhedral_s: float
    analysis_s: float
    solve_s: float
    fixed_total_s: float
    grid_total_s: float


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """Run once and return the result with the seconds it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def measure_solve(facts: tuple[KernelFacts, ...], profile: GpuProfile) -> float:
    """Return the seconds of the solving at a fixed cell: the first that has a solution."""
    for fraction in (0.5, 0.125):
        options = ModelOptions(model="paper", split=0.5, warp_fraction=fraction)
        start = time.perf_counter()
        try:
            select_program(facts, profile, options)
        except NoSolutionError:
            continue
        return time.perf_counter() - start
    return float("nan")


def measure_once(path: Path, profile: GpuProfile) -> Latency:
    """Measure every step once."""
    parsed, frontend_s = timed(lambda: parse_file(path))
    scheduled, polyhedral_s = timed(lambda: [schedule_scop(scop) for scop in parsed.scops])
    facts, analysis_s = timed(lambda: tuple(f for s in scheduled for f in analyse(s)))

    solve_s = measure_solve(facts, profile)
    _, ppcg_s = timed(lambda: select(path, gpu=profile, cache=False))
    _, cuda_s = timed(lambda: select(path, gpu=profile, target="cuda", cache=False))
    _, grid_total_s = timed(lambda: select(path, gpu=profile, model="paper", cache=False))
    return Latency(
        kernel=path.stem,
        ppcg_s=ppcg_s,
        cuda_s=cuda_s,
        frontend_s=frontend_s,
        polyhedral_s=polyhedral_s,
        analysis_s=analysis_s,
        solve_s=solve_s,
        fixed_total_s=frontend_s + polyhedral_s + analysis_s + solve_s,
        grid_total_s=grid_total_s,
    )


def median_of(samples: list[Latency]) -> Latency:
    """Return the median of every column."""

    def column(name: str) -> float:
        return float(statistics.median(getattr(sample, name) for sample in samples))

    return Latency(
        kernel=samples[0].kernel,
        ppcg_s=column("ppcg_s"),
        cuda_s=column("cuda_s"),
        frontend_s=column("frontend_s"),
        polyhedral_s=column("polyhedral_s"),
        analysis_s=column("analysis_s"),
        solve_s=column("solve_s"),
        fixed_total_s=column("fixed_total_s"),
        grid_total_s=column("grid_total_s"),
    )


def command_line(gpu: str, target: str) -> tuple[float, float]:
    """Return seconds and peak MiB of the whole command for gemm, in a fresh process."""
    gemm = str(data_directory("kernels") / "gemm.c")
    command = [sys.executable, "-m", "eatss", "select", gemm, "--gpu", gpu, "--target", target]
    command.append("--no-cache")
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return elapsed, usage.ru_maxrss / 1024


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    profile = load_profile(arguments.gpu)
    print(f"{profile.title}; Python {platform.python_version()}, {os.cpu_count()} cores")
    columns = ("ppcg", "cuda", "front end", "polyhedral", "analysis", "solve", "total", "grid")
    print(f"{'kernel':<16}" + "".join(f"{c:>12}" for c in columns) + "   [ms]")
    for path in sorted(data_directory("kernels").glob("*.c")):
        measure_once(path, profile)
        row = median_of([measure_once(path, profile) for _ in range(arguments.repeat)])
        seconds = (
            row.ppcg_s,
            row.cuda_s,
            row.frontend_s,
            row.polyhedral_s,
            row.analysis_s,
            row.solve_s,
            row.fixed_total_s,
            row.grid_total_s,
        )
        print(f"{row.kernel:<16}" + "".join(f"{1000 * s:>12.1f}" for s in seconds), flush=True)
    print()
    for target in ("ppcg", "cuda"):
        runs = [command_line(arguments.gpu, target) for _ in range(arguments.repeat)]
        print(
            f"eatss select gemm.c --gpu {arguments.gpu} --target {target} as a fresh process: "
            f"median {statistics.median(r[0] for r in runs):.2f} s, peak {runs[0][1]:.0f} MiB"
        )


if __name__ == "__main__":
    main()
