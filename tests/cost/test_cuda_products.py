"""What products by tensor cores ask for: every multiply-add once, less waiting with boxes ahead.

The prediction says where operands are loaded a step ahead, and boxes turned in registers.

Generated code has it there.

What blocks that take shares are predicted to have is what the code gives them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eatss
from eatss.analysis.layout import Candidates
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.cards.profile import Tf32
from eatss.choose.cuda import candidate_of, kernel_variant_of
from eatss.choose.cuda_candidates import MOST_PRODUCT_WORDS, candidates_of, sharing_candidates
from eatss.choose.options import ModelOptions
from eatss.cost.cuda_model import CudaModel, CudaPrediction
from eatss.frontend.options import Reading
from eatss.lower.variants import kernel_variants_for
from eatss.plan.launch import Compute
from eatss.plan.shares import Stream, stream_of
from eatss.session.session import Session
from eatss.session.steps import select_for

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
        for one in candidates_of(facts, kernel_variants_for(program, card)[facts.name], card)
        if not one.variant.spreads and one.variant.shared_loop is None
    ]
    return own, [model.columns(one) for one in own], card


@pytest.mark.parametrize("gpu", ["h200", "a100-40gb"])
def test_every_multiply_add_is_counted_once_on_tensor_cores(gpu: str) -> None:
    (plain, products), (alone, together), _ = offered(gpu)
    assert plain.variant.instruction is None
    assert products.variant.instruction is not None
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
        for one in candidates_of(
            facts, kernel_variants_for(program, card, tf32=tf32)[facts.name], card
        )
        if one.variant.instruction is not None and one.variant.shared_loop is None
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


def test_boxes_ahead_cost_shared_memory_and_save_waiting() -> None:
    (_, products), (_, together), _ = offered("h200")
    rows = {key: np.flatnonzero(products.pipeline_stages == key) for key in (1, 2, 3)}
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
        (at,) = np.flatnonzero(own & (products.pipeline_stages == stages))
        return float(demand.edge_cycles[at])

    turns = NK / 16
    assert edges(64, 128, 16, 2) - edges(64, 128, 16, 3) > turns * 300
    assert edges(128, 128, 32, 2) == pytest.approx(edges(128, 128, 32, 3))


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
    own = [one for one in kernel_variants_for(program, card)[facts.name] if one.shared_loop == "j"]
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
        if layouts.variant.instruction is not None:
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


def test_operands_ahead_take_the_registers_of_two_steps_and_hide_their_loads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = load_profile("h200")
    source = data_directory("kernels") / "gemm.c"
    symbolic = Session(source, Reading(defines={"DATA_TYPE": "float"})).symbolic
    (kernel,) = select_for(symbolic.program, card, ModelOptions(target="cuda")).kernels
    (facts,) = symbolic.program.facts
    own = replace(
        kernel,
        warps=None,
        spread=None,
        shared_sum=None,
        tile_sizes=(("i", 256), ("j", 128), ("k", 8)),
        block=(("i", 16), ("j", 16)),
        stages=2,
        references=tuple(replace(one, placement="shared") for one in kernel.references),
    )
    variant = kernel_variant_of(kernel_variants_for(symbolic.program, card)[facts.name], own)
    assert variant is not None

    def registers_and_cycles() -> tuple[float, float]:
        ((demand, _),) = (
            CudaModel.of(facts, card).columns(candidate_of(facts, variant, own)).launches
        )
        return demand.registers[0], demand.chain_cycles[0]

    registers, cycles = registers_and_cycles()
    monkeypatch.setattr(Compute, "register_prefetch_on", lambda *_: False)
    fewer, longer = registers_and_cycles()
    assert fewer < registers
    assert cycles < longer


def taking_shares(blocks: int, tiles: int, steps: int) -> Stream:
    """Return what is taking_shares of blocks that take shares, or do not if there are none."""
    return stream_of(*(np.array([float(one)]) for one in (blocks, tiles, steps)))


def test_a_large_product_is_shared_but_for_its_waves_of_whole_tiles() -> None:
    """Of 300 tiles of 10 steps 132 blocks take one each; of the others each has 13 steps."""
    found = taking_shares(132, 300, 10)
    assert found.tiles[0] == pytest.approx(1 + 13 / 10)
    assert found.streamed[0] == pytest.approx(168 / 300)
    assert found.turns[0] == pytest.approx(1 + 13 / 10 + 1)
    assert found.cuts[0] == pytest.approx(1680 / 13 - 1)
