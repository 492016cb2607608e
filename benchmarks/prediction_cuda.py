"""How well the prediction knows generated code: predicted beside measured, program by program.

    python benchmarks/prediction_cuda.py                  # what was recorded on an H200
    python benchmarks/prediction_cuda.py ROWS.jsonl …     # rows of benchmarks/unseen.py

Every layout that was measured is predicted as ``eatss predict`` does when it is asked for.
Constants were fitted to half of the kernels; the others and the programs of
``benchmarks/programs`` judge them. It needs no card.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.judged import Judged, Pair, report
from benchmarks.prediction import FITTED
from benchmarks.recorded import RESULTS
from benchmarks.unseen import PROGRAMS
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.lower.recipe import CodeRequest
from eatss.session.session import Session

ROWS = ("kernels-cuda.jsonl", "unseen-cuda.jsonl")


def rows_of(paths: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return the measured layouts of each program."""
    programs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["time_s"]:
                programs[row["program"]].append(row)
    return dict(sorted(programs.items()))


def judged(program: str, rows: Sequence[Mapping[str, Any]]) -> Judged:
    """Predict the layouts of a program for an H200."""
    profile = load_profile("h200")
    own = data_directory("kernels") / f"{program}.c"
    half = ("fitted" if program in FITTED else "held out") if own.exists() else "unseen"
    session = Session(own if own.exists() else PROGRAMS / f"{program}.c", code=True)
    selection = session.select(profile, SelectOptions(target="cuda"))
    session = session.of(selection)
    pairs = []
    for row in rows:
        recipe = session.recipe(selection, profile, CodeRequest(**row["asked"]))
        found = session.expected(selection, recipe, profile)
        if found.time_s is None or found.energy_j is None:
            continue
        pairs.append(
            Pair(
                energy_j=row["energy_j"] or math.nan,
                time_s=row["time_s"],
                predicted_j=found.energy_j,
                predicted_s=found.time_s,
            )
        )
    return Judged(name=program, half=half, pairs=pairs, unpredicted=len(rows) - len(pairs))


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path, nargs="*")
    options = parser.parse_args()
    programs = rows_of(options.rows or [RESULTS / name for name in ROWS])
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        report(list(pool.map(judged, programs, programs.values())))


if __name__ == "__main__":
    main()
