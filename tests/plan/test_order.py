"""Launches go to and fro where an array is more than L2 has, and both walk along it alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.verify.run import verify

PROGRAM = """
#ifndef M
#define M %d
#endif
#ifndef N
#define N %d
#endif
void f(float A[M][N], float B[M][N], float C[M][N])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            B[i][j] = 2 * A[i][j];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            %s
#pragma endscop
}
"""
LARGE, SMALL = 8192, 512


def turned(folder: Path, statement: str, size: int, then: str = "") -> list[bool]:
    """Return which launches begin with their last block; what they do is right."""
    source = (PROGRAM % (size, size, statement)).replace("#pragma end", f"{then}#pragma end")
    program = eatss.codegen(source, gpu="h200", output=folder, fuse_rows=False)
    result = verify(folder, device="cpu", sizes=[{"M": 300, "N": 300}])
    assert result.ok, result
    backwards = ["blocks begin with the last one" in " ".join(one.notes) for one in program.kernels]
    assert backwards == ["back_" in text for text in program.text.split("__global__")[1:]]
    return backwards


ELEMENT = "C[i][j] = B[%s] * B[M - 1 - i][0] * B[i][0];"


@pytest.mark.parametrize(
    ("statement", "size", "expected"),
    [
        (ELEMENT % "i][j", LARGE, [False, True]),
        (ELEMENT % "i][j", SMALL, [False, False]),  # L2 has all of it
        (ELEMENT % "M - 1 - i][j", LARGE, [False, False]),  # begins at the end by itself
        (ELEMENT % "j][i", LARGE, [False, False]),  # rows beside columns
        ("for (int k = 0; k < N; k++) C[i][j] += B[i][k] * A[k][j];", LARGE, [False, False]),
    ],
)
def test_launches_go_to_and_fro(
    tmp_path: Path, statement: str, size: int, expected: list[bool]
) -> None:
    assert turned(tmp_path, statement, size) == expected


def test_a_launch_begins_where_the_last_that_filled_l2_ended(tmp_path: Path) -> None:
    then = "for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) A[i][j] = C[i][j] * C[i][0];\n"
    assert turned(tmp_path, ELEMENT % "i][j", LARGE, then) == [False, True, False]
