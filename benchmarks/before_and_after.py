"""Kernels as an earlier revision generated them beside those of this one, each with its own plan.

    eatss codegen kernels/gemm.c --gpu h200 -o DIR/gemm/before     # with the earlier revision, each
    eatss codegen kernels/gemm.c --gpu h200 -o DIR/gemm/after      # with this one
    python benchmarks/before_and_after.py run DIR -o FILE          # where the card is
    python benchmarks/before_and_after.py [FILE]                   # prints the table

Where texts are the same there is nothing to measure. Windows of both alternate, on data of their
own that begin alike, at the sizes of the source.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library import Row, read_rows, write_rows
from benchmarks.recorded import RESULTS, geometric_mean
from benchmarks.windows import window

FILE = RESULTS.parent / "h100" / "before-and-after-streams.json"
BEFORE, AFTER = "before", "after"


def measured(folder: Path, seconds: float, rounds: int) -> Iterator[Row]:
    """Measure the kernels of a folder, one after the other, all programs of one by turns."""
    import torch  # noqa: PLC0415 - only where the card is

    for place in sorted(folder.iterdir()):
        rows, runs = {}, {}
        for label in sorted(one.name for one in place.iterdir()):
            rows[label] = Row(workload=place.name, dtype="", program=label)
            try:
                runs[label] = _runs(torch, place / label)
                runs[label]()
                torch.cuda.synchronize()
            except Exception as error:
                rows[label].status = f"{type(error).__name__}: {error}"[:200]
                runs.pop(label, None)
        for _ in range(rounds):
            for label, run in runs.items():
                time_s, energy_j = window(torch, run, seconds)
                rows[label].times_s.append(time_s)
                rows[label].energies_j.append(energy_j)
        yield from rows.values()


def _runs(torch: Any, folder: Path) -> Callable[[], object]:
    """Return a call of a program on random arrays of the sizes of the source."""
    from eatss.program import evaluate, load_program  # noqa: PLC0415 - as above

    torch.manual_seed(0)
    program = load_program(folder)
    sizes = {one.name: one.default for one in program.parameters if one.default is not None}
    given: dict[str, Any] = {}
    for argument in program.entries[0].arguments:
        kind = torch.float32 if argument.element_type == "float" else torch.float64
        if argument.role == "array":
            shape = [evaluate(extent, sizes) for extent in argument.shape]
            given[argument.name] = torch.rand(shape, dtype=kind, device="cuda") - 0.5
        elif argument.role == "scalar":
            given[argument.name] = 0.75
    compiled = program.compile()
    return lambda: compiled(**given)


def report(rows: Sequence[Row]) -> None:
    """Print what each takes, and ratios: below 1 is better than before."""
    print(
        f"{'kernel':16} {'before ms':>10} {'after ms':>10} {'before J':>9} {'after J':>9}"
        f"  {'time':>5} {'energy':>6}"
    )
    ratios: list[tuple[float, float]] = []
    for name in dict.fromkeys(row.workload for row in rows):
        own = {row.program: row for row in rows if row.workload == name}
        one, other = own[BEFORE], own[AFTER]
        if {one.status, other.status} != {"ok"}:
            print(f"{name:16} {one.status}; {other.status}")
            continue
        ratios.append((other.time_s / one.time_s, other.energy_j / one.energy_j))
        print(
            f"{name:16} {1e3 * one.time_s:10.4f} {1e3 * other.time_s:10.4f} {one.energy_j:9.4f} "
            f"{other.energy_j:9.4f}  {ratios[-1][0]:5.2f} {ratios[-1][1]:6.2f}"
        )
    if ratios:
        times, energies = (geometric_mean(own) for own in zip(*ratios, strict=True))
        print(
            f"\nafter over before, in the geometric mean: time {times:.3f}, energy {energies:.3f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="run DIR, or a file of results")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    what, *rest = given.words or [""]
    if what == "run":
        rows = []
        for row in measured(Path(rest[0]), given.seconds, given.rounds):
            rows.append(row)
            write_rows(rows, given.output)
        report(rows)
    else:
        report(read_rows(Path(what) if what else FILE))


if __name__ == "__main__":
    main()
