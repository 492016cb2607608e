"""PolyBench on a card: code of eatss beside PPCG's default and PPCG with selected sizes.

    python benchmarks/polybench_card.py prepare DIR --sources SOURCES  # where eatss is installed
    python benchmarks/ppcg.py draw DIR/ppcg --sources SOURCES --random 0 --dtype double
    python benchmarks/polybench_card.py run DIR -o FILE          # where the card is
    python benchmarks/ppcg.py measure DIR/ppcg --ppcg PPCG --sources SOURCES --results ROWS
    python benchmarks/polybench_card.py [FILE]                   # prints the table

``SOURCES`` is a folder of C files with numbers as sizes, a region each. The floor is the least time
of the work by the card's arithmetic and memory, as ``eatss select`` says it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ppcg_records import DEFAULT, load_rows, means
from benchmarks.recorded import RESULTS, geometric_means
from benchmarks.windows import (
    Row,
    Run,
    arguments,
    command_line,
    energy_j,
    started,
    take_turns,
)

FILE = RESULTS / "polybench-card.json"
ROWS = RESULTS / "polybench-card-ppcg.jsonl.xz"
FLOOR = "floor"
LONG_S = 0.4
"""A run of so long is measured alone: the counter of energy moves every tenth of a second."""


def prepare(folder: Path, given: argparse.Namespace) -> None:
    """Generate code of every program, and say what it takes at least."""
    sources = sorted(given.sources.glob("*.c"))
    with ProcessPoolExecutor() as pool:
        floors = pool.map(_prepared, sources, [folder / one.stem for one in sources])
        found = dict(zip((one.stem for one in sources), floors, strict=True))
    (folder / "floors.json").write_text(json.dumps(found), encoding="utf-8")


def _prepared(source: Path, folder: Path) -> float | None:
    """Generate the code of a program; return the least seconds of its work."""
    import eatss  # noqa: PLC0415 - not on the machine with the card

    eatss.codegen(source, gpu="h200", output=folder)
    return eatss.select(source, gpu="h200", target="cuda").least_time_s


def measured(folder: Path, given: argparse.Namespace) -> Iterator[Row]:
    """Measure every program, and yield its floor in front of it."""
    import torch  # noqa: PLC0415 - only where the card is

    floors = json.loads((folder / "floors.json").read_text(encoding="utf-8"))
    with ThreadPoolExecutor() as pool:
        begun = {name: pool.submit(_begun, torch, folder / name) for name in floors}
    for name, floor_s in floors.items():
        yield Row(workload=name, dtype="", program=FLOOR, times_s=[floor_s])
        row = Row(workload=name, dtype="", program="eatss")
        try:
            run = begun[name].result()
            time_s, energy = _alone(torch, run)
            if time_s > LONG_S:
                row.times_s, row.energies_j = [time_s], [energy]
            else:
                take_turns(torch, [(row, run)], given.seconds, given.rounds)
        except Exception as error:
            row.fails(error)
        yield row


def _begun(torch: Any, folder: Path) -> Run:
    """Run a program once, on numbers that are not negative; return calls of it."""
    given = arguments(torch, folder)
    for one in given.values():
        if isinstance(one, torch.Tensor):
            one.abs_().add_(1)
    return started(torch, folder, given)


def _alone(torch: Any, run: Run) -> tuple[float, float]:
    """Return seconds and joules of one run."""
    torch.cuda.synchronize()
    begin_s, before_j = time.perf_counter(), energy_j()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - begin_s, energy_j() - before_j


def report(rows: Sequence[Row], of_ppcg: Path = ROWS) -> None:
    """Print what each takes, PPCG's over ours, and ours over the floor."""
    print(
        f"{'program':28} {'ms':>10} {'J':>9}   default / ours    selected / ours   ours / floor\n"
        f"{'':50} {'time':>8} {'energy':>8} {'time':>9} {'energy':>8}"
    )
    ppcg = means(load_rows([of_ppcg]))
    kept: dict[str, list[tuple[float, float]]] = {DEFAULT: [], "selected": []}
    floors = {row.workload: row.time_s for row in rows if row.program == FLOOR}
    for row in rows:
        if row.program == FLOOR:
            continue
        if row.status != "ok":
            print(f"{row.workload:28} {row.status}")
            continue
        cells = ""
        for label, ratios in kept.items():
            other = ppcg.get((row.workload, "double", label))
            if other is None:
                cells += f" {'-':>8} {'-':>8}"
                continue
            ratios.append((other[0] / row.time_s, other[1] / row.energy_j))
            cells += f" {ratios[-1][0]:8.2f} {ratios[-1][1]:8.2f}"
        print(
            f"{row.workload:28} {1e3 * row.time_s:10.3f} {row.energy_j:9.4f} {cells}"
            f" {row.time_s / floors[row.workload]:12.1f}"
        )
    for label, ratios in kept.items():
        time_ratio, energy = geometric_means(ratios)
        print(f"PPCG {label} over ours, {len(ratios)} programs: {time_ratio:.2f}, {energy:.2f}")


if __name__ == "__main__":
    command_line(
        __doc__,
        FILE,
        measured,
        report,
        prepare,
        seconds=0.3,
        rounds=1,
        options=lambda parser: parser.add_argument("--sources", type=Path),
    )
