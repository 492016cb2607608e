"""What PPCG's code asks of a card, and what the card makes of it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.ppcg_candidates import Vector, candidates, default_vector
from eatss.choose.selection import PpcgOptions
from eatss.cost.card import Card, card_of
from eatss.cost.demand import Demand
from eatss.cost.ppcg_code import l1_left
from eatss.cost.ppcg_model import PpcgModel
from eatss.plan.ppcg_groups import PpcgKernel
from tests.examples import SLOW_KERNELS

FILES = sorted(data_directory("kernels").glob("*.c"))


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


def test_elements_of_half_the_width_take_half_the_room() -> None:
    (model,) = models("gemm", dtype="float")
    assert staged(model, (32, 32, 32, 32, 16), 8192) == (["A", "B"], 8192)


def test_what_each_thread_sums_up_is_private() -> None:
    (model,) = models("gemm")
    assert {group.array for group in model.kernel.groups if group.private} == {"C"}


def test_a_stencil_of_one_step_stages_nothing_under_the_default_limit() -> None:
    for model in models("jacobi-2d"):
        assert staged(model, default_vector(model.kernel), 8192) == ([], 0)


@pytest.mark.long
def test_a_block_that_asks_for_more_than_the_limit_gets_nothing() -> None:
    for file in ("2mm", "heat-3d", "syrk"):
        for model in models(file):
            _, size = staged(model, default_vector(model.kernel), 49152)
            assert size <= 49152


def test_the_default_of_conv_2d_does_not_launch_and_other_sizes_do() -> None:
    file = data_directory("kernels") / "conv-2d.c"
    (found,) = eatss.predict(file, gpu="ga100").kernels
    assert found.predicted is None
    assert found.default is None
    (small,) = eatss.predict(file, gpu="ga100", tiles={"c": 4, "h": 4, "w": 32}).kernels
    assert small.predicted is not None


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


@pytest.mark.samples(7)
@pytest.mark.parametrize(
    ("file", "gpu"),
    [
        pytest.param(
            file,
            ("xavier", "h200")[at % 2],
            marks=pytest.mark.long if file.stem in SLOW_KERNELS else (),
        )
        for at, file in enumerate(FILES)
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_every_size_of_every_kernel_asks_for_something_and_nothing_below_nothing(
    file: Path, gpu: str
) -> None:
    random = np.random.default_rng(7)
    for model in models(file.stem, gpu):
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


def test_a_column_has_no_neighbours_and_is_not_staged() -> None:
    solving = models("trisolv")[2]
    assert staged(solving, default_vector(solving.kernel), 49152) == (["x"], 8)


def test_what_is_read_again_in_other_tiles_only_is_not_staged() -> None:
    update = models("lu")[1]
    assert staged(update, (1, 256, 1, 64), 8192) == (["A"], 8)
    assert staged(update, (8, 1024, 1, 256), 8192) == (["A"], 8192)


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
