"""Where single choices stand among all variants [EATSS, Fig. 7]; predictions checked.

A study over splits of shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from eatss.base.frozen import Names, frozen
from eatss.base.targets import MEASURES, ObjectiveName
from eatss.tune.points import Value
from eatss.tune.population import (
    Figures,
    Floats,
    Population,
    fastest,
    figures_of,
    of_role,
    thriftiest,
)
from eatss.tune.rows import Row, Rows

ChoiceName: TypeAlias = Literal["median", "default", "paper", "ours", "fastest", "least energy"]

ROLES: tuple[Literal["default", "paper", "ours"], ...] = ("default", "paper", "ours")
"""The choices that are variants of a role, which is called like them."""


@frozen
class Standing:
    """The place of one value among ``count``.

    ``rank`` 1 is the best and equal values share the better rank. ``percentile`` is the share of
    variants that are worse, and half of those that are equal, in percent. ``share_of_best`` is at
    most 1.
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
    figures: Figures | None = None
    by_performance: Standing | None = None
    by_efficiency: Standing | None = None
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


def standing(values: Floats, value: float) -> Standing:
    """Return the place of a value among values, of which it is one, the highest first; no NaN."""
    known = values[np.isfinite(values)]
    return Standing(
        rank=int((known > value).sum()) + 1,
        count=int(known.size),
        percentile=float(stats.percentileofscore(known, value, kind="mean")),
        share_of_best=value / float(known.max()),
    )


def choices(found: Population, rows: Rows) -> tuple[Choice, ...]:
    """Return median, default, paper's, ours and the two best, in this order.

    ``rows`` are all of the same size, those that failed too. The median is the variant of median
    performance, of two in the middle the slower one.
    """
    if not len(found):
        return ()
    middle = int(np.argsort(found.performance, kind="stable")[(len(found) - 1) // 2])
    listed = [_choice("median", found, middle)]
    places = {row.variant: place for place, row in enumerate(found.rows)}
    for name in ROLES:
        row, count = of_role(rows, name), sum(one.role == name for one in rows)
        if row is not None and row.variant in places:
            listed.append(_choice(name, found, places[row.variant], count))
        elif row is not None:
            why = f"{row.status}: {row.reason}".removesuffix(": ")
            listed.append(Choice(name=name, reason=why, rows=count))
    listed.append(_choice("fastest", found, fastest(found)))
    low = thriftiest(found)
    if low is not None:
        listed.append(_choice("least energy", found, low))
    return tuple(listed)


COMPARED: tuple[tuple[ChoiceName, ChoiceName], ...] = (
    ("ours", "default"),
    ("paper", "default"),
    ("fastest", "default"),
    ("least energy", "default"),
    ("ours", "paper"),
    ("ours", "fastest"),
    ("ours", "least energy"),
)
"""Choices, and what each is compared with."""


def geometric_means(sweeps: Iterable[tuple[Choice, ...]]) -> tuple[MeanRatios, ...]:
    """Return how choices do against each other over sweeps that have both."""
    listed = [{one.name: one.figures for one in choice} for choice in sweeps]
    found = []
    for choice, over in COMPARED:
        pairs = ((one.get(choice), one.get(over)) for one in listed)
        ratios = [mine.over(theirs) for mine, theirs in pairs if mine and theirs]
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


TOPS = (1, 5, 10, 20)
"""How many of the model's first are tried."""


@frozen
class Regret:
    """Measured cost of the best among the model's first ``tried``, over the least, minus 1."""

    tried: int
    regret: float


@frozen
class PredictionCheck:
    """How the model does over ``samples`` variants, in an objective of ``MEASURES``.

    ``spearman`` is the rank correlation. ``ratio`` is the median of predicted
    over measured, ``low`` and ``high`` its quartiles. ``pick`` is the variant that the model
    prefers.
    """

    objective: ObjectiveName
    samples: int
    spearman: float | None
    ratio: float
    low: float
    high: float
    pick: str
    regrets: tuple[Regret, ...]


def check_prediction(found: Population, objective: ObjectiveName) -> PredictionCheck | None:
    """Set the model beside the measurement; ``None`` where fewer than two have both."""
    of = MEASURES[objective].value
    model = of(found.column("predicted_time_s"), found.column("predicted_energy_j"))
    measured = of(found.time_s, found.energy_j)
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
        ratio=float(middle),
        low=float(low),
        high=float(high),
        pick=found.rows[both[order[0]]].variant,
        regrets=tuple(
            Regret(tried=top, regret=float(y[order[:top]].min() / least - 1)) for top in tops
        ),
    )


STUDIED_APART = ("split", "warp_fraction")
"""Values that have a study of their own [EATSS, Sec. V-D, Fig. 8]."""


@frozen
class SplitBar:
    """The fastest variant at one split of shared memory and one warp fraction.

    ``speedup`` and ``energy`` are ratios to the default; ``variants`` is how many there were.
    """

    split: Value | None
    warp_fraction: Value | None
    variant: str
    variants: int
    speedup: float
    energy: float | None


def value_names(rows: Iterable[Row]) -> Names:
    """Return the names of the space that take two values or more, in the space's order."""
    seen: dict[str, set[Value]] = {}
    for row in rows:
        for name, value in row.values:
            seen.setdefault(name, set()).add(value)
    return tuple(name for name, values in seen.items() if len(values) > 1)


def split_study(found: Population) -> tuple[SplitBar, ...]:
    """Return the fastest variant at each split and warp fraction against the default.

    Empty where neither varies, or the default was not measured.
    """
    names = {*STUDIED_APART} & {*value_names(found.rows)}
    default = of_role(found.rows, "default")
    if not names or default is None:
        return ()
    beside = figures_of(found, found.rows.index(default))
    groups: dict[tuple[Value | None, ...], list[int]] = {}
    for place, row in enumerate(found.rows):
        point = dict(row.values)
        if names & {*point}:
            groups.setdefault(tuple(map(point.get, STUDIED_APART)), []).append(place)
    listed = []
    for values, places in sorted(groups.items(), key=_numbers_first):
        best = figures_of(found, min(places, key=found.time_s.__getitem__))
        speedup, energy = best.over(beside)
        listed.append(
            SplitBar(
                **dict(zip(STUDIED_APART, values, strict=True)),
                variant=best.variant,
                variants=len(places),
                speedup=speedup,
                energy=energy,
            )
        )
    return tuple(listed)


def _numbers_first(group: tuple[tuple[Value | None, ...], object]) -> list[tuple[bool, Value]]:
    return [(isinstance(one, str), -1.0 if one is None else one) for one in group[0]]
