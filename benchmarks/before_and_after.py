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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library import Row, read_rows, write_rows
from benchmarks.recorded import RESULTS, geometric_mean
from benchmarks.windows import window

FILE = RESULTS.parent / "h100" / "before-and-after-streams.json"
BEFORE, AFTER = "before", "after"


def measured(
    folder: Path, seconds: float, rounds: int, within: float | None = None
) -> Iterator[Row]:
    """Measure the kernels of a folder, one after the other, all programs of one by turns."""
    import torch  # noqa: PLC0415 - only where the card is

    for place in sorted(folder.iterdir()):
        if not place.is_dir():
            continue
        labels = sorted(
            (one.name for one in place.iterdir()), key=lambda name: (name != BEFORE, name)
        )
        rows = {label: Row(workload=place.name, dtype="", program=label) for label in labels}
        runs: dict[str, Callable[[], object]] = {}
        expected: Mapping[str, Any] = {}
        with ThreadPoolExecutor() as pool:
            begun = {label: pool.submit(started, torch, place / label) for label in labels}
        for label, one in begun.items():
            try:
                run, arrays = one.result()
            except Exception as error:
                rows[label].status = f"{type(error).__name__}: {error}"[:200]
                continue
            expected = expected or arrays
            apart = _apart(torch, expected, arrays)
            if within is not None and not apart <= within:
                rows[label].status = f"results {apart:.1e} apart"
            else:
                runs[label] = run
        for _ in range(rounds):
            for label, run in runs.items():
                time_s, energy_j = window(torch, run, seconds)
                rows[label].times_s.append(time_s)
                rows[label].energies_j.append(energy_j)
        yield from rows.values()


def _apart(torch: Any, expected: Mapping[str, Any], found: Mapping[str, Any]) -> float:
    """Return the largest distance of two arrays, over the norm of what is expected."""
    norm = torch.linalg.vector_norm
    pairs = ((one, found[name]) for name, one in expected.items())
    return max(float(norm(one - other) / norm(one)) for one, other in pairs)


def started(torch: Any, folder: Path) -> tuple[Callable[[], object], Mapping[str, Any]]:
    """Run a program on random arrays of the sizes of the source; return calls of it, and these."""
    from eatss.program import evaluate, load_program  # noqa: PLC0415 - as above

    program = load_program(folder)
    sizes = {one.name: one.default for one in program.parameters if one.default is not None}
    given: dict[str, Any] = {}
    drawn = torch.Generator("cuda")
    drawn.manual_seed(0)
    for argument in program.entries[0].arguments:
        kind = {"float": torch.float32, "double": torch.float64}.get(argument.element_type)
        if argument.role == "array":
            shape = [evaluate(extent, sizes) for extent in argument.shape]
            values = torch.rand(shape, dtype=kind, device="cuda", generator=drawn) - 0.5
            given[argument.name] = values if kind else (20 * values).int()
        elif argument.role == "scalar":
            given[argument.name] = 0.75
    compiled = program.compile()
    compiled(**given)
    torch.cuda.synchronize()
    arrays = {name: one for name, one in given.items() if isinstance(one, torch.Tensor)}
    return (lambda: compiled(**given)), arrays


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
    parser.add_argument("--within", type=float)
    given = parser.parse_args(arguments)
    what, *rest = given.words or [""]
    if what == "run":
        rows = []
        for row in measured(Path(rest[0]), given.seconds, given.rounds, given.within):
            rows.append(row)
            write_rows(rows, given.output)
        report(rows)
    else:
        report(read_rows(Path(what) if what else FILE))


if __name__ == "__main__":
    main()
