"""The points of a space as a table, for tuners that want to know all values beforehand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eatss.point import Point, Value, variant_key
from eatss.strategies.strategy import SearchSpace

MOST = 20_000
"""Of a larger space, so many points that are drawn from it stand for all."""


class KnownPoints:
    """All points of a space, or 20 000 of them, with the values that each name takes in them.

    Attributes:
        points: The points.
        values: By name, its values: numbers by size, others as they come.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        few = len(space) <= MOST
        self.names = space.names
        self.points = [dict(one) for one in (space.points() if few else space.sample(MOST, seed))]
        self.values = {
            name: _ordered([point[name] for point in self.points]) for name in self.names
        }
        self._rows = {variant_key(point): row for row, point in enumerate(self.points)}
        self._new = np.ones(len(self.points), dtype=bool)
        self._ordinal = np.array([self.is_number(name) for name in self.names])
        places = [self.places(point) for point in self.points]
        self._places = np.array(places, dtype=np.int64).reshape(len(places), len(self.names))
        self._widths = np.array([max(1, len(self.values[name]) - 1) for name in self.names])

    def is_number(self, name: str) -> bool:
        """Return whether a name's values are numbers, which have an order."""
        return all(
            isinstance(one, int | float) and type(one) is not bool for one in self.values[name]
        )

    def places(self, point: Point) -> list[int]:
        """Return the position of each of its values among those of the name."""
        return [self.values[name].index(point[name]) for name in self.names]

    def holds(self, point: Point) -> bool:
        """Return whether a point is one of them."""
        return variant_key(point) in self._rows

    def is_new(self, point: Point) -> bool:
        """Return whether a point is one of them, and was not used yet."""
        row = self._rows.get(variant_key(point))
        return row is not None and bool(self._new[row])

    def use(self, point: Point) -> None:
        """Mark a point as used, if it is one of them."""
        row = self._rows.get(variant_key(point))
        if row is not None:
            self._new[row] = False

    def nearest_new(self, point: Point) -> dict[str, Value] | None:
        """Return the point, of those not used yet, that differs least, if any is left.

        Numbers differ by how many values lie between them, as a share of all; others by 1.
        """
        rows = np.flatnonzero(self._new)
        if not len(rows):
            return None
        apart: npt.NDArray[np.float64] = (
            np.abs(self._places[rows] - self.places(point)) / self._widths
        )
        apart[:, ~self._ordinal] = apart[:, ~self._ordinal] > 0
        return dict(self.points[rows[int(np.argmin(apart.sum(axis=1)))]])


def _ordered(values: list[Value]) -> list[Value]:
    different = list(dict.fromkeys(values))
    if any(isinstance(one, str) for one in different):
        return different
    return sorted(different)
