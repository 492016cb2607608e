"""What PPCG is recorded with: programs, sizes and options that do not change with the model.

Sizes are those of the paper's model as published, which stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import eatss
from eatss.base.shipped import data_directory

KERNELS = data_directory("kernels")
SMALL = "-DMINI_DATASET"
NAMES = ("2mm", "atax", "gemm", "jacobi-2d")

SCALED = """\
#include "size.h"
void scaled(double a, double x[N][N], double y[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            y[i][j] = a * x[i][j];
#pragma endscop
}
"""
SIZE = "#ifndef N\n#define N 100\n#endif\n"

ROWS = """\
#ifndef N
#define N 60
#endif
void rows(float A[N][8], float x[N], float y[N][8])
{
#pragma scop
    for (int i = 0; i < N; i++) {
        x[i] = 0;
        for (int j = 0; j < 8; j++)
            x[i] += A[i][j];
        x[i] /= 8;
        for (int j = 0; j < 8; j++)
            y[i][j] = A[i][j] - x[i];
    }
#pragma endscop
}
"""

SEVERAL = """\
void several(int n, float A[n][n], float B[100])
{
#pragma scop
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            A[i][j] *= 2;
#pragma endscop
#pragma scop
    for (int i = 0; i < 100; i++)
        B[i] = i;
#pragma endscop
}
"""

SERIAL = """\
void serial(float A[100])
{
#pragma scop
    for (int i = 1; i < 100; i++)
        A[i] = A[i - 1];
#pragma endscop
}
"""

WRONG = """\
void wrong(float A[100])
{
#pragma scop
    for (int i = 0; i < 100; i++)
        A[i] =
#pragma endscop
}
"""


def build(source: Path, output: Path, ppcg: str | Path, **other: Any) -> eatss.PpcgBuild:
    """Run ``eatss.ppcg`` as it was recorded."""
    chosen: dict[str, Any] = {"gpu": "a100", "objective": "paper", "model": "paper"}
    return eatss.ppcg(source, output=output, ppcg=ppcg, **(chosen | other))


def written(folder: Path, name: str, text: str) -> Path:
    """Write a C file, with the header that it may include."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "size.h").write_text(SIZE)
    path = folder / name
    path.write_text(text)
    return path
