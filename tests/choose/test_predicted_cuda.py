"""Sizes for generated code: the best of what is offered, and a card can run it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss.base.shipped
from eatss.analysis.layout import thread_axes, threads_along
from eatss.base.diagnostics import NoSolutionError
from eatss.base.shipped import data_directory
from eatss.base.targets import CUDA
from eatss.cards import GpuProfile, load_profile
from eatss.choose import ModelOptions, Selection
from eatss.choose import cuda as predicted_cuda
from eatss.choose.cuda import FULL_SPEED, FULL_SPEED_AHEAD, CudaChoice, expected_of
from eatss.choose.cuda_candidates import every_candidate
from eatss.choose.expectation import KernelExpectation
from eatss.choose.objectives import costs
from eatss.cost.cuda_model import CudaModel
from eatss.lower.structures import structures_for
from eatss.report.selection import selection_table
from eatss.session.steps import select_for
from tests.choose.cuda_kernels import ENERGY, KERNELS, analysed, selected, structures
from tests.examples import SLOW_KERNELS, with_long

FORWARD = Path(__file__).parent.parent / "forward_substitution.c"

SLOW = ("adi", "fdtd-apml")
CARDS = {"double": ("t4", "h200"), "float": ("xavier", "a100-40gb")}
GOLDEN = Path(__file__).parents[1] / "lower" / "golden"
OBJECTIVES: tuple[Any, ...] = ("energy", "time", "edp")


def select(kernel: str, card: GpuProfile, **changes: Any) -> Selection:
    return select_for(analysed(kernel).program, card, replace(ENERGY, **changes))


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    ("name", "dtype", "gpu"),
    [
        pytest.param(name, dtype, gpu, marks=[pytest.mark.long] if slow else [])
        for at, name in enumerate(KERNELS)
        for dtype, cards in CARDS.items()
        for number, gpu in enumerate(cards)
        for slow in [name in SLOW_KERNELS or (gpu != "h200" and at % 4 != number)]
    ],
)
def test_every_kernel_gets_a_proven_layout_that_launches(name: str, dtype: str, gpu: str) -> None:
    card = load_profile(gpu)
    for kernel in selected(name, gpu, dtype).kernels:
        if not kernel.tile_sizes and kernel.spread is None:
            assert kernel.note is not None
            continue
        assert kernel.optimal == "proven"
        assert kernel.compared > 0
        one = kernel.predicted
        assert one is not None
        assert 0 < one.time_s < float("inf")
        assert 0 < one.energy_j < float("inf")
        assert one.resident_blocks >= 1
        lanes = 1 if kernel.spread is None else kernel.spread.lanes
        assert lanes * kernel.threads_per_block <= card.threads_per_block
        assert one.threads <= card.threads_per_block
        assert one.registers <= card.registers_per_thread
        assert one.registers * one.threads <= card.registers_per_block
        assert one.shared_bytes <= shared_limit(card, by_warps=kernel.warps is not None)
        threads = [size for _, size in kernel.block]
        assert threads_along("z", threads, thread_axes(threads)) <= CUDA.most_threads["z"]
        assert all(kernel.tile_size(loop) % size == 0 for loop, size in kernel.block)
        assert one.blocks < 2**31
        for usage in kernel.usage:
            assert usage.used <= usage.available
        if card.tdp_w is not None:
            assert one.power_w <= card.tdp_w * 1.000001


def shared_limit(card: GpuProfile, *, by_warps: bool) -> int:
    """Return the shared memory of a block in bytes: all that the card lets ask for with warps."""
    return card.shared_per_block_optin_bytes if by_warps else card.shared_per_block_bytes


def all_costs(kernel: str, card: GpuProfile, objective: Any, at: int) -> list[int]:
    """Return the costs of all layouts of a kernel that are offered and may be taken."""
    facts = analysed(kernel).program.facts[at]
    model = CudaModel.of(facts, card)
    values, times = [], []
    for layouts in every_candidate(facts, structures(kernel, card.name)[facts.name], card):
        found = model.columns(layouts)
        limit = shared_limit(card, by_warps=layouts.structure.instruction is not None)
        fine = found.fits & (found.shared_bytes <= limit)
        fine &= np.isfinite(found.total.time_s)
        values.append(costs(found.total, objective)[fine])
        times.append(found.total.time_s[fine])
    value, time_s = np.concatenate(values), np.concatenate(times)
    taken: list[int] = value[time_s <= FULL_SPEED * time_s.min()].tolist()
    return taken


@pytest.mark.samples(2)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["gemm", "atax", "trmm", "jacobi-2d", "mttkrp", "gemver"])
def test_the_selected_layout_is_the_best_of_all(name: str, objective: Any) -> None:
    card = load_profile("h200")
    selection = select(name, card, objective=objective)
    problems = [
        CudaChoice(facts, structures(name)[facts.name], card, selection.options).problem()
        for facts in analysed(name).program.facts
    ]
    for at, (kernel, problem) in enumerate(zip(selection.kernels, problems, strict=True)):
        assert problem is not None
        every = all_costs(name, card, objective, at)
        least = min(every)
        assert kernel.objective == least == min(problem.costs)
        assert kernel.compared >= len(every)
        assert len(problem.rows) == len(problem.costs)
        entries = {**dict(kernel.tile_sizes)}
        entries |= {f"threads:{loop}": size for loop, size in kernel.block}
        if kernel.warps is not None:
            entries |= {f"warps:{kernel.warps.instruction}": 1, "stages": kernel.warps.stages}
        best = [
            dict(zip(problem.variables, row, strict=True))
            for row, cost in zip(problem.rows, problem.costs, strict=True)
            if cost == least
        ]
        host = kernel.host_loop
        assert any(
            all(row[name] == size for name, size in entries.items() if name != host) for row in best
        )


@pytest.mark.long
def test_the_table_has_the_best_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicted_cuda, "MOST_ROWS", 10)
    card = load_profile("h200")
    (facts,) = analysed("mttkrp").program.facts
    problem = CudaChoice(facts, structures("mttkrp")[facts.name], card, ENERGY).problem()
    assert problem is not None
    every = sorted(all_costs("mttkrp", card, "energy", 0))
    found = sorted(problem.costs)
    assert 10 <= len(found) < len(every)
    assert found == every[: len(found)]  # of equal costs all or none
    assert every[len(found)] > found[-1]


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", ["gemm", "atax", "trmm", "durbin", "heat-3d"])
def test_a_selected_layout_is_expected_to_do_what_the_selection_says(name: str) -> None:
    card = load_profile("h200")
    facts = analysed(name).program.facts
    for kernel, own in zip(selected(name).kernels, facts, strict=True):
        found, note = expected_of(own, structures(name)[own.name], card, kernel)
        assert found == kernel.predicted
        assert (note is None) == (found is not None)


@pytest.mark.long
def test_equal_input_gives_equal_output() -> None:
    card = load_profile("a100-40gb")
    for name in ("gemm", "correlation", "trmm"):
        assert select(name, card) == select(name, card)


@pytest.mark.parametrize("name", ["gemm", "atax", "trmm", "durbin"])
def test_a_selection_survives_json(name: str) -> None:
    selection = selected(name)
    document = json.loads(json.dumps(selection.to_dict()))
    assert document["schema_version"] == 5
    assert Selection.from_dict(document) == selection


def test_json_says_how_sums_are_spread_and_what_the_host_runs() -> None:
    first, second = eatss.select(FORWARD, gpu="h200", target="cuda").to_dict()["kernels"]
    assert first["spread"].keys() == {"lanes", "tile", "chunks"}
    assert (first["sum_loops"], first["host_loop"]) == (["k"], "i")
    assert (second["spread"], second["sum_loops"], second["host_loop"]) == (None, [], None)


def test_the_table_says_so_too_and_speaks_of_no_default() -> None:
    text = selection_table(eatss.select(FORWARD, gpu="h200", target="cuda"), explain=True)
    assert "the loop i runs on the host" in text
    assert "sum over k: " in text
    assert "points" in text
    assert "time alone" in text
    assert "default" not in text
    assert "PPCG" not in text
    assert "expected: " in text  # the program


def test_without_shared_memory_nothing_is_staged() -> None:
    (kernel,) = select("gemm", load_profile("h200"), shared_per_block_bytes=0).kernels
    assert "shared" not in {reference.placement for reference in kernel.references}
    assert kernel.predicted is not None
    assert kernel.predicted.shared_bytes == 0


def test_more_shared_memory_is_never_expected_to_cost_more() -> None:
    card = load_profile("h200")
    costs_of = [
        select("gemm", card, shared_per_block_bytes=size).kernels[0].objective
        for size in (0, 8192, 49152, card.shared_per_block_optin_bytes)
    ]
    assert costs_of == sorted(costs_of, reverse=True)


def test_a_card_that_runs_no_layout_is_an_error_that_names_the_kernel() -> None:
    with pytest.raises(NoSolutionError) as caught:
        select("gemm", replace(load_profile("h200"), threads_per_block=16))
    (finding,) = caught.value.diagnostics
    assert finding.code == "EATSS-M020"
    assert "kernel0" in finding.message
    assert finding.hint


def test_all_kernels_without_a_layout_are_reported_at_once() -> None:
    card = replace(load_profile("h200"), threads_per_block=16)
    with pytest.raises(NoSolutionError) as caught:
        select("2mm", card)
    assert [f.code for f in caught.value.diagnostics] == ["EATSS-M020"] * 2


def test_strict_order_spreads_nothing() -> None:
    program = analysed("atax").program
    selection = select_for(program, load_profile("h200"), ENERGY, strict_fp=True)
    assert all(k.spread is None and k.host_loop is None for k in selection.kernels)


def test_energy_is_saved_at_nearly_full_speed() -> None:
    card = load_profile("h200")
    for name in ("gemm", "jacobi-2d", "atax"):
        fastest = select(name, card, objective="time")
        frugal = selected(name)
        for one, other in zip(fastest.kernels, frugal.kernels, strict=True):
            assert one.predicted is not None
            assert other.predicted is not None
            assert other.predicted.time_s <= FULL_SPEED * one.predicted.time_s * 1.000001
            assert other.predicted.energy_j <= one.predicted.energy_j * 1.000001


TRANSPOSED = """
void f(float C[2800][2800], float A[2800][2800], float B[2800][2800])
{
#pragma scop
  for (int i = 0; i < 2800; i++)
    for (int j = 0; j < 2800; j++)
      for (int k = 0; k < 2800; k++)
        C[i][j] += A[k][i] * B[j][k];
#pragma endscop
}
"""


def slower(source: str | Path) -> float:
    """Return how many times longer than the fastest layout the one with the least energy takes."""
    found = [
        eatss.select(source, gpu="h200", target="cuda", objective=one, defines=("DATA_TYPE=float",))
        for one in ("energy", "time")
    ]
    frugal, fastest = (one.kernels[0].predicted for one in found)
    assert frugal is not None
    assert fastest is not None
    return frugal.time_s / fastest.time_s


@pytest.mark.filterwarnings("ignore:.*DATA_TYPE changes nothing")
def test_less_time_is_given_away_where_loads_are_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slower(TRANSPOSED) <= FULL_SPEED_AHEAD
    monkeypatch.setattr(predicted_cuda, "FULL_SPEED_AHEAD", FULL_SPEED)
    assert slower(TRANSPOSED) > FULL_SPEED_AHEAD
    monkeypatch.undo()
    # its fastest layout fills boxes ahead, but loads from them when it multiplies
    assert FULL_SPEED_AHEAD < slower(data_directory("kernels") / "conv-2d.c") <= FULL_SPEED


CONTRACTION = """
#define N {trips}
void f({arrays}) {{
#pragma scop
  {loops}
    C{free} += A{left} * B{right};
#pragma endscop
}}
"""


def contraction(free: str, trips: int) -> str:
    """A sum over ``p`` of tensors that each have half of the free loops."""
    half = len(free) // 2

    def at(names: str) -> str:
        return "".join(f"[{name}]" for name in names)

    left, right = free[:half] + "p", "p" + free[half:]
    arrays = [("C", free), ("A", left), ("B", right)]
    return CONTRACTION.format(
        trips=trips,
        arrays=", ".join(f"double {name}{'[N]' * len(dims)}" for name, dims in arrays),
        loops="\n  ".join(f"for (int {n} = 0; {n} < N; {n}++)" for n in free + "p"),
        free=at(free),
        left=at(left),
        right=at(right),
    )


@pytest.mark.samples(2)
@pytest.mark.parametrize(("free", "trips"), [("abcd", 3), ("abcd", 48), ("abcdef", 8)])
def test_many_parallel_loops_are_laid_out_within_seconds(free: str, trips: int) -> None:
    program = eatss.inspect(contraction(free, trips), cut="eatss")
    card = load_profile("h200")
    own = structures_for(program, card)
    began = time.process_time()
    (kernel,) = select_for(program, card, ENERGY).kernels
    assert time.process_time() - began < 20
    assert own[kernel.name]
    assert kernel.optimal == "proven"
    assert [name for name, _ in kernel.block] == list(free)
    assert sum(threads > 1 for _, threads in kernel.block) <= 3
    threads = [size for _, size in kernel.block]
    assert threads_along("z", threads, thread_axes(threads)) <= CUDA.most_threads["z"]
    lanes = 1 if kernel.spread is None else kernel.spread.lanes
    assert prod(threads) * lanes >= 32


def test_a_convolution_layer_reuses_both_operands_in_registers() -> None:
    source = (GOLDEN / "convolution-layer.c").read_text(encoding="utf-8")
    (kernel,) = eatss.select(source, gpu="h200", target="cuda").kernels
    points = {name: kernel.tile_size(name) // threads for name, threads in kernel.block}
    assert points["k"] > 1  # each of the input's elements meets several filters
    assert points["x"] * points["y"] * points["n"] > 1  # and each filter several elements
    assert kernel.block[-1][0] == "x"


def test_gemm_reuses_operands_in_registers_and_shared_memory() -> None:
    for gpu in ("h200", "a100-40gb"):
        (kernel,) = selected("gemm", gpu).kernels
        points = [kernel.tile_size(loop) // threads for loop, threads in kernel.block]
        assert all(p > 1 for p in points)
        assert {r.array for r in kernel.references if r.placement == "shared"} == {"A", "B"}


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", with_long(KERNELS[::3], SLOW))
def test_the_command_for_sizes_selects_what_codegen_selects(name: str) -> None:
    """Sizes of the source alone lead to what sizes of any value lead to."""
    source = eatss.base.shipped.data_directory("kernels") / f"{name}.c"
    alone = eatss.select(source, gpu="h200", target="cuda")
    theirs = selected(name)
    assert [(k.tile_sizes, k.block, k.spread, k.host_loop) for k in alone.kernels] == [
        (k.tile_sizes, k.block, k.spread, k.host_loop) for k in theirs.kernels
    ]
    assert [[r.placement for r in k.references] for k in alone.kernels] == [
        [r.placement for r in k.references] for k in theirs.kernels
    ]


PROGRAMS = sorted((Path(__file__).parents[2] / "benchmarks" / "programs").glob("*.c"))
KNOWN = [("gemm", {"NK": 256}), ("2mm", {"NK": 200, "NJ": 320}), ("mttkrp", {"K": 64})]


def assert_generated_as_selected(source: Path, defines: dict[str, int]) -> None:
    selection = eatss.select(source, gpu="h200", target="cuda", defines=defines)
    program = eatss.codegen(source, gpu="h200", defines=defines)
    plain = [kernel for kernel in selection.kernels if kernel.spread is None and kernel.tile_sizes]
    chosen = {name: kernel for kernel in plain for name in kernel.statements}
    for kernel in program.kernels:
        own = chosen.get(kernel.statements[0])
        if own is not None:
            assert set(kernel.tile_sizes) <= set(own.tile_sizes)
            assert own.predicted is not None
            assert kernel.shared_bytes <= own.predicted.shared_bytes
    most = max(k.predicted.shared_bytes for k in selection.kernels if k.predicted is not None)
    assert max(kernel.shared_bytes for kernel in program.kernels) == most


@pytest.mark.samples(1)
@pytest.mark.parametrize("source", with_long(PROGRAMS, PROGRAMS[1::2]), ids=lambda path: path.stem)
def test_what_is_selected_for_other_programs_is_what_is_generated(source: Path) -> None:
    assert_generated_as_selected(source, {})


@pytest.mark.samples(1)
@pytest.mark.parametrize(("name", "defines"), KNOWN)
def test_with_known_sizes_what_is_selected_is_what_is_generated(
    name: str, defines: dict[str, int]
) -> None:
    """Boxes of known loops could be copied further out than the prediction takes them to be."""
    assert_generated_as_selected(
        eatss.base.shipped.data_directory("kernels") / f"{name}.c", defines
    )


def test_loops_may_be_called_what_they_like() -> None:
    source = """
#define N 512
void f(double C[N][N], double A[N][N], double B[N][N]) {
#pragma scop
  for (int lanes = 0; lanes < N; lanes++)
    for (int chunks = 0; chunks < N; chunks++)
      for (int sum = 0; sum < N; sum++)
        C[lanes][chunks] += A[lanes][sum] * B[sum][chunks];
#pragma endscop
}
"""
    (kernel,) = eatss.select(source, gpu="h200", target="cuda").kernels
    assert kernel.optimal == "proven"
    assert kernel.loops == ("lanes", "chunks", "sum")


FOUR = """
void f(double C[4][4][4][4], double A[4][4][100000], double B[4][4][100000]) {
#pragma scop
  for (int a = 0; a < 4; a++) for (int b = 0; b < 4; b++) for (int c = 0; c < 4; c++)
    for (int d = 0; d < 4; d++) for (int k = 0; k < 100000; k++)
      C[a][b][c][d] += A[a][b][k] * B[c][d][k];
#pragma endscop
}
"""


def test_sums_of_four_loops_are_shared_by_blocks() -> None:
    selection = eatss.select(FOUR, gpu="h200", target="cuda")
    (kernel,) = selection.kernels
    assert kernel.spread is not None
    assert kernel.spread.chunks > 1
    program = eatss.codegen(FOUR, gpu="h200")
    (code,) = [code for code in program.kernels if code.reassociates]
    assert f"split over {kernel.spread.chunks} blocks" in " ".join(code.notes).replace(
        f"{kernel.spread.lanes} threads and ", ""
    )


def test_options_of_the_paper_are_refused() -> None:
    with pytest.raises(eatss.InputError) as caught:
        ModelOptions(target="cuda", uniform=True)
    assert caught.value.code == "EATSS-M001"


def test_a_product_of_doubles_runs_on_tensor_cores_where_a_card_has_them() -> None:
    def chosen(gpu: str, dtype: str = "double") -> str | None:
        (kernel,) = selected("gemm", gpu, dtype).kernels
        return None if kernel.warps is None else kernel.warps.instruction

    assert chosen("h200") == "mma_f64_16x8x4"
    assert chosen("a100-40gb") == "mma_f64_8x8x4"
    assert chosen("h200", "float") is None
    assert chosen("v100") is None
    strict = select_for(analysed("gemm").program, load_profile("h200"), ENERGY, strict_fp=True)
    assert [kernel.warps for kernel in strict.kernels] == [None]


def test_tensor_cores_are_told_in_the_table_in_json_and_in_the_proof() -> None:
    selection = selected("gemm")
    (kernel,) = selection.kernels
    assert kernel.warps is not None
    text = selection_table(selection)
    assert "tensor cores: mma_f64_16x8x4, copies 1 tile ahead" in text
    (document,) = selection.to_dict()["kernels"]
    assert kernel.predicted is not None
    resident = kernel.predicted.resident_blocks
    assert document["warps"] == {
        "instruction": "mma_f64_16x8x4",
        "stages": 2,
        "resident": resident,
    }
    (facts,) = analysed("gemm").program.facts
    card = load_profile("h200")
    problem = CudaChoice(facts, structures("gemm")[facts.name], card, ENERGY).problem()
    assert problem is not None
    assert {"warps:mma_f64_16x8x4", "stages"} <= set(problem.variables)
    rows = [dict(zip(problem.variables, row, strict=True)) for row in problem.rows]
    assert {row["stages"] for row in rows if not row["warps:mma_f64_16x8x4"]} <= {1}


@pytest.mark.long
def test_sizes_of_the_user_use_tensor_cores_where_threads_are_boxes_of_lanes() -> None:
    source = eatss.base.shipped.data_directory("kernels") / "gemm.c"

    def expected(k: int, block: tuple[int, int]) -> KernelExpectation:
        tiles = {"i": 64, "j": 64, "k": k}
        (found,) = eatss.predict(
            source, gpu="h200", target="cuda", tiles=tiles, block=block
        ).kernels
        return found

    fits = expected(16, (16, 8))
    assert fits.warps is not None
    assert fits.predicted is not None
    for k, block in ((2, (16, 8)), (16, (4, 32)), (16, (64, 2))):
        alone = expected(k, block)
        assert alone.warps is None
        assert alone.predicted is not None
        assert alone.predicted.time_s > 2 * fits.predicted.time_s
        program = eatss.codegen(source, gpu="h200", tiles={"i": 64, "j": 64, "k": k}, block=block)
        assert "eatss_mma" not in program.text
        assert program.kernels[0].shared_bytes == alone.predicted.shared_bytes


def test_products_whose_factors_are_not_staged_are_not_predicted() -> None:
    source = eatss.base.shipped.data_directory("kernels") / "gemm.c"
    (found,) = eatss.predict(source, gpu="h200", target="cuda", placements={"A": "l1"}).kernels
    assert found.predicted is None
    assert "from memory" in (found.note or "")
