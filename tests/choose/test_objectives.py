"""Objectives of others: by an entry point and by a call, proven and saved like those of eatss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.base.targets import TargetName
from eatss.choose import OBJECTIVES, Objective
from eatss.choose.objectives import NEVER, cheapest, first_least, ranked
from eatss.choose.selection import Selection
from eatss.cost.demand import Column
from eatss.cost.terms import Predicted
from tests import offered
from tests.end_to_end.in_process import eatss as in_process

GEMM = data_directory("kernels") / "gemm.c"
ATAX = data_directory("kernels") / "atax.c"
MODULE = """
from eatss.choose import Objective

ED2P = Objective(
    cost=lambda run: run.energy_j * run.time_s**2 * 1e18,
    unit="uJ us^2",
    title="energy times squared time of a run",
)
"""

Register = Callable[[Callable[[Predicted], Column]], str]


@pytest.fixture
def register() -> Iterator[Register]:
    """Return what registers an objective and tells its name."""

    def put(cost: Callable[[Predicted], Column]) -> str:
        OBJECTIVES.register("mine", Objective(cost=cost, unit="nJ", title="what I want"))
        return "mine"

    yield put
    OBJECTIVES.remove("mine")


def test_of_equal_costs_what_is_offered_first_is_taken() -> None:
    rounded = [2_000_000_003, 2_000_000_001, 2_000_000_000, 5]  # the first is no equal of the third
    assert first_least(rounded) == 3
    assert first_least(rounded[:3]) == 1
    assert first_least([7, 7, 6]) == 0
    assert first_least([NEVER, 9, NEVER]) == 1
    assert first_least([NEVER, NEVER]) == 0
    assert cheapest([], int) is None
    assert cheapest(["b", "a"], lambda _: 4) == "b"


def test_a_package_adds_an_objective_to_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered.install(
        tmp_path,
        monkeypatch,
        OBJECTIVES,
        entry="ed2p = offered_objective:ED2P",
        files={"offered_objective.py": MODULE},
    )
    arguments = ("select", str(GEMM), "-g", "h200", "--target", "ppcg", "--objective", "ed2p")
    done = in_process(*arguments, "--format", "json", code=0)
    document = json.loads(done.stdout)
    assert document["objective"] == document["options"]["objective"] == "ed2p"
    (kernel,) = document["kernels"]
    assert 0 < kernel["bound"] <= kernel["objective"]
    assert kernel["boxes"] > 0
    predicted = kernel["predicted"]
    expected = predicted["energy_j"] * predicted["time_s"] ** 2 * 1e18
    assert kernel["objective"] == pytest.approx(expected, rel=1e-6)
    assert "objective ed2p" in in_process(*arguments).stdout
    assert "in uJ us^2" in in_process(*arguments, "--format", "json").stdout


def test_a_program_registers_an_objective(register: Register) -> None:
    usual = eatss.select(GEMM, gpu="h200", target="cuda", objective="energy")
    same = eatss.select(
        GEMM, gpu="h200", target="cuda", objective=register(lambda run: run.energy_j * 1e9)
    )
    assert same.kernels[0].tile_sizes == usual.kernels[0].tile_sizes
    assert same.kernels[0].objective_formula == "least what I want, in nJ"
    assert Selection.from_dict(same.to_dict()) == same


@pytest.mark.parametrize("target", ["ppcg", "cuda"])
def test_an_objective_that_allows_nothing_says_so_of_each_kernel(
    register: Register, target: TargetName
) -> None:
    name = register(lambda run: np.full_like(run.time_s, np.inf))
    with pytest.raises(
        eatss.NoSolutionError, match="mine allows no sizes of kernel kernel0"
    ) as raised:
        eatss.select(ATAX, gpu="h200", target=target, objective=name)
    assert [found.code for found in raised.value.diagnostics] == ["EATSS-M020"] * 2


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (lambda run: run.watts, "fails: AttributeError"),
        (lambda run: -run.energy_j, "number that is at least 0"),
        (lambda run: run.energy_j.sum(), "does not give each candidate"),
    ],
)
def test_an_objective_that_errs_is_told(
    register: Register, cost: Callable[[Predicted], Column], said: str
) -> None:
    name = register(cost)
    with pytest.raises(InputError, match=said) as raised:
        eatss.select(GEMM, gpu="h200", objective=name)
    assert raised.value.code == "EATSS-M022"


def test_equal_costs_are_ranked_in_the_order_in_which_they_are_offered() -> None:
    least = 5 * 10**12
    costs = np.array([NEVER, 2 * least, least + 4000, least, least + 6000, NEVER])
    assert [*ranked(costs)] == [2, 3, 4, 1, 0, 5]
    assert next(ranked(costs)) == first_least(costs)
