"""Convex hull and Pareto front of performance against efficiency [BEAST, Secs. 3.2 to 3.4].

Both are to be high. Points are ``(x, y)``; everything returned are places in the input.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from eatss.base.frozen import frozen
from eatss.tune.evaluation.population import Floats


def convex_hull(x: Floats, y: Floats) -> tuple[int, ...]:
    """Return the corners of the convex hull counterclockwise, from the lowest ``x`` on.

    Points on an edge are no corners; of equal points the first is taken. All points on one line
    give its two ends, equal points one. Points with a NaN are left out.
    """
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    order = known[np.lexsort((y[known], x[known]))]
    points: list[int] = []
    for k in order:
        if not points or (x[k], y[k]) != (x[points[-1]], y[points[-1]]):
            points.append(int(k))
    if len(points) < 3:
        return tuple(points)
    lower = _chain(points, x, y)
    upper = _chain(points[::-1], x, y)
    return tuple(lower[:-1] + upper[:-1])


def _chain(points: Sequence[int], x: Floats, y: Floats) -> list[int]:
    """Return the corners that turn left on the way through sorted points."""
    found: list[int] = []
    for k in points:
        while len(found) > 1 and _turn(found[-2], found[-1], k, x, y) <= 0:
            found.pop()
        found.append(k)
    return found


def _turn(a: int, b: int, c: int, x: Floats, y: Floats) -> float:
    """Return twice the area of a triangle, positive where it turns left."""
    return float((x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]))


def pareto_front(x: Floats, y: Floats) -> tuple[int, ...]:
    """Return the points that no other beats in one without losing in the other, by rising ``x``.

    Of equal points all are on the front. Points with a NaN are left out.
    """
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    order = known[np.lexsort((-y[known], -x[known]))]
    found: list[int] = []
    for k in order:
        last = found[-1] if found else None
        if last is None or y[k] > y[last] or (x[k] == x[last] and y[k] == y[last]):
            found.append(int(k))
    return tuple(found[::-1])


def section(hull: Sequence[int], x: Floats, y: Floats, at_x: float) -> tuple[float, float] | None:
    """Return the lowest and the highest ``y`` of a hull on the vertical line at ``at_x``."""
    if not hull or not min(x[list(hull)]) <= at_x <= max(x[list(hull)]):
        return None
    found: list[float] = []
    for a, b in zip(hull, (*hull[1:], hull[0]), strict=True):
        low, high = sorted((x[a], x[b]))
        if low <= at_x <= high:
            if x[a] == x[b]:
                found += [float(y[a]), float(y[b])]
            else:
                share = (at_x - x[a]) / (x[b] - x[a])
                found.append(float(y[a] + share * (y[b] - y[a])))
    return min(found), max(found)


@frozen
class AlphaRange:
    """The point that is best for every ``α`` from ``low`` to ``high``."""

    point: int
    low: float
    high: float


def weighted_winners(time_s: Floats, energy_j: Floats) -> tuple[AlphaRange, ...]:
    """Return which point has the least ``α·t/t* + (1 − α)·e/e*`` for each ``α`` [BEAST, eq. 2].

    ``t*`` and ``e*`` are the least time and the least energy of all points, so that both terms are
    1 at best and ``α`` weighs relative losses. From ``α = 0``, energy alone, to 1, time alone; the
    ranges touch and cover 0 to 1.
    """
    known = np.flatnonzero(np.isfinite(time_s) & np.isfinite(energy_j))
    if not known.size:
        return ()
    t, e = time_s / time_s[known].min(), energy_j / energy_j[known].min()
    order = known[np.lexsort((t[known], e[known]))]
    falling: list[int] = []
    for k in order:
        if not falling or t[k] < t[falling[-1]]:
            falling.append(int(k))
    arc = _chain(falling, e, t)
    borders = [0.0, *(_border(a, b, t, e) for a, b in itertools.pairwise(arc)), 1.0]
    return tuple(
        AlphaRange(point=k, low=low, high=high)
        for k, low, high in zip(arc, borders, borders[1:], strict=False)
    )


def _border(a: int, b: int, t: Floats, e: Floats) -> float:
    """Return the weight at which two points are as good."""
    saved, lost = float(t[a] - t[b]), float(e[b] - e[a])
    return lost / (saved + lost)
