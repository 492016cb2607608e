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

from eatss.diagnostics import input_error
from eatss.frozen import frozen
from eatss.point import Point, Value


class SearchSpace(Protocol):
    """What strategies need of a space; :class:`eatss.space.bound.BoundSpace` is one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a point's values, in order."""
        ...

    def __len__(self) -> int:
        """How many points there are."""
        ...

    def points(self) -> Iterator[dict[str, Value]]:
        """All points in a fixed order."""
        ...

    def sample(self, count: int, seed: int) -> Sequence[dict[str, Value]]:
        """Distinct points, drawn uniformly, the same for the same seed; all where there are fewer.

        Their order may be any.
        """
        ...

    def allows(self, point: Point) -> str | None:
        """``None`` for a point of the space, or why it is none."""
        ...

    def neighbours(self, point: Point) -> Sequence[dict[str, Value]]:
        """Points that differ in one value, nearest values first."""
        ...


class Wait(Enum):
    """The type of :data:`WAIT`."""

    WAIT = "wait"


WAIT: Final = Wait.WAIT
"""Nothing can be asked for until a point that was asked for is told."""

Asked: TypeAlias = dict[str, Value] | Wait | None
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
    ranked: tuple[dict[str, Value], ...] | None = None
    start: tuple[dict[str, Value], ...] = ()
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
