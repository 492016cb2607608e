"""What a strategy is: it is asked for points, and told what they cost.

    strategy = make("local", StrategyJob(space=space, seed=0))
    while (point := strategy.ask()) is not None:
        strategy.tell(point, measured(point))

Several points may be asked for before the first is told, and they are told in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.tune.point import Configuration, Point, Value, variant_key


class SearchSpace(Protocol):
    """What strategies need of a space; :class:`eatss.tune.space.bound.BoundSpace` is one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a point's values, in order."""
        ...

    def __len__(self) -> int:
        """How many points there are."""
        ...

    def points(self) -> Iterator[Configuration]:
        """All points in a fixed order."""
        ...

    def sample(self, count: int, seed: int) -> Sequence[Configuration]:
        """Distinct points, drawn uniformly, the same for the same seed; all where there are fewer.

        Their order may be any.
        """
        ...

    def allows(self, point: Point) -> str | None:
        """``None`` for a point of the space, or why it is none."""
        ...

    def neighbours(self, point: Point) -> Sequence[Configuration]:
        """Points that differ in one value, nearest values first."""
        ...


class Wait(Enum):
    """The type of :data:`WAIT`."""

    WAIT = "wait"


WAIT: Final = Wait.WAIT
"""Nothing can be asked for until a point that was asked for is told."""

Asked: TypeAlias = Configuration | Wait | None
"""The next point; :data:`WAIT`; ``None`` where nothing is left."""


class Strategy(Protocol):
    """Proposes points, and learns what they cost."""

    def ask(self) -> Asked:
        """Return the next point to measure, :data:`WAIT`, or ``None`` where nothing is left."""
        ...

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point costs, less is better; infinity for a variant that failed.

        It may be a point that was not asked for: one that an earlier session measured.
        """
        ...


@frozen
class StrategyJob:
    """What a strategy is made for.

    Attributes:
        space: Where its points are from.
        seed: What its dice are thrown with; the same seed and results give the same points.
        ranked: Points in the model's order, the best first; ``None`` where there is no model.
        start: Points to measure first, whatever the strategy; they need not be of the space.
        choice: What stands behind the colon of its name: ``tpe`` of ``optuna:tpe``.
    """

    space: SearchSpace
    seed: int = 0
    ranked: tuple[Configuration, ...] | None = None
    start: tuple[Configuration, ...] = ()
    choice: str = ""


MakeStrategy: TypeAlias = Callable[[StrategyJob], Strategy]
"""Returns a strategy for a space; it may read ``job.choice``, what stands behind a colon."""


def needed(module: str, strategy: str, install: str) -> ModuleType:
    """Return a module of a package that may not be installed; ``install`` is what pip is to.

    Raises:
        InputError: ``EATSS-T002``, it is not installed, or does not load.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise input_error(
            "EATSS-T002",
            f"the strategy '{strategy}' needs a package that does not load: {error}",
            hint=f"pip install '{install}'",
        ) from None


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

    def nearest_new(self, point: Point) -> Configuration | None:
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
