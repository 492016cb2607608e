"""Prints how long `eatss.codegen` takes for every kernel, at growing tile sizes.

    python benchmarks/codegen_latency.py [--gpu h200] [--repeat 3] [--kernel gemm]

``generate`` is the generation of code alone, schedule and selection done, with the sizes
selected and with tiles of 8, 32 and 128 along every loop: it does not grow with the tiles.
``analyse`` is everything before the selection (front end, both schedules, facts),
``total`` is `eatss.codegen` as a whole. Columns are medians over warm repeats in one
process, in milliseconds. Below stands the whole command for gemm as a fresh process.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import eatss
from eatss.base.diagnostics import EatssError
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.lower.recipe import CodeRequest
from eatss.program import Program
from eatss.session.session import Session

TILES = (8, 32, 128)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds for one kernel file; ``generate_s`` for the sizes selected and for ``TILES``."""

    kernel: str
    analyse_s: float
    generate_s: tuple[float, ...]
    total_s: float
    lines: int


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """Run once and return the result with the seconds it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def analysed(path: Path) -> Session:
    """Take a file to schedules and facts."""
    session = Session(path, code=True)
    session.symbolic  # noqa: B018 - it is kept
    return session


def generate(
    session: Session, selection: Selection, profile: GpuProfile, tile: int | None
) -> Program:
    """Generate code with the sizes selected, or with one size along every loop."""
    loops = {loop.name for kernel in session.analysed.facts for loop in kernel.loops}
    tiles = {} if tile is None else dict.fromkeys(sorted(loops), tile)
    recipe = session.recipe(selection, profile, CodeRequest(tiles=tiles))
    return session.generate(recipe, profile)


def measure(path: Path, profile: GpuProfile, repeat: int) -> Latency:
    """Measure every step of one kernel file."""
    session = analysed(path)
    selection = session.select(profile, SelectOptions(model="paper"))
    text = generate(session, selection, profile, None).text

    def median(run: Callable[[], object]) -> float:
        return statistics.median(timed(run)[1] for _ in range(repeat))

    return Latency(
        kernel=path.stem,
        analyse_s=median(lambda: analysed(path)),
        generate_s=tuple(
            median(lambda tile=tile: generate(session, selection, profile, tile))  # type: ignore[misc]
            for tile in (None, *TILES)
        ),
        total_s=median(lambda: eatss.codegen(path, gpu=profile, cache=False)),
        lines=len(text.splitlines()),
    )


def command_line(gpu: str) -> tuple[float, float]:
    """Return seconds and peak MiB of the whole command for gemm, in a fresh process."""
    gemm = str(data_directory("kernels") / "gemm.c")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "eatss", "codegen", gemm, "--gpu", gpu, "-o", folder]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return elapsed, usage.ru_maxrss / 1024


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kernel", action="append", help="only this kernel (may be repeated)")
    arguments = parser.parse_args()
    profile = load_profile(arguments.gpu)
    print(f"{profile.title}; Python {platform.python_version()}, {os.cpu_count()} cores")
    columns = ("analyse", "generate", *(f"tiles {tile}" for tile in TILES), "total", "lines")
    print(f"{'kernel':<16}" + "".join(f"{c:>12}" for c in columns) + "   [ms]")
    for path in sorted(data_directory("kernels").glob("*.c")):
        if arguments.kernel and path.stem not in arguments.kernel:
            continue
        try:
            row = measure(path, profile, arguments.repeat)
        except EatssError as error:
            print(f"{path.stem:<16}  {error}", flush=True)
            continue
        seconds = (row.analyse_s, *row.generate_s, row.total_s)
        cells = "".join(f"{1000 * s:>12.1f}" for s in seconds)
        print(f"{row.kernel:<16}{cells}{row.lines:>12}", flush=True)
    runs = [command_line(arguments.gpu) for _ in range(arguments.repeat)]
    print(f"\neatss codegen gemm.c --gpu {arguments.gpu} as a fresh process:")
    print(f"  median {statistics.median(r[0] for r in runs):.2f} s, peak {runs[0][1]:.0f} MiB")


if __name__ == "__main__":
    main()
