"""What predictions are worth: predicted beside measured figures, program by program."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

from benchmarks.recorded import geometric_mean

FEWEST = 5
"""Variants from which a rank correlation says something."""

ALIKE = 1.10
"""Programs whose median variant takes less than so many times the least have nothing to rank."""

LEAST_CORRELATION = 0.01
"""Stands for smaller ones, and negative ones, in geometric means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A variant, measured and predicted; energies in J (NaN where not measured), times in s.

    ``known_time_j`` is the energy that is predicted if the time is known: prices of what runs, and
    constant power for the measured time; of some kinds of code it is not asked.
    """

    energy_j: float
    time_s: float
    predicted_j: float
    predicted_s: float
    known_time_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The variants of a program; ``unpredicted`` ran though the prediction has no figure for them.

    ``half`` says whether constants were fitted to it, or judge them.
    """

    name: str
    half: str
    pairs: Sequence[Pair]
    unpredicted: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Predicted and measured figures of one program, of energy or of time.

    ``rank`` is Spearman's correlation, ``error`` the median factor less 1, ``bias`` the geometric
    mean of predicted over measured, ``chosen`` what the variant predicted best takes over the
    least, ``spread`` what the median variant takes over it. ``errors`` are all, as logarithms.
    """

    rank: float | None
    error: float
    bias: float
    chosen: float
    spread: float
    errors: tuple[float, ...]


Figures = Sequence[tuple[float, float]]
"""Predicted and measured."""

KINDS: Mapping[str, Callable[[Sequence[Pair]], Figures]] = {
    "energy": lambda pairs: [(one.predicted_j, one.energy_j) for one in pairs],
    "time": lambda pairs: [(one.predicted_s, one.time_s) for one in pairs],
    "energy if the time is known": lambda pairs: [
        (one.known_time_j, one.energy_j) for one in pairs if one.known_time_j is not None
    ],
}


def compared(figures: Figures) -> Compared | None:
    """Compare pairs of predicted and measured figures, ``None`` where there are none."""
    known = [(p, m) for p, m in figures if not math.isnan(m)]
    if not known:
        return None
    least = min(measured for _, measured in known)
    logs = [math.log(p / m) for p, m in known]
    rank = math.nan  # also where all are predicted alike
    if len(known) >= FEWEST:
        rank = float(spearmanr([p for p, _ in known], [m for _, m in known]).statistic)
    return Compared(
        rank=None if math.isnan(rank) else rank,
        error=math.exp(statistics.median(abs(one) for one in logs)) - 1,
        bias=math.exp(statistics.mean(logs)),
        chosen=min(known)[1] / least,
        spread=statistics.median(m for _, m in known) / least,
        errors=tuple(map(abs, logs)),
    )


def cell(found: Compared | None, name: str, form: str) -> str:
    """Return a figure of a program as text."""
    value = None if found is None else getattr(found, name)
    return "-" if value is None else format(value, form)


def report(programs: Sequence[Judged]) -> None:
    """Print a line a program, then means."""
    print(
        f"{'program':22} {'half':9} {'n':>3} {'rank J':>7} {'rank s':>7} {'error J':>8} "
        f"{'error s':>8} {'bias J':>7} {'bias s':>7} {'chosen/best':>12}"
    )
    for one in programs:
        energy, time = (compared(KINDS[kind](one.pairs)) for kind in ("energy", "time"))
        print(
            f"{one.name:22} {one.half:9} {len(one.pairs):3} {cell(energy, 'rank', '.2f'):>7} "
            f"{cell(time, 'rank', '.2f'):>7} {cell(energy, 'error', '.0%'):>8} "
            f"{cell(time, 'error', '.0%'):>8} {cell(energy, 'bias', '.2f'):>7} "
            f"{cell(time, 'bias', '.2f'):>7} {cell(energy or time, 'chosen', '.2f'):>12}"
        )
    for half in dict.fromkeys(one.half for one in programs):
        own = [one for one in programs if one.half == half]
        print(f"\n{half} ({len(own)} programs)")
        for kind, figures in KINDS.items():
            _print_mean(kind, [compared(figures(one.pairs)) for one in own])
    skipped = [f"{one.name} {one.unpredicted}" for one in programs if one.unpredicted]
    if skipped:
        print(f"\nran and not predicted: {', '.join(skipped)}")
    print(
        "\nrank: Spearman's correlation of predicted with measured. error: the factor within which "
        "half\nof the variants are, less 1. bias: geometric mean of predicted over measured. "
        "chosen: what the\nvariant predicted best takes over the least measured, in energy where "
        "it was measured, else in time.\nMeans of ranks are geometric; "
        f"{LEAST_CORRELATION} stands for what is less. Programs whose median variant is within\n"
        f"{ALIKE - 1:.0%} of the best count for no rank."
    )


def _print_mean(kind: str, every: Sequence[Compared | None]) -> None:
    found = [one for one in every if one is not None]
    if not found:
        return
    ranks = [one.rank for one in found if one.rank is not None and one.spread >= ALIKE]
    rank = geometric_mean([max(LEAST_CORRELATION, one) for one in ranks])
    of_all = math.exp(statistics.median(share for one in found for share in one.errors)) - 1
    print(
        f"  {kind}: rank {rank:.2f}, least {min(ranks, default=math.nan):.2f} "
        f"({len(ranks)} programs); "
        f"median error {statistics.median(one.error for one in found):.0%}, "
        f"of all layouts {of_all:.0%}; "
        f"chosen/best {geometric_mean([o.chosen for o in found if len(o.errors) >= FEWEST]):.2f}"
    )
