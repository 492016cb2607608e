"""What other blocks did before they left parts of a sum comes before what the last one does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eatss
from eatss.verify import verify

SUMMED = """
void f(int n, int m, int p, float C[n][m], float D[n][m], float A[n][p], float B[p][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] = 0;
      for (int k = 0; k < p; k++)
        C[i][j] += A[i][k] * B[k][j];
      D[i][j] += C[i][j];
      C[i][j] = 2 * D[i][j];
    }
#pragma endscop
}
"""
WAITS = "eatss_wait_for_parts(&f_k1_arrived[2 * streamed], number);"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of a kernel that loads D before the loop, and stores it behind."""
    place = tmp_path_factory.mktemp("streamed")
    program = eatss.codegen(
        SUMMED, gpu="h200", output=place, stream={"k": 7},
        tiles={"i": 16, "j": 16, "k": 8}, block={"i": 8, "j": 4},
    )  # fmt: skip
    shares = "7 blocks take equal shares of the turns over k of all tiles"
    assert shares in program.kernels[-1].notes
    return place


SIZES = [{"n": 33, "m": 30, "p": 50}]


def test_what_is_read_before_the_loop_may_be_written_behind_it(folder: Path) -> None:
    found = verify(folder, device="cpu", sizes=SIZES)
    assert (found.status, found.message) == ("ok", "")


def test_parts_that_nobody_waits_for_are_a_race(folder: Path, tmp_path: Path) -> None:
    for one in folder.iterdir():
        text = one.read_text()
        if one.suffix == ".cu":
            assert WAITS in text
            text = text.replace(WAITS, "f_k1_arrived[0] = 0;")
        (tmp_path / one.name).write_text(text)
    found = verify(tmp_path, device="cpu", sizes=SIZES)
    assert found.status == "race"
    assert "reads what another thread writes without an order, element of" in found.message


def test_indices_of_parts_fit() -> None:
    text = re.sub(r"\b[nmp]\b", "4096", SUMMED.replace("int n, int m, int p, ", ""))
    program = eatss.codegen(
        text, gpu="h200", stream={"k": 100},
        tiles={"i": 128, "j": 256, "k": 16}, block={"i": 16, "j": 16},
    )  # fmt: skip
    assert program.index_bits == 32


@pytest.mark.parametrize("added", ["A[i][k] * s + B[k][j]"])
def test_what_is_added_does_not_depend_on_the_sum(added: str, tmp_path: Path) -> None:
    text = SUMMED.replace("C[i][j] = 0;", "float s = 0;", 1)
    text = text.replace("C[i][j] += A[i][k] * B[k][j];", f"s += {added};")
    text = text.replace("D[i][j] += C[i][j];", "D[i][j] = s;").replace("C[i][j] = 2 * D[i][j];", "")
    program = eatss.codegen(
        text, gpu="h200", output=tmp_path, stream={"k": 7},
        tiles={"i": 16, "j": 16, "k": 8}, block={"i": 8, "j": 4},
    )  # fmt: skip
    assert "blocks cannot take equal shares of the turns over k" in program.kernels[-1].notes
    found = verify(tmp_path, device="cpu", sizes=SIZES)
    assert (found.status, found.message) == ("ok", "")
