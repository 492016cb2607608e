"""Our time, energy and PPW on an H200 beside PPCG's default, fastest and least-energy variants.

    python benchmarks/h200.py [RESULTS]

Reads what ``selected_and_default.py`` measured; PPCG's numbers are ``baselines/h200-ppcg.csv``:
PPCG 0.09 on the same kind of card, PolyBench 3.2, whole programs with resident data, one window of
1.2 s. PPW of both is of the operations that eatss counts in the source.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import RESULTS, drifted, geometric_mean, load
from benchmarks.repeatability import FILE as REPEATED
from benchmarks.selected_and_default import FILE, SELECTED
from eatss.measurement.measurement import Measurement

BASELINE = Path(__file__).resolve().parent / "baselines" / "h200-ppcg.csv"
_OTHER_NAMES = {"jacobi-1d-imper": "jacobi-1d", "jacobi-2d-imper": "jacobi-2d"}
_LEAST_RATIO = 1.5
_LEAST_GEMM_GFLOPS = 15000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ppcg:
    """PPCG's results of a kernel, seconds and joules; ``None`` where there is none.

    ``same_sizes`` is false where the table does not tell the sizes ("as published"). Where no
    ``variants`` were tried the default is the fastest and the least.
    """

    kernel: str
    default_time_s: float | None
    default_energy_j: float | None
    fastest_time_s: float | None
    least_energy_j: float | None
    same_sizes: bool
    variants: int


def read_baseline(path: Path) -> tuple[Ppcg, ...]:
    """Read the table; a kernel of which nothing but the default was tried has that as its best."""
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            default_time, default_energy = (
                _number(row["default_time_ms"]),
                _number(row["default_energy_j"]),
            )
            fastest, least = _number(row["fastest_time_ms"]), _number(row["least_energy_j"])
            fastest = default_time if fastest is None else fastest
            rows.append(
                Ppcg(
                    kernel=_OTHER_NAMES.get(row["kernel"], row["kernel"]),
                    default_time_s=None if default_time is None else default_time / 1e3,
                    default_energy_j=default_energy,
                    fastest_time_s=None if fastest is None else fastest / 1e3,
                    least_energy_j=default_energy if least is None else least,
                    same_sizes="as published" not in row["problem_size"],
                    variants=int(row["variants_tried"]),
                )
            )
    return tuple(rows)


def report(results: Path) -> None:
    """Print the table and how it stands against the goals."""
    ours = {m.program: m for m in load(results / FILE) if m.variant.endswith(f":{SELECTED}")}
    print(
        f"{'':16} {'--- time, ms ---':^30} {'--- energy, J ---':^30} {'- PPW, GFLOP/J -':^16}\n"
        f"{'kernel':16} {'default':>9} {'fastest':>9} {'ours':>9}  "
        f"{'default':>9} {'least':>9} {'ours':>9}  {'PPCG':>7} {'ours':>7}  "
        f"{'energy':>6} {'time':>6}"
    )
    ratios: dict[str, float] = {}
    slower, compared, missing = [], 0, []
    baseline = {ppcg.kernel: ppcg for ppcg in read_baseline(BASELINE)}
    for ppcg in baseline.values():
        found = ours.get(ppcg.kernel)
        if found is None:
            print(f"{ppcg.kernel:16} not measured")
            missing.append(ppcg.kernel)
            continue
        print(_line(ppcg, found))
        if not ppcg.same_sizes or found.energy_j is None or found.time_s is None:
            continue
        if ppcg.least_energy_j is not None:
            ratios[ppcg.kernel] = ppcg.least_energy_j / found.energy_j
        compared += ppcg.fastest_time_s is not None
        if ppcg.fastest_time_s is not None and found.time_s > ppcg.fastest_time_s:
            slower.append(f"{ppcg.kernel} ({found.time_s / ppcg.fastest_time_s:.2f}x)")
    tuned = {k: ratio for k, ratio in ratios.items() if baseline[k].variants}
    steady = [ratio for kernel, ratio in tuned.items() if not drifted(ours[kernel])]
    print("\nenergy and time: PPCG's least or fastest over ours; above 1 ours is better.")
    print("* of a size that the baseline does not tell; left out of the means.")
    print(
        "~ repeated runs spoilt the data (zeros, infinities): energy on ordinary data may be more."
    )
    print("- no variants of PPCG's were tried: its default stands for the fastest and the least.")
    print(
        f"PPCG's least energy over ours, geometric means (goal {_LEAST_RATIO}): "
        f"{geometric_mean(list(tuned.values())):.2f} of the {len(tuned)} kernels without -, "
        f"{geometric_mean(steady):.2f} of the {len(steady)} with neither - nor ~, "
        f"{geometric_mean(list(ratios.values())):.2f} of all {len(ratios)}"
    )
    print(
        f"slower than PPCG's fastest (goal: none): {', '.join(slower) or 'none'} of {compared}; "
        f"not measured: {', '.join(missing) or 'none'}"
    )
    _report_gemm(results)


def _report_gemm(results: Path) -> None:
    """Print the rate of gemm from the ten windows at full length."""
    own = [m for m in load(results / REPEATED) if m.program == "gemm" and m.time_s is not None]
    time_s = sum(m.time_s or 0.0 for m in own) / len(own)
    sizes = dict(own[0].sizes)
    useful = 2 * sizes["NI"] * sizes["NJ"] * sizes["NK"] / time_s / 1e12
    counted = (own[0].flops or 0) / time_s / 1e12
    print(
        f"gemm, mean of {len(own)} windows of {REPEATED}: {useful:.1f} TFLOP/s of 2 NI NJ NK, "
        f"{counted:.1f} as counted, alpha's products too (goal {_LEAST_GEMM_GFLOPS / 1e3:g})"
    )


def _line(ppcg: Ppcg, ours: Measurement) -> str:
    ppw = None
    if ours.flops is not None and ppcg.least_energy_j is not None and ppcg.same_sizes:
        ppw = ours.flops / ppcg.least_energy_j / 1e9
    ratios = [
        None if theirs is None or own is None else theirs / own
        for theirs, own in (
            (ppcg.least_energy_j, ours.energy_j),
            (ppcg.fastest_time_s, ours.time_s),
        )
    ]
    marks = "*" * (not ppcg.same_sizes) + "~" * drifted(ours) + "-" * (not ppcg.variants)
    name = f"{ppcg.kernel} {marks}"
    times = " ".join(
        _cell(t, 1e3, 9, 3) for t in (ppcg.default_time_s, ppcg.fastest_time_s, ours.time_s)
    )
    energies = " ".join(
        _cell(e, 1.0, 9, 4) for e in (ppcg.default_energy_j, ppcg.least_energy_j, ours.energy_j)
    )
    ppws = " ".join(_cell(p, 1.0, 7, 2) for p in (ppw, ours.gflops_per_joule))
    tail = " ".join(_cell(r, 1.0, 6, 2) for r in ratios)
    status = "" if ours.status == "ok" else f"  {ours.status}"
    return f"{name:16} {times}  {energies}  {ppws}  {tail}{status}"


def _cell(value: float | None, scale: float, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value * scale:{width}.{digits}f}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None  # empty, or words: "fails to launch"


def main() -> None:
    """Print what was recorded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    report(parser.parse_args().results)


if __name__ == "__main__":
    main()
