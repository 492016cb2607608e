"""Every kernel through PPCG: its default, our sizes, the paper's, and the best of random ones.

    python benchmarks/ppcg.py draw DIR                        # where eatss is installed
    python benchmarks/ppcg.py generate DIR --ppcg BINARY      # where PPCG is
    python benchmarks/ppcg.py measure DIR --results R         # where the card is
    python benchmarks/ppcg.py report --results R              # prints what was measured
    python benchmarks/ppcg.py all DIR --ppcg BINARY           # all four, on one machine

The paper's Fig. 7 on the reader's own card. ``draw`` lists variants: PPCG without sizes
(``default``), with the sizes of ``eatss select`` (``selected``), with those of the published model
(``paper``), with one size one more or less than selected (``near``), and with any sizes at random.
``generate`` has PPCG write them, or ``measure --ppcg`` does on the way. ``measure`` compiles them
so that only the device part runs, again and again, one after the other; it compares
results with the default's, and takes time and energy in one window. Results are JSON, one row a
line; measuring again adds what is missing. ``measure`` needs NumPy, SciPy, NVML and nvcc; it never
touches clocks or power limits. A process a card (``--card``, ``--share``) measures on several at
once, each its own programs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ppcg_records import DEFAULT, Row, load_rows
from benchmarks.ppcg_variants import (
    SETTINGS,
    Generation,
    Request,
    draw,
    generate,
    given_variants,
)
from benchmarks.recorded import geometric_mean
from eatss.base.shipped import data_directory

RESULTS = Path("ppcg-results.jsonl")

FAR = 10
"""Defaults that take more times as much are so bad that they would make up a mean."""


def draw_all(options: argparse.Namespace) -> None:
    """List the variants."""
    chosen = None if options.kernels is None else set(options.kernels.split(","))
    sources = sorted(options.sources.glob("*.c"))
    settings = dict(SETTINGS)
    for one in options.settings:
        name, _, arguments = one.partition(":")
        settings[name] = arguments
    draw(
        options.directory,
        Request(
            gpu=options.gpu,
            kernels=tuple(s for s in sources if chosen is None or s.stem in chosen),
            dtypes=tuple(options.dtype.split(",")),
            settings=settings,
            given=() if options.given is None else given_variants(options.given),
            random=options.random,
            near=options.near,
            seed=options.seed,
        ),
    )


def generate_all(options: argparse.Namespace) -> None:
    """Generate them."""
    generate(options.directory, generation_of(options))


def generation_of(options: argparse.Namespace) -> Generation:
    """Return how PPCG is to be run."""
    return Generation(
        ppcg=options.ppcg,
        sources=options.sources,
        include=tuple(options.include),
        timeout_s=options.ppcg_timeout,
    )


def measure_all(options: argparse.Namespace) -> None:
    """Measure them."""
    from benchmarks.ppcg_measure import MeasureRequest, measure  # noqa: PLC0415

    share, _, shares = options.share.partition("/")
    measure(
        options.directory,
        MeasureRequest(
            results=options.results,
            window_s=options.window,
            settle_s=options.settle,
            repeat_default=options.repeat_default,
            budget_s=options.budget,
            longest_run_s=options.longest_run,
            warm_up_s=options.warm_up,
            far=options.far,
            nvcc=options.nvcc,
            card=options.card,
            share=int(share),
            shares=int(shares),
            generation=None if options.ppcg is None else generation_of(options),
        ),
    )


def report(paths: Sequence[Path]) -> None:
    """Print default, selected, paper and the best tried of every program."""
    rows = load_rows(paths)
    programs = sorted({(row.dtype, row.kernel) for row in rows})
    dtypes = sorted({dtype for dtype, _ in programs})
    for dtype in dtypes:
        _report_one(dtype, rows, [kernel for own, kernel in programs if own == dtype])
    failures = [row for row in rows if row.status not in ("ok", "alias")]
    print(f"\n{len(failures)} of {len(rows)} rows failed or are not right:")
    for row in failures:
        print(f"  {row.kernel} {row.dtype} {row.variant}: {row.status}: {row.reason}")


def _report_one(dtype: str, rows: Sequence[Row], kernels: Sequence[str]) -> None:
    print(
        f"\n{dtype}\n{'':16} {'default':>20} {'selected':>20} {'paper':>20} "
        f"{'least energy tried':>31} {'default/selected':>17} {'selected/best':>14}"
    )
    print(
        f"{'kernel':16} " + f"{'ms':>10} {'J':>9} " * 3 + f"{'ms':>10} {'J':>9} {'':>10} "
        f"{'time':>8} {'energy':>8} {'energy':>14}"
    )
    searched: list[float] = []
    ratios: dict[str, list[float]] = {"time": [], "energy": [], "best": []}
    for kernel in kernels:
        own = [r for r in rows if (r.kernel, r.dtype) == (kernel, dtype) and r.status == "ok"]
        named = {
            name: _mean([row for row in own if row.variant == name])
            for name in {row.variant for row in own}
        }
        for row in rows:
            alias = (row.kernel, row.dtype, row.status) == (kernel, dtype, "alias")
            if alias and row.reason in named:
                named[row.variant] = named[row.reason]
        line = f"{kernel:16} "
        for name in (DEFAULT, "selected", "paper"):
            line += _columns(named.get(name))
        best = min(
            ((joule, name) for name, (_, joule) in named.items() if joule is not None),
            default=None,
        )
        line += _columns(None if best is None else named[best[1]])
        line += f"{'-' if best is None else best[1]:>10} "
        default, selected = named.get(DEFAULT), named.get("selected")
        for place, what in ((0, "time"), (1, "energy")):
            before = default[place] if default else None
            after = selected[place] if selected else None
            line += _ratio(before, after, ratios[what], 8)
        line += _ratio(
            selected[1] if selected else None, best[0] if best else None, ratios["best"], 14
        )
        print(line)
        if selected and selected[1] and best and any("random" in name for name in named):
            searched.append(selected[1] / best[0])
    print(
        f"geometric means: default/selected time {geometric_mean(ratios['time']):.3f}"
        f" and energy {geometric_mean(ratios['energy']):.3f} ({len(ratios['energy'])} kernels),"
        f" selected/best energy {geometric_mean(ratios['best']):.3f}"
        f" ({len(ratios['best'])} kernels)"
    )
    near = [ratio for ratio in ratios["energy"] if ratio <= FAR]
    print(
        f"energy of default/selected where it is at most {FAR}: {geometric_mean(near):.3f}"
        f" ({len(near)} kernels); selected/best of those with random variants:"
        f" {geometric_mean(searched):.3f} ({len(searched)} kernels)"
    )


def _mean(rows: Sequence[Row]) -> tuple[float | None, float | None]:
    times = [row.time_ms for row in rows if row.time_ms is not None]
    energies = [row.energy_j for row in rows if row.energy_j is not None]
    return (
        sum(times) / len(times) if times else None,
        sum(energies) / len(energies) if energies else None,
    )


def _columns(pair: tuple[float | None, float | None] | None) -> str:
    time_ms, energy_j = pair or (None, None)
    first = "-" if time_ms is None else f"{time_ms:.3f}"
    second = "-" if energy_j is None else f"{energy_j:.4f}"
    return f"{first:>10} {second:>9} "


def _ratio(before: float | None, after: float | None, kept: list[float], width: int) -> str:
    if before is None or after is None:
        return f"{'-':>{width}} "
    kept.append(before / after)
    return f"{before / after:{width}.3f} "


def main() -> None:
    """Run a step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("draw", help="list the variants; needs no card and no PPCG")
    second = steps.add_parser("generate", help="have PPCG write them; needs no card")
    third = steps.add_parser("measure", help="measure them, on the machine with the card")
    fourth = steps.add_parser("report", help="print what was measured")
    every = steps.add_parser("all", help="all four steps")
    for step in (first, second, third, every):
        step.add_argument("directory", type=Path)
    for step in (first, second, third, every):
        step.add_argument("--sources", type=Path, default=data_directory("kernels"))
    for step in (first, every):
        step.add_argument("--gpu", default="h200")
        step.add_argument("--kernels", help="names with commas between; all by default")
        step.add_argument("--dtype", default="double,float")
        step.add_argument("--random", type=int, default=30, help="random variants of each program")
        step.add_argument("--near", type=int, default=0, help="variants beside what is selected")
        step.add_argument("--seed", type=int, default=1)
        step.add_argument(
            "--settings",
            action="append",
            default=[],
            metavar="NAME:OPTIONS",
            help="another variant, with what eatss select prints with these options",
        )
        step.add_argument(
            "--given", type=Path, help="CSV of more variants: kernel,dtype,name,arguments"
        )
    for step in (second, third, every):
        step.add_argument("--ppcg", type=Path, required=step is not third, help="the binary")
        step.add_argument("--ppcg-timeout", type=float, default=60.0, help="seconds of one run")
        step.add_argument("-I", dest="include", action="append", default=[], metavar="DIR")
    for step in (third, every):
        step.add_argument("--window", type=float, default=0.5, help="seconds of load")
        step.add_argument("--settle", type=float, default=0.25, help="seconds of load before it")
        step.add_argument("--repeat-default", type=int, default=20, help="variants between two")
        step.add_argument("--budget", type=float, default=math.inf, help="seconds in all")
        step.add_argument("--longest-run", type=float, default=30.0, help="seconds of one run")
        step.add_argument("--warm-up", type=float, default=10.0)
        step.add_argument(
            "--far", type=float, default=10.0, help="times the default's time, no energy above"
        )
        step.add_argument("--nvcc", default="nvcc")
        step.add_argument("--card", type=int, default=0, help="its number as nvidia-smi has it")
        step.add_argument("--share", default="0/1", metavar="I/N", help="every N-th program from I")
        step.add_argument("--results", type=Path, default=RESULTS)
    fourth.add_argument("--results", type=Path, nargs="+", default=[RESULTS])
    options = parser.parse_args()
    for name, work in (("draw", draw_all), ("generate", generate_all), ("measure", measure_all)):
        if options.step in (name, "all"):
            work(options)
    if options.step == "all":
        report([options.results])
    if options.step == "report":
        report(options.results)


if __name__ == "__main__":
    main()
