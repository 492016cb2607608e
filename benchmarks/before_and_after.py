"""Kernels as an earlier revision generated them beside those of this one, each with its own plan.

    eatss codegen kernels/gemm.c --gpu h200 -o DIR/gemm/before     # with the earlier revision, each
    eatss codegen kernels/gemm.c --gpu h200 -o DIR/gemm/after      # with this one
    python benchmarks/before_and_after.py run DIR -o FILE          # where the card is
    python benchmarks/before_and_after.py [FILE]                   # prints the table

Where texts are the same there is nothing to measure. Windows of both alternate, on data of their
own that begin alike, at the sizes of the source. With ``--within 1e-4`` what the first call of
each leaves has to be as near that of ``before``, in the norm of each array, or it failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import RESULTS, geometric_means
from benchmarks.windows import (
    Row,
    Run,
    arguments,
    by_workload,
    command_line,
    folders,
    started,
    take_turns,
)

FILE = RESULTS.parent / "h100" / "before-and-after-streams.json"
BEFORE, AFTER = "before", "after"


def measured(directory: Path, given: argparse.Namespace) -> Iterator[Row]:
    """Measure the kernels of a folder, one after the other, all programs of one by turns."""
    import torch  # noqa: PLC0415 - only where the card is

    for place in folders(directory):
        labels = sorted(
            (one.name for one in place.iterdir()), key=lambda name: (name != BEFORE, name)
        )
        rows = {label: Row(workload=place.name, dtype="", program=label) for label in labels}
        runs: list[tuple[Row, Run]] = []
        expected: Mapping[str, Any] = {}
        with ThreadPoolExecutor() as pool:
            begun = {label: pool.submit(_begun, torch, place / label) for label in labels}
        for label, one in begun.items():
            try:
                run, arrays = one.result()
            except Exception as error:
                rows[label].fails(error)
                continue
            expected = expected or arrays
            apart = _apart(torch, expected, arrays)
            if given.within is not None and not apart <= given.within:
                rows[label].status = f"results {apart:.1e} apart"
            else:
                runs.append((rows[label], run))
        take_turns(torch, runs, given.seconds, given.rounds)
        yield from rows.values()


def _begun(torch: Any, folder: Path) -> tuple[Run, dict[str, Any]]:
    """Run a program once; return calls of it, and its arrays."""
    given = arguments(torch, folder)
    run = started(torch, folder, given)
    return run, {name: one for name, one in given.items() if isinstance(one, torch.Tensor)}


def _apart(torch: Any, expected: Mapping[str, Any], found: Mapping[str, Any]) -> float:
    """Return the largest distance of two arrays, over the norm of what is expected."""
    norm = torch.linalg.vector_norm
    pairs = ((one, found[name]) for name, one in expected.items())
    return max(float(norm(one - other) / norm(one)) for one, other in pairs)


def report(rows: Sequence[Row]) -> None:
    """Print what each takes, and ratios: below 1 is better than before."""
    print(
        f"{'kernel':16} {'before ms':>10} {'after ms':>10} {'before J':>9} {'after J':>9}"
        f"  {'time':>5} {'energy':>6}"
    )
    ratios: list[tuple[float, float]] = []
    for name, own in by_workload(rows).items():
        one, other = own[BEFORE], own[AFTER]
        if {one.status, other.status} != {"ok"}:
            print(f"{name:16} {one.status}; {other.status}")
            continue
        ratios.append(other.over(one))
        print(
            f"{name:16} {1e3 * one.time_s:10.4f} {1e3 * other.time_s:10.4f} {one.energy_j:9.4f} "
            f"{other.energy_j:9.4f}  {ratios[-1][0]:5.2f} {ratios[-1][1]:6.2f}"
        )
    if ratios:
        time, energy = geometric_means(ratios)
        print(f"\nafter over before, in the geometric mean: time {time:.3f}, energy {energy:.3f}")


if __name__ == "__main__":
    command_line(
        __doc__,
        FILE,
        measured,
        report,
        seconds=0.6,
        rounds=3,
        options=lambda parser: parser.add_argument("--within", type=float),
    )
