"""Where single choices stand among all variants [EATSS, Fig. 7]; predictions checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from eatss.base.frozen import frozen
from eatss.tune.evaluation.population import Floats, Population, of_role
from eatss.tune.evaluation.tradeoff import Figures, fastest, figures_of, thriftiest
from eatss.tune.store.nouns import BESIDE, Role, Row

ChoiceName: TypeAlias = Literal["median", "default", "paper", "ours", "fastest", "least energy"]

ROLES: tuple[tuple[ChoiceName, Role], ...] = (
    ("default", "default"),
    ("paper", "paper"),
    ("ours", "ours"),
)


@frozen
class Standing:
    """The place of one value among ``count``.

    ``rank`` 1 is the best and equal values share the better rank. ``percentile`` is the share of
    variants that are worse, and half of those that are equal, in percent. ``share_of_best`` is at
    most 1, for time and energy too.
    """

    rank: int
    count: int
    percentile: float
    share_of_best: float


@frozen
class Choice:
    """One choice: its figures and where it stands, or why it has none.

    ``by_efficiency`` is PPW's place, and energy's too: with equal work they order alike.
    ``rows`` counts the rows of its role; of several the one of least energy stands here.
    """

    name: ChoiceName
    figures: Figures | None
    by_performance: Standing | None
    by_efficiency: Standing | None
    reason: str = ""
    rows: int = 1


@frozen
class MeanRatios:
    """Geometric means of a choice's ratios to another over ``sweeps``.

    ``speedup`` and ``ppw`` above 1 are better, ``energy`` below 1; ``energy`` and ``ppw`` are over
    the ``sweeps_with_energy``.
    """

    choice: ChoiceName
    over: ChoiceName
    sweeps: int
    speedup: float
    sweeps_with_energy: int
    energy: float | None
    ppw: float | None


def standing(values: Floats, value: float, *, high_is_good: bool = True) -> Standing:
    """Return the place of a value among values, of which it is one; NaN are left out."""
    known = values[np.isfinite(values)]
    signed, mine = (known, value) if high_is_good else (-known, -value)
    best = float(signed.max())
    return Standing(
        rank=int((signed > mine).sum()) + 1,
        count=int(known.size),
        percentile=float(stats.percentileofscore(signed, mine, kind="mean")),
        share_of_best=mine / best if high_is_good else best / mine,
    )


def choices(found: Population, rows: tuple[Row, ...]) -> tuple[Choice, ...]:
    """Return median, default, paper's, ours and the two best, in this order.

    ``rows`` are all of the same size, those that failed too. The median is the variant of median
    performance, of two in the middle the slower one.
    """
    if not len(found):
        return ()
    middle = int(np.argsort(found.performance, kind="stable")[(len(found) - 1) // 2])
    listed = [_choice("median", found, middle)]
    places = {row.variant: place for place, row in enumerate(found.rows)}
    for name, role in ROLES:
        row = of_role(rows, role)
        count = sum(one.role == role for one in rows)
        if row is None:
            continue
        if row.variant in places:
            listed.append(_choice(name, found, places[row.variant], count))
        else:
            why = f"{row.status}: {row.reason}" if row.reason else row.status
            listed.append(_nothing(name, why, count))
    listed.append(_choice("fastest", found, fastest(found)))
    low = thriftiest(found)
    if low is not None:
        listed.append(_choice("least energy", found, low))
    return tuple(listed)


def geometric_means(
    sweeps: Iterable[tuple[Choice, ...]],
    pairs: Iterable[tuple[ChoiceName, ChoiceName]] = (
        ("ours", "default"),
        ("paper", "default"),
        ("fastest", "default"),
        ("least energy", "default"),
        ("ours", "paper"),
        ("ours", "fastest"),
        ("ours", "least energy"),
    ),
) -> tuple[MeanRatios, ...]:
    """Return how choices do against each other over sweeps that have both."""
    listed = tuple({one.name: one.figures for one in choice} for choice in sweeps)
    found = []
    for choice, over in pairs:
        both = [(one[choice], one[over]) for one in listed if one.get(choice) and one.get(over)]
        ratios = [mine.over(theirs) for mine, theirs in both if mine and theirs]
        energies = [energy for _, energy in ratios if energy is not None]
        if ratios:
            energy = float(stats.gmean(energies)) if energies else None
            found.append(
                MeanRatios(
                    choice=choice,
                    over=over,
                    sweeps=len(ratios),
                    speedup=float(stats.gmean([speed for speed, _ in ratios])),
                    sweeps_with_energy=len(energies),
                    energy=energy,
                    ppw=None if energy is None else 1 / energy,
                )
            )
    return tuple(found)


def _choice(name: ChoiceName, found: Population, place: int, rows: int = 1) -> Choice:
    figures = figures_of(found, place)
    return Choice(
        name=name,
        figures=figures,
        by_performance=standing(found.performance, figures.performance),
        by_efficiency=None
        if figures.efficiency is None
        else standing(found.efficiency, figures.efficiency),
        rows=rows,
    )


def _nothing(name: ChoiceName, why: str, rows: int) -> Choice:
    return Choice(
        name=name, figures=None, by_performance=None, by_efficiency=None, reason=why, rows=rows
    )


Objective: TypeAlias = Literal["time", "energy"]

TOPS = (1, 5, 10, 20)
"""How many of the model's first are tried."""


@frozen
class Regret:
    """Measured cost of the best among the model's first ``tried``, over the least, minus 1."""

    tried: int
    regret: float


@frozen
class PredictionCheck:
    """How ``predicted_time_s`` or ``predicted_energy_j`` does over ``samples`` variants.

    ``spearman`` is the rank correlation, with its p-value. ``ratio`` is the median of predicted
    over measured, ``low`` and ``high`` its quartiles. ``pick`` is the variant that the model
    prefers.
    """

    objective: Objective
    samples: int
    spearman: float | None
    spearman_p: float | None
    ratio: float
    low: float
    high: float
    pick: str
    regrets: tuple[Regret, ...]


def predicted(found: Population, objective: Objective) -> tuple[Floats, Floats]:
    """Return what was predicted and what was measured; NaN where either is not there."""
    if objective == "time":
        return found.column("predicted_time_s"), found.time_s
    return found.column("predicted_energy_j"), found.energy_j


def check_prediction(found: Population, objective: Objective) -> PredictionCheck | None:
    """Set the model beside the measurement; ``None`` where fewer than two have both."""
    model, measured = predicted(found, objective)
    both = np.flatnonzero(np.isfinite(model) & np.isfinite(measured) & (model > 0))
    if both.size < 2:
        return None
    x, y = model[both], measured[both]
    ranked = stats.spearmanr(x, y) if np.ptp(x) > 0 and np.ptp(y) > 0 else None
    low, middle, high = np.quantile(x / y, (0.25, 0.5, 0.75))
    order = np.argsort(x, kind="stable")
    least = y.min()
    tops = [top for top in TOPS if top <= both.size]
    return PredictionCheck(
        objective=objective,
        samples=int(both.size),
        spearman=None if ranked is None else float(ranked.statistic),
        spearman_p=None if ranked is None else float(ranked.pvalue),
        ratio=float(middle),
        low=float(low),
        high=float(high),
        pick=found.rows[both[order[0]]].variant,
        regrets=tuple(
            Regret(tried=top, regret=float(y[order[:top]].min() / least - 1)) for top in tops
        ),
    )


@frozen
class BestSoFar:
    """The best time and energy after so many measured variants and seconds of the sweep."""

    variants: int
    at_s: float
    time_s: float
    energy_j: float | None
    strategy: str


def best_over_time(rows: Iterable[Row]) -> tuple[BestSoFar, ...]:
    """Return an entry a measured row, in the order of time; references are no part of the search.

    Careful rows measure variants again, so only first ones count where there are any.
    """
    measured = [row for row in rows if row.measured and row.stage not in BESIDE]
    first = [row for row in measured if row.stage == "first"] or measured
    found: list[BestSoFar] = []
    time_s, energy_j = np.inf, np.inf
    for count, row in enumerate(sorted(first, key=lambda row: row.at_s), 1):
        time_s = min(time_s, row.time_s or np.inf)
        energy_j = min(energy_j, row.energy_j or np.inf)
        found.append(
            BestSoFar(
                variants=count,
                at_s=row.at_s,
                time_s=float(time_s),
                energy_j=float(energy_j) if np.isfinite(energy_j) else None,
                strategy=row.strategy,
            )
        )
    return tuple(found)
