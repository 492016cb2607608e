"""Where single choices stand in the distribution of all variants [EATSS, Fig. 7]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from eatss.evaluation.population import Floats, Population, of_role
from eatss.evaluation.tradeoff import Figures, fastest, figures_of, thriftiest
from eatss.store.nouns import Role, Row

ChoiceName: TypeAlias = Literal["median", "default", "paper", "ours", "fastest", "least energy"]

ROLES: tuple[tuple[ChoiceName, Role], ...] = (
    ("default", "default"),
    ("paper", "paper"),
    ("ours", "ours"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        ratios = [_ratios(mine, theirs) for mine, theirs in both if mine and theirs]
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


def _ratios(mine: Figures, theirs: Figures) -> tuple[float, float | None]:
    speedup = theirs.time_s / mine.time_s
    if mine.energy_j is None or theirs.energy_j is None:
        return speedup, None
    return speedup, mine.energy_j / theirs.energy_j


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
