"""Every kernel with the selected sizes beside 32 in each dimension, as Fig. 7 of EATSS has it.

    python benchmarks/selected_and_default.py prepare DIR      # where eatss is installed
    python benchmarks/selected_and_default.py measure DIR      # where the card is
    python benchmarks/selected_and_default.py                  # prints what was measured

All variants are measured in turns, in one process, at the sizes of the source, after their results
were compared with the original and with each other. Windows are of one second, a run of
floyd-warshall, which takes seconds, apart. ``measure`` needs NumPy, SciPy, CuPy, NVML and nvcc.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import (
    command_line,
    compile_ahead,
    geometric_mean,
    load,
    prepare,
    prepared,
    print_measurement,
    save,
)
from eatss.measure import compare, measure
from eatss.measure.comparison import Comparison
from eatss.measure.measurement import Measurement
from eatss.measure.options import MeasureOptions
from eatss.report.comparison_plot import plot_comparisons
from eatss.resources import data_directory

SELECTED, DEFAULT = "selected", "32"
FILE = "selected-and-default.json"
OPTIONS = MeasureOptions(
    least_window_s=1.0, least_updates=10, warm_up_s=0.5, budget_s=9.0, timeout_s=30.0
)
LONG = "floyd-warshall"
LONG_OPTIONS = replace(OPTIONS, least_windows=1, budget_s=5.0)


def prepare_all(directory: Path, gpu: str) -> None:
    """Generate both variants of every kernel."""
    for source in sorted(data_directory("kernels").glob("*.c")):
        prepare(directory, source.stem, (SELECTED, DEFAULT), gpu)


def measure_all(directory: Path, results: Path) -> None:
    """Measure all in turns, then the long one with the selected sizes alone."""
    folders = sorted(path for path in directory.iterdir() if path.is_dir())
    variants = [v for folder in folders if folder.name != LONG for v in prepared(folder)]
    compile_ahead(variants)
    done = measure(variants, OPTIONS)
    save(done, results / FILE)
    for one in done:
        print_measurement(one)
    selected = [v for v in prepared(directory / LONG) if v.label.endswith(f":{SELECTED}")]
    done += measure(selected, LONG_OPTIONS)
    save(done, results / FILE)
    print_measurement(done[-1])


def comparisons(results: Path) -> list[Comparison]:
    """Return the comparison of every kernel of which both variants were tried."""
    programs: dict[str, list[Measurement]] = {}
    for one in load(results / FILE):
        kernel, _, choice = one.variant.partition(":")
        programs.setdefault(kernel, []).append(replace(one, variant=choice))
    return [compare(pair, DEFAULT) for pair in programs.values() if len(pair) == 2]


def report(results: Path) -> None:
    """Print the table and draw the figure beside it."""
    found = comparisons(results)
    print(
        f"{'kernel':16} {'32^d ms':>10} {'selected':>10} {'32^d J':>10} {'selected':>10} "
        f"{'32^d PPW':>9} {'selected':>9} {'speed-up':>9} {'energy':>7} {'PPW':>6}"
    )
    speedups, energies = [], []
    for comparison in found:
        base, row = comparison.row(DEFAULT), comparison.row(SELECTED)
        print(f"{comparison.program:16} {_pair(base.measurement, row.measurement)}", end="")
        if row.speedup is None or row.energy_ratio is None or row.ppw_ratio is None:
            print(f"  {base.measurement.status} / {row.measurement.status}")
            continue
        speedups.append(row.speedup.value)
        energies.append(row.energy_ratio.value)
        print(f" {row.speedup.value:9.2f} {row.energy_ratio.value:7.3f} {row.ppw_ratio.value:6.2f}")
    print(
        f"geometric mean of {len(speedups)} kernels: speed-up {geometric_mean(speedups):.2f}, "
        f"energy ratio {geometric_mean(energies):.3f}"
    )
    plot_comparisons(found, results / "selected-and-default.png")


def _pair(base: Measurement, selected: Measurement) -> str:
    columns = []
    for name, scale, form in (
        ("time_s", 1e3, "10.3f"),
        ("energy_j", 1.0, "10.4f"),
        ("gflops_per_joule", 1.0, "9.2f"),
    ):
        for one in (base, selected):
            value: float | None = getattr(one, name)
            width = form.split(".")[0]
            columns.append(f"{'-':>{width}}" if value is None else f"{value * scale:{form}}")
    return " ".join(columns)


if __name__ == "__main__":
    command_line(__doc__, prepare_all, measure_all, report)
