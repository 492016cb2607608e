"""How well the prediction knows PPCG's code: predicted beside measured, kernel by kernel.

    python benchmarks/prediction.py                       # what was recorded on an H200
    python benchmarks/prediction.py RESULTS.jsonl …       # rows of benchmarks/ppcg.py

Every variant that was measured is predicted from the arguments it had. A table compares the two and
a plot shows them. Constants were fitted to half of the kernels (``FITTED``); the others judge them.
It needs no card.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from benchmarks.ppcg_records import Row, load_rows
from benchmarks.recorded import RESULTS, geometric_mean
from eatss.analysis.facts import KernelFacts
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cards.profile import GpuProfile
from eatss.choose.ppcg import Vector, candidates, default_vector
from eatss.choose.selection import PPCG_SHARED_BYTES, PpcgOptions
from eatss.cost.ppcg_model import PpcgModel

FITTED = (
    "2mm", "atax", "conv-2d", "fdtd-2d", "gemver", "heat-3d", "jacobi-2d", "matmul", "mvt", "syr2k",
    "trmm",
)  # fmt: skip
"""Kernels whose variants the constants of ``eatss/cost/card.py`` were fitted to."""

FEWEST = 5
"""Variants from which a rank correlation says something."""

ALIKE = 1.10
"""Kernels whose median variant takes less than so many times the energy of the best one have
nothing to rank."""

LEAST_CORRELATION = 0.01
"""Stands for smaller ones, and negative ones, in geometric means."""

UNLIMITED_W = 1e12

PLOT = "prediction.png"

_HALVES = {True: "fitted", False: "held out"}
_SIZES = re.compile(r"kernel\[(\d+)\]\s*->\s*(tile|block)\[([^\]]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What PPCG was told: sizes by the number of a kernel, and options of the program."""

    tiles: dict[int, tuple[int, ...]]
    blocks: dict[int, tuple[int, ...]]
    shared_bytes: int
    unroll: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A variant, measured and predicted; energies in J, times in s.

    ``known_time_j`` is the energy that is predicted if the time is known: prices of what runs, and
    constant power for the measured time.
    """

    arguments: str
    energy_j: float
    time_s: float
    predicted_j: float
    predicted_s: float
    known_time_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the prediction is worth for one program.

    Rank correlations are Spearman's. Errors are medians: 0.2 where half of the variants are within
    a factor of 1.2. Biases are geometric means of predicted over measured. ``chosen`` is the
    measured energy of the variant that is predicted best, ``default`` that of PPCG's default, both
    over the least measured; ``spread`` is that of the median variant. ``energy_errors`` are those
    of the variants, as logarithms. ``variants`` are those compared; ``unpredicted`` ran though the
    prediction has no figure for them.
    """

    kernel: str
    dtype: str
    fitted: bool
    variants: int
    unpredicted: int
    energy_errors: tuple[float, ...]
    energy_rank: float | None
    time_rank: float | None
    energy_error: float
    time_error: float
    known_time_error: float
    energy_bias: float
    time_bias: float
    chosen: float
    default: float | None
    spread: float


def read_arguments(text: str) -> Arguments:
    """Read the arguments of a row of ``benchmarks/ppcg.py``."""
    found: dict[str, dict[int, tuple[int, ...]]] = {"tile": {}, "block": {}}
    for number, kind, sizes in _SIZES.findall(text):
        found[kind][int(number)] = tuple(int(one) for one in sizes.split(","))
    shared = re.search(r"--max-shared-memory=(\d+)", text)
    return Arguments(
        tiles=found["tile"],
        blocks=found["block"],
        shared_bytes=PPCG_SHARED_BYTES if shared is None else int(shared[1]),
        unroll="--unroll-gpu-tile" in text,
    )


def vector_of(model: PpcgModel, arguments: Arguments) -> Vector | None:
    """Return tiles and threads of a kernel; ``None`` where it is given fewer than it has loops."""
    kernel = model.kernel
    if not kernel.threads:
        return ()
    default = default_vector(kernel)
    depth, mapped = len(kernel.band), len(kernel.threads)
    tiles = arguments.tiles.get(kernel.facts.index, default[:depth])[:depth]
    blocks = arguments.blocks.get(kernel.facts.index, default[depth:])[:mapped]
    return tiles + blocks if (len(tiles), len(blocks)) == (depth, mapped) else None


def spent(
    models: Sequence[PpcgModel], arguments: Arguments, time_s: float, limit_w: float
) -> float:
    """Return the energy of a program in J if its time is known.

    What runs has its price, time its constant power, and the card keeps to its limit.
    """
    energy_j = 0.0
    for model in models:
        free = replace(model, card=replace(model.card, power_limit_w=UNLIMITED_W))
        vector = vector_of(free, arguments)
        assert vector is not None  # it was predicted before
        _, expected = free.columns(
            candidates(
                free.kernel,
                (vector,),
                PpcgOptions(
                    max_shared_memory=arguments.shared_bytes, unroll_gpu_tile=arguments.unroll
                ),
            )
        )
        energy_j += float(expected.energy_j[0] - expected.terms_j["constant power"][0])
    constant_w = models[0].card.prices.constant_w if models else 0.0
    return min(energy_j + constant_w * time_s, limit_w * time_s)


def predicted(models: Sequence[PpcgModel], arguments: Arguments) -> tuple[float, float] | None:
    """Return energy in J and time in s of a program; ``None`` where they cannot be predicted."""
    energy_j = time_s = 0.0
    for model in models:
        vector = vector_of(model, arguments)
        if vector is None:
            return None
        _, expected = model.columns(
            candidates(
                model.kernel,
                (vector,),
                PpcgOptions(
                    max_shared_memory=arguments.shared_bytes, unroll_gpu_tile=arguments.unroll
                ),
            )
        )
        energy_j += float(expected.energy_j[0])
        time_s += float(expected.time_s[0])
    return (energy_j, time_s) if math.isfinite(time_s) else None


def points_of(rows: Sequence[Row], models: Sequence[PpcgModel]) -> tuple[list[Point], int]:
    """Return the variants of one program, and how many more have no prediction.

    What was measured again counts once, as its median.
    """
    measured: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row.energy_j is not None and row.time_ms is not None:
            measured.setdefault(row.arguments, []).append((row.energy_j, row.time_ms / 1e3))
    points = []
    for text, pairs in measured.items():
        expected = predicted(models, read_arguments(text))
        if expected is None:
            continue
        time_s = statistics.median(time for _, time in pairs)
        points.append(
            Point(
                arguments=text,
                energy_j=statistics.median(energy for energy, _ in pairs),
                time_s=time_s,
                known_time_j=spent(
                    models, read_arguments(text), time_s, models[0].card.power_limit_w
                ),
                predicted_j=expected[0],
                predicted_s=expected[1],
            )
        )
    return points, len(measured) - len(points)


def judged(kernel: str, dtype: str, points: Sequence[Point], unpredicted: int) -> Judged:
    """Compare predicted with measured."""
    energies = [(p.predicted_j, p.energy_j) for p in points]
    times = [(p.predicted_s, p.time_s) for p in points]
    least = min(p.energy_j for p in points)
    defaults = [p.energy_j / least for p in points if not p.arguments]
    return Judged(
        kernel=kernel,
        dtype=dtype,
        fitted=kernel in FITTED,
        variants=len(points),
        unpredicted=unpredicted,
        energy_errors=tuple(abs(math.log(a / b)) for a, b in energies),
        energy_rank=_rank(energies),
        time_rank=_rank(times),
        energy_error=_error(energies),
        time_error=_error(times),
        known_time_error=_error([(p.known_time_j, p.energy_j) for p in points]),
        energy_bias=geometric_mean([a / b for a, b in energies]),
        time_bias=geometric_mean([a / b for a, b in times]),
        chosen=min(points, key=lambda p: p.predicted_j).energy_j / least,
        default=defaults[0] if defaults else None,
        spread=statistics.median(p.energy_j for p in points) / least,
    )


def _rank(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < FEWEST:
        return None
    found = float(spearmanr([a for a, _ in pairs], [b for _, b in pairs]).statistic)
    return None if math.isnan(found) else found  # all predicted alike


def _error(pairs: Sequence[tuple[float, float]]) -> float:
    return math.exp(statistics.median(abs(math.log(a / b)) for a, b in pairs)) - 1


def programs(
    rows: Sequence[Row], profile: GpuProfile
) -> dict[tuple[str, str], tuple[Judged, list[Point]]]:
    """Return every program that was measured, by kernel and type."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status == "ok" and "--no-private-memory" not in row.arguments:
            grouped.setdefault((row.kernel, row.dtype), []).append(row)
    found = {}
    for (kernel, dtype), own in sorted(grouped.items()):
        models = [PpcgModel.of(facts, profile) for facts in _inspected(kernel, dtype)]
        points, unpredicted = points_of(own, models)
        if points:
            found[kernel, dtype] = judged(kernel, dtype, points, unpredicted), points
    return found


def _inspected(kernel: str, dtype: str) -> tuple[KernelFacts, ...]:
    """Return the facts of a program's kernels in PPCG's order."""
    source = data_directory("kernels") / f"{kernel}.c"
    return eatss.inspect(source, dtype="float" if dtype == "float" else "double").facts


def report(found: Sequence[Judged]) -> None:
    """Print a line a program, then means."""
    print(
        f"{'kernel':16} {'type':7} {'half':9} {'n':>3}  {'rank J':>6} {'rank s':>6}  "
        f"{'error J':>7} {'error s':>7}  {'bias J':>6} {'bias s':>6}  "
        f"{'chosen/best':>11} {'default/best':>12}"
    )
    for one in found:
        print(
            f"{one.kernel:16} {one.dtype:7} {_HALVES[one.fitted]:9} {one.variants:3}  "
            f"{_number(one.energy_rank):>6} {_number(one.time_rank):>6}  "
            f"{one.energy_error:7.0%} {one.time_error:7.0%}  "
            f"{one.energy_bias:6.2f} {one.time_bias:6.2f}  "
            f"{one.chosen:11.2f} {_number(one.default):>12}"
        )
    for fitted in (True, False):
        _print_means([one for one in found if one.fitted == fitted], _HALVES[fitted])
    missing = [f"{o.kernel} {o.dtype} {o.unpredicted}" for o in found if o.unpredicted]
    if missing:
        print(f"\nran, but are said not to launch or have too few sizes: {', '.join(missing)}")
    print(
        "\nrank: Spearman's correlation of predicted with measured. error: the factor within which "
        "half\nof the variants are, less 1. bias: geometric mean of predicted over measured. "
        "chosen: measured\nenergy of the variant predicted best. Means are geometric, but for "
        f"errors; in those of ranks\n{LEAST_CORRELATION} stands for what is less, and programs of "
        f"fewer than {FEWEST} variants have none."
    )


def _print_means(half: Sequence[Judged], name: str) -> None:
    if not half:
        return
    tried = [one for one in half if one.energy_rank is not None and one.time_rank is not None]
    alike = [one for one in tried if one.spread < ALIKE]
    ranked = [one for one in tried if one.spread >= ALIKE]
    chosen = geometric_mean([one.chosen for one in tried])
    default = geometric_mean([one.default for one in tried if one.default is not None])
    print(f"\n{name} ({len(half)} programs, {sum(one.variants for one in half)} variants)")
    print(
        f"  rank: energy {_mean_rank([one.energy_rank for one in ranked])}, "
        f"time {_mean_rank([one.time_rank for one in ranked])} ({len(ranked)} programs)"
    )
    print(
        f"  error of energy if the time is known: "
        f"{statistics.mean(one.known_time_error for one in half):.0%}"
    )
    print(
        f"  error: energy {statistics.mean(one.energy_error for one in half):.0%}, "
        f"time {statistics.mean(one.time_error for one in half):.0%}; "
        f"bias: energy {geometric_mean([one.energy_bias for one in half]):.2f}, "
        f"time {geometric_mean([one.time_bias for one in half]):.2f}"
    )
    every = statistics.median(share for one in half for share in one.energy_errors)
    print(f"  error of energy, median of all variants: {math.exp(every) - 1:.0%}")
    print(f"  over the best: chosen {chosen:.2f}, default {default:.2f} ({len(tried)} programs)")
    if alike:
        names = ", ".join(
            f"{one.kernel} {one.dtype} {_number(one.energy_rank)}, {_number(one.time_rank)}"
            for one in alike
        )
        print(
            f"  apart, because best and median variant are within {ALIKE - 1:.0%} "
            f"(rank of energy, of time): {names}"
        )


def _mean_rank(ranks: Sequence[float | None]) -> str:
    known = [max(LEAST_CORRELATION, rank) for rank in ranks if rank is not None]
    return _number(geometric_mean(known) if known else None)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def plot(found: Sequence[tuple[Judged, list[Point]]], path: Path) -> None:
    """Draw predicted against measured energy, a panel for each half and a colour a kernel."""
    from matplotlib import colormaps  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    every = [v for _, points in found for p in points for v in (p.energy_j, p.predicted_j)]
    ends = min(every) / 1.5, max(every) * 1.5
    for panel, fitted in zip(axes, (True, False), strict=True):
        half = [(one, points) for one, points in found if one.fitted == fitted]
        kernels = sorted({one.kernel for one, _ in half})
        colours = colormaps["turbo"](np.linspace(0.03, 0.97, max(1, len(kernels))))
        panel.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
        for one, points in half:
            colour = colours[kernels.index(one.kernel)]
            panel.scatter(
                [p.energy_j for p in points],
                [p.predicted_j for p in points],
                s=14,
                marker="o" if one.dtype == "double" else "^",
                facecolors="none" if one.dtype == "float" else [colour],
                edgecolors=[colour],
                linewidths=0.8,
                label=one.kernel if one.dtype == "double" else f"{one.kernel} ({one.dtype})",
            )
        panel.set(
            xscale="log", yscale="log", xlim=ends, ylim=ends, title=f"{_HALVES[fitted]} kernels",
            xlabel="measured energy of a run, J", ylabel="predicted energy of a run, J",
        )  # fmt: skip
        panel.set_box_aspect(1)
        panel.grid(which="major", linewidth=0.4, alpha=0.5)
        if half:
            panel.legend(fontsize=6, ncols=2, loc="upper left", markerscale=1.2)
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> None:
    """Read results, print the table and draw the plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "results", nargs="*", type=Path, metavar="RESULTS.jsonl",
        help=f"measured rows; all of kernels/ in {RESULTS.name} unless given",
    )  # fmt: skip
    parser.add_argument("--gpu", default="h200", metavar="CARD", help="the card that measured them")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help=f"{PLOT} next to the first results unless given"
    )
    options = parser.parse_args()
    results = options.results or sorted(
        {*RESULTS.glob("ppcg*.jsonl"), *RESULTS.glob("variants*.jsonl.xz")}
    )
    shipped = {source.stem for source in data_directory("kernels").glob("*.c")}
    rows = [row for row in load_rows(results) if row.kernel in shipped]
    found = programs(rows, load_profile(options.gpu))
    if not found:
        parser.error("no row has a time and an energy")
    report([one for one, _ in found.values()])
    plot(list(found.values()), options.plot or results[0].parent / PLOT)


if __name__ == "__main__":
    main()
