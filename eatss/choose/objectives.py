"""Objectives: what a candidate costs by the time and energy that are predicted of it.

Another one is a function of the predicted run, registered under a name::

    from eatss.choose import OBJECTIVES, Objective

    OBJECTIVES.register("ed2p", Objective(
        cost=lambda run: run.energy_j * run.time_s**2 * 1e18, unit="uJ us^2",
        title="energy times squared time of a run",
    ))

A package offers one by an entry point of the group ``eatss.objectives``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, input_error
from eatss.base.extensions import Registry
from eatss.base.frozen import Names, frozen
from eatss.base.tape import whole
from eatss.base.targets import MEASURES, Measure
from eatss.cost.demand import Column
from eatss.cost.expected import Prediction
from eatss.cost.terms import Predicted
from eatss.plan.intervals import most_of

NEVER = np.iinfo(np.int64).max
"""The cost of what cannot launch, or is not allowed."""

_Offered = TypeVar("_Offered")

_MOST = 2.0**60
"""Costs end here, so that a margin on top is still a whole number of 64 bits."""


@frozen
class Objective:
    """What is best: least ``cost``.

    ``cost`` takes what is predicted of all candidates of a kernel, an entry a candidate. It
    returns a number of ``unit`` for each: at least 0, and infinite where a candidate is not
    allowed. It must not fall where time or energy rises: a bound of these is one of the cost. The
    numbers are rounded, so the unit is a small one. Of a box of candidates it takes what none of
    them goes under, and the most ``resident_blocks``. ``title`` says what they are, "energy of a
    run". ``cost`` is ``None`` for the paper's objective, which predicts nothing.
    """

    cost: Callable[[Predicted], Column] | None
    unit: str
    title: str

    @property
    def formula(self) -> str:
        """What is least, in words."""
        return f"least {self.title}, in {self.unit}"


def _predicted(measure: Measure) -> Objective:
    """Return the objective of a run as predicted, in whole small units."""
    return Objective(
        cost=lambda run: measure.value(run.time_s, run.energy_j) * measure.scale,
        unit=measure.small_unit,
        title=measure.title,
    )


OBJECTIVES: Registry[Objective] = Registry(
    "eatss.objectives",
    "objective",
    {
        **{name: _predicted(own) for name, own in MEASURES.items()},
        "paper": Objective(cost=None, unit="", title="objective of the EATSS paper"),
    },
    of=Objective,
)
"""All objectives by name."""


def costs(expected: Predicted, objective: str) -> npt.NDArray[np.int64]:
    """Return the cost of each candidate as an integer, ``NEVER`` where it cannot launch.

    Raises:
        InputError: ``EATSS-X005`` there is no such objective, ``EATSS-M022`` its function fails.
    """
    value = values(expected, objective)
    allowed = np.isfinite(value)
    whole = np.round(np.minimum(np.where(allowed, value, 0.0), _MOST)).astype(np.int64)
    return np.where(allowed, whole, NEVER)


_EQUAL = 10**9
"""Costs that differ by one part of so many, or by one unit, are equal: they are rounded sums of
floats, which differ from machine to machine."""


def first_least(costs: Iterable[int]) -> int:
    """Return the place of the first of those that cost least.

    So what is offered first is taken where costs are equal; 0 where all are ``NEVER``.
    """
    each = costs if isinstance(costs, np.ndarray) else np.array([*costs])
    least = int(each.min())
    return int(np.argmax(each <= min(NEVER - 1, least + max(1, least // _EQUAL))))


def ranked(costs: npt.NDArray[np.int64]) -> Iterator[int]:
    """Yield the places of costs, the least first; equal ones go by the order offered."""
    order = np.argsort(costs, kind="stable")
    inside, at = costs[order], 0
    while at < len(order):
        least = int(inside[at])
        equal = min(least, NEVER >> 1) + max(1, least // _EQUAL)
        end = int(np.searchsorted(inside, equal, side="right"))
        yield from np.sort(order[at : max(end, at + 1)]).tolist()
        at = max(end, at + 1)


def cheapest(offered: Iterable[_Offered], cost: Callable[[_Offered], int]) -> _Offered | None:
    """Return the first of those that cost least, ``None`` where nothing is offered."""
    every = [*offered]
    return every[first_least(map(cost, every))] if every else None


def summed_cost(parts: Sequence[Prediction], objective: str) -> int:
    """Return what kernels cost, one after the other."""
    time_s, energy_j = (sum(one.time_s for one in parts), sum(one.energy_j for one in parts))
    return int(run_costs(np.array([time_s]), np.array([energy_j]), objective)[0])


def run_costs(times_s: Column, energies_j: Column, objective: str) -> npt.NDArray[np.int64]:
    """Return what runs cost of which time and energy are all that is known, an entry each."""
    ones = np.ones(len(times_s))
    run = Predicted(
        time_s=times_s, energy_j=energies_j, terms_s={}, terms_j={}, resident_blocks=ones
    )
    return costs(run, objective)


def nothing_allowed(kernel: str, objective: str) -> Diagnostic:
    """Return the finding that an objective allows none of the candidates that launch."""
    return Diagnostic(
        code="EATSS-M020",
        message=f"the objective {objective} allows no sizes of kernel {kernel} that can launch",
        hint="take another objective, or a card on which they are expected to do better",
    )


def values(expected: Predicted, name: str) -> Column:
    """Return the cost of each candidate, infinite where it cannot launch or is not allowed.

    Raises:
        InputError: ``EATSS-X005`` there is no such objective, ``EATSS-M022`` its function fails.
    """
    names = tuple(expected.terms_s), tuple(expected.terms_j)
    columns = *expected.terms_s.values(), *expected.terms_j.values()
    resident = most_of(expected.resident_blocks)
    time_s, energy_j = expected.time_s, expected.energy_j
    found: Column = whole(_valued, name, names, time_s, energy_j, resident, *columns)
    return found


def _valued(
    name: str, names: tuple[Names, Names], time_s: Column, energy_j: Column, *columns: Column
) -> Column:
    cost = OBJECTIVES.get(name).cost
    assert cost is not None, "the paper's objective is no prediction"
    resident, *left = (np.broadcast_to(one, time_s.shape) for one in columns)
    terms_s, terms_j = ({own: left.pop(0) for own in part} for part in names)
    expected = Predicted(
        time_s=time_s,
        energy_j=energy_j,
        terms_s=terms_s,
        terms_j=terms_j,
        resident_blocks=resident,
    )
    try:
        value = np.asarray(cost(expected), dtype=np.float64)
    except Exception as error:  # code of another package: anything may come of it
        raise input_error(
            "EATSS-M022", f"the objective {name} fails: {type(error).__name__}: {error}"
        ) from error
    if value.shape != expected.time_s.shape or (value < 0).any():
        raise input_error(
            "EATSS-M022",
            f"the objective {name} does not give each candidate a number that is at least 0",
            hint="compute it entry by entry from time_s and energy_j, infinite where not allowed",
        )
    return value
