"""Loads from whole boxes stand in front of the tests that they do not depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.program import Program
from eatss.verify import verify


def triangle(value: str, folder: Path | None = None) -> Program:
    source = f"""
    #ifndef N
    #define N 4096
    #endif
    void f(float C[N][N], float A[N][N], float B[N][N])
    {{
    #pragma scop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = i + 1; k < N; k++)
                    C[i][j] += {value};
    #pragma endscop
    }}
    """
    return eatss.codegen(
        source,
        gpu="h200",
        output=folder,
        tiles={"i": 32, "j": 32, "k": 16},
        block={"i": 8, "j": 8},
        placements={"A": "shared", "B": "shared"},
    )


def test_a_row_of_points_is_loaded_once_for_all_rows(tmp_path: Path) -> None:
    program = triangle("A[k][i] * B[k][j]", tmp_path)
    front, test, behind = program.text.partition("if (i < k)")
    assert test
    assert "B_row[rj] = sh.B[k - k0][j - j0];" in front.rpartition("for (int ri")[0]
    assert "C_r[ri][rj] += sh.A[k - k0][i - i0] * B_row[rj];" in behind
    found = verify(tmp_path, device="cpu", sizes=[{"N": 5}, {"N": 32}, {"N": 49}, {"N": 100}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


@pytest.mark.parametrize("value", ["A[k][i] * B[i][j]", "A[k][i] * B[i][k]"])
def test_what_differs_from_row_to_row_or_not_in_a_row_stays(value: str) -> None:
    assert "B_row" not in triangle(value).text


def test_full_tiles_have_no_tests_and_stay() -> None:
    text = triangle("A[k][i] * B[k][j]").text
    full = text.partition("C_r[ri][rj] += ")[0].rpartition("for (int k")[2]
    assert "B_row" not in full
