"""What products by tensor cores ask for: every multiply-add once, less waiting with boxes ahead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eatss
from eatss.analysis.layout import Candidates
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.cards.profile import Tf32
from eatss.choose.cuda_candidates import MOST_PRODUCT_WORDS, candidates_of, sharing_candidates
from eatss.cost.card import card_of
from eatss.cost.cuda_model import CudaModel, CudaPrediction
from eatss.frontend.options import Reading
from eatss.lower.structures import structures_for
from eatss.session.session import Session

NI, NJ, NK = 768, 1536, 512
"""Multiples of every tile that is offered."""

WARP = 32


def offered(
    gpu: str, dtype: str = "double"
) -> tuple[list[Candidates], list[CudaPrediction], GpuProfile]:
    """Return gemm's layouts without and with tensor cores, and what is predicted of them."""
    card = load_profile(gpu)
    reading = Reading(defines=(f"NI={NI}", f"NJ={NJ}", f"NK={NK}", f"DATA_TYPE={dtype}"))
    program = Session(data_directory("kernels") / "gemm.c", reading, code=True).analysed
    (facts,) = program.facts
    model = CudaModel.of(facts, card)
    own = [
        one
        for one in candidates_of(facts, structures_for(program, card)[facts.name], card)
        if not one.structure.spreads and one.structure.shared_loop is None
    ]
    return own, [model.columns(one) for one in own], card


@pytest.mark.parametrize("gpu", ["h200", "a100-40gb"])
def test_every_multiply_add_is_counted_once_on_tensor_cores(gpu: str) -> None:
    (plain, products), (alone, together), _ = offered(gpu)
    assert plain.structure.instruction is None
    assert products.structure.instruction is not None
    ((demand, _),) = together.launches
    assert np.all(demand.tensor64 * WARP == NI * NJ * NK)
    ((without, _),) = alone.launches
    assert not without.tensor64.any()
    # what is left for plain units: beta C, and alpha once for each element of A that a warp loads
    assert np.all(demand.fp64 * WARP < NI * NJ * NK / 4)
    assert np.all(without.fp64 * WARP >= NI * NJ * NK)


def in_tf32(tf32: Tf32) -> tuple[Candidates, CudaPrediction]:
    """Return gemm's layouts of floats on tensor cores, and what is predicted of them."""
    card = load_profile("h200")
    reading = Reading(defines=(f"NI={NI}", f"NJ={NJ}", f"NK={NK}", "DATA_TYPE=float"))
    program = Session(data_directory("kernels") / "gemm.c", reading, code=True).analysed
    (facts,) = program.facts
    own = [
        one
        for one in candidates_of(facts, structures_for(program, card, tf32=tf32)[facts.name], card)
        if one.structure.instruction is not None and one.structure.shared_loop is None
    ]
    (layouts,) = own
    found = CudaModel.of(facts, card).columns(layouts)
    return layouts, found


def test_floats_on_tensor_cores_are_counted_once_and_split_ones_three_times() -> None:
    rounded, split = in_tf32("on"), in_tf32("split")
    for times, (_, found) in ((1, rounded), (3, split)):
        ((demand, _),) = found.launches
        assert np.all(demand.tensor32 * WARP == times * NI * NJ * NK)
        assert not demand.tensor64.any()
        assert np.all(demand.fp32 * WARP < NI * NJ * NK / 4)
    layouts, together = rounded
    peak = load_profile("h200").peak_tf32_tensor_gflops
    assert peak is not None
    assert np.all(together.total.time_s >= 2 * NI * NJ * NK / (peak * 1e9))
    # of a thread's registers, sums of floats take half as many as those of doubles
    points = np.prod([layouts.tiles[n] // layouts.threads[n] for n in ("i", "j")], axis=0)
    assert points.max() == max(MOST_PRODUCT_WORDS.values())
    same = [one.total.energy_j for _, one in (rounded, split)]
    runs = np.isfinite(same[0]) & np.isfinite(same[1])
    assert np.all(same[0][runs] < same[1][runs])


def test_tensor_cores_are_never_faster_than_their_peak() -> None:
    _, (_, together), card = offered("h200")
    assert card.peak_fp64_tensor_gflops is not None
    least_s = 2 * NI * NJ * NK / (card.peak_fp64_tensor_gflops * 1e9)
    assert np.all(together.total.time_s >= least_s)


def test_boxes_ahead_cost_shared_memory_and_save_waiting() -> None:
    (_, products), (_, together), _ = offered("h200")
    rows = {key: np.flatnonzero(products.boxes == key) for key in (1, 2, 3)}
    for fewer, more in ((1, 2), (2, 3)):
        assert np.all(
            together.shared_bytes[rows[more]] * fewer == together.shared_bytes[rows[fewer]] * more
        )
        ((demand, _),) = together.launches
        assert np.all(demand.chain_cycles[rows[more]] <= demand.chain_cycles[rows[fewer]])
        assert np.any(demand.chain_cycles[rows[more]] < demand.chain_cycles[rows[fewer]])


def test_copies_spread_over_a_turn_are_waited_for_where_it_is_short() -> None:
    """With two boxes the last copies start half a turn before they are wanted, with three a turn.

    A turn of 64 x 128 x 16 products is 1024 cycles of the tensor cores, one of 128 x 128 x 32 is
    4096. A sector is there within 700 cycles and what the way from L2 takes.
    """
    (_, products), (_, together), _ = offered("h200")
    ((demand, _),) = together.launches

    def edges(rows: int, columns: int, steps: int, stages: int) -> float:
        sizes = {"i": rows, "j": columns, "k": steps}
        own = np.logical_and.reduce([products.tiles[name] == one for name, one in sizes.items()])
        own &= (products.threads["i"] == 16) & (products.threads["j"] == 16)
        (at,) = np.flatnonzero(own & (products.boxes == stages))
        return float(demand.edge_cycles[at])

    turns = NK / 16
    assert edges(64, 128, 16, 2) - edges(64, 128, 16, 3) > turns * 300
    assert edges(128, 128, 32, 2) == pytest.approx(edges(128, 128, 32, 3))


def test_products_that_load_when_they_multiply_take_longer_the_fewer_points_they_have() -> None:
    (plain,), (alone,), _ = offered("h200", "float")
    ((demand, _),) = alone.launches
    staged = np.logical_and.reduce([column > 0 for column in plain.staged.values()])
    points = np.prod([plain.tiles[n] // plain.threads[n] for n in ("i", "j")], axis=0)
    threads = plain.threads["i"] * plain.threads["j"]
    fine = staged & (plain.stages == 2) & (threads == 128) & (plain.tiles["k"] == 64)
    late = [demand.late[fine & (points == own)] for own in (128, 64, 32)]
    assert all(len(one) and np.allclose(one, one[0]) for one in late)
    few = [10 / 128, 10 / 64, 10 / 32]  # instructions of a step over its products
    assert [float(one[0]) for one in late] == pytest.approx(few, rel=0.02)
    assert not demand.late[staged & (plain.stages == 1)].any()


def test_energy_of_products_is_that_of_the_card() -> None:
    (_, products), _, card = offered("h200")
    (facts,) = Session(
        data_directory("kernels") / "gemm.c",
        Reading(defines=(f"NI={NI}", f"NJ={NJ}", f"NK={NK}")),
        code=True,
    ).analysed.facts
    model = CudaModel.of(facts, card)
    free = replace(
        model.card, prices=replace(model.card.prices, tensor64_j=0.0), power_limit_w=float("inf")
    )
    dear = replace(model.card, power_limit_w=float("inf"))
    spent = [replace(model, card=one).columns(products).total.energy_j for one in (dear, free)]
    runs = np.isfinite(spent[0])
    each_j = model.card.prices.tensor64_j / WARP
    assert runs.sum() > len(runs) / 2
    assert np.allclose((spent[0] - spent[1])[runs], NI * NJ * NK * each_j, rtol=1e-9)


def test_what_blocks_share_is_counted_once_but_for_their_last_turns() -> None:
    card = load_profile("h200")
    sizes = {"NI": 512, "NJ": 500, "NK": 512, "NR": 64}
    reading = Reading(defines=tuple(f"{name}={size}" for name, size in sizes.items()))
    program = Session(data_directory("kernels") / "mttkrp.c", reading, code=True).analysed
    (facts,) = program.facts
    own = [one for one in structures_for(program, card)[facts.name] if one.shared_loop == "j"]
    assert [one.instruction is None for one in own] == [True, False]
    for layouts in sharing_candidates(facts, own, card):
        found = CudaModel.of(facts, card).columns(layouts)
        ((demand, _),) = found.launches
        tiles = np.ceil(512 / layouts.tiles["i"]) * np.ceil(64 / layouts.tiles["r"])
        assert np.all(demand.blocks == tiles * layouts.chunks)
        turns = np.ceil(500 / layouts.tiles["j"])
        most = np.minimum(500, np.ceil(turns / layouts.chunks) * layouts.tiles["j"])
        points = tiles * layouts.tiles["i"] * layouts.tiles["r"]
        done = points * 512 * most * layouts.chunks
        if layouts.structure.instruction is not None:
            assert np.allclose(demand.tensor64 * WARP, done, rtol=1e-9)
        assert np.all(layouts.chunks <= turns)
        assert np.all(tiles < card.sm_count)
        # each element of the tensor comes once, and each block adds all of its sums
        assert np.all(demand.dram_bytes >= 8 * 512 * 500 * 512)
        assert np.all(demand.dram_bytes < 1.1 * 8 * 512 * 500 * 512)
        assert np.all(demand.l2_bytes >= 2 * 8 * layouts.chunks * 512 * 64)


TRIANGLE = """
void product(double C[2048][2048], double A[2048][4096], double B[2048][2048])
{
#pragma scop
    for (int i = 0; i < 2048; i++)
        for (int j = 0; j < 2048; j++)
            for (int k = 0; k < LAST; k++)
                C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""


def seconds(what: str, last: str, tile: int, step: int, first: str = "A[i][k]") -> float:
    """Return the seconds of some arithmetic in a product, with square tiles."""
    found = eatss.predict(
        TRIANGLE.replace("LAST", last).replace("A[i][k]", first),
        gpu="h200",
        target="cuda",
        tiles={"i": tile, "j": tile, "k": step},
        block={"i": 16, "j": 8 * tile // 64},
    )
    (kernel,) = found.kernels
    assert kernel.warps is not None
    assert kernel.predicted is not None
    return dict(kernel.predicted.times_s)[what]


def test_tiles_that_a_triangle_cuts_run_whole_where_other_points_add_zeros() -> None:
    assert seconds("fp64", "i", 64, 16) == 0
    whole = seconds("fp64 tensor cores", "2048", 64, 16)
    # of the tiles on the diagonal half is in the program
    cut = seconds("fp64 tensor cores", "i", 64, 16)
    assert cut / whole == pytest.approx(0.5 + (64 + 16) / 2 / 2048, rel=0.05)


def test_tiles_that_a_triangle_cuts_are_computed_without_tensor_cores_elsewhere() -> None:
    along = "A[0][i + k]"  # what other points read there is not zero
    assert seconds("fp64", "2048", 64, 16, along) == 0
    small, large = (seconds("fp64", "i", *sizes, along) for sizes in ((64, 16), (128, 32)))
    assert large > small > 0
    # of all steps those for as many as the tile has rows and steps, at the plain rate
    card = card_of(load_profile("h200"))
    steps = (64 + 16) / 2048 * 2048**3 / card.fp64_per_cycle / card.sms / card.clock_hz
    tail = 8 / (32 * 32 / card.sms)
    assert steps * tail <= small <= 1.1 * steps * tail  # the clock may fall


def test_arithmetic_of_threads_hides_copies_ahead() -> None:
    """With 8 x 8 points boxes are turned: loads of one step leave room to compute meanwhile.

    A tile takes longer than its copies then, however few steps it has. With fewer points threads
    wait for vectors of several steps, and more often where tiles are short.
    """
    (plain, _), (alone, _), _ = offered("h200")
    ((demand, _),) = alone.launches
    staged = np.logical_and.reduce([column > 0 for column in plain.staged.values()])
    fine = staged & alone.fits & (plain.stages == 2)
    fine &= np.minimum(plain.threads["i"], plain.threads["j"]) > 1
    for points, nearly in ((8, True), (4, False)):
        own = fine & (plain.tiles["i"] == points * plain.threads["i"])
        own &= plain.tiles["j"] == points * plain.threads["j"]
        short, long = (demand.chain_cycles[own & (plain.tiles["k"] == steps)] for steps in (16, 64))
        assert len(short) == len(long) > 0
        assert np.all((short < 1.1 * long) == nearly)
