"""The demand of a box of layouts is never above that of a layout in it."""

from __future__ import annotations

from dataclasses import fields
from operator import itemgetter

import numpy as np
import pytest

from eatss.analysis.layout import Candidates
from eatss.cards import load_profile
from eatss.choose.cuda_candidates import every_candidate
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.plan.launch import plan
from eatss.plan.numbers import Interval
from tests.choose.cuda_kernels import analysed, variants

CARD = load_profile("h200")
ROWS = 6
"""Layouts of a box."""


def box_of(layouts: Candidates) -> Candidates:
    """Return the least box that has some layouts."""
    return layouts.map(lambda one: Interval([1.0 * one.min()], [1.0 * one.max()]))


@pytest.mark.parametrize("kernel", ["gemm", "symm"])
def test_no_layout_asks_for_less_than_its_box(kernel: str) -> None:
    dice = np.random.default_rng(11)
    told = dict.fromkeys((field.name for field in fields(Demand)), 0)
    for facts in analysed(kernel).program.facts:
        model = CudaModel.of(facts, CARD)
        for own in every_candidate(facts, variants(kernel)[facts.name], CARD):
            for _ in range(4):
                near = int(dice.integers(len(own)))
                rows = np.clip(near + dice.integers(-40, 40, ROWS), 0, len(own) - 1)
                some = own.map(itemgetter(rows)).map(lambda one: one.astype(np.float64))
                boxes = map(model.demand, plan(facts, box_of(some), model.card))
                alone = map(model.demand, plan(facts, some, model.card))
                for box, points in zip(boxes, alone, strict=True):
                    for name in told:
                        bound, exact = getattr(box, name), getattr(points, name).min()
                        low = bound.low if isinstance(bound, Interval) else bound
                        assert low[0] <= exact, (facts.name, name)
                        told[name] += bool(low[0] > 0)
    assert all(told[name] for name in ("instructions", "l2_bytes", "dram_bytes", "registers"))


def test_an_interval_has_every_result() -> None:
    dice = np.random.default_rng(5)
    functions: list[np.ufunc] = [
        np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.minimum,
        np.maximum, np.greater, np.less_equal, np.equal, np.not_equal,
    ]  # fmt: skip
    for _ in range(50):
        ends = np.sort(dice.integers(1, 12, (2, 2)), axis=1)
        one, other = (Interval([low], [high]) for low, high in ends)
        for function in functions:
            found = function(one, other)
            for a in range(ends[0][0], ends[0][1] + 1):
                for b in range(ends[1][0], ends[1][1] + 1):
                    assert found.low <= function(a, b) <= found.high, (function, ends, a, b)
