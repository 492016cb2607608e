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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from benchmarks.judged import Judged, Pair, report
from benchmarks.ppcg_records import Row, load_rows
from benchmarks.recorded import RESULTS
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

UNLIMITED_W = 1e12

PLOT = "prediction.png"

_SIZES = re.compile(r"kernel\[(\d+)\]\s*->\s*(tile|block)\[([^\]]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What PPCG was told: sizes by the number of a kernel, and options of the program."""

    tiles: dict[int, tuple[int, ...]]
    blocks: dict[int, tuple[int, ...]]
    options: PpcgOptions


def read_arguments(text: str) -> Arguments:
    """Read the arguments of a row of ``benchmarks/ppcg.py``."""
    found: dict[str, dict[int, tuple[int, ...]]] = {"tile": {}, "block": {}}
    for number, kind, sizes in _SIZES.findall(text):
        found[kind][int(number)] = tuple(int(one) for one in sizes.split(","))
    shared = re.search(r"--max-shared-memory=(\d+)", text)
    return Arguments(
        tiles=found["tile"],
        blocks=found["block"],
        options=PpcgOptions(
            max_shared_memory=PPCG_SHARED_BYTES if shared is None else int(shared[1]),
            unroll_gpu_tile="--unroll-gpu-tile" in text,
        ),
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
        _, expected = free.columns(candidates(free.kernel, (vector,), arguments.options))
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
        _, expected = model.columns(candidates(model.kernel, (vector,), arguments.options))
        energy_j += float(expected.energy_j[0])
        time_s += float(expected.time_s[0])
    return (energy_j, time_s) if math.isfinite(time_s) else None


def judged(kernel: str, dtype: str, rows: Sequence[Row], profile: GpuProfile) -> Judged:
    """Predict the variants of one program; what was measured again counts once, as its median."""
    models = [PpcgModel.of(facts, profile) for facts in _inspected(kernel, dtype)]
    measured: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row.energy_j is not None and row.time_ms is not None:
            measured.setdefault(row.arguments, []).append((row.energy_j, row.time_ms / 1e3))
    pairs = []
    for text, known in measured.items():
        arguments = read_arguments(text)
        expected = predicted(models, arguments)
        if expected is None:
            continue
        energy_j, time_s = map(statistics.median, zip(*known, strict=True))
        limit_w = models[0].card.power_limit_w
        pairs.append(
            Pair(
                energy_j=energy_j,
                time_s=time_s,
                predicted_j=expected[0],
                predicted_s=expected[1],
                known_time_j=spent(models, arguments, time_s, limit_w),
            )
        )
    return Judged(
        name=f"{kernel} {dtype}",
        half="fitted" if kernel in FITTED else "held out",
        pairs=pairs,
        unpredicted=len(measured) - len(pairs),
    )


def programs(rows: Sequence[Row], profile: GpuProfile) -> list[Judged]:
    """Return every program that was measured, the fitted ones first."""
    grouped: dict[tuple[bool, str, str], list[Row]] = {}
    for row in rows:
        if row.status == "ok" and "--no-private-memory" not in row.arguments:
            grouped.setdefault((row.kernel not in FITTED, row.kernel, row.dtype), []).append(row)
    found = (judged(*key[1:], own, profile) for key, own in sorted(grouped.items()))
    return [one for one in found if one.pairs]


def _inspected(kernel: str, dtype: str) -> tuple[KernelFacts, ...]:
    """Return the facts of a program's kernels in PPCG's order."""
    source = data_directory("kernels") / f"{kernel}.c"
    return eatss.inspect(source, dtype="float" if dtype == "float" else "double").facts


def plot(found: Sequence[Judged], path: Path) -> None:
    """Draw predicted against measured energy, a panel for each half and a colour a kernel."""
    from matplotlib import colormaps  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    every = [v for one in found for p in one.pairs for v in (p.energy_j, p.predicted_j)]
    ends = min(every) / 1.5, max(every) * 1.5
    for panel, name in zip(axes, ("fitted", "held out"), strict=True):
        half = [one for one in found if one.half == name]
        kernels = sorted({one.name.partition(" ")[0] for one in half})
        colours = colormaps["turbo"](np.linspace(0.03, 0.97, max(1, len(kernels))))
        panel.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
        for one in half:
            kernel, _, dtype = one.name.partition(" ")
            colour = colours[kernels.index(kernel)]
            panel.scatter(
                [p.energy_j for p in one.pairs],
                [p.predicted_j for p in one.pairs],
                s=14,
                marker="o" if dtype == "double" else "^",
                facecolors="none" if dtype == "float" else [colour],
                edgecolors=[colour],
                linewidths=0.8,
                label=kernel if dtype == "double" else f"{kernel} ({dtype})",
            )
        panel.set(
            xscale="log", yscale="log", xlim=ends, ylim=ends, title=f"{name} kernels",
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
    report(found)
    plot(found, options.plot or results[0].parent / PLOT)


if __name__ == "__main__":
    main()
