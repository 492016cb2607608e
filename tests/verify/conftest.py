"""Hand-written programs: a C file, CUDA text and a launch plan in a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eatss.program import (
    Argument,
    Constant,
    IntExpr,
    Name,
    Parameter,
    Program,
    save_program,
)
from tests.plans import kernel_code, one_launch, plan

MATMUL_C = """
#ifndef M
#define M 100
#endif
#ifndef N
#define N 100
#endif
#ifndef K
#define K 100
#endif
void matmul(double C[M][N], double A[M][K], double B[K][N])
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < K; k++)
                C[i][j] += A[i][k] * B[k][j];
}
"""

HEAD = """
#ifndef EATSS_CPU
#define EATSS_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \\
    kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define EATSS_TRACKED(T) T
#define EATSS_SHARED(type, name) __shared__ type name
#endif
"""

MATMUL_CU = (
    HEAD
    + """
#ifndef M
#define M 100
#endif
#ifndef N
#define N 100
#endif
#ifndef K
#define K 100
#endif
struct matmul_shared {
    EATSS_TRACKED(double) A[16][17];
    EATSS_TRACKED(double) B[16][17];
};
extern "C" __global__ void __launch_bounds__(256)
matmul_k0(double *__restrict__ C, const double *__restrict__ A, const double *__restrict__ B)
{
    EATSS_SHARED(matmul_shared, sh);
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int i = 16 * blockIdx.y + ty, j = 16 * blockIdx.x + tx;
    double sum = i < M && j < N ? C[i * N + j] : 0.0;
    for (int k = 0; k < K; k += 16) {
        if (i < M && k + tx < K) sh.A[ty][tx] = A[i * K + k + tx];
        if (k + ty < K && j < N) sh.B[ty][tx] = B[(k + ty) * N + j];
        __syncthreads();
        if (i < M && j < N)
            for (int p = 0; p < 16 && k + p < K; p++) sum += sh.A[ty][p] * sh.B[p][tx];
        __syncthreads();
    }
    if (i < M && j < N) C[i * N + j] = sum;
}
extern "C" int matmul_cuda(double *C, double *A, double *B, cudaStream_t stream)
{
    if (M > 0 && N > 0)
        EATSS_LAUNCH(matmul_k0, dim3((N + 15) / 16, (M + 15) / 16), dim3(16, 16), 0, stream,
                     C, A, B);
    return (int)cudaGetLastError();
}
"""
)


def array(name: str, shape: tuple[str, ...], position: int, **other: Any) -> Argument:
    """Return an array argument that is read and written, of doubles."""
    given: dict[str, Any] = {
        "role": "array",
        "element_type": "double",
        "reads": True,
        "writes": True,
        "source": "parameter",
        "source_name": name,
    }
    shape_text: tuple[IntExpr, ...] = tuple(
        Constant(int(extent)) if extent.isdecimal() else Name(extent) for extent in shape
    )
    return Argument(name=name, shape=shape_text, position=position, **{**given, **other})


def matmul_program() -> Program:
    """Return a right tiled product of matrices."""
    arguments = (
        array("C", ("M", "N"), 0),
        array("A", ("M", "K"), 1, writes=False),
        array("B", ("K", "N"), 2, writes=False),
    )
    return plan(
        "matmul",
        MATMUL_CU,
        parameters=tuple(
            Parameter(name=name, kind="macro", default=100, tile=16) for name in ("M", "N", "K")
        ),
        kernels=(kernel_code("matmul_k0"),),
        entries=(one_launch("matmul", "matmul_k0", arguments),),
    )


@pytest.fixture
def matmul() -> Program:
    return matmul_program()


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a program and its original into a folder.

    ``replaced`` are pairs of texts: the first has to stand in the CUDA text and becomes the second.
    """

    def write(program: Program, original: str, *replaced: tuple[str, str]) -> Path:
        text = program.text
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        save_program(replace(program, text=text), tmp_path)
        (tmp_path / program.original.file).write_text(original)
        return tmp_path

    return write
