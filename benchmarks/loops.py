"""Loops whose steps are small, beside a launch for each step and the vendor's library, by turns.

    python benchmarks/loops.py prepare DIR          # where eatss is
    python benchmarks/loops.py run DIR -o FILE      # where the card is
    python benchmarks/loops.py [FILE]               # prints the table

Each run begins with the first data: what a program writes is copied anew, which is part of its
time. Matrices that are factorised or solved have a dominant diagonal. The library is
PyTorch's call of cuSOLVER or cuBLAS; a result stands once all agree.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.before_and_after import AFTER, BEFORE
from benchmarks.library import LIBRARY
from benchmarks.recorded import RESULTS
from benchmarks.windows import (
    Row,
    Run,
    apart,
    arguments,
    by_workload,
    command_line,
    started,
    take_turns,
)

OWN = Path(__file__).resolve().parent / "programs" / "loops"
FILE = RESULTS / "loops-cut.json"
WITHIN = 1e-8

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A program; ``dominant`` matrices; the result and the call of a library that computes it."""

    name: str
    kernel: bool = False
    size: int | None = None
    dominant: str = ""
    library: tuple[str, Callable[[Any, Arrays], Any]] | None = None

    @property
    def label(self) -> str:
        """What its row is called."""
        return self.name if self.size is None else f"{self.name}-{self.size}"


def _cholesky(torch: Any, a: Arrays) -> Any:
    return torch.linalg.cholesky(a["A"])


def _lu(torch: Any, a: Arrays) -> Any:
    return torch.linalg.lu_factor(a["A"], pivot=False)[0]


def _ludcmp(torch: Any, a: Arrays) -> Any:
    factors = torch.linalg.lu_factor(a["A"], pivot=False)
    return torch.linalg.lu_solve(*factors, a["b"][:, None])[:, 0]


def _trisolv(torch: Any, a: Arrays) -> Any:
    return torch.linalg.solve_triangular(a["A"], a["c"][:, None], upper=False)[:, 0]


def _trsm(torch: Any, a: Arrays) -> Any:
    return torch.linalg.solve_triangular(a["L"], a["X"], upper=False)


def _qr(torch: Any, a: Arrays) -> Any:
    return torch.linalg.qr(a["A"])[0]


CASES = (
    Case("cholesky", kernel=True, dominant="A", library=("A", _cholesky)),
    Case("lu", kernel=True, dominant="A", library=("A", _lu)),
    Case("ludcmp", dominant="A", library=("x", _ludcmp)),
    Case("trisolv", kernel=True, dominant="A", library=("x", _trisolv)),
    Case("trsm", dominant="L", library=("X", _trsm)),
    Case("gramschmidt", kernel=True, library=("Q", _qr)),
    Case("cholesky", kernel=True, size=100, dominant="A"),
    Case("trisolv", kernel=True, size=100, dominant="A"),
    Case("adi", kernel=True, dominant="B"),
    Case("durbin", kernel=True),
    Case("floyd-warshall", kernel=True),
    Case("seidel-2d", kernel=True),
    Case("bandsolve", dominant="L"),
    Case("lcs"),
    Case("ldlt", dominant="A"),
    Case("matrixchain"),
    Case("prefix2d"),
    Case("sylvester", dominant="L U"),
    Case("thomaslines", dominant="B"),
    Case("triinverse", dominant="L"),
)


def prepare(folder: Path, _: argparse.Namespace) -> None:
    """Generate each program with and without its loops cut."""
    import eatss  # noqa: PLC0415 - not on the machine with the card

    for case in CASES:
        source = f"@{case.name}" if case.kernel else OWN / f"{case.name}.c"
        defines = {} if case.size is None else {"N": case.size}
        for label, cut in ((BEFORE, False), (AFTER, True)):
            eatss.codegen(
                source,
                gpu="h200",
                defines=defines,
                output=folder / case.label / label,
                fuse_rows=cut,
                tile_time=cut,
            )


def measured(directory: Path, given: argparse.Namespace) -> Iterator[Row]:
    """Measure what was prepared, and the library, by turns."""
    import torch  # noqa: PLC0415 - only where the card is

    for case in CASES:
        place = directory / case.label
        if place.is_dir():
            yield from _of_case(torch, case, place, given)
            torch.cuda.empty_cache()


def _of_case(torch: Any, case: Case, place: Path, asked: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    runs: list[tuple[Row, Run]] = []
    expected: Arrays = {}
    for label in (BEFORE, AFTER, LIBRARY)[: 3 if case.library else 2]:
        row = Row(workload=case.label, dtype="", program=label)
        rows.append(row)
        try:
            if label == LIBRARY:
                run, found = _library(torch, case, place / AFTER, expected)
            else:
                run, found = _started(torch, case, place / label)
            expected = expected or {name: value.clone() for name, value in found.items()}
            row.difference = max(apart(value, expected[name]) for name, value in found.items())
            if not row.difference <= WITHIN:  # NaN is no agreement
                row.status = f"results {row.difference:.1e} apart"
        except Exception as error:
            row.fails(error)
        if row.status == "ok":
            runs.append((row, run))
    take_turns(torch, runs, asked.seconds, asked.rounds)
    return rows


def _data(torch: Any, case: Case, place: Path) -> tuple[Arrays, Arrays]:
    """Return the arrays of a program, and the first values of those it writes."""
    from eatss.program import load_program  # noqa: PLC0415 - as above

    given = arguments(torch, place)
    for name in case.dominant.split():
        given[name] = _dominant(torch, case.name, given[name] + 0.5)
    if case.name == "durbin":
        given = {name: values / len(values) for name, values in given.items()}
    changed = {one.name for one in load_program(place).entries[0].arguments if one.writes}
    return given, {name: values.clone() for name, values in given.items() if name in changed}


def _dominant(torch: Any, name: str, values: Any) -> Any:
    if name in {"adi", "thomaslines"}:
        return values + 4
    if name == "bandsolve":
        values = values / values.shape[1]
        values[:, -1] += 1
        return values
    size = values.shape[0]
    return (values + values.T) / size + 4 * torch.eye(size, dtype=values.dtype, device="cuda")


def _again(torch: Any, arrays: Arrays, first: Arrays, call: Callable[[], Any]) -> Any:
    for name, values in first.items():
        arrays[name].copy_(values)
    return call()


def _started(torch: Any, case: Case, place: Path) -> tuple[Run, Arrays]:
    arrays, first = _data(torch, case, place)
    call = started(torch, place, arrays)
    run = partial(_again, torch, arrays, first, call)
    run()
    torch.cuda.synchronize()
    return run, arrays


def _library(torch: Any, case: Case, place: Path, expected: Arrays) -> tuple[Run, Arrays]:
    """Return calls of the library with the same copies, and its result in the form of ours."""
    assert case.library is not None
    name, library = case.library
    arrays, first = _data(torch, case, place)
    run = partial(_again, torch, arrays, first, partial(library, torch, arrays))
    found = run()
    torch.cuda.synchronize()
    return run, {name: _alike(torch, case.name, found, expected[name])}


def _alike(torch: Any, name: str, found: Any, expected: Any) -> Any:
    """Return a result of the library in the form of ours.

    Our lu has the ones in its upper factor, our cholesky leaves the upper part as it was, and the
    columns of an orthogonal factor may differ in sign.
    """
    if name == "lu":
        pivots = found.diagonal()
        return (
            torch.tril(found * pivots, -1) + pivots.diag() + torch.triu(found / pivots[:, None], 1)
        )
    if name == "cholesky":
        return torch.tril(found, -1) + torch.triu(expected)
    if name == "gramschmidt":
        return found * (found * expected).sum(0).sign()
    return found


def report(rows: Sequence[Row]) -> None:
    """Print what each takes, and how often as much a launch a step and the library take."""
    print(f"{'program':16} {'ours ms':>10} {'J':>8}   a launch a step   library: time, energy")
    for name, own in by_workload(rows).items():
        failed = [f"{one.program}: {one.status}" for one in own.values() if one.status != "ok"]
        print(f"{name:16} {_columns(own)} {' '.join(failed)}")


def _columns(own: Mapping[str, Row]) -> str:
    row = own[AFTER]
    if row.status != "ok":
        return ""
    others = (own[one] for one in (BEFORE, LIBRARY) if one in own and own[one].status == "ok")
    ratios = ("{:9.2f} {:7.2f}".format(*one.over(row)) for one in others)
    return f"{1e3 * row.time_s:10.4f} {row.energy_j:8.4f} " + "  ".join(ratios)


if __name__ == "__main__":
    command_line(__doc__, FILE, measured, report, prepare, seconds=0.2, rounds=2)
