"""Compares the kernels that eatss selects for with those that a real PPCG makes.

    python benchmarks/ppcg_cuts.py /path/to/ppcg [--polybench-3.2 DIR] [--polybench-4.2 DIR]
        [--csv tests/polyhedral/ppcg_cuts.csv] [FILE.c …]

Without files it takes the kernels of this repository, and the C files of PolyBench below the
folders given: 3.2 as github.com/mkongiv/eatss ships it (with conv-2d, heat-3d and mttkrp), 4.2.1
as github.com/MatthiasJReisinger/PolyBenchC-4.2.1. Loop bounds are constants.

For every file PPCG says which tile and block sizes it used (``--dump-sizes``), which gives the
number of its kernels, their order, and how many tile and block dimensions each has. They are
compared with eatss's in three ways: ``own``, its own cut; ``read``, with the schedule that PPCG
saved; ``written``, with the schedule of its own cut loaded by PPCG. ``agrees`` means equal
kernels, ``unsure`` that they differ and eatss warned, ``agrees, unsure`` that it warned in vain.
``--csv`` records the cuts of the repository's own kernels for the tests.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import islpy as isl

from eatss import api
from eatss.diagnostics import EatssError
from eatss.pipeline import AnalysedProgram, ppcg_schedule_of
from eatss.resources import data_directory

TIMEOUT_S = 300

Cut = list[tuple[int, int]]
"""Tile and block dimensions of each kernel."""


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
    """How the three ways ended, and the kernels of PPCG and of eatss's own cut."""

    source: Source
    own: str
    read: str
    written: str
    ppcg: Cut
    eatss: Cut


def own_kernels() -> list[Source]:
    """Return the kernels of this repository."""
    files = sorted(data_directory("kernels").glob("*.c"))
    return [Source(name=path.stem, path=path) for path in files]


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


def run_ppcg(ppcg: str, source: Source, folder: Path, *flags: str) -> Cut:
    """Run PPCG in a folder; return the kernels it made."""
    command = [ppcg, "--target=cuda", "--dump-sizes", *flags, *source.arguments, str(source.path)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    lines = [line for line in done.stderr.splitlines() if "kernel[" in line]
    return dimensions(lines[-1]) if lines else []


def dimensions(sizes: str) -> Cut:
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


def cut_of(program: AnalysedProgram) -> Cut:
    """Return the kernels of an analysed program as PPCG's sizes would show them."""
    found = []
    for scop in program.scops:
        for kernel in scop.scheduled.kernels:
            marks = [loop.parallel for loop in kernel.loops]
            leading = marks.index(False) if False in marks else len(marks)
            found.append((len(marks), min(3, leading)))
    return found


def analysed(source: Source, schedule: Path | None = None) -> AnalysedProgram:
    """Analyse a file as ``eatss select`` does."""
    return api.inspect(
        source.path,
        defines=source.defines,
        include_dirs=source.includes,
        ppcg_schedule=schedule,
    )


def compare(ppcg: str, source: Source) -> Outcome:
    """Compare one file in all three ways."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved, ours = folder / "theirs.yaml", folder / "ours.yaml"
        expected = run_ppcg(ppcg, source, folder, f"--save-schedule={saved}")
        program = analysed(source)
        found = cut_of(program)
        unsure = any(warning.code == "EATSS-P020" for warning in program.warnings)
        if found == expected:
            own = "agrees, unsure" if unsure else "agrees"
        else:
            own = "unsure" if unsure else "DIFFERS"
        try:
            read = "agrees" if cut_of(analysed(source, saved)) == expected else "DIFFERS"
        except EatssError as error:
            read = f"refused {error.code}"
        try:
            ours.write_text(ppcg_schedule_of(program), encoding="utf-8")
            back = run_ppcg(ppcg, source, folder, f"--load-schedule={ours}")
            written = "agrees" if back == found else "DIFFERS"
        except EatssError as error:
            written = f"refused {error.code}"
    return Outcome(source=source, own=own, read=read, written=written, ppcg=expected, eatss=found)


def shown(cut: Cut) -> str:
    """Return a cut in one word: tile dimensions, a dot, block dimensions of each kernel."""
    return " ".join(f"{tiles}.{block}" for tiles, block in cut) or "-"


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("ppcg")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--polybench-3.2", dest="old", type=Path)
    parser.add_argument("--polybench-4.2", dest="new", type=Path)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    sources = [Source(name=path.stem, path=path) for path in options.files] or own_kernels()
    if not options.files:
        sources += polybench(options.old, "3.2") if options.old else []
        sources += polybench(options.new, "4.2") if options.new else []
    version = subprocess.run(
        [options.ppcg, "--version"], check=True, capture_output=True, text=True
    )
    print("; ".join(version.stdout.split("\n")[1:4]))
    print(f"{'file':24}{'own':16}{'read':16}{'written':16}PPCG's kernels: tile.block dimensions")
    outcomes = []
    for source in sources:
        outcome = compare(options.ppcg, source)
        outcomes.append(outcome)
        line = f"{source.name:24}{outcome.own:16}{outcome.read:16}{outcome.written:16}"
        print(line + shown(outcome.ppcg), flush=True)
        if outcome.ppcg != outcome.eatss:
            print(f"{'':24}eatss: {shown(outcome.eatss)}")
    for way in ("own", "read", "written"):
        counts = Counter(getattr(outcome, way) for outcome in outcomes)
        parts = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        print(f"{way}: {parts} (of {len(outcomes)})")
    if options.csv is not None:
        record(outcomes, options.csv)
    if any("DIFFERS" in (o.own, o.read, o.written) for o in outcomes):
        sys.exit(1)


def record(outcomes: list[Outcome], path: Path) -> None:
    """Write the cuts of the repository's own kernels."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "ppcg_kernel", "tile_dims", "block_dims"))
        for outcome in outcomes:
            if "/" not in outcome.source.name:
                for number, (tiles, block) in enumerate(outcome.ppcg):
                    writer.writerow((outcome.source.path.name, number, tiles, block))


if __name__ == "__main__":
    main()
