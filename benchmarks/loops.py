"""Loops whose steps are small, beside a launch for each step and the vendor's library, by turns.

    python benchmarks/loops.py prepare DIR          # where eatss is
    python benchmarks/loops.py run DIR -o FILE      # where the card is
    python benchmarks/loops.py [FILE]               # prints the table

Each run begins with the first data: what a program reads and writes is copied anew, which is part
of its time. Matrices that are factorised or solved have a dominant diagonal. The library is
PyTorch's call of cuSOLVER or cuBLAS; a result stands once all agree.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.before_and_after import AFTER, BEFORE
from benchmarks.library import LIBRARY, Row, read_rows, write_rows
from benchmarks.recorded import RESULTS
from benchmarks.windows import window

OWN = Path(__file__).resolve().parent / "programs" / "loops"
FILE = RESULTS / "loops-cut.json"
A_LAUNCH_A_STEP = ("--no-fuse-rows", "--no-tile-time")
WITHIN = 1e-8

Arrays = Mapping[str, Any]


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


def prepare(folder: Path) -> None:
    """Generate each program with and without its loops cut."""
    for case in CASES:
        source = f"@{case.name}" if case.kernel else str(OWN / f"{case.name}.c")
        size = () if case.size is None else ("-D", f"N={case.size}")
        for label, options in ((BEFORE, A_LAUNCH_A_STEP), (AFTER, ())):
            target = str(folder / case.label / label)
            words = ["eatss", "codegen", source, *size, "--gpu", "h200", "-o", target, *options]
            subprocess.run(words, check=True)


def measured(folder: Path, seconds: float, rounds: int) -> Iterator[Row]:
    """Measure what was prepared, and the library, by turns."""
    import torch  # noqa: PLC0415 - only where the card is

    cases = [case for case in CASES if (folder / case.label).is_dir()]
    with ThreadPoolExecutor() as pool:
        builds = [pool.submit(_built, folder / case.label) for case in cases]
        for case, build in zip(cases, builds, strict=True):
            build.exception()  # raised again where the program starts
            yield from _of_case(torch, case, folder / case.label, seconds, rounds)
            torch.cuda.empty_cache()


def _built(place: Path) -> None:
    from eatss.program import load_program  # noqa: PLC0415 - as above

    for label in place.iterdir():
        load_program(label).compile()


def _of_case(torch: Any, case: Case, place: Path, seconds: float, rounds: int) -> list[Row]:
    ready: list[tuple[Row, Callable[[], object]]] = []
    failed: list[Row] = []
    expected: Arrays = {}
    for label in (BEFORE, AFTER, LIBRARY)[: 3 if case.library else 2]:
        row = Row(workload=case.label, dtype="", program=label)
        try:
            if label == LIBRARY:
                run, found = _library(torch, case, place / AFTER, expected)
            else:
                run, found = _started(torch, case, place / label)
            expected = expected or {name: value.clone() for name, value in found.items()}
            row.difference = max(_apart(torch, expected[name], found[name]) for name in found)
            if not row.difference <= WITHIN:  # NaN is no agreement
                row.status = f"results {row.difference:.1e} apart"
        except Exception as error:
            row.status = f"{type(error).__name__}: {error}"[:200]
        if row.status == "ok":
            ready.append((row, run))
        else:
            failed.append(row)
    for _ in range(rounds):
        for row, run in ready:
            time_s, energy_j = window(torch, run, seconds)
            row.times_s.append(time_s)
            row.energies_j.append(energy_j)
    return [row for row, _ in ready] + failed


def _apart(torch: Any, expected: Any, found: Any) -> float:
    norm = torch.linalg.vector_norm
    return float(norm((found - expected).double()) / max(norm(expected.double()), 1e-300))


def _data(torch: Any, case: Case, place: Path) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return a program, its arrays, and the first values of those it reads and writes."""
    from eatss.program import evaluate, load_program  # noqa: PLC0415 - as above

    program = load_program(place)
    sizes = {one.name: one.default for one in program.parameters if one.default is not None}
    drawn = torch.Generator("cuda")
    drawn.manual_seed(0)
    arrays: dict[str, Any] = {}
    for argument in program.entries[0].arguments:
        if argument.role != "array":
            continue
        shape = [evaluate(extent, sizes) for extent in argument.shape]
        values = torch.rand(shape, dtype=torch.float64, device="cuda", generator=drawn)
        if argument.name in case.dominant.split():
            values = _dominant(torch, case.name, values)
        elif argument.element_type == "int":
            values = (4 * values).int()
        elif case.name == "durbin":
            values /= shape[0]
        arrays[argument.name] = values
    again = {
        one.name: arrays[one.name].clone()
        for one in program.entries[0].arguments
        if one.role == "array" and one.reads and one.writes
    }
    return program, arrays, again


def _dominant(torch: Any, name: str, values: Any) -> Any:
    if name in {"adi", "thomaslines"}:
        return values + 4
    if name == "bandsolve":
        values = values / values.shape[1]
        values[:, -1] += 1
        return values
    size = values.shape[0]
    return (values + values.T) / size + 4 * torch.eye(size, dtype=torch.float64, device="cuda")


def _started(torch: Any, case: Case, place: Path) -> tuple[Callable[[], object], Arrays]:
    program, arrays, again = _data(torch, case, place)
    compiled = program.compile()

    def run() -> None:
        for name, values in again.items():
            arrays[name].copy_(values)
        compiled(**arrays)

    run()
    torch.cuda.synchronize()
    return run, arrays


def _library(
    torch: Any, case: Case, place: Path, expected: Arrays
) -> tuple[Callable[[], object], Arrays]:
    """Return calls of the library with the same copies, and its result in place of ours."""
    assert case.library is not None
    name, call = case.library
    _, arrays, again = _data(torch, case, place)

    def run() -> Any:
        for other, values in again.items():
            arrays[other].copy_(values)
        return call(torch, arrays)

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
    for name in dict.fromkeys(row.workload for row in rows):
        own = {row.program: row for row in rows if row.workload == name}
        failed = [f"{one.program}: {one.status}" for one in own.values() if one.status != "ok"]
        print(f"{name:16} {_columns(own, AFTER)} {' '.join(failed)}")


def _columns(own: Mapping[str, Row], label: str) -> str:
    row = own[label]
    if row.status != "ok":
        return ""
    ratios = (
        f"{one.time_s / row.time_s:9.2f} {one.energy_j / row.energy_j:7.2f}"
        for other in (BEFORE, LIBRARY)
        if (one := own.get(other)) and one.status == "ok"
    )
    return f"{1e3 * row.time_s:10.4f} {row.energy_j:8.4f} " + "  ".join(ratios)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="prepare DIR, run DIR, or a file of results")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args(arguments)
    what, *rest = given.words or [""]
    if what == "prepare":
        prepare(Path(rest[0]))
    elif what == "run":
        rows: list[Row] = []
        for row in measured(Path(rest[0]), given.seconds, given.rounds):
            rows.append(row)
            write_rows(rows, given.output)
        report(rows)
    else:
        report(read_rows(Path(what) if what else FILE))


if __name__ == "__main__":
    main()
