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
def two_mm(
    NI: Param,
    NJ: Param,
    NK: Param,
    NL: Param,
    alpha: f64,
    beta: f64,
    tmp: f64["NI", "NJ"],
    A: f64["NI", "NK"],
    B: f64["NK", "NJ"],
    C: f64["NJ", "NL"],
    D: f64["NI", "NL"],
):
    for i in range(NI):
        for j in range(NJ):
            tmp[i, j] = 0
            for k in range(NK):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(NI):
        for j in range(NL):
            D[i, j] *= beta
            for k in range(NJ):
                D[i, j] += tmp[i, k] * C[k, j]


@eatss.scop
def atax(NX: Param, NY: Param, A: f64["NX", "NY"], x: f64["NY"], y: f64["NY"], tmp: f64["NX"]):
    for i in range(NY):
        y[i] = 0
    for i in range(NX):
        tmp[i] = 0
        for j in range(NY):
            tmp[i] = tmp[i] + A[i][j] * x[j]
        for j in range(NY):
            y[j] = y[j] + A[i][j] * tmp[i]


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
def lu(N: Param, A: f64["N", "N"]):
    for k in range(N):
        for j in range(k + 1, N):
            A[k, j] = A[k, j] / A[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] = A[i, j] - A[i, k] * A[k, j]


@eatss.scop
def trmm(NI: Param, alpha: f64, A: f64["NI", "NI"], B: f64["NI", "NI"]):
    for i in range(NI):
        for j in range(NI):
            for k in range(i + 1, NI):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


@eatss.scop
def fdtd_2d(
    TMAX: Param,
    NX: Param,
    NY: Param,
    ex: f64["NX", "NY"],
    ey: f64["NX", "NY"],
    hz: f64["NX", "NY"],
    source: f64["TMAX"],
):
    for t in range(TMAX):
        for j in range(NY):
            ey[0, j] = source[t]
        for i in range(1, NX):
            for j in range(NY):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(NX):
            for j in range(1, NY):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(NX - 1):
            for j in range(NY - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@eatss.scop
def conv_2d(
    NC: Param,
    NH: Param,
    NW: Param,
    NKH: Param,
    NKW: Param,
    In: f64["NC", "NH", "NW"],
    Ker: f64["NC", "NKH", "NKW"],
    Out: f64["NC", "NH - NKH + 1", "NW - NKW + 1"],
):
    for c in range(NC):
        for h in range(NH - NKH + 1):
            for w in range(NW - NKW + 1):
                for kh in range(NKH):
                    for kw in range(NKW):
                        Out[c, h, w] += In[c, h + kh, w + kw] * Ker[c, kh, kw]


@eatss.scop
def floyd_warshall(N: Param, path: f64["N", "N"]):
    for k in range(N):
        for i in range(N):
            for j in range(N):
                path[i, j] = (
                    path[i, j] if path[i, j] < path[i, k] + path[k, j] else path[i, k] + path[k, j]
                )


@eatss.scop
def mvt(NI: Param, x1: f64["NI"], x2: f64["NI"], y1: f64["NI"], y2: f64["NI"], A: f64["NI", "NI"]):
    for i in range(NI):
        for j in range(NI):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in range(NI):
        for j in range(NI):
            x2[i] = x2[i] + A[j, i] * y2[j]


@eatss.scop
def seidel_2d(TSTEPS: Param, N: Param, A: f64["N", "N"]):
    for t in range(TSTEPS):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j]
                    + A[i, j + 1] + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9  # fmt: skip


IN_PYTHON = {
    "gemm": gemm,
    "2mm": two_mm,
    "atax": atax,
    "jacobi-2d": jacobi_2d,
    "lu": lu,
    "trmm": trmm,
    "fdtd-2d": fdtd_2d,
    "conv-2d": conv_2d,
    "floyd-warshall": floyd_warshall,
    "mvt": mvt,
    "seidel-2d": seidel_2d,
}
