"""PolyBench on a card: code of eatss beside PPCG's default and PPCG with selected sizes.

    python benchmarks/polybench_card.py prepare DIR SOURCES      # where eatss is installed
    python benchmarks/ppcg.py draw DIR/ppcg --sources SOURCES --random 0 --dtype double
    python benchmarks/polybench_card.py run DIR -o FILE          # where the card is
    python benchmarks/ppcg.py measure DIR/ppcg --ppcg PPCG --sources SOURCES --results ROWS
    python benchmarks/polybench_card.py [FILE ROWS]              # prints the table

``SOURCES`` is a folder of C files with numbers as sizes, a region each. The floor is the least time
of the work by the card's arithmetic and memory, as ``eatss select`` says it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library import Row, read_rows, write_rows
from benchmarks.ppcg_records import DEFAULT, load_rows
from benchmarks.recorded import RESULTS, geometric_mean
from benchmarks.windows import energy_j, window

FILE = RESULTS / "polybench-card.json"
ROWS = RESULTS / "polybench-card-ppcg.jsonl.xz"
FLOOR = "floor"
LONG_S = 0.4
"""A run of so long is measured alone: the counter of energy moves every tenth of a second."""


def prepare(folder: Path, sources: Path) -> None:
    """Generate code of every program, and say what it takes at least."""
    import eatss  # noqa: PLC0415 - not on the machine with the card

    floors = {}
    for source in sorted(sources.glob("*.c")):
        eatss.codegen(source, gpu="h200", output=folder / source.stem)
        floors[source.stem] = eatss.select(source, gpu="h200", target="cuda").least_time_s
        print(source.stem, flush=True)
    (folder / "floors.json").write_text(json.dumps(floors), encoding="utf-8")


def measured(folder: Path, seconds: float, rounds: int) -> Iterator[Row]:
    """Measure every program, and yield its floor in front of it."""
    import torch  # noqa: PLC0415 - only where the card is

    floors = json.loads((folder / "floors.json").read_text(encoding="utf-8"))
    with ThreadPoolExecutor() as pool:
        begun = {name: pool.submit(_started, torch, folder / name) for name in floors}
    for name, floor_s in floors.items():
        yield Row(workload=name, dtype="", program=FLOOR, times_s=[floor_s])
        row = Row(workload=name, dtype="", program="eatss")
        try:
            run = begun[name].result()
            for _ in range(rounds):
                time_s, energy_j = _taken(torch, run, seconds)
                row.times_s.append(time_s)
                row.energies_j.append(energy_j)
        except Exception as error:
            row.status = f"{type(error).__name__}: {error}"[:200]
        yield row


def _taken(torch: Any, run: Callable[[], object], seconds: float) -> tuple[float, float]:
    torch.cuda.synchronize()
    begin_s, before_j = time.perf_counter(), energy_j()
    run()
    torch.cuda.synchronize()
    taken_s, taken_j = time.perf_counter() - begin_s, energy_j() - before_j
    return (taken_s, taken_j) if taken_s > LONG_S else window(torch, run, seconds)


def _started(torch: Any, folder: Path) -> Callable[[], object]:
    """Run a program once on random arrays of the sizes of the source; return calls of it."""
    from eatss.program import evaluate, load_program  # noqa: PLC0415 - as above

    program = load_program(folder)
    sizes = {one.name: one.default for one in program.parameters if one.default is not None}
    kinds = {"float": torch.float32, "double": torch.float64, "int": torch.int32}
    given: dict[str, Any] = {}
    for argument in program.entries[0].arguments:
        kind = kinds.get(argument.element_type, torch.int8)
        if argument.role == "array":
            shape = [evaluate(extent, sizes) for extent in argument.shape]
            values = 1 + torch.rand(shape, dtype=torch.float32, device="cuda")
            given[argument.name] = values.to(kind)
        elif argument.role == "scalar":
            given[argument.name] = 0.75 if kind.is_floating_point else 1
    compiled = program.compile()
    compiled(**given)
    return lambda: compiled(**given)


def report(rows: Sequence[Row], of_ppcg: Mapping[tuple[str, str], tuple[float, float]]) -> None:
    """Print what each takes, PPCG's over ours, and ours over the floor."""
    print(
        f"{'program':28} {'ms':>10} {'J':>9}   default / ours    selected / ours   ours / floor\n"
        f"{'':50} {'time':>8} {'energy':>8} {'time':>9} {'energy':>8}"
    )
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
            other = of_ppcg.get((row.workload, label))
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
        times, energies = (geometric_mean(own) for own in zip(*ratios, strict=True))
        print(f"PPCG {label} over ours, {len(ratios)} programs: {times:.2f}, {energies:.2f}")


def ppcg_rows(path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Return seconds and joules by program and variant, the mean of what was measured."""
    every = load_rows([path])
    same = {(row.kernel, row.variant): row.reason for row in every if row.status == "alias"}
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in every:
        if row.status == "ok" and row.time_ms and row.energy_j:
            own = found.setdefault((row.kernel, row.variant), [])
            own.append((1e-3 * row.time_ms, row.energy_j))
    means = {
        key: (sum(one for one, _ in own) / len(own), sum(one for _, one in own) / len(own))
        for key, own in found.items()
    }
    for (kernel, variant), other in same.items():
        if (kernel, other) in means:
            means[kernel, variant] = means[kernel, other]
    return means


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="prepare DIR SOURCES, run DIR, or FILE ROWS")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args(arguments)
    what, *rest = given.words or [str(FILE), str(ROWS)]
    if what == "prepare":
        prepare(*map(Path, rest))
    elif what == "run":
        rows = []
        for row in measured(Path(rest[0]), given.seconds, given.rounds):
            rows.append(row)
            write_rows(rows, given.output)
    else:
        report(read_rows(Path(what)), ppcg_rows(Path(rest[0])))


if __name__ == "__main__":
    main()
