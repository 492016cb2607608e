"""Kernels of this repository, said in Python."""

# mypy: ignore-errors
# ruff: noqa: B007, F821, N803 - extents are texts, and names those of the kernels in C

import eatss
from eatss import Param, f64


@eatss.scop
def gemm(
    NI: Param,
    NJ: Param,
    NK: Param,
    alpha: f64,
    beta: f64,
    C: f64["NI", "NJ"],
    A: f64["NI", "NK"],
    B: f64["NK", "NJ"],
):
    for i in range(NI):
        for j in range(NJ):
            C[i, j] *= beta
            for k in range(NK):
                C[i, j] += alpha * A[i, k] * B[k, j]


@eatss.scop
def jacobi_2d(TSTEPS: Param, N: Param, A: f64["N", "N"], B: f64["N", "N"]):
    for t in range(TSTEPS):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                B[i, j] = 0.2 * (
                    A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j]
                )  # fmt: skip
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = B[i, j]


@eatss.scop
def mvt(NI: Param, x1: f64["NI"], x2: f64["NI"], y1: f64["NI"], y2: f64["NI"], A: f64["NI", "NI"]):
    for i in range(NI):
        for j in range(NI):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in range(NI):
        for j in range(NI):
            x2[i] = x2[i] + A[j, i] * y2[j]


IN_PYTHON = {
    "gemm": gemm,
    "jacobi-2d": jacobi_2d,
    "mvt": mvt,
}
