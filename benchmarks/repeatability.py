"""Ten measurements of gemm and of jacobi-2d: how much do time and energy differ?

    python benchmarks/repeatability.py prepare DIR      # where eatss is installed
    python benchmarks/repeatability.py measure DIR      # where the card is
    python benchmarks/repeatability.py                  # prints what was measured

Twenty measurements in turns within one call, each of one window of 2.3 seconds after half a second
of load.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import command_line, load, prepare, prepared, print_measurement, save
from eatss.measurement.api import measure_variants
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions

KERNELS = ("gemm", "jacobi-2d")
REPETITIONS = 10
FILE = "repeatability.json"
OPTIONS = MeasureOptions(
    least_window_s=2.3,
    least_windows=1,
    budget_s=1.0,
    warm_up_s=0.0,
    timeout_s=30.0,
    restoring="between windows",
)


def prepare_all(directory: Path, gpu: str) -> None:
    """Generate both programs with selected sizes."""
    for kernel in KERNELS:
        prepare(directory, kernel, ("selected",), gpu)


def measure_all(directory: Path, results: Path) -> None:
    """Measure both programs ten times, in turns."""
    once = [one for kernel in KERNELS for one in prepared(directory / kernel)]
    variants = [
        replace(one, label=f"{one.label} {number}")
        for number in range(1, REPETITIONS + 1)
        for one in once
    ]
    done = measure_variants(variants, OPTIONS)
    save(done, results / FILE)
    for one in done:
        print_measurement(one)


def report(results: Path) -> None:
    """Print coefficients of variation, and how the meters agree."""
    print(
        f"{'kernel':10} {'runs':>4} {'time ms':>9} {'CV':>7} {'energy J':>9} {'CV':>7} "
        f"{'counter/power':>14} {'smallest':>9} {'largest':>9}"
    )
    measured = load(results / FILE)
    for kernel in KERNELS:
        own = [m for m in measured if m.program == kernel and m.energy_j is not None]
        times = [m.time_s * 1e3 for m in own if m.time_s is not None]
        energies = [m.energy_j for m in own if m.energy_j is not None]
        ratios = [ratio for m in own for ratio in _agreements(m)]
        print(
            f"{kernel:10} {len(own):4} {statistics.mean(times):9.4f} {_cv(times):6.2%} "
            f"{statistics.mean(energies):9.4f} {_cv(energies):6.2%} "
            f"{statistics.mean(ratios):14.4f} {min(ratios):9.4f} {max(ratios):9.4f}"
        )


def _agreements(measurement: Measurement) -> list[float]:
    """Return the power by the first meter over that by the second, a value a window."""
    return [
        window.readings[0].power_w / window.readings[1].power_w
        for window in measurement.windows
        if len(window.readings) > 1
    ]


def _cv(values: Sequence[float]) -> float:
    return statistics.stdev(values) / statistics.mean(values)


if __name__ == "__main__":
    command_line(__doc__, prepare_all, measure_all, report)
