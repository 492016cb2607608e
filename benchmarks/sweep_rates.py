"""How fast two sweeps of one program went, and how far they agree.

    python benchmarks/sweep_rates.py ONE.db TWO.db --first 33,51 --second 24,60

Variants a minute of the first pass in a stretch of each sweep, in seconds of the sweep, then over
all of it but its first five variants; how times and energies differ of variants that both have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eatss import read_sweep
from eatss.tune.rows import Row

STARTING = 5


def main() -> None:
    """Print the rates and the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one", type=Path)
    parser.add_argument("two", type=Path)
    for option in ("--first", "--second"):
        parser.add_argument(option, required=True, help="FROM,TO in seconds")
    given = parser.parse_args()
    one, two = ([*first_rows(path)] for path in (given.one, given.two))
    stretches = (stretch(given.first), stretch(given.second))
    for name, rows, (begin, end) in zip(("one", "two"), (one, two), stretches, strict=True):
        cards = len({row.card for row in rows})
        inside = rate([row.at_s for row in rows if begin <= row.at_s <= end])
        whole = rate([row.at_s for row in rows][STARTING - 1 :])
        print(f"{name}: {cards} cards, {inside:.1f} a minute from {begin:g} to {end:g} s, ", end="")
        print(f"{whole:.1f} over all after the first {STARTING}")
    known = {row.variant: row for row in one}
    both = [(known[row.variant], row) for row in two if row.variant in known]
    for what in ("time_s", "energy_j"):
        apart = sorted(100 * abs(getattr(b, what) / getattr(a, what) - 1) for a, b in both)
        words = f"median {median(apart):.2f} %, most {apart[-1]:.1f} %"
        print(f"{what} of {len(both)} variants in both: {words} apart")
    for row_name, share in (("time_s", 0.2), ("energy_j", 1.2)):
        near = sum(
            100 * abs(getattr(b, row_name) / getattr(a, row_name) - 1) <= share for a, b in both
        )
        print(f"{row_name}: {near} within {share:g} %")


def first_rows(store: Path) -> Sequence[Row]:
    """Return the measured rows of the first pass without a role, in their order."""
    rows = read_sweep(store, measurements=False).rows
    found = [row for row in rows if row.stage == "first" and not row.role and row.measured]
    return sorted(found, key=lambda row: row.at_s)


def stretch(text: str) -> tuple[float, float]:
    """Read ``33,51``."""
    begin, end = map(float, text.split(","))
    return begin, end


def rate(moments_s: Sequence[float]) -> float:
    """Return how many come a minute."""
    return 60 * (len(moments_s) - 1) / (moments_s[-1] - moments_s[0])


if __name__ == "__main__":
    main()
