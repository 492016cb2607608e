"""Prints how long `eatss.select` takes, step by step, for every kernel.

    python benchmarks/select_latency.py [--gpu h200] [--repeat 5]

Columns are medians over warm repeats in one process, in milliseconds. ``ppcg`` and ``cuda`` are
whole selections for these targets, by the energy objective, ``codegen`` is `eatss.codegen` as a
whole. The steps after them are those of
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
from pathlib import Path
from typing import TypeVar

from eatss.analysis.analyse import analyse
from eatss.analysis.facts import KernelFacts
from eatss.api import codegen, select
from eatss.base.diagnostics import NoSolutionError
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose.options import ModelOptions
from eatss.choose.select import select_program
from eatss.frontend.parse import parse_file
from eatss.polyhedral.schedule import schedule_scop

T = TypeVar("T")


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


def measure_once(path: Path, profile: GpuProfile) -> dict[str, float]:
    """Return the seconds of every step, by its title."""
    parsed, frontend_s = timed(lambda: parse_file(path))
    scheduled, polyhedral_s = timed(lambda: [schedule_scop(scop) for scop in parsed.scops])
    facts, analysis_s = timed(lambda: tuple(f for s in scheduled for f in analyse(s)))
    solve_s = measure_solve(facts, profile)
    return {
        "ppcg": timed(lambda: select(path, gpu=profile, cache=False))[1],
        "cuda": timed(lambda: select(path, gpu=profile, target="cuda", cache=False))[1],
        "codegen": timed(lambda: codegen(path, gpu=profile, cache=False))[1],
        "front end": frontend_s,
        "polyhedral": polyhedral_s,
        "analysis": analysis_s,
        "solve": solve_s,
        "total": frontend_s + polyhedral_s + analysis_s + solve_s,
        "grid": timed(lambda: select(path, gpu=profile, model="paper", cache=False))[1],
    }


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
    for number, path in enumerate(sorted(data_directory("kernels").glob("*.c"))):
        measure_once(path, profile)
        samples = [measure_once(path, profile) for _ in range(arguments.repeat)]
        if not number:
            print(f"{'kernel':<16}" + "".join(f"{title:>12}" for title in samples[0]) + "   [ms]")
        medians = (statistics.median(one[title] for one in samples) for title in samples[0])
        print(f"{path.stem:<16}" + "".join(f"{1000 * s:>12.1f}" for s in medians), flush=True)
    print()
    for target in ("ppcg", "cuda"):
        runs = [command_line(arguments.gpu, target) for _ in range(arguments.repeat)]
        print(
            f"eatss select gemm.c --gpu {arguments.gpu} --target {target} as a fresh process: "
            f"median {statistics.median(r[0] for r in runs):.2f} s, peak {runs[0][1]:.0f} MiB"
        )


if __name__ == "__main__":
    main()
