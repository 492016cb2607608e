"""What measurements on a card share: programs made beforehand, results kept as JSON."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eatss.base.shipped import data_directory
from eatss.measurement import measurement_from_dict, measurement_to_dict
from eatss.measurement.card import CompileError
from eatss.measurement.compile import compile_target
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import load_program
from eatss.verify.sizes import complete_sizes

RESULTS = Path(__file__).resolve().parent / "results" / "h200"
"""What was measured on an H200."""

TWO_WINDOWS = MeasureOptions(
    least_window_s=0.8,
    least_updates=6,
    least_windows=2,
    target=0.02,
    warm_up_s=0.0,
    budget_s=1.0,
    timeout_s=30.0,
    restoring="between windows",
)
"""Two windows of 0.8 s a variant, for tables of many variants in one call."""

REJECTED = "rejected.txt"
"""Stands in the folder of a variant that could not be generated, with the reason."""


def prepare(directory: Path, kernel: str, choices: Sequence[str], gpu: str) -> None:
    """Generate ``directory/kernel/choice`` for every choice of ``--tiles``."""
    # not on the machine with the card
    from eatss.measurement.options import parse_tile_choices  # noqa: PLC0415
    from eatss.session.variants import SourceOptions, generate_variants  # noqa: PLC0415

    folder = directory / kernel
    variants, _ = generate_variants(
        data_directory("kernels") / f"{kernel}.c",
        parse_tile_choices(choices),
        SourceOptions(gpu=gpu, force=True),
        folder,
    )
    for variant in variants:
        if variant.directory is None:
            place = folder / variant.label
            place.mkdir(parents=True, exist_ok=True)
            (place / REJECTED).write_text(variant.rejection, encoding="utf-8")
    print(f"{kernel}: {len(variants)} variants")


def prepared(folder: Path) -> tuple[Variant, ...]:
    """Return the variants in ``directory/kernel``, called ``kernel:choice``."""
    variants = []
    for place in sorted(folder.iterdir()):
        label = f"{folder.name}:{place.name}"
        reason = place / REJECTED
        if reason.is_file():
            text = reason.read_text(encoding="utf-8")
            variants.append(Variant(label=label, directory=None, rejection=text))
        else:
            variants.append(Variant(label=label, directory=place))
    return tuple(variants)


def compile_ahead(variants: Iterable[Variant]) -> None:
    """Compile programs for their default sizes, many at once; measuring finds them compiled."""

    def one(directory: Path) -> None:
        program = load_program(directory)
        sizes = complete_sizes(program, {})
        with suppress(CompileError):  # measuring says so
            compile_target(program.compute_capability).compile(program, sizes)

    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 2)) as pool:
        list(pool.map(one, [v.directory for v in variants if v.directory is not None]))


def print_measurement(one: Measurement) -> None:
    """Print a line on a measurement."""
    time_ms = "-" if one.time_s is None else f"{one.time_s * 1e3:.3f} ms"
    energy = "-" if one.energy_j is None else f"{one.energy_j:.4f} J"
    power = "-" if one.power_w is None else f"{one.power_w:.0f} W"
    print(f"{one.variant:28} {one.status:8} {time_ms:>12} {energy:>12} {power:>6} {one.reason}")


def save(measurements: Iterable[Measurement], path: Path) -> None:
    """Write measurements, one a line, so that a later one is seen as such in a difference."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(measurement_to_dict(m)) for m in measurements)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def load(path: Path) -> tuple[Measurement, ...]:
    """Read what :func:`save` wrote."""
    return tuple(measurement_from_dict(d) for d in json.loads(path.read_text(encoding="utf-8")))


def drifted(one: Measurement) -> bool:
    """Tell whether repeated runs spoilt the data: its power may be below that on ordinary data."""
    return any("in a row drift" in note for note in one.notes)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean; NaN of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def geometric_means(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the geometric means of both sides of pairs, NaN where there are none."""
    every = [*pairs]
    return geometric_mean([one for one, _ in every]), geometric_mean([other for _, other in every])


def command_line(
    description: str | None,
    prepare_all: Callable[[Path, str], None],
    measure_all: Callable[[Path, Path], None],
    report: Callable[[Path], None],
) -> None:
    """Run one of the three steps that every benchmark on a card has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step")
    first = steps.add_parser("prepare", help="generate the programs; needs no card")
    first.add_argument("directory", type=Path)
    first.add_argument("--gpu", default="h200")
    second = steps.add_parser("measure", help="measure them, on the machine with the card")
    second.add_argument("directory", type=Path)
    third = steps.add_parser("report", help="print what was measured (the default)")
    for step in (second, third):
        step.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare_all(options.directory, options.gpu)
    elif options.step == "measure":
        started = time.monotonic()
        measure_all(options.directory, options.results)
        print(f"measured in {time.monotonic() - started:.0f} s", file=sys.stderr)
    else:
        report(options.results if options.step else RESULTS)
