"""What PPCG's code asks of a card, and what the card makes of it.

Time and energy of a launch against sums made by hand (docs/model-internals.md, time and energy).
"""

from __future__ import annotations

from dataclasses import fields, replace
from heapq import heapreplace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.ppcg import Vector, candidates, default_vector
from eatss.choose.selection import PpcgOptions
from eatss.cost.card import Card, CodeConstants, card_of
from eatss.cost.demand import Demand
from eatss.cost.ppcg_code import PpcgCode, _Counting, l1_left
from eatss.cost.ppcg_model import PpcgModel, _busy, _over_mean, _uneven, rolled_loads
from eatss.cost.terms import predict
from eatss.plan.ppcg import PpcgKernel


def options(shared_bytes: int, *, unroll: bool = False) -> PpcgOptions:
    return PpcgOptions(max_shared_memory=shared_bytes, unroll_gpu_tile=unroll)


def models(name: str, gpu: str = "ga100", dtype: str = "double") -> list[PpcgModel]:
    program = eatss.inspect(data_directory("kernels") / f"{name}.c", dtype=dtype)  # type: ignore[arg-type]
    return [PpcgModel.of(facts, load_profile(gpu)) for facts in program.facts]


def staged(model: PpcgModel, vector: Vector, limit: int) -> tuple[list[str], int]:
    """Return the arrays that PPCG copies to shared memory, and the bytes of a block."""
    asked = candidates(model.kernel, (vector,), options(limit))
    launch = model.plan(asked)
    pairs = zip(model.kernel.groups, launch.staged, strict=True)
    return [group.array for group, on in pairs if on[0]], int(launch.shared_bytes[0])


@pytest.mark.parametrize(
    ("limit", "arrays", "size"),
    [(0, [], 0), (8191, [], 0), (8192, ["A"], 8192), (16383, ["A"], 8192),
     (16384, ["A", "B"], 16384), (49152, ["A", "B"], 16384)],
)  # fmt: skip
def test_gemm_stages_arrays_in_their_order_while_there_is_room(
    limit: int, arrays: list[str], size: int
) -> None:
    (model,) = models("gemm")
    assert staged(model, (32, 32, 32, 32, 16), limit) == (arrays, size)


@pytest.mark.parametrize(
    ("name", "index", "arrays"),
    [
        ("adi", 0, ["A", "A"]),
        ("adi", 1, []),  # two statements of one iteration read the same element of A
        ("seidel-2d", 0, []),  # rows of A are touched at every second element at most
        ("floyd-warshall", 0, []),  # the host moves the three references apart
    ],
)
def test_ppcg_stages_what_its_rules_say(name: str, index: int, arrays: list[str]) -> None:
    model = models(name)[index]  # seen in what PPCG 0.09 wrote
    assert staged(model, default_vector(model.kernel), 49152)[0] == arrays


@pytest.mark.parametrize(("tile", "size"), [((8, 33, 621), 43776), ((2, 64, 128), 3056)])
def test_a_box_begins_at_one_place_for_all_its_references(
    tmp_path: Path, tile: Vector, size: int
) -> None:
    """X[i][k] does not move along j: X[i][k + j] needs all of it (PPCG 0.09: 8 × 684, 2 × 191)."""
    source = tmp_path / "autocorrelation.c"
    source.write_text(
        "void lags(double R[512][64], double X[512][4160]) {\n#pragma scop\n"
        "for (int i = 0; i < 512; i++) for (int j = 0; j < 64; j++)\n"
        "for (int k = 0; k < 4096; k++) R[i][j] += X[i][k] * X[i][k + j];\n#pragma endscop\n}\n",
        encoding="utf-8",
    )
    (facts,) = eatss.inspect(source).facts
    model = PpcgModel.of(facts, load_profile("h200"))
    assert staged(model, (*tile, *tile[:2]), size) == (["X"], size)
    assert staged(model, (*tile, *tile[:2]), size - 1) == ([], 0)


def demand(*, threads: float, registers: float, shared: float) -> Demand:
    given = {"threads": threads, "registers": registers, "shared_bytes": shared}
    return Demand(**{f.name: np.array([float(given.get(f.name, 1.0))]) for f in fields(Demand)})


@pytest.fixture(scope="module")
def ga100() -> Card:
    return card_of(load_profile("ga100"))


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "resident"),
    [
        (1024, 32, 0, 2),  # threads of an SM
        (256, 32, 0, 8),
        (256, 64, 0, 4),  # registers: 256 × 64 is a quarter of 65536
        (256, 65, 0, 3),  # registers come in eights
        (1024, 65, 0, 0),  # 1024 × 72 do not fit an SM
        (64, 200, 0, 4),  # ten warps would be three for a scheduler, of 168 registers a thread
        (33, 32, 0, 32),  # two warps; blocks of an SM
        (64, 32, 48 * 1024, 3),  # shared memory, with a kibibyte for each block
        (64, 32, 48 * 1024 + 1, 0),  # more than a block may have
        (1025, 16, 0, 0),  # more threads than a block may have
    ],
)
def test_blocks_of_an_sm_are_known_at_known_points(
    threads: int, registers: int, shared: int, resident: int, ga100: Card
) -> None:
    asked = demand(threads=threads, registers=registers, shared=shared)
    blocks = ga100.resident_blocks(
        asked.threads, asked.registers, asked.shared_bytes, ga100.shared_per_block_bytes
    )
    assert blocks[0] == resident


def random_vectors(kernel: PpcgKernel, random: np.random.Generator, count: int) -> list[Vector]:
    """Return sizes that are not only those one would choose."""
    found = [default_vector(kernel)]
    for _ in range(count):
        threads, left = [], 1024
        for _ in kernel.threads:
            threads.append(int(random.integers(1, left + 1)))
            left //= threads[-1]
        tiles = [int(random.integers(1, 600)) for _ in kernel.band]
        found.append((*tiles, *reversed(threads)))
    return found


@pytest.mark.parametrize(
    ("name", "gpu"),
    [("gemm", "xavier"), ("mttkrp", "h200"), ("seidel-2d", "xavier"), ("jacobi-1d", "h200")],
)
def test_every_size_of_every_kernel_asks_for_something_and_nothing_below_nothing(
    name: str, gpu: str
) -> None:
    random = np.random.default_rng(7)
    for model in models(name, gpu):
        kernel = model.kernel
        if not kernel.threads:
            continue
        vectors = tuple(random_vectors(kernel, random, 50))
        for limit, unroll in ((8192, False), (0, True), (49152, False)):
            columns = candidates(kernel, vectors, options(limit, unroll=unroll))
            asked, expected = model.columns(columns)
            for f in fields(Demand):
                column = getattr(asked, f.name)
                assert np.all(np.isfinite(column)), f.name
                assert np.all(column >= 0), f.name
            assert np.all(asked.instructions > 0)
            assert np.all(asked.shared_bytes <= limit)
            assert np.all(asked.lanes <= 1)
            launches = expected.resident_blocks > 0
            for cost in (expected.time_s, expected.energy_j):
                assert np.all(cost > 0)
                assert np.array_equal(np.isfinite(cost), launches)
            for term in (*expected.terms_s.values(), *expected.terms_j.values()):
                assert np.all(term[launches] >= 0)
            total = sum(expected.terms_j.values())
            assert np.allclose(np.asarray(total)[launches], expected.energy_j[launches])


def test_the_carve_out_leaves_l1_what_full_occupancy_does_not_take() -> None:
    card = card_of(load_profile("h200"))
    kib = 1024.0
    left = l1_left(np.array([0.0, 9 * kib, 200 * kib, 228 * kib]), card)
    assert (left / kib).tolist() == [256, 240, 28, 28]


def test_a_loop_of_known_length_waits_less_than_one_that_a_cut_leaves_open() -> None:
    _, columns = models("atax", "h200")
    known, cut = (
        columns.columns(
            candidates(
                columns.kernel,
                ((32, tile, 32),),
                options(0),
            )
        )[0].chain_cycles[0]
        for tile in (32, 48)
    )
    assert known < cut


CONSTANTS = CodeConstants()
CARD = card_of(load_profile("h200"))
LAUNCH_S = CONSTANTS.launch_wait * CARD.launch_s


def launch(**amounts: float) -> Demand:
    """Return what one launch of 132 blocks of 256 threads asks for, nothing but ``amounts``."""
    nothing: dict[str, float] = dict.fromkeys(Demand.__dataclass_fields__, 0.0)
    usual = {"launches": 1, "blocks": CARD.sms, "threads": 256, "registers": 32, "lanes": 1}
    limits = {"scatter": 1, "shared_limit_bytes": 49152}
    every = {**nothing, **usual, **limits, **amounts}
    return Demand(**{name: np.array([float(value)]) for name, value in every.items()})


def time_of(amounts: dict[str, float], card: Card = CARD) -> float:
    return float(predict(launch(**amounts), card, CONSTANTS).time_s[0])


def energy_of(amounts: dict[str, float], card: Card = CARD) -> float:
    return float(predict(launch(**amounts), card, CONSTANTS).energy_j[0])


UNLIMITED = replace(CARD, power_limit_w=1e6)
"""A card that may draw any power."""


def floating(instructions: float, unit_cycles: float) -> float:
    """Return the seconds of floating-point instructions, which schedulers issue, too."""
    each = unit_cycles**CONSTANTS.sharpness + (1 / 4) ** CONSTANTS.sharpness
    return float(instructions / CARD.sms * each ** (1 / CONSTANTS.sharpness) / CARD.clock_hz)


@pytest.mark.parametrize(
    ("amounts", "seconds"),
    [
        ({"instructions": 1e9}, 1e9 / CARD.sms / 4 / CARD.clock_hz),
        ({"fp64": 1e9}, floating(1e9, 32 / CARD.fp64_per_cycle)),
        ({"fp32": 1e9}, floating(1e9, 32 / CARD.fp32_per_cycle)),
        ({"fp32": 1e9, "late": 0.25}, floating(1e9, 1.25 * 32 / CARD.fp32_per_cycle)),
        ({"l1_wavefronts": 1e9}, 1e9 / CARD.sms / CARD.clock_hz),
        ({"shared_wavefronts": 1e9}, 1e9 / CARD.sms / CARD.clock_hz),
        ({"l2_bytes": 1e10}, 1e10 / CARD.l2_bytes_s),
        ({"dram_bytes": 1e10}, 1e10 / CARD.dram_bytes_s),
        ({"dram_bytes": 1e10, "scatter": 1.5}, 1.5e10 / CARD.dram_bytes_s),
        ({"chain_cycles": 1e6}, 1e6 / CARD.clock_hz),
    ],
)
def test_one_part_alone_takes_what_its_rate_says(amounts: dict[str, float], seconds: float) -> None:
    assert time_of(amounts, UNLIMITED) == pytest.approx(seconds + LAUNCH_S)


def test_the_host_launches_while_the_kernel_before_runs() -> None:
    short, long = {"chain_cycles": 1e3}, {"chain_cycles": 1e5}
    assert time_of(short) == CONSTANTS.host_launch_s
    assert time_of(long) == pytest.approx(1e5 / CARD.clock_hz + LAUNCH_S)


def test_two_equal_parts_overlap_as_the_exponent_says() -> None:
    both = {"dram_bytes": 1e10, "l2_bytes": 1e10 * CARD.l2_bytes_s / CARD.dram_bytes_s}
    alone = 1e10 / CARD.dram_bytes_s
    expected = alone * 2 ** (1 / CONSTANTS.sharpness) + LAUNCH_S
    assert time_of(both, UNLIMITED) == pytest.approx(expected)


@pytest.mark.parametrize("registers", [32, 64, 255])
def test_edges_of_a_block_that_has_an_sm_for_itself_come_on_top(registers: int) -> None:
    work, edges = {"fp64": 1e9, "registers": registers}, {"edge_cycles": 1e6}
    alone = time_of({**work, **edges}, UNLIMITED) - time_of(work, UNLIMITED)
    assert alone == pytest.approx(1e6 / CARD.clock_hz)


def test_one_block_more_than_the_sms_takes_twice_as_long() -> None:
    usual = time_of({"instructions": 1e8}) - LAUNCH_S
    blocks = CARD.sms + 1
    more = time_of({"instructions": 1e8 * blocks / CARD.sms, "blocks": blocks})
    assert more - LAUNCH_S == pytest.approx(2 * usual)


@pytest.mark.parametrize(
    ("threads", "blocks", "share"),
    [
        (32, 1, 1 / 4),
        (64, 1, 2 / 4),
        (96, 1, 3 / 4),
        (128, 1, 1.0),
        (160, 1, 5 / 8),  # a scheduler has two warps, the others one
        (64, 3, 6 / 8),
        (96, 3, 9 / 12),
        (64, 4, 1.0),
        (1024, 1, 1.0),
    ],
)
def test_the_scheduler_with_the_most_warps_sets_the_time(
    threads: int, blocks: int, share: float
) -> None:
    work = {"fp64": 1e7, "blocks": CARD.sms * blocks}
    whole = time_of({**work, "threads": 128}) - LAUNCH_S
    found = time_of({**work, "threads": threads}) - LAUNCH_S
    assert found == pytest.approx(whole / share)


def test_l2_takes_sectors_that_are_written_in_parts_more_slowly() -> None:
    whole, torn = {"l2_bytes": 3e8}, {"l2_bytes": 3e8, "torn_bytes": 2e8}
    seconds = 1e8 / CARD.l2_bytes_s + 2e8 / CARD.l2_torn_bytes_s
    assert time_of(torn, UNLIMITED) == pytest.approx(seconds + LAUNCH_S)
    assert CARD.l2_torn_bytes_s < CARD.l2_bytes_s / 5
    # memory and SMs do no more
    more_s = time_of(torn, UNLIMITED) - time_of(whole, UNLIMITED)
    more_j = energy_of(torn, UNLIMITED) - energy_of(whole, UNLIMITED)
    assert more_j == pytest.approx(CARD.prices.constant_w * more_s)


def test_energy_is_the_sum_of_prices_and_constant_power() -> None:
    amounts = {"instructions": 1e6, "fp64": 2e6, "l2_bytes": 3e8, "dram_bytes": 1e8}
    amounts |= {"shared_wavefronts": 1e6, "l1_wavefronts": 5e5, "operand_bytes": 7e7}
    prices = CARD.prices
    dynamic = (
        1e6 * prices.instruction_j
        + 2e6 * prices.fp64_j
        + 1e6 * prices.shared_wavefront_j
        + 5e5 * prices.l1_wavefront_j
        + 7e7 * prices.shared_byte_j
        + 3e8 * prices.l2_byte_j
        + 1e8 * prices.dram_byte_j
    )
    expected = dynamic + prices.constant_w * time_of(amounts, UNLIMITED)
    assert energy_of(amounts, UNLIMITED) == pytest.approx(expected)


HUNGRY = {"instructions": 3e10, "fp64": 1e10, "l2_bytes": 2e11, "dram_bytes": 1e11}
"""What takes more power than the card may draw."""


def test_a_card_at_its_power_limit_slows_down() -> None:
    time_s, energy_j = time_of(HUNGRY), energy_of(HUNGRY)
    assert energy_j / time_s == pytest.approx(CARD.power_limit_w, rel=1e-5)
    assert energy_j / time_s <= CARD.power_limit_w
    assert time_s > time_of(HUNGRY, UNLIMITED)
    assert energy_j < energy_of(HUNGRY, UNLIMITED)  # at a lower voltage


AMOUNTS = st.fixed_dictionaries(
    {
        "instructions": st.floats(0, 1e11),
        "fp64": st.floats(0, 3e10),
        "fp32": st.floats(0, 3e10),
        "l1_wavefronts": st.floats(0, 3e10),
        "shared_wavefronts": st.floats(0, 3e10),
        "operand_bytes": st.floats(0, 1e12),
        "l2_bytes": st.floats(0, 1e12),
        "dram_bytes": st.floats(0, 1e12),
        "chain_cycles": st.floats(0, 1e7),
        "launches": st.integers(1, 1000),
        "threads": st.sampled_from((32, 128, 1024)),
        "blocks": st.integers(1, 100_000),
    }
)


@given(amounts=AMOUNTS, limit_w=st.floats(150, 1000))
def test_no_power_is_above_the_limit_and_no_time_shorter_than_without_one(
    amounts: dict[str, float], limit_w: float
) -> None:
    limited = replace(CARD, power_limit_w=limit_w)
    time_s, energy_j = time_of(amounts, limited), energy_of(amounts, limited)
    assert energy_j / time_s <= limit_w * (1 + 1e-9)
    assert time_s >= time_of(amounts, UNLIMITED) * (1 - 1e-9)


def test_a_card_that_draws_more_than_it_may_whatever_runs_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        card_of(replace(load_profile("h200"), tdp_w=100.0))
    assert caught.value.code == "EATSS-M018"


@pytest.mark.parametrize("amounts", [{"shared_bytes": 49153}, {"threads": 1056}])
def test_what_cannot_launch_takes_for_ever(amounts: dict[str, float]) -> None:
    assert time_of(amounts) == energy_of(amounts) == float("inf")


def asked(vector: Vector, limit: int = 49152) -> Demand:
    (model,) = models("gemm", "h200")
    return model.columns(candidates(model.kernel, (vector,), options(limit)))[0]


def test_a_product_that_stays_the_same_along_points_runs_once_for_them() -> None:
    """Of ``alpha * A[i][k] * B[k][j]`` the first, for ten points along j: 4000³ × 1.1 + beta."""
    points = 4000**3 / 32
    assert asked((32, 160, 32, 4, 16)).fp64[0] == pytest.approx(1.1 * points, rel=1e-3)
    assert asked((32, 160, 32, 4, 160)).fp64[0] == pytest.approx(2.0 * points, rel=1e-3)


def test_points_behind_tests_share_what_tests_outside_theirs_decide() -> None:
    """Of 8 × 4 points half may lie outside along each loop (4000 = 62 × 64 + 32).

    A[i][k] is loaded once for each row, B[k][j] for two of its points once, for two for each row.
    """
    warps, steps = 63 * 63 * 4, 4000
    loads = warps * steps * (8 + 2 + 2 * 8)
    stored = asked((64, 64, 31, 8, 16)).shared_wavefronts[0] - loads
    assert 0 <= stored < 0.1 * loads


WAVEFRONTS = [
    ("gesummv", 0, (32, 32, 512), 8192, 1.44e8),  # rows of 32 doubles: two by one load
    ("mvt", 0, (32, 32, 512), 8192, 1.44e8),
    ("mvt", 1, (32, 32, 512), 8192, 4.5e6),
    ("gesummv", 0, (32, 25, 32), 13000, 7.776e7),  # rows of 25: one by one
    ("gemm", 0, (80, 80, 31, 8, 16), 39680, 7.013e8),
    ("correlation", 3, (112, 80, 32, 16, 16), 49152, 2.044e9),  # each point behind its own test
]
"""Cycles of shared memory in a launch, counted in machine code (machine-code.txt)."""


@pytest.mark.parametrize(("name", "at", "vector", "limit", "counted"), WAVEFRONTS)
def test_shared_memory_takes_the_cycles_that_machine_code_does(
    name: str, at: int, vector: Vector, limit: int, counted: float
) -> None:
    model = models(name, "h200")[at]
    columns = model.columns(candidates(model.kernel, (vector,), options(limit)))[0]
    assert columns.shared_wavefronts[0] == pytest.approx(counted, rel=0.06)


@pytest.mark.parametrize(
    ("dtype", "block", "other", "measured"),
    [("float", (16, 10), (16, 8), 1.6), ("double", (16, 15), (16, 16), 1.3)],
)
def test_points_over_a_triangle_have_tests_of_their_own_where_sides_of_a_block_do_not_divide(
    dtype: str, block: Vector, other: Vector, measured: float
) -> None:
    """correlation's products, tiles of 80 × 80; times that an H200 took (variants)."""
    model = models("correlation", "h200", dtype)[3]
    vectors = [(80, 80, 32, *sides) for sides in (block, other)]
    apart, alike = model.columns(candidates(model.kernel, vectors, options(49152)))[1].time_s
    assert apart > measured * alike


@pytest.mark.parametrize(
    ("counts", "uneven", "alone", "requests", "waits"),
    [
        ((10, 5), False, False, 50, 20),  # 1, then 4
        ((10, 2), True, False, 20, 20),
        ((5, 4), False, False, 20, 5),
        ((5, 4), True, False, 35, 15),  # 1, 2, then 4: lanes with three steps, and with four
        ((10, 1), False, False, 10, 4),  # the rows are the innermost loop
        ((6, 11), False, False, 66, 24),
        ((2, 10), False, True, 20, 20),  # gemm, 200 × 250 × 20 by 10 × 25 threads: B
        ((20, 1), False, True, 20, 5),  # A: one loop
    ],
)
def test_loops_of_copies_are_unrolled_by_four(
    counts: tuple[int, ...], uneven: bool, alone: bool, requests: int, waits: int
) -> None:
    numbers = [np.float64(count) for count in counts]
    found = rolled_loads(numbers, uneven, np.prod(counts), [False, alone])
    assert [float(one) for one in found] == [requests, waits]


def test_copies_of_uneven_rows_ask_as_often_as_machine_code_does() -> None:
    """syrk, 80 × 80 × 31 by 16 × 8 threads: 90.8e6 loads, 0.5e6 of them of private arrays."""
    requests, _ = rolled_loads([np.float64(5), np.float64(4)], True, np.float64(20), [False] * 2)
    warps, tiles, arrays = 50 * 50 * 4, 130, 2
    assert float(requests) * warps * tiles * arrays == pytest.approx(90.3e6, rel=0.01)


def test_what_statements_tie_together_is_staged_as_far_as_the_shortest_loop_goes() -> None:
    """PPCG has room for A[i][k], A[k][i] and, 25 × 25, A[k][k], so not for B."""
    (model,) = models("symm")
    own = staged(model, (100, 51, 25, 10, 51), 40400)
    assert own == (["A", "A", "A"], 2 * 25 * 51 * 8 + 25 * 25 * 8)


def test_a_warp_waits_at_least_as_long_as_it_issues() -> None:
    one = asked((80, 80, 31, 8, 16))
    warps = 50 * 50 * 4
    assert one.chain_cycles[0] > (one.instructions + 2 * one.fp64)[0] / warps


def code(model: PpcgModel, *vectors: Vector, limit: int = 49152) -> PpcgCode:
    plan = model.plan(candidates(model.kernel, vectors, options(limit)))
    return PpcgCode(plan, model.card, model.constants)


@pytest.mark.parametrize(("tile", "planes"), [((1, 20, 256), 3.1), ((20, 2, 256), 2.1)])
def test_a_star_reads_the_planes_that_a_block_does_not_share(
    tile: tuple[int, ...], planes: float
) -> None:
    model = models("heat-3d", "h200")[0]
    count = _Counting(code(model, (*tile, 1, 1, 256)), 0)
    read = (access for access in count.statement.accesses if access.array == "A")
    total = sum(float(np.max(count._own_share(access))) for access in read)
    assert total == pytest.approx(planes, rel=0.03)


def test_loads_in_front_of_a_loop_over_points_take_registers_as_in_machine_code() -> None:
    model = models("covariance", "h200")[2]
    steps = (16, 32, 40, 38)  # 38 leaves the end of the loop open
    of = code(model, *((80, 80, own, 16, 16) for own in steps))
    fewest = of.registers[3]
    assert (of.registers - fewest).tolist() == [32, 64, 80, 0]  # nvcc: 72, 106, 118 and 48
    waves = model.columns(of.plan.candidates)[0].shared_wavefronts
    assert waves[1] < 0.7 * waves[3]


def sweep(tmp_path: Path, text: str) -> PpcgModel:
    source = tmp_path / "sweep.c"
    source.write_text(
        "void sweep(double X[4000][4000], double B[4000][4000]) {\n#pragma scop\n"
        "for (int i = 1; i < 4000; i++) for (int j = 0; j < 4000; j++)\n"
        f"X[i][j] = (B[i][j] - 0.4 * X[i - 1][j]) {text};\n#pragma endscop\n}}\n",
        encoding="utf-8",
    )
    (facts,) = eatss.inspect(source).facts
    return PpcgModel.of(facts, load_profile("h200"))


RECURRENCE = """void runs({0} Y[4000][4000], {0} X[4000][4000]) {{
#pragma scop
for (int j = 0; j < 4000; j++) Y[0][j] = X[0][j];
for (int i = 1; i < 4000; i++) for (int j = 0; j < 4000; j++)
Y[i][j] = 0.5 * Y[i - 1][j] * X[i][j] + X[i][j];
#pragma endscop
}}
"""


def recurrence(tmp_path: Path, dtype: str) -> PpcgModel:
    source = tmp_path / "runs.c"
    source.write_text(RECURRENCE.format(dtype), encoding="utf-8")
    (facts,) = eatss.inspect(source).facts
    return PpcgModel.of(facts, load_profile("h200"))


def test_tiles_of_a_loop_that_begins_beside_a_statement_are_cut(tmp_path: Path) -> None:
    """PPCG's tiles begin at 0, with Y[0]: 43 divides the 3999 steps, and leaves no tile whole."""
    kernel = recurrence(tmp_path, "double").kernel
    assert [bool(kernel.is_cut("i", np.float64(tile))) for tile in (1, 32, 43, 4000)] == [
        False, True, True, False,
    ]  # fmt: skip


def test_a_recurrence_takes_what_was_measured(tmp_path: Path) -> None:
    """On an H200: PPCG's own sizes, and 32 × 43, which were predicted to take 0.4 of their time."""
    model = recurrence(tmp_path, "float")
    vectors = (default_vector(model.kernel), (32, 43, 32))
    found = model.columns(candidates(model.kernel, vectors, options(8192)))[1].time_s
    assert found == pytest.approx([0.861e-3, 0.975e-3], rel=0.2)


@pytest.mark.parametrize("text", ["/ 2.5", "* 0.4"])
def test_no_load_passes_the_branch_of_a_division(tmp_path: Path, text: str) -> None:
    count = _Counting(code(sweep(tmp_path, text), (50, 93, 50)), 0)
    count.add()
    assert (count._waits() == count.load_cycles).all() == ("/" in text)


def test_loads_wait_as_long_as_an_idle_card_was_measured_to_take(tmp_path: Path) -> None:
    model = sweep(tmp_path, "/ 2.5")
    of = code(model, (32, 32, 32), limit=8192)
    expected = model.columns(of.plan.candidates)[1]
    assert expected.time_s[0] == pytest.approx(1.667e-3, rel=0.1)  # measured on an H200


@pytest.mark.parametrize(
    ("dtype", "vector", "registers"),
    [("float", (80, 160, 16, 8, 16), 128), ("float", (160, 200, 20, 20, 25), 96),
     ("double", (160, 160, 15, 16, 16), 244), ("double", (32, 160, 32, 4, 32), 121)],
)  # fmt: skip
def test_sums_keep_the_operands_of_their_shorter_side(
    dtype: str, vector: Vector, registers: int
) -> None:
    (model,) = models("gemm", "h200", dtype)
    assert code(model, vector).registers[0] == pytest.approx(registers, rel=0.1)  # nvcc


def test_points_in_loops_take_as_many_registers_as_ptxas_aims_at() -> None:
    """heat-3d loads ten doubles; the median of 101 variants that nvcc compiled has 32."""
    assert code(models("heat-3d", "h200")[0], (8, 8, 198, 2, 2, 198)).registers == 32


def test_lanes_of_a_copy_without_an_element_ask_for_nothing() -> None:
    """gemm, 33 steps by 16 × 32 threads: one lane of 32 has the last column of A."""
    even, odd = (asked((32, 32, steps, 16, 32)).l2_bytes[0] for steps in (32, 33))
    assert odd == pytest.approx(even, rel=0.02)


def test_what_blocks_walk_over_is_lost_where_it_does_not_fit_l2() -> None:
    """covariance's products update symmat; an H200 took 15.7 and 10.9 ms, 8.66 and 5.55 J."""
    of = code(models("covariance", "h200")[2], (80, 160, 20, 8, 16), (80, 80, 32, 16, 16))
    assert of._lost.tolist() == [1.0, 0.0]


def test_a_launch_waits_for_whole_blocks_where_the_host_leaves_others_nothing() -> None:
    vector = (16, 336, 2, 48)
    lu, gemm = models("lu", "h200")[1], models("gemm", "h200")[0]
    assert _over_mean(code(lu, vector))[0] == pytest.approx(3.0, rel=0.01)
    assert _over_mean(code(gemm, (32, 32, 32, 32, 8))) == 1.0


def test_memory_is_read_faster_than_it_is_copied() -> None:
    read, copied, written = CARD.mixed(2.0, 0.0), CARD.mixed(1.0, 1.0), CARD.mixed(0.0, 2.0)
    assert read < written < copied
    mean = (CARD.dram_read_bytes_s + CARD.dram_copy_bytes_s) / 2
    assert copied == pytest.approx(mean / CARD.dram_copy_bytes_s)
    assert CARD.mixed(0.0, 0.0) == 1.0


@given(blocks=st.integers(1, 3000), falls=st.booleans())
def test_a_launch_over_a_triangle_takes_as_long_as_dealing_its_blocks_out_does(
    blocks: int, falls: bool
) -> None:
    """Their work grows or falls, an SM has one of them at a time."""
    work = (2.0 * np.arange(blocks) + 1.0) / blocks
    places = [0.0] * CARD.sms
    for each in work[::-1] if falls else work:
        heapreplace(places, places[0] + each)
    amounts = {"blocks": blocks, "threads": 1024, "registers": 64, "chain_cycles": 1e9}
    found = time_of({**amounts, "uneven": -1.0 if falls else 1.0}, UNLIMITED)
    turns = found * CARD.clock_hz / 1e9
    assert max(places) * 0.9 <= turns <= max(places) + 1.01


def triangle(tmp_path: Path, loops: str, text: str, count: int = 96) -> PpcgModel:
    source = tmp_path / "triangle.c"
    source.write_text(
        f"void product(double C[{count}][96], double A[{count}][96], double B[96][96]) {{\n"
        f"#pragma scop\nfor (int i = 0; i < {count}; i++) {loops} {text}\n#pragma endscop\n}}\n",
        encoding="utf-8",
    )
    (facts,) = eatss.inspect(source).facts
    return PpcgModel.of(facts, load_profile("h200"))


@pytest.mark.parametrize(
    ("loops", "uneven", "busy"),
    [
        ("for (int j = 0; j < 96; j++) for (int k = 0; k <= i; k++)", 1.0, 1.0),
        ("for (int j = 0; j < 96; j++) for (int k = i; k < 96; k++)", -1.0, 1.0),
        ("for (int j = 0; j < 96; j++) for (int k = 0; k < 96; k++)", 0.0, 1.0),
        ("for (int j = 0; j <= i; j++) for (int k = 0; k < 96; k++)", 0.0, 0.5),
    ],
)
def test_blocks_over_a_triangle_have_unequal_work_or_none(
    tmp_path: Path, loops: str, uneven: float, busy: float
) -> None:
    plan = code(triangle(tmp_path, loops, "C[i][j] += A[i][k] * B[k][j];"), (16,) * 5).plan
    assert _uneven(plan) == pytest.approx(uneven, abs=0.05)
    assert _busy(plan) == pytest.approx(busy, abs=0.05)


def test_a_tile_fetches_nothing_that_it_writes_first(tmp_path: Path) -> None:
    loops, product = "for (int j = 0; j < 96; j++)", "for (int k = 0; k < 96; k++) C[i][j] +="
    for first, reads in (("C[i][j] = 0;", False), ("C[i][j] *= 2;", True)):
        model = triangle(tmp_path, loops, f"{{ {first} {product} A[i][k] * B[k][j]; }}")
        assert {group.array: group.reads for group in model.kernel.groups}["C"] == reads


def test_what_is_the_same_in_all_tiles_of_a_block_is_copied_once(tmp_path: Path) -> None:
    """More than 256 tiles along i are taken in turn; B is the same in all where it is one tile."""
    text = "C[i][j] += A[i][k] * B[k][j];"
    loops = "for (int j = 0; j < 96; j++) for (int k = 0; k < 96; k++)"
    model = triangle(tmp_path, loops, text, count=4096)
    for vector, once in (((8, 96, 96, 8, 16), 2.0), ((8, 96, 32, 8, 16), 1.0)):
        plan = code(model, vector).plan
        groups = {group.array: group for group in model.kernel.groups}
        assert plan.turns[0] == 2.0
        found = [float(np.broadcast_to(plan.turns_beside(groups[n]), 1)[0]) for n in "AB"]
        assert found == [1.0, once]


def test_loads_from_shared_memory_take_several_elements_for_several_points() -> None:
    model = models("syrk", "h200", "float")[0]
    usual = candidates(model.kernel, (default_vector(model.kernel),), options(8192))
    assert model.columns(usual)[1].time_s[0] == pytest.approx(70.7e-3, rel=0.1)  # on an H200
