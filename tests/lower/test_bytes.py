"""Sums of products of bytes: tensor cores add them up, as C does in every bit."""

from __future__ import annotations

import re
from itertools import product
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


@pytest.mark.samples(1)
@pytest.mark.parametrize("first", A)
@pytest.mark.parametrize("second", B)
@pytest.mark.parametrize(("columns", "stages"), [(32, 2), (24, 3), (32, 1)])
def test_boxes_are_read_as_they_lie(
    first: str, second: str, columns: int, stages: int, tmp_path: Path
) -> None:
    program = eatss.codegen(
        source(first, second), gpu="h200", output=tmp_path, **options(columns, stages)
    )
    assert computed(program) == ["mma_s8_s8_16x8x32"]
    ways = {"A": "matrices" if first == "rows" else "turned_bytes"}
    ways |= {"B": "matrices" if second == "turned" else "turned_bytes"}
    no_twos = second == "rows" and columns == 24  # a lane has six columns
    assert loads_in(program) == ({} if no_twos else ways)
    check(tmp_path, {"n": 32, "m": columns, "p": 192}, {"n": 33, "m": 7, "p": 71})


@pytest.mark.samples(1)
@pytest.mark.parametrize("types", [*product(("unsigned char", "int8_t"), ("int8_t", "uint8_t"))])
def test_sums_of_all_values_are_right_and_wrap(types: tuple[str, str]) -> None:
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


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("types", "sums", "value", "fits"),
    [
        (("int8_t", "int8_t"), "int", "", True),
        (("char", "unsigned char"), "int32_t", "", True),
        (("uint8_t", "signed char"), "int", "(int) A[i][k] * (int) B[k][j]", True),
        (("uint8_t", "uint8_t"), "unsigned", "", True),
        (("int8_t", "int8_t"), "int", "p * A[i][k] * B[k][j]", True),
        (("int8_t", "int8_t"), "int", "k * A[i][k] * B[k][j]", False),
        (("int8_t", "int8_t"), "long", "", False),  # sums have 64 bits
        (("int8_t", "int8_t"), "short", "", False),
        (("int8_t", "short"), "int", "", False),
        (("int8_t", "int8_t"), "int", "(A[i][k] + 1) * B[k][j]", False),
        (("int8_t", "int8_t"), "int", "A[i][k] * A[i][k] * B[k][j]", False),
        (("int8_t", "int8_t"), "float", "", False),
        (("short", "short"), "int", "", False),
        (("int", "int"), "int", "", False),
    ],
)
def test_tensor_cores_multiply_bytes_into_words(
    types: tuple[str, str], sums: str, value: str, fits: bool
) -> None:
    selection = eatss.select(source(types=types, sums=sums, value=value), gpu="a100", target="cuda")
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


@pytest.mark.long
def test_strict_code_has_plain_operations() -> None:
    assert not computed(eatss.codegen(source(), gpu="h200", strict_fp=True))


@pytest.mark.long
def test_integers_that_are_passed_wait_until_the_sum_is_there(tmp_path: Path) -> None:
    text = source(value="p * A[i][k] * B[k][j]")
    program = eatss.codegen(text, gpu="h200", output=tmp_path, **options())
    assert "+= p * sum_C_r" in program.text
    check(tmp_path, {"n": 64, "m": 32, "p": 64}, {"n": 33, "m": 47, "p": 71})


@pytest.mark.long
def test_selected_tiles_are_right_at_all_edges(tmp_path: Path) -> None:
    for first, second in product(A, B):
        program = eatss.codegen(source(first, second), gpu="h200", output=tmp_path / first / second)
        assert set(loads_in(program)) == {"A", "B"}
        tiles = {"n": 128, "m": 256, "p": 128}
        check(tmp_path / first / second, tiles, {"n": 130, "m": 47, "p": 201})


@pytest.mark.long
@pytest.mark.parametrize("second", B)
def test_rows_that_begin_anywhere_come_through_registers(second: str, tmp_path: Path) -> None:
    text = source(second=second)
    for name, size in (("n", 71), ("m", 77), ("p", 199)):
        text = text.replace(f"int {name}, ", "").replace(f"[{name}]", f"[{size}]")
        text = text.replace(f"< {name};", f"< {size};")
    program = eatss.codegen(text, gpu="h200", output=tmp_path, **options())
    assert {"A_line", "B_line"} == set(re.findall(r"signed char (\w_line)\[", program.text))
    check(tmp_path, {})
