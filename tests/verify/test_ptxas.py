"""The compiler's report is read right, and what cannot be launched is refused in words."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial

import pytest

from eatss.base.diagnostics import InputError, Severity
from eatss.program import KernelCode, Original, Program
from eatss.program.plan import MUCH_STACK_BYTES
from eatss.verify import ptxas
from eatss.verify.ptxas import (
    KernelResources,
    compile_report,
)

TEXT = """
struct Pair { double a[32][33]; };
__global__ void staged(double *A)
{
    __shared__ Pair sh;
    sh.a[threadIdx.y][threadIdx.x] = A[threadIdx.x];
    __syncthreads();
    A[threadIdx.x] = sh.a[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void __launch_bounds__(1024) spilling(double *A)
{
    double sums[120];
    #pragma unroll
    for (int k = 0; k < 120; k++)
        sums[k] = A[k * 1024 + threadIdx.x];
    for (int n = 0; n < 100; n++)
        #pragma unroll
        for (int k = 0; k < 120; k++)
            sums[k] = sums[k] * sums[(k * 7 + 1) % 120] + A[n];
    #pragma unroll
    for (int k = 0; k < 120; k++)
        A[k * 1024 + threadIdx.x] = sums[k];
}
"""

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def kernel(name: str, block: tuple[int, int, int], shared: int = 0) -> KernelCode:
    return KernelCode(
        name=name, statements=("S0",), block=block, shared_bytes=shared, dynamic_shared=shared > 0,
        registers=0, arguments=("A",), tile_sizes=(("i", 64), ("j", 32)), notes=(),
    )  # fmt: skip


def program(*kernels: KernelCode, text: str = TEXT, flags: tuple[str, ...] = ()) -> Program:
    return Program(
        name="two", file="two.cu", text=text,
        original=Original(file="two.c", defines=(), include_dirs=()), gpu="NVIDIA A100",
        compute_capability=80, dtype="double", strict_fp=False, index_bits=32, flags=flags,
        parameters=(), kernels=kernels, entries=(),
    )  # fmt: skip


def needs(name: str, registers: int, *, spilled: int = 0, shared: int = 0) -> KernelResources:
    return KernelResources(
        kernel=name, registers=registers, spill_store_bytes=spilled, spill_load_bytes=2 * spilled,
        stack_bytes=spilled, static_shared_bytes=shared,
    )  # fmt: skip


check_launchable = partial(
    ptxas.check_launchable,
    registers_per_block=65536,
    threads_per_block=1024,
    shared_bytes_per_block=166912,
)
TWO = program(kernel("spilling", (1024, 1, 1)), kernel("staged", (32, 32, 1)))


@nvcc
def test_the_report_has_registers_spills_and_shared_bytes_of_every_kernel() -> None:
    spilling, staged = compile_report(TWO)
    assert (spilling.kernel, staged.kernel) == ("spilling", "staged")
    assert spilling.registers == 64  # 65536 registers for 1024 threads
    assert spilling.spill_store_bytes > 0
    assert spilling.spill_load_bytes > 0
    assert spilling.stack_bytes > 0
    assert spilling.static_shared_bytes == 0
    assert staged.static_shared_bytes == 32 * 33 * 8
    assert 0 < staged.registers <= 64
    assert staged.spill_store_bytes == staged.spill_load_bytes == 0
    warnings = check_launchable(TWO, (spilling, staged))
    assert {one.code for one in warnings} <= {"EATSS-V045", "EATSS-V047"}
    (warning,) = (one for one in warnings if one.code == "EATSS-V045")
    assert warning.severity is Severity.WARNING
    assert "'spilling' spills registers" in warning.message


@nvcc
def test_text_the_compiler_refuses_is_an_error_with_its_words() -> None:
    with pytest.raises(InputError, match="EATSS-V041") as caught:
        compile_report(program(kernel("one", (1, 1, 1)), text="__global__ void one() { x = 1; }"))
    assert 'identifier "x" is undefined' in str(caught.value)


@nvcc
def test_too_much_static_shared_memory_is_an_error() -> None:
    text = (
        "__global__ void big(double *A)\n{\n    __shared__ double b[8000];\n"
        "    b[threadIdx.x] = A[0];\n    __syncthreads();\n    A[threadIdx.x] = b[7];\n}\n"
    )
    with pytest.raises(InputError, match="too much shared data") as caught:
        compile_report(program(kernel("big", (32, 1, 1)), text=text))
    assert caught.value.code == "EATSS-V041"


@nvcc
def test_a_plan_of_other_kernels_is_refused() -> None:
    with pytest.raises(InputError, match="EATSS-V041"):
        compile_report(program(kernel("absent", (32, 1, 1))))


def test_a_missing_compiler_is_said() -> None:
    with pytest.raises(InputError, match="EATSS-V010") as caught:
        compile_report(TWO, nvcc="no-such-compiler")
    assert caught.value.diagnostics[0].hint is not None


def test_a_block_with_too_many_registers_is_refused_with_the_remedy() -> None:
    one = program(kernel("k", (32, 32, 1)))
    assert check_launchable(one, [needs("k", 64)]) == ()
    with pytest.raises(InputError, match="EATSS-V042") as caught:
        check_launchable(one, [needs("k", 65)])
    (finding,) = caught.value.diagnostics
    assert "1024 threads of 65 registers take 73728 registers" in finding.message
    assert "at most 896 threads" in (finding.hint or "")
    assert "i=64, j=32" in (finding.hint or "")
    smaller = program(kernel("k", (896, 1, 1)))
    assert check_launchable(smaller, [needs("k", 65)]) == ()


def test_much_stack_is_warned_of_though_nothing_is_spilled() -> None:
    one = program(kernel("one", (32, 1, 1)))
    little, much = (
        replace(needs("one", 255), stack_bytes=MUCH_STACK_BYTES + more) for more in (0, 8)
    )
    assert check_launchable(one, (little,)) == ()
    (warning,) = check_launchable(one, (much,))
    assert (warning.code, warning.severity) == ("EATSS-V047", Severity.WARNING)
    assert "kernel 'one' has 264 bytes of stack" in warning.message


def test_shared_memory_of_a_launch_counts() -> None:
    limit = 166912
    fits = program(kernel("k", (32, 1, 1), shared=limit - 100))
    assert check_launchable(fits, [needs("k", 20, shared=100)]) == ()
    with pytest.raises(InputError, match="EATSS-V042"):
        check_launchable(fits, [needs("k", 20, shared=101)])
    with pytest.raises(InputError, match="EATSS-V042"):
        check_launchable(fits, [needs("k", 20)], shared_bytes_per_block=49152)


def test_all_that_is_wrong_is_said_at_once() -> None:
    two = program(kernel("a", (2048, 1, 1)), kernel("b", (64, 1, 1), shared=10**6))
    with pytest.raises(InputError) as caught:
        check_launchable(two, [needs("a", 255), needs("b", 10)])
    codes = [finding.code for finding in caught.value.diagnostics]
    assert codes == ["EATSS-V042", "EATSS-V042", "EATSS-V042"]
