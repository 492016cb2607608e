"""How the lanes of a warp meet memory, against counting the lanes one by one.

Arithmetic that points of a thread share, against values that are told apart one by one.

Stores of a warp: which sectors they fill and which they tear.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.facts import StatementFacts
from eatss.api import inspect
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cost.access import (
    SECTOR_BYTES,
    bank_wavefronts,
    instructions_of,
    lines,
    sectors,
    torn_sectors,
    unrolled_instructions,
)
from eatss.cost.card import CodeConstants, CudaConstants, card_of
from eatss.cost.cuda_code import CudaCode
from eatss.cost.demand import DemandBuilder
from eatss.plan.intervals import Interval, least_of
from eatss.plan.launch import lanes_of
from tests.examples import examples

WARP = 32
SPLITS = [(32,), (1,), (8,), (16, 2), (4, 8), (1, 32), (8, 4), (2, 4, 4), (4, 4, 2), (16, 1, 2)]
FULL_SPLITS = [split for split in SPLITS if int(np.prod(split)) == WARP]

splits = st.sampled_from(SPLITS)
full_splits = st.sampled_from(FULL_SPLITS)
widths = st.sampled_from([4, 8])


def columns(values: Sequence[float]) -> list[np.ndarray]:
    return [np.array([float(value)]) for value in values]


def offsets(lanes: Sequence[int], steps: Sequence[int]) -> list[int]:
    """Return where each working lane looks, ``x`` moving first."""
    found = []
    for lane in range(int(np.prod(lanes))):
        left, offset = lane, 0
        for along, step in zip(lanes, steps, strict=True):
            offset += left % along * step
            left //= along
        found.append(offset)
    return found


def pieces(lanes: Sequence[int], steps: Sequence[int], piece: int) -> int:
    return len({offset // piece for offset in offsets(lanes, steps)})


def bank_cycles(lanes: Sequence[int], steps: Sequence[int], width: int) -> int:
    """Return the cycles of a request: one without conflict, else those of each half."""
    elements = list(offsets(lanes, steps))
    each = 32 * 4 // width
    if most_of_a_bank(elements, width) == 1:
        return 1
    return sum(
        most_of_a_bank(elements[at : at + each], width) for at in range(0, len(elements), each)
    )


def most_of_a_bank(elements: Sequence[int], width: int) -> int:
    """Return the most different elements that lanes want of one bank of their width."""
    return max(Counter(element % (32 * 4 // width) for element in set(elements)).values())


@pytest.mark.parametrize(
    ("threads", "lanes"),
    [
        ((32, 16), (32, 1)),
        ((16, 32), (16, 2)),
        ((8, 2, 64), (8, 2, 2)),
        ((1, 4, 512), (1, 4, 8)),
        ((512,), (32,)),
        ((5,), (5,)),
        ((64, 4, 4), (32, 1, 1)),
    ],
)
def test_a_warp_takes_the_threads_along_x_first(
    threads: tuple[int, ...], lanes: tuple[int, ...]
) -> None:
    assert [int(along[0]) for along in lanes_of(columns(threads))] == list(lanes)


@given(split=splits, width=widths, rows=st.lists(st.integers(0, 8), min_size=2, max_size=2))
def test_sectors_of_rows_that_lie_apart_are_counted_exactly(
    split: tuple[int, ...], width: int, rows: list[int]
) -> None:
    pitch = 32 * 8 * 2  # wider than any row, and a whole number of sectors
    steps = [width, *(pitch * 64**at * (row > 0) for at, row in enumerate(rows))][: len(split)]
    found = sectors(columns(split), [float(step) for step in steps], width)
    assert found == pieces(split, steps, 32)


@given(lanes=st.sampled_from([1, 2, 4, 8, 16, 32]), width=widths, stride=st.integers(0, 80))
def test_sectors_of_one_row_are_counted_exactly_for_every_stride(
    lanes: int, width: int, stride: int
) -> None:
    found = sectors(columns([lanes]), [float(stride * width)], width)
    assert found == pieces([lanes], [stride * width], 32)


@given(
    split=full_splits,
    width=widths,
    steps=st.lists(st.integers(0, 200), min_size=3, max_size=3),
)
def test_bank_conflicts_are_those_of_the_lanes_one_by_one(
    split: tuple[int, ...], width: int, steps: list[int]
) -> None:
    steps = steps[: len(split)]
    found = bank_wavefronts(columns(split), columns(steps), width)
    assert found[0] == bank_cycles(split, steps, width)


def test_requests_that_count_as_one_take_as_many_cycles() -> None:
    dice = np.random.default_rng(3)
    along_x = 1 << dice.integers(0, 6, 600)
    along_y = WARP // along_x
    for width, apart in product((2, 4, 8, 16), (1, 32, 160)):
        # most steps are beyond what the lanes along the other axis reach, and meet the same banks
        steps = dice.integers(-3, 4, (2, 600)) + apart * dice.integers(-4, 5, (2, 600))
        found = bank_wavefronts([1.0 * along_x, 1.0 * along_y], [*(1.0 * steps)], width)
        rows = zip(along_x.tolist(), along_y.tolist(), *steps.tolist(), strict=True)
        assert found.tolist() == [bank_cycles(row[:2], row[2:], width) for row in rows]


def test_no_request_of_a_box_takes_fewer_cycles_than_it_says() -> None:
    dice = np.random.default_rng(7)
    least = np.stack([dice.integers(1, 9, 400), dice.integers(1, 5, 400),
                      *dice.integers(-20, 40, (2, 400))])  # fmt: skip
    most = least + dice.integers(0, 4, least.shape)
    for width in (2, 4, 8, 16):
        box = [Interval(1.0 * a, 1.0 * b) for a, b in zip(least, most, strict=True)]
        found = bank_wavefronts(box[:2], box[2:], width)
        assert (found.low > 1.0).any()
        for _ in range(40):
            lanes, steps = np.split(1.0 * dice.integers(least, most + 1), 2)
            assert (found.low <= bank_wavefronts(list(lanes), list(steps), width)).all()


def test_lanes_that_work_are_in_some_row() -> None:
    dice = np.random.default_rng(8)
    for _ in range(200):
        threads = dice.integers(1, 12, 3)
        ends = [(max(1, int(n * 0.7)), int(np.ceil(n * 1.4))) for n in threads]
        lanes = lanes_of(np.array([1.0 * n]) for n in threads)
        box = [Interval(np.array([1.0 * a]), np.array([1.0 * b])) for a, b in ends]
        work = math.prod(box, start=1.0)
        working = work / np.ceil(work / WARP)
        steps = [float(one) for one in dice.choice([0, 8, 16, 800], 3)]
        for request in (sectors, lines):
            bound = request(lanes_of(box), steps, 8, 0, working)
            assert np.all(least_of(bound) <= request(lanes, steps, 8) * (1 + 1e-9))


CONSTANTS = CodeConstants()
COUNTERS = {"i": 5, "j": 4, "k": 3}


def statements_of(loops: str, arguments: str) -> tuple[StatementFacts, ...]:
    source = f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    return tuple(s for facts in inspect(source).facts for s in facts.work.statements)


def instructions(statement: StatementFacts, **points: int) -> float:
    columns = {name: np.array([float(count)]) for name, count in points.items()}
    return float(np.sum(unrolled_instructions(statement, CONSTANTS, columns)))


def test_the_factor_of_a_product_serves_all_points_along_the_other_loop() -> None:
    (gemm,) = inspect(data_directory("kernels") / "gemm.c").facts
    (product_,) = (s for s in gemm.work.statements if "k" in s.loops)
    assert product_.repeated == ((("i", "k"), (("multiply", 1),)),)
    assert instructions(product_, i=8, j=4) == pytest.approx(1 + 1 / 4)
    assert instructions(product_, i=4, j=8) == pytest.approx(1 + 1 / 8)
    assert instructions(product_, i=8) == instructions_of(product_, CONSTANTS) == 2


def test_what_a_kernel_writes_is_not_taken_to_be_the_same() -> None:
    arrays = "double A[64][64], double B[64][64], double w[64], double x[64]"
    first = "for (int i = 0; i < 64; i++) { w[i] = 2 * x[i];\n"
    use = "A[i][j] = (w[i] * w[i]) * B[i][j]; }"
    (_, last) = statements_of(f"{first}for (int j = 0; j < 64; j++) {use}", arrays)
    assert last.repeated == ((("i",), (("multiply", 1),)),)  # of two kernels
    along = "for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) { w[i] += B[i][j];\n"
    (_, last) = statements_of(f"{along}{use}", arrays)
    assert last.repeated == ()


def test_equal_parts_of_a_value_count_once() -> None:
    (apart,) = statements_of(
        "for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++)\n"
        "A[i][j] = (x[i] - y[j]) * (x[i] - y[j]) + (y[j] - x[i]);",
        "double A[64][64], double x[64], double y[64]",
    )
    assert dict(apart.operations) == {"add": 3, "multiply": 1}


@settings(max_examples=examples(12))
@given(
    subscripts=st.lists(
        st.sampled_from(["i", "j", "k", "ij", "ik", "jk", "ijk"]), min_size=2, max_size=5
    ),
    points=st.tuples(*[st.integers(1, 4)] * 3),
)
def test_products_are_counted_once_for_each_value(
    subscripts: list[str], points: tuple[int, int, int]
) -> None:
    extents = {name: "".join(f"[{COUNTERS[c]}]" for c in name) for name in subscripts}
    arrays = [f"double a{at}{extents[name]}" for at, name in enumerate(subscripts)]
    factors = [f"a{at}{''.join(f'[{c}]' for c in name)}" for at, name in enumerate(subscripts)]
    nest = "".join(f"for (int {c} = 0; {c} < {n}; {c}++) " for c, n in COUNTERS.items())
    (statement,) = statements_of(
        f"{nest}R[i][j][k] = {' * '.join(factors)};", ", ".join(["double R[5][4][3]", *arrays])
    )
    # each product of the chain, with the points of a thread at which its value differs
    values = set()
    for place in product(*map(range, points)):
        at = dict(zip(COUNTERS, place, strict=True))
        for length in range(2, len(subscripts) + 1):
            moving = sorted(set("".join(subscripts[:length])))
            values.add((length, tuple((c, at[c]) for c in moving)))
    own = dict(zip(COUNTERS, points, strict=True))
    every = points[0] * points[1] * points[2]
    assert instructions(statement, **own) * every == pytest.approx(len(values))


ONES = np.ones(1)


def torn_by_counting(
    threads: tuple[int, ...], steps: tuple[int, ...], element_bytes: int, offset: int = 0
) -> int:
    """Return the sectors of which a warp writes some bytes and not all."""
    written: dict[int, set[int]] = {}
    for lane in range(WARP):
        left, place = lane, offset
        for count, step in zip(threads, steps, strict=True):
            place += left % count * step
            left //= count
        if left:
            continue  # a block of fewer threads than a warp has lanes
        for byte in range(place, place + element_bytes):
            written.setdefault(byte // SECTOR_BYTES, set()).add(byte)
    return sum(len(bytes_) < SECTOR_BYTES for bytes_ in written.values())


def torn(
    threads: tuple[int, ...], steps: tuple[int, ...], element_bytes: int, offset: int = 0
) -> float:
    lanes = lanes_of([ONES * count for count in threads])
    return float(np.ravel(torn_sectors(lanes, [*map(float, steps)], element_bytes, offset))[0])


@given(st.integers(1, 512), st.sampled_from([4, 8]))
def test_lanes_of_one_axis(stride: int, element_bytes: int) -> None:
    steps = (stride * element_bytes,)
    assert torn((WARP,), steps, element_bytes) == torn_by_counting((WARP,), steps, element_bytes)


@given(st.integers(2, 16), st.sampled_from([4, 8]))
def test_lanes_along_columns_tear_every_sector_but_whole_ones(
    along: int, element_bytes: int
) -> None:
    # as in a transposed write: neighbours along x lie a row apart, those along y side by side
    rows = WARP // along
    steps = (4096, element_bytes)
    found = torn((along, rows), steps, element_bytes)
    counted = torn_by_counting((along, rows), steps, element_bytes)
    assert found == counted


def test_stores_count_once_as_bytes_of_l2_and_once_as_torn_ones() -> None:
    plan: Any = SimpleNamespace(active=ONES * 3, block_threads=ONES * WARP)
    demand = DemandBuilder(plan, card_of(load_profile("h200")), CodeConstants())
    each = sectors(lanes_of([ONES * WARP]), [64.0], 8)
    demand.add_stores(ONES * 5, ONES, each, torn_sectors(lanes_of([ONES * WARP]), [64.0], 8))
    assert demand.l2_bytes[0] == demand.torn_bytes[0] == 3 * 5 * WARP * SECTOR_BYTES


@given(st.integers(1, 80), st.integers(4, 12), st.integers(1, 4), widths, st.booleans())
@settings(max_examples=examples(200))
def test_rows_begin_anywhere_and_warps_cut_them(
    along_x: int, along_y: int, points: int, width: int, moves: bool
) -> None:
    pitch, threads = 1 << 16, along_x * along_y
    if threads < WARP or (along_x < WARP and not moves):
        return  # lanes of a warp that want the same
    touched = torn = 0
    rows = 16  # one for each point: they begin at as many places of a sector
    for row, first in product(range(rows * points), range(0, threads, WARP)):
        lanes = [(at % along_x, at // along_x) for at in range(first, min(first + WARP, threads))]
        starts = {(along_x * row + x) * width + y * pitch * moves for x, y in lanes}
        counts = Counter(start // SECTOR_BYTES for start in starts).values()
        touched += len(counts)
        torn += sum(count * width < SECTOR_BYTES for count in counts)
    axes = [("x", ONES * along_x), ("y", ONES * along_y)]
    plan: Any = SimpleNamespace(
        shape=(),
        active=ONES,
        axes=axes,
        block_threads=ONES * threads,
        computing=ONES * threads,
        lanes=lanes_of(count for _, count in axes),
        tile={"x": ONES * along_x * points},
    )
    access: Any = SimpleNamespace(element_bytes=width, moving={"x": 1, "y": moves * pitch // width})
    of = CudaCode(plan, card_of(load_profile("h200")), CodeConstants(), CudaConstants())
    warps = rows * points * threads / WARP
    found, parts = float(of.request(access)[1][0]) * warps, float(of.torn(access)[0]) * warps
    assert found == pytest.approx(touched, rel=0.15)
    assert 0.75 * torn <= parts <= found
