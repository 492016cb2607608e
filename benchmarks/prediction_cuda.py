"""How well the prediction knows generated code: predicted beside measured, program by program.

    python benchmarks/prediction_cuda.py                  # what was recorded on an H200
    python benchmarks/prediction_cuda.py ROWS.jsonl …     # rows of benchmarks/unseen.py
    python benchmarks/prediction_cuda.py ROWS.jsonl --gpu h100 --figures  # by whose figures

Every layout that was measured is predicted from the kernels that its plan names: blocks, tiles,
staged arrays and spread sums. Constants were fitted to half of the kernels; the others and the
programs of ``benchmarks/programs`` judge them. It needs no card.

``--figures`` compares what a card may be predicted by: an H200's figures scaled by the power limit,
as they once were, or by the silicon, as they are for cards that nobody characterised, and its own.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from benchmarks.judged import KINDS, Judged, Pair, cell, compared, report
from benchmarks.prediction import FITTED, UNLIMITED_W
from benchmarks.recorded import RESULTS
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, SplitK, thread_axes, threads_along
from eatss.analysis.variant import KernelVariant, LaunchFacts
from eatss.base.shipped import data_directory
from eatss.base.targets import AXES
from eatss.cards import load_profile
from eatss.cards.match import REFERENCE, scaled
from eatss.cards.profile import COEFFICIENTS, Coefficient, GpuProfile
from eatss.cost.card import card_of
from eatss.cost.cuda_model import CudaModel
from eatss.lower.variants import kernel_variants_for

ROWS = ("cuda-tuning.jsonl", "unseen-cuda.jsonl")
PROGRAMS = Path(__file__).resolve().parent / "programs"

_SPREAD = re.compile(
    r"the sum over \w+ is split over(?: (\d+) threads)?(?: and)?(?: ?(\d+) blocks)?"
)
_WARPS = re.compile(r"mma_\w+: computes")
_HOST = re.compile(r"the loop (\w+) runs on the host")


@dataclass(frozen=True, slots=True)
class Launched:
    """A CUDA kernel of a plan, with the facts that predict it."""

    facts: KernelFacts
    variant: KernelVariant
    launch: LaunchFacts
    layout: Candidates


def rows_of(paths: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return the measured layouts of each program."""
    programs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["time_s"]:
                programs[row["program"]].append(row)
    return programs


@cache
def _inspected(
    program: str, profile: GpuProfile
) -> list[tuple[KernelFacts, tuple[KernelVariant, ...]]]:
    source = data_directory("kernels") / f"{program}.c"
    if not source.exists():
        source = PROGRAMS / f"{program}.c"
    found = eatss.inspect(source, cut="eatss")
    variants = kernel_variants_for(found, profile)
    return [(facts, variants.get(facts.name, ())) for facts in found.facts]


def launched(program: str, row: Mapping[str, Any], profile: GpuProfile) -> list[Launched] | None:
    """Return the kernels of a plan with their facts, ``None`` where one is not known."""
    found = []
    for kernel in row["kernels"]:
        notes = " ".join(kernel["notes"])
        if "one thread:" in notes:
            continue
        one = _launched(program, kernel, notes, row.get("threads", {}), profile)
        if one is None:
            return None
        found.append(one)
    return found


def _launched(
    program: str,
    kernel: Mapping[str, Any],
    notes: str,
    asked: Mapping[str, Mapping[str, int]],
    profile: GpuProfile,
) -> Launched | None:
    spread = _SPREAD.search(notes)
    if _WARPS.search(notes) or _HOST.search(notes):
        return None  # a plan does not say how many boxes are filled ahead; no loop is hoisted now
    for facts, launch in _launches(program, profile):
        if (launch.sum_loop is None) != (spread is None):
            continue
        if sorted(launch.statements) == sorted(kernel["statements"]):
            alone = KernelVariant(launches=(launch,))
            own = asked.get(facts.name, {})
            sizes = _candidates(facts, alone, launch, kernel, notes, own)
            return None if sizes is None else Launched(facts, alone, launch, sizes)
    return None


def _launches(program: str, profile: GpuProfile) -> Iterator[tuple[KernelFacts, LaunchFacts]]:
    for facts, variants in _inspected(program, profile):
        for variant in variants:
            if variant.instruction is not None:
                continue
            for launch in variant.launches:
                yield facts, launch


def _candidates(
    facts: KernelFacts,
    variant: KernelVariant,
    launch: LaunchFacts,
    kernel: Mapping[str, Any],
    notes: str,
    asked: Mapping[str, int],
) -> Candidates | None:
    """Return what a plan says of a kernel; ``None`` where it does not say enough."""
    tiles = {name: float(size) for name, size in kernel["tile_sizes"]}
    spread = _SPREAD.search(notes)
    lanes, chunks, sum_tile = 1.0, 1.0, 1.0
    axes = [float(size) for size in kernel["block"]]
    if spread is not None:
        lanes, chunks = float(spread[1] or 1), float(spread[2] or 1)
        if launch.sum_loop not in tiles:
            return None  # sums over several loops were not tiled along all of them then
        sum_tile = tiles[launch.sum_loop]
        axes = axes[1:] if lanes > 1 else axes
    threads = _threads(launch.mapped, axes, tiles, asked)
    if threads is None:
        return None
    staged = {
        group: float(any(f"{facts.references[at].access}: shared memory" in notes for at in group))
        for group in launch.stageable
    }
    if spread is not None and any(staged.values()):
        return None  # the generator does so where it is told to; the model does not offer it
    for loop in facts.loops:
        tiles.setdefault(loop.name, 1.0)
    spread_as = SplitK(lanes=lanes, tile=sum_tile, chunks=chunks)
    return Candidates(
        variant=variant,
        tile_sizes=tuple(tiles.items()),
        block=tuple(threads.items()),
        staged=staged,
        spread=None if spread is None else spread_as,
    ).map(lambda one: np.array([one]))


def _threads(
    mapped: Sequence[str],
    block: Sequence[float],
    tiles: Mapping[str, float],
    asked: Mapping[str, int],
) -> dict[str, float] | None:
    """Return the threads along each loop, ``None`` where a block may mean several.

    A plan has those along the axes, which more than three loops share: then they are those that
    were ``asked`` for, or follow from the axes. They are powers of two.
    """
    if len(mapped) <= len(block):
        return dict(zip(reversed(mapped), block, strict=False))
    if asked:
        return {name: float(asked.get(name, 1)) for name in mapped}
    found = []
    choices = [[2**n for n in range(int(tiles[name]).bit_length())] for name in mapped]
    for sizes in product(*choices):
        if sizes[-1] != block[0] or prod(sizes) != prod(block):
            continue
        axes = thread_axes(sizes)
        if [threads_along(axis, sizes, axes) for axis in AXES] == list(block):
            found.append(dict(zip(mapped, map(float, sizes), strict=True)))
    return found[0] if len(found) == 1 else None


def spent(kernels: Sequence[Launched], time_s: float, profile: GpuProfile) -> float:
    """Return the energy of a program in J if its time is known."""
    energy_j = 0.0
    for one in kernels:
        model = CudaModel.of(one.facts, profile)
        free = replace(model, card=replace(model.card, power_limit_w=UNLIMITED_W))
        total = free.columns(one.layout).total
        energy_j += float(total.energy_j[0] - total.terms_j["constant power"][0])
    card = card_of(profile)
    return min(energy_j + card.prices.constant_w * time_s, card.power_limit_w * time_s)


def pairs_of(
    program: str, rows: Sequence[Mapping[str, Any]], profile: GpuProfile
) -> tuple[list[Pair], int]:
    """Return the layouts of a program, predicted, and how many could not be."""
    pairs, unpredicted = [], 0
    for row in rows:
        kernels = launched(program, row, profile)
        totals = [
            CudaModel.of(one.facts, profile).columns(one.layout).total for one in kernels or ()
        ]
        time_s = sum(float(total.time_s[0]) for total in totals)
        if not totals or not math.isfinite(time_s):
            unpredicted += 1
            continue
        pairs.append(
            Pair(
                energy_j=row["energy_j"] or math.nan,
                time_s=row["time_s"],
                predicted_j=sum(float(total.energy_j[0]) for total in totals),
                predicted_s=time_s,
                known_time_j=spent(kernels or [], row["time_s"], profile),
            )
        )
    return pairs, unpredicted


def figures_of(profile: GpuProfile) -> dict[str, GpuProfile]:
    """Return a card with each kind of figures that it may be predicted by."""
    unknown, reference = replace(profile, calibration=None), load_profile(REFERENCE)
    assert reference.calibration is not None
    assert profile.tdp_w is not None
    assert reference.tdp_w is not None
    limit = profile.tdp_w / reference.tdp_w
    chip = profile.sm_count * float(profile.boost_clock_mhz or 0)
    chip /= reference.sm_count * (reference.boost_clock_mhz or 0)
    by_limit = {
        "W": limit, "pJ": limit / chip, "pJ/B": limit / chip,
        "dram": limit * reference.bandwidth_gb_s / profile.bandwidth_gb_s,
    }  # fmt: skip
    silicon, coefficients = scaled(unknown), []
    for name, one in reference.calibration.coefficients:
        kind = "dram" if name.startswith("dram") and name.endswith("pj") else COEFFICIENTS[name][0]
        value = one.value * by_limit[kind] if kind in by_limit else silicon[name]
        coefficients.append((name, Coefficient(value=value, low=value, high=value)))
    old = replace(reference.calibration, coefficients=tuple(coefficients))
    found = {
        "H200, scaled by power limit": replace(profile, calibration=old),
        "H200, scaled by silicon": unknown,
    }
    return found | ({"its own": profile} if profile.calibration is not None else {})


def print_figures(programs: Mapping[str, Sequence[Mapping[str, Any]]], profile: GpuProfile) -> None:
    """Print the errors of all layouts by each kind of figures."""
    print(
        f"{'figures of ' + profile.name:30} {'programs':>8} {'layouts':>8} {'error s':>8} "
        f"{'bias s':>7} {'error J':>8} {'bias J':>7} {'time known, J':>14} {'bias':>6}"
    )
    for name, card in figures_of(profile).items():
        found = {program: pairs_of(program, rows, card)[0] for program, rows in programs.items()}
        pairs = [pair for own in found.values() for pair in own]
        cells = []
        for figures in KINDS.values():
            one = compared(figures(pairs))
            cells += [cell(one, "error", ".1%"), cell(one, "bias", ".2f")]
        print(
            f"{name:30} {sum(map(bool, found.values())):8} {len(pairs):8} {cells[2]:>8} "
            f"{cells[3]:>7} {cells[0]:>8} {cells[1]:>7} {cells[4]:>14} {cells[5]:>6}"
        )


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path, nargs="*")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--figures", action="store_true", help="compare kinds of figures")
    options = parser.parse_args()
    profile = load_profile(options.gpu)
    paths = options.rows or [RESULTS / name for name in ROWS]
    if options.figures:
        print_figures(rows_of(paths), profile)
        return
    found = []
    for program, rows in sorted(rows_of(paths).items()):
        pairs, unpredicted = pairs_of(program, rows, profile)
        half = "fitted" if program in FITTED else "held out"
        half = half if (data_directory("kernels") / f"{program}.c").exists() else "unseen"
        found.append(Judged(name=program, half=half, pairs=pairs, unpredicted=unpredicted))
    report(found)


if __name__ == "__main__":
    main()
