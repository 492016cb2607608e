"""Sums of products of bytes: tensor cores add them up, as C does in every bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.cards import load_profile
from eatss.program import Program
from eatss.verify import verify

SOURCE = """\
#include <stdint.h>
void product(int n, int m, int p, SUM C[n][m], FIRST A[ROWS], SECOND B[COLUMNS])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < p; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
A = {"rows": ("A[i][k]", "n][p"), "turned": ("A[k][i]", "p][n")}
B = {"rows": ("B[k][j]", "p][m"), "turned": ("B[j][k]", "m][p")}
PLACES = {"A": "shared", "B": "shared"}
NAMES = {"int8_t": "s8", "uint8_t": "u8", "signed char": "s8", "unsigned char": "u8", "char": "s8"}


def source(
    first: str = "rows", second: str = "rows", types: tuple[str, str] = ("int8_t", "int8_t"),
    sums: str = "int", value: str = "",
) -> str:  # fmt: skip
    """Return a product of two factors, as they lie."""
    changes = {
        "VALUE": value or f"{A[first][0]} * {B[second][0]}",
        "ROWS": A[first][1], "COLUMNS": B[second][1], "SUM": sums,
        "FIRST": types[0], "SECOND": types[1],
    }  # fmt: skip
    text = SOURCE
    for name, own in changes.items():
        text = text.replace(name, own)
    return text


def options(columns: int = 32, stages: int = 2, instruction: str = "mma_s8_s8_16x8x32") -> Any:
    """Return how two by two warps multiply tiles of 32 rows, loops of 64 steps."""
    return {
        "tiles": {"i": 32, "j": columns, "k": 64},
        "block": (8, 4 if columns == 24 else 8),
        "placements": PLACES,
        "instructions": [instruction],
        "stages": stages,
    }


def computed(program: Program) -> list[str]:
    """Return the instructions of tensor cores that compute the sum."""
    notes = (one for kernel in program.kernels for one in kernel.notes)
    return [one.split(":")[0] for one in notes if one.startswith("mma_") and ": computes S0" in one]


def loads_in(program: Program) -> dict[str, str]:
    """Return how fragments are loaded, by array."""
    found = re.findall(r" eatss_load_(\w+)\(fragment.*&sh\.(\w)", program.text)
    return {array: how for how, array in found}


def check(folder: Path, *sizes: dict[str, int]) -> None:
    found = verify(folder, device="cpu", sizes=sizes)
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


@pytest.mark.parametrize(("first", "second"), [("rows", "rows"), ("turned", "turned")])
def test_boxes_are_read_as_they_lie(first: str, second: str, tmp_path: Path) -> None:
    program = eatss.codegen(source(first, second), gpu="h200", output=tmp_path, **options(32, 2))
    assert computed(program) == ["mma_s8_s8_16x8x32"]
    ways = {"A": "matrices" if first == "rows" else "turned_bytes"}
    ways |= {"B": "matrices" if second == "turned" else "turned_bytes"}
    assert loads_in(program) == ways
    check(tmp_path, {"n": 32, "m": 32, "p": 192}, {"n": 33, "m": 7, "p": 71})


def test_sums_of_all_values_are_right_and_wrap() -> None:
    types = ("unsigned char", "int8_t")
    call = eatss.jit(source(types=types, sums="unsigned"))
    draw = np.random.default_rng(0)
    a, b = (
        draw.integers(*limits, shape, kind, endpoint=True)
        for own, shape in zip(types, ((40, 70), (70, 24)), strict=True)
        for kind in [np.uint8 if own[0] == "u" else np.int8]
        for limits in [(np.iinfo(kind).min, np.iinfo(kind).max)]
    )
    c = np.full((40, 24), 2**32 - 5, np.uint32)
    call(A=a, B=b, C=c)
    exact = a.astype(np.int64) @ b.astype(np.int64) - 5
    assert (c == exact % 2**32).all()


@pytest.mark.parametrize(("types", "fits"), [(("int8_t", "int8_t"), True), (("int", "int"), False)])
def test_tensor_cores_multiply_bytes_into_words(types: tuple[str, str], fits: bool) -> None:
    selection = eatss.select(source(types=types, sums="int", value=""), gpu="a100", target="cuda")
    warps = selection.kernels[0].warps
    wanted = f"mma_{NAMES.get(types[0])}_{NAMES.get(types[1])}_16x8x32" if fits else None
    assert (warps and warps.instruction) == wanted


def test_cards_without_them_have_plain_operations_that_take_their_time() -> None:
    (kernel,) = eatss.select(source(), gpu="t4", target="cuda").kernels
    assert kernel.warps is None
    card = load_profile("t4")
    assert kernel.predicted is not None
    assert card.boost_clock_mhz is not None
    assert kernel.predicted.time_s >= 4096**3 / (64 * card.sm_count * 1e6 * card.boost_clock_mhz)
