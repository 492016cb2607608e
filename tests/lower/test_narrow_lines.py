"""Halves of rows that begin anywhere come through registers, while there are products to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

SOURCE = """\
#define N {0}
#define M {1}
#define P {2}
void product(float C[N][M], _Float16 A{3}, _Float16 B{4})
{{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++)
      for (int k = 0; k < P; k++)
        C[i][j] += (float) A{5} * (float) B{6};
#pragma endscop
}}
"""
FACTORS = {
    "as they are": ("[N][P]", "[P][M]", "[i][k]", "[k][j]"),
    "both turned": ("[P][N]", "[M][P]", "[k][i]", "[j][k]"),
}


def product(sizes: tuple[int, int, int], factors: str = "as they are") -> str:
    return SOURCE.format(*sizes, *FACTORS[factors])


def options(rows: int = 32, steps: int = 32, stages: int = 2) -> Any:
    return {
        "tiles": {"i": rows, "j": 32, "k": steps},
        "block": (8, 8),
        "placements": {"A": "shared", "B": "shared"},
        "instructions": ["mma_f16_16x8x16"],
        "stages": stages,
    }


def lines_in(program: eatss.Program) -> set[str]:
    """Return the arrays whose elements come through registers."""
    return set(re.findall(r"eatss_half (\w+)_line\[\d+\];", program.text))


@pytest.mark.parametrize("factors", ["as they are", "both turned"])
def test_products_of_odd_sizes_are_right(factors: str, tmp_path: Path) -> None:
    program = eatss.codegen(
        product((71, 33, 135), factors), gpu="h200", output=tmp_path, **options()
    )
    assert lines_in(program) == {"A", "B"}
    assert re.search(r"sh.A\[\(stage == 0 \? 1 : stage - 1\)\].* = A_line\[e\];", program.text)
    assert "eatss_wait_for_copies" not in program.text
    found = verify(tmp_path, device="cpu")
    assert (found.status, found.message) == ("ok", "")


def test_loads_stand_in_front_of_a_turns_products_and_stores_behind() -> None:
    text = eatss.codegen(product((71, 33, 135)), gpu="h200", **options()).text
    loop = text[text.index("for (int k0") :]
    places = [loop.index(one) for one in ("A_line[e] = ", "eatss_mma", "= A_line[e]")]
    assert places == sorted(places)
    # both branches of the test for the last steps have filled them: they need no zeros before
    assert not re.search(r"A_line\[s\w*\]", text)


def test_two_boxes_are_selected_for_odd_sizes() -> None:
    selection = eatss.select(product((1111, 1111, 1111)), gpu="h200", target="cuda")
    (kernel,) = selection.kernels
    assert kernel.warps is not None
    assert kernel.warps.stages == 2
    program = eatss.codegen(product((1111, 1111, 1111)), gpu="h200", selection=selection)
    assert lines_in(program) == {"A", "B"}
