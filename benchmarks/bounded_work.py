"""Prints how many random programs eatss refuses because isl needs too long, and what they cost.

    python benchmarks/bounded_work.py [--programs 300] [--kind nests] [--jobs 1] [FILE …]

``nests`` are the programs of ``tests/lower/test_property_programs.py``; ``bounds`` those of
``tests/frontend/random_programs.py``, with minima, maxima, divisions, remainders and ``?:`` in
nearly every bound and subscript. Files are taken instead where they are given. Each program
goes through ``eatss.codegen`` in a process of its own, which is ended after ``--limit`` seconds;
its time is that of the processor, its memory the most it had.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from eatss.base.diagnostics import EatssError
from tests.frontend.random_programs import generate
from tests.lower.test_property_programs import program

SLOW_S = 10.0
FINE = ("code", "EATSS-P006")


@dataclass(frozen=True, slots=True)
class Outcome:
    """``result`` is ``code``, the code of an error, or how the process ended."""

    name: str
    result: str
    time_s: float
    peak_bytes: int


def programs(kind: str, first: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield names and texts."""
    for seed in range(first, first + count):
        yield f"{kind} {seed}", program(seed)[0] if kind == "nests" else generate(seed).source


def outcome(name: str, source: str, gpu: str, limit_s: int) -> Outcome:
    """Run one program in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(limit_s)
        os.write(write, _result(source, gpu).encode())
        os._exit(0)
    os.close(write)
    _, status, usage = os.wait4(child, 0)
    elapsed = usage.ru_utime + usage.ru_stime
    result = os.read(read, 100).decode()
    os.close(read)
    if os.WIFSIGNALED(status):
        result = signal.Signals(os.WTERMSIG(status)).name
    return Outcome(name, result, elapsed, usage.ru_maxrss * 1024)


def _result(source: str, gpu: str) -> str:
    try:
        eatss.codegen(source, gpu=gpu, cache=False)
    except EatssError as error:
        return error.diagnostics[0].code
    except Exception as error:
        return type(error).__name__
    return "code"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--kind", choices=("nests", "bounds"), default="nests")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60, help="seconds after which one is ended")
    parser.add_argument("--gpu", default="a100")
    arguments = parser.parse_args()
    # what all share is loaded
    eatss.codegen("void f(double A[64])\n{\n#pragma scop\nfor (int i = 0; i < 64; i++) A[i] = 1;\n"
                  "#pragma endscop\n}\n", gpu=arguments.gpu, cache=False)  # fmt: skip
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    chosen = [(file.name, file.read_text()) for file in arguments.files] or programs(
        arguments.kind, arguments.first, arguments.programs
    )
    outcomes = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for found in pool.map(
            lambda pair: outcome(pair[0], pair[1], arguments.gpu, arguments.limit), chosen
        ):
            outcomes.append(found)
            if (
                arguments.files
                or found.time_s > SLOW_S
                or found.result not in ("code", "EATSS-P006")
            ):
                print(f"{found.name:<24}{found.result:<14}{found.time_s:8.2f} s"
                      f"{found.peak_bytes / 2**20:8.0f} MiB", flush=True)  # fmt: skip
    times = sorted(found.time_s for found in outcomes)
    print(f"\n{len(outcomes)} programs; the process before them has {own:.0f} MiB")
    for result, count in Counter(found.result for found in outcomes).most_common():
        print(f"  {result:<14}{count:6}{100 * count / len(outcomes):8.1f} %")
    print(f"  time: median {statistics.median(times):.2f} s, "
          f"99 % within {times[int(0.99 * (len(times) - 1))]:.2f} s, most {times[-1]:.2f} s; "
          f"{sum(t > SLOW_S for t in times)} over {SLOW_S:.0f} s")  # fmt: skip
    print(f"  memory: most {max(found.peak_bytes for found in outcomes) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
