"""Programs as an earlier revision generated them beside those of this one, in turns on a card.

    eatss codegen kernels/gemm.c --gpu h200 -o OLD/gemm          # with the earlier revision, each
    python benchmarks/revisions.py prepare DIR --before OLD      # where eatss is installed
    python benchmarks/revisions.py measure DIR                   # where the card is
    python benchmarks/revisions.py                               # prints what was measured

What the earlier revision hands over is the text of the program; the plan is of this one, so that
the same entries run on the same data. A variant is measured three times, those of a kernel by
turns. gemm is there with swizzled instead of padded boxes, and with explicit fused multiply-adds.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import (
    RESULTS,
    TWO_WINDOWS,
    compile_ahead,
    load,
    prepared,
    print_measurement,
    save,
)
from eatss.measurement import measure_variants
from eatss.measurement.measurement import Measurement

FILE = "revisions.json"
BEFORE, AFTER = "before", "after"
TURNS = 3
OPTIONS: dict[str, list[str]] = {
    "gemm:placed": ["--place", "A=shared"],
    "gemm:swizzle": ["--place", "A=shared", "--transform", "swizzle"],
    "gemm:fma": ["--instruction", "fma"],
}
"""Further variants, of which the options are those of ``eatss codegen``."""


def prepare_all(directory: Path, before: Path, gpu: str) -> None:
    """Generate the programs of this revision, and put the earlier texts beside them."""
    root = Path(__file__).resolve().parent
    for old in sorted(path for path in before.iterdir() if path.is_dir()):
        places = (root.parent / "kernels", root / "programs")
        (source,) = (p / f"{old.name}.c" for p in places if (p / f"{old.name}.c").is_file())
        own = {name: given for name, given in OPTIONS.items() if name.startswith(f"{old.name}:")}
        for name, given in {f"{old.name}:{AFTER}": [], **own}.items():
            folder = directory / name.replace(":", "/")
            command = ["eatss", "codegen", str(source), "--gpu", gpu, "-o", str(folder), "--force"]
            subprocess.run([*command, *given], check=True)
        copied = directory / old.name / BEFORE
        shutil.copytree(directory / old.name / AFTER, copied, dirs_exist_ok=True)
        (text,) = old.glob("*.cu")
        shutil.copy(text, copied / text.name)


def measure_all(directory: Path, results: Path) -> None:
    """Measure every kernel's variants by turns."""
    kernels = [prepared(folder) for folder in sorted(directory.iterdir())]
    compile_ahead(one for kernel in kernels for one in kernel)
    done: tuple[Measurement, ...] = ()
    for kernel in kernels:
        labelled = [(f"{one.label} {turn}", one) for turn in range(1, TURNS + 1) for one in kernel]
        turns = [replace(one, label=label) for label, one in labelled]
        found = measure_variants(turns, TWO_WINDOWS)
        done += found
        save(done, results / FILE)
        for one in found:
            print_measurement(one)


def report(results: Path) -> None:
    """Print times and energies of both, their ratio, and how far equal programs lie apart."""
    measured = load(results / FILE)
    print(
        f"{'program':20} {'before ms':>10} {'after ms':>10} {'ratio':>7} {'apart':>7} "
        f"{'before J':>9} {'after J':>9} {'ratio':>7}"
    )
    names = dict.fromkeys(one.variant.rsplit(" ", 1)[0] for one in measured)
    for name in names:
        kernel, _, choice = name.partition(":")
        if choice == BEFORE:
            continue
        times, base = (_values(measured, n, "time_s") for n in (name, f"{kernel}:{BEFORE}"))
        joules, energy = (_values(measured, n, "energy_j") for n in (name, f"{kernel}:{BEFORE}"))
        if not (times and base and joules and energy):
            print(f"{name:20} not measured")
            continue
        apart = max(max(one) / min(one) - 1 for one in (times, base))
        time_s, base_s, energy_j, base_j = (
            sum(one) / len(one) for one in (times, base, joules, energy)
        )
        print(
            f"{name:20} {base_s * 1e3:10.4f} {time_s * 1e3:10.4f} {time_s / base_s:7.3f} "
            f"{apart:7.1%} {base_j:9.4f} {energy_j:9.4f} {energy_j / base_j:7.3f}"
        )
    print("ratio: this revision over the earlier one; apart: runs of one program, at most.")


def _values(measured: tuple[Measurement, ...], name: str, field: str) -> list[float]:
    own = [one for one in measured if one.variant.rsplit(" ", 1)[0] == name]
    found = [getattr(one, field) for one in own]
    return [value for value in found if value is not None]


def main() -> None:
    """Run one of the steps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step")
    first = steps.add_parser("prepare", help="generate the programs; needs no card")
    first.add_argument("directory", type=Path)
    first.add_argument("--before", type=Path, required=True, help="folders of the earlier revision")
    first.add_argument("--gpu", default="h200")
    second = steps.add_parser("measure", help="measure them, on the machine with the card")
    second.add_argument("directory", type=Path)
    second.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare_all(options.directory, options.before, options.gpu)
    elif options.step == "measure":
        measure_all(options.directory, options.results)
    else:
        report(RESULTS)


if __name__ == "__main__":
    main()
