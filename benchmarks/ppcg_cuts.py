"""Compares the kernels that eatss selects for with those that a real PPCG makes.

    python benchmarks/ppcg_cuts.py /path/to/ppcg [--polybench-3.2 DIR] [--polybench-4.2 DIR]
        [--csv tests/polyhedral/ppcg_cuts.csv] [FILE.c …]

Without files it takes the kernels of this repository, ``benchmarks/programs``, and the C files of
PolyBench below the folders given: 3.2 as github.com/mkongiv/eatss ships it (with conv-2d, heat-3d
and mttkrp), 4.2.1 as github.com/MatthiasJReisinger/PolyBenchC-4.2.1. Loop bounds are constants.

For every file PPCG says which tile and block sizes it used (``--dump-sizes``), which gives the
number of its kernels and how many tile and block dimensions each has; its code says which arrays
each kernel is given; the schedule it saved says which statements each kernel runs. Kernels are
compared with eatss's one by one, in their order, in two ways:

- ``own``, eatss's own cut: the same dimensions and the same statements;
- ``read``, its cut with the schedule that PPCG saved: the same dimensions, and statements that
  access the arrays of the kernel's code;

``agrees`` means equal kernels, ``unsure`` that they differ and eatss warned, ``agrees, unsure``
that it warned in vain. ``--csv`` records the cuts of the repository's own kernels for the tests;
``--orders tests/polyhedral/ppcg_orders.csv`` only records anew the orders of independent nests.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import islpy as isl

from eatss import api
from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.base.diagnostics import EatssError
from eatss.base.shipped import data_directory
from eatss.polyhedral.kernel import Kernel

TIMEOUT_S = 300

Shapes = list[tuple[int, int]]
"""Tile and block dimensions of each kernel."""

Cut = list[tuple[int, int, tuple[str, ...]]]
"""Tile and block dimensions of each kernel, and its statements under eatss's names."""

Arrays = list[frozenset[str]]
"""The arrays that each kernel of the code is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A C file and what it is compiled with."""

    name: str
    path: Path
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The flags that PPCG takes for it."""
        return [*(f"-D{d}" for d in self.defines), *(f"-I{i}" for i in self.includes)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the two ways ended, and the kernels of PPCG and of eatss's own cut."""

    source: Source
    own: str
    read: str
    ppcg: Cut
    eatss: Cut


def own_kernels() -> list[Source]:
    """Return the kernels of this repository."""
    files = sorted(data_directory("kernels").glob("*.c"))
    return [Source(name=path.stem, path=path) for path in files]


def programs() -> list[Source]:
    """Return the programs that this folder has besides."""
    files = sorted((Path(__file__).parent / "programs").glob("*.c"))
    return [Source(name=f"programs/{path.stem}", path=path) for path in files]


def polybench(folder: Path, version: str) -> list[Source]:
    """Return the programs of a PolyBench below a folder."""
    found = []
    utilities = sorted(folder.rglob("polybench.h"))
    for path in sorted(folder.rglob("*.c")):
        if path.parent.name == "utilities" or path.stem.endswith(".orig"):
            continue
        includes = (*(header.parent for header in utilities), path.parent)
        found.append(
            Source(
                name=f"{version}/{path.stem}",
                path=path,
                defines=("POLYBENCH_USE_SCALAR_LB",),
                includes=includes,
            )
        )
    return found


NESTS = {
    "i": "for (int i = 0; i < {n}; i++)\n    v{k}[i] = 0;",
    "j": "for (int i = 0; i < {n}; i++)\n  for (int j = 0; j < {n}; j++)\n    m{k}[i][j] = 0;",
    "I": "for (i = 0; i < {n}; i++)\n    v{k}[i] = 0;",
    "J": "for (i = 0; i < {n}; i++)\n  for (j = 0; j < {n}; j++)\n    m{k}[i][j] = 0;",
    "g": "for (int i = 0; i < {n}; i++) {{\n    v{k}[i] = 1;\n    m{k}[i][0] = v{k}[i];\n}}",
}
"""Nests by a letter: of one or two loops, capital where counters are declared before; a group."""


def independent_nests(letters: str, bound: str) -> str:
    """Return a program of nests, by their letters, that have no array in common.

    ``bound`` is what all loops end before: a number, or the parameter ``n``.
    """
    arrays = ", ".join(f"float v{k}[64], float m{k}[64][64]" for k in range(len(letters)))
    nests = "\n".join(NESTS[letter].format(k=k, n=bound) for k, letter in enumerate(letters))
    return f"void f(int n, {arrays})\n{{\nint i, j;\n#pragma scop\n{nests}\n#pragma endscop\n}}\n"


def order_of(arrays: Arrays) -> list[int]:
    """Return the nests in the order of their kernels, from the arrays of each kernel."""
    return [int(next(iter(names))[1:]) for names in arrays]


def record_orders(ppcg: str, path: Path) -> None:
    """Write in which order PPCG runs independent nests, for the programs that a file lists."""
    with path.open(encoding="utf-8") as file:
        listed = [(row["nests"], row["bound"]) for row in csv.DictReader(file)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("nests", "bound", "ppcg_order"))
        for letters, bound in listed:
            with tempfile.TemporaryDirectory() as name:
                source = Path(name) / "nests.c"
                source.write_text(independent_nests(letters, bound), encoding="utf-8")
                _, arrays = run_ppcg(ppcg, Source(name=letters, path=source), Path(name))
            writer.writerow((letters, bound, " ".join(str(k) for k in order_of(arrays))))


def run_ppcg(ppcg: str, source: Source, folder: Path, *flags: str) -> tuple[Shapes, Arrays]:
    """Run PPCG in a folder; return the shapes of the kernels it made, and their arrays."""
    command = [ppcg, "--target=cuda", "--dump-sizes", *flags, *source.arguments, str(source.path)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    lines = [line for line in done.stderr.splitlines() if "kernel[" in line]
    code = (folder / f"{source.path.stem}_kernel.cu").read_text(encoding="utf-8")
    return dimensions(lines[-1]) if lines else [], signatures(code)


def signatures(code: str) -> Arrays:
    """Return the names behind the pointers that each kernel of PPCG's code is given."""
    found = dict(re.findall(r"__global__ void kernel(\d+)\((.*)\)", code))
    return [frozenset(re.findall(r"\*(\w+)", found[str(number)])) for number in range(len(found))]


def dimensions(sizes: str) -> Shapes:
    """Read what ``--dump-sizes`` prints; a kernel of one thread has no tile and no block."""
    found: dict[int, dict[str, int]] = {}

    def take(relation: isl.Map) -> None:
        what = relation.get_tuple_name(isl.dim_type.out)
        count = relation.dim(isl.dim_type.out)

        def kernel(point: isl.Point) -> None:
            number = point.get_coordinate_val(isl.dim_type.set, 0).to_python()
            found.setdefault(number, {})[what] = count

        relation.domain().foreach_point(kernel)

    isl.UnionMap.read_from_str(isl.Context(), sizes).foreach_map(take)
    return [
        (found.get(k, {}).get("tile", 0), found.get(k, {}).get("block", 0))
        for k in range(max(found, default=-1) + 1)
    ]


def kernels_of(program: AnalysedProgram) -> list[tuple[AnalysedScop, Kernel]]:
    """Return the kernels of an analysed program in launch order."""
    return [(scop, kernel) for scop in program.scops for kernel in scop.scheduled.kernels]


def cut_of(program: AnalysedProgram) -> Cut:
    """Return the kernels of an analysed program as PPCG's sizes would show them."""
    found = []
    for _, kernel in kernels_of(program):
        marks = [loop.parallel for loop in kernel.loops]
        leading = marks.index(False) if False in marks else len(marks)
        found.append((len(marks), min(3, leading), kernel.statements))
    return found


def arrays_of(program: AnalysedProgram) -> Arrays:
    """Return the arrays that the statements of each kernel access."""
    return [
        frozenset(
            access.array
            for statement in scop.scheduled.scop.statements
            if statement.name in kernel.statements
            for access in statement.accesses
        )
        for scop, kernel in kernels_of(program)
    ]


def is_of(program: AnalysedProgram, shapes: Shapes, arrays: Arrays) -> bool:
    """Tell whether kernels of eatss have these shapes, and access all of these arrays."""
    found = [(tiles, block) for tiles, block, _ in cut_of(program)]
    own = arrays_of(program)
    return found == shapes and all(a <= b for a, b in zip(arrays, own, strict=True))


def analysed(source: Source, schedule: Path | None = None) -> AnalysedProgram:
    """Analyse a file as ``eatss select`` does."""
    return api.inspect(
        source.path,
        defines=source.defines,
        include_dirs=source.includes,
        ppcg_schedule=schedule,
    )


def compare(ppcg: str, source: Source) -> Outcome:
    """Compare one file in both ways."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved = folder / "theirs.yaml"
        shapes, arrays = run_ppcg(ppcg, source, folder, f"--save-schedule={saved}")
        program = analysed(source)
        found = cut_of(program)
        expected: Cut = [(*shape, ()) for shape in shapes]
        try:
            theirs = analysed(source, saved)
            fits = is_of(theirs, shapes, arrays)
            read = "agrees" if fits else "DIFFERS"
            expected = cut_of(theirs) if fits else expected
        except EatssError as error:
            read = f"refused {error.code}"
        unsure = any(warning.code == "EATSS-P020" for warning in program.warnings)
        if found == expected:
            own = "agrees, unsure" if unsure else "agrees"
        else:
            own = "unsure" if unsure else "DIFFERS"
    return Outcome(source=source, own=own, read=read, ppcg=expected, eatss=found)


def shown(cut: Cut) -> str:
    """Return a cut: tile dimensions, a dot, block dimensions and statements of each kernel."""
    return " ".join(f"{tiles}.{block}({listed(s)})" for tiles, block, s in cut) or "-"


def listed(statements: tuple[str, ...]) -> str:
    """Return statements as ``S`` and their numbers, runs of numbers shortened."""
    numbers = [int(name.removeprefix("S")) for name in statements]
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "S" + ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("ppcg")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--polybench-3.2", dest="old", type=Path)
    parser.add_argument("--polybench-4.2", dest="new", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--orders", type=Path)
    options = parser.parse_args()
    if options.orders is not None:
        record_orders(options.ppcg, options.orders)
        return
    sources = [Source(name=path.stem, path=path) for path in options.files] or [
        *own_kernels(),
        *programs(),
    ]
    if not options.files:
        sources += polybench(options.old, "3.2") if options.old else []
        sources += polybench(options.new, "4.2") if options.new else []
    version = subprocess.run(
        [options.ppcg, "--version"], check=True, capture_output=True, text=True
    )
    print("; ".join(version.stdout.split("\n")[1:4]))
    print(f"{'file':24}{'own':16}{'read':16}PPCG's kernels: tile.block dimensions")
    outcomes = []
    for source in sources:
        outcome = compare(options.ppcg, source)
        outcomes.append(outcome)
        line = f"{source.name:24}{outcome.own:16}{outcome.read:16}"
        print(line + shown(outcome.ppcg), flush=True)
        if outcome.ppcg != outcome.eatss:
            print(f"{'':24}eatss: {shown(outcome.eatss)}")
    for way in ("own", "read"):
        counts = Counter(getattr(outcome, way) for outcome in outcomes)
        parts = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        print(f"{way}: {parts} (of {len(outcomes)})")
    if options.csv is not None:
        record(outcomes, options.csv)
    if any("DIFFERS" in (o.own, o.read) for o in outcomes):
        sys.exit(1)


def record(outcomes: list[Outcome], path: Path) -> None:
    """Write the cuts of the repository's own kernels."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "ppcg_kernel", "tile_dims", "block_dims", "statements"))
        for outcome in outcomes:
            if "/" not in outcome.source.name:
                for number, (tiles, block, names) in enumerate(outcome.ppcg):
                    row = (outcome.source.path.name, number, tiles, block, " ".join(names))
                    writer.writerow(row)


if __name__ == "__main__":
    main()
