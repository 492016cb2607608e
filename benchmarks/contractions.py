"""Products of matrices: some layouts of each, by turns in one call.

    python benchmarks/contractions.py prepare DIR      # where eatss is installed
    python benchmarks/contractions.py measure DIR      # where the card is
    python benchmarks/contractions.py                  # prints what was measured

Layouts of these kernels differ by less than two calls on one card do, so only one call in which
they are measured by turns tells which is better. They are called after tile and threads of the two
parallel loops; the one that was selected when they were measured, without tensor cores, is marked.
``measure`` needs NumPy, SciPy, CuPy, NVML and nvcc or NVRTC.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import (
    TWO_WINDOWS,
    command_line,
    compile_ahead,
    geometric_mean,
    load,
    prepared,
    print_measurement,
    save,
)
from eatss.base.shipped import data_directory
from eatss.measurement.api import measure_variants
from eatss.measurement.measurement import Measurement

if TYPE_CHECKING:
    from eatss.cards import GpuProfile

FILE = "contractions.json"
OPTIONS = replace(TWO_WINDOWS, budget_s=1.6)
SELECTED = {
    "gemm": "128x64-32x8",
    "matmul": "128x64-16x16",
    "mttkrp": "128x32-32x16",
    "syr2k": "64x64-16x8",
    "syrk": "128x64-32x8",
}
"""What was selected when they were measured."""

Sizes = dict[str, int]
Layout = tuple[Sizes, Sizes]
"""Tile and threads of a block, by loop."""

PRODUCT: dict[str, Layout] = {
    "64x32-8x8": ({"i": 64, "j": 32, "k": 32}, {"i": 8, "j": 8}),
    "128x32-16x8": ({"i": 128, "j": 32, "k": 32}, {"i": 16, "j": 8}),
    "128x32-32x4": ({"i": 128, "j": 32, "k": 32}, {"i": 32, "j": 4}),
    "64x64-16x8": ({"i": 64, "j": 64, "k": 32}, {"i": 16, "j": 8}),
    "128x64-16x16": ({"i": 128, "j": 64, "k": 16}, {"i": 16, "j": 16}),
    "128x64-32x8": ({"i": 128, "j": 64, "k": 16}, {"i": 32, "j": 8}),
}
NARROW = {name: ({**tile, "k": 16}, threads) for name, (tile, threads) in PRODUCT.items()}
LAYOUTS: dict[str, dict[str, Layout]] = {
    "gemm": PRODUCT,
    "matmul": PRODUCT,
    "syrk": PRODUCT,
    "syr2k": NARROW,
    "mttkrp": {
        "128x32-32x16": ({"i": 128, "r": 32, "j": 8}, {"i": 32, "r": 16}),
        "128x32-64x8": ({"i": 128, "r": 32, "j": 8}, {"i": 64, "r": 8}),
        "8x64-4x32": ({"i": 8, "r": 64, "j": 4}, {"i": 4, "r": 32}),
    },
}
"""The layouts of each kernel, each for all nests of the program."""


def without_tensor_cores(gpu: str) -> GpuProfile:
    """Return a card as if it had no tensor cores for doubles."""
    from eatss.cards import load_profile  # noqa: PLC0415 - not on the machine with the card

    return replace(load_profile(gpu), peak_fp64_tensor_gflops=None)


def prepare_all(directory: Path, gpu: str) -> None:
    """Generate every layout."""
    # not on the machine with the card
    from eatss.choose.options import SelectOptions  # noqa: PLC0415
    from eatss.lower.recipe import CodeRequest  # noqa: PLC0415
    from eatss.session.session import Session  # noqa: PLC0415

    profile = without_tensor_cores(gpu)
    for kernel, layouts in LAYOUTS.items():
        session = Session(data_directory("kernels") / f"{kernel}.c", code=True)
        selection = session.select(profile, SelectOptions(target="cuda"))
        nests = [facts.name for facts in session.analysed.facts]
        for name, (tile, threads) in layouts.items():
            wanted = CodeRequest(
                tiles=dict.fromkeys(nests, tile), block=dict.fromkeys(nests, threads)
            )
            recipe = session.recipe(selection, profile, wanted)
            result = session.generate(recipe, profile)
            session.write(result, directory / kernel / name, force=True)
        print(f"{kernel}: {len(layouts)} layouts")


def measure_all(directory: Path, results: Path) -> None:
    """Measure kernel after kernel, its layouts by turns; what is done is kept."""
    folders = sorted(directory.iterdir())
    compile_ahead(one for folder in folders for one in prepared(folder))
    done: tuple[Measurement, ...] = ()
    for folder in folders:
        found = measure_variants(prepared(folder), OPTIONS)
        done += found
        save(done, results / FILE)
        for one in found:
            print_measurement(one)


def report(results: Path) -> None:
    """Print every layout beside the one that takes least energy."""
    kernels: dict[str, list[Measurement]] = {}
    for one in load(results / FILE):
        kernel, _, layout = one.variant.partition(":")
        kernels.setdefault(kernel, []).append(replace(one, variant=layout))
    print(f"{'kernel':10} {'layout':14} {'ms':>9} {'J':>9} {'W':>5}  over the least: time  energy")
    taken: dict[str, float] = {}
    for kernel, own in sorted(kernels.items()):
        least_s = min(one.time_s for one in own if one.time_s is not None)
        least_j = min(one.energy_j for one in own if one.energy_j is not None)
        for one in own:
            if one.time_s is None or one.energy_j is None or one.power_w is None:
                print(f"{kernel:10} {one.variant:14} {one.status}: {one.reason}")
                continue
            mark = ""
            if one.variant == SELECTED[kernel]:
                taken[kernel], mark = one.energy_j / least_j, "  selected"
            print(
                f"{kernel:10} {one.variant:14} {one.time_s * 1e3:9.3f} {one.energy_j:9.4f} "
                f"{one.power_w:5.0f}  {one.time_s / least_s:20.3f} "
                f"{one.energy_j / least_j:7.3f}{mark}"
            )
    print(
        f"geometric mean of {len(taken)} kernels, selected over the least energy: "
        f"{geometric_mean(list(taken.values())):.3f}"
    )


if __name__ == "__main__":
    command_line(__doc__, prepare_all, measure_all, report)
