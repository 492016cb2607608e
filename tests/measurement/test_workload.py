"""Workloads on a stand-in for CuPy: data, graphs, timing, drift, comparing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eatss.measurement.arguments import CardMemory
from eatss.measurement.card import LaunchError
from eatss.measurement.compile import CompileTarget, Toolchain
from eatss.measurement.workload import CupyWorkload
from eatss.program import Program, load_program
from tests.measurement.fake_cupy import CudaError, FakeCupy, KernelBody
from tests.measurement.streamed import BLOCKS, no_zeros, streamed_program

LU = Path(__file__).parent / "programs" / "lu"
N = 6
TOOLCHAIN = Toolchain(name="nvrtc", version="13.0", command=("nvrtc",))


def nothing(*_: Any) -> None:
    """A kernel that does nothing."""


def divide_row(k: np.int32, a: Any) -> None:
    a[k, k + 1 :] /= a[k, k]


def update(k: np.int32, a: Any) -> None:
    a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def memory_with(cupy: FakeCupy) -> CardMemory:
    return CardMemory(cupy=cupy, stream=cupy.cuda.Stream(), current=nullcontext)


def lu_program() -> Program:
    return load_program(LU)


def loaded(
    memory: CardMemory, program: Program | None = None, n: int = N, seed: int = 0
) -> CupyWorkload:
    return CupyWorkload(
        memory,
        program or lu_program(),
        LU,
        {"N": n},
        seed,
        Path("lu.cubin"),
        CompileTarget(device=0, capability=90, toolchain=TOOLCHAIN, cache="cache"),
    )


def made(
    first: KernelBody = divide_row, second: KernelBody = update, launch_s: float = 1e-3
) -> tuple[FakeCupy, CupyWorkload]:
    cupy = FakeCupy({"kernel_lu_k0": first, "kernel_lu_k1": second}, launch_s)
    return cupy, loaded(memory_with(cupy))


def array_of(workload: CupyWorkload) -> Any:
    ((array, _),) = workload.keep().values()
    return array


def test_a_run_after_reset_computes_what_the_program_does() -> None:
    _, lu = made()
    lu.reset()
    before = array_of(lu)
    lu.timed(1)
    after = array_of(lu)
    lower, upper = np.tril(after), np.triu(after, 1) + np.eye(N)
    assert np.allclose(lower @ upper, before)


def test_restoring_before_each_run_makes_every_run_the_same() -> None:
    _, lu = made()
    lu.reset()
    lu.timed(1)
    once = array_of(lu)
    lu.timed(4, restoring=True)
    assert np.array_equal(array_of(lu), once)
    lu.timed(300, restoring=True)
    assert np.array_equal(array_of(lu), once)


@pytest.mark.parametrize("restoring", [False, True])
@pytest.mark.parametrize("count", [1, 7, 400])
def test_the_time_is_that_of_all_runs_by_the_clock_of_the_card(count: int, restoring: bool) -> None:
    _, lu = made(first=nothing, second=nothing, launch_s=1e-3)
    lu.reset()
    assert lu.timed(count, restoring=restoring) == pytest.approx(count * 2 * (N - 1) * 1e-3)


def test_data_on_which_the_program_stays_finite_are_found_and_kept_for_all_variants() -> None:
    def breaks_unless_dominant(k: np.int32, a: Any) -> None:
        if a[0, 0] < 2:
            a[0, 1] = np.nan

    cupy = FakeCupy({"kernel_lu_k0": breaks_unless_dominant, "kernel_lu_k1": nothing})
    memory = memory_with(cupy)
    first, second = loaded(memory), loaded(memory)
    first.reset()
    assert first.flavour == "dominant"
    cupy.launched.clear()
    second.reset()
    assert second.flavour == "dominant"
    second.timed(1)
    assert second.drifted() == ""
    assert second.difference(first.keep()).equal


def test_results_of_another_variant_are_compared_and_the_place_is_named() -> None:
    cupy = FakeCupy({"kernel_lu_k0": divide_row, "kernel_lu_k1": update})
    memory = memory_with(cupy)
    lu = loaded(memory)
    lu.reset()
    lu.timed(1)
    kept = lu.keep()
    lu.reset()
    lu.timed(1)
    assert lu.difference(kept).equal

    def wrong(k: np.int32, a: Any) -> None:
        update(k, a)
        a[3, 4] += 1e-6

    cupy.bodies["kernel_lu_k1"] = wrong
    lu.reset()
    lu.timed(1)
    found = lu.difference(kept)
    assert not found.equal
    assert found.argument == "A"
    assert found.message.startswith("A[3][4] is")


def sensitive_sum(k: np.int32, a: Any) -> None:
    """Magnify what the fraction of the first element is, as recurrences do."""
    if k == 0:
        a[1:, 1:] = np.sin(a[0, 0] * 1e12)


@pytest.mark.parametrize(("off", "explained"), [(1e-15, True), (1.0, False)])
def test_a_difference_is_held_against_what_the_program_makes_of_a_last_bit(
    off: float, explained: bool
) -> None:
    cupy = FakeCupy({"kernel_lu_k0": nothing, "kernel_lu_k1": sensitive_sum})
    lu = loaded(memory_with(cupy))
    lu.reset()
    lu.timed(1)
    kept = lu.keep()

    def other(k: np.int32, a: Any) -> None:
        sensitive_sum(k, a)
        a[1:, 1:] += off * 1e9

    cupy.bodies["kernel_lu_k1"] = other
    lu.reset()
    lu.timed(1)
    found = lu.difference(kept)
    assert not found.equal
    assert bool(lu.magnified(found)) == explained
    assert "last bit" in lu.magnified(found) or not explained


def failing(code: int) -> Callable[..., None]:
    def fail(*_: Any) -> None:
        raise CudaError("cudaErrorIllegalAddress: an illegal memory access", code)

    return fail


@pytest.mark.parametrize(("code", "lost"), [(700, True), (719, True), (9, False), (701, False)])
def test_errors_of_kernels_say_whether_the_card_is_lost(code: int, lost: bool) -> None:
    _, lu = made(first=failing(code))
    with pytest.raises(LaunchError, match="running lu: cudaErrorIllegalAddress") as caught:
        lu.reset()
    assert caught.value.lost is lost


def test_counters_that_blocks_meet_at_are_zero_when_a_workload_is_made(tmp_path: Path) -> None:
    program = streamed_program(tmp_path)
    seen: list[dict[str, Any]] = []

    def noted(*given: Any) -> None:
        seen.append(dict(zip(program.kernels[0].arguments, given, strict=True)))

    cupy = FakeCupy({program.kernels[0].name: noted})
    setattr(cupy, "empty", no_zeros)  # noqa: B010 - a method of the type
    workload = CupyWorkload(
        memory_with(cupy), program, tmp_path, {"n": 20}, 0,
        Path("product.cubin"),
        CompileTarget(device=0, capability=90, toolchain=TOOLCHAIN, cache="cache"),
    )  # fmt: skip
    workload.reset()
    workload.timed(1)
    parts, arrived = (one.name for one in program.entries[0].temporaries)
    assert seen
    for given in seen:
        assert not given[arrived].any()
        assert given[arrived].size == 2 * 2 * BLOCKS
        assert given[parts].all()
