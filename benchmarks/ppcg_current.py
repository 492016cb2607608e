"""What today's selection for PPCG took where it was measured: never worse than the default?

    python benchmarks/ppcg_current.py         # selects every kernel, looks its arguments up

Each kernel is selected now, in both types, and its arguments for PPCG are looked up among all rows
that were ever measured through a ppcg. It needs neither a card nor a ppcg.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from benchmarks.ppcg_records import DEFAULT, Row, load_rows
from benchmarks.recorded import RESULTS, geometric_mean
from eatss.base.shipped import data_directory

RUNS = (
    *(f"variants-{number}" for number in (13, 11, 10, 9, 7, 8, 6, 5, 4, 3, 2, 1)),
    *("ppcg-5", "ppcg-4", "ppcg-3", "ppcg-2", "ppcg"),
    *(f"ppcg-tuning-{number}" for number in (3, 2, 1)),
)
"""Runs with rows, those that are asked first in front."""

MANY = 30
"""Random variants of a kernel from which on the choice is held against the best of them."""

TYPES: tuple[Literal["double", "float"], ...] = ("double", "float")


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """A kernel as it is selected now.

    ``state`` is ``default`` (PPCG's own sizes), ``as default`` (other arguments, the same code),
    ``measured`` or ``not measured``. ``time`` and ``energy`` are the default's over the selected,
    ``None`` where PPCG's default does not launch.
    """

    kernel: str
    dtype: str
    state: str
    run: str = ""
    time: float | None = None
    energy: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A kernel beside the random variants that were ever measured of it.

    ``ratio`` is what today's choice takes over the least energy tried, each over the default of its
    own run where PPCG's default launches; at least 1, as the choice itself is among them.
    """

    kernel: str
    random: int
    ratio: float


@cache
def current(results: Path) -> list[Current]:
    """Return every kernel of ``kernels/`` in both types."""
    runs = {name: load_rows([_file(results, name)]) for name in RUNS}
    found = []
    for dtype in TYPES:
        for source in sorted(data_directory("kernels").glob("*.c")):
            arguments = eatss.select(source, gpu="h200", dtype=dtype).ppcg_arguments
            if not arguments:
                found.append(Current(kernel=source.stem, dtype=dtype, state="default"))
            else:
                found.append(_looked_up(source.stem, dtype, " ".join(arguments), runs))
    return found


def _looked_up(
    kernel: str, dtype: str, arguments: str, runs: Mapping[str, Sequence[Row]]
) -> Current:
    for name, rows in runs.items():
        own = [row for row in rows if (row.kernel, row.dtype) == (kernel, dtype)]
        mine = [row for row in own if row.arguments == arguments]
        usual = [row for row in own if row.variant == DEFAULT and row.status == "ok"]
        if any((row.status, row.reason) == ("alias", DEFAULT) for row in mine):
            return Current(kernel=kernel, dtype=dtype, state="as default", run=name)
        mine = [row for row in mine if row.status == "ok" and row.energy_j is not None]
        if mine:
            return Current(
                kernel=kernel,
                dtype=dtype,
                state="measured",
                run=name,
                time=_ratio([r.time_ms for r in usual], [r.time_ms for r in mine]),
                energy=_ratio([r.energy_j for r in usual], [r.energy_j for r in mine]),
            )
    return Current(kernel=kernel, dtype=dtype, state="not measured")


def beside_random(results: Path, found: Sequence[Current], least: int) -> list[Tried]:
    """Return the kernels of which the choice and so many random variants were measured."""
    runs = [load_rows([_file(results, name)]) for name in RUNS]
    tried = []
    for one in [one for one in found if one.state != "not measured"]:
        gains, random = [one.energy or 1.0], 0
        for rows in runs:
            own = [row for row in rows if (row.kernel, row.dtype) == (one.kernel, one.dtype)]
            usual = [r.energy_j for r in own if r.variant == DEFAULT and r.status == "ok"]
            mine = [r for r in own if r.variant.startswith("random") and r.status == "ok"]
            ratios = [_ratio(usual, [row.energy_j]) for row in mine]
            random += len([ratio for ratio in ratios if ratio is not None])
            gains += [ratio for ratio in ratios if ratio is not None]
        if random >= least:
            tried.append(Tried(kernel=one.kernel, random=random, ratio=max(gains) / gains[0]))
    return tried


def _file(results: Path, run: str) -> Path:
    plain = results / f"{run}.jsonl"
    return plain if plain.exists() else plain.with_suffix(".jsonl.xz")


def _ratio(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    usual, ours = ([one for one in amounts if one is not None] for amounts in (before, after))
    return statistics.mean(usual) / statistics.mean(ours) if usual and ours else None


def report(results: Path) -> None:
    """Print the kernels, and what they take in the mean."""
    every = current(results)
    print(f"{'kernel':16} {'type':7} {'default/selected: time':>23} {'energy':>7}  run")
    for one in every:
        print(
            f"{one.kernel:16} {one.dtype:7} {_cell(one.time):>23} {_cell(one.energy):>7}  "
            f"{one.run if one.state == 'measured' else one.state}"
        )
    for dtype in TYPES:
        own = [one for one in every if one.dtype == dtype]
        known = [one for one in own if one.state != "not measured"]
        times = [one.time or 1.0 for one in known if one.state != "measured" or one.time]
        energies = [one.energy or 1.0 for one in known if one.state != "measured" or one.energy]
        print(
            f"{dtype}: geometric means of {len(energies)} kernels: time "
            f"{geometric_mean(times):.3f}, energy {geometric_mean(energies):.3f}; least "
            f"{min(times):.3f} and {min(energies):.3f}; {len(own) - len(known)} not measured"
        )
    tried = beside_random(results, every, MANY)
    print(f"\n{'kernel':16} {'random':>6} {'selected/best: energy':>23}")
    for kernel in tried:
        print(f"{kernel.kernel:16} {kernel.random:6} {kernel.ratio:23.3f}")
    mean = geometric_mean([kernel.ratio for kernel in tried])
    print(
        f"geometric mean of {len(tried)}: {mean:.3f}. Random variants of all runs (double), each "
        "over the default of its\nown run; of some forty the best is also the luckiest.\n"
    )
    print(
        "The default's amount over the selected one's, in one run. A kernel that keeps the\n"
        "default, or has the same code, counts as 1. Measured and without numbers: PPCG's default\n"
        "does not launch."
    )


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    report(RESULTS)
