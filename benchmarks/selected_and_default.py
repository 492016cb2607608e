"""Every kernel with the selected sizes beside 32 in each dimension.

    python benchmarks/selected_and_default.py prepare DIR      # where eatss is installed
    python benchmarks/selected_and_default.py measure DIR      # where the card is
    python benchmarks/selected_and_default.py                  # prints what was measured

Variants are measured in turns, in one process, at the sizes of the source, after their results were
compared with the original and with each other. Each has two windows of 0.8 seconds. ``measure``
needs NumPy, SciPy, CuPy, NVML and nvcc or NVRTC.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import (
    TWO_WINDOWS,
    command_line,
    compile_ahead,
    drifted,
    geometric_mean,
    load,
    prepare,
    prepared,
    print_measurement,
    save,
)
from eatss.base.shipped import data_directory
from eatss.measurement.api import compare, measure_variants
from eatss.measurement.measurement import Comparison, Measurement, Ratio

SELECTED, DEFAULT = "selected", "32"
FILE = "selected-and-default.json"
GROUPS = 6


def prepare_all(directory: Path, gpu: str) -> None:
    """Generate both variants of every kernel."""
    for source in sorted(data_directory("kernels").glob("*.c")):
        prepare(directory, source.stem, (SELECTED, DEFAULT), gpu)


def measure_all(directory: Path, results: Path) -> None:
    """Measure in groups of kernels; what is done is kept."""
    folders = sorted(directory.iterdir())
    compile_ahead(one for folder in folders for one in prepared(folder))
    done: tuple[Measurement, ...] = ()
    for group in range(GROUPS):
        variants = [one for folder in folders[group::GROUPS] for one in prepared(folder)]
        found = measure_variants(variants, TWO_WINDOWS)
        done += found
        save(done, results / FILE)
        for one in found:
            print_measurement(one)


def comparisons(results: Path) -> list[Comparison]:
    """Return the comparison of every kernel of which both variants were tried."""
    programs: dict[str, list[Measurement]] = {}
    for one in load(results / FILE):
        kernel, _, choice = one.variant.partition(":")
        programs.setdefault(kernel, []).append(replace(one, variant=choice))
    return [compare(pair, DEFAULT) for _, pair in sorted(programs.items()) if len(pair) == 2]


def report(results: Path) -> None:
    """Print the table."""
    found = comparisons(results)
    print(
        f"{'kernel':16} {'32^d ms':>10} {'selected':>10} {'32^d J':>10} {'selected':>10} "
        f"{'32^d PPW':>9} {'selected':>9} {'speed-up':>9} {'energy':>7} {'95 % interval':>15} "
        f"{'PPW':>6}"
    )
    ratios: dict[str, tuple[float, float]] = {}
    spoilt: set[str] = set()
    for comparison in found:
        base, row = comparison.row(DEFAULT), comparison.row(SELECTED)
        if drifted(base.measurement) or drifted(row.measurement):
            spoilt.add(comparison.program)
        name = comparison.program + " ~" * (comparison.program in spoilt)
        print(f"{name:16} {_pair(base.measurement, row.measurement)}", end="")
        if row.speedup is None or row.energy_ratio is None or row.ppw_ratio is None:
            print(f"  {base.measurement.status} / {row.measurement.status}")
            continue
        ratios[comparison.program] = row.speedup.value, row.energy_ratio.value
        print(
            f" {row.speedup.value:9.2f} {row.energy_ratio.value:7.3f} "
            f"{_interval(row.energy_ratio):>15} {row.ppw_ratio.value:6.2f}"
        )
    for which, own in (
        ("all", list(ratios.values())),
        ("those without ~", [pair for kernel, pair in ratios.items() if kernel not in spoilt]),
    ):
        print(
            f"geometric mean of {which} ({len(own)} kernels): "
            f"speed-up {geometric_mean([speed for speed, _ in own]):.2f}, "
            f"energy ratio {geometric_mean([energy for _, energy in own]):.3f}"
        )
    print("~ repeated runs spoilt the data (zeros, infinities) of one or both: unlike data.")
    unsure = sorted(
        f"{row.measurement.variant} of {comparison.program}"
        for comparison in found
        for row in comparison.rows
        if row.measurement.status == "unstable"
    )
    print(f"unstable (95 % intervals of two windows beyond ±10 %): {', '.join(unsure)}")
    for comparison in found:
        for row in comparison.rows:
            if row.measurement.status not in ("ok", "unstable"):
                one = row.measurement
                print(f"{comparison.program}, {one.variant}: {one.status}: {one.reason}")


def _interval(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return "-"
    return f"{ratio.low:.3f} to {ratio.high:.3f}"


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
