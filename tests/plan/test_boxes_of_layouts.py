"""Neither demand nor prediction of a box of layouts is above that of a layout in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pytest

from eatss.analysis.layout import Layout
from eatss.cards import load_profile
from eatss.choose.cuda_candidates import every_candidate
from eatss.choose.ppcg import candidates
from eatss.choose.selection import PpcgOptions
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.cost.ppcg_model import PpcgModel
from eatss.cost.terms import predict
from eatss.plan.intervals import Box, Interval, mixed, named
from eatss.plan.launch import plan
from tests.choose.cuda_kernels import analysed, variants

CARD = load_profile("h200")
LayoutColumns = TypeVar("LayoutColumns", bound=Layout)
ROWS = 6
"""Layouts of a box."""


DEMANDS = [field.name for field in fields(Demand)]
RUN = ("time_s", "energy_j")


def box_of(layouts: LayoutColumns) -> LayoutColumns:
    """Return the least box that has some layouts."""
    return layouts.map(lambda one: Interval([1.0 * one.min()], [1.0 * one.max()]))


def no_more(box: object, points: object, names: Iterable[str]) -> Counter[str]:
    """Check that no bound is above its points; return those that are above 0."""
    told: Counter[str] = Counter()
    for name in names:
        bound, exact = getattr(box, name), getattr(points, name).min()
        low = (bound.low if isinstance(bound, Interval) else bound)[0]
        assert low <= exact * (1 + 1e-12), name
        told[name] += bool(low > 0)
    return told


@pytest.mark.parametrize("kernel", ["gemm", "symm"])
def test_no_layout_asks_for_less_than_its_box(kernel: str) -> None:
    dice = np.random.default_rng(11)
    told: Counter[str] = Counter()
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
                    told += no_more(box, points, DEMANDS)
                    runs = [predict(one, model.card, model.constants) for one in (box, points)]
                    told += no_more(runs[0], runs[1], RUN)
    assert {"instructions", "l2_bytes", "dram_bytes", "registers", *RUN} <= told.keys()


@pytest.mark.parametrize("kernel", ["syr2k", "mvt"])
def test_no_sizes_of_ppcg_cost_less_than_their_box(kernel: str) -> None:
    dice = np.random.default_rng(12)
    told: Counter[str] = Counter()
    for facts in analysed(kernel).program.facts:
        model = PpcgModel.of(facts, CARD)
        depth, mapped = len(model.kernel.band), len(model.kernel.threads)
        for _ in range(8):
            first = [*dice.integers(1, 200, depth), *2 ** dice.integers(0, 6, mapped)]
            wider = dice.integers(1, 9, ROWS)[:, None] * (dice.random((ROWS, len(first))) < 0.3)
            options = PpcgOptions(max_shared_memory=49152, unroll_gpu_tile=bool(dice.integers(2)))
            some = candidates(model.kernel, [tuple(row) for row in first + wider], options)
            box, points = model.columns(box_of(some)), model.columns(some)
            told += no_more(box[0], points[0], DEMANDS)
            told += no_more(box[1], points[1], RUN)
    assert {"instructions", "l2_bytes", "dram_bytes", *RUN} <= told.keys()


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


@np.errstate(all="ignore")
def test_monomials_are_on_their_sides_of_a_number() -> None:
    """Random formulas of two sizes, over boxes and at all of their points."""
    dice = np.random.default_rng(6)
    for first in range(300):
        lows = dice.integers(1, 40, 2)
        highs = lows + dice.integers(0, 30, 2)
        ranges = [np.arange(low, high + 1) for low, high in zip(lows, highs, strict=True)]
        points = [one.ravel().astype(np.float64) for one in np.meshgrid(*ranges)]
        box = Box({n: ([1.0 * a], [1.0 * b]) for n, a, b in zip("xy", lows, highs, strict=True)})
        every: list[tuple[Any, Any]] = [*zip(box.intervals.values(), points, strict=True)]
        for step in range(12):
            (one, own), (other, others) = (every[at] for at in dice.integers(0, len(every), 2))
            made = FORMULAS[(first + step * (1 + first % 7)) % len(FORMULAS)]
            constant = float(dice.integers(1, 50))
            found, exact = made(one, other, constant), made(own, others, constant)
            if step % 5 == 0:
                found = named(f"n{step}", np.maximum(found, 1.0))
                exact = np.maximum(exact, 1.0)
            assert (found.low[0] <= exact * (1 + 1e-9)).all()
            assert (found.high[0] >= exact * (1 - 1e-9)).all()
            every.append((found, exact))


FORMULAS: list[Callable[[Any, Any, float], Any]] = [
    lambda a, b, _: a * b,
    lambda a, b, _: a / np.maximum(b, 0.5),
    lambda a, b, _: a + b,
    lambda _, b, constant: constant / np.maximum(b, 1.0),
    lambda a, b, _: np.ceil(a / 3),
    lambda a, b, _: np.floor(a / 2),
    lambda a, b, constant: np.minimum(a, constant),
    lambda a, b, _: np.minimum(a, b),
    lambda a, b, constant: np.where(a > constant, a, b),
    lambda a, b, _: np.maximum(a - 3, 0.0),
    lambda a, b, _: np.maximum(a, b),
    lambda a, *_: np.rint(a * 0.3),
    lambda a, b, constant: mixed(np.minimum(b / 50, 1.0), a, constant),
]


def test_what_numbers_with_names_are_made_of_cancels() -> None:
    box = Box({"tile": ([1.0], [64.0]), "wanted": ([2.0], [300.0])})
    tile: Any = box.intervals["tile"]
    wanted: Any = box.intervals["wanted"]
    chunks = named("chunks", np.minimum(wanted, 200.0))
    blocks = named("blocks", np.maximum(np.rint(0.3 * np.ceil(6400 / tile) * chunks), 1.0))
    work = blocks * (640.0 / chunks) * tile
    assert work.low[0] > 0.9 * 0.3 * 6400 * 640 > 100 * (blocks.low * 640 / 200)[0]
