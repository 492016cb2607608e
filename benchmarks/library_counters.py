"""Counters of Nsight Compute for our kernels and those of the vendor's library, one run each.

    python benchmarks/library.py prepare DIR --only gemm,convolution-layer     # where eatss is
    python benchmarks/library_counters.py run DIR -o FILE                      # where the card is
    python benchmarks/library_counters.py [FILE]                               # prints the table

Clocks are left as they are. Each program runs once unseen, then once under counters, the library
after it on arrays of its own. A share "while active" is one of cycles in which the SM had warps,
without these words it is one of the time of the kernel.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library import fresh_arrays, our_call
from benchmarks.library_unseen import every_workload
from benchmarks.recorded import RESULTS
from eatss.measurement.counters import find_ncu

FILE = RESULTS.parent / "h100" / "library-counters.json"
LIBRARY = "library"
_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_WAITS = {
    "barrier": "wait: barrier",
    "short_scoreboard": "wait: shared memory",
    "long_scoreboard": "wait: L2, memory",
    "math_pipe_throttle": "wait: pipe is full",
    "mio_throttle": "wait: queue of shared memory",
    "lg_throttle": "wait: queue of L1",
    "dispatch_stall": "wait: dispatch",
    "no_instruction": "wait: instructions",
    "wait": "wait: fixed latency",
    "not_selected": "ready, another issued",
}
METRICS = {
    "gpu__time_duration.sum": "time",
    "smsp__cycles_elapsed.avg.per_second": "clock",
    "launch__registers_per_thread": "registers",
    "launch__grid_size": "blocks",
    "sm__maximum_warps_per_active_cycle_pct": "occupancy by resources",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy while active",
    "sm__warps_active.avg.per_cycle_active": "warps while active",
    "sm__cycles_active.avg": "active cycles",
    "sm__cycles_elapsed.max": "cycles",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor pipe",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "tensor pipe while active",
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed": "FMA pipe",
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": "FMA pipe while active",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issued while active",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "DRAM",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "wavefronts of shared memory",
    "smsp__inst_executed.sum": "instructions",
    **{_STALLED.format(name): text for name, text in _WAITS.items()},
}
"""What is asked for, and how a table calls it; waits are warps that wait, for each issue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted of a launch: values and units as Nsight Compute writes them."""

    workload: str
    dtype: str
    program: str
    kernel: str
    grid: str
    block: str
    values: dict[str, str]


def counted(folder: Path) -> Iterator[Counted]:
    """Count what was prepared, program by program, in a process of its own each."""
    ncu = find_ncu()
    for place in sorted(one for many in folder.iterdir() for one in many.iterdir()):
        command = [ncu, "--clock-control", "none", "--profile-from-start", "off"]
        command += ["--csv", "--page", "raw", "--metrics", ",".join(METRICS)]
        command += [sys.executable, str(Path(__file__)), "once", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{place}: {(done.stderr or done.stdout)[-500:]}", file=sys.stderr)
            continue
        yield from _launches(place, done.stdout)


def _launches(place: Path, text: str) -> Iterator[Counted]:
    name, _, dtype = place.parent.name.rpartition("-")
    names, units, *rows = csv.reader(line for line in text.splitlines() if line.startswith('"'))
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        kernel = cells["Kernel Name"]
        ours = kernel.startswith("kernel_")
        yield Counted(
            workload=name,
            dtype=dtype,
            program=place.name if ours else LIBRARY,
            kernel=kernel.partition("(")[0],
            grid=cells["Grid Size"],
            block=cells["Block Size"],
            values={
                key: f"{cells[key]} {unit}".strip()
                for key, unit in zip(names, units, strict=True)
                if key in METRICS
            },
        )


def once(place: Path) -> None:
    """Run a program and the library's once each under counters, after a run of both."""
    import torch  # noqa: PLC0415 - only where the card is

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    name, _, dtype = place.parent.name.rpartition("-")
    of = every_workload()[name]
    arrays = fresh_arrays(torch, of, dtype)
    theirs = {key: array.clone() for key, array in arrays.items()}
    call = our_call(place, of)
    calls: list[Any] = [
        lambda: call(arrays),
        lambda: of.call(torch, **theirs, **of.scalars),
    ]
    for run in calls:
        run()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for run in calls:
        run()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def report(rows: Sequence[Counted]) -> None:
    """Print a table for each workload, a launch a column."""
    for title in dict.fromkeys((row.workload, row.dtype) for row in rows):
        own = [row for row in rows if (row.workload, row.dtype) == title]
        print(f"{title[0]}, {title[1]}")
        for at, row in enumerate(own, 1):
            print(f"  {at}: {row.program}, {row.kernel} {row.grid} x {row.block}")
        width = max(len(value) for row in own for value in row.values.values()) + 2
        for key, text in METRICS.items():
            print(f"  {text:30}" + "".join(row.values.get(key, "-").rjust(width) for row in own))
        print()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="run DIR, or a file of results")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    given = parser.parse_args(arguments)
    what, *rest = given.words or [""]
    if what == "once":
        once(Path(rest[0]))
    elif what == "run":
        rows = []
        for row in counted(Path(rest[0])):
            rows.append(row)
            lines = ",\n".join(json.dumps(asdict(one)) for one in rows)
            given.output.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        report(rows)
    else:
        path = Path(what) if what else FILE
        report([Counted(**one) for one in json.loads(path.read_text(encoding="utf-8"))])


if __name__ == "__main__":
    main()
