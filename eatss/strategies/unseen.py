"""Points that nobody asked for yet, at random."""

from __future__ import annotations

from random import Random

from eatss.point import Point, Value, variant_key
from eatss.strategies.strategy import SearchSpace

_LEAST_BATCH = 1024


class Unseen:
    """Draws points of a space at random, none that was drawn or named as seen before.

    All points that are left are equally likely. A space is not listed as a whole before a quarter
    of it was drawn.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._space = space
        self._random = Random(seed)  # noqa: S311 - no secret
        self._seen: set[str] = set()
        self._batch: list[dict[str, Value]] = []
        self._ended = False

    def seen(self, point: Point) -> bool:
        """Return whether a point was drawn or named."""
        return variant_key(point) in self._seen

    def see(self, point: Point) -> None:
        """Never draw a point from now on."""
        self._seen.add(variant_key(point))

    def draw(self) -> dict[str, Value] | None:
        """Return a point that was not seen; ``None`` where all were."""
        while not self._ended:
            while self._batch:
                point = self._batch.pop()
                if not self.seen(point):
                    self.see(point)
                    return point
            self._refill()
        return None

    def _refill(self) -> None:
        """Draw so many points that a quarter of them was seen at most, or all."""
        everything = len(self._space)
        count = min(everything, max(_LEAST_BATCH, 4 * len(self._seen)))
        self._batch = list(self._space.sample(count, self._random.getrandbits(32)))
        self._random.shuffle(self._batch)
        if count == everything and all(map(self.seen, self._batch)):
            self._ended = True
