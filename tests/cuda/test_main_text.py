"""The stand-alone program compiles and says what it cannot do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from eatss.cuda.main_text import main_text
from eatss.cuda.preamble import preamble
from eatss.program import (
    Apply,
    Argument,
    Assumption,
    Constant,
    Entry,
    IntExpr,
    KernelCode,
    Launch,
    Name,
    Operator,
    Original,
    Parameter,
    Program,
)

KERNELS = """
#ifndef NI
#define NI 100
#endif
#ifndef NJ
#define NJ 90
#endif
__global__ void product(int n, double alpha, double *C, const double *A)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; i < NI && j < NJ; j++)
        for (int k = 0; k < n; k++)
            C[i * NJ + j] += alpha * A[i * n + k];
}
__global__ void scale(float *x, int *count)
{
    x[threadIdx.x] *= 2;
    *count = threadIdx.x;
}
extern "C" int launch_product(double alpha, double *C, const double *A, int n, cudaStream_t stream)
{
    if (n < 0)
        return -1;
    EATSS_LAUNCH(product, dim3(eatss_floordiv(NI + 31, 32)), dim3(32), 0, stream, n, alpha, C, A);
    return (int)cudaGetLastError();
}
extern "C" int launch_scale(float *x, int *count, cudaStream_t stream)
{
    EATSS_LAUNCH(scale, dim3(1), dim3(32), 0, stream, x, count);
    return (int)cudaGetLastError();
}
"""
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def argument(
    name: str,
    role: Literal["array", "scalar", "cell", "parameter"],
    position: int | None,
    *shape: IntExpr,
    kind: str = "double",
    writes: bool = False,
) -> Argument:
    return Argument(
        name=name, role=role, element_type=kind, shape=shape, reads=True, writes=writes,
        source="global" if position is None else "parameter", source_name=name, position=position,
    )  # fmt: skip


def a_program() -> Program:
    """Two entries."""
    n, rows, columns = Name("n"), Name("NI"), Name("NJ")
    product = Entry(
        launcher="launch_product", function="product", region=0, whole_function=True,
        arguments=(
            argument("alpha", "scalar", 0),
            argument("C", "array", 2, rows, columns, writes=True),
            argument("A", "array", 3, rows, n),
            argument("n", "parameter", 1, kind="int"),
        ),
        temporaries=(),
        assumptions=(
            Assumption(
                condition=Apply(Operator.GE, (n, Constant(0))), message='"n" must not be negative'
            ),
        ),
        body=(
            Launch(
                kernel="product",
                grid=(Apply(Operator.FLOORDIV, (Apply(Operator.ADD, (rows, Constant(31))),
                      Constant(32))), Constant(1), Constant(1)),
            ),
        ),
    )  # fmt: skip
    length = Apply(Operator.MIN, (Apply(Operator.MUL, (rows, columns)), Constant(64)))
    scale = Entry(
        launcher="launch_scale", function="scale", region=1, whole_function=False,
        arguments=(
            argument("x", "array", 0, length, kind="float", writes=True),
            argument("count", "cell", None, kind="int", writes=True),
        ),
        temporaries=(), assumptions=(),
        body=(Launch(kernel="scale", grid=(Constant(1), Constant(1), Constant(1))),),
    )  # fmt: skip
    return Program(
        name="product", file="product.cu", text="",
        original=Original(file="product.c", defines=(), include_dirs=()),
        gpu="NVIDIA H200", compute_capability=90, dtype="double", strict_fp=True, index_bits=32,
        flags=("-fmad=false",),
        parameters=(
            Parameter(name="NI", kind="macro", default=100),
            Parameter(name="NJ", kind="macro", default=90),
            Parameter(name="n", kind="argument", default=80),
        ),
        kernels=(
            KernelCode(
                name="product", statements=("S0",), block=(32, 1, 1), shared_bytes=0,
                dynamic_shared=False, arguments=("n", "alpha", "C", "A"),
                tile_sizes=(("i", 32), ("k", 16)), notes=("C is kept in registers.",),
            ),
            KernelCode(
                name="scale", statements=("S1",), block=(32, 1, 1), shared_bytes=60000,
                dynamic_shared=True, arguments=("x", "count"), tile_sizes=(),
                notes=(),
            ),
        ),
        entries=(product, scale),
    )  # fmt: skip


def file_of(program: Program) -> str:
    body = KERNELS + main_text(program)
    return preamble(body) + body


@nvcc
def test_the_program_compiles_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "product.cu").write_text(file_of(a_program()))
    subprocess.run(
        ["nvcc", "-arch=sm_80", "-DEATSS_MAIN", *[], "-Werror", "all-warnings",
         "-Xcompiler", "-Wall,-Wextra,-Werror", "-c", "product.cu"],
        check=True, cwd=tmp_path,
    )  # fmt: skip


@nvcc
def test_the_program_reads_its_command_line(tmp_path: Path) -> None:
    (tmp_path / "product.cu").write_text(file_of(a_program()))
    subprocess.run(
        ["nvcc", "-DEATSS_MAIN", "product.cu", "-o", "product"],
        check=True, cwd=tmp_path,
    )  # fmt: skip

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(tmp_path / "product"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    helped = run("--help")
    assert helped.returncode == 0
    assert "usage:" in helped.stdout
    assert "[n=VALUE]" in helped.stdout
    assert "NI=100" in helped.stdout
    for words in (["m=3"], ["n=x"], ["n="], ["0"], ["3.5"]):
        refused = run(*words)
        assert refused.returncode == 2
        assert f"cannot read '{words[0]}'" in refused.stderr
    large = run("n=3000000000")
    assert large.returncode == 2
    assert "n=3000000000 does not fit its type" in large.stderr


# -- run without a card ------------------------------------------------------------------

STAND_IN = """
#pragma once
#include <chrono>
#include <cstdlib>
#include <cstring>
typedef int cudaError_t;
typedef void *cudaStream_t;
typedef std::chrono::steady_clock::time_point cudaEvent_t;
enum { cudaSuccess = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
template <typename Pointer> int cudaMalloc(Pointer **p, size_t bytes)
{
    *p = (Pointer *)std::malloc(bytes + 1);
    return 0;
}
inline int cudaFree(void *p) { std::free(p); return 0; }
inline int cudaMemcpy(void *to, const void *from, size_t bytes, int)
{
    if (bytes > 0)
        std::memcpy(to, from, bytes);
    return 0;
}
inline const char *cudaGetErrorString(int code) { return code == 700 ? "illegal address" : "?"; }
inline int cudaEventCreate(cudaEvent_t *) { return 0; }
inline int cudaEventDestroy(cudaEvent_t) { return 0; }
inline int cudaEventSynchronize(cudaEvent_t) { return 0; }
#define cudaEventRecord(event) ((event) = std::chrono::steady_clock::now(), 0)
inline int cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop)
{
    *ms = std::chrono::duration<float, std::milli>(stop - start).count();
    return 0;
}
#ifndef NI
#define NI 100
#endif
#define NJ 90
#define __host__
#define __device__
#define __forceinline__ inline
"""
LAUNCHERS = """
extern "C" int launch_product(double alpha, double *C, const double *A, int n, cudaStream_t)
{
    if (n < 0)
        return -1;
    if (n == 700)
        return 700;
    for (int i = 0; i < NI; i++)
        for (int j = 0; j < NJ; j++)
            for (int k = 0; k < n; k++)
                C[i * NJ + j] += alpha * A[i * n + k];
    return 0;
}
extern "C" int launch_scale(float *x, int *count, cudaStream_t)
{
    x[0] *= 2;
    *count = 7;
    return 0;
}
"""


@pytest.fixture(scope="module")
def run_on_a_stand_in(
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Return what runs the program, compiled once."""

    program = on_a_stand_in(tmp_path_factory.mktemp("stand-in"))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(program), *words], capture_output=True, text=True, check=False)

    return run


def on_a_stand_in(folder: Path) -> Path:
    """Compile the program with functions of the CUDA runtime that use the host's memory."""
    (folder / "cuda.h").write_text(STAND_IN)
    body = LAUNCHERS + main_text(a_program())
    (folder / "product.cpp").write_text(preamble(body) + body)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Werror", "-DEATSS_MAIN", "-DEATSS_CPU",
         "-include", "cuda.h", "product.cpp", "-o", "product"],
        check=True, cwd=folder,
    )  # fmt: skip
    return folder / "product"


def test_the_program_tells_times_and_sums(run_on_a_stand_in: Run) -> None:
    done = run_on_a_stand_in("3", "n=70")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "launch_product n=70 NI=100 NJ=90\n" in done.stdout
    assert "of 3 runs; data: 128000 bytes" in done.stdout  # (100 * 90 + 100 * 70) * 8
    assert "C: sum " in done.stdout
    assert "A: sum" not in done.stdout
    assert "count: sum 7, sum of magnitudes 7" in done.stdout
