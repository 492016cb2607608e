"""Sizes for generated code: the best of what is offered, and a card can run it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
import eatss.base.shipped
from eatss.analysis.layout import thread_axes, threads_along
from eatss.base.diagnostics import NoSolutionError
from eatss.base.shipped import data_directory
from eatss.base.targets import CUDA
from eatss.cards import GpuProfile, load_profile
from eatss.choose import cuda
from eatss.choose.cuda import FULL_SPEED, CudaChoice, expected_of
from eatss.choose.cuda_candidates import LEAST_IDLE, every_candidate
from eatss.choose.objectives import costs
from eatss.choose.options import SelectOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.cost.cuda_model import CudaModel
from eatss.frontend.options import Reading
from eatss.lower.row_planning import row_runs_for
from eatss.lower.variants import kernel_variants_for
from eatss.program import Constant, Launch, Program, evaluate
from eatss.session.session import Session
from eatss.session.steps import select_for
from tests.choose.cuda_kernels import ENERGY, analysed, selected, variants


def select(kernel: str, card: GpuProfile, **changes: Any) -> Selection:
    return select_for(analysed(kernel).program, card, replace(ENERGY, **changes))


@pytest.mark.parametrize(
    ("name", "dtype", "gpu"),
    [("atax", "float", "h200"), ("gemm", "double", "a100"), ("trmm", "double", "h200")],
)
def test_every_kernel_gets_a_layout_that_launches(name: str, dtype: str, gpu: str) -> None:
    card = load_profile(gpu)
    for kernel in selected(name, gpu, dtype).kernels:
        if not kernel.tile_sizes and kernel.spread is None:
            assert kernel.note is not None
            continue
        assert (kernel.optimal, kernel.bound) == ("best found", 0)
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
        assert all(kernel.tiles[loop] % size == 0 for loop, size in kernel.block)
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
    for layouts in every_candidate(facts, variants(kernel, card.name)[facts.name], card):
        found = model.columns(layouts)
        limit = shared_limit(card, by_warps=layouts.variant.instruction is not None)
        fine = found.fits & (found.shared_bytes <= limit)
        fine &= np.isfinite(found.total.time_s)
        values.append(costs(found.total, objective)[fine])
        times.append(found.total.time_s[fine])
    value, time_s = np.concatenate(values), np.concatenate(times)
    taken: list[int] = value[time_s <= FULL_SPEED * time_s.min()].tolist()
    return taken


@pytest.mark.parametrize("name", ["fdtd-2d", "doitgen", "covariance"])
def test_layouts_that_are_a_product_cost_what_each_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, program = load_profile("a100"), analysed(name).program
    products = 0
    for facts in program.facts:
        own = variants(name, "a100")[facts.name]
        choice = CudaChoice(facts, own, card, ENERGY, 1 << 14)
        products += any(
            one.threads.keys() and next(iter(one.threads.values())).ndim == 2
            for layouts in choice.every
            for one in cuda._at_once(layouts)
        )
        with monkeypatch.context() as patch:
            patch.setattr(cuda, "AT_ONCE", 1000)
            some = CudaChoice(facts, own, card, ENERGY, 1 << 14).costs
        flat = CudaChoice(facts, own, card, ENERGY, 1 << 14)
        with monkeypatch.context() as patch:
            patch.setattr(cuda, "_at_once", lambda layouts: [layouts])
            assert np.array_equal(flat.costs, choice.costs)
        assert np.array_equal(some, choice.costs)
        assert flat.can_launch == choice.can_launch
    assert products


@pytest.mark.parametrize(("name", "objective"), [("gemm", "energy"), ("trisolv", "time")])
def test_the_selected_layout_is_the_best_of_all(name: str, objective: Any) -> None:
    card = load_profile("h200")
    selection = select(name, card, objective=objective)
    for at, (kernel, facts) in enumerate(
        zip(selection.kernels, analysed(name).program.facts, strict=True)
    ):
        choice = CudaChoice(facts, variants(name)[facts.name], card, selection.options)
        least = min(all_costs(name, card, objective, at))
        assert kernel.objective == least == choice.costs.min()
        assert kernel.compared == len(choice.costs)
        own, row = choice.at(int(np.argmin(choice.costs)))
        best = own.at(row)
        assert (best.tile_sizes, best.block) == (kernel.tile_sizes, kernel.block)
        assert best.instruction == kernel.instruction


def test_a_selected_layout_is_expected_to_do_what_the_selection_says() -> None:
    card = load_profile("h200")
    facts = analysed("gemm").program.facts
    for kernel, own in zip(selected("gemm").kernels, facts, strict=True):
        found, note = expected_of(own, variants("gemm")[own.name], card, kernel)
        assert found == kernel.predicted
        assert (note is None) == (found is not None)


def test_without_shared_memory_nothing_is_staged() -> None:
    (kernel,) = select("gemm", load_profile("h200"), shared_per_block_bytes=0).kernels
    assert "shared" not in {reference.placement for reference in kernel.references}
    assert kernel.predicted is not None
    assert kernel.predicted.shared_bytes == 0


def test_a_card_that_runs_no_layout_is_an_error_that_names_the_kernel() -> None:
    with pytest.raises(NoSolutionError) as caught:
        select("gemm", replace(load_profile("h200"), threads_per_block=16))
    (finding,) = caught.value.diagnostics
    assert finding.code == "EATSS-M020"
    assert "kernel0" in finding.message
    assert finding.hint


def test_strict_order_spreads_nothing() -> None:
    program = analysed("atax").program
    selection = select_for(program, load_profile("h200"), ENERGY, strict_fp=True)
    assert all(k.spread is None for k in selection.kernels)


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


@pytest.mark.parametrize(("free", "trips"), [("abcd", 3), ("abcdef", 8)])
def test_many_parallel_loops_are_laid_out_within_seconds(free: str, trips: int) -> None:
    program = eatss.inspect(contraction(free, trips), cut="eatss")
    card = load_profile("h200")
    own = kernel_variants_for(program, card)
    began = time.process_time()
    (kernel,) = select_for(program, card, ENERGY).kernels
    assert time.process_time() - began < 20
    assert own[kernel.name]
    assert (kernel.optimal, kernel.bound) == ("best found", 0)
    assert [name for name, _ in kernel.block] == list(free)
    assert sum(threads > 1 for _, threads in kernel.block) <= 3
    threads = [size for _, size in kernel.block]
    assert threads_along("z", threads, thread_axes(threads)) <= CUDA.most_threads["z"]
    lanes = 1 if kernel.spread is None else kernel.spread.lanes
    assert prod(threads) * lanes >= 32


def test_nothing_is_copied_ahead_of_a_loop_with_one_tile() -> None:
    program = eatss.inspect(contraction("ab", 32), cut="eatss")
    own = kernel_variants_for(program, load_profile("h200"))["kernel0"]
    found = every_candidate(program.facts[0], own, load_profile("h200"))
    plain = [one for one in found if one.warps is None and not one.variant.spreads]
    deep = [(one.tiles["p"], one.stages > 1) for one in plain]
    assert any(np.any(several) for _, several in deep)
    assert all(np.all(tiles[several] < 32) for tiles, several in deep)


GEMM = data_directory("kernels") / "gemm.c"
H200 = load_profile("h200")


def defined(size: int, dtype: str) -> dict[str, str | int]:
    return {"DATA_TYPE": dtype, **dict.fromkeys(("NI", "NJ", "NK"), size)}


@cache
def product(size: int, dtype: str) -> KernelSelection:
    found = eatss.select(GEMM, gpu="h200", target="cuda", defines=defined(size, dtype))
    return found.kernels[0]


@cache
def generated() -> Program:
    return eatss.codegen(GEMM, gpu="h200", defines=defined(1111, "float"))


def test_what_is_selected_is_made() -> None:
    program, kernel = generated(), product(1111, "float")
    (code,) = program.kernels
    assert "stream-K: 132 blocks share the k-tiles over k evenly" in code.notes
    assert dict(code.tile_sizes) == dict(kernel.tile_sizes)
    assert kernel.predicted is not None
    assert code.shared_bytes == kernel.predicted.shared_bytes
    steps: Any = program.entries[0].body
    while not isinstance(steps[0], Launch):
        steps = steps[0].body
    grid = [evaluate(one, dict.fromkeys(("NI", "NJ", "NK"), 1111)) for one in steps[0].grid]
    assert grid == [132, 1, 1]
    parts, arrived = program.entries[0].temporaries
    assert parts.shape[0] == Constant(2 * 132)
    assert arrived.zeroed


def test_layouts_with_streams_have_boxes_and_an_idle_card_without() -> None:
    reading = Reading(defines={name: str(text) for name, text in defined(1111, "float").items()})
    analysed = Session(GEMM, reading).symbolic.program
    own = kernel_variants_for(analysed, H200)["kernel0"]
    streaming = [
        one for one in every_candidate(analysed.facts[0], own, H200) if np.any(one.streams)
    ]
    assert streaming
    for layouts in streaming:
        assert layouts.variant.stream_loop == "k"
        assert not layouts.variant.spreads
        assert (layouts.streams == 132).all()
        assert np.all(np.sum([*layouts.staged.values()], axis=0) > 0)
        tiles = np.prod([-(-1111 // layouts.tiles[loop]) for loop in "ij"], axis=0)
        assert np.all(tiles / 132 / -(-tiles // 132) < 1 - LEAST_IDLE)


H200 = load_profile("h200")
SOFTMAX = Path(__file__).parents[2] / "benchmarks" / "programs" / "softmax.c"
TARGET = SelectOptions(target="cuda")


def softmax(**sizes: int) -> Session:
    defines = tuple(f"{name}={value}" for name, value in sizes.items())
    return Session(SOFTMAX, Reading(defines=defines), code=True)


def of_run(session: Session) -> tuple[Any, Any]:
    (run,) = row_runs_for(session.analysed, H200)
    return {one.name: one for one in session.analysed.facts}, run


def test_a_softmax_is_one_kernel_and_costs_less() -> None:
    session = softmax(NI=20000, NJ=2000)
    one, apart = (session.select(H200, TARGET, fuse_rows=fuse) for fuse in (True, False))
    first, *others = one.kernels
    assert first.row_block is not None
    assert len(others) == 3
    assert first.row_block.kernels == tuple(kernel.name for kernel in one.kernels)
    assert all(kernel.predicted is not None and kernel.predicted.launches == 0 for kernel in others)
    assert all(kernel.row_block is None for kernel in (*others, *apart.kernels))
    assert first.predicted is not None
    energy = sum(kernel.predicted.energy_j for kernel in apart.kernels if kernel.predicted)
    assert first.predicted.energy_j < energy
    assert Selection.from_dict(one.to_dict()) == one


def test_what_registers_keep_of_a_row_is_what_code_keeps() -> None:
    _, run = of_run(softmax(NI=20000, NJ=2000))
    kept = {one.array: one for one in run.registers.kept}
    assert set(kept) == {"in", "out"}
    assert kept["in"].loads == (2,)  # the maximum begins behind the first element
    assert not kept["in"].stores
    assert kept["out"].loads == ()
    assert kept["out"].stores == (len(run.phases) - 1,)
    assert {one.array for one in run.registers.values} == {"most", "sum"}
