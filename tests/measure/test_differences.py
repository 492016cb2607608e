"""Results compared: what rounding explains, what it does not, and what is said then."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from eatss.measure import arguments, differences
from eatss.measure.differences import difference, sum_length
from eatss.program import Apply, Constant, Name, OperationCount, Operator, Work, load_program

PROGRAMS = Path(__file__).parent / "programs"


def data() -> np.ndarray:
    return np.random.default_rng(0).random((30, 40))


def test_equal_bits_are_equal_and_so_are_nan_at_the_same_places() -> None:
    mine = data()
    mine[3, 4] = np.nan
    mine[5, 6] = np.inf
    found = difference(np, "C", mine, mine.copy(), 10)
    assert found.equal
    assert found.worst == 0


def test_sums_in_another_order_are_equal_and_a_lost_term_is_not() -> None:
    rng = np.random.default_rng(1)
    terms = rng.random((50, 2000))
    forward = np.add.accumulate(terms, axis=1)[:, -1]
    backward = np.add.accumulate(terms[:, ::-1], axis=1)[:, -1]
    assert not np.array_equal(forward, backward)
    found = difference(np, "x", forward, backward, 2000)
    assert found.equal
    assert 0 < found.worst < 1
    wrong = backward.copy()
    wrong[7] -= terms[7].min()
    found = difference(np, "x", forward, wrong, 2000)
    assert not found.equal
    assert found.message.startswith("x[7] is ")
    assert "rounding allows" in found.message


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_at_one_side_only_differs(value: float) -> None:
    mine = data()
    mine[2, 3] = value
    found = difference(np, "C", mine, data(), 1e9)
    assert not found.equal
    assert found.worst == inf
    assert found.message.startswith(f"C[2][3] is {value}")


def test_integers_have_to_be_equal() -> None:
    mine = np.arange(12).reshape(3, 4)
    theirs = mine.copy()
    theirs[1, 2] += 1
    found = difference(np, "K", mine, theirs, 1e9)
    assert not found.equal
    assert found.message == "K[1][2] is 6, the reference has 7"


def test_places_are_right_however_much_is_looked_at_in_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "CHUNK", 64)
    monkeypatch.setattr(differences, "CHUNK", 64)
    mine = data()
    mine[20, 30] += 1
    mine[3, 3] += 0.5
    assert difference(np, "C", mine, data(), 10).message.startswith("C[20][30]")
    mine[29, 39] = np.nan
    assert difference(np, "C", mine, data(), 10).message.startswith("C[29][39]")


def test_a_single_cell_has_no_place() -> None:
    found = difference(np, "s", np.asarray(1.0), np.asarray(2.0), 10)
    assert found.message.startswith("s is 1.0, the reference has 2.0")


def test_the_length_of_sums_is_operations_over_elements_or_the_sum_of_sizes_if_that_is_more() -> (
    None
):
    program = load_program(PROGRAMS / "lu")
    n = Name("N")
    operations = (OperationCount(kind="add", count=Apply(Operator.MUL, (n, n, n, n))),)
    work = Work(
        operations=operations,
        read_bytes=None,
        written_bytes=Apply(Operator.MUL, (Constant(8), n, n)),
        notes=(),
    )
    counted = replace(program, entries=(replace(program.entries[0], work=work),))
    assert sum_length(counted, {"N": 500}) == 500**2
    unknown = replace(work, operations=None)
    silent = replace(program, entries=(replace(program.entries[0], work=unknown),))
    assert sum_length(silent, {"N": 300}) == 300
    assert sum_length(silent, {"N": 0}) == 2
