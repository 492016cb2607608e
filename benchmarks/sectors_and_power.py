"""How L2 sectors read and average power go together over many tile sizes of gemm and 2mm.

    python benchmarks/sectors_and_power.py prepare DIR      # where eatss is installed
    python benchmarks/sectors_and_power.py measure DIR      # where the card is
    python benchmarks/sectors_and_power.py                  # prints what was measured

EATSS found a Pearson correlation of 0.75 for gemm and 0.85 for 2mm. Power is the average over one
window; the sectors are ``lts__t_sectors_srcunit_tex_op_read.sum`` of one run, by Nsight Compute.
Both are of the same compiled programs. Results are not compared with the original here: every
program was generated with all checks and is verified elsewhere.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import (
    command_line,
    compile_ahead,
    load,
    prepare,
    prepared,
    print_measurement,
    save,
)
from eatss.measurement.api import measure_variants
from eatss.measurement.counters import find_ncu
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import load_program

KERNELS = ("gemm", "2mm")
FILE = "sectors-and-power.json"
SECTORS_FILE = "sectors.json"
SECTORS = "lts__t_sectors_srcunit_tex_op_read.sum"
OPTIONS = MeasureOptions(
    least_window_s=0.8, least_updates=6, least_windows=1, budget_s=0.5, warm_up_s=0.0,
    check=False, timeout_s=20.0, restoring="between windows",
)  # fmt: skip
CAP = "software power cap"
_RUN_ALL = "run-all"


def choices() -> list[str]:
    """Return 30 choices of tile sizes."""
    sizes = product((8, 16, 32, 64), (32, 64, 128, 256), (8, 32))
    return [f"{i},{j},{k}" for i, j, k in sizes][:30]


def prepare_all(directory: Path, gpu: str) -> None:
    """Generate all variants."""
    for kernel in KERNELS:
        prepare(directory, kernel, choices(), gpu)


def measure_all(directory: Path, results: Path) -> None:
    """Measure power of every variant, then count the sectors of one run of each."""
    variants = [one for kernel in KERNELS for one in prepared(directory / kernel)]
    compile_ahead(variants)
    done = measure_variants(variants, OPTIONS)
    save(done, results / FILE)
    for one in done:
        print_measurement(one)
    right = {one.variant for one in done if one.power_w is not None}
    counted = count_sectors([one for one in variants if one.label in right])
    (results / SECTORS_FILE).write_text(json.dumps(counted, indent=1) + "\n", encoding="utf-8")


def count_sectors(variants: Sequence[Variant]) -> dict[str, int]:
    """Return the sectors of one run of each variant, all run by one process under ncu."""
    folders = [str(one.directory) for one in variants]
    command = [find_ncu(), "--clock-control", "none", "--target-processes", "all"]
    command += ["--profile-from-start", "off", "--kernel-name", "regex:^kernel_"]
    command += ["--csv", "--page", "raw", "--print-units", "base", "--metrics", SECTORS]
    command += [sys.executable, str(Path(__file__).resolve()), _RUN_ALL, *folders]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = list(csv.reader(line for line in said.splitlines() if line.startswith('"')))
    column = rows[0].index(SECTORS)
    values = [int(float(row[column].replace(",", ""))) for row in rows[2:]]  # 1 holds units
    counted, at = {}, 0
    for one in variants:
        assert one.directory is not None
        launches = len(load_program(one.directory).kernels)  # each is launched once a run
        counted[one.label] = sum(values[at : at + launches])
        at += launches
    if at != len(values):
        sys.exit(f"ncu counted {len(values)} launches, not {at}")
    return counted


def run_all(folders: Sequence[str]) -> None:
    """Run programs once each, in order, while a profiler looks."""
    from cupyx.profiler import profile  # noqa: PLC0415 - only where the card is

    from eatss.measurement.cupy_card import CupyCard  # noqa: PLC0415

    card = CupyCard()
    for folder in map(Path, folders):
        workload = card.load(load_program(folder), folder, {}, 0)
        workload.reset()
        card.wait()
        with profile():
            workload.timed(1)
            card.wait()
        workload.close()


def points(results: Path, measurements: Sequence[Measurement], kernel: str) -> list[list[float]]:
    """Return sectors and watts of every variant of a kernel that has both."""
    sectors = json.loads((results / SECTORS_FILE).read_text(encoding="utf-8"))
    return [
        [float(sectors[one.variant]), one.power_w]
        for one in measurements
        if one.program == kernel and one.power_w is not None and one.variant in sectors
    ]


def report(results: Path, plots: Path | None = None) -> None:
    """Print the correlations and draw the points, beside the results or in ``plots``."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only where results are looked at

    measurements = load(results / FILE)
    figure = Figure(figsize=(9, 4), layout="constrained")
    print("Pearson correlation of L2 sectors read in a run with")
    print(
        f"{'kernel':8} {'variants':>8} {'power':>6} {'paper':>6} {'power, not capped':>18} "
        f"{'energy':>7} {'time':>6}"
    )
    watts: list[float] = []
    for place, (kernel, paper) in enumerate(zip(KERNELS, (0.75, 0.85), strict=True), start=1):
        values = np.array(points(results, measurements, kernel))
        own = [one for one in measurements if one.program == kernel and one.power_w is not None]
        capped = np.array([CAP in _throttle(one) for one in own])
        watts += list(values[capped, 1])
        sectors, free = values[:, 0], values[~capped]
        print(
            f"{kernel:8} {len(values):8} {_pearson(sectors, values[:, 1]):6.2f} {paper:6.2f} "
            f"{_pearson(free[:, 0], free[:, 1]):7.2f} of {len(free):2} variants "
            f"{_pearson(sectors, np.array([one.energy_j for one in own], dtype=float)):6.2f} "
            f"{_pearson(sectors, np.array([one.time_s for one in own], dtype=float)):6.2f}"
        )
        axes = figure.add_subplot(1, 2, place)
        axes.scatter(values[:, 0], values[:, 1], s=18)
        axes.set_title(f"{kernel}: {_pearson(sectors, values[:, 1]):.2f}, {len(values)} variants")
        axes.set_xlabel("L2 sectors read by L1 in a run")
        axes.set_ylabel("average power, W")
    print(
        "capped: held back by the power limit of 700 W in a window; these drew "
        f"{min(watts):.0f} to {max(watts):.0f} W."
    )
    figure.savefig((plots or results) / "sectors-and-power.png", dpi=120)


def _pearson(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def _throttle(one: Measurement) -> tuple[str, ...]:
    load_state = one.windows[0].during
    return () if load_state is None else load_state.throttle or ()


if __name__ == "__main__" and sys.argv[1:2] == [_RUN_ALL]:
    run_all(sys.argv[2:])
elif __name__ == "__main__":
    command_line(__doc__, prepare_all, measure_all, report)
