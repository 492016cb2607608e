"""Stencils over time: steps apart, time tiles, and tiles drawn at random, by turns.

    python benchmarks/stencils.py prepare DIR --random 24 [--unseen]           # anywhere
    python benchmarks/before_and_after.py run DIR -o FILE                      # where the card is
    python benchmarks/stencils.py report DIR FILE                              # the table

``before`` are steps apart, ``after`` what is selected. ``expected.json`` in DIR has what was
predicted of each program. Beside them stand kernels of the same form that were written by hand: in
the same run, if there are rows of ``hand``, else of 27 November 2026 on another H200 (120 steps of
8192 x 8192 or 512 x 512 x 512 cells). Those of ``programs/stencils`` (``--unseen``) were written
when the code and its figures were frozen; they are doubles and floats by turns. What was measured:

    cd benchmarks/results/h200
    python ../../stencils.py report stencils stencils/rows.json
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, product
from operator import itemgetter
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.before_and_after import AFTER, BEFORE
from benchmarks.recorded import geometric_means
from benchmarks.windows import Row, by_workload, read_rows
from eatss.analysis.layout import TimeTile, mapped
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.choose.time_tiles import candidates
from eatss.cost.cuda_model import CudaModel
from eatss.cost.terms import predict
from eatss.cost.time_tiles import TilePrices
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodeRequest
from eatss.lower.time_tiles import time_runs_for
from eatss.session.session import Session

H200 = load_profile("h200")
UNSEEN = Path(__file__).parent / "programs" / "stencils"
DTYPES = ("double", "float")
HAND = "hand"
BY_HAND: Mapping[tuple[str, str], tuple[float, float]] = {
    ("j2d5pt", "double"): (12.6, 8.7), ("j2d5pt", "float"): (6.5, 3.9),
    ("box2d1r", "double"): (14.9, 13.3), ("box2d1r", "float"): (7.0, 5.1),
    ("gradient2d", "double"): (26.8, 21.8), ("gradient2d", "float"): (17.5, 10.6),
    ("star3d1r", "double"): (42.2, 32.9), ("star3d1r", "float"): (22.5, 16.0),
    ("jacobi-2d", "double"): (5.7, 4.6), ("jacobi-2d", "float"): (4.43, 2.78),
    ("fdtd-2d", "double"): (15.0, 12.1), ("fdtd-2d", "float"): (6.7, 5.7),
}  # fmt: skip
"""Milliseconds and joules of kernels written by hand."""

SIZES: Mapping[str, Mapping[str, int]] = {
    "jacobi-2d": {"N": 8192, "TSTEPS": 60},
    "fdtd-2d": {"NX": 8192, "NY": 8192, "TMAX": 60},
    "heat-3d": {"N": 512, "TSTEPS": 15},
}
"""Sizes of shipped kernels; other stencils have those of their text."""


def _at(*offset: int) -> str:
    return "A[t % 2]" + "".join(f"[{c} + {o}]" for c, o in zip("ijk", offset, strict=False))


def _star(dims: int, radius: int) -> Iterator[tuple[int, ...]]:
    for own in product(range(-radius, radius + 1), repeat=dims):
        if sum(map(bool, own)) <= 1:
            yield own


def _sum(points: Iterator[tuple[int, ...]], total: float = 1.0) -> str:
    """Return a weighted sum. Weights add up to ``total``, so that values stay ordinary numbers."""
    own = [*points]
    unit = total / sum(range(11, 11 + len(own)))
    return " + ".join(f"{unit * (11 + at):.5f}f * {_at(*one)}" for at, one in enumerate(own))


def _difference(*offset: int) -> str:
    return f"({_at(0, 0)} - {_at(*offset)})"


def _box(dims: int, radius: int) -> Iterator[tuple[int, ...]]:
    return product(range(-radius, radius + 1), repeat=dims)


_BESIDE = map(_difference, (-1, 1, 0, 0), (0, 0, 1, -1))
_SQUARES = " + ".join(f"{one} * {one}" for one in _BESIDE)
STENCILS: Mapping[str, tuple[int, int, str]] = {
    "j2d5pt": (2, 1, f"({_sum(_star(2, 1), 118)}) / 118"),
    "j2d9pt": (2, 2, f"({_sum(_star(2, 2), 118)}) / 118"),
    "box2d1r": (2, 1, _sum(_box(2, 1))),
    "box2d2r": (2, 2, _sum(_box(2, 2))),
    "gradient2d": (2, 1, f"{_at(0, 0)} + 1.0f / sqrt(0.0001f + {_SQUARES})"),
    "star3d1r": (3, 1, _sum(_star(3, 1))),
    "j3d27pt": (3, 1, f"({_sum(_box(3, 1), 159)}) / 159"),
}
"""Dimensions, radius, and the value of a cell."""


def text(name: str, dtype: str) -> str:
    """Return the C of a stencil."""
    if name not in STENCILS and name not in SIZES:
        return (UNSEEN / f"{name}.c").read_text(encoding="utf-8")
    if name in SIZES:
        return (data_directory("kernels") / f"{name}.c").read_text(encoding="utf-8")
    dims, radius, value = STENCILS[name]
    root = "sqrt" if dtype == "double" else "sqrtf"
    value = value.replace("sqrt", root)
    loops = "".join(f"for (int {c} = {radius}; {c} < N - {radius}; {c}++) " for c in "ijk"[:dims])
    here = "".join(f"[{c}]" for c in "ijk"[:dims])
    return (
        "#ifndef DATA_TYPE\n#define DATA_TYPE double\n#endif\n"
        f"#ifndef N\n#define N {8192 if dims == 2 else 512}\n#endif\n"
        "#ifndef STEPS\n#define STEPS 120\n#endif\n"
        f"{dtype} {root}({dtype});\nvoid kernel(DATA_TYPE A[2]{'[N]' * dims})\n{{\n#pragma scop\n"
        f"for (int t = 0; t < STEPS; t++) {loops}\n    A[(t + 1) % 2]{here} = {value};\n"
        "#pragma endscop\n}\n"
    )


def prepare(folder: Path, count: int, *, unseen: bool) -> None:
    """Write the programs of all stencils, and what is expected of them."""
    expected: dict[str, dict[str, tuple[float, float]]] = {}
    known = product((*STENCILS, *SIZES), DTYPES)
    names = sorted(path.stem for path in UNSEEN.glob("*.c"))
    for name, dtype in zip(names, cycle(DTYPES), strict=False) if unseen else known:
        place = folder / f"{name}-{dtype}"
        place.mkdir(parents=True)
        source = place.with_suffix(".c")
        source.write_text(text(name, dtype), encoding="utf-8")
        defines = [f"DATA_TYPE={dtype}", *(f"{n}={v}" for n, v in SIZES.get(name, {}).items())]
        session = Session(source, Reading(defines=tuple(defines)), code=True)
        expected[place.name] = dict(_written(session, place, count))
        print(place.name, *expected[place.name][AFTER], flush=True)
    (folder / "expected.json").write_text(json.dumps(expected), encoding="utf-8")


def _written(
    session: Session, place: Path, count: int
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Write the programs of one stencil; yield the seconds and joules that are expected."""
    options = SelectOptions(target="cuda")
    apart, tiled = (session.select(H200, options, tile_time=on) for on in (False, True))
    programs = {BEFORE: (apart, _total(apart)), AFTER: (tiled, _total(tiled))}
    for number, (tile, found) in enumerate(_drawn(session, _total(apart), place.name, count)):
        first, *others = apart.kernels
        own = replace(apart, kernels=(replace(first, time_tile=tile), *others))
        programs[f"random-{number:02}"] = own, found
    for label, (selection, found) in programs.items():
        recipe = session.recipe(selection, H200, CodeRequest())
        session.write(session.generate(recipe, H200), place / label)
        yield label, found


def _total(selection: Selection) -> tuple[float, float]:
    known = [one.predicted for one in selection.kernels if one.predicted is not None]
    return sum(one.time_s for one in known), sum(one.energy_j for one in known)


def _drawn(
    session: Session, apart: tuple[float, float], seed: str, count: int
) -> Iterator[tuple[TimeTile, tuple[float, float]]]:
    """Yield tiles drawn from all that may be chosen, and what is expected of all steps."""
    program = session.analysed
    runs = time_runs_for(program, lambda: [one.scheduled for one in session.symbolic.regions])
    if not runs:
        return
    (run,) = runs
    facts = [one for one in program.facts if one.name in run.kernels]
    statements = {one.name: one for own in facts for one in own.work.statements}
    model = CudaModel.of(facts[0], H200)
    every: list[tuple[TimeTile, tuple[float, float]]] = []
    for _, plan in run.plans:
        tiles = candidates(run, plan)
        prices = TilePrices(run=run, plan=plan, tile=tiles, statements=statements, model=model)
        places = np.flatnonzero(prices.fits)
        if prices.launches and len(places):
            prices = replace(prices, tile=mapped(itemgetter(places), tiles))
            found = predict(prices.demand, model.card, model.constants)
            rest = 1.0 - prices.launches * plan.depth / run.steps
            for row in range(len(places)):
                tile = mapped(int, mapped(itemgetter(row), prices.tile))
                time_s, energy_j = float(found.time_s[row]), float(found.energy_j[row])
                every.append((tile, (time_s + rest * apart[0], energy_j + rest * apart[1])))
    every = [one for one in every if np.isfinite(one[1]).all()]
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    yield from rng.sample(every, min(count, len(every)))


def report(folder: Path, rows: Sequence[Row]) -> None:
    """Print what each stencil takes apart, in tiles and by hand, and how good the choice is."""
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    titles = ("apart ms, J", "tiles ms, J", "over by hand", "expected", "of best random")
    print(f"{'stencil':18}" + "".join(f"{title:>18}" for title in titles))
    gains: list[tuple[float, float]] = []
    for name, every in by_workload(rows).items():
        own = {label: row for label, row in every.items() if row.status == "ok"}
        if not {BEFORE, AFTER} <= {*own}:
            print(f"{name:18} not measured")
            continue
        apart, tiles = own[BEFORE], own[AFTER]
        gains.append(apart.over(tiles))
        stencil, _, dtype = name.rpartition("-")
        by_hand = BY_HAND.get((stencil, dtype))
        if HAND in own:
            by_hand = 1e3 * own[HAND].time_s, own[HAND].energy_j
        hand = "-"
        if by_hand is not None:
            hand = f"{1e3 * tiles.time_s / by_hand[0]:.2f}, {tiles.energy_j / by_hand[1]:.2f}"
        time_s, energy_j = expected[name][AFTER]
        found = [one.energy_j for label, one in own.items() if label.startswith("random")]
        best = f"{tiles.energy_j / min(found):.2f}" if found else "-"
        cells = (
            f"{1e3 * apart.time_s:.2f}, {apart.energy_j:.2f}",
            f"{1e3 * tiles.time_s:.2f}, {tiles.energy_j:.2f}",
            hand,
            f"{time_s / tiles.time_s:.2f}, {energy_j / tiles.energy_j:.2f}",
            best,
        )
        print(f"{name:18}" + "".join(f"{cell:>18}" for cell in cells))
    if gains:
        time, energy = geometric_means(gains)
        print(f"\napart over tiles, in the geometric mean: time {time:.2f}, energy {energy:.2f}")
    ranks = [one for one in _ranks(expected, rows) if one is not None]
    if ranks:
        print(f"rank of expected and measured energies, median of stencils: "
              f"{statistics.median(ranks):.2f}")  # fmt: skip


def _ranks(
    expected: Mapping[str, Mapping[str, Sequence[float]]], rows: Sequence[Row]
) -> Iterator[float | None]:
    """Yield the rank correlation of each stencil's programs, ``None`` of fewer than four."""
    for name, known in expected.items():
        pairs = [
            (known[row.program][1], row.energy_j)
            for row in rows
            if row.workload == name and row.status == "ok" and row.program in known
        ]
        if len(pairs) < 4:
            yield None
            continue
        yield float(spearmanr(*zip(*pairs, strict=True)).statistic)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=("prepare", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--random", type=int, default=24)
    parser.add_argument("--unseen", action="store_true")
    given = parser.parse_args(arguments)
    if given.what == "prepare":
        prepare(given.folder, given.random, unseen=given.unseen)
    else:
        report(given.folder, read_rows(given.file))


if __name__ == "__main__":
    main()
