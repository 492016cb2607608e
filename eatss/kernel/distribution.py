"""How points are spread over blocks, warps, lanes and slots: affine maps of their coordinates.

``origin + thread + 4 * slot`` gives a thread of four every fourth point of a tile;
``origin + 4 * thread + slot`` gives it four neighbours. An instruction whose operands many lanes
hold together says likewise which lane has which element, and in which of its slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from eatss.program.linear import Linear


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A coordinate that counts from 0 to below ``extent``: a thread, a lane, a slot of one."""

    name: str
    extent: int


def places(coordinates: Sequence[Coordinate]) -> Iterator[dict[str, int]]:
    """Yield the values of coordinates, by name, the last one fastest."""
    for values in product(*(range(one.extent) for one in coordinates)):
        yield dict(zip((one.name for one in coordinates), values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Which point is where: ``points`` are affine functions of coordinates, one a dimension.

    Functions may mention other names too, which are the same wherever one is (an origin).
    ``flips`` names a coordinate of two that counts backwards in the second half of another one.
    """

    coordinates: tuple[Coordinate, ...]
    points: tuple[Linear, ...]
    flips: tuple[str, Coordinate] | None = None

    def stride(self, name: str, dimension: int = 0) -> int:
        """Return by how much a point moves along a dimension where a coordinate grows by one."""
        return self.points[dimension].terms.get(name, 0)

    def at(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """Return the point at coordinates; ``KeyError`` for a name without a value."""
        if self.flips is not None:
            name, other = self.flips
            values = {**values, name: values[name] ^ (2 * values[other.name] // other.extent)}
        return tuple(
            function.constant + sum(c * values[name] for name, c in function.terms.items())
            for function in self.points
        )

    def everywhere(self, others: Mapping[str, int] | None = None) -> Iterator[tuple[int, ...]]:
        """Yield the point at each coordinates, the last coordinate fastest.

        Args:
            others: values of the names that are no coordinates.
        """
        for values in places(self.coordinates):
            yield self.at({**(others or {}), **values})


ALONE = Distribution(coordinates=(), points=())
"""One value, which a thread has to itself."""

LANES = 32
"""Lanes of a warp."""

ONE_A_LANE = Distribution(
    coordinates=(Coordinate("lane", LANES),), points=(Linear({"lane": 1}, 0),)
)
"""An element on each lane of a warp."""
