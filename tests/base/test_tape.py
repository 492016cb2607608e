"""What is replayed of a function is what it returns, whatever batch it was recorded of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eatss.base.tape import Taped, never, whole
from eatss.plan import numbers

FORMULAS: list[Callable[[Any, Any, float], Any]] = [
    lambda a, b, _: a * b,
    lambda a, b, constant: a / np.maximum(b, constant),
    lambda a, b, _: np.where(a > b, a, b - a),
    lambda a, _, constant: np.ceil(a / constant) + np.zeros(len(a)),
    lambda a, b, _: np.clip(a, 0.0, np.maximum(b, 0.0)),
    lambda a, b, _: whole(np.hypot, a, b),
    lambda a, b, constant: a if never(b > 20 * constant) else np.where(b > 20 * constant, b, a),
    lambda a, b, constant: (
        b if numbers.nowhere(a < -9 * constant) else np.where(a < -9 * constant, a, b)
    ),
    lambda a, _, constant: a.astype(np.int64) % int(constant),
]


def formula(seed: int) -> Callable[..., Any]:
    def made(*columns: Any) -> Any:
        dice = np.random.default_rng(seed)
        every = [*columns]
        for _ in range(30):
            one, other = (every[at] for at in dice.integers(0, len(every), 2))
            every.append(
                FORMULAS[dice.integers(len(FORMULAS))](one, other, float(dice.integers(1, 9)))
            )
        return every[-1] + every[-2]

    return made


@np.errstate(all="ignore")
@pytest.mark.parametrize("seed", range(40))
def test_a_replay_returns_what_the_function_does(seed: int) -> None:
    dice = np.random.default_rng(seed)
    function = formula(seed)
    taped = Taped(function, again=3)
    recorded = 0
    for count in (5, 300, 0, 1, 700, 40, 40):
        columns = np.rint(dice.normal(0.0, 10.0 ** dice.integers(0, 3), (3, count)))
        last = taped.replay
        found = taped(*columns)
        recorded += taped.replay is not last
        if count:
            np.testing.assert_array_equal(found, np.broadcast_to(function(*columns), count))
    assert recorded < 6


def test_equal_operations_are_one_and_what_is_not_used_is_left_out() -> None:
    def made(one: Any, other: Any) -> Any:
        assert len(one / other) == len(one)  # used for nothing
        return (one + other) * (one + other)

    taped = Taped(made)
    taped(np.arange(4.0), np.arange(4.0))
    assert taped.replay is not None
    assert len(taped.replay.steps) == 2


@pytest.mark.filterwarnings("error")
def test_what_is_computed_for_rows_that_it_is_not_for_warns_of_nothing() -> None:
    def made(column: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.where(column > 0, 1.0 / column, 0.0)

    taped = Taped(made)
    for column in (np.ones(3), np.zeros(3)):
        np.testing.assert_array_equal(taped(column), column)


def test_a_decision_that_is_not_recorded_is_refused() -> None:
    def decided(column: Any) -> Any:
        return column if (column > 0).value.all() or column else -column

    with pytest.raises(TypeError, match="never"):
        Taped(decided)(-np.ones(3))


def test_a_column_that_is_made_of_no_other_is_refused() -> None:
    with pytest.raises(TypeError, match="no other"):
        Taped(lambda column: column + np.arange(3.0))(np.ones(3))
