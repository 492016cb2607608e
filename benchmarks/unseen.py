"""Programs that no constant was tuned on: the selected layout beside random ones.

    python benchmarks/unseen.py prepare DIR [--random 8 --seed 1] [--sources FILE.c ...]
    python benchmarks/unseen.py measure DIR [--budget S]           # where the card is
    python benchmarks/unseen.py rows DIR --output ROWS.jsonl       # for prediction_cuda.py
    python benchmarks/unseen.py report                             # prints what was measured

The programs are those in ``benchmarks/programs``. Random layouts have random tiles, threads and
placements; one that the generator refuses is drawn again. Rows are written after every program.
``measure`` needs NumPy, SciPy, CuPy, NVML and nvcc or NVRTC.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import (
    RESULTS,
    compile_ahead,
    geometric_mean,
    load,
    prepared,
    print_measurement,
    save,
)
from eatss.base.diagnostics import EatssError
from eatss.measurement.api import measure_variants
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions

PROGRAMS = Path(__file__).resolve().parent / "programs"
SELECTED = "selected"
FILE = RESULTS / "unseen-cuda.json"
DRAWS = 6
"""How often a random layout that is refused is drawn again."""

PROGRAMS_AT_ONCE = 4
"""Programs whose random layouts are measured in one call: what a lost worker repeats."""

OPTIONS = MeasureOptions(
    least_window_s=0.5,
    least_updates=2,
    least_windows=1,
    target=0.05,
    warm_up_s=0.0,
    budget_s=0.4,
    timeout_s=4.0,
    restoring="between windows",
)
Layout = tuple[dict[str, Any], dict[str, Any], dict[str, str]]
ASKED = ("tiles", "block", "placements")
"""What a layout has, by its name among the options of ``eatss codegen``."""


def prepare_all(directory: Path, sources: Sequence[Path], gpu: str, count: int, seed: int) -> None:
    """Generate the selected and random layouts of every program."""
    jobs = [(directory, source, gpu, count, seed) for source in sources]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(_prepare, jobs):
            print(line, flush=True)


def random_layout(source: random.Random, kernels: Sequence[Any], arrays: Sequence[str]) -> Layout:
    """Draw tiles, threads of a block and placements, of kernels as ``KernelFacts`` has them."""
    tiles: dict[str, Any] = {}
    blocks: dict[str, Any] = {}
    for kernel in kernels:
        parallel = [loop.name for loop in kernel.parallel_loops]
        left = source.choice((64, 128, 128, 256, 256, 512))
        threads: dict[str, int] = {}
        for place, loop in enumerate(reversed(parallel[-3:])):
            wide = [x for x in (16, 32, 64, 128, 256, 512) if x <= left]
            if place == min(3, len(parallel)) - 1:
                threads[loop] = left
            elif place == 0:
                threads[loop] = source.choice(wide) if source.random() < 0.9 else 8
            else:
                threads[loop] = source.choice([x for x in (1, 2, 4, 8, 16) if x <= left])
            left //= threads[loop]
        sizes: dict[str, int] = {}
        points = 1
        for loop in kernel.loops:
            own = threads.get(loop.name, 1)
            fitting = [x for x in (1, 2, 4, 8, 16, 32, 64, 128) if points * x <= 32]
            if loop.parallel:
                factor = source.choice([x for x in fitting if x * own <= 512] or [1])
                points *= factor
                sizes[loop.name] = factor * own
            else:
                sizes[loop.name] = source.choice((1, 2, 4, 8, 16, 32, 64, 128))
        if sizes:
            tiles[kernel.name] = sizes
        if threads:
            blocks[kernel.name] = threads
    places = {name: "shared" for name in arrays if source.random() < 0.25}
    return tiles, blocks, places


def _prepare(job: tuple[Path, Path, str, int, int]) -> str:
    """Analyse and select once, generate every layout."""
    # not on the machine with the card
    from eatss.cards import load_profile  # noqa: PLC0415
    from eatss.choose.options import SelectOptions  # noqa: PLC0415
    from eatss.lower.recipe import CodeRequest  # noqa: PLC0415
    from eatss.session.session import Session  # noqa: PLC0415

    directory, source, gpu, count, seed = job
    profile = load_profile(gpu)
    session = Session(source, code=True)
    selection = session.select(profile, SelectOptions(target="cuda"))
    session = session.of(selection)

    def one(name: str, layout: Layout) -> None:
        wanted = CodeRequest(tiles=layout[0], block=layout[1], placements=layout[2])
        recipe = session.recipe(selection, profile, wanted)
        result = session.generate(recipe, profile)
        session.write(result, directory / source.stem / name, force=True)
        (directory / source.stem / name / "layout.json").write_text(
            json.dumps([seed, *layout]) + "\n", encoding="utf-8"
        )

    one(SELECTED, ({}, {}, {}))
    arrays = sorted({array.name for scop in session.scops for array in scop.arrays})
    made, refusals = 0, []
    for number in range(count):
        for draw in range(DRAWS):
            drawer = random.Random(f"{seed} {source.stem} {number} {draw}")  # noqa: S311
            try:
                one(
                    f"random-{number:02}",
                    random_layout(drawer, session.analysed.facts, arrays),
                )
            except EatssError as error:
                refusals.append(error.code)
                continue
            made += 1
            break
    return f"{source.stem}: selected and {made} random; refused: {' '.join(refusals) or 'none'}"


def measure_all(directory: Path, results: Path, budget_s: float) -> None:
    """Measure the selected layouts of all programs, then the random ones; keep what is done.

    Selected layouts are checked against the original. Of random ones only time and energy count.
    """
    end = time.monotonic() + budget_s
    folders = [prepared(path) for path in sorted(directory.iterdir()) if path.is_dir()]
    compile_ahead(one for own in folders for one in own)
    print(f"compiled with {end - time.monotonic():.0f} s left", flush=True)
    selected = [one for own in folders for one in own if one.label.endswith(SELECTED)]
    random_ones = [[one for one in own if not one.label.endswith(SELECTED)] for own in folders]
    groups = [(selected, OPTIONS)]
    for first in range(0, len(random_ones), PROGRAMS_AT_ONCE):
        some = random_ones[first : first + PROGRAMS_AT_ONCE]
        groups.append(([one for own in some for one in own], replace(OPTIONS, check=False)))
    done: tuple[Measurement, ...] = ()
    for variants, options in groups:
        if not variants:
            continue
        if time.monotonic() > end:
            print("the budget is spent")
            return
        found = measure_variants(variants, options)
        done += found
        save(done, results)
        for one in found:
            print_measurement(one)
        sys.stdout.flush()


def write_rows(directory: Path, results: Path, output: Path) -> None:
    """Write a line for each layout: what was asked for, and what was measured."""
    lines = []
    for one in load(results):
        program, _, layout = one.variant.partition(":")
        drawn = (directory / program / layout / "layout.json").read_text(encoding="utf-8")
        row = {
            "program": program,
            "layout": layout,
            "asked": dict(zip(ASKED, json.loads(drawn)[1:], strict=True)),
            "status": one.status,
            "time_s": one.time_s,
            "energy_j": one.energy_j,
        }
        lines.append(json.dumps(row) + "\n")
    output.write_text("".join(lines), encoding="utf-8")


def report(results: Path) -> None:
    """Print selected and the best random layout of every program."""
    programs: dict[str, dict[str, Measurement]] = {}
    for one in load(results):
        program, _, name = one.variant.partition(":")
        programs.setdefault(program, {})[name] = one
    print(
        f"{'program':22} {'selected ms':>12} {'J':>9} {'best ms':>10} {'J':>9} {'of':>3} "
        f"{'time':>7} {'energy':>7}  selected/best random"
    )
    ratios: dict[str, tuple[float, float]] = {}
    for program, own in sorted(programs.items()):
        right = {n: m for n, m in own.items() if m.time_s is not None and m.energy_j is not None}
        ours = right.pop(SELECTED, None)
        best_time = min((m.time_s for m in right.values() if m.time_s), default=None)
        best_energy = min((m.energy_j for m in right.values() if m.energy_j), default=None)
        if ours is None or not ours.time_s or not ours.energy_j or not best_time or not best_energy:
            why = own.get(SELECTED)
            print(
                f"{program:22} {why.status if why else 'not measured'} {why.reason if why else ''}"
            )
            continue
        ratios[program] = ours.time_s / best_time, ours.energy_j / best_energy
        print(
            f"{program:22} {ours.time_s * 1e3:12.3f} {ours.energy_j:9.4f} {best_time * 1e3:10.3f} "
            f"{best_energy:9.4f} {len(right):3} {ratios[program][0]:7.3f} {ratios[program][1]:7.3f}"
        )
    if ratios:
        worst = max(ratios, key=lambda program: ratios[program][1])
        print(
            f"geometric mean of {len(ratios)}: time "
            f"{geometric_mean([time_ratio for time_ratio, _ in ratios.values()]):.3f}, energy "
            f"{geometric_mean([energy for _, energy in ratios.values()]):.3f}; "
            f"worst {worst}, {ratios[worst][1]:.3f}. Below 1 the selected layout is better."
        )
    for program, own in sorted(programs.items()):
        for name, one in sorted(own.items()):
            if one.status != "ok":
                print(f"{program}, {name}: {one.status}: {one.reason}")


def main() -> None:
    """Run a step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("prepare", help="generate the programs; needs no card")
    second = steps.add_parser("measure", help="measure them, on the machine with the card")
    rows = steps.add_parser("rows", help="write what was measured with the plans")
    rows.add_argument("--output", type=Path, required=True)
    third = steps.add_parser("report", help="print what was measured")
    for step in (first, second, rows):
        step.add_argument("directory", type=Path)
    first.add_argument("--gpu", default="h200")
    first.add_argument("--random", type=int, default=8, help="random layouts of each program")
    first.add_argument("--seed", type=int, default=1)
    first.add_argument("--sources", type=Path, nargs="+", help="other programs")
    for step in (second, third, rows):
        step.add_argument("--results", type=Path, default=FILE)
    second.add_argument("--budget", type=float, default=600.0, help="seconds in all")
    options = parser.parse_args()
    if options.step == "prepare":
        sources = options.sources or sorted(PROGRAMS.glob("*.c"))
        prepare_all(options.directory, sources, options.gpu, options.random, options.seed)
    elif options.step == "measure":
        measure_all(options.directory, options.results, options.budget)
    elif options.step == "rows":
        write_rows(options.directory, options.results, options.output)
    else:
        report(options.results)


if __name__ == "__main__":
    main()
