"""Two loads of known work, metered by eatss and logged by an nvidia-smi of its own.

    python benchmarks/calibration.py measure      # where the card is
    python benchmarks/calibration.py              # prints what was measured

A copy of 2 GiB to 2 GiB and dependent FP64 multiply-adds run for ten seconds each. The energy of
``eatss.energy_meter`` is held against power times time of ``nvidia-smi``'s log of the same seconds,
which is written by another process and read afterwards. What the card had drawn before a load is
in its sensors for a second (power is an average), so the log counts from the second second on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import RESULTS
from eatss.measurement.energy_meter import energy_meter

FILE = "calibration.json"
LOG = "calibration-nvidia-smi.csv"
LOAD_S = 10.0
SETTLE_S = 1.0
_GIB = 1 << 30
_BLOCKS, _THREADS, _CHAINS, _STEPS = 132 * 8, 256, 8, 40_000

_FMA = r"""
extern "C" __global__ void chains(double *out, double a, double b, int steps)
{
    double x[8];
    for (int k = 0; k < 8; ++k) x[k] = 1e-3 * (threadIdx.x + k);
    for (int step = 0; step < steps; ++step)
        for (int k = 0; k < 8; ++k) x[k] = x[k] * a + b;
    double sum = 0;
    for (int k = 0; k < 8; ++k) sum += x[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def measure(results: Path) -> None:
    """Run both loads and record what the meters and nvidia-smi say."""
    import cupy  # noqa: PLC0415 - only where the card is

    source = cupy.random.default_rng(0).random(2 * _GIB // 8, dtype=cupy.float64)
    target = cupy.empty_like(source)
    out = cupy.empty(_BLOCKS * _THREADS)
    chains = cupy.RawKernel(_FMA, "chains")
    loads: dict[str, tuple[Callable[[], Any], float, str]] = {
        "copy": (lambda: cupy.copyto(target, source), 4.0 * _GIB, "bytes"),
        "fma": (
            lambda: chains((_BLOCKS,), (_THREADS,), (out, 0.999, 0.001, _STEPS)),
            2.0 * _BLOCKS * _THREADS * _CHAINS * _STEPS,
            "operations",
        ),
    }
    found = []
    for name, (launch, work, unit) in loads.items():
        found.append(_measured(cupy, name, launch, work, unit, results))
        print(found[-1], flush=True)
    (results / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _measured(
    cupy: Any, name: str, launch: Callable[[], Any], work: float, unit: str, results: Path
) -> dict[str, Any]:
    launch()
    cupy.cuda.runtime.deviceSynchronize()
    begin = time.perf_counter()
    launch()
    cupy.cuda.runtime.deviceSynchronize()
    count = int(LOAD_S / (time.perf_counter() - begin)) + 1
    log = results / f"{name}-{LOG}"
    command = ["nvidia-smi", "--query-gpu=timestamp,power.draw", "--format=csv,noheader,nounits"]
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen([*command, "-lms", "100"], stdout=file) as smi,
    ):
        time.sleep(1.0)
        with energy_meter() as meter:
            first = time.time()
            for _ in range(count):
                launch()
            cupy.cuda.runtime.deviceSynchronize()
            last = time.time()
        time.sleep(0.3)
        smi.terminate()
    mean, samples = _mean_power(log, first + SETTLE_S, last)
    result = meter.result
    return {
        "load": name,
        "rate": work * count / (last - first),
        "unit": f"{unit} a second",
        "time_s": last - first,
        "meter": result.cards[0].meter,
        "energy_j": result.energy_j,
        "power_w": result.power_w,
        "smi_power_w": mean,
        "smi_samples": samples,
        "smi_energy_j": mean * (last - first),
    }


def _mean_power(log: Path, begin: float, end: float) -> tuple[float, int]:
    """Return the mean of the logged watts between two times, and how many they are."""
    values = []
    for line in log.read_text(encoding="utf-8").splitlines():
        stamp, _, watts = line.partition(", ")
        moment, _, fraction = stamp.partition(".")
        seconds = time.mktime(time.strptime(moment, "%Y/%m/%d %H:%M:%S")) + float(f"0.{fraction}")
        if begin <= seconds <= end:
            values.append(float(watts))
    return sum(values) / len(values), len(values)


def report(results: Path) -> None:
    """Print the loads and how far the two ways are apart."""
    print(
        f"{'load':6} {'rate':>24} {'s':>6} {'meter J':>9} {'nvidia-smi J':>12} {'apart':>7}  meter"
    )
    for row in json.loads((results / FILE).read_text(encoding="utf-8")):
        apart = row["energy_j"] / row["smi_energy_j"] - 1
        rate = f"{row['rate'] / 1e12:.2f} T{row['unit']}"
        print(
            f"{row['load']:6} {rate:>24} {row['time_s']:6.2f} {row['energy_j']:9.1f} "
            f"{row['smi_energy_j']:12.1f} {apart:+7.2%}  {row['meter']}"
        )


def main() -> None:
    """Run a step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", nargs="?", choices=("measure", "report"), default="report")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    (measure if options.step == "measure" else report)(options.results)


if __name__ == "__main__":
    main()
