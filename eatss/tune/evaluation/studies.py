"""Studies over one or two values: levels, heat maps, splits of shared memory, problem sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from eatss.base.frozen import frozen
from eatss.tune.evaluation.population import (
    Floats,
    Population,
    by_sizes,
    is_choice,
    of_role,
    population,
)
from eatss.tune.evaluation.standing import ROLES, ChoiceName
from eatss.tune.evaluation.tradeoff import fastest, known
from eatss.tune.point import Value
from eatss.tune.store.nouns import Row, Sizes

Statistic: TypeAlias = Literal["best", "mean"]
Quantity: TypeAlias = Literal["performance", "efficiency"]

SEARCHED = 10
"""A size with fewer measured variants was not searched: its fastest says nothing."""

STUDIED_APART = ("split", "warp_fraction")
"""Values that have a study of their own [EATSS, Sec. V-D, Fig. 8]."""


@frozen
class Influence:
    """How much of the variance of log time, and of log energy, a value alone explains (ε²)."""

    value: str
    levels: int
    time: float
    energy: float | None


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


@frozen
class SizePoint:
    """What one choice reaches at one problem size."""

    sizes: Sizes
    scale: float
    choice: ChoiceName
    variant: str
    time_s: float
    energy_j: float | None
    power_w: float | None
    performance: float
    efficiency: float | None
    performance_unit: str
    efficiency_unit: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeatMap:
    """A quantity over two values: ``cells[row, column]``, NaN where there is no variant."""

    rows: str
    columns: str
    row_values: tuple[Value, ...]
    column_values: tuple[Value, ...]
    quantity: Quantity
    unit: str
    statistic: Statistic
    cells: Floats
    counts: Floats


def value_names(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the names of the space that take two values or more, in the space's order."""
    seen: dict[str, set[Value]] = {}
    for row in rows:
        for name, value in row.values:
            seen.setdefault(name, set()).add(value)
    return tuple(name for name, values in seen.items() if len(values) > 1)


def influences(found: Population) -> tuple[Influence, ...]:
    """Return the values of the space, the one that explains most of the time first.

    ε² is 1 less the mean square within a value's levels over that of all: η², adjusted for what
    many levels explain by chance; 0 where it would be less. Only values with two variants a level
    on average are listed. Rows that have a role and no point are left out.
    """
    points = population(row for row in found.rows if not is_choice(row.values))
    listed = []
    for name in value_names(points.rows):
        levels = [dict(row.values).get(name) for row in points.rows]
        kinds = len(set(levels))
        if kinds * 2 > len(points):
            continue
        time = _explained(levels, np.log(points.time_s))
        energy = _explained(levels, np.log(points.energy_j))
        if time is None:
            continue
        listed.append(Influence(value=name, levels=kinds, time=time, energy=energy))
    return tuple(sorted(listed, key=lambda one: -one.time))


def heat_map(
    found: Population,
    rows: str,
    columns: str,
    *,
    quantity: Quantity = "performance",
    statistic: Statistic = "best",
) -> HeatMap:
    """Return the best or the mean over all other values for each pair of two values."""
    down, across = _levels(found.rows, rows), _levels(found.rows, columns)
    values = found.performance if quantity == "performance" else found.efficiency
    cells: dict[tuple[int, int], list[float]] = {}
    for row, value in zip(found.rows, values, strict=True):
        point = dict(row.values)
        if rows in point and columns in point and np.isfinite(value):
            place = down.index(point[rows]), across.index(point[columns])
            cells.setdefault(place, []).append(float(value))
    grid, counts = np.full((len(down), len(across)), np.nan), np.zeros((len(down), len(across)))
    for place, inside in cells.items():
        grid[place] = max(inside) if statistic == "best" else sum(inside) / len(inside)
        counts[place] = len(inside)
    unit = found.performance_unit if quantity == "performance" else found.efficiency_unit
    return HeatMap(
        rows=rows,
        columns=columns,
        row_values=down,
        column_values=across,
        quantity=quantity,
        unit=unit,
        statistic=statistic,
        cells=grid,
        counts=counts,
    )


def split_study(found: Population) -> tuple[SplitBar, ...]:
    """Return the fastest variant at each split and warp fraction against the default.

    Empty where neither varies, or the default was not measured.
    """
    names = [name for name in STUDIED_APART if name in value_names(found.rows)]
    default = of_role(found.rows, "default")
    if not names or default is None or not default.time_s:
        return ()
    groups: dict[tuple[Value | None, Value | None], list[Row]] = {}
    for row in found.rows:
        point = dict(row.values)
        if any(name in point for name in names):
            groups.setdefault((point.get("split"), point.get("warp_fraction")), []).append(row)
    listed = []
    for (split, fraction), rows in sorted(groups.items(), key=lambda one: _sortable(one[0])):
        best = min(rows, key=lambda row: row.time_s or np.inf)
        assert best.time_s is not None
        energy = None
        if best.energy_j and default.energy_j:
            energy = best.energy_j / default.energy_j
        listed.append(
            SplitBar(
                split=split,
                warp_fraction=fraction,
                variant=best.variant,
                variants=len(rows),
                speedup=default.time_s / best.time_s,
                energy=energy,
            )
        )
    return tuple(listed)


def size_study(rows: Sequence[Row]) -> tuple[SizePoint, ...]:
    """Return default, paper's, ours and the fastest at each size, by rising size [EATSS, Fig. 12].

    ``scale`` is the geometric mean of the sizes that differ. The fastest stands where ten variants
    or more were measured. Empty where there is one size only.
    """
    groups = by_sizes(rows)
    if len(groups) < 2:
        return ()
    differing = _differing(groups)
    if not differing:
        return ()
    listed: list[SizePoint] = []
    for sizes, own in groups.items():
        found = population(own)
        if not len(found):
            continue
        scale = float(np.exp(np.mean([np.log(dict(sizes)[name]) for name in differing])))
        chosen: list[tuple[ChoiceName, Row | None]] = [
            *((name, of_role(found.rows, role)) for name, role in ROLES),
            ("fastest", found.rows[fastest(found)] if len(found) >= SEARCHED else None),
        ]
        places = {row.variant: k for k, row in enumerate(found.rows)}
        for name, row in chosen:
            if row is not None:
                listed.append(_size_point(found, places[row.variant], scale, name))
    return tuple(sorted(listed, key=lambda one: (one.scale, one.sizes)))


def _differing(groups: Iterable[Sizes]) -> list[str]:
    sizes = [dict(one) for one in groups]
    shared = set.intersection(*(set(one) for one in sizes))
    return [
        name
        for name in sizes[0]
        if name in shared
        and len({one[name] for one in sizes}) > 1
        and all(one[name] > 0 for one in sizes)
    ]


def _size_point(found: Population, place: int, scale: float, choice: ChoiceName) -> SizePoint:
    row = found.rows[place]
    return SizePoint(
        sizes=row.sizes,
        scale=scale,
        choice=choice,
        variant=row.variant,
        time_s=float(found.time_s[place]),
        energy_j=known(found.energy_j[place]),
        power_w=known(found.power_w[place]),
        performance=float(found.performance[place]),
        efficiency=known(found.efficiency[place]),
        performance_unit=found.performance_unit,
        efficiency_unit=found.efficiency_unit,
    )


def _explained(levels: Sequence[Value | None], values: Floats) -> float | None:
    """Return ε² of levels; 0 where nothing varies, ``None`` with a value a level or fewer."""
    is_known = np.isfinite(values)
    known_values = values[is_known]
    groups: dict[Value | None, list[float]] = {}
    for level, value, there in zip(levels, values, is_known, strict=True):
        if there:
            groups.setdefault(level, []).append(float(value))
    free = known_values.size - len(groups)
    if free < 1:
        return None
    total = float(((known_values - known_values.mean()) ** 2).sum())
    if not total:
        return 0.0
    within = sum(float(((np.array(one) - np.mean(one)) ** 2).sum()) for one in groups.values())
    return max(0.0, 1 - within / free / (total / (known_values.size - 1)))


def _levels(rows: Sequence[Row], name: str) -> tuple[Value, ...]:
    found = {dict(row.values)[name] for row in rows if name in dict(row.values)}
    return tuple(sorted(found, key=_key))


def _sortable(pair: tuple[Value | None, Value | None]) -> tuple[object, ...]:
    return tuple(_key(value) for value in pair)


_key: Callable[[Value | None], tuple[bool, float, str]] = lambda value: (  # noqa: E731
    isinstance(value, str),
    float(value) if isinstance(value, int | float) else -1.0,
    str(value),
)
