"""A space that is a list of points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random

from eatss.point import Point, Value, variant_key


class ListedSpace:
    """The points of a list, each once, in its order; all have the same names."""

    def __init__(self, names: Iterable[str], points: Iterable[Point]) -> None:
        self.names = tuple(names)
        self._points = {variant_key(point): {n: point[n] for n in self.names} for point in points}
        self._places = {name: self._place(name) for name in self.names}
        self._lines: dict[tuple[str, str], list[dict[str, Value]]] = defaultdict(list)
        for point in self._points.values():
            for name in self.names:
                self._lines[name, _without(point, name)].append(point)

    def __len__(self) -> int:
        """How many points there are."""
        return len(self._points)

    def points(self) -> Iterator[dict[str, Value]]:
        """All points in the order of the list."""
        return map(dict, self._points.values())

    def sample(self, count: int, seed: int) -> list[dict[str, Value]]:
        """Distinct points, all with the same chance; all there are where they are fewer."""
        everything = list(self.points())
        dice = Random(seed)  # noqa: S311 - no secret
        return dice.sample(everything, min(count, len(everything)))

    def allows(self, point: Point) -> str | None:
        """``None`` for a point of the list, or a sentence."""
        return None if variant_key(point) in self._points else "it is not in the list"

    def neighbours(self, point: Point) -> list[dict[str, Value]]:
        """Points that differ in one value, nearest first, as values are ordered."""
        found: list[tuple[int, int, int, dict[str, Value]]] = []
        for index, name in enumerate(self.names):
            places = self._places[name]
            here = places[_typed(point[name])]
            for other in self._lines.get((name, _without(point, name)), ()):
                there = places[_typed(other[name])]
                if there != here:
                    found.append((abs(there - here), index, there, dict(other)))
        return [point for *_, point in sorted(found, key=lambda one: one[:3])]

    def _place(self, name: str) -> dict[tuple[str, Value], int]:
        """Return the position of each value of a name: numbers by size, texts as they come."""
        values = list(dict.fromkeys(_typed(point[name]) for point in self._points.values()))
        if not any(isinstance(value, str) for _, value in values):
            values.sort(key=lambda one: one[1])
        return {value: place for place, value in enumerate(values)}


def _typed(value: Value) -> tuple[str, Value]:
    return type(value).__name__, value


def _without(point: Point, name: str) -> str:
    return variant_key({other: value for other, value in point.items() if other != name})
