"""Prints how much a process grows that selects again and again, and how long a selection takes.

python benchmarks/service_memory.py [--calls 1000] [--threads 1] [--function select]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from eatss.base.shipped import data_directory

WARM_UP = 10
KERNELS = ("gemm", "atax", "jacobi-2d", "mvt")


def resident_kib() -> int:
    """Return the memory of this process in KiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 1024


def main() -> None:
    """Call and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--function", choices=("select", "codegen", "predict"), default="select")
    options = parser.parse_args()
    function = getattr(eatss, options.function)
    anew = {} if options.function == "predict" else {"cache": False}
    sources = [data_directory("kernels") / f"{name}.c" for name in KERNELS]

    def call(number: int) -> float:
        began = time.perf_counter()
        function(sources[number % len(sources)], gpu="a100", **anew)
        return time.perf_counter() - began

    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(call, range(WARM_UP)))
        before = resident_kib()
        times = sorted(pool.map(call, range(options.calls)))
        grown = resident_kib() - before
    print(f"{options.calls} calls of {options.function} from {options.threads} threads "
          f"({', '.join(KERNELS)} by turns)")  # fmt: skip
    print(f"  {before / 1024:.1f} MiB after {WARM_UP} calls, grown by {grown / 1024:.2f} MiB")
    shares = ", ".join(
        f"{percent} % within {1000 * times[round(percent / 100 * (len(times) - 1))]:.0f} ms"
        for percent in (50, 90, 99, 100)
    )
    print(f"  {shares}")


if __name__ == "__main__":
    main()
