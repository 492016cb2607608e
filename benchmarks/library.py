"""Our time and energy beside those of the vendor's library, by turns in one process.

    python benchmarks/library.py prepare DIR [--only gemm,syrk]                # where eatss is
    python benchmarks/library.py run DIR -o FILE [--seconds 1.2] [--rounds 3]  # where the card is
    python benchmarks/library.py [FILE]                                        # prints the table

What a user would call instead is PyTorch: cuBLAS and cuDNN, TF32 off. Each round runs every program
of a workload for a window, in turn, on the same arrays; a result stands once the program's own
results agree with the library's. Energy is that of the card's counter.

``prepare --only half-products --dtypes half`` makes programs that multiply halves and add floats.

``--tf32`` is for programs of floats that round factors to TF32: the library does so, too. What it
takes in floats, TF32 off, is a row of its own (``library in floats``), and all results are held
against those. ``prepare --tf32`` makes such programs, and split ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library_workloads import Workload, half_products, unseen, workloads
from benchmarks.recorded import RESULTS, geometric_means
from benchmarks.windows import (
    Row,
    Run,
    apart,
    arguments,
    command_line,
    folders,
    started,
    take_turns,
)

FILE = RESULTS.parent / "h100" / "library.json"
LIBRARY = "library"
IN_FLOATS = "library in floats"
SELECTED = "selected"

Arrays = dict[str, Any]

ALLOWED = {"double": 1e-9, "float": 1e-3, "half": 1e-3}
"""Differences of two results, as a share of the largest value."""

ALLOWED_TF32 = 2.0**-10
"""The same with TF32: a product is off by so much of itself where both factors are rounded."""

GROUPS = {"": workloads, "half-products": half_products, "unseen": unseen}


def prepare(folder: Path, given: argparse.Namespace) -> None:
    """Generate every program of every workload, for an H200."""
    import eatss  # noqa: PLC0415 - not on the machine with the card

    known = {name: one for group in GROUPS.values() for name, one in group().items()}
    only = GROUPS[given.only]() if given.only in GROUPS else given.only.split(",")
    wanted: dict[str, dict[str, Any]] = {SELECTED: {}}
    if given.tf32:
        wanted = {"tf32": {"tf32": "on"}, "split": {"tf32": "split"}}
    for name in only:
        for dtype in ["float"] if given.tf32 else given.dtypes.split(","):
            kind = "_Float16" if dtype == "half" else dtype
            defines: dict[str, str | int] = {"DATA_TYPE": kind, **known[name].sizes}
            for label, options in wanted.items():
                place = folder / f"{name}-{dtype}" / label
                try:
                    eatss.codegen(
                        known[name].source, gpu="h200", defines=defines, output=place, **options
                    )
                except eatss.EatssError as error:
                    print(f"{name} {dtype} {label}: {error.diagnostics[0].message}")
            print(f"{name} {dtype}: {len(wanted)} programs")


def measured(directory: Path, given: argparse.Namespace) -> Iterator[Row]:
    """Measure what was prepared, workload by workload."""
    import torch  # noqa: PLC0415 - only where the card is

    known = {name: one for group in GROUPS.values() for name, one in group().items()}
    for place in folders(directory):
        name, _, dtype = place.name.rpartition("-")
        yield from _of_workload(torch, known[name], name, dtype, place, given)


def _allow_tf32(torch: Any, allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _of_workload(
    torch: Any, of: Workload, name: str, dtype: str, place: Path, given: argparse.Namespace
) -> list[Row]:
    programs = folders(place)
    first = arguments(torch, programs[0], of.scalars, of.scales)
    _allow_tf32(torch, False)
    expected = _copied(torch, first)
    of.call(torch, **expected)
    _allow_tf32(torch, given.tf32)
    wanted = _copied(torch, first)
    of.call(torch, **wanted)

    def by_library() -> None:
        _restored(of, first, wanted)
        of.call(torch, **wanted)

    def in_floats() -> None:
        _allow_tf32(torch, False)
        by_library()
        _allow_tf32(torch, True)

    library = Row(workload=name, dtype=dtype, program=LIBRARY)
    library.difference = apart(wanted[of.result], expected[of.result])
    rows, runs = [library], [(library, by_library)]
    if given.tf32:
        rows.append(Row(workload=name, dtype=dtype, program=IN_FLOATS))
        runs.append((rows[-1], in_floats))
    for one in programs:
        rows.append(Row(workload=name, dtype=dtype, program=one.name))
        fresh = _copied(torch, first)
        try:
            run = started(torch, one, fresh)
        except Exception as error:
            rows[-1].fails(error)
            continue
        rows[-1].difference = apart(fresh[of.result], expected[of.result])
        if rows[-1].difference <= (ALLOWED_TF32 if given.tf32 else ALLOWED[dtype]):
            runs.append((rows[-1], _restoring(of, first, fresh, run)))
        else:  # NaN is no agreement
            rows[-1].status = "wrong"
    take_turns(torch, runs, given.seconds, given.rounds)
    return rows


def _copied(torch: Any, given: Arrays) -> Arrays:
    return {k: one.clone() if isinstance(one, torch.Tensor) else one for k, one in given.items()}


def _restoring(of: Workload, first: Arrays, given: Arrays, run: Run) -> Any:
    def restored() -> None:
        _restored(of, first, given)
        run()

    return restored


def _restored(of: Workload, first: Arrays, given: Arrays) -> None:
    for name in of.restored:
        given[name].copy_(first[name])


def report(rows: Sequence[Row]) -> None:
    """Print ratios: of the library to ours, above 1 is better than it."""
    print(
        f"{'workload':24} {'program':22} {'ms':>9} {'J':>9} {'W':>5} "
        f"{'library ms':>10} {'library J':>9}  {'time':>5} {'energy':>6}"
    )
    selected: dict[tuple[str, str], tuple[float, float]] = {}
    libraries = {(row.workload, row.dtype): row for row in rows if row.program == LIBRARY}
    for row in rows:
        if row.program == LIBRARY:
            continue
        head = f"{row.workload + ' ' + row.dtype:24} {row.program:22}"
        if row.status != "ok":
            print(f"{head} {row.status}")
            continue
        library = libraries[row.workload, row.dtype]
        time_ratio, energy_ratio = library.over(row)
        print(
            f"{head} {1e3 * row.time_s:9.4f} {row.energy_j:9.4f} "
            f"{row.energy_j / row.time_s:5.0f} {1e3 * library.time_s:10.4f} "
            f"{library.energy_j:9.4f}  {time_ratio:5.2f} {energy_ratio:6.2f}"
        )
        if row.program == SELECTED:
            selected[row.workload, row.dtype] = time_ratio, energy_ratio
    print("\nthe library over ours in the geometric mean, sizes as selected:")
    for group, known in GROUPS.items():
        for dtype in ALLOWED:
            own = [
                found for (name, of), found in selected.items() if of == dtype and name in known()
            ]
            if own:
                time, energy = geometric_means(own)
                what = f"{group} {dtype}, {len(own)} programs".strip()
                print(f"  {what}: energy {energy:.3f}, time {time:.3f}")


def options(parser: argparse.ArgumentParser) -> None:
    """Add further options."""
    parser.add_argument("--only", default="", help="workloads, half-products or unseen")
    parser.add_argument("--dtypes", default="double,float")
    parser.add_argument("--tf32", action="store_true", help="floats, factors rounded to TF32")


if __name__ == "__main__":
    command_line(__doc__, FILE, measured, report, prepare, seconds=1.2, rounds=3, options=options)
