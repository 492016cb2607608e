"""Sums over several loops: tiled where their order is free, left alone where it is not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eatss
from eatss.base.diagnostics import InputError
from eatss.program import Program
from eatss.session.session import Session
from eatss.verify import Verification, verify
from tests.examples import examples

HEAD = """
#ifndef N
#define N 40
#endif
#ifndef M
#define M 24
#endif
double fmax(double, double);
void f(double C[N][N], double D[N][N], double A[N][M][M], double B[M][M][N], double P[N][N][M][M])
{
#pragma scop
"""
TAIL = "\n#pragma endscop\n}\n"
LOOPS = "for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)"
SUM = "for (int e = 0; e < M; e++) for (int f = 0; f < M; f++)"
PRODUCT = "A[i][e][f] * B[f][e][j]"  # the other way round in one: two loops stay two

JOINED = {
    "added": f"{LOOPS} {SUM} C[i][j] += {PRODUCT};",
    "greatest": f"{LOOPS} {SUM} C[i][j] = fmax(C[i][j], {PRODUCT});",
    "triangular": f"{LOOPS} for (int e = 0; e < M; e++) for (int f = 0; f <= e; f++)"
    f" C[i][j] += {PRODUCT};",
}
LEFT = {
    "seen in between": f"{LOOPS} {SUM} {{ C[i][j] += {PRODUCT}; P[i][j][e][f] = C[i][j]; }}",
    "started anew": f"{LOOPS} for (int e = 0; e < M; e++) {{ C[i][j] = 0;"
    f" for (int f = 0; f < M; f++) C[i][j] += {PRODUCT}; D[i][j] += C[i][j]; }}",
}
SIZES = [{"N": 5, "M": 7}, {"N": 18, "M": 9}, {"N": 3, "M": 1}, {"N": 4, "M": 0}]


def made(text: str, folder: Path, **options: object) -> tuple[Program, Verification]:
    program = eatss.codegen(text, gpu="h200", output=folder, force=True, **options)  # type: ignore[arg-type]
    return program, verify(folder, device="cpu", sizes=SIZES)


def loops_of(text: str) -> set[str]:
    (region,) = Session(text, code=True).symbolic.regions
    return {loop.name for kernel in region.scheduled.kernels for loop in kernel.loops}


@pytest.mark.parametrize("what", ["greatest", "triangular"])
def test_sums_over_several_loops_are_tiled(what: str, tmp_path: Path) -> None:
    text = HEAD + JOINED[what] + TAIL
    assert {"e", "f"} <= loops_of(text)
    tiles = {"i": 4, "j": 8, "e": 3, "f": 4}
    program, found = made(text, tmp_path, tiles=tiles)
    assert (found.status, found.message) == ("ok", "")
    assert any(kernel.reassociates for kernel in program.kernels)
    assert not found.bit_equal


@pytest.mark.parametrize("what", ["seen in between", "started anew"])
def test_sums_whose_order_is_seen_keep_it(what: str, tmp_path: Path) -> None:
    text = HEAD + LEFT[what] + TAIL
    assert not {"e", "f"} <= loops_of(text)
    _, found = made(text, tmp_path)
    assert (found.status, found.message) == ("ok", "")


def test_strict_sums_keep_their_order(tmp_path: Path) -> None:
    text = HEAD + JOINED["triangular"] + TAIL
    program, found = made(text, tmp_path, strict_fp=True)
    assert (found.status, found.bit_equal) == ("ok", True)
    assert {dict(kernel.tile_sizes).get("e", 1) for kernel in program.kernels} == {1}


def test_tiles_that_reorder_are_refused_beside_strict_fp() -> None:
    text = HEAD + JOINED["added"] + TAIL
    with pytest.raises(InputError, match=r"EATSS-K020") as raised:
        eatss.codegen(text, gpu="h200", strict_fp=True, tiles={"e": 4})
    assert "give e=1" in str(raised.value)


def random_sum(seed: int) -> tuple[str, dict[str, int]]:
    """Return a program with a sum over two or three loops somewhere in it, and tiles."""
    dice = random.Random(seed)
    loops = ["e", "f", "g"][: dice.choice([2, 2, 3])]
    bounds = {"e": "M", "f": dice.choice(["M", "e + 1", "M - 1"]), "g": dice.choice(["3", "M"])}
    nest = " ".join(f"for (int {n} = 0; {n} < {bounds[n]}; {n}++)" for n in loops)
    last = loops[-1]
    value = dice.choice(
        [
            f"A[i][e][{last}] * B[e][f][j]",
            f"A[i][f][e] * B[{last}][e][j] * P[i][j][e][f]",
            f"P[i][j][e][f] - A[i][{last}][f]",
            f"A[i][e][f] * D[i][j] * B[f][{last}][j]",
        ]
    )
    update = dice.choice(["C[i][j] += {};", "C[i][j] -= {};", "C[i][j] = fmax({}, C[i][j]);"])
    body = f"{nest} {update.format(value)}"
    before = dice.choice(["", "C[i][j] = D[i][j];", "C[i][j] = 0.5 * C[i][j];"])
    after = dice.choice(["", "D[i][j] = C[i][j];", "C[i][j] = C[i][j] + D[j][i];"])
    text = f"{HEAD}{LOOPS} {{ {before} {body} {after} }}{TAIL}"
    tiles = {name: dice.choice([1, 2, 3, 8]) for name in ("i", "j", *loops)}
    return text, tiles


@settings(max_examples=examples(3), suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_random_sums_are_right_in_any_tiles(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, tiles = random_sum(seed)
    tiles = {name: size for name, size in tiles.items() if name in loops_of(text)}
    _, found = made(text, tmp_path_factory.mktemp("sums"), tiles=tiles)
    assert (found.status, found.message) == ("ok", ""), text
