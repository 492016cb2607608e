"""A product whose blocks take equal shares: it needs counters that are zero before each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import eatss
from eatss.program import Program

SOURCE = """
void product(int n, float C[n][n], float A[n][n], float B[n][n])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""
BLOCKS = 4


def streamed_program(folder: Path) -> Program:
    """Return the program, and write it."""
    return eatss.codegen(
        SOURCE, gpu="h200", output=folder, stream={"k": BLOCKS}, instructions=[],
        tiles={"i": 8, "j": 8, "k": 8}, block={"i": 4, "j": 8},
    )  # fmt: skip


def no_zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return memory as a card may hand it out."""
    return (
        np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0x3F, np.uint8)
        .view(dtype)
        .reshape(shape)
    )
