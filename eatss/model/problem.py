"""The integer problem of one kernel at one split and one warp fraction, as data.

It says what to solve and knows nothing of a solver, so that Z3, brute force and
SMT-LIB text all start from the same thing. Register tiles, pipeline stages or
time tiles become further variables of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from eatss.frozen import frozen
from eatss.polynomial import Polynomial


class Direction(Enum):
    """Which of two values of a variable is preferred among equal objectives."""

    LARGER = "larger"
    SMALLER = "smaller"


@frozen
class Variable:
    """A tile size: a multiple of ``step`` in ``[lower, upper]``.

    ``lower == upper`` is a fixed size (a loop left untiled); it need not be a
    multiple of anything, and then ``step`` equals it.
    """

    name: str
    step: int
    lower: int
    upper: int
    reason: str

    @property
    def values(self) -> range:
        """All values the variable may take, ascending."""
        return range(self.lower, self.upper + 1, self.step)


@frozen
class Constraint:
    """``expression <= limit``, both in ``unit``.

    ``name`` is a stable identifier (``shared_per_sm``); ``title`` and ``detail`` say in the
    user's terms what is limited and by what; ``subject`` is what uses it up.
    ``element_bytes`` is set where ``unit`` is elements: one of them has so many bytes.
    """

    name: str
    title: str
    expression: Polynomial
    limit: int
    unit: str
    detail: str
    subject: str = "the tile"
    element_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A function of all variables of a problem, given by its values.

    ``rows`` are the vectors it is defined at, entries in the order of the variables; ``values``
    are integers in ``unit``. Vectors without a row are no solutions.
    """

    rows: tuple[tuple[int, ...], ...]
    values: tuple[int, ...]
    unit: str

    @cached_property
    def entries(self) -> dict[tuple[int, ...], int]:
        """The values by vector."""
        return dict(zip(self.rows, self.values, strict=True))


@frozen
class Problem:
    """Maximise ``objective`` over ``variables`` under ``constraints``.

    Equal objectives are decided by ``preference``,
    first entry first; it names every variable, so the optimum is unique.
    """

    kernel: str
    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    objective: Polynomial
    preference: tuple[tuple[str, Direction], ...]


@frozen
class TableProblem:
    """Minimise ``cost`` over its rows; of equal costs the first row counts.

    ``variables`` name the entries of a row.
    """

    kernel: str
    variables: tuple[str, ...]
    cost: Table
